//! The watched workspaces, which a session shares with those that it starts.
//!
//! A session and its children are one family: what one of them changes in a file was changed by the agent, not by somebody else. What
//! somebody else changed is told to each of them once.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use helve_protocol::{BlobStore, Clock, SessionId, Timestamp};
use helve_tools::{SharedWorkspace, WorkspaceGuard};
use helve_workspace::{PathEffect, Workspace, WorkspaceError, WorkspaceRoot, WorkspaceSetup};
use tokio::sync::oneshot;

use crate::call_effects::LockedWorkspaces;
use crate::spec::WatchConfig;

/// So many files are kept at a time while nobody waits for it.
const SNAPSHOT_BATCH_FILES: usize = 128;
/// So long nobody keeps anything, so that others come between.
const SNAPSHOT_PAUSE: Duration = Duration::from_millis(1);
/// Within so many milliseconds after a scan, what others changed can wait for the next one.
const RESCAN_INTERVAL_MS: u64 = 1_000;
/// So many changes of others wait for one session. Of more, the oldest are only counted.
const MAX_INBOX_CHANGES: usize = 10_000;

/// The workspaces that this process watches, by the sessions at the top of their families.
#[derive(Default)]
pub struct WorkspaceRegistry(Mutex<HashMap<SessionId, Weak<FamilyWorkspaces>>>);

impl WorkspaceRegistry {
    /// The workspaces of a family. The first of its sessions opens them, with its blobs; the others join.
    pub(crate) fn open(
        &self,
        family: SessionId,
        config: &WatchConfig,
        blobs: Arc<dyn BlobStore>,
        clock: &Arc<dyn Clock>,
    ) -> Arc<FamilyWorkspaces> {
        let mut open = lock(&self.0);
        open.retain(|_, workspaces| workspaces.strong_count() > 0);
        if let Some(workspaces) = open.get(&family).and_then(Weak::upgrade) {
            return workspaces;
        }
        let workspaces = Arc::new(FamilyWorkspaces::open(&family.to_string(), config, &blobs, clock));
        open.insert(family, Arc::downgrade(&workspaces));
        workspaces
    }
}

/// The project and the folders that were added to it, as one family of sessions watches them.
pub(crate) struct FamilyWorkspaces {
    workspaces: Vec<SharedWorkspace>,
    /// Where they are. Whoever asks for that need not wait until somebody has looked into them.
    folders: Vec<PathBuf>,
    clock: Arc<dyn Clock>,
    /// When it was last asked what others changed; none before the first scan.
    scanned: Mutex<Option<Timestamp>>,
    /// Others had time before this process came: the first request waits for what they did.
    must_wait: AtomicBool,
    inboxes: Mutex<HashMap<SessionId, OutsideInbox>>,
}

/// What others changed and one session does not know yet.
#[derive(Default)]
pub(crate) struct OutsideInbox {
    /// To be told to the model, with the number of the workspace.
    pub(crate) untold: Vec<(usize, PathEffect)>,
    /// How many more there were.
    pub(crate) forgotten: usize,
    /// To be written down.
    pub(crate) unwritten: Vec<(usize, PathEffect)>,
}

impl FamilyWorkspaces {
    fn open(
        name: &str,
        config: &WatchConfig,
        blobs: &Arc<dyn BlobStore>,
        clock: &Arc<dyn Clock>,
    ) -> FamilyWorkspaces {
        let WatchConfig { root, added, git, limits, notes } = config;
        let open = |(number, root): (usize, &WorkspaceRoot)| {
            let name = if number == 0 { name.to_owned() } else { format!("{name}-{number}") };
            Workspace::new(WorkspaceSetup {
                root: root.clone(),
                blobs: blobs.clone(),
                clock: clock.clone(),
                git: git.clone(),
                limits: *limits,
                notes: notes.as_ref().map(|folder| folder.join(name)),
            })
        };
        let workspaces: Vec<Workspace> = [root].into_iter().chain(added).enumerate().map(open).collect();
        FamilyWorkspaces {
            folders: workspaces.iter().map(|workspace| workspace.root().folder().to_owned()).collect(),
            must_wait: AtomicBool::new(workspaces.iter().any(Workspace::was_seen_before)),
            workspaces: workspaces.into_iter().map(|workspace| Arc::new(Mutex::new(workspace))).collect(),
            clock: clock.clone(),
            scanned: Mutex::new(None),
            inboxes: Mutex::default(),
        }
    }

    /// From here on a session is told what others change.
    pub(crate) fn join(&self, session: SessionId) {
        lock(&self.inboxes).entry(session).or_default();
    }

    pub(crate) fn leave(&self, session: SessionId) {
        lock(&self.inboxes).remove(&session);
    }

