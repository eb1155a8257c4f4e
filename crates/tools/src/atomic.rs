//! Changing files so that whoever looks finds the old content or the new one, whatever happens.
//!
//! The new content of every file is written beside it and synced before the first file is touched; then each is moved into
//! its place. If one can't be, those before it are put back.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::likeness::Likeness;

/// What shall happen to one file. Its place is where the file really is: no link leads further.
pub(crate) struct Change {
    pub(crate) place: PathBuf,
    /// What is there now; nothing if there is no file.
    pub(crate) before: Option<Content>,
    /// What shall be there; nothing if there shall be no file.
    pub(crate) after: Option<Content>,
}

/// The bytes of a file, and the file that it is like in all else; like any new file if there is none.
#[derive(Clone)]
pub(crate) struct Content {
    pub(crate) bytes: Vec<u8>,
    pub(crate) like: Option<Likeness>,
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

/// Makes all changes or none.
pub(crate) fn commit(changes: &[Change]) -> Result<(), CommitError> {
    let refused = |change: &Change, error| CommitError::Refused { place: change.place.clone(), error };
    let mut stage = Stage::default();
    for change in changes {
        stage.add(change).map_err(|error| refused(change, error))?;
    }
    for (index, (change, staged)) in changes.iter().zip(&mut stage.files).enumerate() {
        if let Err(error) = staged.go_live(change) {
            let left = put_back(changes.iter().take(index));
            let place = change.place.clone();
            return Err(match left.is_empty() {
                true => CommitError::Refused { place, error },
                false => CommitError::Torn { place, error, left },
            });
        }
    }
    stage.keep(changes);
    Ok(())
}

/// Undoes changes, the last first, and tells which could not be undone.
fn put_back<'a>(done: impl DoubleEndedIterator<Item = &'a Change>) -> Vec<PathBuf> {
    let undo = |change: &Change| {
        let back = Change {
            place: change.place.clone(),
            before: change.after.clone(),
            after: change.before.clone(),
        };
        Staged::new(&back).and_then(|mut staged| {
            staged.go_live(&back)?;
            staged.folders.clear();
            Ok(())
        })
    };
    done.rev().filter(|change| undo(change).is_err()).map(|change| change.place.clone()).collect()
}

/// The new files, beside those that they will replace.
#[derive(Default)]
struct Stage {
    files: Vec<Staged>,
}

impl Stage {
    fn add(&mut self, change: &Change) -> io::Result<()> {
        self.files.push(Staged::new(change)?);
        Ok(())
    }

    /// Everything is in its place, and shall be there after a power cut.
    fn keep(mut self, changes: &[Change]) {
        let mut folders: Vec<&Path> = changes.iter().filter_map(|change| change.place.parent()).collect();
        let made: Vec<PathBuf> = self.files.iter_mut().flat_map(|staged| staged.folders.drain(..)).collect();
        folders.extend(made.iter().filter_map(|folder| folder.parent()));
        folders.sort_unstable();
        folders.dedup();
        for folder in folders {
            // The files are there and whole; where a folder can't be synced, only their names are a moment late.
            let _ = File::open(folder).and_then(|folder| folder.sync_all());
        }
    }
}

impl Drop for Stage {
    /// Backwards, because the first may have made the folder of the others.
    fn drop(&mut self) {
        while self.files.pop().is_some() {}
    }
}

/// A new file that is not in its place yet. What it left on the way goes away with it.
struct Staged {
    /// The new file, locked as long as somebody works on it; nothing if there shall be no file.
    new: Option<(PathBuf, File)>,
    /// The folders that were made for it, each in the one before.
    folders: Vec<PathBuf>,
}

impl Staged {
    fn new(change: &Change) -> io::Result<Staged> {
        let mut staged = Staged { new: None, folders: Vec::new() };
        if let Some(content) = &change.after {
            staged.make_folders(&change.place)?;
            let path = beside(&change.place)?;
            let file = claim(&path, content.like.is_some())?;
            let (_, file) = staged.new.insert((path, file));
            fill(file, content)?;
        }
        Ok(staged)
    }

    fn make_folders(&mut self, place: &Path) -> io::Result<()> {
        let missing: Vec<&Path> = place.ancestors().skip(1).take_while(|folder| !folder.exists()).collect();
        for folder in missing.into_iter().rev() {
            fs::create_dir(folder)?;
            self.folders.push(folder.to_owned());
        }
        Ok(())
    }

