//! What a person sees of a session.

use std::time::Duration;

use helve_protocol::*;
use helve_testkit::sample_id;
use helve_tui::{APPROVAL_GUARD_TIME, SessionOverview, TYPING_GUARD_TIME};
use ratatui::crossterm::event::{KeyCode, KeyModifiers};
use serde_json::json;

use crate::desk::Desk;

fn ask(number: u64) -> ApprovalRequested {
    ApprovalRequested {
        approval: sample_id(number),
        call: sample_id(100 + number),
        effects: vec![format!("run number {number}")],
        reason: "no rule allows it".to_owned(),
        diff: None,
        rules: Vec::new(),
    }
}

fn answer(text: &str) -> ResponseEnded {
    ResponseEnded {
        message: sample_id(9),
        parts: vec![MessagePart::Text(TextPart::said(text))],
        stop: StopReason::EndTurn,
    }
}

#[test]
fn several_requests_are_asked_one_by_one_and_a_late_key_answers_none_of_them() {
    let mut desk = Desk::new(SessionOverview::default());
    desk.tell(TurnStarted::default());
    (1..=3).for_each(|number| desk.tell(ask(number)));
    assert!(desk.text().contains("1 of 3 · Allow Helve to run number 1?"), "{}", desk.text());
    desk.key(KeyCode::Char('y'), KeyModifiers::NONE);
    assert!(desk.orders.is_empty(), "it has just appeared");
    desk.pass(APPROVAL_GUARD_TIME);
    desk.key(KeyCode::Char('y'), KeyModifiers::NONE);
    desk.key(KeyCode::Char('y'), KeyModifiers::NONE);
    assert_eq!(
        desk.orders,
        [SessionCommand::Decide { approval: sample_id(1), answer: ApprovalAnswer::Once }],
        "once"
    );
    desk.tell(ApprovalResolved { approval: sample_id(1), answer: ApprovalAnswer::Once });
    assert!(desk.text().contains("2 of 3 · Allow Helve to run number 2?"), "{}", desk.text());
    desk.key(KeyCode::Char('y'), KeyModifiers::NONE);
    assert_eq!(desk.orders.len(), 1, "the key was meant for the first");
    // Without rules there is nothing to allow for longer.
    desk.pass(APPROVAL_GUARD_TIME);
    desk.key(KeyCode::Char('a'), KeyModifiers::NONE);
    assert_eq!(desk.orders.len(), 1);
    desk.key(KeyCode::Char('n'), KeyModifiers::NONE);
    assert_eq!(
        desk.orders[1],
        SessionCommand::Decide { approval: sample_id(2), answer: ApprovalAnswer::Reject { message: None } }
    );
}

#[test]
fn a_key_that_is_held_and_a_message_that_is_written_allow_nothing() {
    let mut desk = Desk::new(SessionOverview::default());
    desk.tell(TurnStarted::default());
    (1..=2).for_each(|number| desk.tell(ask(number)));
    desk.pass(APPROVAL_GUARD_TIME);
    desk.key(KeyCode::Char('y'), KeyModifiers::NONE);
    desk.tell(ApprovalResolved { approval: sample_id(1), answer: ApprovalAnswer::Once });
    for _ in 0..100 {
        desk.pass(Duration::from_millis(30));
        desk.key(KeyCode::Char('y'), KeyModifiers::NONE);
    }
    assert_eq!(desk.orders.len(), 1, "a key that is held answers one question");
    desk.pass(APPROVAL_GUARD_TIME);
    desk.key(KeyCode::Char('n'), KeyModifiers::NONE);
    desk.tell(ApprovalResolved { approval: sample_id(2), answer: ApprovalAnswer::Reject { message: None } });
    assert_eq!(desk.orders.len(), 2);

    // Somebody writes, with pauses between the words, and does not look up.
    "why".chars().for_each(|letter| desk.key(KeyCode::Char(letter), KeyModifiers::NONE));
    desk.tell(ask(3));
    for letter in " not a pony".chars() {
        desk.pass(Duration::from_millis(if letter == ' ' { 700 } else { 150 }));
        desk.key(KeyCode::Char(letter), KeyModifiers::NONE);
    }
    assert_eq!(desk.orders.len(), 2, "{:?}", desk.orders);
    desk.pass(TYPING_GUARD_TIME);
    desk.key(KeyCode::Char('n'), KeyModifiers::NONE);
    assert_eq!(
        desk.orders[2],
        SessionCommand::Decide { approval: sample_id(3), answer: ApprovalAnswer::Reject { message: None } }
    );
    desk.tell(ApprovalResolved { approval: sample_id(3), answer: ApprovalAnswer::Reject { message: None } });
    assert!(desk.text().contains("why not a pony"), "{}", desk.text());
}

