//! `notebook_edit`

use std::path::Path;
use std::sync::Arc;

use helve_protocol::{ToolAction, ToolClass, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::blocking::run_blocking;
use crate::files::notebook_cells::{CellKind, Notebook, NotebookError};
use crate::files::report;
use crate::files::{
    ChangeDraft, EditableText, ResultingText, SessionFiles, WritablePlace, unicode_form_hint,
};
use crate::{ChangeScope, ToolContext, ToolFailure, ToolOutcome, TypedTool};

/// Changes cells of notebooks.
#[derive(Clone, Debug, Default)]
pub struct NotebookEditTool {
    pub files: Arc<SessionFiles>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotebookEditInput {
    path: String,
    /// Its number. `insert` puts a new cell after it; 0: at the top.
    cell: u32,
    action: CellAction,
    /// If left out: as it was; of a new cell, code.
    #[serde(default)]
    kind: Option<CellKind>,
    /// The whole new text of the cell; not for `delete`.
    #[serde(default)]
    source: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ToolAction")]
enum CellAction {
    Replace,
    Insert,
    Delete,
}

impl TypedTool for NotebookEditTool {
    const NAME: &'static str = "notebook_edit";
    const DESCRIPTION: &'static str = include_str!("notebook_edit.md");
    const CLASS: ToolClass = ToolClass::Changes;
    const TOUCHES: ChangeScope = ChangeScope::Named;
    const CAN_BE_TRIED: bool = true;
    type Input = NotebookEditInput;

    fn intent(&self, input: &NotebookEditInput) -> String {
        let NotebookEditInput { path, cell, .. } = input;
        match input.action {
            CellAction::Replace => format!("replace cell {cell} of {path}"),
            CellAction::Insert => format!("insert a cell after cell {cell} of {path}"),
            CellAction::Delete => format!("delete cell {cell} of {path}"),
        }
    }

    fn actions(&self, input: &NotebookEditInput, root: &Path) -> Vec<ToolAction> {
        vec![ToolAction::Write(root.join(&input.path))]
    }

    async fn run(&self, input: NotebookEditInput, context: &ToolContext) -> ToolOutcome {
        let tool = self.clone();
        run_blocking(context, move |context| tool.change(&input, context)).await
    }
}

impl NotebookEditTool {
    fn change(&self, input: &NotebookEditInput, context: &ToolContext) -> ToolOutcome {
        let _alone = self.files.change();
        let place = WritablePlace::find(&input.path, context)?;
        let name = &input.path;
        let standing = self.files.open(&place, context)?.ok_or_else(|| {
            let form = unicode_form_hint(&place.path);
            let hint = if form.is_empty() { " Read its folder." } else { &form };
            ToolFailure(format!("There is no file {name}.{hint}"))
        })?;
        // Numbers mean nothing to whoever has not seen the cells.
        standing.must_be_seen()?;
        let file = standing.text()?;
        let settled = settle(&file, input)
            .map_err(|why| ToolFailure(format!("{name} was not changed. {}", why.0.trim_end())))?;
        let names = self.files.commit(vec![ChangeDraft::of(&standing, &file.there, &settled)], context)?;
        let text = format!(
            "{name}: {}{names}{}",
            done(input),
            report::describe_outside_changes(name, &settled.by_user)
        );
        let display = Some(report::diff(name, Some(&file.there.text), Some(&settled.text)));
        Ok(ToolOutput { text, display, ..ToolOutput::default() })
    }
}

/// Makes the change to what the model knows, and keeps what others did meanwhile.
fn settle(file: &EditableText, input: &NotebookEditInput) -> Result<ResultingText, ToolFailure> {
    let wanted = changed(file.known(), input).map_err(|wrong| ToolFailure(wrong.to_string()))?;
    let settled = file.settle(wanted)?;
    // Two good changes can make a bad text.
    Notebook::read(&settled.text).map_err(|_| {
        ToolFailure::new(
            "Somebody else changed it since you read it, and both changes don't fit together. Read it again.",
        )
    })?;
    Ok(settled)
}

fn changed(text: &str, input: &NotebookEditInput) -> Result<String, NotebookError> {
    let notebook = Notebook::read(text)?;
    let cell = input.cell as usize;
    let source = input.source.as_deref().ok_or(NotebookError::NoSource);
    match input.action {
        CellAction::Replace => notebook.replace(cell, input.kind, source?),
        CellAction::Insert => notebook.insert(cell, input.kind.unwrap_or(CellKind::Code), source?),
        CellAction::Delete => notebook.delete(cell),
    }
}

fn done(input: &NotebookEditInput) -> String {
    let cell = input.cell;
    match input.action {
        CellAction::Replace => format!("cell {cell} was replaced."),
        CellAction::Insert => {
            format!("the new cell is cell {}. Those after it have moved by one.", cell.saturating_add(1))
        }
        CellAction::Delete => format!("cell {cell} was deleted. Those after it have moved by one."),
    }
}
