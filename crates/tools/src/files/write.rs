//! `write`

use std::path::Path;
use std::sync::Arc;

use helve_protocol::{Action, ToolClass, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::aside::aside;
use crate::files::atomic::{Change, Content};
use crate::files::telling;
use crate::files::{Draft, Extent, Files, Place, Standing, unmixed, with_endings_of};
use crate::{Context, Done, Touches, TypedTool};

/// Writes files.
#[derive(Clone, Debug, Default)]
pub struct Write {
    pub files: Arc<Files>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The file, relative to the project or absolute.
    path: String,
    /// All that shall be in it.
    content: String,
}

impl TypedTool for Write {
    const NAME: &'static str = "write";
    const DESCRIPTION: &'static str = include_str!("write.md");
    const CLASS: ToolClass = ToolClass::Changes;
    const TOUCHES: Touches = Touches::Named;
    const CAN_BE_TRIED: bool = true;
    type Input = Input;

    fn intent(&self, input: &Input) -> String {
        format!("write {} ({})", input.path, telling::counted_lines(input.content.lines().count()))
    }

    fn actions(&self, input: &Input, root: &Path) -> Vec<Action> {
        vec![Action::Write(root.join(&input.path))]
    }

    async fn run(&self, input: Input, context: &Context) -> Done {
        let tool = self.clone();
        aside(context, move |context| tool.write(input, context)).await
    }
}

impl Write {
    fn write(&self, input: Input, context: &Context) -> Done {
        let _alone = self.files.change();
        let place = Place::find(&input.path, context)?;
        match self.files.open(&place, context)? {
            None => self.make(place, input.content, context),
            Some(standing) => self.replace(&standing, input.content, context),
        }
    }

    fn make(&self, place: Place, content: String, context: &Context) -> Done {
        let was_deleted = self.files.knows(&place.path);
        let after = Content { bytes: content.clone().into_bytes(), like: None };
        let change = Change { place: place.at, before: None, after: Some(after) };
        self.files.commit(vec![Draft { change, extent: Extent::Whole }], context)?;
        let deleted = if was_deleted { " It had been deleted since you last saw it." } else { "" };
        let text =
            format!("{} was made: {}.{deleted}", place.name, telling::counted_lines(content.lines().count()));
        let display = Some(telling::diff(&place.name, None, Some(&content)));
        Ok(ToolOutput { text, display, ..ToolOutput::default() })
    }

    fn replace(&self, standing: &Standing, content: String, context: &Context) -> Done {
        standing.must_be_known()?;
        let (name, file) = (&standing.place.name, standing.text()?);
        // The mark of its encoding is not part of a text.
        let content = content.strip_prefix('\u{feff}').unwrap_or(&content).to_owned();
        let settled = file.settle(unmixed(file.known(), with_endings_of(file.known(), content)))?;
        let names = self.files.commit(vec![Draft::of(standing, &file.there, &settled)], context)?;
        let count = telling::counted_lines(settled.text.lines().count());
        let did = match settled.text == file.there.text {
            true => format!("{name} says that already: nothing was changed."),
            false => format!("{name} was replaced: {count}."),
        };
        let text = format!("{did}{names}{}", telling::by_others(name, &settled.by_user));
        let display = Some(telling::diff(name, Some(&file.there.text), Some(&settled.text)));
        Ok(ToolOutput { text, display, ..ToolOutput::default() })
    }
}
