//! What the commands of a project leave for those that come after them, where nobody else sees it: temporary files, and
//! their changes of the user's caches.
//!
//! It is bounded: what nobody used for a while is removed, and what is too large, whenever no command uses it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use helve_exec::{ConfinementLevel, PrivateLayers, remove_tree};

use crate::ToolFailure;

/// How long temporary files are kept that no session uses.
const TEMPORARY_MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3_600);
/// The same for changes of caches.
const CACHES_MAX_AGE: Duration = Duration::from_secs(30 * 24 * 3_600);
/// More than this is removed, of either.
const MAX_PROJECT_STORAGE_BYTES: u64 = 5 << 30;
/// So many projects are looked at.
const MAX_SWEPT_PROJECTS: usize = 1_000;

/// Says that something was fetched into folders of the project's own.
const HAS_FETCHED_FILE: &str = "has-fetched";
/// Where caches are that tools are sent to.
const CACHES_FOLDER: &str = "caches";
const TEMPORARY_FOLDER: &str = "tmp";
/// Where copies of files are that commands see instead.
const COPIES_FOLDER: &str = "copies";

/// Variables, and folders that they name, as paths inside another.
pub type FolderVariables = &'static [(&'static str, &'static str)];

/// What a project has for itself.
#[derive(Clone, Debug)]
pub struct ProjectStorage {
    /// Where it is: a folder for this project, among those for others.
    pub folder: PathBuf,
    /// Whether the user's folders can be read and changed for this project only.
    pub has_layers: bool,
    /// What tools write while they work: `~/.cache/go-build`.
    pub caches: Vec<PathBuf>,
    /// What they write when they fetch something: `~/.cargo/registry`.
    pub fetched: Vec<PathBuf>,
    /// Folders that are the project's own, whatever the user has there: `~/.cache`.
    pub own: Vec<PathBuf>,
    /// Variables that name caches, and folders for them, for where nothing can be laid over the user's.
    pub cache_variables: FolderVariables,
    /// The same for what is fetched.
    pub fetch_variables: FolderVariables,
}

impl ProjectStorage {
    /// What is laid over the user's folders, as seen from the full level.
    pub(crate) fn layers(&self, home: &Path, has_network: bool) -> PrivateLayers {
        let is_fetched = self.has_layers || self.fetches(has_network);
        let fetched = is_fetched.then_some(&self.fetched).into_iter().flatten();
        let all = self.caches.iter().chain(fetched).cloned().collect();
        let (over, mut own) = if self.has_layers { (all, Vec::new()) } else { (Vec::new(), all) };
        own.extend(self.own.iter().cloned());
        PrivateLayers { folder: self.folder.clone(), base: home.to_owned(), over, own, is_kept: true }
    }

