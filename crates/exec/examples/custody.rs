//! What the tests of custody run: a small Helve with its keeper, and commands that misbehave in every way we know.
//! Each ends by itself after a while, so that a failed test leaves nothing for long.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a helper of tests fails by panicking, and lives in real time"
)]

use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use helve_exec::{Input, Limits, Order, Output, keeper_main, start};
use signal_hook::consts::SIGTERM;

const LIFETIME: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    if let Some(code) = keeper_main(std::env::args_os()) {
        return code;
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["helve", command @ ..] => be_helve(command),
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

/// Runs a command as Helve does, and hands on its output.
fn be_helve(command: &[&str]) {
    let (program, args) = command.split_first().unwrap();
    let order = Order {
        program: OsString::from(program),
        args: args.iter().map(OsString::from).collect(),
        cwd: "/".into(),
        env: std::env::vars_os().collect(),
        input: Input::Nothing,
        terminal: None,
        limits: Limits::default(),
        keeper: "/proc/self/exe".into(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut running = start(order).await.unwrap();
        while let Some(Output::Stdout(piece) | Output::Stderr(piece)) = running.next().await {
            std::io::stdout().write_all(&piece).unwrap();
        }
    });
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
