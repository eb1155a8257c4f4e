//! A folder with a workspace on it.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use helve_protocol::{BlobError, BlobId, BlobStore, Clock, FileChangeKind, Timestamp};
use helve_workspace::{
    GitProgram, OutsideReport, PathSnapshot, Workspace, WorkspaceEffects, WorkspaceLimits, WorkspaceRoot,
    WorkspaceSetup,
};

#[derive(Debug, Default)]
pub(crate) struct MemoryBlobs {
    contents: Mutex<HashMap<BlobId, Vec<u8>>>,
    puts: Mutex<usize>,
    is_full: Mutex<bool>,
}

impl MemoryBlobs {
    pub(crate) fn puts(&self) -> usize {
        *self.puts.lock().unwrap()
    }

    pub(crate) fn set_full(&self, is_full: bool) {
        *self.is_full.lock().unwrap() = is_full;
    }
}

impl BlobStore for MemoryBlobs {
    fn put(&self, content: &[u8]) -> Result<BlobId, BlobError> {
        if *self.is_full.lock().unwrap() {
            return Err(BlobError("no space left".into()));
        }
        let id = BlobId::from_hash(*blake3::hash(content).as_bytes());
        *self.puts.lock().unwrap() += 1;
        self.contents.lock().unwrap().insert(id, content.to_vec());
        Ok(id)
    }

    fn get(&self, id: BlobId) -> Result<Vec<u8>, BlobError> {
        self.contents.lock().unwrap().get(&id).cloned().ok_or_else(|| BlobError("no such blob".into()))
    }
}

/// How late the workspace believes it is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Time {
    Real,
    /// So late that nothing is fresh, and stats are trusted.
    Late,
}

impl Clock for Time {
    fn now(&self) -> Timestamp {
        let ahead = match self {
            Time::Real => Duration::ZERO,
            Time::Late => Duration::from_secs(3_600),
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + ahead;
        Timestamp::from_millis(u64::try_from(now.as_millis()).unwrap())
    }
}

/// The mode and the content of each file and link, `.git` aside.
pub(crate) type Tree = BTreeMap<String, (u32, Vec<u8>)>;

pub(crate) struct Place {
    base: tempfile::TempDir,
    pub(crate) blobs: Arc<MemoryBlobs>,
    pub(crate) workspace: Workspace,
}

impl Place {
    /// What others changed since this was last asked.
    pub(crate) fn outside(&mut self) -> OutsideReport {
        self.workspace.refresh().unwrap();
        self.workspace.take_outside_report(&|_| false)
    }

    pub(crate) fn plain() -> Place {
        Place::new(Time::Real, WorkspaceLimits::default(), |_| {})
    }

    pub(crate) fn repository() -> Place {
        Place::new(Time::Real, WorkspaceLimits::default(), init)
    }

    pub(crate) fn new(time: Time, limits: WorkspaceLimits, prepare: impl FnOnce(&Path)) -> Place {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir(base.path().join("work")).unwrap();
        prepare(&base.path().join("work"));
        let blobs = Arc::new(MemoryBlobs::default());
        let workspace = open(&base.path().join("work"), time, limits, &blobs);
        Place { base, blobs, workspace }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.base.path().join("work")
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.path(path)).unwrap();
    }

    pub(crate) fn link(&self, path: &str, target: &str) {
        symlink(target, self.path(path)).unwrap();
    }

    pub(crate) fn chmod(&self, path: &str, mode: u32) {
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git(&self.root(), arguments)
    }

