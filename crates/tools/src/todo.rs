//! `todo`

use helve_protocol::{Action, Task, TaskState, ToolClass, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::Path;

use crate::{Context, Done, ToolFailure, TypedTool};

/// Keeps the list of what is to be done, which the user watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Todo;

const MAX_TASKS: usize = 50;
const MAX_CHARS: usize = 300;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The whole list, in its order. It replaces the one before.
    tasks: Vec<Item>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Item {
    text: String,
    state: State,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum State {
    Open,
    InProgress,
    Done,
    Dropped,
}

impl TypedTool for Todo {
    const NAME: &'static str = "todo";
    const DESCRIPTION: &'static str = include_str!("todo.md");
    const CLASS: ToolClass = ToolClass::Reads;
    type Input = Input;

    fn intent(&self, input: &Input) -> String {
        format!("keep a list of {} tasks", input.tasks.len())
    }

    fn actions(&self, _: &Input, _: &Path) -> Vec<Action> {
        Vec::new()
    }

    async fn run(&self, input: Input, context: &Context) -> Done {
        let tasks: Vec<Task> = input.tasks.into_iter().map(task).collect();
        check(&tasks)?;
        let [open, at_work, done] = [TaskState::Open, TaskState::InProgress, TaskState::Done]
            .map(|state| tasks.iter().filter(|task| task.state == state).count());
        context.host.set_plan(tasks)?;
        let text = format!("The list is kept: {open} open, {at_work} in progress, {done} done.");
        Ok(ToolOutput { text, ..ToolOutput::default() })
    }
}

fn task(item: Item) -> Task {
    let state = match item.state {
        State::Open => TaskState::Open,
        State::InProgress => TaskState::InProgress,
        State::Done => TaskState::Done,
        State::Dropped => TaskState::Dropped,
    };
    Task { text: item.text.trim().to_owned(), state }
}

fn check(tasks: &[Task]) -> Result<(), ToolFailure> {
    if tasks.len() > MAX_TASKS {
        let count = tasks.len();
        return Err(ToolFailure(format!(
            "{count} tasks are too many to follow. Keep at most {MAX_TASKS}: put small ones together."
        )));
    }
    for task in tasks {
        if task.text.is_empty() || task.text.contains('\n') || task.text.chars().count() > MAX_CHARS {
            return Err(ToolFailure(format!(
                "A task is one line of at most {MAX_CHARS} characters; this is not: {:?}. The list stays as it was.",
                task.text.chars().take(80).collect::<String>()
            )));
        }
    }
    Ok(())
}
