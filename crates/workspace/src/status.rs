//! Which branch is checked out, and whether something is not committed: what `git status` tells, found without running what a
//! project could name for git to run.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use helve_protocol::is_hidden;
use ignore::gitignore::Gitignore;

use crate::files::{FileReadOutcome, RootFiles, folders_of};
use crate::git::{GitObject, GitProgram, GitRepository};
use crate::git_index::{ObjectId, TrackedFiles, TrackedStatus};
use crate::ignore_rules::{IgnoreRules, read_list};
use crate::root::{WorkspaceRoot, common_folder, git_folder, open_file};
use crate::stat::{FileStat, PathKind};
use crate::walk::{FolderWalker, FoundFile, WalkSummary};

/// `HEAD` is one line.
const MAX_HEAD_BYTES: u64 = 4 << 10;
const MAX_PACKED_REFS_BYTES: u64 = 64 << 20;
/// Longer names are cut.
const MAX_BRANCH_CHARS: usize = 60;
/// So many characters of a commit's name are shown.
const SHORT_ID_CHARS: usize = 7;
/// So much is compared byte by byte. With more, it is not known whether something changed.
const MAX_STATUS_FILES: usize = 2_000;
const MAX_STATUS_BYTES: u64 = 32 << 20;
/// What git would tell of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitStatus {
    /// The name of the branch, fit to be shown; of a commit where there is none.
    pub branch: String,
    /// Whether something below the root is not committed, if that is known.
    pub is_dirty: Option<bool>,
}

/// A question for a project's status.
#[derive(Debug)]
pub struct GitStatusRequest<'a> {
    pub root: &'a WorkspaceRoot,
    pub git: Option<GitProgram>,
    /// What the user ignores in all repositories, in the form of `.gitignore`.
    pub user_ignores: Option<&'a Path>,
    /// With more files than this, it is not known whether something changed.
    pub max_files: usize,
}

/// What `HEAD` says.
#[derive(Debug, PartialEq, Eq)]
enum GitHead {
    /// The whole name of a reference.
    Branch(String),
    Commit(ObjectId),
}

impl GitStatusRequest<'_> {
    /// None if the project is in no repository, or nobody can say where that is.
    pub fn answer(self) -> Option<GitStatus> {
        let GitStatusRequest { root, git, user_ignores, max_files } = self;
        let folder = git_folder(root.repository()?)?;
        let mut git = git.and_then(|program| GitRepository::open(root, program));
        let is_table = folder.join("reftable").is_dir();
        let head = match &git {
            Some(git) if is_table => GitHead::Branch(format!("refs/heads/{}", git.current_branch().ok()?)),
            _ => read_head(&folder)?,
        };
        let branch = match &head {
            GitHead::Branch(reference) => shown(reference)?,
            GitHead::Commit(commit) => {
                let short: String = commit.to_string().chars().take(SHORT_ID_CHARS).collect();
                format!("{short} (detached)")
            }
        };
        let user_ignores = user_ignores.map_or_else(Gitignore::empty, read_list);
        let is_unborn = !is_table && is_unborn(&head, &folder);
        let is_dirty = git
            .as_mut()
            .and_then(|git| StatusScan { root, user_ignores, max_files }.is_dirty(git, is_unborn));
        Some(GitStatus { branch, is_dirty })
    }
}

fn read_head(git_folder: &Path) -> Option<GitHead> {
    let files = RootFiles::new(git_folder);
    let stat = files.stat("HEAD").ok()??;
    let FileReadOutcome::Read(stat, bytes) = files.read("HEAD", &stat, MAX_HEAD_BYTES) else { return None };
    let text = String::from_utf8(bytes).ok()?;
    // In old repositories it is a link.
    if stat.kind() == PathKind::Link {
        return Some(GitHead::Branch(text));
    }
    let line = text.lines().next()?.trim();
    match line.strip_prefix("ref:") {
        Some(reference) => Some(GitHead::Branch(reference.trim().to_owned())),
        None => ObjectId::parse(line).map(GitHead::Commit),
    }
}

