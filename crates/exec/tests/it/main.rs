//! Commands that behave and commands that do not, with real processes. That nothing is left is read from `/proc`.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test fails by panicking, and real processes take real time"
)]

mod confined;
mod deaths;
mod escape;
mod jail;
mod layers;
mod load;
mod ordinary;
mod stopping;
mod terminals;
mod work;

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use helve_exec::{
    CommandInput, CommandLimits, CommandOutcome, CommandOutputChunk, CommandSpec, RunningCommand,
};

/// How long a busy machine may take for what should take less than a second.
const LONG: Duration = Duration::from_secs(20);

/// The helper that plays keeper, Helve and misbehaving commands.
fn custody() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().unwrap().parent().unwrap().join("examples/custody");
    assert!(path.exists(), "{} is built by `cargo test -p helve-exec`", path.display());
    path
}

/// A mark that all processes of one test carry in their environment.
struct Mark(String);

impl Mark {
    fn new() -> Mark {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        Mark(format!("CUSTODY_MARK={}-{}.", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)))
    }

    fn variable(&self) -> (OsString, OsString) {
        let (name, value) = self.0.split_once('=').unwrap();
        (name.into(), value.into())
    }

    /// The processes that carry it, zombies aside: those have no environment any more.
    fn processes(&self) -> Vec<u32> {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid| self.is_carried_by(*pid)).collect()
    }

    fn is_carried_by(&self, pid: u32) -> bool {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.windows(self.0.len()).any(|window| window == self.0.as_bytes())
    }

    /// Waits until there are at least so many.
    fn wait_for(&self, count: usize) {
        until(&format!("{count} processes"), || self.processes().len() >= count);
    }

    /// Waits until none is left, and tells how long that took.
    fn wait_until_gone(&self) -> Duration {
        let start = Instant::now();
        until("the end of all processes", || self.processes().is_empty());
        start.elapsed()
    }
}

/// Waits until something is so.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "waited in vain for {what}");
        sleep(Duration::from_millis(2));
    }
}

fn order(mark: &Mark, program: impl Into<OsString>, args: &[&str]) -> CommandSpec {
    CommandSpec {
        program: program.into(),
        args: args.iter().map(OsString::from).collect(),
        cwd: "/".into(),
        env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()), mark.variable()],
        input: CommandInput::Nothing,
        terminal: None,
        limits: CommandLimits::default(),
        confinement: None,
        keeper: custody(),
    }
}

fn shell(mark: &Mark, script: &str) -> CommandSpec {
    order(mark, "sh", &["-c", script])
}

/// Both outputs, whole, and the end.
async fn all(mut running: RunningCommand) -> (String, String, CommandOutcome) {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    while let Some(output) = running.next().await {
        match output {
            CommandOutputChunk::Stdout(piece) => stdout.extend(piece),
            CommandOutputChunk::Stderr(piece) => stderr.extend(piece),
        }
    }
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(stdout), text(stderr), running.wait().await)
}

/// Reads until the command has said a line.
async fn line(running: &mut RunningCommand) -> String {
    let mut line = String::new();
    while !line.ends_with('\n') {
        match running.next().await {
            Some(CommandOutputChunk::Stdout(piece)) => line.push_str(str::from_utf8(&piece).unwrap()),
            other => panic!("{other:?} after {line:?}"),
        }
    }
    line.trim_end().to_owned()
}