    pub(crate) fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    pub(crate) fn guard(&self) -> WorkspaceGuard {
        WorkspaceGuard::new(self.workspaces.clone())
    }

    /// Scans for the first time, in the background.
    pub(crate) fn start_first_scan(&self) {
        let mut scanned = lock(&self.scanned);
        if scanned.is_some() {
            return;
        }
        *scanned = Some(self.clock.now());
        let workspaces: Vec<Weak<_>> = self.workspaces.iter().map(Arc::downgrade).collect();
        if let Err(error) = thread::Builder::new()
            .name("first scan".to_owned())
            .spawn(move || workspaces.iter().for_each(scan_and_snapshot))
        {
            tracing::warn!(name: "workspace.no_thread", %error);
        }
    }

    /// Whether it is time to scan again. Says so once: whoever is told has to scan.
    pub(crate) fn is_scan_due(&self) -> bool {
        let mut scanned = lock(&self.scanned);
        let now = self.clock.now();
        // While the first scan is not done, there is nothing to compare with.
        let is_busy = self.workspaces.iter().any(|shared| shared.try_lock().is_err());
        let is_fresh = scanned.is_some_and(|scanned| now.millis_since(scanned) < RESCAN_INTERVAL_MS);
        if !self.must_wait.swap(false, Ordering::Relaxed) && (is_busy || is_fresh) {
            return false;
        }
        *scanned = Some(now);
        true
    }

    /// Works on the workspaces where that may take its time.
    pub(crate) async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut LockedWorkspaces<'_>) -> Result<T, WorkspaceError> + Send + 'static,
    ) -> Result<T, WorkspaceError> {
        let workspaces = self.workspaces.clone();
        let (sender, done) = oneshot::channel();
        // A thread of its own: a program that ends does not wait for it.
        let thread = thread::Builder::new().name("scan".to_owned()).spawn(move || {
            let done = work(&mut workspaces.iter().map(|shared| lock(shared)).collect());
            let _ = sender.send(done);
        });
        if let Err(error) = thread {
            return Err(WorkspaceError::Broken(error.to_string()));
        }
        done.await.unwrap_or_else(|_| Err(WorkspaceError::Broken("it panicked".to_owned())))
    }

    /// The workspaces, for work that is short.
    pub(crate) fn lock_all(&self) -> LockedWorkspaces<'_> {
        self.workspaces.iter().map(|shared| lock(shared)).collect()
    }

    /// Hands what others changed to all sessions of the family, and takes what one of them was not told yet.
    pub(crate) fn take_inbox(
        &self,
        session: SessionId,
        workspaces: &mut LockedWorkspaces<'_>,
        part: InboxPart,
    ) -> OutsideInbox {
        let mut inboxes = lock(&self.inboxes);
        for (number, workspace) in workspaces.iter_mut().enumerate() {
            let changes = workspace.take_outside_changes();
            let unwritten = workspace.take_outside_effects();
            for inbox in inboxes.values_mut() {
                inbox.untold.extend(changes.effects.iter().map(|effect| (number, effect.clone())));
                inbox.unwritten.extend(unwritten.iter().map(|effect| (number, effect.clone())));
                let surplus = inbox.untold.len().saturating_sub(MAX_INBOX_CHANGES);
                inbox.untold.drain(..surplus);
                inbox.forgotten += changes.forgotten + surplus;
            }
        }
        let Some(inbox) = inboxes.get_mut(&session) else { return OutsideInbox::default() };
        match part {
            InboxPart::All => std::mem::take(inbox),
            InboxPart::Unwritten => {
                OutsideInbox { unwritten: std::mem::take(&mut inbox.unwritten), ..OutsideInbox::default() }
            }
        }
    }
}

/// What is taken out of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InboxPart {
    All,
    /// Only what has to be written down: the model is told the rest before its next request.
    Unwritten,
}

/// Sees all files, and then keeps those that are nowhere else, a few at a time: whoever is in a hurry comes between.
fn scan_and_snapshot(workspace: &Weak<Mutex<Workspace>>) {
    let step = |step: fn(&mut Workspace) -> Result<bool, WorkspaceError>| {
        let workspace = workspace.upgrade()?;
        let done = step(&mut lock(&workspace));
        done.inspect_err(|error| tracing::warn!(name: "workspace.not_kept", %error)).ok()
    };
    let mut go_on = step(|workspace| workspace.refresh().map(|()| true));
    while go_on == Some(true) {
        // A lock that is taken again at once is never given to those who wait for it.
        thread::sleep(SNAPSHOT_PAUSE);
        go_on = step(|workspace| workspace.keep_some(SNAPSHOT_BATCH_FILES));
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
