//! What a session is doing, as its events tell.

use crate::{EventBody, MessagePart, SessionEvent, SessionStatus};

/// A fold over the events of a session. Whether somebody is there to do it, only the owner's lock can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionActivity {
    pub work: ActivityKind,
    /// How many questions wait for an answer.
    pub questions: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ActivityKind {
    #[default]
    None,
    Model,
    Tools,
}

impl SessionActivity {
    pub fn apply(&mut self, event: &SessionEvent) {
        match &event.body {
            EventBody::TurnStarted(_) | EventBody::StepStarted(_) | EventBody::StepEnded(_) => {
                self.begin(ActivityKind::Model);
            }
            EventBody::TurnEnded(_) => self.begin(ActivityKind::None),
            EventBody::ResponseEnded(response) if calls_tools(&response.parts) => {
                self.begin(ActivityKind::Tools)
            }
            EventBody::ToolStarted(_) => self.work = ActivityKind::Tools,
            EventBody::ApprovalRequested(_) | EventBody::QuestionAsked(_) => self.questions += 1,
            EventBody::ApprovalResolved(_) | EventBody::QuestionAnswered(_) => {
                self.questions = self.questions.saturating_sub(1)
            }
            _ => {}
        }
    }

    /// Whoever was interrupted while a question was open does not answer it: with other work it is gone.
    fn begin(&mut self, work: ActivityKind) {
        *self = SessionActivity { work, questions: 0 };
    }

    /// What a session with a living owner is doing.
    pub fn status(self) -> SessionStatus {
        match self.work {
            _ if self.questions > 0 => SessionStatus::WaitingForPerson,
            ActivityKind::None => SessionStatus::Idle,
            ActivityKind::Model => SessionStatus::Thinking,
            ActivityKind::Tools => SessionStatus::RunningTools,
        }
    }
}

fn calls_tools(parts: &[MessagePart]) -> bool {
    parts.iter().any(|part| matches!(part, MessagePart::Tool(_)))
}
