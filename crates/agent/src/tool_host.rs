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
        self.record.emit(PlanChanged { tasks }).map_err(|error| not_told(&error))
    }

    fn ask(&self, call: CallId, question: UserQuestion) -> UserReplyFuture<'_> {
        Box::pin(async move {
            let answer = self.gate.open_question(call)?;
            let withdrawn = QuestionGuard { host: self, call };
            let UserQuestion { text, options } = question;
            self.record.emit(QuestionAsked { call, text, options }).ok()?;
            let answer = answer.await.ok();
            std::mem::forget(withdrawn);
            self.record.emit(QuestionAnswered { call, answer: answer.clone() }).ok()?;
            answer
        })
    }
}

/// A question whose call was stopped: nobody waits for its answer any more.
struct QuestionGuard<'a> {
    host: &'a ToolHost,
    call: CallId,
}

impl Drop for QuestionGuard<'_> {
    fn drop(&mut self) {
        self.host.gate.withdraw(self.call);
        let _ = self.host.record.emit(QuestionAnswered { call: self.call, answer: None });
    }
}

fn not_told(error: &SessionError) -> ToolFailure {
    ToolFailure(format!("The list could not be kept: {error}."))
}
