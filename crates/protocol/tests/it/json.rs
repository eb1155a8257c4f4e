use std::collections::BTreeSet;

use helve_protocol::*;
use helve_testkit::{SampleSession, sample_event_bodies, sample_id};
use proptest::prelude::*;

/// The written form is a promise to everyone who reads it: a change shows up here.
#[test]
fn every_kind_has_its_json_form() {
    let mut session = SampleSession::new(sample_id(1));
    session.turn = Some(sample_id(2));
    session.step = Some(sample_id(3));
    let lines: Vec<String> =
        sample_event_bodies().into_iter().map(|body| session.event(body).to_json().unwrap()).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn the_samples_cover_the_table() {
    let sampled: BTreeSet<String> = sample_event_bodies().iter().map(|body| body.kind().to_owned()).collect();
    let table: BTreeSet<String> = EventBody::KINDS.iter().map(|kind| kind.name.to_owned()).collect();
    assert_eq!(sampled, table);
}

#[test]
fn every_event_survives_its_json() {
    let mut session = SampleSession::new(sample_id(1));
    for body in sample_event_bodies() {
        let event = session.event(body);
        let json = event.to_json().unwrap();
        let back: SessionEvent = serde_json::from_str(&json).unwrap();
        assert_eq!(back, event);
        assert!(!matches!(back.body, EventBody::Unknown(_)), "{json}");
    }
}

#[test]
fn an_unknown_kind_is_kept_word_for_word() {
    let line = r#"{"seq":7,"session":"01900000-0000-7000-8000-000000000001","agent":"build","time":5,"kind":"telepathy","data":{ "b":1.50, "a":[ 1e2 ] }}"#;
    let event: SessionEvent = serde_json::from_str(line).unwrap();
    assert_eq!(event.body.kind(), "telepathy");
    assert_eq!(event.body.persistence(), Persistence::Durable);
    assert_eq!(event.to_json().unwrap(), line);
}

/// A newer version may know more about a kind than we do.
#[test]
fn a_known_kind_in_another_form_is_kept_word_for_word() {
    let line = r#"{"seq":7,"session":"01900000-0000-7000-8000-000000000001","agent":"build","time":5,"kind":"turn_ended","data":{"outcome":"transcended"}}"#;
    let event: SessionEvent = serde_json::from_str(line).unwrap();
    assert!(matches!(event.body, EventBody::Unknown(_)));
    assert_eq!(event.to_json().unwrap(), line);
}

#[test]
fn what_must_be_on_disk_first_is_synced() {
    let synced: Vec<String> = sample_event_bodies()
        .iter()
        .filter(|body| body.needs_sync())
        .map(|body| body.kind().to_owned())
        .collect();
    assert_eq!(synced, ["session_created", "approval_resolved", "tool_started", "rewound", "turn_ended"]);
    let reads = EventBody::from(ToolStarted { call: sample_id(1), class: ToolClass::Reads });
    assert!(!reads.needs_sync(), "reading needs no sync");
}

#[test]
fn every_blob_that_is_named_is_told() {
    let named = |body: &EventBody| {
        let json = SampleSession::new(sample_id(1)).event(body.clone()).to_json().unwrap();
        json.matches(&BlobId::from_hash([0xab; 32]).to_string()).count()
    };
    for body in sample_event_bodies() {
        assert_eq!(body.blobs().len(), named(&body), "{}", body.kind());
    }
}

#[test]
fn commands_and_queries_survive_their_json() {
    let prompt = UserPrompt {
        parts: vec![MessagePart::Text(TextPart::said("hello"))],
        delivery: PromptDelivery::Steer,
    };
    let commands = [
        SessionCommand::Submit(prompt.clone()),
        SessionCommand::EditQueued { message: sample_id(1), prompt },
        SessionCommand::Interrupt,
        SessionCommand::Background,
        SessionCommand::SetEffort { effort: Some(ReasoningEffort::High) },
        SessionCommand::Decide { approval: sample_id(1), answer: ApprovalAnswer::Reject { message: None } },
        SessionCommand::Rewind { to: Seq(4), scope: RewindScope::Messages },
        SessionCommand::ShutDown,
    ];
    for command in commands {
        let json = serde_json::to_string(&command).unwrap();
        assert_eq!(serde_json::from_str::<SessionCommand>(&json).unwrap(), command, "{json}");
    }
    for query in [SessionQuery::State, SessionQuery::Changes { from: Seq(1), to: Seq(2) }] {
        let json = serde_json::to_string(&query).unwrap();
        assert_eq!(serde_json::from_str::<SessionQuery>(&json).unwrap(), query, "{json}");
    }
}

proptest! {
    #[test]
    fn any_text_is_an_event_or_refused(text: String) {
        let _ = serde_json::from_str::<SessionEvent>(&text);
    }

    /// One damaged byte gives an event or an error, never a panic.
    #[test]
    fn a_damaged_line_is_read_or_refused(kind in 0..sample_event_bodies().len(), at: prop::sample::Index, byte: u8) {
        let event = SampleSession::new(sample_id(1)).event(sample_event_bodies().swap_remove(kind));
        let mut line = event.to_json().unwrap().into_bytes();
        let at = at.index(line.len());
        line[at] = byte;
        let _ = serde_json::from_slice::<SessionEvent>(&line);
    }
}
