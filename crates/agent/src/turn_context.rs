//! What a turn works with.

use std::sync::Arc;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::change_watcher::ChangeWatcher;
use crate::judge::JudgedSession;
use crate::recorder::Recorder;
use crate::services::Services;
use crate::spec::SessionSpec;
use crate::tool_runner::ToolRunner;
use crate::tool_set::ToolSet;

/// The collaborators of a turn, passed to whoever needs them.
#[derive(Clone, Copy)]
pub(crate) struct TurnContext<'a> {
    pub(crate) record: &'a Recorder,
    pub(crate) services: &'a Services,
    pub(crate) spec: &'a SessionSpec,
    pub(crate) tools: &'a ToolSet,
    pub(crate) watcher: &'a dyn ChangeWatcher,
    pub(crate) runner: &'a Arc<dyn ToolRunner>,
    pub(crate) stop: &'a CancellationToken,
    /// Told when a person does not want to wait for what runs.
    pub(crate) background: &'a Arc<Notify>,
}

impl<'a> TurnContext<'a> {
    /// The session as those who judge its calls see it.
    pub(crate) fn judged(&self) -> JudgedSession<'a> {
        JudgedSession { record: self.record, spec: self.spec }
    }
}
