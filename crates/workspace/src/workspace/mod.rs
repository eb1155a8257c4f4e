//! The workspace: what was last seen of it, and what is asked of it.

mod contents;
mod outside;
mod restore;
mod scan;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use helve_protocol::{BlobStore, Clock, UnkeptReason};

pub use self::outside::{NoDiffReason, OutsideChange, OutsideEffects, OutsideReport};
pub use self::restore::RestoreGuard;
use self::scan::WorkspaceScan;
use crate::diff::{self, DiffSide};
use crate::effects::{PathEffect, PathSnapshot, UnkeptPath, WorkspaceEffects};
use crate::error::WorkspaceResult;
use crate::files::{RootFiles, join};
use crate::git::{GitProgram, GitRepository};
use crate::index::{PathRecord, PathTransition, WorkspaceIndex};
use crate::index_notes::IndexNotes;
use crate::resolved_path::{ResolvedPath, names_in};
use crate::root::WorkspaceRoot;
use crate::stat::{FileStat, FileTime, PathKind};

/// How much of a workspace is looked at and kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkspaceLimits {
    /// More files than this are not a workspace.
    pub max_files: usize,
    /// A larger file is not kept.
    pub max_file_bytes: u64,
    /// All that is kept by one process. What comes after is not.
    pub max_kept_bytes: u64,
}

impl Default for WorkspaceLimits {
    fn default() -> WorkspaceLimits {
        WorkspaceLimits { max_files: 1_000_000, max_file_bytes: 16 << 20, max_kept_bytes: 4 << 30 }
    }
}

/// What a repository can't be without.
const REQUIRED_GIT_PARTS: [&str; 3] = ["HEAD", "objects", "refs"];
/// More hooks than this nobody has.
const MAX_WATCHED_HOOKS: usize = 200;

/// What a workspace is made of.
pub struct WorkspaceSetup {
    /// The folder that is worked on.
    pub root: WorkspaceRoot,
    /// Where contents are kept.
    pub blobs: Arc<dyn BlobStore>,
    /// Tells whether a file is so fresh that its times prove nothing.
    pub clock: Arc<dyn Clock>,
    /// Without it, a repository is a folder like others.
    pub git: Option<GitProgram>,
    /// How much is looked at and kept.
    pub limits: WorkspaceLimits,
    /// Where it is noted what was last seen, for a later process of the same session.
    pub notes: Option<PathBuf>,
}

/// A call that may change anything is under way.
#[derive(Debug)]
#[must_use = "what the call did is known when it ends"]
pub struct ChangeWatch(());

/// One path is about to be written; what was there is kept.
#[derive(Debug)]
#[must_use = "what was written is known when it is noted"]
pub struct PendingWrite {
    path: String,
    before: Option<PathRecord>,
    /// The folder that it is in; none if there is none yet.
    folder: Option<Arc<OwnedFd>>,
}

/// Knows the files of a project: what is there, what changed, and what it was before.
pub struct Workspace {
    root: WorkspaceRoot,
    files: RootFiles,
    blobs: Arc<dyn BlobStore>,
    clock: Arc<dyn Clock>,
    limits: WorkspaceLimits,
    git: Option<GitRepository>,
    git_trouble: Option<String>,
    index: WorkspaceIndex,
    /// From the first call that may change something on, everything is kept.
    is_keeping: bool,
    kept_bytes: AtomicU64,
    /// What others changed and was not told yet, and how many more there were.
    outside: Vec<PathEffect>,
    outside_forgotten: usize,
    /// What others changed and was not written down yet.
    unwritten: Vec<PathEffect>,
    notes: Option<IndexNotes>,
    /// What an earlier process last saw has not been compared with what is there.
    is_from_notes: bool,
    /// Git's own files that decide what git does, as they were when the last call began.
    own_of_git: Option<GitInternals>,
}

/// Paths, with what they were where that matters and not only that they are there.
type GitInternals = BTreeMap<String, Option<FileStat>>;

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seen = self.index.entries.len();
        f.debug_struct("Workspace").field("root", &self.root).field("seen", &seen).finish_non_exhaustive()
    }
}

impl Workspace {
    /// Looks at nothing yet.
    pub fn new(setup: WorkspaceSetup) -> Workspace {
        let WorkspaceSetup { root, blobs, clock, git, limits, notes } = setup;
        let notes = notes.map(IndexNotes::new);
        let noted = notes.as_ref().and_then(|notes| notes.read(root.folder()));
        Workspace {
            notes,
            is_from_notes: noted.is_some(),
            own_of_git: None,
            files: RootFiles::new(root.folder()),
            git: git.and_then(|program| GitRepository::open(&root, program)),
            root,
            blobs,
            clock,
            limits,
            git_trouble: None,
            index: noted.unwrap_or_default(),
            is_keeping: false,
            kept_bytes: AtomicU64::new(0),
            outside: Vec::new(),
            outside_forgotten: 0,
            unwritten: Vec::new(),
        }
    }

    /// The folder that is worked on.
    pub fn root(&self) -> &WorkspaceRoot {
        &self.root
    }

