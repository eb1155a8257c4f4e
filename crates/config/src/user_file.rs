//! Files of the user's own that several processes may change: replaced whole, under a lock, and for nobody else's eyes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Held until the file is dropped. The lock is on a file of its own, because the file itself is replaced.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    let lock = beside(path, ".lock");
    if fs::symlink_metadata(&lock).is_ok_and(|lock| !lock.is_file()) {
        return Err(io::Error::other("its lock is not a file"));
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let file = private(OpenOptions::new().create(true).truncate(false).write(true)).open(lock)?;
    file.lock()?;
    Ok(file)
}

/// Whoever reads `path` finds either the old text or the new one, whatever happens. Only called under the
/// lock.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = beside(path, ".new");
    // What a killed process may have left.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = private(OpenOptions::new().create_new(true).write(true)).open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync_folder(path)
}

/// Only the user may read it, and above all write it.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// A rename is only sure to last once its folder is on the disk. Only Unix can be asked for that.
fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent().filter(|_| cfg!(unix)) {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}
