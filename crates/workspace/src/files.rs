//! How files below the root are reached: never through a link, and never by opening what is not a file.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, OFlags};
use rustix::io::Errno;

use crate::error::{WorkspaceError, WorkspaceResult};
use crate::resolved_path::{OpenedPath, READ_FILE_FLAGS, open_exactly, open_in};
use crate::stat::{FileStat, PathKind};

const READ_FOLDER_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What reading a path gave.
pub(crate) enum FileReadOutcome {
    /// The bytes of a file or the target of a link, with the stat that it had when reading began: what changes while
    /// it is read shows the next time.
    Read(FileStat, Vec<u8>),
    Gone,
    TooLarge,
    Special,
    Unreadable,
}

/// The files below a folder. Paths are relative to it, with `/`; an absolute one (a tool wrote outside) is taken as it is.
#[derive(Clone, Debug)]
pub(crate) struct RootFiles {
    root: PathBuf,
}

impl RootFiles {
    pub(crate) fn new(root: &Path) -> RootFiles {
        RootFiles { root: root.to_owned() }
    }

    pub(crate) fn is_whole_machine(&self) -> bool {
        self.root.parent().is_none()
    }

    pub(crate) fn absolute(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// A path as the index has it.
    pub(crate) fn key(&self, path: impl AsRef<Path>) -> WorkspaceResult<String> {
        let path = path.as_ref();
        let bad = || WorkspaceError::BadPath(path.to_string_lossy().into_owned());
        let inside = path.strip_prefix(&self.root).unwrap_or(path).to_str().ok_or_else(bad)?;
        let (start, names) = match inside.strip_prefix('/') {
            Some(names) => ("/", names),
            None => ("", inside),
        };
        let names: Vec<&str> = names.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
        let is_bad = names.is_empty() || names.iter().any(|name| *name == ".." || name.contains('\0'));
        if is_bad { Err(bad()) } else { Ok(format!("{start}{}", names.join("/"))) }
    }

    /// Opens the folder that a path is in, and gives the path's name in it.
    pub(crate) fn open_parent<'p>(&self, path: &'p str) -> io::Result<(OwnedFd, &'p str)> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok((self.open_folder(folder)?, name))
    }

    /// Opens a folder, unless a link is on the way: it would lead elsewhere.
    pub(crate) fn open_folder(&self, folder: &str) -> io::Result<OwnedFd> {
        open_exactly(&self.absolute(folder), READ_FOLDER_FLAGS)
    }

