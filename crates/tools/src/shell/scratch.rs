//! Folders for temporary files, which are gone when nobody needs them any more, also after a kill.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::ToolFailure;

const PREFIX: &str = "helve-";
/// A folder that is so young may be about to be locked.
const YOUNG: Duration = Duration::from_secs(60);
/// So many are looked at.
const MOST: usize = 1_000;

/// A folder of this process. It is locked as long as the process lives, so that others know.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: TempDir,
    _lock: Option<File>,
}

impl Scratch {
    pub(crate) fn new(temporary: &Path) -> Result<Scratch, ToolFailure> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(temporary).map_err(|error| {
            let place = temporary.display();
            ToolFailure(format!("The command was not run: no folder can be made in {place}: {error}."))
        })?;
        let lock = File::open(folder.path()).ok().filter(|lock| lock.try_lock().is_ok());
        Ok(Scratch { folder, _lock: lock })
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
        let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
        for entry in ours.take(MOST) {
            let _ = remove_if_left(&entry.path());
        }
    });
}

fn remove_if_left(path: &Path) -> io::Result<()> {
    let facts = fs::symlink_metadata(path)?;
    let is_old = facts.modified()?.elapsed().is_ok_and(|age| age > YOUNG);
    if !facts.is_dir() || facts.uid() != rustix::process::geteuid().as_raw() || !is_old {
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
    use std::fs::FileTimes;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn what_the_dead_left_is_removed_and_nothing_else() {
        let base = tempfile::tempdir().unwrap();
        let old = |path: &Path| {
            let hour_ago = SystemTime::UNIX_EPOCH;
            File::open(path).unwrap().set_times(FileTimes::new().set_modified(hour_ago)).unwrap();
        };
        let living = Scratch::new(base.path()).unwrap();
        let dead = Scratch::new(base.path()).unwrap().folder.keep();
        let young = Scratch::new(base.path()).unwrap().folder.keep();
        fs::write(dead.join("left"), "x").unwrap();
        [living.path(), &dead].into_iter().for_each(old);
        for path in [living.path(), &dead, &young] {
            remove_if_left(path).unwrap();
        }
        assert!(living.path().exists() && young.exists() && !dead.exists());
    }
}
