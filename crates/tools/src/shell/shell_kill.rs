//! `shell_kill`

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use helve_protocol::{Action, ToolClass};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::shell::jobs::Jobs;
use crate::shell::shell_output::report;
use crate::{Context, Done, TypedTool};

/// Ends jobs.
#[derive(Clone, Debug, Default)]
pub struct ShellKill {
    pub jobs: Arc<Jobs>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    job: u32,
}

/// Longer than the keeper takes at most.
const END: Duration = Duration::from_secs(15);

impl TypedTool for ShellKill {
    const NAME: &'static str = "shell_kill";
    const DESCRIPTION: &'static str = include_str!("shell_kill.md");
    const CLASS: ToolClass = ToolClass::Changes;
    type Input = Input;

    fn intent(&self, input: &Input) -> String {
        format!("end job {}", input.job)
    }

    fn actions(&self, _: &Input, _: &Path) -> Vec<Action> {
        Vec::new()
    }

    async fn run(&self, input: Input, context: &Context) -> Done {
        let job = self.jobs.find(input.job)?;
        job.stop().await;
        job.wait_until_ended(END).await;
        Ok(report(&job, context))
    }
}
