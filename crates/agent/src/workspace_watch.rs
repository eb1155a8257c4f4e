//! A session's watch over the workspaces of its family.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use helve_protocol::{CallId, EventBody, SessionId};
use helve_tools::{ChangeScope, HiddenPathTest, WorkspaceGuard};
use helve_workspace::{ChangeWatch, PathEffect, WorkspaceEffects, WorkspaceError};
use tokio_util::sync::CancellationToken;

use crate::boxed_future::BoxFuture;
use crate::call_effects::{LockedWorkspaces, NumberedEffects, describe_effects, to_call_effects};
use crate::change_watcher::{CallEffects, CallWatcher, ChangeWatcher, OutsideChanges, WatchError};
use crate::context::notes;
use crate::family_workspaces::{FamilyWorkspaces, InboxPart};

/// Watches the files of the project for one session.
pub(crate) struct WorkspaceWatch {
    family: Arc<FamilyWorkspaces>,
    session: SessionId,
    /// The model has not been told yet which folders there are.
    must_introduce: AtomicBool,
    /// Nor that another process goes on.
    is_resumed: AtomicBool,
}

impl WorkspaceWatch {
    pub(crate) fn new(family: Arc<FamilyWorkspaces>, session: SessionId) -> WorkspaceWatch {
        family.join(session);
        let must_introduce = AtomicBool::new(family.folders().len() > 1);
        WorkspaceWatch { family, session, must_introduce, is_resumed: AtomicBool::new(false) }
    }

    async fn begin_watch(
        &self,
        scope: ChangeScope,
        stop: &CancellationToken,
    ) -> Result<CallWatcher, WatchError> {
        if scope != ChangeScope::Anything {
            return Ok(CallWatcher::SelfReported);
        }
        let begin = |workspaces: &mut LockedWorkspaces<'_>| {
            workspaces.iter_mut().map(|workspace| workspace.begin()).collect()
        };
        let begun = tokio::select! {
            biased;
            () = stop.cancelled() => return Err(WatchError::Interrupted),
            begun = self.family.with(begin) => begun,
        };
        match begun {
            Ok(watches) => Ok(CallWatcher::Workspaces(watches)),
            Err(error @ WorkspaceError::Blobs(_)) => Err(WatchError::Refused(format!(
                "Nothing was run: what it could change can't be kept. {error}. {}",
                error.hint()
            ))),
            Err(error) => Ok(CallWatcher::Unwatched(format!("{error}. {}", error.hint()))),
        }
    }

    async fn end_watch(&self, call: CallId, watcher: CallWatcher, guard: &WorkspaceGuard) -> CallEffects {
        let mut effects = guard.effects();
        let mut words = None;
        match watcher {
            CallWatcher::SelfReported => {}
            CallWatcher::Unwatched(why) => {
                words = Some(format!("[which files it changed is not known: {why}]"));
            }
            CallWatcher::Workspaces(watches) => {
                match self.family.with(move |workspaces| end_all(workspaces, watches)).await {
                    Ok(done) => {
                        words = describe_effects(&done, self.family.folders());
                        effects.extend(done);
                    }
                    Err(error) => words = Some(format!("[which files it changed is not known: {error}]")),
                }
            }
        }
        CallEffects { words, ..self.call_effects(call, effects).await }
    }

    /// What a call did, after what others did before it.
    async fn call_effects(&self, call: CallId, effects: Vec<NumberedEffects>) -> CallEffects {
        let is_nothing =
            |(_, done): &NumberedEffects| done.changes.is_empty() && done.not_recoverable.is_empty();
        if effects.iter().all(is_nothing) {
            return CallEffects::default();
        }
        let (family, session) = (self.family.clone(), self.session);
        let told = self.family.with(move |workspaces| {
            let inbox = family.take_inbox(session, workspaces, InboxPart::Unwritten);
            let mut events = outside_events(workspaces, inbox.unwritten);
            let told = to_call_effects(workspaces, Some(call), &effects);
            events.extend(told.events);
            Ok(CallEffects { events, ..told })
        });
        told.await.unwrap_or_default()
    }

    async fn scan_outside(&self, stop: &CancellationToken, hides: HiddenPathTest) -> OutsideChanges {
        if !self.family.is_scan_due() {
            return OutsideChanges::default();
        }
        let scan = self
            .family
            .with(|workspaces| workspaces.iter_mut().try_for_each(|workspace| workspace.refresh()));
        // Whoever does not wait for the scan loses nothing of what it finds: it is told the next time.
        let scanned = tokio::select! {
            biased;
            () = stop.cancelled() => return OutsideChanges::default(),
            scanned = scan => scanned,
        };
        if let Err(error) = scanned {
            tracing::warn!(name: "workspace.not_seen", %error);
        }
        let (family, session) = (self.family.clone(), self.session);
        let outside = self.family.with(move |workspaces| {
            let inbox = family.take_inbox(session, workspaces, InboxPart::All);
            let text = outside_text(workspaces, inbox.untold, inbox.forgotten, &hides);
            let events = outside_events(workspaces, inbox.unwritten);
            let notes = if text.is_empty() { Vec::new() } else { vec![notes::changed_outside(&text)] };
            Ok(OutsideChanges { events, notes })
        });
        outside.await.unwrap_or_else(|error| {
            tracing::warn!(name: "workspace.not_seen", %error);
            OutsideChanges::default()
        })
    }

    async fn take_outside(&self, stop: &CancellationToken, hides: HiddenPathTest) -> OutsideChanges {
        let mut outside = self.scan_outside(stop, hides).await;
        if self.is_resumed.swap(false, Ordering::Relaxed) {
            outside.notes.insert(0, notes::resumed());
        }
        if self.must_introduce.swap(false, Ordering::Relaxed) {
            outside.notes.insert(0, notes::added_folders(self.family.folders()));
        }
        outside
    }
}

