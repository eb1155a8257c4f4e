//! Much output, many commands, and what a keeper costs.

use std::fs;
use std::time::{Duration, Instant};

use helve_exec::{CommandEndCause, CommandExitStatus, start};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::{LONG, Mark, all, custody, order, shell};

/// What a process has written so far, in bytes.
fn written(pid: i32) -> u64 {
    let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
    io.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap().parse().unwrap()
}

/// The memory of this process, in bytes.
fn memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[tokio::test]
async fn a_flood_waits_for_its_reader() {
    let mark = Mark::new();
    let before = memory();
    let mut running = start(order(&mark, custody(), &["flood"])).await.unwrap();
    let mut read = 0;
    for _ in 0..50 {
        let Some(helve_exec::CommandOutputChunk::Stdout(piece)) = running.next().await else {
            panic!("it floods")
        };
        assert!(piece.len() <= 16 << 10);
        read += piece.len() as u64;
        sleep(Duration::from_millis(2)).await;
    }
    sleep(Duration::from_millis(100)).await;
    // What the pipe holds, and the piece that is being written.
    let ahead = written(running.id()) - read;
    assert!(ahead <= 256 << 10, "{ahead} bytes ahead");
    // Other tests run in this process too; a flood of this time would be gigabytes.
    let grown = memory().saturating_sub(before);
    assert!(grown < 200 << 20, "grown by {grown}");
    running.stop();
    assert_eq!(timeout(LONG, running.wait()).await.unwrap().cause, CommandEndCause::Stopped);
    mark.wait_until_gone();
}

#[tokio::test]
async fn fifty_at_once_do_not_mix() {
    let mark = Mark::new();
    let mut tasks = JoinSet::new();
    for number in 0..50 {
        let order = shell(&mark, &format!("sleep 0.1; echo {number}; sleep 60 & exit {number}"));
        tasks.spawn(async move { (number, all(start(order).await.unwrap()).await) });
    }
    while let Some(done) = timeout(LONG, tasks.join_next()).await.unwrap() {
        let (number, (stdout, _, ended)) = done.unwrap();
        assert_eq!(stdout, format!("{number}\n"));
        assert_eq!((ended.status, ended.leftovers), (CommandExitStatus::Exited(number), 1));
    }
    assert_eq!(mark.processes(), [0; 0]);
}

#[tokio::test]
async fn fifty_are_stopped_by_the_death_of_one() {
    let mark = Mark::new();
    let mut tasks = JoinSet::new();
    for _ in 0..50 {
        let order = shell(&mark, "sleep 60 & sleep 60");
        tasks.spawn(async move { start(order).await.unwrap().wait().await });
    }
    timeout(LONG, async {
        while mark.processes().len() < 150 {
            sleep(Duration::from_millis(10)).await
        }
    })
    .await
    .unwrap();
    tasks.shutdown().await;
    mark.wait_until_gone();
}

/// Shows what the keeper adds to a command. Nothing is asserted: machines differ.
#[tokio::test]
async fn what_a_keeper_costs() {
    const ROUNDS: u32 = 50;
    let mark = Mark::new();
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        assert!(tokio::process::Command::new("/bin/true").status().await.unwrap().success());
    }
    let bare = begin.elapsed() / ROUNDS;
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        assert_eq!(
            start(order(&mark, "/bin/true", &[])).await.unwrap().wait().await.status,
            CommandExitStatus::Exited(0)
        );
    }
    println!("`true` takes {bare:?}, under a keeper {:?}", begin.elapsed() / ROUNDS);
}
