//! What a confined command costs in a large project, beside the same one in a small project. `cargo xtask bench` runs it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a benchmark that can't run has nothing to say")]
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures time and prints it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use helve_exec::{ConfinementLevel, probe, supervisor_main};
use helve_testkit::{NoBlobs, sample_id};
use helve_tools::{
    BackgroundJobs, CommandSettings, OutsidePrograms, ProjectStorage, SandboxPolicy, ShellTool, Tool,
    ToolContext,
};
use serde_json::json;

const FOLDERS: usize = 5_000;
const FILES: usize = 50_000;
const RUNS: usize = 60;

fn main() -> ExitCode {
    // The keeper is whatever program starts it.
    if let Some(code) = supervisor_main(std::env::args_os()) {
        return code;
    }
    if probe("/proc/self/exe".as_ref(), None).level != ConfinementLevel::Full {
        println!("skipped: a command in a large project: no full confinement here");
        return ExitCode::SUCCESS;
    }
    // Not in `/tmp`, which is covered as a whole.
    let place = tempfile::Builder::new().prefix(".bench-").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (small, large) =
        (Project::new(&place.path().join("small")), Project::new(&place.path().join("large")));
    large.fill();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let time = |project: &Project| {
        let begun = Instant::now();
        runtime.block_on(project.run());
        begun.elapsed()
    };
    // The first one looks through the project.
    let first = time(&large);
    time(&small);
    let mut best = [Duration::MAX; 2];
    for _ in 0..RUNS {
        // In turns, so that both meet the same machine.
        best = [best[0].min(time(&small)), best[1].min(time(&large))];
    }
    let [small, large] = best;
    row("shell: true, 50,000 files in 5,000 folders", large, small, "≤ 1 ms more");
    row("shell: the first one there", first, small, "");
    ExitCode::SUCCESS
}

struct Project {
    root: PathBuf,
    shell: ShellTool,
}

impl Project {
    fn new(folder: &Path) -> Project {
        let (root, temporary) = (folder.join("project"), folder.join("temporary"));
        fs::create_dir_all(root.join("src")).unwrap();
        fs::create_dir_all(&temporary).unwrap();
        fs::write(root.join(".env"), "KEY=value").unwrap();
        let fence = SandboxPolicy {
            level: ConfinementLevel::Full,
            private: ProjectStorage {
                folder: folder.join("private"),
                has_layers: false,
                caches: Vec::new(),
                fetched: Vec::new(),
                own: Vec::new(),
                cache_variables: &[],
                fetch_variables: &[],
            },
            hidden: Vec::new(),
            shown: Vec::new(),
            variables: Vec::new(),
            protected: vec![".helve".into()],
            protected_in_git: &["hooks", "config"],
            is_secret: |name| name == ".env",
            holds_no_secret: |_| false,
            without_logins: |_| None,
            home: None,
            agent: None,
            credentials: Vec::new(),
        };
        let commands = CommandSettings {
            withheld: Vec::new(),
            keeper: "/proc/self/exe".into(),
            program: "sh".into(),
            startup: None,
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            processes: 500,
            temporary,
            memory: None,
            fence: Some(fence),
            outside: OutsidePrograms::default(),
        };
        Project { root, shell: ShellTool::new(commands, Arc::new(BackgroundJobs::default())) }
    }

    fn fill(&self) {
        for folder in 0..FOLDERS {
            let path =
                self.root.join(format!("src/part-{}/module-{}/inner-{folder}", folder % 10, folder % 500));
            fs::create_dir_all(&path).unwrap();
            (0..FILES / FOLDERS)
                .for_each(|file| fs::write(path.join(format!("file-{file}.rs")), "").unwrap());
        }
    }

    async fn run(&self) {
        let context = ToolContext::alone(self.root.clone(), sample_id(1), Arc::new(NoBlobs));
        let done = self.shell.run(json!({ "command": "true" }), &context).await;
        let done = done.unwrap_or_else(|failure| panic!("{}", failure.0));
        assert!(!done.text.contains("failed"), "{}", done.text);
    }
}

fn row(what: &str, ours: Duration, baseline: Duration, target: &str) {
    let ratio = ours.as_secs_f64() / baseline.as_secs_f64().max(1e-9);
    println!("{what}\t{ours:.2?}\tin an empty project\t{baseline:.2?}\t{ratio:.1}\t{target}");
}
