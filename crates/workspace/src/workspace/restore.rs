//! Puts paths back to what they were: a file is there whole or not at all, and nothing is overwritten unseen.

use std::collections::HashSet;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{self, AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;

use super::Workspace;
use crate::effects::{PathSnapshot, WorkspaceEffects};
use crate::error::{PathContext, WorkspaceError, WorkspaceResult};
use crate::files::{RootFiles, folders_of, join};
use crate::stat::{FileMode, PathKind};

/// How many names are tried for the file that becomes the new one.
const MAX_TEMPORARY_NAMES: u32 = 100;
/// How deep folders without files may lie in each other to be removed.
const MAX_EMPTY_DEPTH: usize = 64;

/// When a path may be put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreGuard {
    /// Only if it is what was last seen there.
    IfUnchanged,
    /// Whatever is there now. It is kept first.
    Always,
}

impl Workspace {
    /// Puts a path back: to a file or a link, or to nothing. The mode is the image's; the owner stays, if there is a file.
    pub fn restore(
        &mut self,
        path: &str,
        image: Option<PathSnapshot>,
        guard: RestoreGuard,
    ) -> WorkspaceResult<WorkspaceEffects> {
        let key = self.files.key(path)?;
        self.check(&key, guard)?;
        let content = self.content_of(&key, image)?;
        let folder = match &content {
            None => open_parent(&self.files, &key)?,
            Some(_) => Some(make_parents(&self.files, &key)?),
        };
        let folder = folder.map(Arc::new);
        let writing = self.keep_before_writing(key.clone(), folder.clone())?;
        match (content, folder) {
            (None, Some(folder)) => remove(&self.files, &folder, &key)?,
            (Some((mode, content)), Some(folder)) => put(&folder, &key, mode, &content)?,
            (_, None) => {}
        }
        self.note_written(writing)
    }

    /// Puts many paths back, such as all that one call changed. All are checked before the first is touched; what has
    /// to go goes first, so that files and folders can change places.
    pub fn restore_all(
        &mut self,
        wanted: &[(String, Option<PathSnapshot>)],
        guard: RestoreGuard,
    ) -> WorkspaceResult<WorkspaceEffects> {
        let keyed = wanted.iter().map(|(path, image)| Ok((self.files.key(path)?, *image)));
        let mut wanted: Vec<(String, Option<PathSnapshot>)> = keyed.collect::<WorkspaceResult<_>>()?;
        wanted.sort_by(|(a, _), (b, _)| a.cmp(b));
        let (to_put, to_remove): (Vec<_>, Vec<_>) = wanted.iter().partition(|(_, image)| image.is_some());
        let going: HashSet<&str> = to_remove.iter().map(|(path, _)| path.as_str()).collect();
        for (path, image) in &wanted {
            self.check(path, guard)?;
            self.content_of(path, *image)?;
        }
        to_put.iter().try_for_each(|(path, _)| self.check_way(path, &going))?;
        let mut all = WorkspaceEffects::default();
        for (path, image) in to_remove.into_iter().rev().chain(to_put) {
            let effects = self.restore(path, *image, guard)?;
            all.changes.extend(effects.changes);
            all.not_recoverable.extend(effects.not_recoverable);
        }
        Ok(all)
    }

    /// Whether a path can be put, once those that are going have gone.
    fn check_way(&self, path: &str, going: &HashSet<&str>) -> WorkspaceResult<()> {
        for folder in folders_of(path).filter(|folder| !going.contains(folder)) {
            let stat = self.files.stat(folder).at(folder)?;
            if stat.is_some_and(|stat| stat.kind() != PathKind::Folder) {
                return Err(WorkspaceError::InTheWay(folder.to_owned()));
            }
        }
        match self.files.open_folder(path) {
            Ok(folder) if !has_only(&folder, path, going, MAX_EMPTY_DEPTH) => {
                Err(WorkspaceError::InTheWay(path.to_owned()))
            }
            _ => Ok(()),
        }
    }

    fn check(&self, key: &str, guard: RestoreGuard) -> WorkspaceResult<()> {
        let is_as_seen = || -> WorkspaceResult<bool> {
            let now = self.read_path(key)?;
            let last = self.index.entries.get(key);
            let is_unseen = last.is_none() && now.is_some();
            let has_ignored_changed = match (last, &now) {
                (Some(last), Some(now)) => last.is_ignored() && last.stat.may_differ_in_content(&now.stat),
                _ => false,
            };
            Ok(!is_unseen && !has_ignored_changed && self.difference_to_index(key, now.as_ref()).is_none())
        };
        match guard {
            RestoreGuard::Always => Ok(()),
            RestoreGuard::IfUnchanged if is_as_seen()? => Ok(()),
            RestoreGuard::IfUnchanged => Err(WorkspaceError::Changed(key.to_owned())),
        }
    }

    fn content_of(
        &self,
        key: &str,
        image: Option<PathSnapshot>,
    ) -> WorkspaceResult<Option<(FileMode, Vec<u8>)>> {
        let Some(PathSnapshot { mode, content }) = image else { return Ok(None) };
        let can_be_made = matches!(mode.kind(), PathKind::File | PathKind::Link);
        match content.filter(|_| can_be_made) {
            Some(blob) => Ok(Some((mode, self.blobs.get(blob)?))),
            None => Err(WorkspaceError::NotKept(key.to_owned())),
        }
    }
}

/// The folder that a path is in; none if there is none.
fn open_parent(files: &RootFiles, path: &str) -> WorkspaceResult<Option<OwnedFd>> {
    match files.open_parent(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(|(folder, _)| Some(folder)).at(path),
    }
}

