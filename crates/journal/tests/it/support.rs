//! What the tests below share.

use helve_journal::{FileJournal, Journal, JournalResult, LogReadEnd};
use helve_protocol::{SessionEvent, SessionId};
use helve_testkit::{SampleSession, sample_id};

pub(crate) use crate::child_data::{log_path, noise, read};

/// Reads a session only to see whether that can be done.
pub(crate) fn skim(journal: &dyn Journal, session: SessionId) -> JournalResult<LogReadEnd> {
    read(journal, session).map(|(_, ending)| ending)
}

pub(crate) fn read_whole(journal: &dyn Journal, session: SessionId) -> Vec<SessionEvent> {
    let (events, ending) = read(journal, session).unwrap();
    assert_eq!(ending, LogReadEnd::Whole);
    events
}

/// A session of some turns, stored under its id. Gives its events.
pub(crate) fn store_session(journal: &dyn Journal, n: u64, turns: usize) -> Vec<SessionEvent> {
    let mut session = SampleSession::new(sample_id(1_000_000 + n));
    let mut log = journal.create(session.id).unwrap();
    let mut events = vec![session.created()];
    for turn in 0..turns {
        events.push(session.user_message(&format!("question {turn} of session {n}")));
        events.extend(session.step("I look.", &[("read", "fn main() {}"), ("grep", "src/main.rs:1")]));
        events.extend(session.step("It is empty.", &[]));
        events.push(session.turn_ended());
    }
    log.append(&events).unwrap();
    events
}

pub(crate) fn file_journal() -> (tempfile::TempDir, FileJournal) {
    let root = tempfile::tempdir().unwrap();
    let journal = FileJournal::new(root.path());
    (root, journal)
}
