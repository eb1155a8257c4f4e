//! What happens to the files of the project: what calls change, and what others change meanwhile.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use helve_protocol::{
    BlobStore, CallId, Clock, EventBody, FileChange, FilesChanged, IrreversibleChange, NoteTopic, Timestamp,
};
use helve_tools::{ChangeScope, HiddenPathTest, SharedWorkspace, WorkspaceGuard};
use helve_workspace::{
    ChangeWatch, GitProgram, PathEffect, PathSnapshot, Workspace, WorkspaceEffects, WorkspaceError,
    WorkspaceLimits, WorkspaceRoot, WorkspaceSetup, escape_control_chars,
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::replay::ReplayTape;

/// The topics of the notes about the world outside: what others changed, and which folders there are.
pub(crate) const OUTSIDE_NOTE_TOPICS: [NoteTopic; 3] =
    [NoteTopic::ChangedOutside, NoteTopic::Folders, NoteTopic::Resumed];

const RESUMED_NOTE: &str = "The session goes on in a new process: commands begin in the project's folder again, jobs have \
                               ended, and a file has to be read again before it is replaced.";
/// The diff in one event has about so many bytes at most.
const MAX_EVENT_DIFF_BYTES: usize = 64 << 10;
/// One event has so many changes at most; the rest follows in others.
const MAX_CHANGES_PER_EVENT: usize = 1_000;
/// The model is told the names of so many files that a call changed.
const MAX_CHANGED_FILES_NAMED: usize = 20;
/// So many files are kept at a time while nobody waits for it.
const SNAPSHOT_BATCH_FILES: usize = 128;
/// So long nobody keeps anything, so that others come between.
const SNAPSHOT_PAUSE: Duration = Duration::from_millis(1);
/// Within so many milliseconds after a look, what others changed can wait for the next one.
const RESCAN_INTERVAL_MS: u64 = 1_000;

/// The files that are watched.
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

/// Who knows what happens to the files.
pub(crate) enum ChangeTracker {
    Off,
    Workspace(Box<WorkspaceWatch>),
    /// It is on record.
    Tape(Arc<ReplayTape>),
}

pub(crate) struct WorkspaceWatch {
    /// The project, and the folders that were added to it.
    workspaces: Vec<SharedWorkspace>,
    /// Where they are. Whoever asks for that need not wait until somebody has looked into them.
    folders: Vec<PathBuf>,
    clock: Arc<dyn Clock>,
    /// When it was last asked what others changed; none before the first look.
    looked: Mutex<Option<Timestamp>>,
    /// Others had time before this process came: the first request waits for what they did.
    waits: AtomicBool,
    /// The model has not been told yet which folders there are.
    must_introduce: AtomicBool,
    /// Nor that another process goes on.
    is_resumed: AtomicBool,
}

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
    pub(crate) notes: Vec<(NoteTopic, String)>,
}

