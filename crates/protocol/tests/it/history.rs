use std::collections::HashSet;

use helve_protocol::*;
use helve_testkit::{SampleSession, sample_event_bodies, sample_id};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Law 2, checked by other means than the fold's own.
fn assert_well_formed(view: &[std::borrow::Cow<'_, Message>]) {
    let mut messages = HashSet::new();
    let mut calls = HashSet::new();
    let mut result_or_user_before = false;
    for (at, message) in view.iter().enumerate() {
        assert!(messages.insert(message.id), "message {at} has the id of another");
        let said = message.parts.iter().filter(|part| part.is_for_model());
        assert!(
            said.clone().any(|part| !matches!(part, MessagePart::Reasoning(_))),
            "message {at} says nothing"
        );
        let tools: Vec<&ToolPart> = said
            .filter_map(|part| match part {
                MessagePart::Tool(tool) => Some(&**tool),
                _ => None,
            })
            .collect();
        for tool in &tools {
            assert!(tool.state.is_ended(), "a call of message {at} has no result");
            assert!(calls.insert(tool.call), "a call of message {at} stands twice");
        }
        match message.role {
            MessageRole::User => assert!(tools.is_empty(), "the user called a tool in message {at}"),
            MessageRole::Assistant => assert!(result_or_user_before, "message {at} follows nothing"),
        }
        result_or_user_before = message.role == MessageRole::User || !tools.is_empty();
    }
}

fn texts(history: &ConversationHistory) -> Vec<String> {
    let parts = |message: &Message| {
        let said = message.parts.iter().filter(|part| part.is_for_model()).map(|part| match part {
            MessagePart::Text(text) => text.text.clone(),
            MessagePart::Tool(tool) => format!("{} -> {}", tool.name, tool.state.for_model().text),
            other => format!("{other:?}"),
        });
        said.collect::<Vec<_>>().join(" + ")
    };
    history.for_model().iter().map(|message| parts(message)).collect()
}

fn session_with_a_call() -> (SampleSession, Vec<SessionEvent>) {
    let mut session = SampleSession::new(sample_id(1_000_000));
    let mut events = vec![session.created(), session.user_message("what is in main.rs?")];
    events.extend(session.step("I look.", &[("read", "fn main() {}")]));
    events.extend(session.step("It is empty.", &[]));
    events.push(session.turn_ended());
    (session, events)
}

#[test]
fn an_ordinary_turn_reads_as_it_was_said() {
    let (_, events) = session_with_a_call();
    let history = ConversationHistory::of(&events);
    assert_eq!(texts(&history), ["what is in main.rs?", "I look. + read -> fn main() {}", "It is empty."]);
    let kinds: Vec<usize> = history.messages().map(|message| message.parts.len()).collect();
    assert_eq!(kinds, [1, 4, 3], "people also see where steps begin and end");
}

#[test]
fn a_crash_anywhere_leaves_a_result_for_every_call() {
    let (_, events) = session_with_a_call();
    for survived in 0..=events.len() {
        let history = ConversationHistory::of(&events[..survived]);
        assert_well_formed(&history.for_model());
    }
    let started = events.iter().position(|event| matches!(event.body, EventBody::ToolStarted(_))).unwrap();
    let before_start = texts(&ConversationHistory::of(&events[..started]));
    assert!(before_start[1].contains("was not run"), "{before_start:?}");
    let after_start = texts(&ConversationHistory::of(&events[..=started]));
    assert!(after_start[1].contains("Unknown outcome"), "{after_start:?}");
}

#[test]
fn a_result_is_taken_even_if_the_start_was_lost_and_never_twice() {
    let (mut session, mut events) = session_with_a_call();
    let call = events.iter().find_map(|event| match &event.body {
        EventBody::ToolStarted(started) => Some(started.call),
        _ => None,
    });
    let again = ToolEnded { call: call.unwrap(), end: ToolState::Error { message: "no".to_owned() } };
    events.push(session.event(again));
    events.retain(|event| !matches!(event.body, EventBody::ToolStarted(_)));
    assert_eq!(texts(&ConversationHistory::of(&events))[1], "I look. + read -> fn main() {}");
}

#[test]
fn a_partial_answer_is_for_readers_only() {
    let mut session = SampleSession::new(sample_id(1_000_000));
    let mut events = vec![session.created(), session.user_message("hello")];
    events.push(session.event(ResponsePartial { text: "Hel".to_owned() }));
    let history = ConversationHistory::of(&events);
    assert_eq!(history.partial(), Some("Hel"));
    assert_eq!(texts(&history), ["hello"]);
    events.push(session.event(RetryScheduled { attempt: 1, delay_ms: 1, reason: "reset".to_owned() }));
    assert_eq!(ConversationHistory::of(&events).partial(), None);
}

#[test]
fn rewinding_drops_what_was_said_after_a_point() {
    let (mut session, mut events) = session_with_a_call();
    let to = session.last;
    events.push(session.user_message("thanks"));
    assert_eq!(texts(&ConversationHistory::of(&events)).len(), 4);
    events.push(session.event(Rewound { to, scope: RewindScope::Messages }));
    assert_eq!(texts(&ConversationHistory::of(&events)).len(), 3);
}

#[test]
fn pieces_of_an_answer_add_up() {
    let mut session = SampleSession::new(sample_id(1_000_000));
    let events = ["Hel", "lo"].map(|text| session.event(ResponsePartial { text: text.to_owned() }));
    assert_eq!(ConversationHistory::of(&events).partial(), Some("Hello"));
}

#[test]
fn the_model_never_follows_itself_without_a_word_between() {
    let mut session = SampleSession::new(sample_id(1_000_000));
    let mut events = vec![session.created()];
    events.extend(session.step("One.", &[]));
    events.extend(session.step("Two.", &[]));
    assert_eq!(texts(&ConversationHistory::of(&events)), ["Go on.", "One.", "Go on.", "Two."]);
}

/// Any event at all, about a handful of things so that they meet.
fn any_body() -> impl Strategy<Value = EventBody> {
    let small = || 0u64..6;
    let text = || prop_oneof![Just(String::new()), Just(" \n".to_owned()), "[a-c]{1,3}"];
    let tool = (small(), 0usize..6).prop_map(|(call, state)| {
        MessagePart::Tool(Box::new(ToolPart {
            call: sample_id(call),
            name: "t".to_owned(),
            input: json!({}),
            wire_id: None,
            sealed: Value::Null,
            state: any_state(state),
        }))
    });
    let part = prop_oneof![
        text().prop_map(|text| MessagePart::Text(TextPart::said(text))),
        text().prop_map(|text| MessagePart::Reasoning(ReasoningPart { text, sealed: json!(null) })),
        tool,
    ];
    let parts = || prop::collection::vec(part.clone(), 0..4);
    prop_oneof![
        2 => (small(), parts()).prop_map(|(m, parts)| UserMessage { message: sample_id(m), parts }.into()),
        2 => small().prop_map(|m| {
            StepStarted { message: sample_id(m), request: sample_id(1), model: ModelName::new("m"), number: 1, kept: 0, segments: vec![], marks: vec![] }.into()
        }),
        4 => (small(), parts()).prop_map(|(m, parts)| {
            ResponseEnded { message: sample_id(m), parts, stop: StopReason::EndTurn }.into()
        }),
        2 => small().prop_map(|call| ToolStarted { call: sample_id(call), class: ToolClass::Changes }.into()),
        2 => (small(), 0usize..6).prop_map(|(call, end)| ToolEnded { call: sample_id(call), end: any_state(end) }.into()),
        1 => (0u64..40).prop_map(|to| Rewound { to: Seq(to), scope: RewindScope::Messages }.into()),
        2 => (0..sample_event_bodies().len()).prop_map(|kind| sample_event_bodies().swap_remove(kind)),
    ]
}

fn any_state(n: usize) -> ToolState {
    match n {
        0 => ToolState::Pending,
        1 => ToolState::Running { since: Timestamp::default() },
        2 => ToolState::Completed { output: ToolOutput::default() },
        3 => ToolState::Error { message: String::new() },
        4 => ToolState::Denied { reason: String::new() },
        _ => ToolState::interrupted(Interruption::Unknown),
    }
}

fn any_event() -> impl Strategy<Value = SessionEvent> {
    (any_body(), 0u64..40, prop::option::of(0u64..4)).prop_map(|(body, seq, step)| SessionEvent {
        session: sample_id(1),
        seq: Seq(seq),
        turn: None,
        step: step.map(sample_id),
        agent: AgentName::new("build"),
        time: Timestamp::from_millis(seq),
        body,
    })
}

/// What an honest program does in a turn.
#[derive(Clone, Debug)]
enum Move {
    Say,
    Step { calls: usize },
    Note,
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        3 => Just(Move::Say),
        6 => (0usize..3).prop_map(|calls| Move::Step { calls }),
        2 => Just(Move::Note),
    ]
}

