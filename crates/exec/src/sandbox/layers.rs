//! Folders of the user that a command sees as they are and changes only for its project: an overlay, whose upper layer is
//! the project's.
//!
//! One layer must not be in two overlays at once. The first command that wants it locks it for as long as it lives;
//! whoever comes meanwhile sees what is in it, and gets a layer that is thrown away with the command.

use std::ffi::CString;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string,
    fsmount, fsopen,
};
use rustix::process::getpid;

use super::mount_aliases::mount_points;
use crate::confinement::PrivateLayers;
use crate::removal::remove_tree;

/// What was changed by commands before.
const KEPT_LAYER_FOLDER: &str = "kept";
/// What is changed by one command, and forgotten.
const ONCE_LAYER_PREFIX: &str = "once-";
const UPPER_FOLDER: &str = "upper";
const WORK_FOLDER: &str = "work";
const EMPTY_FOLDER: &str = "empty";
/// Folders in which nothing of the user's is seen.
const OWN_FOLDERS_FOLDER: &str = "own";

/// A layer in use. It is free again, or gone, when this is dropped.
#[derive(Debug)]
pub(crate) struct LayerLock {
    /// Where the changes go.
    folder: PathBuf,
    /// Changes of others that are seen, too.
    below: Option<PathBuf>,
    _lock: File,
}

/// An overlay that is nowhere yet, and the folder that it is over.
pub(super) struct OverlayMount {
    pub(super) over: PathBuf,
    pub(super) mount: OwnedFd,
}

