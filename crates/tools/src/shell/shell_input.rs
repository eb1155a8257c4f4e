//! `shell_input`

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use helve_exec::InputError;
use helve_protocol::{Action, ToolClass};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::shell::jobs::{Job, Jobs};
use crate::shell::shell_output::report;
use crate::{Context, Done, ToolFailure, TypedTool};

/// Types into jobs.
#[derive(Clone, Debug, Default)]
pub struct ShellInput {
    pub jobs: Arc<Jobs>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    job: u32,
    #[serde(default)]
    text: String,
    /// Then a key; on a terminal only.
    #[serde(default)]
    key: Option<Key>,
    /// Then Enter.
    #[serde(default)]
    enter: bool,
    /// Then the end of the input.
    #[serde(default)]
    end: bool,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Key {
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
const REACTION: Duration = Duration::from_secs(1);

impl TypedTool for ShellInput {
    const NAME: &'static str = "shell_input";
    const DESCRIPTION: &'static str = include_str!("shell_input.md");
    const CLASS: ToolClass = ToolClass::Changes;
    type Input = Input;

    fn intent(&self, input: &Input) -> String {
        let key = input.key.map(|key| format!(" {key:?}")).unwrap_or_default();
        format!("type into job {}: {}{key}", input.job, input.text)
    }

    fn actions(&self, input: &Input, _: &Path) -> Vec<Action> {
        let is_confined = self.jobs.find(input.job).is_ok_and(|job| job.is_confined);
        vec![Action::Other { what: self.intent(input), is_confined }]
    }

    async fn run(&self, input: Input, context: &Context) -> Done {
        let job = self.jobs.find(input.job)?;
        let bytes = typed(&input, &job)?;
        if !bytes.is_empty() {
            job.write(bytes).await.map_err(|error| refused(&job, error))?;
        }
        if input.end {
            job.end_input().await;
        }
        job.settle(REACTION).await;
        Ok(report(&job, context))
    }
}

fn typed(input: &Input, job: &Job) -> Result<Vec<u8>, ToolFailure> {
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

impl Key {
    fn bytes(self) -> &'static [u8] {
        match self {
            Key::CtrlC => b"\x03",
            Key::CtrlD => b"\x04",
            Key::CtrlZ => b"\x1a",
            Key::Escape => b"\x1b",
            Key::Tab => b"\t",
            Key::Backspace => b"\x7f",
            Key::Up => b"\x1b[A",
            Key::Down => b"\x1b[B",
            Key::Right => b"\x1b[C",
            Key::Left => b"\x1b[D",
        }
    }
}

fn refused(job: &Job, error: InputError) -> ToolFailure {
    let next = match error {
        InputError::Closed => "Look at it with shell_output.",
        InputError::Full => "Wait until it reads, with shell_output.",
    };
    ToolFailure(format!("Job {} can't be typed to: {error}. {next}", job.number))
}