    /// Where tools are sent instead, where nothing can be laid over anything; and the folder that they write then.
    pub(crate) fn elsewhere(&self, has_network: bool) -> io::Result<(PathBuf, Vec<(&'static str, PathBuf)>)> {
        let folder = self.folder.join(CACHES_FOLDER);
        make(&folder)?;
        let fetched = self.fetches(has_network).then_some(self.fetch_variables);
        let variables = self.cache_variables.iter().chain(fetched.into_iter().flatten());
        let named = variables.map(|(name, inside)| (*name, folder.join(inside))).collect();
        Ok((folder, named))
    }

    /// A copy of a file with another text, for commands to see instead.
    pub(crate) fn keep_copy(&self, of: &Path, text: &str) -> io::Result<PathBuf> {
        let folder = self.folder.join(COPIES_FOLDER);
        let copy = folder.join(blake3::hash(of.as_os_str().as_encoded_bytes()).to_hex().as_str());
        if fs::read(&copy).is_ok_and(|now| now == text.as_bytes()) {
            return Ok(copy);
        }
        make(&folder)?;
        let mut new = tempfile::NamedTempFile::new_in(&folder)?;
        new.write_all(text.as_bytes())?;
        new.persist(&copy)?;
        Ok(copy)
    }

    /// Whether what is fetched comes from the project's own folders: from the first command with a network on, since the
    /// user's can only be read.
    fn fetches(&self, has_network: bool) -> bool {
        let mark = self.folder.join(HAS_FETCHED_FILE);
        if has_network && !mark.exists() {
            let _ = make(&self.folder).and_then(|()| File::create(&mark).map(drop));
        }
        has_network || mark.exists()
    }

    /// Where temporary files are.
    pub(crate) fn temporary(&self) -> Result<ProjectTemporaryFolder, ToolFailure> {
        let folder = self.folder.join(TEMPORARY_FOLDER);
        let cannot = |error: io::Error| {
            let place = folder.display();
            ToolFailure(format!("The command was not run: {place} can't be made: {error}."))
        };
        make(&self.folder).map_err(cannot)?;
        let lock = open_lock(&self.folder, TEMPORARY_FOLDER).map_err(cannot)?;
        lock.lock_shared().map_err(cannot)?;
        make(&folder).map_err(cannot)?;
        Ok(ProjectTemporaryFolder { folder, _lock: lock })
    }

    /// Removes what is too old or too large, of all projects. Nobody waits for it.
    pub(crate) fn sweep(&self) {
        let Some(all) = self.folder.parent().map(Path::to_owned) else { return };
        let _ = thread::Builder::new().name("sweep".to_owned()).spawn(move || {
            let projects = fs::read_dir(all).into_iter().flatten().flatten();
            for project in projects.take(MAX_SWEPT_PROJECTS) {
                let _ = sweep_project(&project.path(), MAX_PROJECT_STORAGE_BYTES);
            }
        });
    }
}

/// The level at which tools have to be sent elsewhere.
pub(crate) fn is_sent_elsewhere(level: ConfinementLevel) -> bool {
    level != ConfinementLevel::Full
}

/// A project's temporary files, which stay while a session has them.
#[derive(Debug)]
pub(crate) struct ProjectTemporaryFolder {
    folder: PathBuf,
    _lock: File,
}

impl ProjectTemporaryFolder {
    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }
}

fn make(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// A lock whose age says when it was last taken.
fn open_lock(project: &Path, name: &str) -> io::Result<File> {
    let path = project.join(format!("{name}.lock"));
    let lock = File::options().create(true).truncate(false).write(true).open(path)?;
    lock.set_modified(now())?;
    Ok(lock)
}

#[expect(clippy::disallowed_methods, reason = "how old files are is nothing that is replayed")]
fn now() -> SystemTime {
    SystemTime::now()
}

fn sweep_project(project: &Path, max_bytes: u64) -> io::Result<()> {
    sweep_part(project, &project.join("tmp.lock"), TEMPORARY_MAX_AGE, &[TEMPORARY_FOLDER], max_bytes)?;
    // The one that commands take.
    sweep_part(project, &project.join("lock"), CACHES_MAX_AGE, &["kept", "own", CACHES_FOLDER], max_bytes)?;
    for entry in fs::read_dir(project)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with("once-") {
            let is_left = File::open(entry.path().join("lock")).is_ok_and(|lock| lock.try_lock().is_ok());
            if is_left && age(&entry.path()) > Duration::from_secs(60) {
                remove_tree(&entry.path())?;
            }
        }
    }
    Ok(())
}

/// Removes these folders of a project if they are too old or too large and nobody has their lock.
fn sweep_part(project: &Path, lock: &Path, kept: Duration, names: &[&str], max_bytes: u64) -> io::Result<()> {
    let Ok(file) = File::open(lock) else { return Ok(()) };
    let folders: Vec<PathBuf> = names.iter().map(|name| project.join(name)).collect();
    let is_large = || folders.iter().map(|folder| size(folder)).sum::<u64>() > max_bytes;
    if age(lock) < kept && !is_large() {
        return Ok(());
    }
    match file.try_lock() {
        Ok(()) => folders.iter().try_for_each(|folder| remove_tree(folder)),
        Err(_) => Ok(()),
    }
}

