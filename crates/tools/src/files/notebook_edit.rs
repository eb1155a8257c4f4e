//! `notebook_edit`

use std::path::Path;
use std::sync::Arc;

use helve_protocol::{Action, ToolClass, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::aside::aside;
use crate::files::cells::{CellKind, Notebook, Wrong};
use crate::files::telling;
use crate::files::{Draft, Files, Place, Settled, Text, hint_of_form};
use crate::{Context, Done, ToolFailure, Touches, TypedTool};

/// Changes cells of notebooks.
#[derive(Clone, Debug, Default)]
pub struct NotebookEdit {
    pub files: Arc<Files>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    path: String,
    /// Its number. `insert` puts a new cell after it; 0: at the top.
    cell: u32,
    action: Change,
    /// If left out: as it was; of a new cell, code.
    #[serde(default)]
    kind: Option<CellKind>,
    /// The whole new text of the cell; not for `delete`.
    #[serde(default)]
    source: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Action")]
enum Change {
    Replace,
    Insert,
    Delete,
}

impl TypedTool for NotebookEdit {
    const NAME: &'static str = "notebook_edit";
    const DESCRIPTION: &'static str = include_str!("notebook_edit.md");
    const CLASS: ToolClass = ToolClass::Changes;
    const TOUCHES: Touches = Touches::Named;
    const CAN_BE_TRIED: bool = true;
    type Input = Input;

    fn intent(&self, input: &Input) -> String {
        let Input { path, cell, .. } = input;
        match input.action {
            Change::Replace => format!("replace cell {cell} of {path}"),
            Change::Insert => format!("insert a cell after cell {cell} of {path}"),
            Change::Delete => format!("delete cell {cell} of {path}"),
        }
    }

    fn actions(&self, input: &Input, root: &Path) -> Vec<Action> {
        vec![Action::Write(root.join(&input.path))]
    }

    async fn run(&self, input: Input, context: &Context) -> Done {
        let tool = self.clone();
        aside(context, move |context| tool.change(&input, context)).await
    }
}

impl NotebookEdit {
    fn change(&self, input: &Input, context: &Context) -> Done {
        let _alone = self.files.change();
        let place = Place::find(&input.path, context)?;
        let name = &input.path;
        let standing = self.files.open(&place, context)?.ok_or_else(|| {
            let form = hint_of_form(&place.path);
            let hint = if form.is_empty() { " Read its folder." } else { &form };
            ToolFailure(format!("There is no file {name}.{hint}"))
        })?;
        // Numbers mean nothing to whoever has not seen the cells.
        standing.must_be_seen()?;
        let file = standing.text()?;
        let settled = settle(&file, input)
            .map_err(|why| ToolFailure(format!("{name} was not changed. {}", why.0.trim_end())))?;
        let names = self.files.commit(vec![Draft::of(&standing, &file.there, &settled)], context)?;
        let text = format!("{name}: {}{names}{}", done(input), telling::by_others(name, &settled.by_user));
        let display = Some(telling::diff(name, Some(&file.there.text), Some(&settled.text)));
        Ok(ToolOutput { text, display, ..ToolOutput::default() })
    }
}

/// Makes the change to what the model knows, and keeps what others did meanwhile.
fn settle(file: &Text, input: &Input) -> Result<Settled, ToolFailure> {
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

fn changed(text: &str, input: &Input) -> Result<String, Wrong> {
    let notebook = Notebook::read(text)?;
    let cell = input.cell as usize;
    let source = input.source.as_deref().ok_or(Wrong::NoSource);
    match input.action {
        Change::Replace => notebook.replace(cell, input.kind, source?),
        Change::Insert => notebook.insert(cell, input.kind.unwrap_or(CellKind::Code), source?),
        Change::Delete => notebook.delete(cell),
    }
}

fn done(input: &Input) -> String {
    let cell = input.cell;
    match input.action {
        Change::Replace => format!("cell {cell} was replaced."),
        Change::Insert => {
            format!("the new cell is cell {}. Those after it have moved by one.", cell.saturating_add(1))
        }
        Change::Delete => format!("cell {cell} was deleted. Those after it have moved by one."),
    }
}
