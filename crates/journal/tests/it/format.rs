//! The written form, checked by a second implementation of its description in `docs/reference/journal.md`.

use helve_journal::{Error, Journal};
use helve_protocol::Seq;
use helve_testkit::id;
use serde_json::Value;

use crate::support::{file_journal, log_path, store_session};

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

#[test]
fn a_fork_names_its_parent_and_the_parents_hash() {
    let (root, journal) = file_journal();
    let events = store_session(&journal, 1, 2);
    journal.fork(events[0].session, Seq(3), id(2)).unwrap();
    let parent = std::fs::read_to_string(log_path(root.path(), events[0].session)).unwrap();
    let third: Value = serde_json::from_str(parent.lines().nth(3).unwrap()).unwrap();
    let fork = std::fs::read_to_string(log_path(root.path(), id(2))).unwrap();
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
    for refused in [journal.open(session, &mut |_| {}).err(), journal.read(session, &mut |_| {}).err()] {
        let refused = refused.unwrap();
        assert!(matches!(refused, Error::ForeignVersion { found: 2, .. }), "{refused}");
    }
    assert!(journal.list().unwrap()[0].damage.as_deref().unwrap().contains("format 2"));
}