    /// Puts the file into its place, if nobody touched what is there.
    fn go_live(&mut self, change: &Change) -> io::Result<()> {
        if !is_as_expected(change)? {
            return Err(io::Error::other("somebody changed it at this very moment; read it again"));
        }
        match &self.new {
            Some((path, _)) => fs::rename(path, &change.place)?,
            None => fs::remove_file(&change.place)?,
        }
        self.new = None;
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some((path, _)) = &self.new {
            let _ = fs::remove_file(path);
        }
        for folder in self.folders.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

fn is_as_expected(change: &Change) -> io::Result<bool> {
    match (fs::symlink_metadata(&change.place), &change.before) {
        (Ok(facts), Some(before)) if facts.is_file() && facts.len() == before.bytes.len() as u64 => {
            Ok(fs::read(&change.place)? == before.bytes)
        }
        (Ok(_), _) => Ok(false),
        (Err(error), before) if error.kind() == ErrorKind::NotFound => Ok(before.is_none()),
        (Err(error), _) => Err(error),
    }
}

/// The name under which the new content waits. It is always the same, so that what a killed process left is found.
fn beside(place: &Path) -> io::Result<PathBuf> {
    const LONGEST: usize = 200;
    let name = place.file_name().ok_or_else(|| io::Error::other("it has no name"))?;
    let mut short = name.to_string_lossy().into_owned();
    if short.len() > LONGEST || name.to_str().is_none() {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        short = format!("{:016x}", hasher.finish());
    }
    Ok(place.with_file_name(format!(".{short}.helve-new")))
}

/// Makes a file that is ours alone. One that is there already was left by a process that is dead, unless it is locked.
fn claim(path: &Path, is_private: bool) -> io::Result<File> {
    const ATTEMPTS: usize = 5;
    let busy = || io::Error::other("another program is writing it right now; try again");
    let mode = if is_private { 0o600 } else { 0o666 };
    for _ in 0..ATTEMPTS {
        match OpenOptions::new().write(true).create_new(true).mode(mode).open(path) {
            Ok(file) => {
                if is_locked_elsewhere(&file) {
                    return Err(busy());
                }
                if is_at(&file, path) {
                    return Ok(file);
                }
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if !fs::symlink_metadata(path)?.is_file() {
                    return Err(error);
                }
                let left = File::open(path)?;
                if is_locked_elsewhere(&left) {
                    return Err(busy());
                }
                if is_at(&left, path) {
                    fs::remove_file(path)?;
                }
            }
            Err(error) => return Err(error),
        }
    }
    Err(busy())
}

/// Locks a file, where the file system can. The lock goes away with whoever holds it.
fn is_locked_elsewhere(file: &File) -> bool {
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

/// Whether a file is still the one of that name: another process may have taken it away before it was locked.
fn is_at(file: &File, path: &Path) -> bool {
    let id = |facts: io::Result<Metadata>| facts.ok().map(|facts| (facts.dev(), facts.ino()));
    let open = id(file.metadata());
    open.is_some() && open == id(fs::symlink_metadata(path))
}

fn fill(file: &mut File, content: &Content) -> io::Result<()> {
    file.write_all(&content.bytes)?;
    if let Some(like) = &content.like {
        like.give_to(file)?;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn content(text: &str) -> Option<Content> {
        Some(Content { bytes: text.into(), like: None })
    }

    fn change(place: PathBuf, before: Option<&str>, after: Option<&str>) -> Change {
        Change { place, before: before.and_then(content), after: after.and_then(content) }
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
            Some(Likeness::of(&at("gone"), fs::metadata(at("gone")).unwrap()));
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
        let first = change(at("first"), None, Some("1"));
        commit(std::slice::from_ref(&first)).unwrap();
        fs::write(at("first"), "somebody else's").unwrap();
        assert_eq!(put_back([&first].into_iter()), [at("first")]);
        assert_eq!(fs::read_to_string(at("first")).unwrap(), "somebody else's");
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
        let theirs = claim(&beside(&place).unwrap(), false).unwrap();
        let error = commit(&[change(place.clone(), None, Some("ours"))]).unwrap_err();
        assert!(error.to_string().contains("try again"), "{error}");
        assert!(!place.exists());
        drop(theirs);
        commit(&[change(place, None, Some("ours"))]).unwrap();
    }

    #[test]
    fn long_names_are_no_trouble() {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("x".repeat(255));
        commit(&[change(place.clone(), None, Some("1"))]).unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "1");
    }
}
