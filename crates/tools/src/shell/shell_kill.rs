//! `shell_kill`

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use helve_protocol::{ToolAction, ToolClass};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::shell::jobs::BackgroundJobs;
use crate::shell::shell_output::report;
use crate::{ToolContext, ToolOutcome, TypedTool};

/// Ends jobs.
#[derive(Clone, Debug, Default)]
pub struct ShellKillTool {
    pub jobs: Arc<BackgroundJobs>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShellKillInput {
    job: u32,
}

/// Longer than the keeper takes at most.
const JOB_END_TIMEOUT: Duration = Duration::from_secs(15);

impl TypedTool for ShellKillTool {
    const NAME: &'static str = "shell_kill";
    const DESCRIPTION: &'static str = include_str!("shell_kill.md");
    const CLASS: ToolClass = ToolClass::Changes;
    type Input = ShellKillInput;

    fn intent(&self, input: &ShellKillInput) -> String {
        format!("end job {}", input.job)
    }

    fn actions(&self, _: &ShellKillInput, _: &Path) -> Vec<ToolAction> {
        Vec::new()
    }

    async fn run(&self, input: ShellKillInput, context: &ToolContext) -> ToolOutcome {
        let job = self.jobs.find(input.job)?;
        job.stop().await;
        job.wait_until_ended(JOB_END_TIMEOUT).await;
        Ok(report(&job, context))
    }
}