impl ChangeTracker {
    pub(crate) fn new(
        watched: Option<&WatchConfig>,
        session: &str,
        blobs: Arc<dyn BlobStore>,
        clock: &Arc<dyn Clock>,
    ) -> ChangeTracker {
        let Some(WatchConfig { root, added, git, limits, notes }) = watched else {
            return ChangeTracker::Off;
        };
        let open = |(number, root): (usize, &WorkspaceRoot)| {
            let name = if number == 0 { session.to_owned() } else { format!("{session}-{number}") };
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
        let waits = AtomicBool::new(workspaces.iter().any(Workspace::was_seen_before));
        ChangeTracker::Workspace(Box::new(WorkspaceWatch {
            folders: workspaces.iter().map(|workspace| workspace.root().folder().to_owned()).collect(),
            must_introduce: AtomicBool::new(workspaces.len() > 1),
            is_resumed: AtomicBool::new(false),
            workspaces: workspaces.into_iter().map(|workspace| Arc::new(Mutex::new(workspace))).collect(),
            clock: clock.clone(),
            looked: Mutex::new(None),
            waits,
        }))
    }

    /// Looks around for the first time, while nobody waits for it.
    pub(crate) fn start(&self) {
        let ChangeTracker::Workspace(eyes) = self else { return };
        let mut looked = lock(&eyes.looked);
        if looked.is_some() {
            return;
        }
        *looked = Some(eyes.clock.now());
        let workspaces: Vec<Weak<_>> = eyes.workspaces.iter().map(Arc::downgrade).collect();
        if let Err(error) = thread::Builder::new()
            .name("first look".to_owned())
            .spawn(move || workspaces.iter().for_each(scan_and_snapshot))
        {
            tracing::warn!(name: "workspace.no_thread", %error);
        }
    }

    /// Another process had the session before, and the model remembers what it did there.
    pub(crate) fn resume(&self) {
        if let ChangeTracker::Workspace(eyes) = self {
            eyes.is_resumed.store(true, Ordering::Relaxed);
        }
    }

    /// The ground of a call.
    pub(crate) fn ground(&self) -> WorkspaceGuard {
        match self {
            ChangeTracker::Workspace(eyes) => WorkspaceGuard::new(eyes.workspaces.clone()),
            ChangeTracker::Off | ChangeTracker::Tape(_) => WorkspaceGuard::default(),
        }
    }

    /// Keeps all that a call could change, before it begins.
    pub(crate) async fn begin(
        &self,
        touches: ChangeScope,
        stop: &CancellationToken,
    ) -> Result<CallWatcher, WatchError> {
        let ChangeTracker::Workspace(eyes) = self else { return Ok(CallWatcher::SelfReported) };
        if touches != ChangeScope::Anything {
            return Ok(CallWatcher::SelfReported);
        }
        let begun = tokio::select! {
            biased;
            () = stop.cancelled() => return Err(WatchError::Interrupted),
            begun = eyes.with(|workspaces| workspaces.iter_mut().map(|workspace| workspace.begin()).collect()) => begun,
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

    /// What a call changed.
    pub(crate) async fn end(
        &self,
        call: CallId,
        watcher: CallWatcher,
        ground: &WorkspaceGuard,
    ) -> CallEffects {
        let mut effects = ground.effects();
        let ChangeTracker::Workspace(eyes) = self else { return CallEffects::default() };
        let mut words = None;
        match watcher {
            CallWatcher::SelfReported => {}
            CallWatcher::Unwatched(why) => {
                words = Some(format!("[which files it changed is not known: {why}]"))
            }
            CallWatcher::Workspaces(watches) => {
                match eyes.with(move |workspaces| end_all(workspaces, watches)).await {
                    Ok(done) => {
                        words = eyes.words(&done);
                        effects.extend(done);
                    }
                    Err(error) => words = Some(format!("[which files it changed is not known: {error}]")),
                }
            }
        }
        CallEffects { words, ..eyes.told(call, effects).await }
    }

    /// What others changed since this was last asked, and what else the model has to know.
    pub(crate) async fn outside(&self, stop: &CancellationToken, hides: HiddenPathTest) -> OutsideChanges {
        match self {
            ChangeTracker::Off => OutsideChanges::default(),
            ChangeTracker::Tape(tape) => {
                OutsideChanges { notes: tape.outside(), ..OutsideChanges::default() }
            }
            ChangeTracker::Workspace(eyes) => {
                let mut outlook = eyes.outside(stop, hides).await;
                if eyes.is_resumed.swap(false, Ordering::Relaxed) {
                    outlook.notes.insert(0, (NoteTopic::Resumed, RESUMED_NOTE.to_owned()));
                }
                if eyes.must_introduce.swap(false, Ordering::Relaxed) {
                    outlook.notes.insert(0, (NoteTopic::Folders, eyes.introduction()));
                }
                outlook
            }
        }
    }

    /// What changed since a call began that nobody saw the end of.
    pub(crate) fn changes_since_crash(&self, call: CallId) -> CallEffects {
        let ChangeTracker::Workspace(eyes) = self else { return CallEffects::default() };
        let mut workspaces: LockedWorkspaces<'_> =
            eyes.workspaces.iter().map(|shared| lock(shared)).collect();
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

impl WorkspaceWatch {
    /// Works on the workspaces where that may take its time.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut LockedWorkspaces<'_>) -> Result<T, WorkspaceError> + Send + 'static,
    ) -> Result<T, WorkspaceError> {
        let workspaces = self.workspaces.clone();
        let (sender, done) = oneshot::channel();
        // A thread of its own: a program that ends does not wait for it.
        let thread = thread::Builder::new().name("look".to_owned()).spawn(move || {
            let done = work(&mut workspaces.iter().map(|shared| lock(shared)).collect());
            let _ = sender.send(done);
        });
        if let Err(error) = thread {
            return Err(WorkspaceError::Broken(error.to_string()));
        }
        done.await.unwrap_or_else(|_| Err(WorkspaceError::Broken("it panicked".to_owned())))
    }

    /// What a call did, after what others did before it.
    async fn told(&self, call: CallId, effects: Vec<NumberedEffects>) -> CallEffects {
        let is_nothing =
            |(_, done): &NumberedEffects| done.changes.is_empty() && done.not_recoverable.is_empty();
        if effects.iter().all(is_nothing) {
            return CallEffects::default();
        }
        let told = self.with(move |workspaces| {
            let mut events = outside_change_events(workspaces);
            let told = to_call_effects(workspaces, Some(call), &effects);
            events.extend(told.events);
            Ok(CallEffects { events, ..told })
        });
        told.await.unwrap_or_default()
    }

    /// What the model is told besides a result: which files changed, what of that can't be undone, and where nobody could look.
    fn words(&self, all: &[NumberedEffects]) -> Option<String> {
        let name = |number: usize, path: &str| match self.folders.get(number).filter(|_| number > 0) {
            Some(folder) => escape_control_chars(&folder.join(path).to_string_lossy()),
            None => escape_control_chars(path),
        };
        let (mut changed, mut lost, mut unseen) = (Vec::new(), Vec::new(), Vec::new());
        for (number, effects) in all {
            changed
                .extend(effects.changes.iter().map(|change| counted(&name(*number, &change.path), change)));
            let of_lost = effects.not_recoverable.iter();
            lost.extend(of_lost.map(|lost| format!("{} ({})", name(*number, &lost.path), lost.why)));
            unseen.extend(effects.unseen.iter().map(|unseen| name(*number, &unseen.folder)));
        }
        let lines =
            [("files changed", changed), ("changed, and can't be undone", lost), ("not looked into", unseen)];
        let lines: Vec<String> = lines.iter().filter_map(|(what, names)| listed(what, names)).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    fn introduction(&self) -> String {
        let folders: Vec<String> =
            self.folders.iter().skip(1).map(|folder| folder.display().to_string()).collect();
        format!("Besides the project, you may work in these folders: {}", folders.join(", "))
    }

    async fn outside(&self, stop: &CancellationToken, hides: HiddenPathTest) -> OutsideChanges {
        {
            let mut looked = lock(&self.looked);
            let now = self.clock.now();
            // While the first look is not done, there is nothing to compare with.
            let is_busy = self.workspaces.iter().any(|shared| shared.try_lock().is_err());
            let is_fresh = looked.is_some_and(|looked| now.millis_since(looked) < RESCAN_INTERVAL_MS);
            if !self.waits.swap(false, Ordering::Relaxed) && (is_busy || is_fresh) {
                return OutsideChanges::default();
            }
            *looked = Some(now);
        }
        let look =
            self.with(|workspaces| workspaces.iter_mut().try_for_each(|workspace| workspace.refresh()));
        // Whoever does not wait for the look loses nothing of what it finds: it is told the next time.
        let looked = tokio::select! {
            biased;
            () = stop.cancelled() => return OutsideChanges::default(),
            looked = look => looked,
        };
        if let Err(error) = looked {
            tracing::warn!(name: "workspace.not_seen", %error);
        }
        let outside = self.with(move |workspaces| {
            let mut text = String::new();
            for (number, workspace) in workspaces.iter_mut().enumerate() {
                let outside = workspace.take_outside_report(&*hides);
                if number > 0 && !outside.changes.is_empty() {
                    text.push_str(&format!("In {}:\n", workspace.root().folder().display()));
                }
                text.push_str(&outside.to_string());
            }
            let events = outside_change_events(workspaces);
            let notes = if text.is_empty() {
                Vec::new()
            } else {
                vec![(NoteTopic::ChangedOutside, for_model(&text))]
            };
            Ok(OutsideChanges { events, notes })
        });
        outside.await.unwrap_or_else(|error| {
            tracing::warn!(name: "workspace.not_seen", %error);
            OutsideChanges::default()
        })
    }
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

/// The workspaces while somebody works on them.
type LockedWorkspaces<'a> = Vec<MutexGuard<'a, Workspace>>;
/// What was done, with the number of the workspace.
type NumberedEffects = (usize, WorkspaceEffects);

fn end_all(
    workspaces: &mut LockedWorkspaces<'_>,
    watches: Vec<ChangeWatch>,
) -> Result<Vec<NumberedEffects>, WorkspaceError> {
    let pairs = workspaces.iter_mut().zip(watches).enumerate();
    pairs.map(|(number, (workspace, watch))| Ok((number, workspace.end(watch)?))).collect()
}

/// What others did, as far as it is not written down yet.
fn outside_change_events(workspaces: &mut LockedWorkspaces<'_>) -> Vec<EventBody> {
    let mut all = Vec::new();
    for (number, workspace) in workspaces.iter_mut().enumerate() {
        all.push((
            number,
            WorkspaceEffects { changes: workspace.take_outside_effects(), ..WorkspaceEffects::default() },
        ));
    }
    to_call_effects(workspaces, None, &all).events
}

fn to_call_effects(
    workspaces: &LockedWorkspaces<'_>,
    call: Option<CallId>,
    all: &[NumberedEffects],
) -> CallEffects {
    let (mut changes, mut not_kept, mut diff) = (Vec::new(), Vec::new(), BoundedDiff::default());
    for (number, effects) in all {
        let Some(workspace) = workspaces.get(*number) else { continue };
        // What is not in the project is called by its whole path.
        let name = |path: &str| match number {
            0 => path.to_owned(),
            _ => workspace.root().folder().join(path).to_string_lossy().into_owned(),
        };
        for effect in &effects.changes {
            diff.add(workspace, effect);
            let change = effect.to_file_change();
            changes.push(FileChange { path: name(&change.path), ..change });
        }
        let lost = effects.not_recoverable.iter();
        not_kept.extend(lost.map(|lost| IrreversibleChange { path: name(&lost.path), why: lost.why }));
    }
    let changed = changes.iter().map(|change| change.path.clone()).collect();
    let mut diff = diff.text();
    let mut events = Vec::new();
    let mut rest: &[FileChange] = &changes;
    // What can't be brought back is told even if nothing else is known of it.
    while !rest.is_empty() || !not_kept.is_empty() {
        let (these, others) = rest.split_at(rest.len().min(MAX_CHANGES_PER_EVENT));
        rest = others;
        let (diff, not_kept) = (std::mem::take(&mut diff), std::mem::take(&mut not_kept));
        events.push(FilesChanged { call, changes: these.to_vec(), diff, not_kept }.into());
    }
    CallEffects { events, changed, words: None }
}

/// The diff of many files; bounded.
#[derive(Default)]
struct BoundedDiff {
    text: String,
    left_out: usize,
}

impl BoundedDiff {
    fn add(&mut self, workspace: &Workspace, effect: &PathEffect) {
        match MAX_EVENT_DIFF_BYTES.saturating_sub(self.text.len()) {
            0 => self.left_out += 1,
            room => self.text.push_str(&workspace.diff(effect, room).unwrap_or_default()),
        }
    }

    fn text(mut self) -> String {
        if self.left_out > 0 {
            self.text.push_str(&format!("… and {} more files\n", self.left_out));
        }
        self.text
    }
}

/// Some names in a line; of the others, how many there are.
fn listed(what: &str, names: &[String]) -> Option<String> {
    let more = match names.len().saturating_sub(MAX_CHANGED_FILES_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named: Vec<&str> = names.iter().take(MAX_CHANGED_FILES_NAMED).map(String::as_str).collect();
    (!named.is_empty()).then(|| format!("[{what}: {}{more}]", named.join(", ")))
}

fn counted(name: &str, change: &PathEffect) -> String {
    let is_known = |image: Option<PathSnapshot>| image.is_none_or(|image| image.content.is_some());
    match (change.before, change.after) {
        (None, _) => format!("{name} (new)"),
        (_, None) => format!("{name} (deleted)"),
        (before, after) if is_known(before) && is_known(after) => {
            format!("{name} (+{} -{})", change.added_lines, change.removed_lines)
        }
        _ => name.to_owned(),
    }
}

fn for_model(changes: &str) -> String {
    format!(
        "Since your last request, not your calls but the user or a running program changed files:\n\n{changes}"
    )
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
