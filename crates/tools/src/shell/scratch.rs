//! Folders for temporary files, which are gone when nobody needs them any more, also after a kill.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;

use tempfile::TempDir;

use crate::ToolFailure;

/// Whatever has such a name is swept, so nobody else may call anything so.
const SCRATCH_FOLDER_PREFIX: &str = ".helve-scratch-";
/// So many are looked at.
const MAX_SWEPT_FOLDERS: usize = 1_000;
const SCRATCH_FOLDER_ATTEMPTS: usize = 5;

/// A folder of this process. It is locked as long as the process lives, so that others know.
#[derive(Debug)]
pub(crate) struct ScratchFolder {
    folder: TempDir,
    _lock: Option<File>,
}

impl ScratchFolder {
    pub(crate) fn new(temporary: &Path) -> Result<ScratchFolder, ToolFailure> {
        let cannot = |error: io::Error| {
            let place = temporary.display();
            ToolFailure(format!("The command was not run: no folder can be made in {place}: {error}."))
        };
        for _ in 0..SCRATCH_FOLDER_ATTEMPTS {
            let folder = tempfile::Builder::new()
                .prefix(SCRATCH_FOLDER_PREFIX)
                .tempdir_in(temporary)
                .map_err(cannot)?;
            // Whoever sweeps may have come between: then it is theirs, or gone.
            let Ok(lock) = File::open(folder.path()) else { continue };
            match lock.try_lock() {
                Ok(()) if folder.path().exists() => return Ok(ScratchFolder { folder, _lock: Some(lock) }),
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                // Where nothing can be locked, nothing is swept.
                Err(TryLockError::Error(_)) => return Ok(ScratchFolder { folder, _lock: None }),
            }
        }
        Err(cannot(io::Error::other("others take each away")))
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes what processes left that were killed. Nobody waits for it.
pub(crate) fn sweep(temporary: &Path) {
    let temporary = temporary.to_owned();
    let _ = thread::Builder::new().name("sweep".to_owned()).spawn(move || {
        let entries = fs::read_dir(temporary).into_iter().flatten().flatten();
        let ours =
            entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(SCRATCH_FOLDER_PREFIX));
        for entry in ours.take(MAX_SWEPT_FOLDERS) {
            let _ = remove_if_left(&entry.path());
        }
    });
}

fn remove_if_left(path: &Path) -> io::Result<()> {
    let facts = fs::symlink_metadata(path)?;
    if !facts.is_dir() || facts.uid() != rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let folder = File::open(path)?;
    match folder.try_lock() {
        Ok(()) => fs::remove_dir_all(path),
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_dead_left_is_removed_and_nothing_else() {
        let base = tempfile::tempdir().unwrap();
        let living = ScratchFolder::new(base.path()).unwrap();
        let dead = ScratchFolder::new(base.path()).unwrap().folder.keep();
        fs::write(dead.join("left"), "x").unwrap();
        for path in [living.path(), &dead] {
            remove_if_left(path).unwrap();
        }
        assert!(living.path().exists() && !dead.exists());
    }

    #[test]
    fn what_others_call_by_our_name_is_theirs() {
        let base = tempfile::tempdir().unwrap();
        let theirs = base.path().join("helve-clone");
        fs::create_dir(&theirs).unwrap();
        let dead = ScratchFolder::new(base.path()).unwrap().folder.keep();
        sweep(base.path());
        while dead.exists() {
            thread::yield_now();
        }
        assert!(theirs.exists());
    }

    #[test]
    fn who_sweeps_and_who_makes_do_not_disturb_each_other() {
        let base = tempfile::tempdir().unwrap();
        thread::scope(|scope| {
            let sweeper = scope.spawn(|| {
                for _ in 0..200 {
                    for entry in fs::read_dir(base.path()).unwrap().flatten() {
                        let _ = remove_if_left(&entry.path());
                    }
                }
            });
            while !sweeper.is_finished() {
                let made = ScratchFolder::new(base.path());
                assert!(made.is_err() || made.is_ok_and(|made| made.path().exists()));
            }
        });
    }
}
