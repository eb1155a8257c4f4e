//! What of a project is not for commands: files with secrets, what a rule denies, and what decides what git runs.
//!
//! All folders are looked through once, before the first command. After that only folders that were changed are read again: the
//! system tells which ([`FolderWatch`]), or each has two times that say so, one of which nobody can set. What is a secret is decided by what the user put there, not by
//! what commands write: the index of git is read once, and files that a command makes are its own.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sha1::{Digest, Sha1};

use crate::shell::bounded_read::read_up_to;
use crate::shell::folder_watch::{FolderChanges, FolderWatch, is_local};
use crate::shell::git_folders::{in_git, is_git_folder};
use crate::{DeniedPaths, PathTest};

/// An index of git's is not read beyond this, nor a file that says where it is.
const MAX_GIT_INDEX_BYTES: u64 = 256 << 20;
const MAX_GIT_LINK_BYTES: u64 = 4 << 10;
/// A larger file is a secret by its name, whether it is tracked or not.
const MAX_TRACKED_SECRET_BYTES: u64 = 1 << 20;
/// Nobody has so many files by such names; more are guesses.
const MAX_TRACKED_SECRETS: usize = 2_000;
/// A name that nobody gives to a file: what holds for it holds for all of a folder.
const ANY_NAME: &str = "\u{1}any";
/// Folders with what others wrote: keys in them are examples and certificates.
const DEPENDENCY_FOLDERS: [&str; 8] =
    ["node_modules", "site-packages", "dist-packages", "vendor", "target", ".venv", "venv", "third_party"];
const EXAMPLE_KEY_SUFFIXES: [&str; 5] = [".pem", ".key", ".p12", ".pfx", ".crt"];
/// Outside the project so many files and folders are looked through for what a rule denies.
const MAX_OUTSIDE_ENTRIES: usize = 20_000;

/// What is found, for one command.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathMasks {
    /// They look empty, and can't be moved.
    pub(crate) hidden: Vec<PathBuf>,
    /// They can't be changed.
    pub(crate) protected: Vec<PathBuf>,
    /// The repositories: each a `.git`, or a folder that is one itself.
    pub(crate) repositories: Vec<PathBuf>,
}

/// What came since the last look.
#[derive(Clone, Debug, Default)]
pub(crate) struct SurveyNews {
    /// Repositories that were not there.
    pub(crate) repositories: Vec<FoundRepository>,
    /// What was not there, and what a rule denies to be written.
    pub(crate) denied_writes: Vec<PathBuf>,
}

/// A repository that was not there at the last look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundRepository {
    pub(crate) path: PathBuf,
    /// Whether there was a folder before, which has become one.
    pub(crate) was_folder: bool,
}

/// What is known of the files of a session.
#[derive(Debug, Default)]
pub(crate) struct ProjectSurvey(Mutex<Option<SurveyState>>);

#[derive(Debug, Default)]
struct SurveyState {
    key: String,
    roots: Vec<PathBuf>,
    /// Each folder as it was when it was read.
    folders: HashMap<PathBuf, KnownFolder>,
    /// What tells which of them were changed.
    watch: Option<FolderWatch>,
    /// File systems on which it tells everything.
    local: HashSet<u64>,
    found: SurveyFindings,
    /// What git tracked when the session began, of files by the names of secrets.
    tracked: HashSet<PathBuf>,
    /// Files by the names of secrets that commands made themselves.
    made: HashSet<PathBuf>,
}

#[derive(Debug, Default)]
struct SurveyFindings {
    secrets: BTreeSet<PathBuf>,
    denied_reads: BTreeSet<PathBuf>,
    denied_writes: BTreeSet<PathBuf>,
    repositories: BTreeSet<PathBuf>,
}

/// A folder that was read.
#[derive(Debug)]
struct KnownFolder {
    times: FolderTimes,
    /// Whether the system tells when it is changed.
    is_watched: bool,
}

/// When a folder was last changed. The second can't be set by anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FolderTimes {
    modified: (i64, i64),
    changed: (i64, i64),
    /// The file system on which it is, and its number there: two folders may have been changed at the same moment.
    device: u64,
    number: u64,
}

impl FolderTimes {
    fn of(folder: &Path) -> Option<FolderTimes> {
        let facts = fs::symlink_metadata(folder).ok().filter(fs::Metadata::is_dir)?;
        Some(FolderTimes {
            modified: (facts.mtime(), facts.mtime_nsec()),
            changed: (facts.ctime(), facts.ctime_nsec()),
            device: facts.dev(),
            number: facts.ino(),
        })
    }
}

/// What decides about a file.
pub(crate) struct SecretCriteria<'a> {
    pub(crate) is_secret: fn(&str) -> bool,
    pub(crate) denied: &'a DeniedPaths,
    pub(crate) elsewhere: GuardedElsewhere<'a>,
}

