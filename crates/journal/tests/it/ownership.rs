//! Two processes never write one session at once (R-SESS-6).

use std::io::Write;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};

use helve_journal::{FileJournal, Journal, JournalError};
use helve_testkit::sample_id;

use crate::child;
use crate::support::{file_journal, read_whole, store_session};

#[test]
fn a_second_process_is_refused_until_the_first_is_killed() {
    let root = tempfile::tempdir().unwrap();
    let journal = FileJournal::new(root.path().join("home"));
    let events = store_session(&journal, 1, 1);
    let session = events[0].session;
    let mut child = child::role(&[], "own", root.path(), session).spawn().unwrap();
    let mut said = child::lines(&mut child);
    assert_eq!(said.next().as_deref(), Some("owns"));

    let refused = journal.open(session, &mut |_| {}).err().unwrap();
    assert!(
        matches!(&refused, JournalError::InUse { owner: Some(pid), .. } if *pid == child.id()),
        "{refused}"
    );
    assert!(matches!(journal.delete(session), Err(JournalError::InUse { .. })));
    assert_eq!(read_whole(&journal, session), events, "anybody may read");

    child.kill().unwrap();
    child.wait().unwrap();
    journal.open(session, &mut |_| {}).unwrap();
}

/// A child has its parent's files open until it has begun its own work, and with them their locks.
#[test]
fn a_closed_session_can_be_opened_while_processes_are_started() {
    let (_root, journal) = file_journal();
    let session = store_session(&journal, 1, 1)[0].session;
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                Command::new("true").status().unwrap();
            }
        });
        let opened = (0..2_000).find_map(|_| journal.open(session, &mut |_| {}).err());
        is_done.store(true, Ordering::Relaxed);
        assert!(opened.is_none(), "{opened:?}");
    });
}

struct Racer {
    child: Child,
    said: Box<dyn Iterator<Item = String>>,
}

impl Racer {
    fn hear(&mut self) -> String {
        self.said.next().unwrap()
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }
}

#[test]
fn a_thousand_races_have_one_winner_each() {
    let root = tempfile::tempdir().unwrap();
    let journal = FileJournal::new(root.path().join("home"));
    let sessions: Vec<_> = (0..5).map(|n| store_session(&journal, n, 1)[0].session).collect();
    let start = || {
        let mut child = child::role(&[], "race", root.path(), sample_id(1)).spawn().unwrap();
        let said = Box::new(child::lines(&mut child));
        Racer { child, said }
    };
    let mut racers: Vec<Racer> = (0..3).map(|_| start()).collect();
    racers.iter_mut().for_each(|racer| assert_eq!(racer.hear(), "ready"));
    let mut wins = [0; 3];
    for race in 0..1000 {
        let session = sessions[race % sessions.len()].to_string();
        // Nobody shall always be told first.
        for n in 0..racers.len() {
            racers[(race + n) % 3].tell(&session);
        }
        let verdicts: Vec<String> = racers.iter_mut().map(Racer::hear).collect();
        let winners: Vec<usize> = (0..3).filter(|n| verdicts[*n] == "won").collect();
        assert_eq!(winners.len(), 1, "race {race}: {verdicts:?}");
        assert_eq!(
            verdicts.iter().filter(|verdict| *verdict == "lost").count(),
            2,
            "race {race}: {verdicts:?}"
        );
        wins[winners[0]] += 1;
        racers.iter_mut().for_each(|racer| racer.tell("let go"));
        racers.iter_mut().for_each(|racer| assert_eq!(racer.hear(), "let go"));
    }
    println!("wins: {wins:?}");
    for mut racer in racers {
        drop(racer.child.stdin.take());
        racer.child.wait().unwrap();
    }
}
