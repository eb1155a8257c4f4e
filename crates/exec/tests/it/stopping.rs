//! Commands that are stopped, or left, at any moment, and what they leave behind.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use helve_exec::{CommandEndCause, CommandExitStatus, CommandLimits, CommandSpec, RunningCommand, start};
use proptest::prelude::*;
use tokio::time::{sleep, timeout};

use crate::{LONG, Mark, all, custody, line, order, shell, until};

/// What misbehaves: the order, and how many processes it is made of.
pub(crate) fn misbehaving(mark: &Mark) -> Vec<(&'static str, CommandSpec, usize)> {
    let probe = |args: &[&str]| order(mark, custody(), args);
    vec![
        ("sleeps", shell(mark, "echo ready; exec sleep 60"), 1),
        ("ignores the signal", probe(&["stubborn"]), 1),
        ("is a daemon", probe(&["daemon"]), 2),
        ("is a pipeline", shell(mark, "echo ready; sleep 60 | cat | cat"), 3),
        ("is many", probe(&["sleepers", "200"]), 201),
        ("breeds", probe(&["breed"]), 6),
        ("is paused", shell(mark, "echo ready; sleep 60 & kill -STOP $! $$"), 2),
        ("joins the keeper's group", probe(&["join"]), 1),
    ]
}

pub(crate) async fn stop(mark: &Mark, running: &mut RunningCommand) -> Duration {
    let start = Instant::now();
    running.stop();
    let ended = timeout(LONG, running.wait()).await.unwrap();
    let time = start.elapsed();
    assert_eq!((ended.cause, ended.survivors), (CommandEndCause::Stopped, 0));
    assert_eq!(mark.processes(), [0; 0], "nothing is left when `wait` returns");
    time
}

#[tokio::test]
async fn whatever_it_does_it_is_stopped() {
    let mark = Mark::new();
    for (what, order, count) in misbehaving(&mark) {
        let mut running = start(order).await.unwrap();
        assert_eq!(line(&mut running).await, "ready", "{what}");
        mark.wait_for(count);
        println!("{what}: gone after {:?}", stop(&mark, &mut running).await);
    }
}

#[tokio::test]
async fn whatever_it_does_it_ends_when_it_is_dropped() {
    let mark = Mark::new();
    for (what, order, count) in misbehaving(&mark) {
        let mut running = start(order).await.unwrap();
        assert_eq!(line(&mut running).await, "ready", "{what}");
        mark.wait_for(count);
        drop(running);
        println!("{what}: gone after {:?}", mark.wait_until_gone());
    }
}

#[tokio::test]
async fn what_flees_from_session_to_session_is_caught() {
    let mark = Mark::new();
    let mut running =
        start(shell(&mark, &format!("{} hop; exec sleep 60", custody().display()))).await.unwrap();
    mark.wait_for(1);
    sleep(Duration::from_millis(100)).await;
    println!("hopping: gone after {:?}", stop(&mark, &mut running).await);
}

#[tokio::test]
async fn a_fork_bomb_is_ended_by_its_limit() {
    let mark = Mark::new();
    let limits = CommandLimits { processes: Some(60), ..CommandLimits::default() };
    let mut running = start(CommandSpec { limits, ..order(&mark, custody(), &["bomb"]) }).await.unwrap();
    let ended = timeout(LONG, running.wait()).await.unwrap();
    assert_eq!((ended.cause, ended.survivors), (CommandEndCause::TooManyProcesses, 0));
    assert_eq!(mark.processes(), [0; 0]);
}

#[tokio::test]
async fn a_command_within_its_limit_is_left_alone() {
    let mark = Mark::new();
    let limits = CommandLimits { processes: Some(60), ..CommandLimits::default() };
    let order =
        CommandSpec { limits, ..shell(&mark, "for i in 1 2 3 4 5; do sleep 0.2 & done; wait; echo done") };
    let (stdout, _, ended) = all(start(order).await.unwrap()).await;
    assert_eq!(
        (stdout.as_str(), ended.status, ended.cause),
        ("done\n", CommandExitStatus::Exited(0), CommandEndCause::Completed)
    );
}

#[tokio::test]
async fn what_a_command_leaves_behind_is_ended() {
    let mark = Mark::new();
    // They hold the pipes open, which must not hold up the end.
    let order = shell(&mark, "sleep 60 & sleep 60 & echo started; exit 3");
    let (stdout, _, ended) = timeout(LONG, all(start(order).await.unwrap())).await.unwrap();
    assert_eq!((stdout.as_str(), ended.status), ("started\n", CommandExitStatus::Exited(3)));
    assert_eq!((ended.cause, ended.leftovers, ended.survivors), (CommandEndCause::Completed, 2, 0));
    assert_eq!(mark.processes(), [0; 0]);
}

#[tokio::test]
async fn a_daemon_that_a_command_leaves_behind_is_ended() {
    let mark = Mark::new();
    let order = shell(&mark, &format!("{} new-session stubborn; exit 0", custody().display()));
    let ended = timeout(LONG, all(start(order).await.unwrap())).await.unwrap().2;
    assert_eq!((ended.status, ended.leftovers, ended.survivors), (CommandExitStatus::Exited(0), 1, 0));
    assert_eq!(mark.processes(), [0; 0]);
}

#[tokio::test]
async fn to_be_asked_is_to_be_given_time() {
    let mark = Mark::new();
    let script = "trap 'echo tidy; exit 5' TERM; echo ready; while :; do sleep 0.01; done";
    let mut running = start(shell(&mark, script)).await.unwrap();
    assert_eq!(line(&mut running).await, "ready");
    running.stop();
    let (stdout, _, ended) = timeout(LONG, all(running)).await.unwrap();
    assert_eq!(
        (stdout.as_str(), ended.status, ended.cause),
        ("tidy\n", CommandExitStatus::Exited(5), CommandEndCause::Stopped)
    );
}

#[tokio::test]
async fn stopping_twice_or_too_late_does_nothing() {
    let mut running = start(shell(&Mark::new(), "exit 4")).await.unwrap();
    let ended = running.wait().await;
    running.stop();
    running.stop();
    assert_eq!(running.wait().await, ended);
    assert_eq!(ended.status, CommandExitStatus::Exited(4));
}

/// Starts something with a family, and stops it after so many microseconds: also before it has started.
async fn stop_after(micros: u64) -> Result<(), TestCaseError> {
    let mark = Mark::new();
    let delay = Duration::from_micros(micros);
    let order = shell(&mark, "(sleep 60 & sleep 60) & setsid sleep 60 & sleep 60 | cat");
    let folder = tempfile::tempdir().unwrap();
    let keeper = folder.path().join("keeper");
    symlink(custody(), &keeper).unwrap();
    let begun = timeout(delay, start(CommandSpec { keeper: keeper.clone(), ..order })).await;
    if let Ok(running) = begun {
        let mut running = running.unwrap();
        sleep(delay).await;
        running.stop();
        let ended = timeout(LONG, running.wait()).await.unwrap();
        prop_assert_eq!(ended.survivors, 0);
    }
    // Given up before it had started, it may still start, but only to be ended by its keeper.
    until("the end of the keeper", || !is_running(&keeper));
    prop_assert_eq!(mark.processes(), [0; 0]);
    Ok(())
}

/// Whether a process was started by this path.
fn is_running(program: &Path) -> bool {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let mut commands = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    commands.any(|command| command.starts_with(program.as_os_str().as_bytes()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn it_is_stopped_at_any_moment(micros in 0..20_000_u64) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(stop_after(micros))?;
    }
}