    pub(crate) fn commit_all(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "all"]);
        settle_index(&self.root());
    }

    /// The program ends suddenly, and another one goes on.
    pub(crate) fn crash(&mut self, time: Time) {
        let next = open(&self.root(), time, WorkspaceLimits::default(), &self.blobs);
        std::mem::forget(std::mem::replace(&mut self.workspace, next));
    }

    /// What a change of the files does.
    pub(crate) fn during(&mut self, change: impl FnOnce(&Place)) -> WorkspaceEffects {
        let watch = self.workspace.begin().unwrap();
        change(self);
        self.workspace.end(watch).unwrap()
    }

    pub(crate) fn tree(&self) -> Tree {
        tree(&self.root())
    }

    pub(crate) fn content(&self, image: Option<PathSnapshot>) -> Option<Vec<u8>> {
        image.and_then(|image| image.content).map(|id| self.blobs.get(id).unwrap())
    }

    /// Puts back all that was changed.
    pub(crate) fn undo(&mut self, effects: &WorkspaceEffects) {
        let wanted: Vec<_> =
            effects.changes.iter().map(|effect| (effect.path.clone(), effect.before)).collect();
        self.workspace.restore_all(&wanted, helve_workspace::RestoreGuard::IfUnchanged).unwrap();
    }
}

pub(crate) fn open(
    folder: &Path,
    time: Time,
    limits: WorkspaceLimits,
    blobs: &Arc<MemoryBlobs>,
) -> Workspace {
    Workspace::new(WorkspaceSetup {
        root: WorkspaceRoot::named(folder).unwrap(),
        blobs: Arc::<MemoryBlobs>::clone(blobs),
        clock: Arc::new(time),
        git: Some(git_program()),
        limits,
        notes: Some(folder.with_file_name("notes")),
    })
}

/// Git as it runs in the jail, without one: places that it can write, `--`, its arguments.
pub(crate) fn git_program() -> GitProgram {
    let script = "while [ \"$1\" != -- ]; do shift; done; shift; exec git \"$@\"";
    let leading = ["-c", script, "sh"].map(Into::into).to_vec();
    GitProgram { program: "/bin/sh".into(), leading, environment: git_environment() }
}

fn git_environment() -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    let path = std::env::var_os("PATH").unwrap();
    vec![("PATH".into(), path), ("HOME".into(), "/nonexistent".into())]
}

pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = try_git(folder, arguments);
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn try_git(folder: &Path, arguments: &[&str]) -> Output {
    let settings = [
        "user.name=a",
        "user.email=a@example.org",
        "init.defaultBranch=main",
        "core.autocrlf=false",
        "protocol.file.allow=always",
    ];
    let mut command = Command::new("git");
    command.env_clear().envs(git_environment()).arg("-C").arg(folder);
    for setting in settings {
        command.args(["-c", setting]);
    }
    command.args(arguments).output().unwrap()
}

pub(crate) fn init(folder: &Path) {
    git(folder, &["init", "-q"]);
}

/// Lets git's index be younger than the files, so that git is sure of them.
pub(crate) fn settle_index(folder: &Path) {
    std::thread::sleep(Duration::from_millis(20));
    git(folder, &["update-index", "-q", "--really-refresh", "--force-write-index"]);
}

pub(crate) fn tree(root: &Path) -> Tree {
    let mut tree = Tree::new();
    collect(root, "", &mut tree);
    tree
}

fn collect(root: &Path, folder: &str, tree: &mut Tree) {
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::MetadataExt;
    for entry in fs::read_dir(root.join(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        let metadata = entry.path().symlink_metadata().unwrap();
        if name == ".git" {
        } else if metadata.is_dir() {
            collect(root, &path, tree);
        } else if metadata.is_symlink() {
            let target = fs::read_link(entry.path()).unwrap();
            tree.insert(path, (metadata.mode(), target.into_os_string().into_vec()));
        } else {
            tree.insert(path, (metadata.mode(), fs::read(entry.path()).unwrap()));
        }
    }
}

/// The changes in short: `+` created, `~` changed, `-` deleted.
pub(crate) fn short(effects: &WorkspaceEffects) -> Vec<String> {
    let sign = |change: &FileChangeKind| match change {
        FileChangeKind::Added => '+',
        FileChangeKind::Modified => '~',
        FileChangeKind::Deleted => '-',
        FileChangeKind::Moved { .. } => '>',
    };
    effects.file_changes().iter().map(|change| format!("{}{}", sign(&change.change), change.path)).collect()
}

pub(crate) fn lost(effects: &WorkspaceEffects) -> Vec<String> {
    effects.not_recoverable.iter().map(|lost| format!("{}: {}", lost.path, lost.why)).collect()
}
