//! Looks through the folders below the root, several at a time.
//!
//! Hidden files are seen, `.git` is not. Links are not followed. A repository within (a submodule, a clone) is walked
//! like any folder; its own ignore rules hold in it. A folder that can't be read is named, and the rest is seen.

use std::collections::HashSet;
use std::ffi::CStr;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::fs::{FileType, RawDir};

use crate::error::{WorkspaceError, WorkspaceResult};
use crate::files::{RootFiles, folders_of, is_absence, join, name_of, stat_in};
use crate::git::GITATTRIBUTES;
use crate::git_index::TrackedFiles;
use crate::ignore_rules::{IGNORE_FILES, IgnoreRules};
use crate::stat::{FileStat, PathKind};

/// More wait for the disk rather than work.
const MAX_WALK_THREADS: usize = 8;
/// So much of a folder is listed at once.
const WALK_LISTING_BYTES: usize = 32 << 10;

/// A file, a link or something special that was seen.
#[derive(Debug)]
pub(crate) struct FoundFile {
    pub(crate) path: String,
    pub(crate) stat: FileStat,
    pub(crate) is_ignored: bool,
    /// A name that is not Unicode can't be said, so the path is only like it.
    pub(crate) is_sayable: bool,
}

/// The files that a walk finds, folder by folder, while it goes on.
pub(crate) type FoundReceiver = Receiver<Vec<FoundFile>>;

/// A folder that could not be looked into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnseenFolder {
    /// Relative to the root, with `/`.
    pub folder: String,
    /// Why not, in words.
    pub reason: String,
}

/// What a walk knows besides the files that it found.
#[derive(Debug, Default)]
pub(crate) struct WalkSummary {
    /// Folders that are ignored: they are not looked into.
    pub(crate) ignored_folders: HashSet<String>,
    pub(crate) unseen: Vec<UnseenFolder>,
    /// The folders that have a `.git`.
    pub(crate) repositories: HashSet<String>,
    /// A folder has a file by which git may convert others.
    pub(crate) has_attributes: bool,
}

impl WalkSummary {
    /// Whether a path is in a folder that could not be looked into.
    pub(crate) fn could_not_see(&self, path: &str) -> bool {
        self.unseen.iter().any(|unseen| is_below(path, &unseen.folder))
    }

    fn absorb(&mut self, other: WalkSummary) {
        self.ignored_folders.extend(other.ignored_folders);
        self.unseen.extend(other.unseen);
        self.repositories.extend(other.repositories);
        self.has_attributes |= other.has_attributes;
    }
}

fn is_below(path: &str, folder: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// How many threads are worth their while.
pub(crate) fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(MAX_WALK_THREADS)
}

pub(crate) struct FolderWalker<'a> {
    pub(crate) files: &'a RootFiles,
    pub(crate) max_files: usize,
}

/// A folder to look into.
struct FolderJob {
    folder: String,
    rules: Arc<IgnoreRules>,
}

/// The folders that wait, and how many are not done yet.
struct FolderQueue {
    jobs: Vec<FolderJob>,
    open: usize,
    found: usize,
}

