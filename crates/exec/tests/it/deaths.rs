//! What is left when Helve or the keeper is killed: the hard way, without a chance to tidy up.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use helve_exec::{CommandEndCause, ExecError, start};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tokio::time::timeout;

use crate::{LONG, Mark, custody, line, order, shell, until};

/// A process that plays Helve and runs this. It carries no mark itself once it is dead.
fn helve(mark: &Mark, command: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let mut helve = Command::new(custody())
        .arg("helve")
        .args(command)
        .envs([mark.variable()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(helve.stdout.take().unwrap());
    (helve, output)
}

fn read_line(output: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

fn pid(text: &str) -> Pid {
    Pid::from_raw(text.parse().unwrap()).unwrap()
}

pub(crate) fn dies_with_helve(command: &[&str], count: usize) {
    let mark = Mark::new();
    let (mut helve, mut output) = helve(&mark, command);
    assert_eq!(read_line(&mut output), "ready", "{command:?}");
    mark.wait_for(count + 1);
    helve.kill().unwrap();
    helve.wait().unwrap();
    println!("{command:?}: gone {:?} after Helve", mark.wait_until_gone());
}

#[test]
fn nothing_outlives_helve() {
    let probe = custody();
    let probe = probe.to_str().unwrap();
    dies_with_helve(&["sh", "-c", "echo ready; exec sleep 60"], 1);
    dies_with_helve(&["sh", "-c", "echo ready; sleep 60 | cat | cat"], 3);
    dies_with_helve(&[probe, "stubborn"], 1);
    dies_with_helve(&[probe, "daemon"], 2);
    dies_with_helve(&[probe, "sleepers", "200"], 201);
    dies_with_helve(&[probe, "breed"], 6);
}

#[test]
fn the_keeper_does_not_outlive_helve() {
    let mark = Mark::new();
    let (mut helve, mut output) = helve(&mark, &["sh", "-c", "echo $PPID; sleep 60"]);
    let keeper = pid(&read_line(&mut output));
    assert!(test_kill_process(keeper).is_ok());
    helve.kill().unwrap();
    helve.wait().unwrap();
    mark.wait_until_gone();
    until("the end of the keeper", || test_kill_process(keeper).is_err());
}

#[tokio::test]
async fn a_killed_keeper_takes_its_session_with_it() {
    let mark = Mark::new();
    let mut running = start(shell(&mark, "sleep 60 & sleep 60 | cat & echo $PPID; sleep 60")).await.unwrap();
    let keeper = pid(&line(&mut running).await);
    mark.wait_for(5);
    kill_process(keeper, Signal::KILL).unwrap();
    let ended = timeout(LONG, running.wait()).await.unwrap();
    assert_eq!(ended.cause, CommandEndCause::SupervisorLost);
    mark.wait_until_gone();
}

#[tokio::test]
async fn a_keeper_killed_by_its_own_command_holds_nothing_up() {
    let mark = Mark::new();
    // Before or after it could say that the command has begun.
    match start(shell(&mark, "kill -9 $PPID; sleep 60")).await {
        Ok(mut running) => {
            assert_eq!(timeout(LONG, running.wait()).await.unwrap().cause, CommandEndCause::SupervisorLost);
        }
        Err(error) => assert!(matches!(error, ExecError::SupervisorFailed(_)), "{error}"),
    }
    mark.wait_until_gone();
}

/// Whatever session they fled to, and whoever adopted them.
#[tokio::test]
async fn nothing_outlives_a_keeper_that_its_own_command_killed() {
    for script in [
        "setsid sleep 60 & kill -9 $PPID; sleep 60",
        "(setsid setsid sleep 60 &) ; (setsid sh -c '(setsid sleep 60 &)' &); sleep 0.2; kill -9 $PPID; setsid sleep 60",
        "keeper=$PPID; setsid sh -c \"sleep 0.2; kill -9 $keeper; setsid sleep 60 & (setsid sleep 60 &)\" & sleep 60",
        "keeper=$PPID; setsid sh -c \"kill -9 $keeper; exec env -u PATH /bin/sleep 60\"",
    ] {
        let mark = Mark::new();
        match start(shell(&mark, script)).await {
            Ok(mut running) => {
                assert_eq!(
                    timeout(LONG, running.wait()).await.unwrap().cause,
                    CommandEndCause::SupervisorLost,
                    "{script}"
                );
            }
            Err(error) => assert!(matches!(error, ExecError::SupervisorFailed(_)), "{script}: {error}"),
        }
        mark.wait_until_gone();
    }
}

#[tokio::test]
async fn a_keeper_that_is_asked_to_end_tidies_up_first() {
    let mark = Mark::new();
    let mut running = start(order(&mark, custody(), &["daemon"])).await.unwrap();
    assert_eq!(line(&mut running).await, "ready");
    mark.wait_for(2);
    let status = std::fs::read_to_string(format!("/proc/{}/stat", running.id())).unwrap();
    let keeper = pid(status.split(' ').nth(3).unwrap());
    kill_process(keeper, Signal::TERM).unwrap();
    let ended = timeout(LONG, running.wait()).await.unwrap();
    assert_eq!((ended.cause, ended.survivors), (CommandEndCause::Stopped, 0));
    assert_eq!(mark.processes(), [0; 0]);
}

#[tokio::test]
async fn a_paused_keeper_is_woken_to_stop() {
    let mark = Mark::new();
    let mut running = start(shell(&mark, "sleep 0.3; kill -STOP $PPID; echo ready; sleep 60")).await.unwrap();
    assert_eq!(line(&mut running).await, "ready");
    running.stop();
    // Sooner than a keeper that does not answer is given up.
    let ended = timeout(Duration::from_secs(4), running.wait()).await.unwrap();
    assert_eq!(ended.cause, CommandEndCause::Stopped);
    mark.wait_until_gone();
}
