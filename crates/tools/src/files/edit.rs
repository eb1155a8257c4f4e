//! `edit`

use std::path::Path;
use std::sync::Arc;

use helve_protocol::{Action, ToolClass, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::aside::aside;
use crate::editing::{Applied, Edit as Replacement, Refusal, Refused, Replaced, Rung, replace};
use crate::files::telling;
use crate::files::{Draft, Files, Place, Settled, Text, hint_of_form, unmixed};
use crate::{Context, Done, ToolFailure, Touches, TypedTool};

/// Edits files by search and replace.
///
/// A file need not have been read: what is replaced is quoted, so it is known.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    pub files: Arc<Files>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The file, relative to the project or absolute.
    path: String,
    /// The replacements, in order.
    edits: Vec<Replacement>,
}

impl TypedTool for Edit {
    const NAME: &'static str = "edit";
    const DESCRIPTION: &'static str = include_str!("edit.md");
    const CLASS: ToolClass = ToolClass::Changes;
    const TOUCHES: Touches = Touches::Named;
    const CAN_BE_TRIED: bool = true;
    type Input = Input;

    fn intent(&self, input: &Input) -> String {
        let places = if input.edits.len() == 1 { "place" } else { "places" };
        format!("edit {} in {} {places}", input.path, input.edits.len())
    }

    fn actions(&self, input: &Input, root: &Path) -> Vec<Action> {
        vec![Action::Write(root.join(&input.path))]
    }

    async fn run(&self, input: Input, context: &Context) -> Done {
        let tool = self.clone();
        aside(context, move |context| tool.edit(&input, context)).await
    }
}

impl Edit {
    fn edit(&self, input: &Input, context: &Context) -> Done {
        let _alone = self.files.change();
        if input.edits.is_empty() {
            return Err(ToolFailure::new("There are no edits. Give at least one, with old and new."));
        }
        let place = Place::find(&input.path, context)?;
        let name = &input.path;
        let standing = self.files.open(&place, context)?.ok_or_else(|| {
            let form = hint_of_form(&place.path);
            let hint = if form.is_empty() { " Use write to make it, or read its folder." } else { &form };
            ToolFailure(format!("There is no file {name}.{hint}"))
        })?;
        let file = standing.text()?;
        let (settled, applied) = settle(&file, &input.edits)
            .map_err(|ToolFailure(why)| ToolFailure(format!("{name} was not edited. {why}")))?;
        let names = self.files.commit(vec![Draft::of(&standing, &file.there, &settled)], context)?;
        let did = match settled.text == file.there.text {
            true if file.seen.is_some() => format!("{name} says so already: somebody made the same change."),
            true => format!("{name} is as it was: the edits undo each other."),
            false => format!("{name} was edited.{}", slips(&applied)),
        };
        let text = format!(
            "{did}{names}{}
{}",
            telling::by_others(name, &settled.by_user),
            telling::changed_lines(&file.there.text, &settled.text)
        );
        let display = Some(telling::diff(name, Some(&file.there.text), Some(&settled.text)));
        Ok(ToolOutput { text, display, ..ToolOutput::default() })
    }
}

/// Makes the edits to what the model knows and keeps what others did; if they don't fit that, to what is there.
fn settle(file: &Text, edits: &[Replacement]) -> Result<(Settled, Vec<Applied>), ToolFailure> {
    let refused = |refused: Refused| ToolFailure(format!("Nothing was changed: {refused}"));
    match replace(file.known(), edits) {
        Ok(Replaced { text, applied }) => Ok((file.settle(unmixed(file.known(), text))?, applied)),
        Err(Refused { reason: Refusal::NotFound { .. }, .. }) if file.seen.is_some() => {
            let Replaced { text, applied } = replace(&file.there.text, edits).map_err(refused)?;
            Ok((file.settle_there(unmixed(&file.there.text, text)), applied))
        }
        Err(error) => Err(refused(error)),
    }
}

/// Which edits did not match exactly, and how they did.
fn slips(applied: &[Applied]) -> String {
    let slip = |(at, applied): (usize, &Applied)| match (applied.rung, applied.places) {
        (Rung::Exact, 1) => String::new(),
        (Rung::Exact, places) => format!(" Edit {} matched in {places} places.", at + 1),
        (rung, _) => format!(" Edit {} matched {rung}.", at + 1),
    };
    applied.iter().enumerate().map(slip).collect()
}
