//! What every journal keeps to, wherever it stores.

use std::ops::ControlFlow;

use helve_journal::{Journal, JournalError, LogReadEnd, MAX_EVENT_BYTES, MemoryJournal};
use helve_protocol::*;
use helve_testkit::{SampleSession, sample_event_bodies, sample_id};
use proptest::prelude::*;

use crate::support::{file_journal, read_whole, skim, store_session};

/// Runs one check on both journals.
fn on_both(check: impl Fn(&dyn Journal)) {
    check(&MemoryJournal::default());
    let (_root, journal) = file_journal();
    check(&journal);
}

#[test]
fn what_was_appended_is_read_back() {
    on_both(|journal| {
        let events = store_session(journal, 1, 3);
        let session = events[0].session;
        assert_eq!(read_whole(journal, session), events);
        let mut told = Vec::new();
        let log = journal.open(session, &mut |event| told.push(event)).unwrap();
        assert_eq!(told, events);
        assert_eq!((log.session(), log.last()), (session, events.last().unwrap().seq));
    });
}

#[test]
fn a_session_goes_on_after_it_was_closed() {
    on_both(|journal| {
        let mut session = SampleSession::new(sample_id(1));
        journal.create(session.id).unwrap().append(&[session.created()]).unwrap();
        let mut log = journal.open(session.id, &mut |_| {}).unwrap();
        log.append(&[session.user_message("hello")]).unwrap();
        log.sync().unwrap();
        drop(log);
        assert_eq!(read_whole(journal, session.id).len(), 2);
    });
}

#[test]
fn what_is_not_there_is_not_found() {
    on_both(|journal| {
        let nobody: SessionId = sample_id(9);
        assert!(matches!(journal.open(nobody, &mut |_| {}), Err(JournalError::NotFound(s)) if s == nobody));
        assert!(matches!(skim(journal, nobody), Err(JournalError::NotFound(_))));
        assert!(matches!(journal.delete(nobody), Err(JournalError::NotFound(_))));
        assert!(matches!(journal.fork(nobody, Seq(1), sample_id(10)), Err(JournalError::NotFound(_))));
        assert_eq!(journal.list().unwrap(), []);
    });
}

#[test]
fn an_id_is_given_once() {
    on_both(|journal| {
        let events = store_session(journal, 1, 1);
        let session = events[0].session;
        assert!(matches!(journal.create(session), Err(JournalError::Exists(_))));
        assert!(matches!(journal.fork(session, Seq(2), session), Err(JournalError::Exists(_))));
        assert_eq!(read_whole(journal, session), events);
    });
}

#[test]
fn a_session_has_one_owner() {
    on_both(|journal| {
        let log = journal.create(sample_id(1)).unwrap();
        let refused = journal.open(sample_id(1), &mut |_| {});
        assert!(matches!(refused, Err(JournalError::InUse { owner: Some(_), .. })));
        assert!(matches!(journal.delete(sample_id(1)), Err(JournalError::InUse { .. })));
        drop(log);
        assert!(journal.open(sample_id(1), &mut |_| {}).is_ok());
    });
}

#[test]
fn only_the_next_durable_events_of_the_session_are_taken_all_or_none() {
    on_both(|journal| {
        let mut session = SampleSession::new(sample_id(1));
        let mut log = journal.create(session.id).unwrap();
        let first = session.created();
        let good = session.user_message("hello");
        let mut stranger = good.clone();
        stranger.session = sample_id(2);
        let live = session.event(TextDelta { index: 0, text: "x".to_owned() });
        assert!(matches!(
            log.append(std::slice::from_ref(&good)),
            Err(JournalError::OutOfOrder { found: Seq(2), .. })
        ));
        assert!(matches!(log.append(&[first.clone(), first.clone()]), Err(JournalError::OutOfOrder { .. })));
        assert!(matches!(log.append(&[first.clone(), stranger]), Err(JournalError::NotStorable { .. })));
        assert!(matches!(log.append(&[first.clone(), live]), Err(JournalError::NotStorable { .. })));
        log.append(&[]).unwrap();
        assert_eq!(log.last(), Seq::START);
        log.append(&[first, good]).unwrap();
        assert_eq!(log.last(), Seq(2));
    });
}

#[test]
fn an_event_is_no_place_for_a_huge_payload() {
    on_both(|journal| {
        let mut session = SampleSession::new(sample_id(1));
        let mut log = journal.create(session.id).unwrap();
        let first = session.created();
        let huge = session.user_message(&"x".repeat(MAX_EVENT_BYTES));
        assert!(matches!(log.append(&[first.clone(), huge]), Err(JournalError::TooLarge { .. })));
        log.append(&[first]).unwrap();
    });
}

