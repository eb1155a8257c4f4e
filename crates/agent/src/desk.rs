//! The session as a tool sees it.

use helve_protocol::{CallId, PlanChanged, QuestionAnswered, QuestionAsked, Task};
use helve_tools::{Host, Question, Reply, ToolFailure};

use crate::gate::Gate;
use crate::record::{Error, Recorder};

/// Where tools tell what is planned, and ask people.
pub(crate) struct Desk {
    pub(crate) record: Recorder,
    pub(crate) gate: Gate,
}

impl Host for Desk {
    fn set_plan(&self, tasks: Vec<Task>) -> Result<(), ToolFailure> {
        self.record.tell(PlanChanged { tasks }).map_err(|error| not_told(&error))
    }

    fn ask(&self, call: CallId, question: Question) -> Reply<'_> {
        Box::pin(async move {
            let answer = self.gate.question(call)?;
            let withdrawn = Withdrawn { desk: self, call };
            let Question { text, options } = question;
            self.record.tell(QuestionAsked { call, text, options }).ok()?;
            let answer = answer.await.ok();
            std::mem::forget(withdrawn);
            self.record.tell(QuestionAnswered { call, answer: answer.clone() }).ok()?;
            answer
        })
    }
}

/// A question whose call was stopped: nobody waits for its answer any more.
struct Withdrawn<'a> {
    desk: &'a Desk,
    call: CallId,
}

impl Drop for Withdrawn<'_> {
    fn drop(&mut self) {
        self.desk.gate.withdraw(self.call);
        let _ = self.desk.record.tell(QuestionAnswered { call: self.call, answer: None });
    }
}

fn not_told(error: &Error) -> ToolFailure {
    ToolFailure(format!("The list could not be kept: {error}."))
}
