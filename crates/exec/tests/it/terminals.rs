//! Commands on a terminal of their own, and commands that are typed to.

use std::fs;

use helve_exec::{
    CommandEndCause, CommandExitStatus, CommandInput, CommandInputError, CommandOutputChunk, CommandSpec,
    RunningCommand, WindowSize, start,
};
use tokio::time::timeout;

use crate::{LONG, Mark, all, custody, line, order, shell};

const SIZE: WindowSize = WindowSize { rows: 33, columns: 97 };

fn on_terminal(order: CommandSpec) -> CommandSpec {
    CommandSpec { terminal: Some(SIZE), ..order }
}

fn typed_to(order: CommandSpec) -> CommandSpec {
    CommandSpec { input: CommandInput::Open, ..order }
}

/// Reads until the command has said this.
async fn until_said(running: &mut RunningCommand, text: &str) -> String {
    let mut said = String::new();
    while !said.contains(text) {
        match timeout(LONG, running.next()).await.unwrap() {
            Some(CommandOutputChunk::Stdout(piece) | CommandOutputChunk::Stderr(piece)) => {
                said.push_str(&String::from_utf8_lossy(&piece));
            }
            None => panic!("it ended after {said:?}"),
        }
    }
    said
}

#[tokio::test]
async fn a_terminal_is_one_to_all_three_and_controls_the_session() {
    let script = "test -t 0 && test -t 1 && test -t 2 && echo all; stty size; echo there > /dev/tty; \
                  cut -d' ' -f1,5,6,8 /proc/$$/stat; exit 5";
    let (said, _, ended) = all(start(on_terminal(shell(&Mark::new(), script))).await.unwrap()).await;
    let lines: Vec<&str> = said.lines().collect();
    let [all, size, there, ids] = lines.as_slice() else { panic!("{said:?}") };
    assert_eq!((*all, *size, *there), ("all", "33 97", "there"));
    let ids: Vec<&str> = ids.split(' ').collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "process, group, session, foreground: {ids:?}");
    assert_eq!((ended.status, ended.cause), (CommandExitStatus::Exited(5), CommandEndCause::Completed));
}

#[tokio::test]
async fn a_terminal_where_nobody_types_is_at_its_end() {
    for script in ["cat", "read x; read y; echo over", "exec python3 -i", "exec bash -i"] {
        let running = start(on_terminal(shell(&Mark::new(), script))).await.unwrap();
        let ended = timeout(LONG, all(running)).await.unwrap_or_else(|_| panic!("{script} waits on")).2;
        assert_eq!(ended.cause, CommandEndCause::Completed, "{script}");
    }
}

#[tokio::test]
async fn what_is_typed_is_read_and_echoed() {
    let script = "read name; echo \"hello $name\"; cat; echo over";
    let mut running = start(typed_to(on_terminal(shell(&Mark::new(), script)))).await.unwrap();
    running.write(b"you\n").unwrap();
    until_said(&mut running, "hello you\r\n").await;
    running.write(b"unfinished").unwrap();
    running.close_input();
    let said = until_said(&mut running, "over\r\n").await;
    assert!(said.contains("unfinishedunfinishedover"), "echoed, then read: {said:?}");
    assert_eq!(running.wait().await.status, CommandExitStatus::Exited(0));
    assert_eq!(running.write(b"more"), Err(CommandInputError::Closed));
}

#[tokio::test]
async fn ctrl_c_reaches_what_is_in_the_foreground_only() {
    let mark = Mark::new();
    // The child says that it is ready: before it is a program of its own, it would take the key with its parent's trap.
    let script = "trap 'echo caught' INT; sh -c 'echo ready; exec sleep 60'; echo on";
    let mut running = start(typed_to(on_terminal(shell(&mark, script)))).await.unwrap();
    until_said(&mut running, "ready").await;
    mark.wait_for(2);
    running.write(b"\x03").unwrap();
    until_said(&mut running, "on\r\n").await;
    assert_eq!(running.wait().await.status, CommandExitStatus::Exited(0));
    assert_eq!(mark.processes(), [0; 0]);
}