    /// Why git could not be used for all that it knows, if so. Then more is kept by content.
    pub fn git_trouble(&self) -> Option<&str> {
        self.git_trouble.as_deref()
    }

    /// Looks through the workspace and remembers what is there. What changed since the last look counts as changed by
    /// others.
    pub fn refresh(&mut self) -> WorkspaceResult<()> {
        self.is_from_notes = false;
        let seen = self.look()?;
        let (changes, _) = self.effects_of(seen.differences)?;
        self.note_outside(changes);
        Ok(())
    }

    /// Makes sure that everything that a call could change can be brought back.
    pub fn begin(&mut self) -> WorkspaceResult<ChangeWatch> {
        self.is_keeping = true;
        self.refresh()?;
        let held = self.git.as_mut().map_or(Ok(()), GitRepository::hold);
        if let Err(error) = held {
            // Objects can still be had until the call removes them; then it is said that they are gone.
            self.git_trouble = Some(format!("the objects of git are not held: {error}"));
        }
        self.note();
        self.own_of_git = Some(self.look_at_git());
        Ok(ChangeWatch(()))
    }

    /// `.git` of every repository, and of the project's own its settings and its hooks. Their contents are not kept.
    fn look_at_git(&self) -> GitInternals {
        let mut seen = BTreeMap::new();
        let stat = |path: &str| self.files.stat(path).ok().flatten();
        for repository in &self.index.repositories {
            let git = join(repository, ".git");
            match stat(&git) {
                Some(file) if file.kind() != PathKind::Folder => drop(seen.insert(git, Some(file))),
                Some(_) => {
                    // Only that they are there: they change all the time.
                    let parts = REQUIRED_GIT_PARTS.iter().map(|part| join(&git, part));
                    seen.extend(parts.filter(|part| stat(part).is_some()).map(|part| (part, None)));
                    seen.insert(git + "/", None);
                }
                None => {}
            }
        }
        seen.extend(stat(".git/config").map(|stat| (".git/config".to_owned(), Some(stat))));
        let hooks = self.files.open_folder(".git/hooks").and_then(names_in).unwrap_or_default();
        for name in hooks.into_iter().take(MAX_WATCHED_HOOKS).filter_map(|(name, _)| name.into_string().ok())
        {
            let path = format!(".git/hooks/{name}");
            let stat = stat(&path);
            seen.insert(path, stat);
        }
        seen
    }

    /// What a call did to git's own files.
    fn changed_in_git(&mut self) -> Vec<UnkeptPath> {
        let Some(before) = self.own_of_git.take() else { return Vec::new() };
        let now = self.look_at_git();
        let paths: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        let is_other = |path: &&String| before.get(*path) != now.get(*path);
        // A repository that somebody made or brought is something new, whatever it is made of.
        let is_new = |path: &str| !path.starts_with(".git/") && !before.contains_key(path);
        let is_within_gone = |path: &str| {
            let around = path.match_indices('/').filter_map(|(at, _)| path.get(..=at));
            let mut around = around.filter(|folder| *folder != path);
            around.any(|folder| before.contains_key(folder) && !now.contains_key(folder))
        };
        let told = paths.into_iter().filter(is_other).filter(|path| !is_new(path) && !is_within_gone(path));
        told.map(|path| UnkeptPath { path: path.clone(), why: UnkeptReason::GitInternal }).collect()
    }

    /// Whether an earlier process noted what it saw, and nobody has looked since.
    pub fn was_seen_before(&self) -> bool {
        self.is_from_notes
    }

    /// What happened since an earlier process last noted what it saw; none if it noted nothing.
    pub fn since_last_seen(&mut self) -> WorkspaceResult<Option<WorkspaceEffects>> {
        if !self.is_from_notes {
            return Ok(None);
        }
        self.is_from_notes = false;
        // What git's own files were before, nobody noted.
        self.own_of_git = None;
        self.end(ChangeWatch(())).map(Some)
    }

    /// Notes what was seen. That it could not be noted spoils nothing but what a later process knows.
    fn note(&mut self) {
        let Some(notes) = &mut self.notes else { return };
        if let Err(error) = notes.write(self.root.folder(), &self.index) {
            tracing::warn!(name: "workspace.not_noted", %error);
        }
    }

    /// What changed since `begin`.
    pub fn end(&mut self, watch: ChangeWatch) -> WorkspaceResult<WorkspaceEffects> {
        let ChangeWatch(()) = watch;
        let WorkspaceScan { differences, mut lost, unseen } = self.look()?;
        let (changes, not_recoverable) = self.effects_of(differences)?;
        self.note();
        lost.extend(not_recoverable);
        lost.extend(self.changed_in_git());
        lost.sort();
        Ok(WorkspaceEffects { changes, not_recoverable: lost, unseen })
    }

    /// What is there now but could not be brought back.
    pub fn not_kept(&self) -> Vec<UnkeptPath> {
        let not_kept = |(path, entry): (&String, &PathRecord)| {
            entry.why_not_kept().map(|why| UnkeptPath { path: path.clone(), why })
        };
        let mut all: Vec<UnkeptPath> = self.index.entries.iter().filter_map(not_kept).collect();
        all.sort();
        all
    }