/// Takes a file or a link away, and the folders that have nothing in them then.
fn remove(files: &RootFiles, folder: &OwnedFd, path: &str) -> WorkspaceResult<()> {
    match fs::unlinkat(folder, name_of(path), AtFlags::empty()) {
        // Nothing is there, or a folder: what was to go has gone.
        Ok(()) | Err(Errno::NOENT | Errno::ISDIR) => {}
        Err(error) => return Err(error).at(path),
    }
    fs::fsync(folder).at(path)?;
    remove_empty_parents(files, path);
    Ok(())
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn remove_empty_parents(files: &RootFiles, path: &str) {
    let folders: Vec<&str> = folders_of(path).filter(|_| !path.starts_with('/')).collect();
    for folder in folders.into_iter().rev() {
        let removed = files.open_parent(folder).and_then(|(parent, name)| {
            fs::unlinkat(&parent, name, AtFlags::REMOVEDIR)?;
            Ok(fs::fsync(&parent)?)
        });
        if removed.is_err() {
            return;
        }
    }
}

/// Makes a new file or link beside the path, and then gives it the name.
fn put(folder: &OwnedFd, path: &str, mode: FileMode, content: &[u8]) -> WorkspaceResult<()> {
    let name = name_of(path);
    clear_folder(folder, name, path)?;
    let new = match mode.kind() {
        PathKind::Link => new_link(folder, name, content),
        _ => new_file(folder, name, mode, content),
    };
    let new = new.at(path)?;
    let renamed = fs::renameat(folder, &new, folder, name);
    if renamed.is_err() {
        let _ = fs::unlinkat(folder, &new, AtFlags::empty());
    }
    renamed.at(path)?;
    fs::fsync(folder).at(path)
}

fn make_parents(files: &RootFiles, path: &str) -> WorkspaceResult<OwnedFd> {
    for folder in folders_of(path).filter(|_| !path.starts_with('/')) {
        let (parent, name) = files.open_parent(folder).at(folder)?;
        match fs::mkdirat(&parent, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => fs::fsync(&parent).at(folder)?,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error).at(folder),
        }
    }
    files.open_parent(path).map(|(folder, _)| folder).at(path)
}

/// Makes way where a folder is: it may go if there are no files in it.
fn clear_folder(parent: &OwnedFd, name: &str, path: &str) -> WorkspaceResult<()> {
    match fs::openat(parent, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(()),
        Err(error) => Err(error).at(path),
        Ok(folder) if has_only(&folder, path, &HashSet::new(), MAX_EMPTY_DEPTH) => {
            remove_folders(&folder, MAX_EMPTY_DEPTH).at(path)?;
            fs::unlinkat(parent, name, AtFlags::REMOVEDIR).at(path)
        }
        Ok(_) => Err(WorkspaceError::InTheWay(path.to_owned())),
    }
}

/// Whether there are no files in a folder and those within it, but these.
fn has_only(folder: &OwnedFd, path: &str, these: &HashSet<&str>, depth: usize) -> bool {
    let Ok(names) = names_in(folder) else { return false };
    names.iter().all(|name| {
        let inner_path = join(path, &name.to_string_lossy());
        let is_fine = |inner: OwnedFd| depth > 0 && has_only(&inner, &inner_path, these, depth - 1);
        these.contains(inner_path.as_str()) || open_inner(folder, name).is_ok_and(is_fine)
    })
}

fn remove_folders(folder: &OwnedFd, depth: usize) -> io::Result<()> {
    for name in names_in(folder)? {
        remove_folders(&open_inner(folder, &name)?, depth.saturating_sub(1))?;
        fs::unlinkat(folder, name.as_c_str(), AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

fn open_inner(folder: &OwnedFd, name: &std::ffi::CStr) -> io::Result<OwnedFd> {
    Ok(fs::openat(folder, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?)
}

fn names_in(folder: &OwnedFd) -> io::Result<Vec<std::ffi::CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_owned();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    Ok(names)
}

fn new_file(folder: &OwnedFd, name: &str, mode: FileMode, content: &[u8]) -> io::Result<String> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Nobody else reads it before it has its mode.
    let (new, file) = with_new_name(name, |new| fs::openat(folder, new, flags, Mode::from_raw_mode(0o600)))?;
    let written = fill(folder, name, std::fs::File::from(file), mode, content);
    if written.is_err() {
        let _ = fs::unlinkat(folder, &new, AtFlags::empty());
    }
    written.map(|()| new)
}

fn fill(
    folder: &OwnedFd,
    name: &str,
    mut file: std::fs::File,
    mode: FileMode,
    content: &[u8],
) -> io::Result<()> {
    file.write_all(content)?;
    if let Ok(old) = fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        let (user, group) = (fs::Uid::from_raw(old.st_uid), fs::Gid::from_raw(old.st_gid));
        // Only the superuser can give a file away, and nobody else has one to give back.
        let _ = fs::fchown(&file, Some(user), Some(group));
    }
    fs::fchmod(&file, Mode::from_raw_mode(mode.permissions()))?;
    file.sync_all()
}

fn new_link(folder: &OwnedFd, name: &str, target: &[u8]) -> io::Result<String> {
    let (new, ()) = with_new_name(name, |new| fs::symlinkat(target, folder, new))?;
    Ok(new)
}

/// Tries names beside the given one until one is free.
fn with_new_name<T>(name: &str, make: impl Fn(&str) -> rustix::io::Result<T>) -> io::Result<(String, T)> {
    // A name may have 255 bytes, so a long one is not made longer.
    let start: String = name.chars().take(40).collect();
    for number in 0..MAX_TEMPORARY_NAMES {
        let new = format!(".{start}.helve-{number}");
        match make(&new) {
            Ok(made) => return Ok((new, made)),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::EXIST.into())
}
