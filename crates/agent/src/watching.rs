//! What happens to the files of the project: what calls change, and what others change meanwhile.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use helve_protocol::{Blobs, Body, CallId, Clock, FileChange, FilesChanged, NotKept, Timestamp};
use helve_tools::{Ground, Hides, Shared, Touches};
use helve_workspace::{
    Effect, Effects, GitProgram, Image, Limits, Root, Setup, Watch, Workspace, WorkspaceError, one_line,
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::replay::Tape;

/// The topics of the notes about the world outside: what others changed, and which folders there are.
pub(crate) const TOPICS: [&str; 3] = [CHANGED, FOLDERS, RESUMED];
const CHANGED: &str = "changed_outside";
const FOLDERS: &str = "folders";
const RESUMED: &str = "resumed";

const ANOTHER_PROCESS: &str = "The session goes on in a new process: commands begin in the project's folder again, jobs have \
                               ended, and a file has to be read again before it is replaced.";
/// The diff in one event has about so many bytes at most.
const MAX_DIFF_BYTES: usize = 64 << 10;
/// One event has so many changes at most; the rest follows in others.
const CHANGES_PER_EVENT: usize = 1_000;
/// The model is told the names of so many files that a call changed.
const MAX_NAMED: usize = 20;
/// So many files are kept at a time while nobody waits for it.
const KEPT_AT_ONCE: usize = 128;
/// So long nobody keeps anything, so that others come between.
const GIVES_WAY: Duration = Duration::from_millis(1);
/// Within so many milliseconds after a look, what others changed can wait for the next one.
const LOOK_AGAIN_AFTER: u64 = 1_000;

/// The files that are watched.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The project.
    pub root: Root,
    /// Folders that were added to it.
    pub added: Vec<Root>,
    pub git: Option<GitProgram>,
    pub limits: Limits,
    /// The folder where it is noted what was last seen, for the case that the program ends suddenly.
    pub notes: Option<PathBuf>,
}

/// Who knows what happens to the files.
pub(crate) enum Watching {
    Nobody,
    Eyes(Box<Eyes>),
    /// It is on record.
    Tape(Arc<Tape>),
}

pub(crate) struct Eyes {
    /// The project, and the folders that were added to it.
    workspaces: Vec<Shared>,
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
pub(crate) enum Watcher {
    /// It changes nothing, or says itself what it changes.
    Itself,
    Whole(Vec<Watch>),
    /// Nobody will know what it changed, for this reason.
    Blind(String),
}

/// Why a call can't begin.
pub(crate) enum NoWatch {
    /// What it could change can't be kept.
    Refused(String),
    Interrupted,
}

/// What a call did to the files.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) events: Vec<Body>,
    /// The paths.
    pub(crate) changed: Vec<String>,
    /// What the model is told besides the result.
    pub(crate) words: Option<String>,
}