/// What must not be read, or changed, by another name either, besides what is found in the project.
#[derive(Clone, Copy, Default)]
pub(crate) struct GuardedElsewhere<'a> {
    /// What can't be written in a git folder.
    pub(crate) in_git: &'a [&'a str],
    /// What can't be written in the project.
    pub(crate) in_project: &'a [PathBuf],
    /// What is hidden.
    pub(crate) hidden: &'a [PathBuf],
    /// Where this program keeps what it needs, which may be much: of the folder around it only the files at its top count.
    pub(crate) storage: Option<&'a Path>,
    pub(crate) home: Option<&'a Path>,
}

impl ProjectSurvey {
    /// What commands must not see or change now.
    pub(crate) fn masks(&self, roots: &[PathBuf], measure: &SecretCriteria<'_>) -> PathMasks {
        self.before(roots, measure);
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.as_ref().map(SurveyState::masks).unwrap_or_default()
    }

    /// Looks at what was changed between two commands, which is not the work of a command, but maybe that of a job.
    pub(crate) fn before(&self, roots: &[PathBuf], measure: &SecretCriteria<'_>) -> SurveyNews {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |state: &&mut SurveyState| state.key == measure.denied.key && state.roots == roots;
        match state.as_mut().filter(is_same) {
            Some(state) => state.news(measure),
            None => {
                let before = state.take();
                let mut first = SurveyState {
                    key: measure.denied.key.clone(),
                    roots: roots.to_vec(),
                    ..SurveyState::default()
                };
                match before {
                    // Only the rules are others: what the session saw at its start stays.
                    Some(before) => (first.tracked, first.made) = (before.tracked, before.made),
                    None => {
                        let tracked = |root: &PathBuf| tracked(root, measure.is_secret);
                        first.tracked = roots.iter().flat_map(tracked).collect();
                    }
                }
                first.begin(measure);
                *state = Some(first);
                SurveyNews::default()
            }
        }
    }

    /// The repositories that are known.
    pub(crate) fn repositories(&self) -> Vec<PathBuf> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.iter().flat_map(|state| state.found.repositories.iter().cloned()).collect()
    }

    /// Looks at what a command changed.
    pub(crate) fn after(&self, measure: &SecretCriteria<'_>, is_alone: bool) -> SurveyNews {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(state) = state.as_mut() else { return SurveyNews::default() };
        let secrets = state.found.secrets.clone();
        let news = state.news(measure);
        if is_alone {
            // A file that the command itself made holds nothing that it does not know.
            let made: Vec<PathBuf> = state.found.secrets.difference(&secrets).cloned().collect();
            state.found.secrets.retain(|path| !made.contains(path));
            state.made.extend(made);
        }
        news
    }
}

impl SurveyState {
    fn masks(&self) -> PathMasks {
        let SurveyFindings { secrets, denied_reads, denied_writes, repositories } = &self.found;
        let hidden: Vec<PathBuf> = secrets.union(denied_reads).cloned().collect();
        PathMasks {
            // What can't be moved away keeps its mask.
            protected: hidden.iter().chain(denied_writes).cloned().collect(),
            hidden,
            repositories: repositories.iter().cloned().collect(),
        }
    }

    fn begin(&mut self, measure: &SecretCriteria<'_>) {
        self.watch = FolderWatch::new();
        let local = self.roots.iter().filter(|root| is_local(root));
        self.local = local.filter_map(|root| Some(FolderTimes::of(root)?.device)).collect();
        for root in self.roots.clone() {
            self.read(root, measure, usize::MAX);
        }
        for folder in measure.denied.elsewhere.clone() {
            if self.notes(&folder, measure) {
                continue;
            }
            let left = self.read(folder.clone(), measure, MAX_OUTSIDE_ENTRIES);
            if left == 0 {
                // It can't be known what else is there.
                self.found.denied_reads.insert(folder);
            }
        }
        self.find_other_names(measure);
    }

    /// Looks again at what was changed, and tells what is new.
    fn news(&mut self, measure: &SecretCriteria<'_>) -> SurveyNews {
        let changed = self.changed();
        if changed.is_empty() {
            return SurveyNews::default();
        }
        let (repositories, denied_writes) =
            (self.found.repositories.clone(), self.found.denied_writes.clone());
        let known: HashSet<PathBuf> = changed.iter().cloned().collect();
        self.refresh(changed, measure);
        let new = self.found.repositories.difference(&repositories);
        SurveyNews {
            repositories: new
                .map(|path| FoundRepository { path: path.clone(), was_folder: known.contains(path) })
                .collect(),
            denied_writes: self.found.denied_writes.difference(&denied_writes).cloned().collect(),
        }
    }