impl FolderWalker<'_> {
    /// Everything below the root that is not in an ignored folder. Meanwhile `take` gets what is found, folder by folder.
    pub(crate) fn walk<T>(
        &self,
        above: Arc<IgnoreRules>,
        take: impl FnOnce(FoundReceiver) -> T,
    ) -> WorkspaceResult<(WalkSummary, T)> {
        self.run(vec![FolderJob { folder: String::new(), rules: above }], None, take)
    }

    /// What git tracks although it is ignored is part of the workspace all the same: such files are seen, also in
    /// ignored folders.
    pub(crate) fn add_tracked(
        &self,
        walk: &mut WalkSummary,
        tracked: &TrackedFiles,
        take: impl FnOnce(FoundReceiver),
    ) -> WorkspaceResult<()> {
        let with_tracked = walk.ignored_folders.iter().filter(|folder| tracked.has_below(folder));
        let rules = Arc::new(IgnoreRules::none());
        let jobs: Vec<FolderJob> = with_tracked
            .map(|folder| FolderJob { folder: folder.clone(), rules: Arc::clone(&rules) })
            .collect();
        if !jobs.is_empty() {
            let (within, ()) = self.run(jobs, Some(tracked), take)?;
            // An ignored folder with nothing but tracked files in it is in sight as a whole.
            let unseen = within.unseen.iter().map(|unseen| &unseen.folder);
            let hiding = within.ignored_folders.iter().chain(unseen);
            let with_more: HashSet<&str> =
                hiding.flat_map(|folder| folders_of(folder).chain([folder.as_str()])).collect();
            walk.ignored_folders
                .retain(|folder| !tracked.has_below(folder) || with_more.contains(folder.as_str()));
            walk.absorb(WalkSummary { ignored_folders: HashSet::new(), ..within });
        }
        Ok(())
    }

    fn run<T>(
        &self,
        jobs: Vec<FolderJob>,
        only: Option<&TrackedFiles>,
        take: impl FnOnce(FoundReceiver) -> T,
    ) -> WorkspaceResult<(WalkSummary, T)> {
        let queue = Mutex::new(FolderQueue { open: jobs.len(), jobs, found: 0 });
        let more = Condvar::new();
        let (finder, finds) = mpsc::channel();
        let (walks, taken): (Vec<WalkSummary>, T) = thread::scope(|scope| {
            let work = |finder| self.work(&queue, &more, only, &finder);
            let workers: Vec<_> = (0..threads())
                .map(|_| {
                    let finder = finder.clone();
                    scope.spawn(move || work(finder))
                })
                .collect();
            // There is nothing more to take when all workers are done.
            drop(finder);
            let taken = take(finds);
            (workers.into_iter().filter_map(|worker| worker.join().ok()).collect(), taken)
        });
        let mut all = WalkSummary::default();
        walks.into_iter().for_each(|walk| all.absorb(walk));
        if lock(&queue).found > self.max_files {
            return Err(WorkspaceError::TooManyFiles(self.max_files));
        }
        Ok((all, taken))
    }

    fn work(
        &self,
        queue: &Mutex<FolderQueue>,
        more: &Condvar,
        only: Option<&TrackedFiles>,
        finder: &Sender<Vec<FoundFile>>,
    ) -> WalkSummary {
        let mut walk = WalkSummary::default();
        while let Some(job) = next_job(queue, more) {
            let (folders, found) = self.look_into(&job, only, &mut walk);
            let count = found.len();
            if count > 0 {
                // Whoever takes no more has seen enough.
                let _ = finder.send(found);
            }
            let mut queue = lock(queue);
            queue.found += count;
            queue.open -= 1;
            // What is above the limit is an error in the end, so there is no need to go on.
            if queue.found <= self.max_files {
                queue.open += folders.len();
                queue.jobs.extend(folders);
            }
            more.notify_all();
        }
        walk
    }

    /// Takes note of what is in a folder, and gives the folders within and the files.
    fn look_into(
        &self,
        job: &FolderJob,
        only: Option<&TrackedFiles>,
        walk: &mut WalkSummary,
    ) -> (Vec<FolderJob>, Vec<FoundFile>) {
        let listed = self.files.open_folder(&job.folder).and_then(|folder| {
            let names = FolderNames::of(&folder)?;
            Ok((folder, names))
        });
        match listed {
            Ok((folder, names)) => {
                walk.has_attributes |= names.has(GITATTRIBUTES);
                if names.has(".git") {
                    walk.repositories.insert(job.folder.clone());
                }
                let rules = self.rules_for(job, &names);
                let found = Vec::with_capacity(names.all.len());
                let is_whole_machine = self.files.is_whole_machine();
                let mut look = FolderLister {
                    job,
                    rules,
                    folder,
                    only,
                    is_whole_machine,
                    walk,
                    folders: Vec::new(),
                    found,
                };
                names.iter().for_each(|(name, kind)| look.at(name, kind));
                (look.folders, look.found)
            }
            // It went away, or became something else, since it was seen: then there is nothing in it.
            Err(error) if is_absence(&error) => (Vec::new(), Vec::new()),
            Err(error) => {
                walk.unseen.push(UnseenFolder { folder: job.folder.clone(), reason: error.to_string() });
                (Vec::new(), Vec::new())
            }
        }
    }

    /// The rules that hold in a folder: its own, if it has any, and those around it.
    fn rules_for(&self, job: &FolderJob, names: &FolderNames) -> Arc<IgnoreRules> {
        let is_repository = names.has(".git");
        if is_repository || IGNORE_FILES.iter().any(|name| names.has(name)) {
            Arc::new(IgnoreRules::of_folder(self.files, &job.folder, is_repository, &job.rules))
        } else {
            Arc::clone(&job.rules)
        }
    }
}