/// The name of a branch, if git could have made it, as it can be shown.
fn shown(reference: &str) -> Option<String> {
    let name = reference.strip_prefix("refs/")?;
    let name = name.strip_prefix("heads/").unwrap_or(name);
    let is_bad = |letter: char| is_hidden(letter) || letter.is_whitespace() || "~^:?*[\\".contains(letter);
    let is_good_part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    if name.contains(is_bad)
        || name.contains("..")
        || name.contains("@{")
        || !name.split('/').all(is_good_part)
    {
        return None;
    }
    let is_long = name.chars().count() > MAX_BRANCH_CHARS;
    let end = if is_long { "…" } else { "" };
    Some(name.chars().take(MAX_BRANCH_CHARS).chain(end.chars()).collect())
}

/// Whether nothing was ever committed on the branch.
fn is_unborn(head: &GitHead, git_folder: &Path) -> bool {
    let GitHead::Branch(reference) = head else { return false };
    let common = common_folder(git_folder);
    if shown(reference).is_none() || common.join(reference).symlink_metadata().is_ok() {
        return false;
    }
    let Ok(packed) = open_file(&common.join("packed-refs")) else { return true };
    let lines = BufReader::new(packed.take(MAX_PACKED_REFS_BYTES)).split(b'\n');
    let is_it = |line: &[u8]| line.strip_suffix(reference.as_bytes()).is_some_and(|id| id.ends_with(b" "));
    !lines.map_while(Result::ok).any(|line| is_it(&line))
}

/// A look for what is not committed.
struct StatusScan<'a> {
    root: &'a WorkspaceRoot,
    user_ignores: Gitignore,
    max_files: usize,
}

/// A file that only its content can tell about.
struct UnsureFile {
    path: String,
    stat: FileStat,
    object: ObjectId,
}

impl StatusScan<'_> {
    fn is_dirty(&self, git: &mut GitRepository, is_unborn: bool) -> Option<bool> {
        git.read_tracked().ok()?;
        let tracked = git.tracked();
        let is_staged = tracked.has_conflicts() || (is_unborn && tracked.count() > 0);
        if is_staged || (!is_unborn && git.has_staged().ok()?) {
            return Some(true);
        }
        let files = RootFiles::new(self.root.folder());
        let (walk, found) = self.look(&files, tracked)?;
        let mut met = HashSet::new();
        let mut unsure = Vec::new();
        for found in &found {
            match tracked.status_of(&found.path, &found.stat) {
                TrackedStatus::Same => {}
                TrackedStatus::Changed => return Some(true),
                TrackedStatus::Unsure(object) => {
                    unsure.push(UnsureFile { path: found.path.clone(), stat: found.stat, object });
                }
                TrackedStatus::NotTracked if self.is_untracked(found, &walk, tracked) => return Some(true),
                TrackedStatus::NotTracked => continue,
            }
            met.insert(found.path.as_str());
        }
        for path in tracked.watched_paths().filter(|path| !met.contains(path.as_str())) {
            // It may be where the look did not lead.
            let Some(stat) = files.stat(&path).ok()? else { return Some(true) };
            match tracked.status_of(&path, &stat) {
                TrackedStatus::Changed => return Some(true),
                TrackedStatus::Unsure(object) => unsure.push(UnsureFile { path, stat, object }),
                TrackedStatus::Same | TrackedStatus::NotTracked => {}
            }
        }
        compare(&files, git, &unsure)
    }

    fn look(&self, files: &RootFiles, tracked: &TrackedFiles) -> Option<(WalkSummary, Vec<FoundFile>)> {
        let walker = FolderWalker { files, max_files: self.max_files };
        let (mut walk, mut found) = walker
            .walk(IgnoreRules::above(self.root), |finds| finds.into_iter().flatten().collect::<Vec<_>>())
            .ok()?;
        walker.add_tracked(&mut walk, tracked, |finds| found.extend(finds.into_iter().flatten())).ok()?;
        Some((walk, found))
    }

    /// Whether git would tell of a file that it does not track.
    fn is_untracked(&self, found: &FoundFile, walk: &WalkSummary, tracked: &TrackedFiles) -> bool {
        let is_of_submodule = || {
            let repository = folders_of(&found.path).find(|folder| walk.repositories.contains(*folder));
            repository.is_some_and(|folder| tracked.submodules().iter().any(|submodule| submodule == folder))
        };
        let is_ignored_by_user =
            || self.user_ignores.matched_path_or_any_parents(&found.path, false).is_ignore();
        let is_content = matches!(found.stat.kind(), PathKind::File | PathKind::Link);
        is_content && !found.is_ignored && !is_of_submodule() && !is_ignored_by_user()
    }
}