    /// Reads the folders again that were changed, and drops what is gone.
    fn refresh(&mut self, changed: Vec<PathBuf>, measure: &SecretCriteria<'_>) {
        for folder in &changed {
            self.folders.remove(folder);
        }
        let is_there = |path: &PathBuf| path.symlink_metadata().is_ok();
        let SurveyFindings { secrets, denied_reads, denied_writes, repositories } = &mut self.found;
        [secrets, denied_reads, denied_writes].into_iter().for_each(|paths| paths.retain(is_there));
        // What has lost its `HEAD` is a folder like any other.
        repositories.retain(|path| path.ends_with(".git") && is_there(path) || is_git_folder(path));
        for folder in changed.into_iter().filter(|folder| folder.is_dir()) {
            self.read(folder, measure, usize::MAX);
        }
    }

    /// The folders that were changed, or are gone.
    fn changed(&mut self) -> Vec<PathBuf> {
        let told = self.watch.as_mut().and_then(FolderWatch::changes);
        if let Some(FolderChanges { moved, .. }) = told.as_ref().filter(|told| !told.moved.is_empty()) {
            self.folders.retain(|folder, _| !moved.iter().any(|moved| folder.starts_with(moved)));
        }
        let is_changed = |folder: &Path, known: &KnownFolder| match &told {
            Some(told) if known.is_watched => told.folders.contains(folder),
            _ => FolderTimes::of(folder) != Some(known.times),
        };
        let changed = self.folders.iter().filter(|(folder, known)| is_changed(folder, known));
        // A root that was away is looked through when it is back.
        let back = self.roots.iter().filter(|root| !self.folders.contains_key(*root));
        changed.map(|(folder, _)| folder).chain(back).cloned().collect()
    }

