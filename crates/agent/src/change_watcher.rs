//! Who knows what happens to the files of the project: what calls change, and what others change meanwhile.

use helve_protocol::{CallId, EventBody};
use helve_tools::{ChangeScope, HiddenPathTest, WorkspaceGuard};
use helve_workspace::ChangeWatch;
use tokio_util::sync::CancellationToken;

use crate::boxed_future::BoxFuture;
use crate::context::notes::TopicNote;

/// Watches files: a workspace ([`WorkspaceWatch`](crate::workspace_watch::WorkspaceWatch)), or nothing, or a recorded session. Without a
/// method of its own, a watcher knows nothing.
pub(crate) trait ChangeWatcher: Send + Sync {
    /// Scans the files for the first time, while nobody waits for it.
    fn start(&self) {}

    /// Another process had the session before, and the model remembers what it did there.
    fn note_resumed(&self) {}

    /// What a tool that writes files by itself tells its changes to.
    fn guard(&self) -> WorkspaceGuard {
        WorkspaceGuard::default()
    }

    /// Keeps all that a call could change, before it begins.
    fn begin<'a>(
        &'a self,
        scope: ChangeScope,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<CallWatcher, WatchError>> {
        let _ = (scope, stop);
        Box::pin(std::future::ready(Ok(CallWatcher::SelfReported)))
    }

    /// What a call changed.
    fn end<'a>(
        &'a self,
        call: CallId,
        watcher: CallWatcher,
        guard: &'a WorkspaceGuard,
    ) -> BoxFuture<'a, CallEffects> {
        let _ = (call, watcher, guard);
        Box::pin(std::future::ready(CallEffects::default()))
    }

    /// What others changed since this was last asked, and what else the model has to know.
    fn outside_changes<'a>(
        &'a self,
        stop: &'a CancellationToken,
        hides: HiddenPathTest,
    ) -> BoxFuture<'a, OutsideChanges> {
        let _ = (stop, hides);
        Box::pin(std::future::ready(OutsideChanges::default()))
    }

    /// What changed since a call began that nobody saw the end of.
    fn changes_since_crash(&self, call: CallId) -> CallEffects {
        let _ = call;
        CallEffects::default()
    }
}

/// A watcher for sessions whose files nobody watches.
pub(crate) struct NoWatcher;

impl ChangeWatcher for NoWatcher {}

/// How a call is watched.
pub(crate) enum CallWatcher {
    /// It changes nothing, or says itself what it changes.
    SelfReported,
    Workspaces(Vec<ChangeWatch>),
    /// Nobody will know what it changed, for this reason.
    Unwatched(String),
}

/// Why a call can't begin.
pub(crate) enum WatchError {
    /// What it could change can't be kept.
    Refused(String),
    Interrupted,
}

/// What a call did to the files.
#[derive(Default)]
pub(crate) struct CallEffects {
    pub(crate) events: Vec<EventBody>,
    /// The paths.
    pub(crate) changed: Vec<String>,
    /// What the model is told besides the result.
    pub(crate) words: Option<String>,
}

/// What the model has to know of the world outside before the next request.
#[derive(Default)]
pub(crate) struct OutsideChanges {
    pub(crate) events: Vec<EventBody>,
    /// By their topics.
    pub(crate) notes: Vec<TopicNote>,
}