impl LayerLock {
    /// Takes the project's layer if nobody has it, else one for this process alone.
    pub(super) fn take(layers: &PrivateLayers) -> io::Result<LayerLock> {
        make(&layers.folder)?;
        for path in &layers.own {
            make(&own_folder(layers, path))?;
        }
        let kept = layers.folder.join(KEPT_LAYER_FOLDER);
        make(&kept)?;
        let lock = open_lock(&layers.folder.join("lock"))?;
        match lock.try_lock() {
            Ok(()) if layers.is_kept => return Ok(LayerLock { folder: kept, below: None, _lock: lock }),
            Ok(()) | Err(TryLockError::WouldBlock) => drop(lock),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let folder = layers.folder.join(format!("{ONCE_LAYER_PREFIX}{}", getpid().as_raw_pid()));
        // A process of this number that was killed may have left it.
        remove_tree(&folder)?;
        make(&folder)?;
        let lock = open_lock(&folder.join("lock"))?;
        lock.lock()?;
        Ok(LayerLock { folder, below: Some(kept), _lock: lock })
    }

    /// The overlays from which the project's folders are taken. To be called in the namespaces of the command.
    pub(super) fn overlays(&self, layers: &PrivateLayers) -> io::Result<Vec<OverlayMount>> {
        let mut overlays: Vec<OverlayMount> = Vec::new();
        for path in &layers.over {
            let base = if path.starts_with(&layers.base) { &layers.base } else { path };
            // One folder can't be seen through two layers if the one is inside the other, as the changes of others are in the
            // home folder. So each folder then has an overlay of its own.
            let over = if self.below.is_some() { path } else { base };
            if overlays.iter().any(|overlay| overlay.over == *over) {
                continue;
            }
            let inside = path.strip_prefix(base).unwrap_or(Path::new(""));
            let below =
                self.below.as_ref().map(|below| below.join(name(base)).join(UPPER_FOLDER).join(inside));
            let lower: Vec<&Path> = below.iter().map(PathBuf::as_path).chain([over.as_path()]).collect();
            overlays.push(OverlayMount { over: over.clone(), mount: self.mount(&name(over), &lower)? });
        }
        Ok(overlays)
    }

    fn mount(&self, name: &str, lower: &[&Path]) -> io::Result<OwnedFd> {
        let own = self.folder.join(name);
        let work = own.join(WORK_FOLDER);
        make(&work)?;
        forget_last_mount(&work)?;
        make(&own.join(UPPER_FOLDER))?;
        let mut lower: Vec<OwnedFd> =
            lower.iter().filter(|path| path.is_dir()).map(|path| open(path)).collect::<io::Result<_>>()?;
        if lower.is_empty() {
            make(&own.join(EMPTY_FOLDER))?;
            lower.push(open(&own.join(EMPTY_FOLDER))?);
        }
        let own = open(&own)?;
        // By numbers of open files: paths could be too long, or hold signs that mean something in a list of paths.
        let named = |file: &OwnedFd| format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
        let lower: Vec<String> = lower.iter().map(named).collect();
        let overlay = fsopen(c"overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        let set = |name: &str, value: String| -> io::Result<()> {
            Ok(fsconfig_set_string(overlay.as_fd(), name, CString::new(value)?)?)
        };
        set("lowerdir", lower.join(":"))?;
        set("upperdir", format!("{}/{UPPER_FOLDER}", named(&own)))?;
        set("workdir", format!("{}/{WORK_FOLDER}", named(&own)))?;
        set("index", "off".to_owned())?;
        fsconfig_set_flag(overlay.as_fd(), c"userxattr")?;
        // Otherwise the whole file system is synced at the end of each command.
        fsconfig_set_flag(overlay.as_fd(), c"volatile")?;
        fsconfig_create(overlay.as_fd())?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        Ok(fsmount(overlay.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
    }
}

/// Makes a layer usable again. One that was mounted without syncing says so in its work folder, and the system would refuse it,
/// since it may have lost something in a power cut; it holds caches.
fn forget_last_mount(work: &Path) -> io::Result<()> {
    let mark = work.join("work/incompat/volatile");
    if !mark.exists() || (fs::remove_file(mark.join("dirty")).is_ok() && fs::remove_dir(&mark).is_ok()) {
        return Ok(());
    }
    remove_tree(work)?;
    make(work)
}

/// The same layers as far as overlays can be had: not over folders in which something is mounted. Those that can't are given
/// back: they can be read only.
pub(super) fn fit_to_mounts(layers: &PrivateLayers) -> io::Result<(PrivateLayers, Vec<PathBuf>)> {
    let mounts = mount_points()?;
    let has_mounts = |folder: &Path| mounts.iter().any(|at| at.starts_with(folder) && at != folder);
    let (mut fitted, mut others) = (PrivateLayers { over: Vec::new(), ..layers.clone() }, Vec::new());
    if has_mounts(&layers.base) {
        // Nothing is in there.
        fitted.base.clone_from(&layers.folder);
    }
    for path in &layers.over {
        if has_mounts(path) {
            others.push(path.clone());
        } else if path.is_dir() || path.starts_with(&fitted.base) {
            fitted.over.push(path.clone());
        } else {
            fitted.own.push(path.clone());
        }
    }
    Ok((fitted, others))
}

impl Drop for LayerLock {
    fn drop(&mut self) {
        if self.below.is_some() {
            let _ = remove_tree(&self.folder);
        }
    }
}

/// The folder that is seen at a path where nothing of the user's is seen.
pub(super) fn own_folder(layers: &PrivateLayers, path: &Path) -> PathBuf {
    layers.folder.join(OWN_FOLDERS_FOLDER).join(name(path))
}

/// A name that stands for a path.
fn name(path: &Path) -> String {
    let letter = |byte: &u8| match byte {
        b'/' => "+".to_owned(),
        byte if byte.is_ascii_alphanumeric() || b".-_".contains(byte) => char::from(*byte).to_string(),
        byte => format!("%{byte:02x}"),
    };
    let whole: String = path.as_os_str().as_encoded_bytes().iter().map(letter).collect();
    // Only the end of it, since names can't be long; what is cut off is told apart by a number.
    let start = whole.len().saturating_sub(100);
    let cut = whole.get(..start).unwrap_or_default();
    let number = cut.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    format!("{number:x}{}", whole.get(start..).unwrap_or_default())
}

fn open(folder: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(CWD, folder, flags, Mode::empty())?)
}

/// A folder for the user alone, and all around it.
fn make(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn open_lock(path: &Path) -> io::Result<File> {
    fs::OpenOptions::new().create(true).truncate(true).write(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_different_paths_differ() {
        let long = "x/".repeat(200);
        let paths = ["/home/u", "/home+u", "/home/u ", "/home/ü", &format!("/a{long}"), &format!("/b{long}")];
        let names: std::collections::BTreeSet<String> =
            paths.iter().map(|path| name(Path::new(path))).collect();
        assert_eq!(names.len(), paths.len());
        assert!(names.iter().all(|name| name.len() < 200 && !name.contains('/')));
    }

    #[test]
    fn whoever_comes_second_has_a_layer_that_is_thrown_away() {
        let base = tempfile::tempdir().unwrap();
        let layers = PrivateLayers {
            folder: base.path().join("private"),
            base: "/home/u".into(),
            over: Vec::new(),
            own: Vec::new(),
            is_kept: true,
        };
        let first = LayerLock::take(&layers).unwrap();
        let second = LayerLock::take(&layers).unwrap();
        assert!(first.below.is_none() && second.below == Some(first.folder.clone()));
        let (kept, once) = (first.folder.clone(), second.folder.clone());
        assert!(kept.exists() && once.exists());
        drop((first, second));
        assert!(kept.exists() && !once.exists());
        assert!(LayerLock::take(&layers).unwrap().below.is_none());
        let forgetful = LayerLock::take(&PrivateLayers { is_kept: false, ..layers }).unwrap();
        assert!(forgetful.below.is_some());
    }
}
