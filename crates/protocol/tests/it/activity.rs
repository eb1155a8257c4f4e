//! What a session is doing, as its events tell.

use helve_protocol::*;
use helve_testkit::{SampleSession, sample_id};

fn asks(approval: u64) -> EventBody {
    let (effects, reason) = (Vec::new(), String::new());
    ApprovalRequested {
        approval: sample_id(approval),
        call: sample_id(4),
        effects,
        reason,
        diff: None,
        rules: Vec::new(),
    }
    .into()
}

#[test]
fn a_turn_goes_through_what_people_know() {
    let mut session = SampleSession::new(sample_id(1));
    let mut activity = SessionActivity::default();
    let mut after = |body: EventBody| {
        activity.apply(&session.event(body));
        activity.status()
    };
    let answer = ApprovalAnswer::Once;
    let call = SampleSession::new(sample_id(1)).step("I look.", &[("read", "text")]).remove(1).body;
    let started = ToolStarted { call: sample_id(4), class: ToolClass::Changes };
    let step_ended = SampleSession::new(sample_id(1)).step("", &[]).remove(2).body;
    let turn_ended = SampleSession::new(sample_id(1)).turn_ended().body;
    for (body, status) in [
        (SampleSession::new(sample_id(1)).created().body, SessionStatus::Idle),
        (TurnStarted::default().into(), SessionStatus::Thinking),
        (SampleSession::new(sample_id(1)).user_message("fix it").body, SessionStatus::Thinking),
        (call, SessionStatus::RunningTools),
        (asks(5), SessionStatus::WaitingForPerson),
        (asks(6), SessionStatus::WaitingForPerson),
        (
            ApprovalResolved { approval: sample_id(5), answer: answer.clone() }.into(),
            SessionStatus::WaitingForPerson,
        ),
        (ApprovalResolved { approval: sample_id(6), answer }.into(), SessionStatus::RunningTools),
        (started.into(), SessionStatus::RunningTools),
        (step_ended, SessionStatus::Thinking),
        (asks(7), SessionStatus::WaitingForPerson),
        (turn_ended, SessionStatus::Idle),
    ] {
        let kind = body.kind().to_owned();
        assert_eq!(after(body), status, "{kind}");
    }
}

#[test]
fn what_cant_be_read_is_named_with_the_version_that_wrote_it() {
    let mut session = SampleSession::new(sample_id(1));
    let mut state = SessionState::default();
    state.apply(&session.created());
    state.apply(&session.event(SessionOpened { helve: "9.9.9".to_owned() }));
    assert!(state.unreadable.is_empty());
    for kind in ["telepathy_began", "turn_ended", "telepathy_began"] {
        let data = serde_json::value::RawValue::from_string("{}".to_owned()).unwrap();
        state.apply(&session.event(EventBody::Unknown(UnknownEvent { kind: kind.to_owned(), data })));
    }
    assert_eq!(Vec::from_iter(&state.unreadable.kinds), ["telepathy_began", "turn_ended"]);
    assert_eq!(Vec::from_iter(&state.unreadable.versions), ["9.9.9"]);
}
