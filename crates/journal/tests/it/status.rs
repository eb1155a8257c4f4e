//! What other processes are doing can be seen without disturbing them.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Child;

use helve_journal::{FileJournal, Journal, MemoryJournal};
use helve_protocol::{SessionStatus, SessionSummary, TurnStarted};
use helve_testkit::{SampleSession, sample_id};

use crate::child;
use crate::support::{file_journal, log_path, store_session};

/// A process that owns a session and does in it what it is told.
struct Actor {
    child: Child,
    said: Box<dyn Iterator<Item = String>>,
}

impl Actor {
    fn new(root: &Path, session: helve_protocol::SessionId) -> Actor {
        let mut child = child::role(&[], "act", root, session).spawn().unwrap();
        let said = Box::new(child::lines(&mut child));
        let mut actor = Actor { child, said };
        assert_eq!(actor.said.next().as_deref(), Some("owns"));
        actor
    }

    fn act(&mut self, what: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{what}").unwrap();
        assert_eq!(self.said.next().as_deref(), Some("done"), "{what}");
    }

    fn leave(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// What the only session is doing, and whether it was broken off.
fn status(journal: &dyn Journal) -> (Option<SessionStatus>, bool) {
    let list = journal.list().unwrap();
    let [SessionSummary { status, broken_off, .. }] = list.as_slice() else { panic!("{list:?}") };
    (*status, *broken_off)
}

const ENDED: (Option<SessionStatus>, bool) = (Some(SessionStatus::Ended), false);
const BROKEN_OFF: (Option<SessionStatus>, bool) = (Some(SessionStatus::Ended), true);

fn alive(status: SessionStatus) -> (Option<SessionStatus>, bool) {
    (Some(status), false)
}

#[test]
fn a_list_tells_what_another_process_is_doing() {
    let root = tempfile::tempdir().unwrap();
    let journal = FileJournal::new(root.path().join("home"));
    let session = store_session(&journal, 1, 1)[0].session;
    assert_eq!(status(&journal), ENDED);
    let mut actor = Actor::new(root.path(), session);
    assert_eq!(status(&journal), alive(SessionStatus::Idle));
    for (what, expected) in [
        ("turn", SessionStatus::Thinking),
        ("call", SessionStatus::RunningTools),
        ("ask", SessionStatus::WaitingForPerson),
        ("answer", SessionStatus::RunningTools),
        ("tool", SessionStatus::RunningTools),
        ("step", SessionStatus::Thinking),
        ("end", SessionStatus::Idle),
    ] {
        actor.act(what);
        assert_eq!(status(&journal), alive(expected), "{what}");
        fs::remove_file(journal.catalogue_path()).unwrap();
        let anew = FileJournal::new(root.path().join("home"));
        assert_eq!(status(&anew), alive(expected), "{what}, read as a whole");
    }
    actor.leave();
    assert_eq!(status(&journal), ENDED);
    let left = fs::read_dir(root.path().join("home/sessions/.open")).unwrap();
    assert_eq!(left.count(), 0, "who closes a session leaves nothing");
}

#[test]
fn what_was_killed_in_the_middle_of_a_turn_is_broken_off() {
    let root = tempfile::tempdir().unwrap();
    let journal = FileJournal::new(root.path().join("home"));
    let session = store_session(&journal, 1, 1)[0].session;

    Actor::new(root.path(), session).kill();
    assert_eq!(status(&journal), ENDED, "it was idle");

    for what in ["turn", "ask"] {
        let mut actor = Actor::new(root.path(), session);
        actor.act(what);
        assert_eq!(status(&journal).0.map(|status| status == SessionStatus::Ended), Some(false));
        actor.kill();
        assert_eq!(status(&journal), BROKEN_OFF, "{what}");
    }

    assert!(fs::read_dir(root.path().join("home/sessions/.open")).unwrap().count() > 0);

    // Whoever takes it up again says how the turn ended.
    let mut actor = Actor::new(root.path(), session);
    assert_eq!(status(&journal), alive(SessionStatus::WaitingForPerson));
    actor.act("end");
    actor.leave();
    assert_eq!(status(&journal), ENDED);

    Actor::new(root.path(), session).kill();
    journal.delete(session).unwrap();
    assert_eq!(fs::read_dir(root.path().join("home/sessions/.open")).unwrap().count(), 0);
}

#[test]
fn a_session_of_this_process_is_told_like_any_other() {
    let check = |journal: &dyn Journal| {
        let mut session = SampleSession::new(sample_id(1));
        let mut log = journal.create(session.id).unwrap();
        log.append(&[session.created()]).unwrap();
        assert_eq!(status(journal), alive(SessionStatus::Idle));
        log.append(&[session.event(TurnStarted::default())]).unwrap();
        assert_eq!(status(journal), alive(SessionStatus::Thinking));
        drop(log);
        assert_eq!(status(journal), BROKEN_OFF);
        journal.open(session.id, &mut |_| {}).unwrap().append(&[session.turn_ended()]).unwrap();
        assert_eq!(status(journal), ENDED);
    };
    check(&MemoryJournal::default());
    check(&file_journal().1);
}

/// Nobody broke off the fork: it has not begun anything yet.
#[test]
fn a_fork_is_not_told_by_what_its_parent_was_doing() {
    let (_root, journal) = file_journal();
    let mut session = SampleSession::new(sample_id(1));
    let mut log = journal.create(session.id).unwrap();
    log.append(&[session.created(), session.event(TurnStarted::default())]).unwrap();
    journal.fork(sample_id(1), session.last, sample_id(2)).unwrap();
    let list = journal.list().unwrap();
    let of = |n: u64| list.iter().find(|summary| summary.session == sample_id(n)).unwrap();
    assert_eq!((of(1).status, of(1).broken_off), alive(SessionStatus::Thinking));
    assert_eq!((of(2).status, of(2).broken_off), ENDED);
}

#[test]
fn what_a_damaged_session_does_is_not_known() {
    let (root, journal) = file_journal();
    let session = store_session(&journal, 1, 1)[0].session;
    let log = journal.open(session, &mut |_| {}).unwrap();
    let path = log_path(root.path(), session);
    let mut bytes = fs::read(&path).unwrap();
    bytes[500] ^= 1;
    fs::write(&path, bytes).unwrap();
    journal.rebuild_catalogue().unwrap();
    assert_eq!(status(&journal), (None, false));
    drop(log);
    assert_eq!(status(&journal), ENDED);
}

#[test]
fn who_lists_keeps_nobody_from_opening() {
    let root = tempfile::tempdir().unwrap();
    let journal = FileJournal::new(root.path().join("home"));
    let session = store_session(&journal, 1, 1)[0].session;
    let mut listers: Vec<_> =
        (0..3).map(|_| child::role(&[], "list", root.path(), session).spawn().unwrap()).collect();
    for _ in 0..200 {
        let log = journal.open(session, &mut |_| {}).unwrap();
        assert_eq!(status(&journal), alive(SessionStatus::Idle), "and nobody keeps it from being seen");
        drop(log);
    }
    for lister in &mut listers {
        assert_eq!(child::lines(lister).count(), 40);
        assert!(lister.wait().unwrap().success());
    }
}

/// Whether nobody has the lock of a file.
fn is_free(path: &Path) -> bool {
    File::open(path).unwrap().try_lock().is_ok()
}

/// Somebody who was stopped in the middle of a list has the lock for as long as he is.
#[test]
fn who_is_stopped_while_listing_does_not_stop_others() {
    let (root, journal) = file_journal();
    let session = store_session(&journal, 1, 1)[0].session;
    let path = root.path().join("sessions/.open").join(session.to_string());
    fs::write(&path, "1").unwrap();
    let stopped = File::open(&path).unwrap();
    stopped.lock_shared().unwrap();
    let log = journal.open(session, &mut |_| {}).unwrap();
    assert!(!is_free(&path), "who was stopped has the lock still");
    drop(log);
    drop(stopped);
    let _log = journal.open(session, &mut |_| {}).unwrap();
    assert_eq!(status(&journal), alive(SessionStatus::Idle));
}