    /// Reads a folder and all below it that are not known yet. Gives how many more files could have been looked at.
    fn read(&mut self, folder: PathBuf, measure: &SecretCriteria<'_>, mut left: usize) -> usize {
        let mut open = vec![folder];
        while let Some(folder) = open.pop() {
            // Before it is read: what changes meanwhile is seen the next time.
            let Some(times) = FolderTimes::of(&folder) else { continue };
            if self.folders.get(&folder).is_some_and(|known| known.times == times) {
                continue;
            }
            let is_watched = self.local.contains(&times.device)
                && self.watch.as_mut().is_some_and(|watch| watch.add(&folder));
            let is_of_others = self.is_of_others(&folder);
            let (mut has_head, mut has_rest) = (false, false);
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let Some(rest) = left.checked_sub(1) else { return 0 };
                left = rest;
                let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else { continue };
                has_head |= name == "HEAD";
                // Git takes a folder for its own that says where the rest of it is, too.
                has_rest |= name == "objects" || name == "commondir";
                let path = folder.join(&name);
                if name == ".git" {
                    self.note_git_folder(&path, measure);
                    self.found.repositories.insert(path);
                    continue;
                }
                let is_secret = !kind.is_dir() && self.is_secret(&path, &name, is_of_others, measure);
                if is_secret {
                    // What a link leads to stays hidden when the link is moved.
                    let to = path.canonicalize().ok().filter(|_| kind.is_symlink());
                    self.found.secrets.extend(to);
                    self.found.secrets.insert(path.clone());
                }
                if !self.notes(&path, measure) && kind.is_dir() {
                    open.push(path);
                }
            }
            if has_head && has_rest && !self.roots.contains(&folder) {
                self.found.repositories.insert(folder.clone());
            }
            self.folders.insert(folder, KnownFolder { times, is_watched });
        }
        left
    }

    /// Whether a folder, or one around it in the project, holds what others wrote.
    fn is_of_others(&self, folder: &Path) -> bool {
        let inside = self.roots.iter().find_map(|root| folder.strip_prefix(root).ok()).unwrap_or(folder);
        inside.iter().any(|name| DEPENDENCY_FOLDERS.iter().any(|own| name == *own))
    }

    /// Notes what a rule denies. True if that is all of a place, so that nobody looks into it.
    fn notes(&mut self, path: &Path, measure: &SecretCriteria<'_>) -> bool {
        let DeniedPaths { reads, writes, .. } = measure.denied;
        let denies = |test: &Option<PathTest>| {
            test.as_ref().is_some_and(|test| test(path) || path.is_dir() && test(&path.join(ANY_NAME)))
        };
        // What can't be read may be denied to be written as well: whoever makes it later is told of by that rule.
        if denies(writes) {
            self.found.denied_writes.insert(path.to_owned());
        }
        let is_unreadable = denies(reads);
        if is_unreadable {
            self.found.denied_reads.insert(path.to_owned());
        }
        is_unreadable
    }

    /// Notes what a rule denies of a `.git`. Nobody looks deeper into it: its objects are many.
    fn note_git_folder(&mut self, git: &Path, measure: &SecretCriteria<'_>) {
        if measure.denied.writes.is_none() && measure.denied.reads.is_none() || self.notes(git, measure) {
            return;
        }
        for entry in fs::read_dir(git).into_iter().flatten().flatten() {
            self.notes(&entry.path(), measure);
        }
    }

    fn is_secret(&self, path: &Path, name: &OsStr, is_of_others: bool, measure: &SecretCriteria<'_>) -> bool {
        let Some(name) = name.to_str() else { return false };
        let is_example = || is_of_others && EXAMPLE_KEY_SUFFIXES.iter().any(|end| name.ends_with(end));
        (measure.is_secret)(name)
            && !is_example()
            && !self.tracked.contains(path)
            && !self.made.contains(path)
    }

    /// A file that must not be read, or changed, may have another name: then that is under the same rule.
    fn find_other_names(&mut self, measure: &SecretCriteria<'_>) {
        let GuardedElsewhere { in_git: names, in_project, hidden: elsewhere, storage, home } =
            measure.elsewhere;
        let is_large = |path: &&PathBuf| storage.is_some_and(|storage| storage.starts_with(path));
        let (large, small): (Vec<&PathBuf>, Vec<&PathBuf>) = elsewhere.iter().partition(is_large);
        let secret = self.found.secrets.union(&self.found.denied_reads).chain(small);
        let at_top =
            large.into_iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
        let at_top = at_top.filter_map(|entry| identity(&entry.path()));
        let hidden: HashSet<FileIdentity> =
            secret.flat_map(|path| self.identities(path)).chain(at_top).collect();
        let own = self.roots.iter().flat_map(|root| in_project.iter().map(|name| root.join(name)));
        let repositories = self.found.repositories.iter().flat_map(|git| match git.is_dir() {
            true => in_git(git, names),
            false => vec![git.clone()],
        });
        let dotfiles = home.map(dotfiles_in).unwrap_or_default();
        let guarded = own.chain(repositories).chain(dotfiles).flat_map(|path| self.identities(&path));
        let denied = self.found.denied_writes.iter().filter_map(|path| identity(path));
        let kept: HashSet<FileIdentity> = denied.chain(guarded).collect();
        if hidden.is_empty() && kept.is_empty() {
            return;
        }
        let entries =
            self.folders.keys().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
        let named: Vec<(PathBuf, FileIdentity)> = entries
            .map(|entry| entry.path())
            .filter_map(|path| Some((path.clone(), identity(&path)?)))
            .collect();
        for (path, identity) in named {
            if hidden.contains(&identity) {
                self.found.secrets.insert(path);
            } else if kept.contains(&identity) {
                self.found.denied_writes.insert(path);
            }
        }
    }

    /// The files with several names at a path, or in the folder that is there. Nobody has looked into a folder that is
    /// denied as a whole.
    fn identities(&self, path: &Path) -> Vec<FileIdentity> {
        let is_ours = self.roots.iter().any(|root| path.starts_with(root));
        let mut left = if is_ours { usize::MAX } else { MAX_OUTSIDE_ENTRIES };
        let (mut found, mut open) = (Vec::new(), vec![path.to_owned()]);
        while let Some(path) = open.pop() {
            found.extend(identity(&path));
            if FolderTimes::of(&path).is_none() {
                continue;
            }
            for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
                let Some(rest) = left.checked_sub(1) else { return found };
                left = rest;
                open.push(entry.path());
            }
        }
        found
    }
}

/// The files of the user's that other programs obey, at the top of the home folder.
fn dotfiles_in(home: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(home).into_iter().flatten().flatten();
    let is_dotfile = |entry: &fs::DirEntry| {
        entry.file_name().as_encoded_bytes().starts_with(b".")
            && entry.file_type().is_ok_and(|kind| kind.is_file())
    };
    entries.filter(is_dotfile).map(|entry| entry.path()).collect()
}

/// What a file is, whatever it is called.
type FileIdentity = (u64, u64);

/// The identity of a file that has more than one name.
fn identity(path: &Path) -> Option<FileIdentity> {
    let facts = path.symlink_metadata().ok().filter(|facts| facts.is_file() && facts.nlink() > 1)?;
    Some((facts.dev(), facts.ino()))
}

