//! What commands must not make or change although it lies in the project: what decides what git and this program do.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::shell::repository_safety::is_harmless;

/// Which file or folder a path stood for: nothing, or this one of that device.
type PathIdentity = Option<(u64, u64)>;

fn identity(path: &Path) -> PathIdentity {
    path.symlink_metadata().ok().map(|facts| (facts.dev(), facts.ino()))
}

/// What must stay as it was and could not be protected: paths that stand for nothing, or for the same folder as before.
#[derive(Debug, Default)]
pub(crate) struct ForbiddenPaths(Mutex<BTreeMap<PathBuf, PathIdentity>>);

impl ForbiddenPaths {
    /// While a command runs, these paths must stay what they are. What was granted is forbidden no more.
    pub(crate) fn during(&self, paths: Vec<PathBuf>, granted: &[PathBuf]) -> ForbiddenPathGuard<'_> {
        self.lock().retain(|path, _| !is_granted_near(path, granted));
        let paths = paths.into_iter().filter(|path| !is_granted_near(path, granted));
        let before = paths.map(|path| (identity(&path), path)).map(|(was, path)| (path, was)).collect();
        ForbiddenPathGuard { forbidden: self, before }
    }

    /// Whatever was made is put aside, so that nothing acts on it. Gives the new names.
    pub(crate) fn put_aside(&self) -> Vec<PathBuf> {
        put_all_aside(&self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<PathBuf, PathIdentity>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one command must leave. If nobody waits for its end, it is looked at later.
#[derive(Debug)]
pub(crate) struct ForbiddenPathGuard<'a> {
    forbidden: &'a ForbiddenPaths,
    before: BTreeMap<PathBuf, PathIdentity>,
}

impl ForbiddenPathGuard<'_> {
    /// The command is over: whatever it made is put aside, and what jobs made.
    pub(crate) fn put_aside(mut self) -> Vec<PathBuf> {
        let mut aside = put_all_aside(&std::mem::take(&mut self.before));
        aside.extend(self.forbidden.put_aside());
        aside
    }
}

impl Drop for ForbiddenPathGuard<'_> {
    fn drop(&mut self) {
        // The program itself writes rules to its own folder meanwhile.
        let mut later = std::mem::take(&mut self.before);
        later.retain(|path, _| !path.ends_with(".helve"));
        self.forbidden.lock().extend(later);
    }
}

/// Whether a person's yes was about this, or about another part of the same repository: `git init` makes all of it.
pub(crate) fn is_granted_near(path: &Path, granted: &[PathBuf]) -> bool {
    let git = path.ancestors().find(|folder| folder.ends_with(".git"));
    granted.iter().any(|granted| granted.starts_with(git.unwrap_or(path)) || path.starts_with(granted))
}

fn put_all_aside(before: &BTreeMap<PathBuf, PathIdentity>) -> Vec<PathBuf> {
    before.iter().filter_map(|(path, was)| put_aside(path, *was)).collect()
}

/// Gives the new name of what came in the place of something, or the old name if it had to be removed.
fn put_aside(path: &Path, was: PathIdentity) -> Option<PathBuf> {
    identity(path).filter(|now| Some(*now) != was)?;
    if is_harmless(path) && !path.ends_with(".helve") {
        return None;
    }
    Some(put_away(path))
}

/// Gives something another name by which nothing acts on it. A repository is none any more afterwards, by whatever name git is sent
/// there.
pub(crate) fn put_away(path: &Path) -> PathBuf {
    let aside = rename_aside(path);
    let head = aside.join("HEAD");
    if head.symlink_metadata().is_ok() {
        rename_aside(&head);
    }
    aside
}

/// Gives the new name, or the old one if there was none left and it had to be removed.
pub(crate) fn rename_aside(path: &Path) -> PathBuf {
    let named = |number: usize| {
        let mut name = path.as_os_str().to_owned();
        name.push(".put-aside");
        if number > 1 {
            name.push(number.to_string());
        }
        PathBuf::from(name)
    };
    let free = (1..100).map(named).find(|name| name.symlink_metadata().is_err());
    if let Some(name) = free.filter(|name| fs::rename(path, name).is_ok()) {
        return name;
    }
    // It was made a moment ago by a command that must not: it is nobody's work.
    let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_put_aside_whatever_stands_in_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let trap = folder.path().join("commondir");
        fs::create_dir_all(folder.path().join("commondir.put-aside/full")).unwrap();
        let forbidden = ForbiddenPaths::default();
        let guard = forbidden.during(vec![trap.clone()], &[]);
        fs::write(&trap, "x").unwrap();
        assert_eq!(guard.put_aside(), [folder.path().join("commondir.put-aside2")]);
        assert!(!trap.exists());
        // All names are taken.
        for number in 3..100 {
            fs::write(folder.path().join(format!("commondir.put-aside{number}")), "").unwrap();
        }
        let guard = forbidden.during(vec![trap.clone()], &[]);
        fs::create_dir_all(trap.join("x")).unwrap();
        guard.put_aside();
        assert!(!trap.exists());
    }

    #[test]
    fn what_nobody_waited_for_is_looked_at_later() {
        let folder = tempfile::tempdir().unwrap();
        let (trap, own) = (folder.path().join("p/.git/commondir"), folder.path().join("p/.helve"));
        fs::create_dir_all(trap.parent().unwrap()).unwrap();
        let forbidden = ForbiddenPaths::default();
        drop(forbidden.during(vec![trap.clone(), own.clone()], &[]));
        fs::write(&trap, "x").unwrap();
        fs::create_dir(&own).unwrap();
        forbidden.put_aside();
        assert!(!trap.exists() && own.exists());
        // A person said yes to something in this repository.
        fs::write(&trap, "x").unwrap();
        forbidden.during(Vec::new(), &[folder.path().join("p/.git/config")]).put_aside();
        assert!(trap.exists());
    }
}
