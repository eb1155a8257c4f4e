//! Which folder is worked on.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::error::{PathContext, WorkspaceError, WorkspaceResult};

/// A `.git` file or a `commondir` file is one line.
const MAX_POINTER_BYTES: u64 = 8 * 1024;

/// The folder that is worked on, and the repository that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceRoot {
    folder: PathBuf,
    repository: Option<PathBuf>,
}

impl WorkspaceRoot {
    /// The folder that the user named, whatever it is.
    pub fn named(folder: &Path) -> WorkspaceResult<WorkspaceRoot> {
        let folder = real_folder(folder)?;
        let repository = repository_of(&folder).map(Path::to_owned);
        Ok(WorkspaceRoot { folder, repository })
    }

    /// The same, if it is not too wide to be meant by accident.
    pub fn refuse_too_wide(self, home: Option<&Path>) -> WorkspaceResult<WorkspaceRoot> {
        let home = home.and_then(|home| home.canonicalize().ok());
        if self.folder.parent().is_none() {
            return Err(WorkspaceError::FileSystemRoot(self.folder));
        }
        if is_too_wide(&self.folder, home.as_deref()) {
            return Err(WorkspaceError::Home(self.folder));
        }
        Ok(self)
    }

    /// The folder, without links.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The top of the git repository that the folder is in or is itself.
    pub fn repository(&self) -> Option<&Path> {
        self.repository.as_deref()
    }
}

fn real_folder(folder: &Path) -> WorkspaceResult<PathBuf> {
    let real = folder.canonicalize().at(folder)?;
    if real.is_dir() { Ok(real) } else { Err(WorkspaceError::NotAFolder(real)) }
}

/// Whether the folder holds everything of the machine or of the user.
fn is_too_wide(folder: &Path, home: Option<&Path>) -> bool {
    folder.parent().is_none() || home.is_some_and(|home| home.starts_with(folder))
}

fn repository_of(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| git_folder(folder).is_some())
}

/// Where git keeps what it knows of a working tree: the folder `.git`, or the one that a file `.git` names (linked
/// worktrees, submodules).
pub(crate) fn git_folder(tree: &Path) -> Option<PathBuf> {
    let dot_git = tree.join(".git");
    if dot_git.is_dir() {
        return dot_git.join("HEAD").symlink_metadata().is_ok().then_some(dot_git);
    }
    let pointer = read_line(&dot_git)?;
    let named = tree.join(pointer.strip_prefix("gitdir:")?.trim());
    named.is_dir().then_some(named)
}

/// What linked worktrees share, such as `info/exclude`.
pub(crate) fn common_folder(git_folder: &Path) -> PathBuf {
    read_line(&git_folder.join("commondir"))
        .map_or_else(|| git_folder.to_owned(), |line| git_folder.join(line))
}

/// Opens a file, and nothing else: a pipe by its name would let us wait for ever.
pub(crate) fn open_file(path: &Path) -> io::Result<fs::File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other(format!("{} is not a file", path.display()))),
    }
}

fn read_line(path: &Path) -> Option<String> {
    let mut text = String::new();
    open_file(path).ok()?.take(MAX_POINTER_BYTES).read_to_string(&mut text).ok()?;
    text.lines().next().map(|line| line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(base: &Path, path: &str) -> PathBuf {
        let folder = base.join(path);
        fs::create_dir_all(&folder).unwrap();
        folder.canonicalize().unwrap()
    }

    fn repository(base: &Path, path: &str) -> PathBuf {
        let top = folder(base, path);
        fs::create_dir_all(top.join(".git")).unwrap();
        fs::write(top.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        top
    }

    #[test]
    fn a_folder_knows_the_repository_that_it_is_in() {
        let base = tempfile::tempdir().unwrap();
        let top = repository(base.path(), "project");
        let inner = folder(&top, "src/deep");
        let root = WorkspaceRoot::named(&inner).unwrap();
        assert_eq!((root.folder(), root.repository()), (inner.as_path(), Some(top.as_path())));
    }

    #[test]
    fn home_what_is_above_it_and_the_root_of_all_are_refused_unasked() {
        let base = tempfile::tempdir().unwrap();
        let home = folder(base.path(), "home/me");
        let find =
            |start: &Path| WorkspaceRoot::named(start).unwrap().refuse_too_wide(Some(&home)).unwrap_err();
        assert!(matches!(find(&home), WorkspaceError::Home(_)));
        assert!(matches!(find(home.parent().unwrap()), WorkspaceError::Home(_)));
        assert!(matches!(find(Path::new("/")), WorkspaceError::FileSystemRoot(_)));
        assert!(find(&home).hint().contains("--cwd"));
        assert_eq!(WorkspaceRoot::named(&home).unwrap().folder(), home);
    }

    #[test]
    fn a_linked_worktree_is_a_repository_and_an_empty_git_folder_is_not() {
        let base = tempfile::tempdir().unwrap();
        let top = repository(base.path(), "top");
        let linked = folder(base.path(), "linked");
        let store = folder(&top, ".git/worktrees/linked");
        fs::write(store.join("commondir"), "../..\n").unwrap();
        fs::write(linked.join(".git"), format!("gitdir: {}\n", store.display())).unwrap();
        assert_eq!(WorkspaceRoot::named(&linked).unwrap().repository(), Some(linked.as_path()));
        assert_eq!(common_folder(&store).canonicalize().unwrap(), top.join(".git"));

        let empty = folder(base.path(), "empty");
        folder(&empty, ".git");
        assert_eq!(WorkspaceRoot::named(&empty).unwrap().repository(), None);
    }

    #[test]
    fn what_is_not_a_folder_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let file = base.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(matches!(WorkspaceRoot::named(&file), Err(WorkspaceError::NotAFolder(_))));
        assert!(matches!(WorkspaceRoot::named(&base.path().join("none")), Err(WorkspaceError::Disk { .. })));
    }
}
