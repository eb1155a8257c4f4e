//! `write`

use std::path::Path;
use std::sync::Arc;

use helve_protocol::{ToolAction, ToolClass, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::blocking::run_blocking;
use crate::files::atomic::{AttributedContent, PlannedChange};
use crate::files::report;
use crate::files::{
    ChangeDraft, ExistingFile, SeenExtent, SessionFiles, WritablePlace, with_endings_of, with_uniform_endings,
};
use crate::{ChangeScope, ToolContext, ToolOutcome, TypedTool};

/// Writes files.
#[derive(Clone, Debug, Default)]
pub struct WriteTool {
    pub files: Arc<SessionFiles>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteInput {
    /// The file, relative to the project or absolute.
    path: String,
    /// All that shall be in it.
    content: String,
}

impl TypedTool for WriteTool {
    const NAME: &'static str = "write";
    const DESCRIPTION: &'static str = include_str!("write.md");
    const CLASS: ToolClass = ToolClass::Changes;
    const TOUCHES: ChangeScope = ChangeScope::Named;
    const CAN_BE_TRIED: bool = true;
    type Input = WriteInput;

    fn intent(&self, input: &WriteInput) -> String {
        format!("write {} ({})", input.path, report::counted_lines(input.content.lines().count()))
    }

    fn actions(&self, input: &WriteInput, root: &Path) -> Vec<ToolAction> {
        vec![ToolAction::Write(root.join(&input.path))]
    }

    async fn run(&self, input: WriteInput, context: &ToolContext) -> ToolOutcome {
        let tool = self.clone();
        run_blocking(context, move |context| tool.write(input, context)).await
    }
}

impl WriteTool {
    fn write(&self, input: WriteInput, context: &ToolContext) -> ToolOutcome {
        let _alone = self.files.change();
        let place = WritablePlace::find(&input.path, context)?;
        match self.files.open(&place, context)? {
            None => self.make(place, input.content, context),
            Some(standing) => self.replace(&standing, input.content, context),
        }
    }

    fn make(&self, place: WritablePlace, content: String, context: &ToolContext) -> ToolOutcome {
        let was_deleted = self.files.knows(&place.path);
        let after = AttributedContent { bytes: content.clone().into_bytes(), like: None };
        let change = PlannedChange { place: place.at, before: None, after: Some(after) };
        self.files.commit(vec![ChangeDraft { change, extent: SeenExtent::Whole }], context)?;
        let deleted = if was_deleted { " It had been deleted since you last saw it." } else { "" };
        let text =
            format!("{} was made: {}.{deleted}", place.name, report::counted_lines(content.lines().count()));
        let display = Some(report::diff(&place.name, None, Some(&content)));
        Ok(ToolOutput { text, display, ..ToolOutput::default() })
    }

    fn replace(&self, standing: &ExistingFile, content: String, context: &ToolContext) -> ToolOutcome {
        standing.must_be_known()?;
        let (name, file) = (&standing.place.name, standing.text()?);
        // The mark of its encoding is not part of a text.
        let content = content.strip_prefix('\u{feff}').unwrap_or(&content).to_owned();
        let settled =
            file.settle(with_uniform_endings(file.known(), with_endings_of(file.known(), content)))?;
        let names = self.files.commit(vec![ChangeDraft::of(standing, &file.there, &settled)], context)?;
        let count = report::counted_lines(settled.text.lines().count());
        let did = match settled.text == file.there.text {
            true => format!("{name} says that already: nothing was changed."),
            false => format!("{name} was replaced: {count}."),
        };
        let text = format!("{did}{names}{}", report::describe_outside_changes(name, &settled.by_user));
        let display = Some(report::diff(name, Some(&file.there.text), Some(&settled.text)));
        Ok(ToolOutput { text, display, ..ToolOutput::default() })
    }
}
