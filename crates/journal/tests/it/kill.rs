//! Kill -9 at any instant loses nothing that was acknowledged (R-SESS-5).

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use helve_journal::{FileJournal, Journal, LogReadEnd};
use helve_protocol::{BlobId, EventBody, MessagePart, Seq, SessionEvent};
use helve_testkit::sample_id;
use proptest::test_runner::{RngAlgorithm, TestRng};

use crate::child;
use crate::child_data::{blob_of, segments_of, text_of};
use crate::support::read;

const KILLS: u32 = 300;
const KILLS_PER_SESSION: u32 = 12;

#[test]
fn killed_at_random_moments_nothing_acknowledged_is_lost() {
    use proptest::prelude::Rng;
    let root = tempfile::tempdir().unwrap();
    let journal = FileJournal::new(root.path().join("home"));
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut acknowledged = Seq::START;
    let (mut at_work, mut torn) = (0, 0);
    for kill in 0..KILLS {
        if kill % KILLS_PER_SESSION == 0 {
            acknowledged = Seq::START;
        }
        let session = sample_id(u64::from(kill / KILLS_PER_SESSION) + 1);
        let mut child = child::role(&[], "append", root.path(), session).spawn().unwrap();
        let mut said = child::lines(&mut child);
        // Some before the session is open or before anything is acknowledged, most while it is written to.
        let heard: Vec<String> = match kill % 10 {
            0 => Vec::new(),
            1 => said.by_ref().take(1).collect(),
            _ => said.by_ref().take(2).collect(),
        };
        std::thread::sleep(Duration::from_micros(u64::from(random.next_u32() % 20_000)));
        child.kill().unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(9), "the child must not have failed by itself: {status}");
        let last = heard
            .into_iter()
            .chain(said)
            .filter_map(|line| line.strip_prefix("acknowledged ")?.parse().ok())
            .last();
        at_work += u32::from(last.is_some());
        acknowledged = last.map_or(acknowledged, Seq);

        let read = read(&journal, session);
        if acknowledged == Seq::START && read.is_err() {
            // It was killed before the session was there.
            continue;
        }
        let (events, ending) = read.unwrap();
        assert!(!matches!(ending, LogReadEnd::Damaged(_)), "after kill {kill}: {ending:?}");
        torn += u32::from(matches!(ending, LogReadEnd::Torn { .. }));
        assert!(events.len() as u64 >= acknowledged.0, "kill {kill}: {} of {acknowledged}", events.len());
        events.iter().for_each(|event| assert_as_written(&journal, event));
        let mut reopened = Vec::new();
        let log = journal.open(session, &mut |event| reopened.push(event)).unwrap();
        assert_eq!((log.last().0, reopened), (events.len() as u64, events));
    }
    println!("{KILLS} kills, {at_work} of them while events were appended; {torn} torn lines");
    assert!(at_work >= 200, "only {at_work} kills met a process at work");
}

/// Each event tells by its number what must be in it.
fn assert_as_written(journal: &FileJournal, event: &SessionEvent) {
    let message = match &event.body {
        EventBody::UserMessage(message) => message,
        EventBody::StepStarted(step) => {
            let read = |blob: &BlobId| journal.blob(event.session, *blob).unwrap();
            assert_eq!(step.segments.iter().map(read).collect::<Vec<_>>(), segments_of(event.seq.0));
            return;
        }
        _ => return,
    };
    match &message.parts[0] {
        MessagePart::Text(text) => assert_eq!(text.text, text_of(event.seq.0)),
        MessagePart::File(file) => {
            let content = journal.blob(event.session, file.content).unwrap();
            assert_eq!(content, blob_of(event.seq.0).into_bytes());
        }
        other => panic!("{other:?}"),
    }
}