impl Drop for WorkspaceWatch {
    fn drop(&mut self) {
        self.family.leave(self.session);
    }
}

impl ChangeWatcher for WorkspaceWatch {
    fn start(&self) {
        self.family.start_first_scan();
    }

    fn note_resumed(&self) {
        self.is_resumed.store(true, Ordering::Relaxed);
    }

    fn guard(&self) -> WorkspaceGuard {
        self.family.guard()
    }

    fn begin<'a>(
        &'a self,
        scope: ChangeScope,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<CallWatcher, WatchError>> {
        Box::pin(self.begin_watch(scope, stop))
    }

    fn end<'a>(
        &'a self,
        call: CallId,
        watcher: CallWatcher,
        guard: &'a WorkspaceGuard,
    ) -> BoxFuture<'a, CallEffects> {
        Box::pin(self.end_watch(call, watcher, guard))
    }

    fn outside_changes<'a>(
        &'a self,
        stop: &'a CancellationToken,
        hides: HiddenPathTest,
    ) -> BoxFuture<'a, OutsideChanges> {
        Box::pin(self.take_outside(stop, hides))
    }

    fn changes_since_crash(&self, call: CallId) -> CallEffects {
        let mut workspaces = self.family.lock_all();
        let mut all = Vec::new();
        for (number, workspace) in workspaces.iter_mut().enumerate() {
            match workspace.since_last_seen() {
                Ok(effects) => all.extend(effects.map(|effects| (number, effects))),
                Err(error) => tracing::warn!(name: "workspace.unknown_change", %error),
            }
        }
        to_call_effects(&workspaces, Some(call), &all)
    }
}

fn end_all(
    workspaces: &mut LockedWorkspaces<'_>,
    watches: Vec<ChangeWatch>,
) -> Result<Vec<NumberedEffects>, WorkspaceError> {
    let pairs = workspaces.iter_mut().zip(watches).enumerate();
    pairs.map(|(number, (workspace, watch))| Ok((number, workspace.end(watch)?))).collect()
}

/// What others did, as events.
fn outside_events(workspaces: &LockedWorkspaces<'_>, unwritten: Vec<(usize, PathEffect)>) -> Vec<EventBody> {
    let all: Vec<NumberedEffects> = by_workspace(unwritten, workspaces.len())
        .into_iter()
        .map(|(number, changes)| (number, WorkspaceEffects { changes, ..WorkspaceEffects::default() }))
        .collect();
    to_call_effects(workspaces, None, &all).events
}

/// What others did, for the model.
fn outside_text(
    workspaces: &LockedWorkspaces<'_>,
    untold: Vec<(usize, PathEffect)>,
    forgotten: usize,
    hides: &HiddenPathTest,
) -> String {
    let mut text = String::new();
    let mut forgotten = forgotten;
    for (number, changes) in by_workspace(untold, workspaces.len()) {
        let Some(workspace) = workspaces.get(number) else { continue };
        let report = workspace.outside_report(changes, std::mem::take(&mut forgotten), &**hides);
        if number > 0 && !report.changes.is_empty() {
            text.push_str(&format!("In {}:\n", workspace.root().folder().display()));
        }
        text.push_str(&report.to_string());
    }
    text
}

/// Changes by the number of their workspace; one entry for each workspace.
fn by_workspace(changes: Vec<(usize, PathEffect)>, count: usize) -> Vec<(usize, Vec<PathEffect>)> {
    let mut all: Vec<(usize, Vec<PathEffect>)> = (0..count).map(|number| (number, Vec::new())).collect();
    for (number, change) in changes {
        if let Some((_, changes)) = all.get_mut(number) {
            changes.push(change);
        }
    }
    all
}