#[test]
fn pieces_that_were_lost_on_the_way_come_with_the_whole() {
    let mut desk = Desk::new(SessionOverview::default());
    desk.tell(TextDelta { index: 0, text: "One two".to_owned() });
    desk.tell(answer("One two three."));
    let text = desk.text();
    assert_eq!(text.matches("One two three.").count(), 1, "{text}");
    // Nothing streamed at all.
    desk.tell(answer("Four."));
    assert_eq!(desk.text().matches("Four.").count(), 1);
    assert_eq!(desk.text().matches("One two").count(), 1);
}

#[test]
fn an_answer_that_is_tried_again_says_so() {
    let mut desk = Desk::new(SessionOverview::default());
    desk.tell(TextDelta { index: 0, text: "Half an ans".to_owned() });
    desk.tell(RetryScheduled { attempt: 1, delay_ms: 1500, reason: "overloaded".to_owned() });
    desk.tell(TextDelta { index: 0, text: "A whole answer.".to_owned() });
    desk.tell(answer("A whole answer."));
    let text = desk.text();
    assert!(text.contains("trying again in 1.5 s: overloaded. The partial answer is dropped."), "{text}");
    assert_eq!(text.matches("A whole answer.").count(), 1, "{text}");
}

#[test]
fn calls_side_by_side_are_printed_in_their_order() {
    let mut desk = Desk::new(SessionOverview::default());
    let tool = |number: u64, name: &str| {
        MessagePart::Tool(Box::new(ToolPart {
            call: sample_id(number),
            name: name.to_owned(),
            input: json!({ "path": format!("file{number}") }),
            wire_id: None,
            sealed: serde_json::Value::Null,
            state: ToolState::Pending,
        }))
    };
    let parts = vec![tool(1, "read"), tool(2, "read")];
    desk.tell(ResponseEnded { message: sample_id(9), parts, stop: StopReason::ToolUse });
    let done = |text: &str| ToolState::Completed {
        output: ToolOutput { text: text.to_owned(), ..ToolOutput::default() },
    };
    desk.tell(ToolStarted { call: sample_id(1), class: ToolClass::Reads });
    desk.tell(ToolStarted { call: sample_id(2), class: ToolClass::Reads });
    desk.tell(ToolEnded { call: sample_id(2), end: done("two") });
    desk.tell(ToolEnded {
        call: sample_id(1),
        end: ToolState::Error { message: "no such file\nlook elsewhere".to_owned() },
    });
    let text = desk.text();
    let (first, second) = (text.find("✗ read file1").unwrap(), text.find("✓ read file2").unwrap());
    assert!(first < second && text.contains("│ look elsewhere"), "{text}");
}

#[test]
fn the_plan_and_the_queue_stand_above_the_input() {
    let mut desk = Desk::new(SessionOverview::default());
    let task = |text: &str, state| PlanTask { text: text.to_owned(), state };
    desk.tell(PlanChanged {
        tasks: vec![task("look", PlanTaskState::Done), task("mend", PlanTaskState::InProgress)],
    });
    let parts = vec![MessagePart::Text(TextPart::said("and then this"))];
    desk.tell(QueueChanged {
        queue: vec![QueuedMessage { message: sample_id(7), delivery: PromptDelivery::Queue, parts }],
    });
    let text = desk.text();
    assert!(
        text.contains("plan · 1 of 2 done")
            && text.contains("▶ mend")
            && text.contains("queued: and then this"),
        "{text}"
    );
    desk.key(KeyCode::Up, KeyModifiers::NONE);
    assert_eq!(desk.orders, [SessionCommand::DropQueued { message: sample_id(7) }]);
    assert!(desk.text().contains("> and then this"));
}