fn play(moves: &[Move]) -> Vec<SessionEvent> {
    let mut session = SampleSession::new(sample_id(1_000_000));
    let mut events = vec![session.created()];
    for step in moves {
        match step {
            Move::Say => events.push(session.user_message("go")),
            Move::Step { calls } => events.extend(session.step("done", &vec![("read", "text"); *calls])),
            Move::Note => {
                let message = session.draw();
                events.push(session.event(NoteAdded {
                    message,
                    topic: NoteTopic::Folders,
                    text: "1 May".to_owned(),
                }));
            }
        }
    }
    events
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_events_at_all_give_a_well_formed_view(mut events in prop::collection::vec(any_event(), 0..40), sorted: bool) {
        if sorted {
            events.sort_by_key(|event| event.seq);
        }
        assert_well_formed(&ConversationHistory::of(&events).for_model());
    }

    /// What a crash can do to an honest log: cut it, tell a piece twice, tell neighbours in another order.
    #[test]
    fn a_mangled_honest_session_stays_well_formed(
        moves in prop::collection::vec(any_move(), 0..12),
        cut: prop::sample::Index,
        again: prop::sample::Index,
        swap: prop::sample::Index,
    ) {
        let mut events = play(&moves);
        events.truncate(cut.index(events.len()) + 1);
        let repeated = events[again.index(events.len())..].to_vec();
        events.extend(repeated);
        let swap = swap.index(events.len());
        if swap > 0 {
            events.swap(swap - 1, swap);
        }
        assert_well_formed(&ConversationHistory::of(&events).for_model());
    }

    /// Law 3: the view of a later request begins with that of the one before.
    #[test]
    fn requests_grow_only_at_the_end(moves in prop::collection::vec(any_move(), 0..20)) {
        let events = play(&moves);
        let mut history = ConversationHistory::default();
        let mut sent: Option<Vec<Message>> = None;
        for event in &events {
            if matches!(event.body, EventBody::StepStarted(_)) {
                let now: Vec<Message> = history.for_model().into_iter().map(std::borrow::Cow::into_owned).collect();
                if let Some(before) = &sent {
                    prop_assert_eq!(before.as_slice(), &now[..before.len().min(now.len())]);
                }
                sent = Some(now);
            }
            history.apply(event);
        }
    }

    /// Telling everything twice changes nothing.
    #[test]
    fn the_fold_ignores_what_it_knows(moves in prop::collection::vec(any_move(), 0..12)) {
        let events = play(&moves);
        let once = ConversationHistory::of(&events);
        let twice = ConversationHistory::of(events.iter().chain(&events));
        prop_assert_eq!(once.for_model(), twice.for_model());
    }
}