/// The files by the names of secrets that git tracks in a folder, as they are now: those are no secrets, and a commit must find
/// them as they are. What only the index says counts for nothing, because commands write it: it must know what is in the
/// file, which nobody knows who can't read it.
fn tracked(root: &Path, is_secret: fn(&str) -> bool) -> Vec<PathBuf> {
    let index = read_up_to(&git_folder(root).join("index"), MAX_GIT_INDEX_BYTES).unwrap_or_default();
    let may_count = |entry: &IndexedFile<'_>| {
        let name = entry.name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        str::from_utf8(name).is_ok_and(is_secret)
    };
    let entries = entries_in(&index).into_iter().filter(may_count).take(MAX_TRACKED_SECRETS);
    let named = entries.map(|entry| (root.join(OsStr::from_bytes(entry.name)), entry));
    named.filter(|(path, entry)| entry.is_of(path)).map(|(path, _)| path).collect()
}

/// Where the index of a project is. Of a worktree it is elsewhere.
fn git_folder(root: &Path) -> PathBuf {
    let git = root.join(".git");
    let link = read_up_to(&git, MAX_GIT_LINK_BYTES).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    match link.as_deref().and_then(|link| link.strip_prefix("gitdir: ")) {
        Some(to) => root.join(to.trim_end()),
        None => git,
    }
}

/// What an index of git's says of a file.
struct IndexedFile<'a> {
    name: &'a [u8],
    /// Of what is in it.
    hash: [u8; 20],
}

impl IndexedFile<'_> {
    /// Whether there is in a file what git saw. A link is never one: what it leads to is another file.
    fn is_of(&self, path: &Path) -> bool {
        let Ok(bytes) = read_up_to(path, MAX_TRACKED_SECRET_BYTES) else { return false };
        let mut hash = Sha1::new_with_prefix(format!("blob {}\0", bytes.len()));
        hash.update(&bytes);
        hash.finalize().as_slice() == self.hash
    }
}

