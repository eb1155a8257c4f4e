//! What a session is doing, as its events tell.

use crate::{Body, Event, Part, Status};

/// A fold over the events of a session. Whether somebody is there to do it, only the owner's lock can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    pub work: Work,
    /// How many questions wait for an answer.
    pub questions: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Work {
    #[default]
    None,
    Model,
    Tools,
}

impl Activity {
    pub fn apply(&mut self, event: &Event) {
        match &event.body {
            Body::TurnStarted(_) | Body::StepStarted(_) | Body::StepEnded(_) | Body::CompactionStarted(_) => {
                self.begin(Work::Model);
            }
            Body::CompactionEnded(_) if event.turn.is_some() => self.begin(Work::Model),
            Body::CompactionEnded(_) | Body::TurnEnded(_) => self.begin(Work::None),
            Body::ResponseEnded(response) if calls_tools(&response.parts) => self.begin(Work::Tools),
            Body::ToolStarted(_) => self.work = Work::Tools,
            Body::ApprovalRequested(_) | Body::QuestionAsked(_) => self.questions += 1,
            Body::ApprovalResolved(_) | Body::QuestionAnswered(_) => {
                self.questions = self.questions.saturating_sub(1)
            }
            _ => {}
        }
    }

    /// Whoever was interrupted while a question was open does not answer it: with other work it is gone.
    fn begin(&mut self, work: Work) {
        *self = Activity { work, questions: 0 };
    }

    /// What a session with a living owner is doing.
    pub fn status(self) -> Status {
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