/// The look into one folder.
struct FolderLister<'a> {
    job: &'a FolderJob,
    rules: Arc<IgnoreRules>,
    folder: OwnedFd,
    only: Option<&'a TrackedFiles>,
    is_whole_machine: bool,
    walk: &'a mut WalkSummary,
    folders: Vec<FolderJob>,
    found: Vec<FoundFile>,
}

impl FolderLister<'_> {
    fn at(&mut self, name: &CStr, kind: FileType) {
        if name == c".git" {
            return;
        }
        let sayable = name_of(name.to_bytes());
        let is_sayable = sayable.is_ok();
        let path = join(&self.job.folder, sayable.as_deref().unwrap_or_else(|like| like));
        if kind == FileType::Directory {
            return self.at_folder(path, is_sayable);
        }
        // It may have gone since the folder was read.
        let Ok(stat) = stat_in(&self.folder, name) else { return };
        match stat.kind() {
            PathKind::Folder => self.at_folder(path, is_sayable),
            _ => self.at_file(path, stat, is_sayable),
        }
    }

    fn at_folder(&mut self, path: String, is_sayable: bool) {
        if !is_sayable {
            let reason = "its name is not Unicode".to_owned();
            self.walk.unseen.push(UnseenFolder { folder: path, reason });
        } else if self.only.is_some_and(|tracked| !tracked.has_below(&path)) {
            // Only the way to what is tracked is of interest, and that there is something else.
            self.walk.ignored_folders.insert(self.job.folder.clone());
        } else if self.only.is_none() && (self.rules.ignores(&path, true) || self.is_of_the_system(&path)) {
            self.walk.ignored_folders.insert(path);
        } else {
            self.folders.push(FolderJob { folder: path, rules: Arc::clone(&self.rules) });
        }
    }

    /// Whether a folder has no files but what the system shows as such.
    fn is_of_the_system(&self, path: &str) -> bool {
        self.is_whole_machine && matches!(path, "dev" | "proc" | "run" | "sys")
    }

    fn at_file(&mut self, path: String, stat: FileStat, is_sayable: bool) {
        if self.only.is_some_and(|tracked| !tracked.has(&path)) {
            self.walk.ignored_folders.insert(self.job.folder.clone());
            return;
        }
        let is_ignored = self.only.is_none() && self.rules.ignores(&path, false);
        self.found.push(FoundFile { path, stat, is_ignored, is_sayable });
    }
}

/// The names in a folder, one after the other, each with the zero at its end that the system wants.
#[derive(Default)]
struct FolderNames {
    bytes: Vec<u8>,
    /// Where each begins, and what it names.
    all: Vec<(usize, FileType)>,
    /// Those of them that begin with a dot: few, and asked for.
    hidden: Vec<String>,
}

impl FolderNames {
    fn of(folder: &OwnedFd) -> io::Result<FolderNames> {
        let mut names = FolderNames::default();
        let mut buffer = Vec::with_capacity(WALK_LISTING_BYTES);
        let mut listing = RawDir::new(folder, buffer.spare_capacity_mut());
        while let Some(entry) = listing.next() {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            if let Some(hidden) = name.to_str().ok().filter(|name| name.starts_with('.')) {
                names.hidden.push(hidden.to_owned());
            }
            names.all.push((names.bytes.len(), entry.file_type()));
            names.bytes.extend_from_slice(name.to_bytes_with_nul());
        }
        Ok(names)
    }

    /// Whether a name that begins with a dot is among them.
    fn has(&self, hidden: &str) -> bool {
        self.hidden.iter().any(|name| name == hidden)
    }

    fn iter(&self) -> impl Iterator<Item = (&CStr, FileType)> {
        let name = |start: usize| CStr::from_bytes_until_nul(self.bytes.get(start..)?).ok();
        self.all.iter().filter_map(move |(start, kind)| Some((name(*start)?, *kind)))
    }
}

/// Waits for a folder to look into; none when all are done.
fn next_job(queue: &Mutex<FolderQueue>, more: &Condvar) -> Option<FolderJob> {
    let mut queue = lock(queue);
    loop {
        if let Some(job) = queue.jobs.pop() {
            return Some(job);
        }
        if queue.open == 0 {
            return None;
        }
        queue = more.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
}

fn lock(queue: &Mutex<FolderQueue>) -> MutexGuard<'_, FolderQueue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}
