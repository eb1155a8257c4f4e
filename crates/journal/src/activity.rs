//! What a session is doing, as its events tell.

use helve_protocol::{Body, Event, Part, Status};

/// A fold over the events of a session. Whether somebody is there to do it, only the owner's lock can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Activity {
    pub(crate) work: Work,
    /// How many questions wait for an answer.
    pub(crate) questions: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Work {
    #[default]
    None,
    Model,
    Tools,
}

impl Activity {
    pub(crate) fn apply(&mut self, event: &Event) {
        match &event.body {
            Body::TurnStarted(_) | Body::StepStarted(_) | Body::StepEnded(_) | Body::CompactionStarted(_) => {
                self.begin(Work::Model);
            }
            Body::CompactionEnded(_) if event.turn.is_some() => self.begin(Work::Model),
            Body::CompactionEnded(_) | Body::TurnEnded(_) => self.begin(Work::None),
            Body::ResponseEnded(response) if calls_tools(&response.parts) => self.begin(Work::Tools),
            Body::ToolStarted(_) => self.work = Work::Tools,
            Body::ApprovalRequested(_) => self.questions += 1,
            Body::ApprovalResolved(_) => self.questions = self.questions.saturating_sub(1),
            _ => {}
        }
    }

    /// Whoever was interrupted while a question was open does not answer it: with other work it is gone.
    fn begin(&mut self, work: Work) {
        *self = Activity { work, questions: 0 };
    }

    /// What a session with a living owner is doing.
    pub(crate) fn status(self) -> Status {
        match self.work {
            _ if self.questions > 0 => Status::WaitingForPerson,
            Work::None => Status::Idle,
            Work::Model => Status::Thinking,
            Work::Tools => Status::RunningTools,
        }
    }
}

fn calls_tools(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part, Part::Tool(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use helve_protocol::*;
    use helve_testkit::{Session, id};

    fn asks(approval: u64) -> Body {
        let (effects, reason) = (Vec::new(), String::new());
        ApprovalRequested { approval: id(approval), call: id(4), effects, reason, rule: None }.into()
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
            (TurnStarted {}.into(), Status::Thinking),
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
        activity.apply(&session.event(TurnStarted {}));
        activity.apply(&session.compacts("short", Seq(1)));
        assert_eq!(activity.status(), Status::Thinking);
        session.turn = None;
        activity.apply(&session.compacts("short", Seq(1)));
        assert_eq!(activity.status(), Status::Idle);
    }
}