    /// What is there now; nothing if there is none, or a folder on the way is no folder any more.
    pub(crate) fn stat(&self, path: &str) -> io::Result<Option<FileStat>> {
        let look = self.open_parent(path).and_then(|(folder, name)| stat_in(&folder, name));
        match look {
            Ok(stat) => Ok(Some(stat)),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads a file or a link.
    pub(crate) fn read(&self, path: &str, stat: &FileStat, max_bytes: u64) -> FileReadOutcome {
        let read = match stat.kind() {
            PathKind::File => open_exactly(&self.absolute(path), READ_FILE_FLAGS)
                .and_then(|file| read_file(file, max_bytes)),
            PathKind::Link => self.open_parent(path).and_then(|(folder, name)| read_link(&folder, name)),
            PathKind::Folder | PathKind::Special => Ok(FileReadOutcome::Special),
        };
        read.unwrap_or_else(content_of_failure)
    }
}

/// Reads a file or a link in a folder that is open.
pub(crate) fn read_in(folder: &OwnedFd, name: &OsStr, stat: &FileStat, max_bytes: u64) -> FileReadOutcome {
    let read = match stat.kind() {
        PathKind::File => match open_in(folder, name) {
            Ok(OpenedPath::File(file)) => read_file(file.into(), max_bytes),
            Ok(_) => Ok(FileReadOutcome::Special),
            Err(error) => Err(error),
        },
        PathKind::Link => read_link(folder, name),
        PathKind::Folder | PathKind::Special => Ok(FileReadOutcome::Special),
    };
    read.unwrap_or_else(content_of_failure)
}

fn content_of_failure(error: io::Error) -> FileReadOutcome {
    if is_absence(&error) { FileReadOutcome::Gone } else { FileReadOutcome::Unreadable }
}

pub(crate) fn stat_in(folder: &OwnedFd, name: impl rustix::path::Arg) -> io::Result<FileStat> {
    Ok(fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?.into())
}

pub(crate) fn is_absence(error: &io::Error) -> bool {
    // A link where a folder was: what was below it is not there any more.
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}

fn read_file(file: OwnedFd, max_bytes: u64) -> io::Result<FileReadOutcome> {
    let file = std::fs::File::from(file);
    let stat = FileStat::from(fs::fstat(&file)?);
    if stat.kind() != PathKind::File {
        return Ok(FileReadOutcome::Special);
    }
    if stat.size > max_bytes {
        return Ok(FileReadOutcome::TooLarge);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(stat.size).unwrap_or(0).saturating_add(1));
    // It may grow while it is read.
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    let is_within = u64::try_from(bytes.len()).is_ok_and(|length| length <= max_bytes);
    Ok(if is_within { FileReadOutcome::Read(stat, bytes) } else { FileReadOutcome::TooLarge })
}

fn read_link(folder: &OwnedFd, name: impl rustix::path::Arg + Copy) -> io::Result<FileReadOutcome> {
    let stat = stat_in(folder, name)?;
    let target = fs::readlinkat(folder, name, Vec::new())?;
    Ok(FileReadOutcome::Read(stat, target.into_bytes()))
}

/// A name as a string, if it can be one; else one that is like it, and like no other.
pub(crate) fn name_of(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|_| {
        let mut like = String::new();
        for chunk in bytes.utf8_chunks() {
            like.push_str(chunk.valid());
            chunk.invalid().iter().for_each(|byte| like.push_str(&format!("\\x{byte:02x}")));
        }
        like
    })
}

pub(crate) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { [folder, "/", name].concat() }
}

/// The folders that a path is in, outermost first.
pub(crate) fn folders_of(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(at, _)| path.get(..at)).filter(|folder| !folder.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_are_relative_to_the_root_and_clean() {
        let files = RootFiles::new(Path::new("/project"));
        let key = |path: &str| files.key(path).ok();
        assert_eq!(key("/project/a/b").as_deref(), Some("a/b"));
        assert_eq!(key("./a//b/").as_deref(), Some("a/b"));
        assert_eq!(key("/etc/hosts").as_deref(), Some("/etc/hosts"));
        assert_eq!(key("/projects/a").as_deref(), Some("/projects/a"));
        for bad in ["", ".", "..", "a/../b", "/project", "/", "a\0b"] {
            assert_eq!(key(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn the_folders_of_a_path_come_outermost_first() {
        assert_eq!(folders_of("a/b/c").collect::<Vec<_>>(), ["a", "a/b"]);
        assert_eq!(folders_of("/a/b").collect::<Vec<_>>(), ["/a"]);
        assert_eq!(folders_of("a").count(), 0);
    }

    #[test]
    fn a_link_on_the_way_is_not_followed() {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir(base.path().join("real")).unwrap();
        std::fs::write(base.path().join("real/file"), "x").unwrap();
        std::os::unix::fs::symlink("real", base.path().join("link")).unwrap();
        let files = RootFiles::new(base.path());
        assert!(files.stat("real/file").unwrap().is_some());
        assert!(files.stat("link/file").unwrap().is_none());
        assert!(files.stat("link").unwrap().is_some());
    }

    proptest! {
        #[test]
        fn a_key_is_its_own_key_and_never_climbs(path in "[a./\\x00é]{0,12}") {
            let files = RootFiles::new(Path::new("/project"));
            if let Ok(key) = files.key(&path) {
                prop_assert_eq!(files.key(&key).ok(), Some(key.clone()));
                prop_assert!(key.split('/').all(|name| name != ".." && name != "."));
            }
        }
    }
}