#[test]
fn a_blob_comes_back_and_must_be_there_before_it_is_named() {
    on_both(|journal| {
        let mut session = SampleSession::new(sample_id(1));
        let mut log = journal.create(session.id).unwrap();
        let content = "a long output\n".repeat(10_000).into_bytes();
        let missing = BlobId::from_hash([7; 32]);
        let names = |blob| FilePart {
            name: "out.txt".to_owned(),
            media_type: "text/plain".to_owned(),
            content: blob,
        };
        let first = session.created();
        let says = |session: &mut SampleSession, blob| {
            session.event(UserMessage { message: sample_id(5), parts: vec![MessagePart::File(names(blob))] })
        };
        let bad = says(&mut session.clone(), missing);
        assert!(
            matches!(log.append(&[first.clone(), bad]), Err(JournalError::BlobMissing(blob)) if blob == missing)
        );
        let blob = log.blobs().put(&content).unwrap();
        assert_eq!(log.blobs().put(&content).unwrap(), blob);
        log.append(&[first, says(&mut session, blob)]).unwrap();
        assert_eq!(log.blobs().get(blob).unwrap(), content);
        drop(log);
        assert_eq!(journal.blob(session.id, blob).unwrap(), content);
        assert!(matches!(journal.blob(session.id, missing), Err(JournalError::BlobMissing(_))));
        let empty = journal.open(session.id, &mut |_| {}).unwrap().blobs().put(b"").unwrap();
        assert_eq!(journal.blob(session.id, empty).unwrap(), b"");
    });
}

#[test]
fn what_was_put_soon_may_be_named_at_once() {
    on_both(|journal| {
        let mut session = SampleSession::new(sample_id(1));
        let mut log = journal.create(session.id).unwrap();
        let segment = log.blobs().put_unsynced(b"a segment").unwrap();
        assert_eq!(log.blobs().put(b"a segment").unwrap(), segment);
        log.append(&[session.created(), crate::child_data::step(&mut session, vec![segment])]).unwrap();
        assert_eq!(log.blobs().get(segment).unwrap(), b"a segment");
        drop(log);
        assert_eq!(journal.blob(session.id, segment).unwrap(), b"a segment");
    });
}

#[test]
fn the_same_payload_may_be_put_by_many_at_once() {
    on_both(|journal| {
        let blobs = journal.create(sample_id(1)).unwrap().blobs();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for n in 0..30 {
                        let content = format!("output {n} ").repeat(3000).into_bytes();
                        let blob = blobs.put(&content).unwrap();
                        assert_eq!(blobs.get(blob).unwrap(), content);
                    }
                });
            }
        });
    });
}

