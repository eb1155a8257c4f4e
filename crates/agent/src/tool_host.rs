//! The session as a tool sees it.

use helve_protocol::{CallId, PlanChanged, PlanTask, QuestionAnswered, QuestionAsked};
use helve_tools::{SessionHost, ToolFailure, UserQuestion, UserReplyFuture};

use crate::gate::PermissionGate;
use crate::recorder::{Recorder, SessionError};

/// Where tools tell what is planned, and ask people.
pub(crate) struct ToolHost {
    pub(crate) record: Recorder,
    pub(crate) gate: PermissionGate,
}

impl SessionHost for ToolHost {
    fn set_plan(&self, tasks: Vec<PlanTask>) -> Result<(), ToolFailure> {
        self.record.tell(PlanChanged { tasks }).map_err(|error| not_told(&error))
    }

    fn ask(&self, call: CallId, question: UserQuestion) -> UserReplyFuture<'_> {
        Box::pin(async move {
            let answer = self.gate.question(call)?;
            let withdrawn = QuestionGuard { desk: self, call };
            let UserQuestion { text, options } = question;
            self.record.tell(QuestionAsked { call, text, options }).ok()?;
            let answer = answer.await.ok();
            std::mem::forget(withdrawn);
            self.record.tell(QuestionAnswered { call, answer: answer.clone() }).ok()?;
            answer
        })
    }
}

/// A question whose call was stopped: nobody waits for its answer any more.
struct QuestionGuard<'a> {
    desk: &'a ToolHost,
    call: CallId,
}

impl Drop for QuestionGuard<'_> {
    fn drop(&mut self) {
        self.desk.gate.withdraw(self.call);
        let _ = self.desk.record.tell(QuestionAnswered { call: self.call, answer: None });
    }
}

fn not_told(error: &SessionError) -> ToolFailure {
    ToolFailure(format!("The list could not be kept: {error}."))
}
