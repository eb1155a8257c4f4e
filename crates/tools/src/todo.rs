//! `todo`

use helve_protocol::{PlanTask, PlanTaskState, ToolAction, ToolClass, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::Path;

use crate::{ToolContext, ToolFailure, ToolOutcome, TypedTool};

/// Keeps the list of what is to be done, which the user watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct TodoTool;

const MAX_TASKS: usize = 50;
const MAX_TASK_CHARS: usize = 300;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TodoInput {
    /// The whole list, in its order. It replaces the one before.
    tasks: Vec<TodoItem>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TodoItem {
    text: String,
    state: TodoItemState,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TodoItemState {
    Open,
    InProgress,
    Done,
    Dropped,
}

impl TypedTool for TodoTool {
    const NAME: &'static str = "todo";
    const DESCRIPTION: &'static str = include_str!("todo.md");
    const CLASS: ToolClass = ToolClass::Reads;
    type Input = TodoInput;

    fn intent(&self, input: &TodoInput) -> String {
        format!("keep a list of {} tasks", input.tasks.len())
    }

    fn actions(&self, _: &TodoInput, _: &Path) -> Vec<ToolAction> {
        Vec::new()
    }

    async fn run(&self, input: TodoInput, context: &ToolContext) -> ToolOutcome {
        let tasks: Vec<PlanTask> = input.tasks.into_iter().map(task).collect();
        check(&tasks)?;
        let [open, at_work, done] = [PlanTaskState::Open, PlanTaskState::InProgress, PlanTaskState::Done]
            .map(|state| tasks.iter().filter(|task| task.state == state).count());
        context.host.set_plan(tasks)?;
        let text = format!("The list is kept: {open} open, {at_work} in progress, {done} done.");
        Ok(ToolOutput { text, ..ToolOutput::default() })
    }
}

fn task(item: TodoItem) -> PlanTask {
    let state = match item.state {
        TodoItemState::Open => PlanTaskState::Open,
        TodoItemState::InProgress => PlanTaskState::InProgress,
        TodoItemState::Done => PlanTaskState::Done,
        TodoItemState::Dropped => PlanTaskState::Dropped,
    };
    PlanTask { text: item.text.trim().to_owned(), state }
}

fn check(tasks: &[PlanTask]) -> Result<(), ToolFailure> {
    if tasks.len() > MAX_TASKS {
        let count = tasks.len();
        return Err(ToolFailure(format!(
            "{count} tasks are too many to follow. Keep at most {MAX_TASKS}: put small ones together."
        )));
    }
    for task in tasks {
        if task.text.is_empty() || task.text.contains('\n') || task.text.chars().count() > MAX_TASK_CHARS {
            return Err(ToolFailure(format!(
                "A task is one line of at most {MAX_TASK_CHARS} characters; this is not: {:?}. The list stays as it was.",
                task.text.chars().take(80).collect::<String>()
            )));
        }
    }
    Ok(())
}