/// What the model has to know of the world outside before the next request.
#[derive(Default)]
pub(crate) struct Outlook {
    pub(crate) events: Vec<Body>,
    /// By their topics.
    pub(crate) notes: Vec<(&'static str, String)>,
}

impl Watching {
    pub(crate) fn new(
        watched: Option<&Watched>,
        session: &str,
        blobs: Arc<dyn Blobs>,
        clock: &Arc<dyn Clock>,
    ) -> Watching {
        let Some(Watched { root, added, git, limits, notes }) = watched else { return Watching::Nobody };
        let open = |(number, root): (usize, &Root)| {
            let name = if number == 0 { session.to_owned() } else { format!("{session}-{number}") };
            Workspace::new(Setup {
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
        Watching::Eyes(Box::new(Eyes {
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
        let Watching::Eyes(eyes) = self else { return };
        let mut looked = lock(&eyes.looked);
        if looked.is_some() {
            return;
        }
        *looked = Some(eyes.clock.now());
        let workspaces: Vec<Weak<_>> = eyes.workspaces.iter().map(Arc::downgrade).collect();
        if let Err(error) = thread::Builder::new()
            .name("first look".to_owned())
            .spawn(move || workspaces.iter().for_each(look_around))
        {
            tracing::warn!(name: "workspace.no_thread", %error);
        }
    }

    /// Another process had the session before, and the model remembers what it did there.
    pub(crate) fn resume(&self) {
        if let Watching::Eyes(eyes) = self {
            eyes.is_resumed.store(true, Ordering::Relaxed);
        }
    }

    /// The ground of a call.
    pub(crate) fn ground(&self) -> Ground {
        match self {
            Watching::Eyes(eyes) => Ground::new(eyes.workspaces.clone()),
            Watching::Nobody | Watching::Tape(_) => Ground::default(),
        }
    }

    /// Keeps all that a call could change, before it begins.
    pub(crate) async fn begin(&self, touches: Touches, stop: &CancellationToken) -> Result<Watcher, NoWatch> {
        let Watching::Eyes(eyes) = self else { return Ok(Watcher::Itself) };
        if touches != Touches::Anything {
            return Ok(Watcher::Itself);
        }
        let begun = tokio::select! {
            biased;
            () = stop.cancelled() => return Err(NoWatch::Interrupted),
            begun = eyes.with(|workspaces| workspaces.iter_mut().map(|workspace| workspace.begin()).collect()) => begun,
        };
        match begun {
            Ok(watches) => Ok(Watcher::Whole(watches)),
            Err(error @ WorkspaceError::Blobs(_)) => Err(NoWatch::Refused(format!(
                "Nothing was run: what it could change can't be kept. {error}. {}",
                error.hint()
            ))),
            Err(error) => Ok(Watcher::Blind(format!("{error}. {}", error.hint()))),
        }
    }

    /// What a call changed.
    pub(crate) async fn end(&self, call: CallId, watcher: Watcher, ground: &Ground) -> Told {
        let mut effects = ground.effects();
        let Watching::Eyes(eyes) = self else { return Told::default() };
        let mut words = None;
        match watcher {
            Watcher::Itself => {}
            Watcher::Blind(why) => words = Some(format!("[which files it changed is not known: {why}]")),
            Watcher::Whole(watches) => {
                match eyes.with(move |workspaces| end_all(workspaces, watches)).await {
                    Ok(done) => {
                        words = eyes.words(&done);
                        effects.extend(done);
                    }
                    Err(error) => words = Some(format!("[which files it changed is not known: {error}]")),
                }
            }
        }
        Told { words, ..eyes.told(call, effects).await }
    }

    /// What others changed since this was last asked, and what else the model has to know.
    pub(crate) async fn outside(&self, stop: &CancellationToken, hides: Hides) -> Outlook {
        match self {
            Watching::Nobody => Outlook::default(),
            Watching::Tape(tape) => Outlook { notes: tape.outside(), ..Outlook::default() },
            Watching::Eyes(eyes) => {
                let mut outlook = eyes.outside(stop, hides).await;
                if eyes.is_resumed.swap(false, Ordering::Relaxed) {
                    outlook.notes.insert(0, (RESUMED, ANOTHER_PROCESS.to_owned()));
                }
                if eyes.must_introduce.swap(false, Ordering::Relaxed) {
                    outlook.notes.insert(0, (FOLDERS, eyes.introduction()));
                }
                outlook
            }
        }
    }

    /// What changed since a call began that nobody saw the end of.
    pub(crate) fn since_the_end(&self, call: CallId) -> Told {
        let Watching::Eyes(eyes) = self else { return Told::default() };
        let mut workspaces: Workspaces<'_> = eyes.workspaces.iter().map(|shared| lock(shared)).collect();
        let mut all = Vec::new();
        for (number, workspace) in workspaces.iter_mut().enumerate() {
            match workspace.since_last_seen() {
                Ok(effects) => all.extend(effects.map(|effects| (number, effects))),
                Err(error) => tracing::warn!(name: "workspace.unknown_change", %error),
            }
        }
        told(&workspaces, Some(call), &all)
    }
}

impl Eyes {
    /// Works on the workspaces where that may take its time.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Workspaces<'_>) -> Result<T, WorkspaceError> + Send + 'static,
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
    async fn told(&self, call: CallId, effects: Vec<Done>) -> Told {
        let is_nothing = |(_, done): &Done| done.changes.is_empty() && done.not_recoverable.is_empty();
        if effects.iter().all(is_nothing) {
            return Told::default();
        }
        let told = self.with(move |workspaces| {
            let mut events = by_others(workspaces);
            let told = told(workspaces, Some(call), &effects);
            events.extend(told.events);
            Ok(Told { events, ..told })
        });
        told.await.unwrap_or_default()
    }

    /// What the model is told besides a result: which files changed, what of that can't be undone, and where nobody could look.
    fn words(&self, all: &[Done]) -> Option<String> {
        let name = |number: usize, path: &str| match self.folders.get(number).filter(|_| number > 0) {
            Some(folder) => one_line(&folder.join(path).to_string_lossy()),
            None => one_line(path),
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

    async fn outside(&self, stop: &CancellationToken, hides: Hides) -> Outlook {
        {
            let mut looked = lock(&self.looked);
            let now = self.clock.now();
            // While the first look is not done, there is nothing to compare with.
            let is_busy = self.workspaces.iter().any(|shared| shared.try_lock().is_err());
            let is_fresh = looked.is_some_and(|looked| now.millis_since(looked) < LOOK_AGAIN_AFTER);
            if !self.waits.swap(false, Ordering::Relaxed) && (is_busy || is_fresh) {
                return Outlook::default();
            }
            *looked = Some(now);
        }
        let look =
            self.with(|workspaces| workspaces.iter_mut().try_for_each(|workspace| workspace.refresh()));
        // Whoever does not wait for the look loses nothing of what it finds: it is told the next time.
        let looked = tokio::select! {
            biased;
            () = stop.cancelled() => return Outlook::default(),
            looked = look => looked,
        };
        if let Err(error) = looked {
            tracing::warn!(name: "workspace.not_seen", %error);
        }
        let outside = self.with(move |workspaces| {
            let mut text = String::new();
            for (number, workspace) in workspaces.iter_mut().enumerate() {
                let outside = workspace.outside_to_tell(&*hides);
                if number > 0 && !outside.changes.is_empty() {
                    text.push_str(&format!("In {}:\n", workspace.root().folder().display()));
                }
                text.push_str(&outside.to_string());
            }
            let events = by_others(workspaces);
            let notes = if text.is_empty() { Vec::new() } else { vec![(CHANGED, for_model(&text))] };
            Ok(Outlook { events, notes })
        });
        outside.await.unwrap_or_else(|error| {
            tracing::warn!(name: "workspace.not_seen", %error);
            Outlook::default()
        })
    }
}

/// Sees all files, and then keeps those that are nowhere else, a few at a time: whoever is in a hurry comes between.
fn look_around(workspace: &Weak<Mutex<Workspace>>) {
    let step = |step: fn(&mut Workspace) -> Result<bool, WorkspaceError>| {
        let workspace = workspace.upgrade()?;
        let done = step(&mut lock(&workspace));
        done.inspect_err(|error| tracing::warn!(name: "workspace.not_kept", %error)).ok()
    };
    let mut go_on = step(|workspace| workspace.refresh().map(|()| true));
    while go_on == Some(true) {
        // A lock that is taken again at once is never given to those who wait for it.
        thread::sleep(GIVES_WAY);
        go_on = step(|workspace| workspace.keep_some(KEPT_AT_ONCE));
    }
}

/// The workspaces while somebody works on them.
type Workspaces<'a> = Vec<MutexGuard<'a, Workspace>>;
/// What was done, with the number of the workspace.
type Done = (usize, Effects);

fn end_all(workspaces: &mut Workspaces<'_>, watches: Vec<Watch>) -> Result<Vec<Done>, WorkspaceError> {
    let pairs = workspaces.iter_mut().zip(watches).enumerate();
    pairs.map(|(number, (workspace, watch))| Ok((number, workspace.end(watch)?))).collect()
}

/// What others did, as far as it is not written down yet.
fn by_others(workspaces: &mut Workspaces<'_>) -> Vec<Body> {
    let mut all = Vec::new();
    for (number, workspace) in workspaces.iter_mut().enumerate() {
        all.push((number, Effects { changes: workspace.outside_to_write_down(), ..Effects::default() }));
    }
    told(workspaces, None, &all).events
}

fn told(workspaces: &Workspaces<'_>, call: Option<CallId>, all: &[Done]) -> Told {
    let (mut changes, mut not_kept, mut diff) = (Vec::new(), Vec::new(), Diff::default());
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
        not_kept.extend(lost.map(|lost| NotKept { path: name(&lost.path), why: lost.why.to_string() }));
    }
    let changed = changes.iter().map(|change| change.path.clone()).collect();
    let mut diff = diff.text();
    let mut events = Vec::new();
    let mut rest: &[FileChange] = &changes;
    // What can't be brought back is told even if nothing else is known of it.
    while !rest.is_empty() || !not_kept.is_empty() {
        let (these, others) = rest.split_at(rest.len().min(CHANGES_PER_EVENT));
        rest = others;
        let (diff, not_kept) = (std::mem::take(&mut diff), std::mem::take(&mut not_kept));
        events.push(FilesChanged { call, changes: these.to_vec(), diff, not_kept }.into());
    }
    Told { events, changed, words: None }
}

/// The diff of many files; bounded.
#[derive(Default)]
struct Diff {
    text: String,
    left_out: usize,
}

impl Diff {
    fn add(&mut self, workspace: &Workspace, effect: &Effect) {
        match MAX_DIFF_BYTES.saturating_sub(self.text.len()) {
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
    let more = match names.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named: Vec<&str> = names.iter().take(MAX_NAMED).map(String::as_str).collect();
    (!named.is_empty()).then(|| format!("[{what}: {}{more}]", named.join(", ")))
}

fn counted(name: &str, change: &Effect) -> String {
    let is_known = |image: Option<Image>| image.is_none_or(|image| image.content.is_some());
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