#[test]
fn what_is_written_is_sent_as_it_stands() {
    let mut desk = Desk::new(SessionOverview::default());
    desk.say("first line\\");
    desk.say("second line");
    let Some(SessionCommand::Submit(prompt)) = desk.orders.first() else { panic!("{:?}", desk.orders) };
    assert_eq!(prompt.parts, [MessagePart::Text(TextPart::said("first line\nsecond line"))]);
    desk.key(KeyCode::Up, KeyModifiers::NONE);
    assert!(desk.text().contains("> first line"), "{}", desk.text());
}

#[test]
fn a_session_that_goes_on_shows_its_last_messages() {
    let message = |number: u64, role, text: &str| Message {
        id: sample_id(number),
        role,
        time: Timestamp::from_millis(1),
        parts: vec![MessagePart::Text(TextPart::said(text)), MessagePart::Text(TextPart::note("hidden"))],
    };
    let recent = vec![
        message(1, MessageRole::User, "what is it?"),
        message(2, MessageRole::Assistant, "It is **this**."),
    ];
    let mut desk = Desk::new(SessionOverview { recent, has_earlier: true, ..SessionOverview::default() });
    let text = desk.text();
    assert!(
        text.contains("there is more before this")
            && text.contains("> what is it?")
            && text.contains("• It is this."),
        "{text}"
    );
    assert!(!text.contains("hidden"), "{text}");
}

#[test]
fn hours_of_answers_are_drawn_to_the_end() {
    let mut desk = Desk::new(SessionOverview::default());
    for number in 0..2_000 {
        desk.tell(TextDelta { index: 0, text: format!("answer {number}\n\n").repeat(20) });
        desk.tell(answer(&format!("answer {number}\n\n").repeat(20)));
        desk.pass(Duration::from_millis(10));
        desk.draw();
    }
    let text = desk.text();
    assert!(text.contains("answer 1999") && !text.contains("answer 1998"), "{text}");
    desk.key(KeyCode::Char('o'), KeyModifiers::CONTROL);
    assert!(desk.text().contains("closes"), "{}", desk.text());
    desk.assert_restores();
}

#[test]
fn the_status_line_has_every_part_that_has_something_to_tell() {
    let mut desk = Desk::new(SessionOverview::default());
    let usual = SessionState::default().agent;
    assert!(!desk.text().contains(usual.as_str()), "{}", desk.text());
    desk.tell(ModelSwitched {
        from: ModelName::new("small/model"),
        to: ModelName::new("big/model"),
        reason: ModelSwitchReason::Fallback { failure: String::new() },
    });
    desk.session.agent = AgentName::new("reviewer");
    desk.tell(ModeSwitched { from: PermissionMode::Ask, to: PermissionMode::Bypass });
    let usage = TokenUsage { input: 50_000, ..TokenUsage::default() };
    desk.tell(StepEnded { usage, cost: Cost::from_pico_dollars(20_000_000_000), stop: StopReason::EndTurn });
    let parts = vec![MessagePart::Text(TextPart::said("then this"))];
    desk.tell(QueueChanged {
        queue: vec![QueuedMessage { message: sample_id(7), delivery: PromptDelivery::Queue, parts }],
    });
    let text = desk.text();
    assert!(
        text.contains("big/model · reviewer · bypass · 50% of 100k · $0.02 · not confined · 1 queued"),
        "{text}"
    );
    desk.session.agent = usual;
    desk.tell(QueueChanged { queue: Vec::new() });
    assert!(desk.text().contains("big/model · bypass ·"), "{}", desk.text());
}
