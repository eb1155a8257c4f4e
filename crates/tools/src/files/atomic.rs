//! Changing files so that whoever looks finds the old content or the new one, whatever happens.
//!
//! The new content of every file is written beside it and synced before the first file is touched; then each changes places
//! with what is there. What came out is looked at: if it is not what was expected, somebody else was there a moment before,
//! and both change places again. What came out of the others is put back too, which takes no room on the disk.
//!
//! Everything is done in the folder that was opened when the path was resolved, so that no link can lead elsewhere in between.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, TryLockError};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use helve_workspace::{NotTextError, ResolvedPath, TextFile};
use rustix::fs::{self, AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use thiserror::Error;

use crate::files::MAX_CHANGED_BYTES;
use crate::files::file_attributes::FileAttributes;
use crate::files::lease;
use crate::tool::changed_while_opening;

/// What shall happen to one file. Its place was resolved and judged, and is used as it was found.
pub(crate) struct PlannedChange {
    pub(crate) place: ResolvedPath,
    /// What is there now; nothing if there is no file.
    pub(crate) before: Option<AttributedContent>,
    /// What shall be there; nothing if there shall be no file.
    pub(crate) after: Option<AttributedContent>,
}

impl PlannedChange {
    pub(crate) fn is_too_large(&self) -> bool {
        self.after.as_ref().is_some_and(|after| after.bytes.len() as u64 > MAX_CHANGED_BYTES)
    }

    /// Why the file would be no text any more.
    pub(crate) fn no_text(&self) -> Option<NotTextError> {
        TextFile::read(&self.after.as_ref()?.bytes).err()
    }
}

/// The bytes of a file, and the file that it is like in all else; like any new file if there is none.
#[derive(Clone)]
pub(crate) struct AttributedContent {
    pub(crate) bytes: Vec<u8>,
    pub(crate) like: Option<FileAttributes>,
}

#[derive(Debug, Error)]
pub(crate) enum CommitError {
    #[error("{}: {error}. Nothing was changed.", .place.display())]
    Refused { place: PathBuf, error: io::Error },
    #[error("{}: {error}. What was changed before it could not all be put back; look at: {}", .place.display(), listed(.left))]
    Torn { place: PathBuf, error: io::Error, left: Vec<PathBuf> },
}

fn listed(places: &[PathBuf]) -> String {
    places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Makes all changes or none. A kill between two files leaves each of them old or new.
pub(crate) fn commit(changes: &[PlannedChange]) -> Result<(), CommitError> {
    let refused =
        |change: &PlannedChange, error| CommitError::Refused { place: change.place.path().to_owned(), error };
    let mut stage = StagedChanges::default();
    for change in changes {
        stage.0.push(StagedChange::new(change).map_err(|error| refused(change, error))?);
    }
    for at in 0..stage.0.len() {
        let Some(Err(error)) = stage.0.get_mut(at).map(StagedChange::go_live) else { continue };
        let left = stage.put_back(at);
        let place = changes.get(at).map(|change| change.place.path().to_owned()).unwrap_or_default();
        return Err(match left.is_empty() {
            true => CommitError::Refused { place, error },
            false => CommitError::Torn { place, error, left },
        });
    }
    stage.keep();
    Ok(())
}

/// The new files, beside those that they will replace.
#[derive(Default)]
struct StagedChanges<'c>(Vec<StagedChange<'c>>);

impl StagedChanges<'_> {
    /// Undoes all changes before this one, the last first, and tells which could not be undone.
    fn put_back(&mut self, end: usize) -> Vec<PathBuf> {
        let done = self.0.iter_mut().take(end).rev();
        done.filter_map(|staged| staged.go_back().is_err().then(|| staged.change.place.path().to_owned()))
            .collect()
    }

    /// Everything is in its place, and shall be there after a power cut.
    fn keep(&mut self) {
        for staged in &mut self.0 {
            staged.clear();
            // The files are there and whole; where a folder can't be synced, only their names are a moment late.
            sync(&staged.folder);
            staged.made.drain(..).for_each(|(parent, _)| sync(&parent));
        }
    }
}

impl Drop for StagedChanges<'_> {
    /// Backwards, because the first may have made the folder of the others.
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}

/// A change under way. What it left on the way goes away with it.
struct StagedChange<'c> {
    change: &'c PlannedChange,
    /// The folder of the file.
    folder: Arc<OwnedFd>,
    /// The file's name, and the one beside it.
    name: OsString,
    aside: OsString,
    beside: SiblingFile,
    /// The folders that were made for it, each in the one before.
    made: Vec<(Arc<OwnedFd>, OsString)>,
}

