//! `shell_output`

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use helve_protocol::{ToolAction, ToolClass, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::shell::bounded_output::{ShownOutput, cut_middle};
use crate::shell::end_text;
use crate::shell::jobs::{BackgroundJob, BackgroundJobs};
use crate::{ToolContext, ToolOutcome, TypedTool};

/// Tells what jobs say.
#[derive(Clone, Debug, Default)]
pub struct ShellOutputTool {
    pub jobs: Arc<BackgroundJobs>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShellOutputInput {
    /// Its number; all jobs are listed if left out.
    #[serde(default)]
    job: Option<u32>,
    /// How many seconds to wait until it says something new or ends.
    #[serde(default)]
    wait: Option<u32>,
}

const MAX_JOB_WAIT_SECONDS: u32 = 600;
const MAX_LISTED_COMMAND_CHARS: usize = 100;

impl TypedTool for ShellOutputTool {
    const NAME: &'static str = "shell_output";
    const DESCRIPTION: &'static str = include_str!("shell_output.md");
    const CLASS: ToolClass = ToolClass::Reads;
    const POLLS: bool = true;
    type Input = ShellOutputInput;

    fn intent(&self, input: &ShellOutputInput) -> String {
        match input.job {
            Some(job) => format!("look at job {job}"),
            None => "list the jobs".to_owned(),
        }
    }

    fn actions(&self, _: &ShellOutputInput, _: &Path) -> Vec<ToolAction> {
        Vec::new()
    }

    async fn run(&self, input: ShellOutputInput, context: &ToolContext) -> ToolOutcome {
        let Some(number) = input.job else {
            return Ok(ToolOutput { text: list(&self.jobs.all()), ..ToolOutput::default() });
        };
        let job = self.jobs.find(number)?;
        let seconds = input.wait.unwrap_or(0).min(MAX_JOB_WAIT_SECONDS);
        job.wait_for_news(Duration::from_secs(seconds.into())).await;
        Ok(report(&job, context))
    }
}

fn list(jobs: &[Arc<BackgroundJob>]) -> String {
    if jobs.is_empty() {
        return "[no jobs]".to_owned();
    }
    let line = |job: &Arc<BackgroundJob>| {
        let news = if job.has_news() { ", new output" } else { "" };
        let command: String = job.command.chars().take(MAX_LISTED_COMMAND_CHARS).collect();
        format!("[job {}: {}{news}] {}", job.number, state(job), command.replace('\n', " "))
    };
    jobs.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn state(job: &BackgroundJob) -> String {
    job.ended().map_or_else(|| "running".to_owned(), end_text::describe_end)
}

/// What is new of a job, and how it stands.
pub(crate) fn report(job: &BackgroundJob, context: &ToolContext) -> ToolOutput {
    // First: what it says between the two is told next time.
    let state = state(job);
    let ShownOutput { text, whole } = cut_middle(job.take_news(), &*context.blobs);
    let text = format!("{}[job {}: {state}]", end_text::lines(text), job.number);
    let display = Some(format!("job {}: {state}", job.number));
    ToolOutput { text, display, whole, ..ToolOutput::default() }
}
