//! Reading a log from its end, and from the middle.

use std::fs;
use std::ops::ControlFlow;

use helve_journal::{END_OF_LOG, Journal, JournalError, MemoryJournal};
use helve_protocol::{Seq, SessionEvent, SessionId};
use helve_testkit::{SampleSession, sample_id};
use proptest::prelude::*;

use crate::support::{file_journal, log_path, read_whole, store_session};

/// Everything, page by page from the end.
fn walk_back(journal: &dyn Journal, session: SessionId, bytes: u64) -> Vec<SessionEvent> {
    let mut all: Vec<SessionEvent> = Vec::new();
    loop {
        let before = all.first().map_or(END_OF_LOG, |event| event.seq);
        let mut page = journal.look_back(session, before, bytes).unwrap();
        if page.is_empty() {
            return all;
        }
        page.extend(all);
        all = page;
    }
}

fn read_after(journal: &dyn Journal, session: SessionId, after: Seq) -> Vec<SessionEvent> {
    let mut told = Vec::new();
    let ending = journal.read(session, after, &mut |event| {
        told.push(event);
        ControlFlow::Continue(())
    });
    assert_eq!(ending.unwrap(), helve_journal::LogReadEnd::Whole);
    told
}

/// A session, a fork from its middle, and a fork of that which has nothing of its own.
fn family(journal: &dyn Journal) -> [SessionId; 3] {
    let parent = store_session(journal, 1, 6);
    let mut child = SampleSession::new(sample_id(2));
    child.last = Seq(9);
    journal.fork(parent[0].session, child.last, child.id).unwrap();
    let mut events = vec![child.user_message("and another way?")];
    events.extend(child.step("There is one.", &[("grep", "a line\n"), ("read", "more\n")]));
    journal.open(child.id, &mut |_| {}).unwrap().append(&events).unwrap();
    journal.fork(child.id, child.last, sample_id(3)).unwrap();
    [parent[0].session, child.id, sample_id(3)]
}

#[test]
fn pages_from_the_end_are_the_whole_of_it() {
    let (_root, files) = file_journal();
    let memory = MemoryJournal::default();
    for journal in [&files as &dyn Journal, &memory] {
        for session in family(journal) {
            let whole = read_whole(journal, session);
            for bytes in [0, 1, 300, 1_000, 5_000, 1 << 20] {
                assert_eq!(walk_back(journal, session, bytes), whole, "{bytes}");
            }
            for after in 0..=whole.len() as u64 + 2 {
                let rest: Vec<SessionEvent> =
                    whole.iter().filter(|event| event.seq > Seq(after)).cloned().collect();
                assert_eq!(read_after(journal, session, Seq(after)), rest, "{after}");
            }
        }
    }
}

#[test]
fn nothing_is_before_the_first_event_and_nobody_has_no_events() {
    let (_root, journal) = file_journal();
    let events = store_session(&journal, 1, 1);
    assert_eq!(journal.look_back(events[0].session, Seq(1), 1_000).unwrap(), []);
    assert!(matches!(journal.look_back(sample_id(9), END_OF_LOG, 1_000), Err(JournalError::NotFound(_))));
}

#[test]
fn a_line_that_was_never_finished_is_left_out() {
    let (root, journal) = file_journal();
    let events = store_session(&journal, 1, 3);
    let log = log_path(root.path(), events[0].session);
    let whole = fs::read(&log).unwrap();
    for torn in [&b"{\"seq\":4711,\"half"[..], b"\0\0\0\0", b"x"] {
        fs::write(&log, [&whole, torn].concat()).unwrap();
        assert_eq!(walk_back(&journal, events[0].session, 500), events);
    }
    // All but the newline is there: the event counts, as it does for everybody else.
    fs::write(&log, whole.strip_suffix(b"\n").unwrap()).unwrap();
    assert_eq!(walk_back(&journal, events[0].session, 500), events);
}

#[test]
fn only_what_is_read_is_vouched_for() {
    let (root, journal) = file_journal();
    let events = store_session(&journal, 1, 20);
    let session = events[0].session;
    let log = log_path(root.path(), session);
    let mut bytes = fs::read(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&log, bytes).unwrap();
    let end = journal.look_back(session, END_OF_LOG, 1_000).unwrap();
    assert!(events.ends_with(&end) && !end.is_empty(), "the end is whole");
    assert!(journal.open(session, &mut |_| {}).is_err(), "the session is not");
    assert!(matches!(journal.look_back(session, END_OF_LOG, 1 << 20), Err(JournalError::Damaged { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever happens to a log, a look back tells events that were written, in their order, or that something is wrong.
    #[test]
    fn a_damaged_log_never_tells_anything_else(at in 0.0..1.0_f64, with: Vec<u8>, before in 0..80_u64, page in 0..4_000_u64) {
        let (root, journal) = file_journal();
        let events = store_session(&journal, 1, 6);
        let session = events[0].session;
        let log = log_path(root.path(), session);
        let mut bytes = fs::read(&log).unwrap();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place")]
        let place = (bytes.len() as f64 * at) as usize;
        let end = bytes.len().min(place + with.len());
        bytes.splice(place..end, with);
        fs::write(&log, bytes).unwrap();
        if let Ok(told) = journal.look_back(session, Seq(before), page) {
            prop_assert!(told.is_empty() || events.windows(told.len()).any(|part| part == told));
        }
    }
}