/// What stands beside the file.
enum SiblingFile {
    Nothing,
    /// The new one, locked as long as somebody works on it.
    New {
        _locked: Option<File>,
    },
    /// The old one.
    Old,
}

impl<'c> StagedChange<'c> {
    fn new(change: &'c PlannedChange) -> io::Result<StagedChange<'c>> {
        let place = &change.place;
        let mut made = Vec::new();
        let folder = make_folders(place, &mut made).inspect_err(|_| remove_folders(&mut made))?;
        let (name, aside) = (place.name().to_owned(), beside(place.name()));
        let mut staged = StagedChange { change, folder, name, aside, beside: SiblingFile::Nothing, made };
        if let Some(content) = &change.after {
            let mut file = claim(&staged.folder, &staged.aside, content.like.is_some())?;
            let filled = fill(&mut file, content);
            // From now on it is only read, so that it can be known whether somebody else writes it.
            let locked = open_for_reading(&staged.folder, &staged.aside);
            drop(file);
            let locked = locked.inspect(|file| drop(file.try_lock()));
            staged.beside = SiblingFile::New { _locked: locked.ok() };
            filled?;
        }
        Ok(staged)
    }

    /// Makes the change, if nobody touched what is there.
    fn go_live(&mut self) -> io::Result<()> {
        let PlannedChange { before, after, .. } = self.change;
        match (before, after) {
            (None, None) => return Ok(()),
            (None, Some(_)) => self.move_in()?,
            (Some(before), Some(_)) => self.exchange(before)?,
            (Some(before), None) => self.move_out(before)?,
        }
        self.beside = if before.is_some() { SiblingFile::Old } else { SiblingFile::Nothing };
        Ok(())
    }

    /// Takes the change back, if nobody touched what it made.
    fn go_back(&mut self) -> io::Result<()> {
        let PlannedChange { before, after, .. } = self.change;
        match (before, after) {
            (None, None) => {}
            (None, Some(after)) => {
                self.move_out(after)?;
                self.beside = SiblingFile::Old;
            }
            (Some(_), Some(after)) => self.exchange(after)?,
            (Some(_), None) => {
                self.move_in()?;
                self.beside = SiblingFile::Nothing;
            }
        }
        Ok(())
    }

    /// What stands beside becomes the file; there is none.
    fn move_in(&self) -> io::Result<()> {
        match self.rename(&self.aside, &self.name, RenameFlags::NOREPLACE) {
            Err(error) if is_unknown(error) => {
                self.must_be(None)?;
                Ok(fs::renameat(&self.folder, &self.aside, &self.folder, &self.name)?)
            }
            Err(Errno::EXIST) => Err(touched()),
            moved => Ok(moved?),
        }
    }

    /// The file goes beside, if it is what is expected.
    fn move_out(&self, expected: &AttributedContent) -> io::Result<()> {
        match self.rename(&self.name, &self.aside, RenameFlags::NOREPLACE) {
            Err(error) if is_unknown(error) => {
                self.must_be(Some(expected))?;
                return Ok(fs::renameat(&self.folder, &self.name, &self.folder, &self.aside)?);
            }
            Err(Errno::NOENT) => return Err(touched()),
            moved => moved?,
        }
        if self.came_out(expected) {
            return Ok(());
        }
        self.rename(&self.aside, &self.name, RenameFlags::NOREPLACE)?;
        Err(touched())
    }

    /// The file and what stands beside it change places, if the file is what is expected.
    fn exchange(&self, expected: &AttributedContent) -> io::Result<()> {
        match self.rename(&self.aside, &self.name, RenameFlags::EXCHANGE) {
            Err(error) if is_unknown(error) => return self.replace(expected),
            Err(Errno::NOENT) => return Err(touched()),
            exchanged => exchanged?,
        }
        if self.came_out(expected) {
            return Ok(());
        }
        self.rename(&self.aside, &self.name, RenameFlags::EXCHANGE)?;
        // Whoever opened the file in between and saved it saved it last.
        let ours = [&self.change.before, &self.change.after];
        if !ours.iter().filter_map(|content| content.as_ref()).any(|content| self.came_out(content)) {
            self.rename(&self.aside, &self.name, RenameFlags::EXCHANGE)?;
        }
        Err(touched())
    }

    /// Whether the file that came out is what is expected, and stays that. Whoever opened it to save it before it came out may
    /// still be writing: that is waited for. By its old name nobody opens it any more.
    fn came_out(&self, expected: &AttributedContent) -> bool {
        let is_written =
            open_for_reading(&self.folder, &self.aside).is_ok_and(|file| lease::is_written(&file));
        !is_written && is_this(&self.folder, &self.aside, expected)
    }

    /// Where files can't change places, one replaces the other, a moment after a look at it.
    fn replace(&self, expected: &AttributedContent) -> io::Result<()> {
        self.must_be(Some(expected))?;
        // A second name of the old file, so that it can be put back.
        let mut old = self.aside.clone();
        old.push("-old");
        let _ = fs::unlinkat(&self.folder, &old, AtFlags::empty());
        let is_kept = fs::linkat(&self.folder, &self.name, &self.folder, &old, AtFlags::empty()).is_ok();
        let replaced = fs::renameat(&self.folder, &self.aside, &self.folder, &self.name);
        if is_kept && replaced.is_ok() {
            let _ = fs::renameat(&self.folder, &old, &self.folder, &self.aside);
        } else if is_kept {
            let _ = fs::unlinkat(&self.folder, &old, AtFlags::empty());
        }
        Ok(replaced?)
    }

    fn rename(&self, from: &OsStr, to: &OsStr, flags: RenameFlags) -> rustix::io::Result<()> {
        fs::renameat_with(&self.folder, from, &self.folder, to, flags)
    }

    fn must_be(&self, expected: Option<&AttributedContent>) -> io::Result<()> {
        let is_as_expected = match expected {
            Some(expected) => is_this(&self.folder, &self.name, expected),
            None => {
                fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW).err() == Some(Errno::NOENT)
            }
        };
        if is_as_expected { Ok(()) } else { Err(touched()) }
    }