fn age(path: &Path) -> Duration {
    let modified = fs::metadata(path).and_then(|facts| facts.modified());
    modified.ok().and_then(|then| now().duration_since(then).ok()).unwrap_or_default()
}

/// How much a folder takes on the disk.
fn size(folder: &Path) -> u64 {
    let (mut total, mut open) = (0_u64, vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(facts) = entry.metadata() else { continue };
            total = total.saturating_add(facts.blocks().saturating_mul(512));
            if facts.is_dir() {
                open.push(entry.path());
            }
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    fn private(folder: &Path, has_layers: bool) -> ProjectStorage {
        ProjectStorage {
            folder: folder.join("project"),
            has_layers,
            caches: vec!["/home/u/.cache/pip".into()],
            fetched: vec!["/home/u/.cargo/registry".into()],
            own: vec!["/home/u/.cache".into()],
            cache_variables: &[("PIP_CACHE_DIR", "pip")],
            fetch_variables: &[("CARGO_HOME", "cargo")],
        }
    }

    fn set_age(path: &Path, days: u64) {
        let then = now().checked_sub(Duration::from_secs(days * 24 * 3_600)).unwrap();
        File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
    }

    #[test]
    fn temporary_files_stay_for_a_while_and_as_long_as_a_session_has_them() {
        let base = tempfile::tempdir().unwrap();
        let private = private(base.path(), true);
        let temporary = private.temporary().unwrap();
        let file = temporary.path().join("backup");
        fs::write(&file, "the only copy").unwrap();
        let lock = private.folder.join("tmp.lock");
        set_age(&lock, 30);
        sweep_project(&private.folder, MAX_PROJECT_STORAGE_BYTES).unwrap();
        assert!(file.exists(), "a session has it");
        drop(temporary);
        set_age(&lock, 6);
        sweep_project(&private.folder, MAX_PROJECT_STORAGE_BYTES).unwrap();
        assert!(file.exists(), "six days");
        set_age(&lock, 8);
        sweep_project(&private.folder, MAX_PROJECT_STORAGE_BYTES).unwrap();
        assert!(!file.exists(), "eight days");
    }

    #[test]
    fn what_is_too_large_is_removed_unless_a_command_uses_it() {
        let base = tempfile::tempdir().unwrap();
        let project = base.path().join("project");
        fs::create_dir_all(project.join("kept/upper")).unwrap();
        fs::write(project.join("kept/upper/file"), vec![1; 100_000]).unwrap();
        let lock = File::create(project.join("lock")).unwrap();
        lock.lock().unwrap();
        sweep_project(&project, 50_000).unwrap();
        assert!(project.join("kept").exists());
        drop(lock);
        sweep_project(&project, 1_000_000).unwrap();
        assert!(project.join("kept").exists());
        sweep_project(&project, 50_000).unwrap();
        assert!(!project.join("kept").exists());
    }

    #[test]
    fn without_layers_what_is_fetched_comes_from_the_project_once_something_was() {
        let base = tempfile::tempdir().unwrap();
        let (home, private) = (Path::new("/home/u"), private(base.path(), false));
        let caches = ["/home/u/.cache/pip", "/home/u/.cache"].map(PathBuf::from);
        let all = ["/home/u/.cache/pip", "/home/u/.cargo/registry", "/home/u/.cache"].map(PathBuf::from);
        let own = |has_network| private.layers(home, has_network).own;
        let variables = |has_network| private.elsewhere(has_network).unwrap().1.len();
        assert_eq!((own(false), variables(false)), (caches.to_vec(), 1));
        assert_eq!((own(true), variables(true)), (all.to_vec(), 2));
        assert_eq!((own(false), variables(false)), (all.to_vec(), 2));
    }
}