#[tokio::test]
async fn a_terminal_that_was_closed_can_be_opened_again() {
    let script = "exec <&- >&- 2>&-; sleep 0.3; echo back > /dev/tty";
    let (said, ..) = all(start(on_terminal(shell(&Mark::new(), script))).await.unwrap()).await;
    assert_eq!(said, "back\r\n");
}

#[tokio::test]
async fn much_output_arrives_whole_through_a_terminal() {
    let script = "head -c 300000 /dev/zero | tr '\\0' x; echo; echo over";
    let (said, ..) = all(start(on_terminal(shell(&Mark::new(), script))).await.unwrap()).await;
    assert_eq!(said.len(), 300_000 + "\r\nover\r\n".len());
}

#[tokio::test]
async fn whatever_it_does_on_a_terminal_it_is_ended() {
    let mark = Mark::new();
    let custody = custody().display().to_string();
    let scripts = [
        ("sleeps", "echo ready; exec sleep 60".to_owned(), 1),
        ("hears no hang-up", "trap '' HUP TERM INT; echo ready; sleep 60; sleep 60".to_owned(), 2),
        ("controls jobs", "set -m; sleep 60 & sleep 60 | cat & echo ready; wait".to_owned(), 4),
        ("is a daemon", format!("exec {custody} daemon"), 2),
        ("breeds", format!("exec {custody} breed"), 6),
    ];
    for (what, script, count) in scripts {
        for is_dropped in [false, true] {
            let mut running = start(on_terminal(shell(&mark, &script))).await.unwrap();
            until_said(&mut running, "ready").await;
            mark.wait_for(count);
            if is_dropped {
                drop(running);
                mark.wait_until_gone();
            } else {
                running.stop();
                let ended = timeout(LONG, running.wait()).await.unwrap();
                assert_eq!((ended.cause, ended.survivors), (CommandEndCause::Stopped, 0), "{what}");
                assert_eq!(mark.processes(), [0; 0], "{what}");
            }
        }
    }
}

#[tokio::test]
async fn a_command_on_a_terminal_ends_with_its_keeper() {
    let mark = Mark::new();
    let mut running =
        start(on_terminal(shell(&mark, "trap '' HUP TERM; echo ready; sleep 60; sleep 60"))).await.unwrap();
    until_said(&mut running, "ready").await;
    mark.wait_for(2);
    let stat = fs::read_to_string(format!("/proc/{}/stat", running.id())).unwrap();
    let keeper: i32 = stat.split(' ').nth(3).unwrap().parse().unwrap();
    let keeper = rustix::process::Pid::from_raw(keeper).unwrap();
    rustix::process::kill_process(keeper, rustix::process::Signal::KILL).unwrap();
    assert_eq!(timeout(LONG, running.wait()).await.unwrap().cause, CommandEndCause::SupervisorLost);
    assert_eq!(mark.processes(), [0; 0]);
}

#[tokio::test]
async fn a_pipe_is_written_to_while_the_command_runs() {
    let mut running = start(typed_to(order(&Mark::new(), "cat", &[]))).await.unwrap();
    running.write(b"one\n").unwrap();
    assert_eq!(line(&mut running).await, "one");
    running.write(b"two\n").unwrap();
    running.close_input();
    assert_eq!(running.write(b"three"), Err(CommandInputError::Closed));
    let (said, _, ended) = timeout(LONG, all(running)).await.unwrap();
    assert_eq!((said.as_str(), ended.status), ("two\n", CommandExitStatus::Exited(0)));
}

#[tokio::test]
async fn what_nobody_reads_is_bounded_and_holds_nothing_up() {
    let mark = Mark::new();
    let mut running = start(typed_to(shell(&mark, "exec sleep 60"))).await.unwrap();
    running.write(&vec![0; 1 << 20]).unwrap();
    assert_eq!(running.write(b"x"), Err(CommandInputError::Full));
    running.stop();
    assert_eq!(timeout(LONG, running.wait()).await.unwrap().cause, CommandEndCause::Stopped);
    assert_eq!(mark.processes(), [0; 0]);
    let mut closed = start(shell(&mark, "exit 0")).await.unwrap();
    assert_eq!(closed.write(b"x"), Err(CommandInputError::Closed));
    closed.wait().await;
}