    /// Takes away what stands beside the file.
    fn clear(&mut self) {
        if !matches!(std::mem::replace(&mut self.beside, SiblingFile::Nothing), SiblingFile::Nothing) {
            let _ = fs::unlinkat(&self.folder, &self.aside, AtFlags::empty());
        }
    }
}

impl Drop for StagedChange<'_> {
    fn drop(&mut self) {
        self.clear();
        remove_folders(&mut self.made);
    }
}

fn touched() -> io::Error {
    io::Error::other("somebody changed it at this very moment; read it again")
}

/// Whether the file system does not know how to rename like that.
fn is_unknown(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

fn open_for_reading(folder: &OwnedFd, name: &OsStr) -> io::Result<File> {
    const FLAGS: OFlags =
        OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
    Ok(File::from(fs::openat(folder, name, FLAGS, Mode::empty())?))
}

/// Whether a file has these bytes.
fn is_this(folder: &OwnedFd, name: &OsStr, content: &AttributedContent) -> bool {
    let length = content.bytes.len() as u64;
    let read = || -> io::Result<bool> {
        let file = open_for_reading(folder, name)?;
        let facts = file.metadata()?;
        if !facts.is_file() || facts.len() != length {
            return Ok(false);
        }
        let mut bytes = Vec::with_capacity(content.bytes.len() + 1);
        file.take(length + 1).read_to_end(&mut bytes)?;
        Ok(bytes == content.bytes)
    };
    read().unwrap_or(false)
}

const PARENT_FOLDER_FLAGS: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The folder that a file is in. Those that are missing are made, each in the one before.
fn make_folders(place: &ResolvedPath, made: &mut Vec<(Arc<OwnedFd>, OsString)>) -> io::Result<Arc<OwnedFd>> {
    let mut at = place.folder().clone();
    for name in place.missing_folders() {
        match fs::mkdirat(&at, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => made.push((at.clone(), name.clone())),
            // Another change of the same patch, or somebody else, made it first.
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        at = match fs::openat(&at, name, PARENT_FOLDER_FLAGS, Mode::empty()) {
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(changed_while_opening()),
            opened => Arc::new(opened?),
        };
    }
    Ok(at)
}

fn remove_folders(made: &mut Vec<(Arc<OwnedFd>, OsString)>) {
    for (parent, name) in made.drain(..).rev() {
        let _ = fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
    }
}

fn sync(folder: &OwnedFd) {
    let opened = fs::openat(folder, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let _ = opened.and_then(fs::fsync);
}

/// The name under which the new content waits. It is always the same, so that what a killed process left is found.
fn beside(name: &OsStr) -> OsString {
    const LONGEST: usize = 200;
    const HASH_CHARS: usize = 16;
    let mut short = name.to_string_lossy().into_owned();
    if short.len() > LONGEST || name.to_str().is_none() {
        short = blake3::hash(name.as_encoded_bytes()).to_hex().chars().take(HASH_CHARS).collect();
    }
    format!(".{short}.helve-new").into()
}

/// Makes a file that is ours alone. One that is there already was left by a process that is dead, unless it is locked.
fn claim(folder: &OwnedFd, name: &OsStr, is_private: bool) -> io::Result<File> {
    const ATTEMPTS: usize = 5;
    const NEW: OFlags = OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::CLOEXEC);
    const LEFT: OFlags =
        OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
    let busy = || io::Error::other("another program is writing it right now; try again");
    let mode = Mode::from_raw_mode(if is_private { 0o600 } else { 0o666 });
    for _ in 0..ATTEMPTS {
        match fs::openat(folder, name, NEW, mode) {
            Ok(file) => {
                let file = File::from(file);
                if is_locked_elsewhere(&file) {
                    return Err(busy());
                }
                if is_at(&file, folder, name) {
                    return Ok(file);
                }
            }
            Err(Errno::EXIST) => {
                let left = File::from(fs::openat(folder, name, LEFT, Mode::empty())?);
                if !left.metadata()?.is_file() {
                    return Err(Errno::EXIST.into());
                }
                if is_locked_elsewhere(&left) {
                    return Err(busy());
                }
                if is_at(&left, folder, name) {
                    fs::unlinkat(folder, name, AtFlags::empty())?;
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(busy())
}

/// Locks a file, where the file system can. The lock goes away with whoever holds it.
fn is_locked_elsewhere(file: &File) -> bool {
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

/// Whether a file is still the one of that name: another process may have taken it away before it was locked.
fn is_at(file: &File, folder: &OwnedFd, name: &OsStr) -> bool {
    let id = |facts: Metadata| (facts.dev(), facts.ino());
    let there = fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| (stat.st_dev, stat.st_ino));
    file.metadata().ok().map(id).is_some_and(|open| there == Ok(open))
}

fn fill(file: &mut File, content: &AttributedContent) -> io::Result<()> {
    file.write_all(&content.bytes)?;
    if let Some(like) = &content.like {
        like.give_to(file)?;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;

    fn content(text: &str) -> Option<AttributedContent> {
        Some(AttributedContent { bytes: text.into(), like: None })
    }

    fn change(place: PathBuf, before: Option<&str>, after: Option<&str>) -> PlannedChange {
        let place = ResolvedPath::new(&place).unwrap();
        PlannedChange { place, before: before.and_then(content), after: after.and_then(content) }
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn all_changes_are_made() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::write(at("old"), "1").unwrap();
        fs::write(at("gone"), "2").unwrap();
        commit(&[
            change(at("old"), Some("1"), Some("one")),
            change(at("gone"), Some("2"), None),
            change(at("a/b/new"), None, Some("three")),
        ])
        .unwrap();
        assert_eq!(names(root.path()), ["a", "old"]);
        assert_eq!(names(&at("a/b")), ["new"]);
        assert_eq!(fs::read_to_string(at("old")).unwrap(), "one");
    }

    /// Somebody changes the last file after the others were moved into their places.
    #[test]
    fn what_was_done_before_a_failure_is_put_back() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::write(at("old"), "1").unwrap();
        fs::write(at("gone"), "2").unwrap();
        fs::write(at("last"), "the user's").unwrap();
        fs::set_permissions(at("gone"), fs::Permissions::from_mode(0o640)).unwrap();
        let mut gone = change(at("gone"), Some("2"), None);
        gone.before.as_mut().unwrap().like =
            Some(FileAttributes::of(&File::open(at("gone")).unwrap()).unwrap());
        let error = commit(&[
            change(at("old"), Some("1"), Some("one")),
            gone,
            change(at("a/b/new"), None, Some("three")),
            change(at("a/b/newer"), None, Some("four")),
            change(at("last"), Some("as it was"), Some("five")),
        ])
        .unwrap_err();
        assert!(matches!(error, CommitError::Refused { .. }), "{error}");
        assert_eq!(names(root.path()), ["gone", "last", "old"]);
        assert_eq!(fs::read_to_string(at("old")).unwrap(), "1");
        assert_eq!(fs::read_to_string(at("gone")).unwrap(), "2");
        assert_eq!(fs::metadata(at("gone")).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_to_string(at("last")).unwrap(), "the user's");
    }

    #[test]
    fn what_cannot_be_put_back_is_told() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::write(at("second"), "2").unwrap();
        let changes = [change(at("first"), None, Some("1")), change(at("second"), Some("2"), Some("two"))];
        let mut stage =
            StagedChanges(changes.iter().map(|change| StagedChange::new(change).unwrap()).collect());
        stage.0.iter_mut().for_each(|staged| staged.go_live().unwrap());
        fs::write(at("first"), "somebody else's").unwrap();
        fs::write(at("second"), "somebody else's too").unwrap();
        assert_eq!(stage.put_back(2), [at("second"), at("first")]);
        drop(stage);
        assert_eq!(fs::read_to_string(at("first")).unwrap(), "somebody else's");
        assert_eq!(fs::read_to_string(at("second")).unwrap(), "somebody else's too");
        assert_eq!(names(root.path()), ["first", "second"]);
    }

    #[test]
    fn a_file_that_appears_meanwhile_is_not_overwritten() {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("new");
        fs::write(&place, "the user's").unwrap();
        assert!(commit(&[change(place.clone(), None, Some("ours"))]).is_err());
        assert_eq!(fs::read_to_string(&place).unwrap(), "the user's");
        assert_eq!(names(root.path()), ["new"]);
    }

    #[test]
    fn what_a_dead_process_left_is_in_nobodys_way() {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("file");
        fs::write(root.path().join(".file.helve-new"), "half a fi").unwrap();
        commit(&[change(place.clone(), None, Some("whole"))]).unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "whole");
        assert_eq!(names(root.path()), ["file"]);
    }

    #[test]
    fn who_is_still_writing_is_not_disturbed() {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("file");
        let resolved = ResolvedPath::new(&place).unwrap();
        let theirs = claim(resolved.folder(), &beside(resolved.name()), false).unwrap();
        let error = commit(&[change(place.clone(), None, Some("ours"))]).unwrap_err();
        assert!(error.to_string().contains("try again"), "{error}");
        assert!(!place.exists());
        drop(theirs);
        commit(&[change(place, None, Some("ours"))]).unwrap();
    }

    /// Somebody saves the file after it was read, at any moment: it is found, and theirs again.
    #[test]
    fn what_is_saved_at_the_last_moment_is_not_lost() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for after in [Some("ours"), None] {
            fs::write(at("f"), "1").unwrap();
            let change = change(at("f"), Some("1"), after);
            let mut staged = StagedChange::new(&change).unwrap();
            fs::write(at("saved"), "2").unwrap();
            fs::rename(at("saved"), at("f")).unwrap();
            assert!(staged.go_live().unwrap_err().to_string().contains("this very moment"));
            drop(staged);
            assert_eq!(fs::read_to_string(at("f")).unwrap(), "2");
            assert_eq!(names(root.path()), ["f"]);
        }
    }

    /// As on file systems where nothing can change places.
    #[test]
    fn where_files_cannot_change_places_one_replaces_the_other() {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("f");
        fs::write(&place, "1").unwrap();
        let change = change(place.clone(), Some("1"), Some("one"));
        let mut staged = StagedChange::new(&change).unwrap();
        staged.replace(change.before.as_ref().unwrap()).unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "one");
        staged.beside = SiblingFile::Old;
        staged.replace(change.after.as_ref().unwrap()).unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "1");
        assert!(staged.replace(change.after.as_ref().unwrap()).is_err());
        drop(staged);
        assert_eq!(names(root.path()), ["f"]);
    }

    #[test]
    fn a_folder_that_becomes_a_link_leads_nowhere_else() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().canonicalize().unwrap().join(name);
        for name in ["in", "out"] {
            fs::create_dir(at(name)).unwrap();
        }
        let new = change(at("in/f"), None, Some("ours"));
        let mut staged = StagedChange::new(&new).unwrap();
        fs::rename(at("in"), at("was")).unwrap();
        std::os::unix::fs::symlink("out", at("in")).unwrap();
        staged.go_live().unwrap();
        drop(staged);
        assert_eq!((names(&at("out")), names(&at("was"))), (vec![], vec!["f".to_owned()]));
        assert_eq!(names(&at("out")), Vec::<String>::new());
    }

    #[test]
    fn long_names_are_no_trouble() {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("x".repeat(255));
        commit(&[change(place.clone(), None, Some("1"))]).unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "1");
    }
}
