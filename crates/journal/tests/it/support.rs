//! What the tests below share.

use std::ops::ControlFlow;
use std::path::Path;

use helve_journal::{FileJournal, Journal, JournalResult, LogReadEnd};
use helve_protocol::{Seq, SessionEvent, SessionId};
use helve_testkit::{SampleSession, sample_id};

pub(crate) fn read(
    journal: &dyn Journal,
    session: SessionId,
) -> JournalResult<(Vec<SessionEvent>, LogReadEnd)> {
    let mut events = Vec::new();
    let ending = journal.read(session, Seq::START, &mut |event| {
        events.push(event);
        ControlFlow::Continue(())
    })?;
    Ok((events, ending))
}

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

pub(crate) fn log_path(root: &Path, session: SessionId) -> std::path::PathBuf {
    root.join("sessions").join(session.to_string()).join("log.jsonl")
}

pub(crate) fn file_journal() -> (tempfile::TempDir, FileJournal) {
    let root = tempfile::tempdir().unwrap();
    let journal = FileJournal::new(root.path());
    (root, journal)
}

/// Bytes that can't be compressed, the same for the same number.
pub(crate) fn noise(n: u64, bytes: usize) -> Vec<u8> {
    let mut noise = vec![0; bytes];
    blake3::Hasher::new().update(&n.to_le_bytes()).finalize_xof().fill(&mut noise);
    noise
}