/// Whether one of the files differs from its object; none if that would take too long.
fn compare(files: &RootFiles, git: &GitRepository, unsure: &[UnsureFile]) -> Option<bool> {
    let bytes: u64 = unsure.iter().map(|file| file.stat.size).fold(0, u64::saturating_add);
    if unsure.len() > MAX_STATUS_FILES || bytes > MAX_STATUS_BYTES {
        return None;
    }
    let objects: Vec<ObjectId> = unsure.iter().map(|file| file.object).collect();
    let (mut files_left, mut is_changed) = (unsure.iter(), false);
    let loaded = git.load(&objects, MAX_STATUS_BYTES, |object| {
        let Some(UnsureFile { path, stat, .. }) = files_left.next() else { return };
        let is_same = match (object, files.read(path, stat, MAX_STATUS_BYTES)) {
            (GitObject::Bytes(object), FileReadOutcome::Read(_, file)) => object == file,
            _ => false,
        };
        is_changed |= !is_same;
    });
    loaded.ok().map(|()| is_changed)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_names_that_git_makes_are_shown() {
        assert_eq!(shown("refs/heads/main").as_deref(), Some("main"));
        assert_eq!(shown("refs/heads/feature/ä-1").as_deref(), Some("feature/ä-1"));
        assert_eq!(shown("refs/bisect/bad").as_deref(), Some("bisect/bad"));
        for bad in [
            "main",
            "refs/heads/",
            "refs/heads/.invalid",
            "refs/heads/a\u{1b}[31m",
            "refs/heads/a\nb",
            "refs/heads/a b",
            "refs/heads/../../x",
            "refs/heads/a\u{202e}b",
            "refs/heads/a\u{9b}b",
            "/etc/passwd",
            "",
        ] {
            assert_eq!(shown(bad), None, "{bad:?}");
        }
        assert_eq!(shown(&format!("refs/heads/{}", "x".repeat(300))).unwrap().chars().count(), 61);
    }

    #[test]
    fn whatever_head_is_it_is_read_or_left() {
        let folder = tempfile::tempdir().unwrap();
        let head = folder.path().join("HEAD");
        let read = |make: &dyn Fn()| {
            let _ = fs::remove_file(&head);
            let _ = fs::remove_dir(&head);
            make();
            read_head(folder.path())
        };
        let main = Some(GitHead::Branch("refs/heads/main".to_owned()));
        assert_eq!(read(&|| fs::write(&head, "ref: refs/heads/main\n").unwrap()), main);
        assert_eq!(read(&|| std::os::unix::fs::symlink("refs/heads/main", &head).unwrap()), main);
        assert!(matches!(read(&|| fs::write(&head, "ab".repeat(20)).unwrap()), Some(GitHead::Commit(_))));
        assert_eq!(read(&|| fs::write(&head, "nonsense").unwrap()), None);
        assert_eq!(read(&|| fs::write(&head, b"ref: \xff\xfe").unwrap()), None);
        assert_eq!(read(&|| fs::File::create(&head).unwrap().set_len(1 << 40).unwrap()), None);
        assert_eq!(read(&|| fs::create_dir(&head).unwrap()), None);
        assert_eq!(
            read(&|| rustix::fs::mkfifoat(rustix::fs::CWD, &head, 0o600.into()).unwrap()),
            None,
            "a pipe is not waited for"
        );
    }
}