/// The entries of an index of git's, as far as it can be read. One whose names are packed has none: then more is masked.
fn entries_in(index: &[u8]) -> Vec<IndexedFile<'_>> {
    /// What stands before the name of an entry, and what more if its flags say so.
    const BEFORE: usize = 62;
    /// Where the hash is.
    const HASH: usize = 40;
    let number = |bytes: &[u8], at: usize| {
        bytes
            .get(at..at + 4)
            .and_then(|bytes| bytes.first_chunk::<4>())
            .map(|bytes| u32::from_be_bytes(*bytes))
    };
    let (Some(b"DIRC"), Some(2 | 3), Some(count)) = (index.get(..4), number(index, 4), number(index, 8))
    else {
        return Vec::new();
    };
    let mut entries = Vec::new();
    let mut rest = index.get(12..).unwrap_or_default();
    for _ in 0..count {
        let is_extended = rest.get(BEFORE - 2).is_some_and(|flags| flags & 0x40 != 0);
        let start = if is_extended { BEFORE + 2 } else { BEFORE };
        let name = rest.get(start..).and_then(|rest| rest.split(|byte| *byte == 0).next());
        // A file has a name: what follows is nothing, however much of it is claimed.
        let Some(name) = name.filter(|name| !name.is_empty()) else { break };
        let Some(hash) = rest.get(HASH..).and_then(|rest| rest.first_chunk()) else { break };
        entries.push(IndexedFile { name, hash: *hash });
        // Entries are filled up with zeros to a multiple of eight, at least with one.
        let Some(after) = rest.get((start + name.len()) / 8 * 8 + 8..) else { break };
        rest = after;
    }
    entries
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn is_env(name: &str) -> bool {
        name == ".env" || name.ends_with(".pem")
    }

    fn measure(denied: &DeniedPaths) -> SecretCriteria<'_> {
        SecretCriteria { is_secret: is_env, denied, elsewhere: GuardedElsewhere::default() }
    }

    fn write(root: &Path, names: &[&str]) {
        for name in names {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
    }

    fn paths(news: &SurveyNews) -> Vec<PathBuf> {
        news.repositories.iter().map(|repository| repository.path.clone()).collect()
    }

    fn below(root: &Path, paths: &[PathBuf]) -> Vec<String> {
        paths.iter().map(|path| path.strip_prefix(root).unwrap().display().to_string()).collect()
    }

    #[test]
    fn secrets_are_found_however_deep_and_however_many_files_there_are() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(root, &["a/b/c/d/e/f/.env", ".env", "vendor/.env", "vendor/ca.pem", "own.pem", "src/a"]);
        for number in 0..4_000 {
            fs::write(root.join(format!("src/{number}")), "").unwrap();
        }
        let (survey, denied) = (ProjectSurvey::default(), DeniedPaths::default());
        let masks = survey.masks(&[root.to_owned()], &measure(&denied));
        assert_eq!(below(root, &masks.hidden), [".env", "a/b/c/d/e/f/.env", "own.pem", "vendor/.env"]);
    }

    #[test]
    fn what_git_tracks_is_decided_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(root, &[".env", "conf/.env"]);
        let git = |args: &[&str]| {
            let done = std::process::Command::new("git").arg("-C").arg(root).args(args).output();
            done.is_ok_and(|done| done.status.success())
        };
        if !git(&["init", "-q"]) {
            return helve_testkit::skip("what_git_tracks_is_decided_once", "git is not installed");
        }
        assert!(git(&["add", "-f", "conf/.env"]));
        let (survey, denied) = (ProjectSurvey::default(), DeniedPaths::default());
        let masked = || below(root, &survey.masks(&[root.to_owned()], &measure(&denied)).hidden);
        assert_eq!(masked(), [".env"]);
        // A command says that git tracks it.
        assert!(git(&["add", "-f", ".env"]));
        assert_eq!(masked(), [".env"]);
        // Also in a session before this one: it is not the file that git saw.
        let before = ProjectSurvey::default();
        let hash = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
        fs::write(root.join("planted.pem"), "key").unwrap();
        assert!(git(&["update-index", "--add", "--cacheinfo", &format!("100644,{hash},planted.pem")]));
        let found = below(root, &before.masks(&[root.to_owned()], &measure(&denied)).hidden);
        assert_eq!(found, ["planted.pem"], "the other two are as git saw them");
        fs::remove_file(root.join("planted.pem")).unwrap();
        // Nor is one that was changed since, however it looks.
        let times = fs::metadata(root.join("conf/.env")).unwrap().modified().unwrap();
        let file = fs::OpenOptions::new().write(true).open(root.join("conf/.env")).unwrap();
        std::io::Write::write_all(&mut &file, b"y").unwrap();
        file.set_modified(times).unwrap();
        let found =
            below(root, &ProjectSurvey::default().masks(&[root.to_owned()], &measure(&denied)).hidden);
        assert_eq!(found, ["conf/.env"]);
        // And what is moved is found where it went.
        fs::create_dir(root.join("vendor")).unwrap();
        fs::rename(root.join(".env"), root.join("vendor/.env")).unwrap();
        assert_eq!(masked(), ["vendor/.env"]);
    }

    /// What somebody does in a project between two commands.
    #[derive(Clone, Debug)]
    enum Deed {
        Write(String),
        Move(String, String),
        Remove(String),
        Many(String),
        Look,
    }

    fn deed() -> impl proptest::strategy::Strategy<Value = Deed> {
        use proptest::prelude::*;
        let folder = || "[ab](/[ab]){0,2}";
        prop_oneof![
            3 => (folder(), "\\.env|x").prop_map(|(folder, name)| Deed::Write(format!("{folder}/{name}"))),
            3 => (folder(), folder()).prop_map(|(from, to)| Deed::Move(from, to)),
            1 => folder().prop_map(Deed::Remove),
            1 => folder().prop_map(Deed::Many),
            3 => Just(Deed::Look),
        ]
    }

    fn perform(root: &Path, deed: &Deed) {
        // What can't be done is not done.
        let _ = match deed {
            Deed::Write(path) => fs::create_dir_all(root.join(path).parent().unwrap())
                .and_then(|()| fs::write(root.join(path), "x")),
            Deed::Move(from, to) => fs::rename(root.join(from), root.join(to)),
            Deed::Remove(path) => fs::remove_dir_all(root.join(path)),
            Deed::Many(path) => (0..70).try_for_each(|number| {
                fs::create_dir_all(root.join(path).join(format!("{number}")))
                    .and_then(|()| fs::write(root.join(path).join(format!("{number}/.env")), "x"))
            }),
            Deed::Look => Ok(()),
        };
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(50))]

        /// Whoever looks again and again knows what somebody knows who looks for the first time.
        #[test]
        fn nothing_is_missed_whatever_is_moved_and_made(deeds in proptest::collection::vec(deed(), 1..25)) {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().join("root");
            write(&root, &["a/b/.env", "b/a/x", "b/b/a/.env"]);
            let (survey, denied, roots) = (ProjectSurvey::default(), DeniedPaths::default(), [root.clone()]);
            survey.masks(&roots, &measure(&denied));
            for deed in deeds.iter().chain([&Deed::Look]) {
                perform(&root, deed);
                if matches!(deed, Deed::Look) {
                    let known = survey.masks(&roots, &measure(&denied)).hidden;
                    let fresh = ProjectSurvey::default().masks(&roots, &measure(&denied)).hidden;
                    proptest::prop_assert_eq!(below(&root, &known), below(&root, &fresh));
                }
            }
        }

        #[test]
        fn no_index_panics(mut index in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300), version in 0_u8..5) {
            entries_in(&index);
            let head = [b'D', b'I', b'R', b'C', 0, 0, 0, version];
            index.splice(..index.len().min(8), head);
            entries_in(&index);
        }
    }

    #[test]
    fn what_a_secret_link_leads_to_stays_hidden_when_the_link_is_moved() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        write(&root, &["shared/settings", "other"]);
        std::os::unix::fs::symlink("shared/settings", root.join(".env")).unwrap();
        let (survey, denied) = (ProjectSurvey::default(), DeniedPaths::default());
        let masked = || below(&root, &survey.masks(std::slice::from_ref(&root), &measure(&denied)).hidden);
        assert_eq!(masked(), [".env", "shared/settings"]);
        fs::rename(root.join(".env"), root.join("was")).unwrap();
        assert_eq!(masked(), ["shared/settings"]);
    }

    #[test]
    fn what_is_above_the_project_does_not_make_it_the_work_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("vendor/project");
        write(&root, &["server.pem", "vendor/ca.pem"]);
        let (survey, denied) = (ProjectSurvey::default(), DeniedPaths::default());
        let masks = survey.masks(std::slice::from_ref(&root), &measure(&denied));
        assert_eq!(below(&root, &masks.hidden), ["server.pem"]);
    }

    #[test]
    fn a_project_that_was_away_is_looked_through_when_it_is_back() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        write(&root, &[".env", "a/.env"]);
        let (survey, denied) = (ProjectSurvey::default(), DeniedPaths::default());
        let masked = || survey.masks(std::slice::from_ref(&root), &measure(&denied)).hidden.len();
        assert_eq!(masked(), 2);
        fs::rename(&root, folder.path().join("away")).unwrap();
        assert_eq!(masked(), 0);
        fs::rename(folder.path().join("away"), &root).unwrap();
        assert_eq!(masked(), 2);
    }

    #[test]
    fn rules_deny_files_and_whole_folders() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        write(&root, &["secret.txt", "private/a", "private/b/c", "keep/a", "other"]);
        let (reads, writes) = (root.clone(), root.clone());
        let denied = DeniedPaths {
            reads: Some(Arc::new(move |path| {
                path == reads.join("secret.txt")
                    || path.starts_with(reads.join("private")) && path != reads.join("private")
            })),
            writes: Some(Arc::new(move |path| path.starts_with(writes.join("keep/")))),
            ..DeniedPaths::default()
        };
        let masks = ProjectSurvey::default().masks(std::slice::from_ref(&root), &measure(&denied));
        assert_eq!(below(&root, &masks.hidden), ["private", "secret.txt"]);
        let mut protected = below(&root, &masks.protected);
        protected.sort();
        assert_eq!(protected, ["keep", "keep/a", "private", "secret.txt"]);
    }

    #[test]
    fn other_names_of_a_secret_are_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(root, &[".env", "src/a"]);
        fs::hard_link(root.join(".env"), root.join("src/copy")).unwrap();
        let denied = DeniedPaths::default();
        let masks = ProjectSurvey::default().masks(&[root.to_owned()], &measure(&denied));
        assert_eq!(below(root, &masks.hidden), [".env", "src/copy"]);
    }

    #[test]
    fn other_names_of_what_is_denied_are_denied() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        write(&root, &["private/sub/a", "keep/a", "other"]);
        fs::hard_link(root.join("private/sub/a"), root.join("read")).unwrap();
        fs::hard_link(root.join("keep/a"), root.join("written")).unwrap();
        let (private, keep) = (root.join("private"), root.join("keep"));
        let denied = DeniedPaths {
            reads: Some(Arc::new(move |path| path.starts_with(&private))),
            writes: Some(Arc::new(move |path| path.starts_with(&keep))),
            ..DeniedPaths::default()
        };
        let masks = ProjectSurvey::default().masks(std::slice::from_ref(&root), &measure(&denied));
        assert_eq!(below(&root, &masks.hidden), ["private", "read"]);
        let protected = below(&root, &masks.protected);
        assert_eq!(protected, ["private", "read", "keep", "keep/a", "written"]);
    }

    #[test]
    fn other_names_of_what_decides_can_not_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        let home = folder.path().join("home");
        write(
            &root,
            &[".git/config", ".git/HEAD", "sub/.git/hooks/pre-commit", ".helve/config.toml", "other"],
        );
        write(&home, &[".bashrc", ".ssh/id_rsa", "notes"]);
        for (from, to) in [
            (root.join(".git/config"), "notes.txt"),
            (root.join("sub/.git/hooks/pre-commit"), "sub/script"),
            (root.join(".helve/config.toml"), "rules"),
            (home.join(".bashrc"), "shell"),
            (home.join(".ssh/id_rsa"), "key"),
            (home.join("notes"), "shared"),
        ] {
            fs::hard_link(from, root.join(to)).unwrap();
        }
        let denied = DeniedPaths::default();
        let elsewhere = GuardedElsewhere {
            in_git: &["config", "hooks"],
            in_project: &[".helve".into()],
            hidden: &[home.join(".ssh")],
            storage: None,
            home: Some(&home),
        };
        let measure = SecretCriteria { elsewhere, ..measure(&denied) };
        let masks = ProjectSurvey::default().masks(std::slice::from_ref(&root), &measure);
        assert_eq!(below(&root, &masks.hidden), ["key"]);
        let mut protected = below(&root, &masks.protected);
        protected.retain(|path| !path.starts_with(".helve"));
        assert_eq!(protected, ["key", "notes.txt", "rules", "shell", "sub/script"]);
    }

    #[test]
    fn folders_of_git_are_known_by_their_shape_and_what_was_a_folder_before_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(root, &["docs/a", "src/a"]);
        let (survey, denied) = (ProjectSurvey::default(), DeniedPaths::default());
        let roots = [root.to_owned()];
        survey.masks(&roots, &measure(&denied));
        write(
            root,
            &["docs/HEAD", "docs/commondir", "new/HEAD", "new/objects/x", "lib/objects/x", "src/HEAD"],
        );
        let news = survey.after(&measure(&denied), true);
        assert_eq!(below(root, &paths(&news)), ["docs", "new"]);
        let old: Vec<bool> = news.repositories.iter().map(|repository| repository.was_folder).collect();
        assert_eq!(old, [true, false]);
        // One that is none any more is told again when it is back.
        fs::rename(root.join("docs/HEAD"), root.join("docs/was")).unwrap();
        assert!(paths(&survey.before(&roots, &measure(&denied))).is_empty());
        fs::rename(root.join("docs/was"), root.join("docs/HEAD")).unwrap();
        assert_eq!(below(root, &paths(&survey.before(&roots, &measure(&denied)))), ["docs"]);
    }

    #[test]
    fn what_is_made_although_a_rule_denies_it_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        write(&root, &["keep/a"]);
        let base = root.clone();
        let denied = DeniedPaths {
            writes: Some(Arc::new(move |path| {
                path == base.join("later.txt")
                    || path.starts_with(base.join("new")) && path != base.join("new")
                    || path.starts_with(base.join("keep"))
            })),
            ..DeniedPaths::default()
        };
        let survey = ProjectSurvey::default();
        survey.masks(std::slice::from_ref(&root), &measure(&denied));
        write(&root, &["later.txt", "new/a/x", "free"]);
        let news = survey.after(&measure(&denied), true);
        assert_eq!(below(&root, &news.denied_writes), ["later.txt", "new", "new/a", "new/a/x"]);
    }

    #[test]
    fn what_may_neither_be_read_nor_written_is_told_when_it_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        write(&root, &["free"]);
        let test = || -> Option<PathTest> {
            let both = root.join("both");
            Some(Arc::new(move |path| path.starts_with(&both) && path != both))
        };
        let denied = DeniedPaths { reads: test(), writes: test(), ..DeniedPaths::default() };
        let survey = ProjectSurvey::default();
        survey.masks(std::slice::from_ref(&root), &measure(&denied));
        write(&root, &["both/a/x"]);
        let news = survey.after(&measure(&denied), true);
        assert_eq!(below(&root, &news.denied_writes), ["both"]);
    }

    #[test]
    fn rules_hold_for_the_folder_of_git() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        write(&root, &[".git/HEAD", ".git/refs/heads/main", "sub/.git/HEAD"]);
        let (all, refs) = (root.join("sub/.git"), root.join(".git/refs"));
        let denied = DeniedPaths {
            writes: Some(Arc::new(move |path| path.starts_with(&all) || path.starts_with(&refs))),
            ..DeniedPaths::default()
        };
        let masks = ProjectSurvey::default().masks(std::slice::from_ref(&root), &measure(&denied));
        assert_eq!(below(&root, &masks.protected), [".git/refs", "sub/.git", "sub/.git/HEAD"]);
    }

    #[test]
    fn new_repositories_are_told_and_what_a_command_made_is_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(root, &[".git/config", "a"]);
        let (survey, denied) = (ProjectSurvey::default(), DeniedPaths::default());
        let roots = [root.to_owned()];
        assert_eq!(below(root, &survey.masks(&roots, &measure(&denied)).repositories), [".git"]);
        write(root, &["sub/deep/.git/config", ".env", "bare/HEAD", "bare/objects/x"]);
        let new = paths(&survey.after(&measure(&denied), true));
        assert_eq!(below(root, &new), ["bare", "sub/deep/.git"]);
        assert!(survey.masks(&roots, &measure(&denied)).hidden.is_empty());
        // What the user makes between commands is a secret.
        write(root, &["later/.env"]);
        assert_eq!(below(root, &survey.masks(&roots, &measure(&denied)).hidden), ["later/.env"]);
    }
}
