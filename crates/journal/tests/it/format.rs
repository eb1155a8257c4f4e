//! The written form, checked by a second implementation of its description in `docs/reference/journal.md`.

use helve_journal::{Journal, JournalError, LogFlaw, LogReadEnd};
use helve_protocol::{Seq, SessionId};
use helve_testkit::sample_id;
use serde_json::Value;

use crate::support::{file_journal, log_path, skim, store_session};

/// Seals a line as the description says.
pub(crate) fn sealed(before: [u8; 32], object: &str) -> (String, [u8; 32]) {
    let body = object.strip_suffix('}').unwrap();
    let hash = blake3::hash(&[&before, body.as_bytes()].concat());
    (format!("{body},\"hash\":\"{hash}\"}}\n"), *hash.as_bytes())
}

#[test]
fn a_log_is_what_its_description_says() {
    let (root, journal) = file_journal();
    let events = store_session(&journal, 1, 2);
    let text = std::fs::read_to_string(log_path(root.path(), events[0].session)).unwrap();
    let mut before = [0; 32];
    let mut expected = String::new();
    let header = format!(r#"{{"helve":"session","version":1,"session":"{}"}}"#, events[0].session);
    for object in std::iter::once(header).chain(events.iter().map(|event| event.to_json().unwrap())) {
        let (line, hash) = sealed(before, &object);
        expected.push_str(&line);
        before = hash;
    }
    assert_eq!(text, expected);
    for line in text.lines() {
        assert!(serde_json::from_str::<Value>(line).unwrap().is_object());
    }
}

/// Lines that are sealed as they should be, and still are not this session's next ones.
#[test]
fn a_sealed_line_must_also_be_the_next_one_of_this_session() {
    let (root, journal) = file_journal();
    let events = store_session(&journal, 1, 1);
    let session = events[0].session;
    let path = log_path(root.path(), session);
    let text = std::fs::read_to_string(&path).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let tip = *blake3::Hash::from_hex(last["hash"].as_str().unwrap()).unwrap().as_bytes();
    let next = events.len() as u64 + 1;
    let event = |seq: u64, session: &str| {
        format!(
            r#"{{"seq":{seq},"session":"{session}","agent":"a","time":1,"kind":"turn_started","data":{{}}}}"#
        )
    };
    let own = session.to_string();
    let stranger = sample_id::<SessionId>(77).to_string();
    for (object, expected) in [
        (event(next, &own), None),
        (event(next + 1, &own), Some(LogFlaw::Order)),
        (event(next - 1, &own), Some(LogFlaw::Order)),
        (event(next, &stranger), Some(LogFlaw::Session)),
        (format!(r#"{{"seq":{next},"no":"event"}}"#), Some(LogFlaw::Event)),
    ] {
        std::fs::write(&path, [text.as_str(), &sealed(tip, &object).0].concat()).unwrap();
        let found = match skim(&journal, session).unwrap() {
            LogReadEnd::Damaged(damage) => Some(damage.flaw),
            _ => None,
        };
        assert_eq!(found, expected, "{object}");
        assert!(journal.repair(session).unwrap().is_none(), "what was sealed is never cut out");
    }
}

#[test]
fn a_fork_names_its_parent_and_the_parents_hash() {
    let (root, journal) = file_journal();
    let events = store_session(&journal, 1, 2);
    journal.fork(events[0].session, Seq(3), sample_id(2)).unwrap();
    let parent = std::fs::read_to_string(log_path(root.path(), events[0].session)).unwrap();
    let third: Value = serde_json::from_str(parent.lines().nth(3).unwrap()).unwrap();
    let fork = std::fs::read_to_string(log_path(root.path(), sample_id(2))).unwrap();
    let header: Value = serde_json::from_str(&fork).unwrap();
    assert_eq!(header["forked_from"]["session"], events[0].session.to_string());
    assert_eq!(header["forked_from"]["seq"], 3);
    assert_eq!(header["forked_from"]["tip"], third["hash"]);
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let (root, journal) = file_journal();
    let session = store_session(&journal, 1, 1)[0].session;
    let (line, _) =
        sealed([0; 32], &format!(r#"{{"helve":"session","version":2,"new":1,"session":"{session}"}}"#));
    std::fs::write(log_path(root.path(), session), line).unwrap();
    for refused in [journal.open(session, &mut |_| {}).err(), skim(&journal, session).err()] {
        let refused = refused.unwrap();
        assert!(matches!(refused, JournalError::ForeignVersion { found: 2, .. }), "{refused}");
    }
    assert!(journal.list().unwrap()[0].damage.as_deref().unwrap().contains("format 2"));
}
