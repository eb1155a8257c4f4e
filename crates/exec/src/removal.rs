//! Removing what commands left, whatever permissions they gave it.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Removes a folder of ours with all that is in it, also where it can't be listed or changed: commands and overlays make
/// such folders. Links in it are removed and not followed. To be called only while no command can write there.
pub fn remove_tree(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(folder)?;
            fs::remove_dir_all(folder)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Gives the user all rights to a folder and those in it.
fn open_up(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_folders_are_removed_and_links_are_not_followed() {
        let base = tempfile::tempdir().unwrap();
        let path = |name: &str| base.path().join(name);
        fs::create_dir_all(path("tree/closed/deep")).unwrap();
        fs::create_dir(path("other")).unwrap();
        fs::write(path("other/file"), "").unwrap();
        std::os::unix::fs::symlink(path("other"), path("tree/link")).unwrap();
        for name in ["tree/closed/deep", "tree/closed"] {
            fs::set_permissions(path(name), fs::Permissions::from_mode(0o000)).unwrap();
        }
        remove_tree(&path("tree")).unwrap();
        assert!(!path("tree").exists() && path("other/file").exists());
        remove_tree(&path("absent")).unwrap();
    }
}
