use std::collections::BTreeSet;

use helve_protocol::*;
use helve_testkit::{Session, every_kind, id};
use proptest::prelude::*;

/// The written form is a promise to everyone who reads it: a change shows up here.
#[test]
fn every_kind_has_its_json_form() {
    let mut session = Session::new(id(1));
    session.turn = Some(id(2));
    session.step = Some(id(3));
    let lines: Vec<String> =
        every_kind().into_iter().map(|body| session.event(body).to_json().unwrap()).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn the_samples_cover_the_table() {
    let sampled: BTreeSet<String> = every_kind().iter().map(|body| body.kind().to_owned()).collect();
    let table: BTreeSet<String> = Body::KINDS.iter().map(|kind| kind.name.to_owned()).collect();
    assert_eq!(sampled, table);
}

#[test]
fn every_event_survives_its_json() {
    let mut session = Session::new(id(1));
    for body in every_kind() {
        let event = session.event(body);
        let json = event.to_json().unwrap();
        let back: Event = serde_json::from_str(&json).unwrap();
        assert_eq!(back, event);
        assert!(!matches!(back.body, Body::Unknown(_)), "{json}");
    }
}

#[test]
fn an_unknown_kind_is_kept_word_for_word() {
    let line = r#"{"seq":7,"session":"01900000-0000-7000-8000-000000000001","agent":"build","time":5,"kind":"telepathy","data":{ "b":1.50, "a":[ 1e2 ] }}"#;
    let event: Event = serde_json::from_str(line).unwrap();
    assert_eq!(event.body.kind(), "telepathy");
    assert_eq!(event.body.persistence(), Persistence::Durable);
    assert_eq!(event.to_json().unwrap(), line);
}

/// A newer version may know more about a kind than we do.
#[test]
fn a_known_kind_in_another_form_is_kept_word_for_word() {
    let line = r#"{"seq":7,"session":"01900000-0000-7000-8000-000000000001","agent":"build","time":5,"kind":"turn_ended","data":{"outcome":"transcended"}}"#;
    let event: Event = serde_json::from_str(line).unwrap();
    assert!(matches!(event.body, Body::Unknown(_)));
    assert_eq!(event.to_json().unwrap(), line);
}

#[test]
fn what_must_be_on_disk_first_is_synced() {
    let synced: Vec<String> =
        every_kind().iter().filter(|body| body.needs_sync()).map(|body| body.kind().to_owned()).collect();
    assert_eq!(synced, ["session_created", "approval_resolved", "tool_started", "rewound", "turn_ended"]);
    let reads = Body::from(ToolStarted { call: id(1), class: ToolClass::Reads });
    assert!(!reads.needs_sync(), "reading needs no sync");
}

#[test]
fn every_blob_that_is_named_is_told() {
    let named = |body: &Body| {
        let json = Session::new(id(1)).event(body.clone()).to_json().unwrap();
        json.matches(&BlobId::from_hash([0xab; 32]).to_string()).count()
    };
    for body in every_kind() {
        assert_eq!(body.blobs().len(), named(&body), "{}", body.kind());
    }
}

#[test]
fn commands_and_queries_survive_their_json() {
    let prompt = Prompt { parts: vec![Part::Text(TextPart::said("hello"))], delivery: Delivery::Steer };
    let commands = [
        Command::Submit(prompt.clone()),
        Command::EditQueued { message: id(1), prompt },
        Command::Interrupt,
        Command::Background,
        Command::SetEffort { effort: Some(Effort::High) },
        Command::Decide { approval: id(1), answer: Answer::Reject { message: None } },
        Command::Rewind { to: Seq(4), scope: RewindScope::Both },
        Command::ShutDown,
    ];
    for command in commands {
        let json = serde_json::to_string(&command).unwrap();
        assert_eq!(serde_json::from_str::<Command>(&json).unwrap(), command, "{json}");
    }
    for query in [Query::State, Query::Changes { from: Seq(1), to: Seq(2) }] {
        let json = serde_json::to_string(&query).unwrap();
        assert_eq!(serde_json::from_str::<Query>(&json).unwrap(), query, "{json}");
    }
}

proptest! {
    #[test]
    fn any_text_is_an_event_or_refused(text: String) {
        let _ = serde_json::from_str::<Event>(&text);
    }

    /// One damaged byte gives an event or an error, never a panic.
    #[test]
    fn a_damaged_line_is_read_or_refused(kind in 0..every_kind().len(), at: prop::sample::Index, byte: u8) {
        let event = Session::new(id(1)).event(every_kind().swap_remove(kind));
        let mut line = event.to_json().unwrap().into_bytes();
        let at = at.index(line.len());
        line[at] = byte;
        let _ = serde_json::from_slice::<Event>(&line);
    }
}