    /// Keeps what a path holds, before a tool writes it.
    pub fn about_to_write(&mut self, path: impl AsRef<Path>) -> WorkspaceResult<PendingWrite> {
        let path = self.files.key(path)?;
        let folder = self.files.open_parent(&path).ok().map(|(folder, _)| Arc::new(folder));
        self.keep_before_writing(path, folder)
    }

    /// The same for a path that the tool has resolved: what it has before it is what is kept, whatever becomes of the path
    /// meanwhile.
    pub fn about_to_write_at(&mut self, place: &ResolvedPath) -> WorkspaceResult<PendingWrite> {
        let path = self.files.key(place.path())?;
        let folder = place.missing_folders().is_empty().then(|| place.folder().clone());
        self.keep_before_writing(path, folder)
    }

    /// Keeps what is in a folder by the last name of a path. There is nothing if there is no folder.
    fn keep_before_writing(
        &mut self,
        path: String,
        folder: Option<Arc<OwnedFd>>,
    ) -> WorkspaceResult<PendingWrite> {
        let before = folder.as_ref().map(|folder| self.read_path_in(folder, &path)).transpose()?.flatten();
        if let Some(pair) = self.difference_to_index(&path, before.as_ref()) {
            let (changes, _) = self.effects_of(vec![pair])?;
            self.note_outside(changes);
        }
        self.set(&path, before.clone());
        Ok(PendingWrite { path, before, folder })
    }

    /// Makes what is kept survive the end of the machine.
    pub fn sync_kept(&self) -> WorkspaceResult<()> {
        Ok(self.blobs.sync()?)
    }

    /// What a tool did to the path that it said it would write.
    pub fn note_written(&mut self, writing: PendingWrite) -> WorkspaceResult<WorkspaceEffects> {
        let PendingWrite { path, before, folder } = writing;
        let folder = folder.or_else(|| Some(Arc::new(self.files.open_parent(&path).ok()?.0)));
        let after = match folder {
            // Where what is there now can't be kept, it is told all the same.
            Some(folder) => {
                self.read_path_in(&folder, &path).or_else(|_| self.stat_path_in(&folder, &path))?
            }
            None => None,
        };
        self.set(&path, after.clone());
        self.note();
        if !differ(before.as_ref(), after.as_ref()) {
            return Ok(WorkspaceEffects::default());
        }
        let (changes, not_recoverable) = self.effects_of(vec![PathTransition { path, before, after }])?;
        Ok(WorkspaceEffects { changes, not_recoverable, unseen: Vec::new() })
    }

    /// A unified diff of a change, with at most about `max_bytes`. Without both contents there is only its heading.
    pub fn diff(&self, effect: &PathEffect, max_bytes: usize) -> WorkspaceResult<String> {
        let is_known = is_content_known(effect.before) && is_content_known(effect.after);
        let load = |image: Option<PathSnapshot>| match image.and_then(|image| image.content) {
            Some(blob) if is_known => self.blobs.get(blob),
            _ => Ok(Vec::new()),
        };
        let (before, after) = (load(effect.before)?, load(effect.after)?);
        let side = |image: Option<PathSnapshot>, content| {
            image.map(|PathSnapshot { mode, .. }| DiffSide { mode, content })
        };
        Ok(diff::unified(&effect.path, side(effect.before, &before), side(effect.after, &after), max_bytes))
    }

    fn set(&mut self, path: &str, entry: Option<PathRecord>) {
        self.index.set(path, entry);
        self.notes.iter_mut().for_each(|notes| notes.open([path]));
    }

    fn now(&self) -> FileTime {
        FileTime::from(self.clock.now())
    }

    /// How a path differs from what was last seen there, as far as that is known.
    fn difference_to_index(&self, path: &str, now: Option<&PathRecord>) -> Option<PathTransition> {
        let last = self.index.entries.get(path);
        let is_known = last.map_or_else(|| self.index.covers(path), |last| !last.is_ignored());
        let mut pair = PathTransition { path: path.to_owned(), before: last.cloned(), after: now.cloned() };
        if last.zip(now).is_some_and(|(last, now)| last.is_in_doubt(&now.stat)) {
            self.learn_hashes(std::slice::from_mut(&mut pair));
        }
        (is_known && differ(pair.before.as_ref(), pair.after.as_ref())).then_some(pair)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // Before a first look there is nothing that was not noted before. What nobody was told, the next process shall find.
        if self.index.seen.is_some() && !self.is_from_notes && self.outside.is_empty() {
            self.note();
        }
    }
}

/// Whether the content of what was there, if there was something, can be had.
fn is_content_known(image: Option<PathSnapshot>) -> bool {
    image.is_none_or(|image| image.content.is_some())
}

/// Whether what a path held is not what it holds, as far as the contents are known.
fn differ(before: Option<&PathRecord>, after: Option<&PathRecord>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return before.is_some() || after.is_some() };
    let contents_differ = match (before.hash, after.hash) {
        (Some(before), Some(after)) => before != after,
        _ => before.stat.may_differ(&after.stat),
    };
    before.stat.mode != after.stat.mode || contents_differ
}
