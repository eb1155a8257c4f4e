//! The few things that are done to the disk, each safe against the end of the machine.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::JournalResult;
use crate::error::JournalIoExt;

/// Sessions are private: they hold whatever the agent saw.
pub(crate) const PRIVATE_FOLDER_MODE: u32 = 0o700;
const PRIVATE_FILE_MODE: u32 = 0o600;

/// Makes a folder and those above it that are missing, and makes their names survive the end of the machine.
pub(crate) fn create_folder(path: &Path) -> JournalResult<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.exists()).collect();
    DirBuilder::new().recursive(true).mode(PRIVATE_FOLDER_MODE).create(path).at(path)?;
    missing.iter().filter_map(|folder| folder.parent()).try_for_each(sync_folder)
}

/// Opens a file, and nothing but a file: a pipe by its name would let us wait for ever.
pub(crate) fn open_file(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = options.custom_flags(nonblocking).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a file")) }
}

pub(crate) fn open_or_create(path: &Path) -> JournalResult<File> {
    open_file(path, OpenOptions::new().append(true).read(true).create(true).mode(PRIVATE_FILE_MODE)).at(path)
}

/// Creates a file that was not there, for writing at its end.
pub(crate) fn create_file(path: &Path) -> JournalResult<File> {
    OpenOptions::new().append(true).read(true).create_new(true).mode(PRIVATE_FILE_MODE).open(path).at(path)
}

/// A file with its lock. The lock is let go by hand: a process that is just being started has our files open too, and
/// would keep it until it has closed them.
#[derive(Debug)]
pub(crate) struct LockedFile(File);

impl LockedFile {
    pub(crate) fn wait_for(file: File) -> io::Result<LockedFile> {
        file.lock()?;
        Ok(LockedFile(file))
    }

    pub(crate) fn try_lock_exclusive(file: File) -> JournalResult<LockedFile, TryLockError> {
        file.try_lock()?;
        Ok(LockedFile(file))
    }

    pub(crate) fn try_lock_shared(file: File) -> JournalResult<LockedFile, TryLockError> {
        file.try_lock_shared()?;
        Ok(LockedFile(file))
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for LockedFile {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}

/// Makes the names in a folder survive the end of the machine.
pub(crate) fn sync_folder(path: &Path) -> JournalResult<()> {
    File::open(path).and_then(|folder| folder.sync_all()).at(path)
}

/// `None` if there is nothing by that name.
pub(crate) fn if_exists<T>(result: io::Result<T>, path: &Path) -> JournalResult<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some).at(path),
    }
}

pub(crate) fn remove_file_if_exists(path: &Path) -> JournalResult<()> {
    if_exists(fs::remove_file(path), path).map(|_| ())
}

/// A name that nothing in a folder has.
pub(crate) fn unused_name(folder: &Path, beginning: &str) -> PathBuf {
    let name = |n: u32| folder.join(format!("{beginning}{n}"));
    (1..).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(0))
}

/// Whether the path still leads to this very file.
pub(crate) fn is_same_file(file: &File, path: &Path) -> bool {
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let here = file.metadata().map(identity);
    let there = fs::metadata(path).map(identity);
    matches!((here, there), (Ok(here), Ok(there)) if here == there)
}