#[test]
fn reading_begins_and_ends_where_one_likes() {
    on_both(|journal| {
        let events = store_session(journal, 1, 2);
        let session = events[0].session;
        let mut told = Vec::new();
        let ending = journal.read(session, Seq(3), &mut |event| {
            told.push(event);
            if told.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!((told.as_slice(), ending.unwrap()), (&events[3..5], LogReadEnd::Stopped));
        let ending = journal.read(session, Seq(1000), &mut |event| panic!("{event}")).unwrap();
        assert_eq!(ending, LogReadEnd::Whole);
    });
}

/// A tool call with an input that is nested so deep.
fn nested(session: &mut SampleSession, depth: usize) -> SessionEvent {
    let input = serde_json::from_str(&format!("{}1{}", "[".repeat(depth), "]".repeat(depth))).unwrap();
    let tool = ToolPart {
        call: sample_id(9),
        name: "x".to_owned(),
        input,
        wire_id: None,
        sealed: serde_json::Value::Null,
        state: ToolState::Pending,
    };
    session.event(ResponseEnded {
        message: sample_id(8),
        parts: vec![MessagePart::Tool(Box::new(tool))],
        stop: StopReason::ToolUse,
    })
}

#[test]
fn what_could_not_be_read_again_is_not_acknowledged() {
    on_both(|journal| {
        let mut session = SampleSession::new(sample_id(1));
        let mut log = journal.create(session.id).unwrap();
        let deep = nested(&mut session.clone(), 120);
        assert!(matches!(log.append(&[deep]), Err(JournalError::TooDeep { .. })));
        let data = serde_json::value::RawValue::from_string("{\n}".to_owned()).unwrap();
        let broken = session.clone().event(EventBody::Unknown(UnknownEvent { kind: "x".to_owned(), data }));
        assert!(matches!(log.append(&[broken]), Err(JournalError::NotStorable { .. })));
        let fine = nested(&mut session, 90);
        log.append(std::slice::from_ref(&fine)).unwrap();
        assert_eq!(read_whole(journal, session.id), [fine]);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_acknowledged_reads_back_the_same(
        texts in prop::collection::vec(".{0,40}", 1..6),
        agent in ".{0,400}",
        kind in "[a-z]{0,300}",
        depth in 0usize..125,
        number: f64,
    ) {
        on_both(|journal| {
            let mut session = SampleSession::new(sample_id(1));
            let mut log = journal.create(session.id).unwrap();
            let mut stored = Vec::new();
            let unknown = serde_json::value::to_raw_value(&(number, &texts)).unwrap();
            let mut candidates: Vec<EventBody> = texts.iter().map(|text| session.clone().user_message(text).body).collect();
            candidates.push(nested(&mut session.clone(), depth).body);
            candidates.push(EventBody::Unknown(UnknownEvent { kind: kind.clone(), data: unknown }));
            candidates.extend(sample_event_bodies().into_iter().filter(|body| body.blobs().is_empty()));
            for body in candidates {
                let mut next = session.clone();
                let mut event = next.event(body);
                event.agent = AgentName::new(agent.clone());
                if log.append(std::slice::from_ref(&event)).is_ok() {
                    session = next;
                    stored.push(event);
                }
            }
            assert!(stored.len() > texts.len());
            // An unknown kind may have the name of a known one, and is read as what it is then.
            assert_eq!(read_whole(journal, session.id), stored);
        });
    }
}

#[test]
fn a_fork_shares_the_past_and_goes_its_own_way() {
    on_both(|journal| {
        let events = store_session(journal, 1, 2);
        let parent = events[0].session;
        let mut log = journal.open(parent, &mut |_| {}).unwrap();
        let blob = log.blobs().put(b"seen by both").unwrap();
        let mut elder = SampleSession::new(parent);
        elder.last = log.last();
        log.append(&[elder.user_message("only in the parent")]).unwrap();
        // The parent may be at work meanwhile.
        journal.fork(parent, Seq(5), sample_id(2)).unwrap();
        drop(log);

        let mut session = SampleSession::new(sample_id(2));
        session.last = Seq(5);
        let mut told = Vec::new();
        let mut log = journal.open(sample_id(2), &mut |event| told.push(event)).unwrap();
        assert_eq!(told, events[..5]);
        let own = session.user_message("only in the fork");
        log.append(std::slice::from_ref(&own)).unwrap();
        assert_eq!(log.blobs().get(blob).unwrap(), b"seen by both");
        drop(log);
        assert_eq!(read_whole(journal, sample_id(2)), [&events[..5], std::slice::from_ref(&own)].concat());
        assert_eq!(read_whole(journal, parent).len(), events.len() + 1);

        journal.fork(sample_id(2), Seq(6), sample_id(3)).unwrap();
        journal.fork(sample_id(2), Seq(3), sample_id(4)).unwrap();
        assert_eq!(read_whole(journal, sample_id(3)), read_whole(journal, sample_id(2)));
        assert_eq!(read_whole(journal, sample_id(4)), events[..3]);
        assert!(matches!(
            journal.fork(sample_id(2), Seq(7), sample_id(5)),
            Err(JournalError::NoSuchEvent { last: Seq(6), .. })
        ));
        assert!(matches!(journal.fork(parent, Seq(0), sample_id(5)), Err(JournalError::NoSuchEvent { .. })));
    });
}

#[test]
fn a_session_with_forks_is_not_deleted() {
    on_both(|journal| {
        let events = store_session(journal, 1, 1);
        let parent = events[0].session;
        journal.fork(parent, Seq(2), sample_id(2)).unwrap();
        assert!(
            matches!(journal.delete(parent), Err(JournalError::HasForks { forks, .. }) if forks == [sample_id(2)])
        );
        assert_eq!(read_whole(journal, sample_id(2)), events[..2]);
        journal.delete(sample_id(2)).unwrap();
        journal.delete(parent).unwrap();
        assert!(matches!(skim(journal, parent), Err(JournalError::NotFound(_))));
        assert_eq!(journal.list().unwrap(), []);
    });
}

#[test]
fn the_list_says_what_each_session_is_about() {
    on_both(|journal| {
        store_session(journal, 1, 2);
        let events = store_session(journal, 2, 3);
        journal.fork(events[0].session, Seq(4), sample_id(3)).unwrap();
        let list = journal.list().unwrap();
        assert_eq!(list.len(), 3);
        let of = |session: SessionId| list.iter().find(|summary| summary.session == session).unwrap();
        let second = of(events[0].session);
        assert_eq!(second.title, "question 0 of session 2");
        assert_eq!(second.workspace, "/home/user/project");
        assert_eq!(second.cost.to_string(), "$0.036");
        assert_eq!(second.last, events.last().unwrap().seq);
        let fork = of(sample_id(3));
        assert_eq!(fork.forked_from, Some((events[0].session, Seq(4))));
        assert_eq!(fork.title, "question 0 of session 2");
        assert_eq!(fork.cost, Cost::ZERO, "what the parent paid is not paid again");
    });
}
