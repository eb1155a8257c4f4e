//! `edit`

use std::path::Path;
use std::sync::Arc;

use helve_protocol::{ToolAction, ToolClass, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::blocking::run_blocking;
use crate::editing::{
    AppliedEdit, EditError, EditProblem, EditedText, MatchRung, TextReplacement as Replacement, replace,
};
use crate::files::report;
use crate::files::{
    ChangeDraft, EditableText, ResultingText, SessionFiles, WritablePlace, unicode_form_hint,
    with_uniform_endings,
};
use crate::{ChangeScope, ToolContext, ToolFailure, ToolOutcome, TypedTool};

/// Edits files by search and replace.
///
/// A file need not have been read: what is replaced is quoted, so it is known.
#[derive(Clone, Debug, Default)]
pub struct EditTool {
    pub files: Arc<SessionFiles>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditInput {
    /// The file, relative to the project or absolute.
    path: String,
    /// The replacements, in order.
    edits: Vec<Replacement>,
}

impl TypedTool for EditTool {
    const NAME: &'static str = "edit";
    const DESCRIPTION: &'static str = include_str!("edit.md");
    const CLASS: ToolClass = ToolClass::Changes;
    const TOUCHES: ChangeScope = ChangeScope::Named;
    const CAN_BE_TRIED: bool = true;
    type Input = EditInput;

    fn intent(&self, input: &EditInput) -> String {
        let places = if input.edits.len() == 1 { "place" } else { "places" };
        format!("edit {} in {} {places}", input.path, input.edits.len())
    }

    fn actions(&self, input: &EditInput, root: &Path) -> Vec<ToolAction> {
        vec![ToolAction::Write(root.join(&input.path))]
    }

    async fn run(&self, input: EditInput, context: &ToolContext) -> ToolOutcome {
        let tool = self.clone();
        run_blocking(context, move |context| tool.edit(&input, context)).await
    }
}

impl EditTool {
    fn edit(&self, input: &EditInput, context: &ToolContext) -> ToolOutcome {
        let _alone = self.files.change();
        if input.edits.is_empty() {
            return Err(ToolFailure::new("There are no edits. Give at least one, with old and new."));
        }
        let place = WritablePlace::find(&input.path, context)?;
        let name = &input.path;
        let standing = self.files.open(&place, context)?.ok_or_else(|| {
            let form = unicode_form_hint(&place.path);
            let hint = if form.is_empty() { " Use write to make it, or read its folder." } else { &form };
            ToolFailure(format!("There is no file {name}.{hint}"))
        })?;
        let file = standing.text()?;
        let (settled, applied) = settle(&file, &input.edits)
            .map_err(|ToolFailure(why)| ToolFailure(format!("{name} was not edited. {why}")))?;
        let names = self.files.commit(vec![ChangeDraft::of(&standing, &file.there, &settled)], context)?;
        let did = match settled.text == file.there.text {
            true if file.seen.is_some() => format!("{name} says so already: somebody made the same change."),
            true => format!("{name} is as it was: the edits undo each other."),
            false => format!("{name} was edited.{}", slips(&applied)),
        };
        let text = format!(
            "{did}{names}{}
{}",
            report::describe_outside_changes(name, &settled.by_user),
            report::changed_lines(&file.there.text, &settled.text)
        );
        let display = Some(report::diff(name, Some(&file.there.text), Some(&settled.text)));
        Ok(ToolOutput { text, display, ..ToolOutput::default() })
    }
}

/// Makes the edits to what the model knows and keeps what others did; if they don't fit that, to what is there.
fn settle(
    file: &EditableText,
    edits: &[Replacement],
) -> Result<(ResultingText, Vec<AppliedEdit>), ToolFailure> {
    let refused = |refused: EditError| ToolFailure(format!("Nothing was changed: {refused}"));
    match replace(file.known(), edits) {
        Ok(EditedText { text, applied }) => {
            Ok((file.settle(with_uniform_endings(file.known(), text))?, applied))
        }
        Err(EditError { reason: EditProblem::NotFound { .. }, .. }) if file.seen.is_some() => {
            let EditedText { text, applied } = replace(&file.there.text, edits).map_err(refused)?;
            Ok((file.keep_current_changes(with_uniform_endings(&file.there.text, text)), applied))
        }
        Err(error) => Err(refused(error)),
    }
}

/// Which edits did not match exactly, and how they did.
fn slips(applied: &[AppliedEdit]) -> String {
    let slip = |(at, applied): (usize, &AppliedEdit)| match (applied.rung, applied.places) {
        (MatchRung::Exact, 1) => String::new(),
        (MatchRung::Exact, places) => format!(" Edit {} matched in {places} places.", at + 1),
        (rung, _) => format!(" Edit {} matched {rung}.", at + 1),
    };
    applied.iter().enumerate().map(slip).collect()
}
