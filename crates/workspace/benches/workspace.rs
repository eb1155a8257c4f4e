//! How fast the workspace sees what changed, each figure beside git on the same tree. `cargo xtask bench` runs it.
#![expect(clippy::unwrap_used, reason = "a benchmark that can't run has nothing to say")]
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures time and prints it")]

use std::fs;
use std::hint::black_box;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use helve_journal::{FileJournal, Journal};
use helve_protocol::{BlobStore, Clock, Timestamp};
use helve_testkit::sample_id;
use helve_workspace::{GitProgram, Workspace, WorkspaceLimits, WorkspaceRoot, WorkspaceSetup};

const FILES: usize = 100_000;
const FILES_PER_FOLDER: usize = 100;
const CHANGED: usize = 1_000;
/// So often each look is measured; the best counts, as somebody may disturb the others.
const TURNS: usize = 15;
/// What changed so shortly before a look is read again by Helve and by git, which is not what is measured.
const UNTIL_SETTLED: Duration = Duration::from_millis(2_500);

fn main() {
    if Command::new("git").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("skipped: the workspace beside git: git is not installed");
        return;
    }
    let base = tempfile::tempdir().unwrap();
    // A session as sessions are: what is kept goes where it always goes.
    let journal = FileJournal::new(base.path());
    let log = journal.create(sample_id(1)).unwrap();
    let place = Place { tree: base.path().join("tree"), blobs: log.blobs() };
    place.generate();
    quiet();
    place.keeping_all();
    place.looking();
    place.keeping_some();
}

fn time<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    let done = black_box(work());
    let time = start.elapsed();
    drop(done);
    time
}

/// The best of some runs: what the machine can do when nobody disturbs it.
fn best<T>(runs: usize, mut work: impl FnMut() -> T) -> Duration {
    (0..runs).map(|_| time(&mut work)).min().unwrap_or_default()
}

fn row(what: &str, ours: Duration, baseline_is: &str, baseline: Duration, target: &str) {
    let ratio = ours.as_secs_f64() / baseline.as_secs_f64().max(1e-9);
    println!("{what}\t{ours:.2?}\t{baseline_is}\t{baseline:.2?}\t{ratio:.1}\t{target}");
}

/// What was written goes to the disk before anything is measured, and not meanwhile.
fn quiet() {
    rustix::fs::sync();
    thread::sleep(UNTIL_SETTLED);
}

/// Where git is, as the program finds it out once.
/// Git as it runs in the jail, without one: places that it can write, `--`, its arguments.
fn unjailed() -> Vec<std::ffi::OsString> {
    let script = "while [ \"$1\" != -- ]; do shift; done; shift; exec git \"$@\"";
    ["-c", script, "sh"].map(Into::into).to_vec()
}

struct Place {
    tree: PathBuf,
    blobs: Arc<dyn BlobStore>,
}

impl Place {
    fn file(&self, number: usize) -> PathBuf {
        let folder = number / FILES_PER_FOLDER;
        self.tree.join(format!("part{}/module{folder}/file{number}.rs", folder % 40))
    }

    /// Each file has a content of its own, of some 800 bytes.
    fn generate(&self) {
        for number in 0..FILES {
            let file = self.file(number);
            if number % FILES_PER_FOLDER == 0 {
                fs::create_dir_all(file.parent().unwrap()).unwrap();
            }
            let line =
                |line: usize| format!("    let value_{line} = compute({number}, {});\n", number * line);
            let body: String = (0..20).map(line).collect();
            fs::write(file, format!("fn number_{number}() {{\n{body}}}\n")).unwrap();
        }
        fs::write(self.tree.join(".gitignore"), "target/\n*.log\n").unwrap();
        self.git(&["init", "-q"]);
    }

    fn git(&self, arguments: &[&str]) {
        let done =
            Command::new("git").arg("-C").arg(&self.tree).args(arguments).stdout(Stdio::null()).status();
        assert!(done.unwrap().success(), "git {arguments:?}");
    }

    fn workspace(&self) -> Workspace {
        let environment =
            ["PATH", "HOME"].map(|name| (name.into(), std::env::var_os(name).unwrap_or_default()));
        Workspace::new(WorkspaceSetup {
            root: WorkspaceRoot::named(&self.tree).unwrap(),
            blobs: self.blobs.clone(),
            clock: Arc::new(RealClock),
            git: Some(GitProgram {
                program: "/bin/sh".into(),
                leading: unjailed(),
                environment: environment.into(),
            }),
            limits: WorkspaceLimits::default(),
            notes: None,
        })
    }

    /// Everything is new to both.
    fn keeping_all(&self) {
        let mut workspace = self.workspace();
        let ours = time(|| workspace.begin().unwrap());
        let baseline = time(|| self.git(&["add", "-A"]));
        row("keep 100,000 untracked files", ours, "git add -A", baseline, "≤ 1×");
        thread::sleep(UNTIL_SETTLED);
        self.git(&["-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "-qm", "all"]);
        self.git(&["update-index", "-q", "--refresh"]);
    }

    fn looking(&self) {
        quiet();
        let mut workspace = self.workspace();
        workspace.refresh().unwrap();
        // By turns, so that whatever disturbs one disturbs the others.
        let [mut baseline, mut first, mut again] = [Duration::MAX; 3];
        for _ in 0..TURNS {
            baseline = baseline.min(time(|| self.git(&["status", "--porcelain"])));
            let mut new = self.workspace();
            first = first.min(time(|| new.refresh().unwrap()));
            drop(new);
            again = again.min(time(|| workspace.refresh().unwrap()));
        }
        row("first look at 100,000 files", first, "git status", baseline, "≤ 1×");
        row("look again at 100,000 files", again, "git status", baseline, "≤ 1×");
        workspace.begin().map(drop).unwrap();
        let call = best(5, || {
            let watch = workspace.begin().unwrap();
            fs::write(self.file(7), "fn changed() {}\n").unwrap();
            workspace.end(watch).unwrap()
        });
        row("watch a call that changes one file", call, "git status", baseline, "≤ 2×");
    }

    fn keeping_some(&self) {
        let mut workspace = self.workspace();
        workspace.begin().map(drop).unwrap();
        quiet();
        for number in 0..CHANGED {
            fs::write(self.file(number * 90), format!("fn changed() -> u32 {{ {number} }}\n")).unwrap();
        }
        let ours = time(|| workspace.begin().unwrap());
        let baseline = time(|| self.git(&["add", "-A"]));
        row("keep 1,000 changed files of 100,000", ours, "git add -A", baseline, "≤ 1×");
    }
}

struct RealClock;

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
    }
}
