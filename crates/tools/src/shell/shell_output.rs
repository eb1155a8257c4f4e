//! `shell_output`

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use helve_protocol::{Action, ToolClass, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::shell::ending;
use crate::shell::jobs::{Job, Jobs};
use crate::shell::kept::{Shown, shown};
use crate::{Context, Done, TypedTool};

/// Tells what jobs say.
#[derive(Clone, Debug, Default)]
pub struct ShellOutput {
    pub jobs: Arc<Jobs>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Its number; all jobs are listed if left out.
    #[serde(default)]
    job: Option<u32>,
    /// How many seconds to wait until it says something new or ends.
    #[serde(default)]
    wait: Option<u32>,
}

const LONGEST: u32 = 600;
const LETTERS_OF_COMMAND: usize = 100;

impl TypedTool for ShellOutput {
    const NAME: &'static str = "shell_output";
    const DESCRIPTION: &'static str = include_str!("shell_output.md");
    const CLASS: ToolClass = ToolClass::Reads;
    const POLLS: bool = true;
    type Input = Input;

    fn intent(&self, input: &Input) -> String {
        match input.job {
            Some(job) => format!("look at job {job}"),
            None => "list the jobs".to_owned(),
        }
    }

    fn actions(&self, _: &Input, _: &Path) -> Vec<Action> {
        Vec::new()
    }

    async fn run(&self, input: Input, context: &Context) -> Done {
        let Some(number) = input.job else {
            return Ok(ToolOutput { text: list(&self.jobs.all()), ..ToolOutput::default() });
        };
        let job = self.jobs.find(number)?;
        let seconds = input.wait.unwrap_or(0).min(LONGEST);
        job.wait_for_news(Duration::from_secs(seconds.into())).await;
        Ok(report(&job, context))
    }
}

fn list(jobs: &[Arc<Job>]) -> String {
    if jobs.is_empty() {
        return "[no jobs]".to_owned();
    }
    let line = |job: &Arc<Job>| {
        let news = if job.has_news() { ", new output" } else { "" };
        let command: String = job.command.chars().take(LETTERS_OF_COMMAND).collect();
        format!("[job {}: {}{news}] {}", job.number, state(job), command.replace('\n', " "))
    };
    jobs.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn state(job: &Job) -> String {
    job.ended().map_or_else(|| "running".to_owned(), ending::words)
}

/// What is new of a job, and how it stands.
pub(crate) fn report(job: &Job, context: &Context) -> ToolOutput {
    // First: what it says between the two is told next time.
    let state = state(job);
    let Shown { text, whole } = shown(job.take_news(), &*context.blobs);
    let text = format!("{}[job {}: {state}]", ending::lines(text), job.number);
    let display = Some(format!("job {}: {state}", job.number));
    ToolOutput { text, display, whole, ..ToolOutput::default() }
}
