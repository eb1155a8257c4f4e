//! `shell_input`

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use helve_exec::CommandInputError;
use helve_protocol::{ToolAction, ToolClass};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::shell::jobs::{BackgroundJob, BackgroundJobs};
use crate::shell::shell_output::report;
use crate::{ToolContext, ToolFailure, ToolOutcome, TypedTool};

/// Types into jobs.
#[derive(Clone, Debug, Default)]
pub struct ShellInputTool {
    pub jobs: Arc<BackgroundJobs>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShellInputInput {
    job: u32,
    #[serde(default)]
    text: String,
    /// Then a key; on a terminal only.
    #[serde(default)]
    key: Option<JobInputKey>,
    /// Then Enter.
    #[serde(default)]
    enter: bool,
    /// Then the end of the input.
    #[serde(default)]
    end: bool,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum JobInputKey {
    CtrlC,
    CtrlD,
    CtrlZ,
    Escape,
    Tab,
    Backspace,
    Up,
    Down,
    Left,
    Right,
}

/// How long it has to say something to it.
const INPUT_REACTION_TIMEOUT: Duration = Duration::from_secs(1);

impl TypedTool for ShellInputTool {
    const NAME: &'static str = "shell_input";
    const DESCRIPTION: &'static str = include_str!("shell_input.md");
    const CLASS: ToolClass = ToolClass::Changes;
    type Input = ShellInputInput;

    fn intent(&self, input: &ShellInputInput) -> String {
        let key = input.key.map(|key| format!(" {key:?}")).unwrap_or_default();
        format!("type into job {}: {}{key}", input.job, input.text)
    }

    fn actions(&self, input: &ShellInputInput, _: &Path) -> Vec<ToolAction> {
        let is_confined = self.jobs.find(input.job).is_ok_and(|job| job.is_confined);
        vec![ToolAction::Other { what: self.intent(input), is_confined }]
    }

    async fn run(&self, input: ShellInputInput, context: &ToolContext) -> ToolOutcome {
        let job = self.jobs.find(input.job)?;
        let bytes = typed(&input, &job)?;
        if !bytes.is_empty() {
            job.write(bytes).await.map_err(|error| refused(&job, error))?;
        }
        if input.end {
            job.end_input().await;
        }
        job.settle(INPUT_REACTION_TIMEOUT).await;
        Ok(report(&job, context))
    }
}

fn typed(input: &ShellInputInput, job: &BackgroundJob) -> Result<Vec<u8>, ToolFailure> {
    let mut bytes = input.text.clone().into_bytes();
    if let Some(key) = input.key {
        if !job.has_terminal {
            return Err(ToolFailure(format!(
                "Job {} has no terminal, so it has no keys. Use `end` or shell_kill, or start it with `terminal`.",
                job.number
            )));
        }
        bytes.extend_from_slice(key.bytes());
    }
    if input.enter {
        bytes.push(if job.has_terminal { b'\r' } else { b'\n' });
    }
    Ok(bytes)
}

impl JobInputKey {
    fn bytes(self) -> &'static [u8] {
        match self {
            JobInputKey::CtrlC => b"\x03",
            JobInputKey::CtrlD => b"\x04",
            JobInputKey::CtrlZ => b"\x1a",
            JobInputKey::Escape => b"\x1b",
            JobInputKey::Tab => b"\t",
            JobInputKey::Backspace => b"\x7f",
            JobInputKey::Up => b"\x1b[A",
            JobInputKey::Down => b"\x1b[B",
            JobInputKey::Right => b"\x1b[C",
            JobInputKey::Left => b"\x1b[D",
        }
    }
}

fn refused(job: &BackgroundJob, error: CommandInputError) -> ToolFailure {
    let next = match error {
        CommandInputError::Closed => "Look at it with shell_output.",
        CommandInputError::Full => "Wait until it reads, with shell_output.",
    };
    ToolFailure(format!("Job {} can't be typed to: {error}. {next}", job.number))
}
