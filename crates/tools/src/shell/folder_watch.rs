//! Which folders were changed since they were last looked at, as the system tells it.
//!
//! To ask each of five thousand folders for its times takes longer than most commands. So the system is asked to tell, where
//! it can: not for folders on other machines, nor for more of them than one program should have.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

/// All programs of a user share what the system allows; this is our part of it.
const WATCH_LIMIT_SHARE: usize = 4;
const MAX_WATCHES: usize = 50_000;
const WATCH_LIMIT_PATH: &str = "/proc/sys/fs/inotify/max_user_watches";
/// If so many folders came or went, looking at all of them is faster than finding out which are still there.
const MAX_MOVED_FOLDERS: usize = 64;
const WATCH_BUFFER_BYTES: usize = 64 << 10;

/// File systems of this machine, on which nothing changes without the system's knowledge: ext4, XFS, Btrfs, F2FS, tmpfs, overlay,
/// bcachefs, ZFS.
const LOCAL_FILE_SYSTEMS: [u64; 8] =
    [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994, 0x794c_7630, 0xca45_1a4e, 0x2fc1_2fc1];

/// Folders that the system watches.
#[derive(Debug)]
pub(crate) struct FolderWatch {
    queue: OwnedFd,
    paths: HashMap<i32, PathBuf>,
    limit: usize,
}

/// What happened since the last time.
#[derive(Debug, Default)]
pub(crate) struct FolderChanges {
    /// Folders in which something came or went, or whose rights were changed.
    pub(crate) folders: HashSet<PathBuf>,
    /// Where a folder came or went: nothing is known any more of what is at these paths, and below.
    pub(crate) moved: HashSet<PathBuf>,
}

impl FolderWatch {
    /// `None` if the system can't.
    pub(crate) fn new() -> Option<FolderWatch> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        let limit: usize = fs::read_to_string(WATCH_LIMIT_PATH).ok()?.trim().parse().ok()?;
        Some(FolderWatch {
            queue,
            paths: HashMap::new(),
            limit: (limit / WATCH_LIMIT_SHARE).min(MAX_WATCHES),
        })
    }

    /// Watches a folder from now on. False if that can't be had.
    pub(crate) fn add(&mut self, folder: &Path) -> bool {
        let kinds = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ATTRIB
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW;
        if self.paths.len() >= self.limit {
            return false;
        }
        // A folder that was watched by another name has the same number as before.
        let Ok(number) = inotify::add_watch(&self.queue, folder, kinds) else { return false };
        self.paths.insert(number, folder.to_owned());
        true
    }

    /// What happened. `None` if it was too much, or something that nobody can tell.
    pub(crate) fn changes(&mut self) -> Option<FolderChanges> {
        let mut changes = FolderChanges::default();
        let mut is_all = true;
        let mut buffer = vec![MaybeUninit::uninit(); WATCH_BUFFER_BYTES];
        let mut events = Reader::new(&self.queue, &mut buffer);
        // To the end in any case: what is told once is not told again.
        while let Ok(event) = events.next() {
            let (what, number) = (event.events(), event.wd());
            if what.intersects(ReadFlags::QUEUE_OVERFLOW | ReadFlags::UNMOUNT) {
                is_all = false;
            } else if what.contains(ReadFlags::IGNORED) {
                self.paths.remove(&number);
            } else if let Some(folder) = self.paths.get(&number) {
                let inside = event.file_name().map(|name| folder.join(OsStr::from_bytes(name.to_bytes())));
                note(&mut changes, folder, inside, what);
            }
        }
        (is_all && changes.moved.len() <= MAX_MOVED_FOLDERS).then_some(changes)
    }
}

fn note(changes: &mut FolderChanges, folder: &Path, inside: Option<PathBuf>, what: ReadFlags) {
    let is_gone = what.intersects(ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF);
    match inside {
        // The rights of a file say nothing about the folder.
        Some(_) if what.contains(ReadFlags::ATTRIB) && !what.contains(ReadFlags::ISDIR) => return,
        Some(inside) if what.contains(ReadFlags::ISDIR) => {
            changes.moved.insert(inside);
        }
        None if is_gone => {
            changes.moved.insert(folder.to_owned());
        }
        _ => {}
    }
    if !changes.folders.contains(folder) {
        changes.folders.insert(folder.to_owned());
    }
}

/// Whether all that changes in a folder is known to the system.
pub(crate) fn is_local(folder: &Path) -> bool {
    let kind = rustix::fs::statfs(folder).map(|facts| facts.f_type);
    kind.is_ok_and(|kind| {
        LOCAL_FILE_SYSTEMS.iter().any(|local| u64::try_from(kind).is_ok_and(|kind| kind == *local))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with two others in it, all watched.
    fn watched() -> (tempfile::TempDir, FolderWatch) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        let mut watch = FolderWatch::new().unwrap();
        for path in ["", "a", "a/b"] {
            assert!(watch.add(&folder.path().join(path)));
        }
        (folder, watch)
    }

    fn set(root: &Path, names: &[&str]) -> HashSet<PathBuf> {
        // A path joined with nothing has a slash at its end, but is the same.
        names.iter().map(|name| root.join(name)).collect()
    }

    #[test]
    fn only_what_changed_is_told_and_only_once() {
        let (folder, mut watch) = watched();
        let root = folder.path();
        assert!(watch.changes().unwrap().folders.is_empty());
        fs::write(root.join("a/b/new"), "").unwrap();
        let changes = watch.changes().unwrap();
        assert_eq!((changes.folders, changes.moved), (set(root, &["a/b"]), HashSet::new()));
        fs::write(root.join("a/b/new"), "written").unwrap();
        assert!(watch.changes().unwrap().folders.is_empty(), "a file that is written changes no folder");
    }

    #[test]
    fn a_folder_that_moves_is_told_and_is_watched_by_its_new_name() {
        let (folder, mut watch) = watched();
        let root = folder.path();
        fs::rename(root.join("a"), root.join("c")).unwrap();
        let changes = watch.changes().unwrap();
        assert_eq!(changes.moved, set(root, &["a", "c"]));
        assert!(watch.add(&root.join("c")));
        fs::remove_dir(root.join("c/b")).unwrap();
        let changes = watch.changes().unwrap();
        assert!(changes.folders.contains(&root.join("c")) && changes.moved.contains(&root.join("c/b")));
    }

    #[test]
    fn too_much_is_not_told_in_part() {
        let (folder, mut watch) = watched();
        for number in 0..=MAX_MOVED_FOLDERS {
            fs::create_dir(folder.path().join(format!("a/{number}"))).unwrap();
        }
        assert!(watch.changes().is_none());
        assert!(watch.changes().is_some_and(|changes| changes.folders.is_empty()));
    }

    #[test]
    fn no_more_is_watched_than_is_our_part() {
        let (folder, mut watch) = watched();
        watch.limit = 3;
        fs::create_dir(folder.path().join("d")).unwrap();
        assert!(!watch.add(&folder.path().join("d")));
        assert!(!watch.add(&folder.path().join("absent")));
    }

    #[test]
    fn what_other_machines_have_is_not_local() {
        assert!(is_local(tempfile::tempdir().unwrap().path()));
        assert!(!is_local(Path::new("/proc")) && !is_local(Path::new("/absent")));
    }
}
