//! What a session is doing, as its events tell.

use helve_protocol::*;
use helve_testkit::{Session, id};

fn asks(approval: u64) -> Body {
    let (effects, reason) = (Vec::new(), String::new());
    ApprovalRequested { approval: id(approval), call: id(4), effects, reason, diff: None, rules: Vec::new() }
        .into()
}

#[test]
fn a_turn_goes_through_what_people_know() {
    let mut session = Session::new(id(1));
    let mut activity = Activity::default();
    let mut after = |body: Body| {
        activity.apply(&session.event(body));
        activity.status()
    };
    let answer = Answer::Once;
    let call = Session::new(id(1)).step("I look.", &[("read", "text")]).remove(1).body;
    let started = ToolStarted { call: id(4), class: ToolClass::Changes };
    let step_ended = Session::new(id(1)).step("", &[]).remove(2).body;
    let turn_ended = Session::new(id(1)).ends().body;
    for (body, status) in [
        (Session::new(id(1)).created().body, Status::Idle),
        (TurnStarted::default().into(), Status::Thinking),
        (Session::new(id(1)).says("fix it").body, Status::Thinking),
        (call, Status::RunningTools),
        (asks(5), Status::WaitingForPerson),
        (asks(6), Status::WaitingForPerson),
        (ApprovalResolved { approval: id(5), answer: answer.clone() }.into(), Status::WaitingForPerson),
        (ApprovalResolved { approval: id(6), answer }.into(), Status::RunningTools),
        (started.into(), Status::RunningTools),
        (step_ended, Status::Thinking),
        (asks(7), Status::WaitingForPerson),
        (turn_ended, Status::Idle),
    ] {
        let kind = body.kind().to_owned();
        assert_eq!(after(body), status, "{kind}");
    }
}

#[test]
fn a_summary_within_a_turn_does_not_end_it() {
    let mut session = Session::new(id(1));
    session.turn = Some(id(2));
    let mut activity = Activity::default();
    activity.apply(&session.event(TurnStarted::default()));
    activity.apply(&session.compacts("short", Seq(1)));
    assert_eq!(activity.status(), Status::Thinking);
    session.turn = None;
    activity.apply(&session.compacts("short", Seq(1)));
    assert_eq!(activity.status(), Status::Idle);
}
