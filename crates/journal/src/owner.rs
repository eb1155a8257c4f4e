//! Who has a session open, for others to see without disturbing them.
//!
//! What keeps two processes from writing one session is the lock of its log. An owner also signs: it locks a file by the
//! session's name in a folder for all. Whoever lists sessions looks into that folder only, and tries for a moment to
//! share each lock there: nobody who opens a session ever meets them at the log.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use helve_protocol::SessionId;

use crate::disk::{self, LockedFile, PRIVATE_FOLDER_MODE};
use crate::error::JournalIoExt;
use crate::{JournalError, JournalResult};

/// Below the folder of all sessions.
const OWNER_FILES_FOLDER: &str = ".open";

/// Who lists holds the lock for microseconds; who was stopped while listing does not keep us for longer than this.
const MAX_OWNER_LOCK_TRIES: u32 = 100;
const OWNER_LOCK_INTERVAL: Duration = Duration::from_millis(1);

/// Whether a process has a session open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnerStatus {
    Alive,
    Nobody,
}

/// The file that says who owns a session: to people by the number of the process, to other processes by a lock that ends
/// with it at the latest. Made and dropped under the lock of the log.
#[derive(Debug)]
pub(crate) struct OwnerLockFile {
    file: LockedFile,
    path: PathBuf,
}

pub(crate) fn owner_file_path(sessions: &Path, session: SessionId) -> PathBuf {
    sessions.join(OWNER_FILES_FOLDER).join(session.to_string())
}

impl OwnerLockFile {
    /// Without it the session is only listed as if nobody owned it.
    pub(crate) fn new(path: PathBuf) -> Option<OwnerLockFile> {
        match write_owner_file(&path) {
            Ok(file) => Some(OwnerLockFile { file, path }),
            Err(error) => {
                tracing::warn!(name: "owner.not_signed", %error);
                None
            }
        }
    }
}

fn write_owner_file(path: &Path) -> JournalResult<LockedFile> {
    if let Some(folder) = path.parent().filter(|folder| !folder.exists()) {
        DirBuilder::new().recursive(true).mode(PRIVATE_FOLDER_MODE).create(folder).at(folder)?;
    }
    let mut file = lock(path)?;
    let pid = std::process::id().to_string();
    file.set_len(0).and_then(|()| file.write_all(pid.as_bytes())).at(path)?;
    Ok(file)
}

fn lock(path: &Path) -> JournalResult<LockedFile> {
    for _ in 0..MAX_OWNER_LOCK_TRIES {
        match LockedFile::try_lock_exclusive(disk::open_or_create(path)?) {
            Ok(locked) => return Ok(locked),
            Err(TryLockError::WouldBlock) => std::thread::sleep(OWNER_LOCK_INTERVAL),
            Err(TryLockError::Error(error)) => return Err(JournalError::io(path, error)),
        }
    }
    Err(JournalError::io(path, io::ErrorKind::TimedOut.into()))
}

impl Drop for OwnerLockFile {
    /// So a list has only those to look at that are open, and the few that were killed.
    fn drop(&mut self) {
        if disk::is_same_file(&self.file, &self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The sessions that somebody owns.
pub(crate) fn sessions_with_owner(sessions: &Path) -> HashSet<SessionId> {
    let Ok(signatures) = fs::read_dir(sessions.join(OWNER_FILES_FOLDER)) else { return HashSet::new() };
    let names = signatures.flatten().map(|entry| entry.file_name());
    let signed = names.filter_map(|name| name.to_str()?.parse().ok());
    signed.filter(|session| owner_status(sessions, *session) == OwnerStatus::Alive).collect()
}

pub(crate) fn owner_status(sessions: &Path, session: SessionId) -> OwnerStatus {
    let Ok(file) = disk::open_file(&owner_file_path(sessions, session), OpenOptions::new().read(true)) else {
        return OwnerStatus::Nobody;
    };
    match LockedFile::try_lock_shared(file) {
        Err(TryLockError::WouldBlock) => OwnerStatus::Alive,
        _ => OwnerStatus::Nobody,
    }
}

/// What the owner wrote down of itself, for messages to people.
pub(crate) fn owner_pid(path: &Path) -> Option<u32> {
    let mut pid = String::new();
    let file = disk::open_file(path, OpenOptions::new().read(true)).ok()?;
    file.take(20).read_to_string(&mut pid).ok()?;
    pid.trim().parse().ok()
}
