//! What makes one session different from the others of a process.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use helve_permissions::LayeredRules;
use helve_protocol::{CallId, Cost, ParentCall, PermissionMode, SessionId, TurnLimits};
use helve_workspace::{GitProgram, WorkspaceLimits, WorkspaceRoot};
use tokio_util::sync::CancellationToken;

use crate::recorder::Recorder;

/// The specification of a session: where it works, how freely, for how long, and for whom.
#[derive(Clone, Default)]
pub struct SessionSpec {
    /// The project, absolute.
    pub root: PathBuf,
    /// Folders besides the project in which files may be changed, absolute.
    pub added: Vec<PathBuf>,
    /// How freely it may act when it begins.
    pub mode: PermissionMode,
    /// Where a turn stops by itself.
    pub limits: TurnBudget,
    /// Rules of its own, on top of those of the settings. For a child they can only take rights away.
    pub rules: LayeredRules,
    /// How its files are watched; without it, what calls change is neither kept nor told.
    pub watch: Option<WatchConfig>,
    /// The session that started it, for a child.
    pub parent: Option<ParentSession>,
}

/// The files that are watched, and how.
#[derive(Clone, Debug)]
pub struct WatchConfig {
    /// The project.
    pub root: WorkspaceRoot,
    /// Folders that were added to it.
    pub added: Vec<WorkspaceRoot>,
    pub git: Option<GitProgram>,
    pub limits: WorkspaceLimits,
    /// The folder where it is noted what was last seen, for the case that the program ends suddenly.
    pub notes: Option<PathBuf>,
}

/// Where a turn stops by itself.
#[derive(Clone, Copy, Debug)]
pub struct TurnBudget {
    pub steps: u32,
    pub cost: Option<Cost>,
    pub time: Option<Duration>,
}

impl Default for TurnBudget {
    fn default() -> TurnBudget {
        TurnBudget { steps: 50, cost: None, time: None }
    }
}

impl TurnBudget {
    /// The budget as it is written down when a turn starts.
    pub(crate) fn to_turn_limits(self) -> TurnLimits {
        let time_ms = self.time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        TurnLimits { steps: Some(self.steps), cost: self.cost, time_ms }
    }
}

/// A running session as its children know it: whose rights bound theirs, whose files they share, and whose interrupt ends them.
#[derive(Clone)]
pub struct ParentSession {
    pub(crate) record: Recorder,
    pub(crate) spec: Arc<SessionSpec>,
    /// The call of the parent that the child works for.
    pub(crate) call: CallId,
    /// Cancelled with the turn that the child was started in.
    pub(crate) stop: CancellationToken,
}

impl ParentSession {
    /// The parent as a child's first event names it.
    pub(crate) fn to_parent_call(&self) -> ParentCall {
        ParentCall { session: self.record.session(), call: self.call }
    }
}

impl SessionSpec {
    /// The session at the top: it and all that work for it, directly or not, are one family.
    pub(crate) fn family(&self, own: SessionId) -> SessionId {
        match &self.parent {
            Some(parent) => parent.spec.family(parent.record.session()),
            None => own,
        }
    }
}
