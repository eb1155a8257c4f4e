//! What confinement costs: a command that does nothing, beside the same one bare and in bubblewrap. `cargo xtask bench`
//! runs it.
#![expect(clippy::unwrap_used, reason = "a benchmark that can't run has nothing to say")]
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures time and prints it")]

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use helve_exec::{Confinement, Input, Level, Limits, Network, Order, Status, keeper_main, probe, start};

const RUNS: usize = 200;

fn main() -> ExitCode {
    // The keeper is whatever program starts it.
    if let Some(code) = keeper_main(std::env::args_os()) {
        return code;
    }
    let workspace = tempfile::tempdir().unwrap();
    let bare = best(|| run(None));
    let found = probe("/proc/self/exe".as_ref()).level;
    for (level, name) in [(Level::Landlock, "true, Landlock"), (Level::Full, "true, fully confined")] {
        if level > found {
            println!("skipped: {name}: not possible here");
            continue;
        }
        let confinement = Confinement {
            level,
            writable: vec![workspace.path().into()],
            caches: Vec::new(),
            protected: Vec::new(),
            hidden: Vec::new(),
            temporary: None,
            scratch: 64 << 20,
            network: Network::Off,
        };
        let confined = best(|| run(Some(confinement.clone())));
        row(name, confined, "true, bare", bare, "≤ 5 ms more");
        match bubblewrap() {
            Some(baseline) if level == Level::Full => row(name, confined, "true in bwrap", baseline, ""),
            None if level == Level::Full => {
                println!("skipped: confinement beside bubblewrap: it is not installed")
            }
            _ => {}
        }
    }
    ExitCode::SUCCESS
}

/// The best of many runs: what the machine can do when nobody disturbs it.
fn best(work: impl Fn()) -> Duration {
    let time = || {
        let begun = Instant::now();
        work();
        begun.elapsed()
    };
    (0..RUNS).map(|_| time()).min().unwrap_or_default()
}

fn run(confinement: Option<Confinement>) {
    let order = Order {
        program: "/bin/true".into(),
        args: Vec::new(),
        cwd: "/".into(),
        env: Vec::new(),
        input: Input::Nothing,
        terminal: None,
        limits: Limits::default(),
        confinement,
        keeper: "/proc/self/exe".into(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ended = runtime.block_on(async { start(order).await.unwrap().wait().await });
    assert_eq!(ended.status, Status::Exited(0));
}

/// The same in bubblewrap, with about the same confinement.
fn bubblewrap() -> Option<Duration> {
    let run = || {
        let flags =
            ["--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"];
        let covers = ["--tmpfs", "/tmp", "--tmpfs", "/run", "/bin/true"];
        Command::new("bwrap").args(flags).args(covers).stderr(Stdio::null()).status()
    };
    run().ok().filter(|status| status.success())?;
    Some(best(|| drop(run())))
}

fn row(what: &str, ours: Duration, baseline_is: &str, baseline: Duration, target: &str) {
    let ratio = ours.as_secs_f64() / baseline.as_secs_f64().max(1e-9);
    println!("{what}\t{ours:.2?}\t{baseline_is}\t{baseline:.2?}\t{ratio:.1}\t{target}");
}
