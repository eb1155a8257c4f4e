//! What the tests of custody run: a small Helve with its keeper, and commands that misbehave in every way we know.
//! Each ends by itself after a while, so that a failed test leaves nothing for long.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a helper of tests fails by panicking, and lives in real time"
)]

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use helve_exec::{
    CommandExitStatus, CommandInput, CommandLimits, CommandOutputChunk, CommandSpec, Confinement,
    ConfinementLevel, NetworkAccess, PrivateLayers, start, supervisor_main,
};
use signal_hook::consts::SIGTERM;

const LIFETIME: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    if let Some(code) = supervisor_main(std::env::args_os()) {
        return code;
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["helve", command @ ..] => return be_helve(command),
        ["probe"] => say_probe(),
        ["sleeper"] => sleep(LIFETIME),
        ["stubborn"] => be_stubborn(),
        ["daemon"] => be_daemon(),
        ["join"] => join_the_keeper(),
        ["new-session", what @ ..] => in_new_session(what),
        ["sleepers", count] => be_many(count.parse().unwrap()),
        ["breed"] => breed(),
        ["bomb"] => explode(now() + 5),
        ["bomb", until] => explode(until.parse().unwrap()),
        ["hop"] => hop(now() + 10),
        ["hop", until] => hop(until.parse().unwrap()),
        ["flood"] => flood(),
        other => panic!("unknown: {other:?}"),
    }
    ExitCode::SUCCESS
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn say(text: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{text}").and_then(|()| out.flush()).unwrap();
}

/// This program again, with nothing of our pipes.
fn again(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Runs a command as Helve does, hands on its output, and ends as it did. Words like `level=full` or `writable=/path`
/// before it confine it.
fn be_helve(words: &[&str]) -> ExitCode {
    let count = words.iter().take_while(|word| word.contains('=')).count();
    let (settings, command) = words.split_at(count);
    let (program, args) = command.split_first().unwrap();
    let values = |name: &str| -> Vec<&str> {
        settings.iter().filter_map(|it| it.strip_prefix(name)?.strip_prefix('=')).collect()
    };
    let value = |name: &str| values(name).last().copied();
    let paths = |name: &str| values(name).into_iter().map(PathBuf::from).collect();
    let number = |name: &str| value(name).map(|value| value.parse().unwrap());
    let level = match value("level") {
        None | Some("bare") => ConfinementLevel::None,
        Some("landlock") => ConfinementLevel::Landlock,
        Some("full") => ConfinementLevel::Full,
        Some(other) => panic!("no level {other}"),
    };
    let confinement = (level != ConfinementLevel::None).then(|| Confinement {
        writable: paths("writable"),
        protected: paths("protected"),
        hidden: paths("hidden"),
        shown: paths("shown"),
        replaced: values("replaced")
            .into_iter()
            .filter_map(|pair| pair.split_once(':'))
            .map(|(path, by)| (path.into(), by.into()))
            .collect(),
        layers: value("layer").map(|folder| PrivateLayers {
            folder: folder.into(),
            base: value("base").unwrap_or("/").into(),
            over: paths("over"),
            own: paths("own"),
            is_kept: value("kept") != Some("no"),
        }),
        temporary: value("temporary").map(PathBuf::from),
        scratch: number("scratch").unwrap_or(64 << 20),
        network: if value("network") == Some("on") { NetworkAccess::On } else { NetworkAccess::Off },
        ..Confinement::new(level)
    });
    let processes = number("processes").map(|count| u32::try_from(count).unwrap());
    let order = CommandSpec {
        program: OsString::from(program),
        args: args.iter().map(OsString::from).collect(),
        cwd: value("cwd").unwrap_or("/").into(),
        env: std::env::vars_os().collect(),
        input: CommandInput::Nothing,
        terminal: None,
        limits: CommandLimits {
            processes,
            file_size: number("file_size"),
            memory: number("memory"),
            cpu: None,
        },
        confinement,
        keeper: "/proc/self/exe".into(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run(order))
}

async fn run(order: CommandSpec) -> ExitCode {
    let mut running = match start(order).await {
        Ok(running) => running,
        Err(error) => {
            eprintln!("{error} ({})", error.hint());
            return ExitCode::from(125);
        }
    };
    while let Some(output) = running.next().await {
        match output {
            CommandOutputChunk::Stdout(piece) => std::io::stdout().write_all(&piece).unwrap(),
            CommandOutputChunk::Stderr(piece) => std::io::stderr().write_all(&piece).unwrap(),
        }
    }
    match running.wait().await.status {
        CommandExitStatus::Exited(code) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
        CommandExitStatus::Signalled(_) | CommandExitStatus::Unknown => ExitCode::from(126),
    }
}

fn say_probe() {
    let probe = helve_exec::probe("/proc/self/exe".as_ref(), None);
    say(&format!("{:?}", probe.level));
    probe.why.iter().for_each(|why| say(&format!("{why}. {}", why.remedy())));
}

fn be_stubborn() {
    signal_hook::flag::register(SIGTERM, Arc::new(AtomicBool::new(false))).unwrap();
    say("ready");
    sleep(LIFETIME);
}

/// Forks twice, into a session of its own, and goes on.
fn be_daemon() {
    again(&["new-session", "stubborn"]).status().unwrap();
    say("ready");
    sleep(LIFETIME);
}

fn in_new_session(what: &[&str]) {
    rustix::process::setsid().unwrap();
    drop(again(what).spawn().unwrap());
}

/// Hides among the keeper's own group.
fn join_the_keeper() {
    rustix::process::setpgid(None, rustix::process::getppid()).unwrap();
    be_stubborn();
}

fn be_many(count: usize) {
    (0..count).for_each(|_| drop(again(&["sleeper"]).spawn().unwrap()));
    say("ready");
    sleep(LIFETIME);
}

/// Replaces each child as soon as it ends.
fn breed() {
    signal_hook::flag::register(SIGTERM, Arc::new(AtomicBool::new(false))).unwrap();
    say("ready");
    let end = now() + LIFETIME.as_secs();
    let mut children: Vec<_> = (0..5).map(|_| again(&["sleeper"]).spawn().unwrap()).collect();
    while now() < end {
        for child in &mut children {
            if child.try_wait().unwrap().is_some() {
                *child = again(&["sleeper"]).spawn().unwrap();
            }
            sleep(Duration::from_millis(1));
        }
    }
}

fn explode(until: u64) {
    while now() < until {
        let _ = again(&["bomb", &until.to_string()]).spawn();
        sleep(Duration::from_millis(5));
    }
}

/// Never stays in one place: a new process in a new session, again and again.
fn hop(until: u64) {
    let _ = rustix::process::setsid();
    if now() < until {
        drop(again(&["hop", &until.to_string()]).spawn().unwrap());
    }
}

fn flood() {
    let text = vec![b'x'; 1 << 16];
    let mut out = std::io::stdout();
    while out.write_all(&text).is_ok() {}
}
