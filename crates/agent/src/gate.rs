//! The gate that every call passes before it runs: it is allowed, refused, or a person is asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use helve_protocol::CallId;
use tokio::sync::oneshot;

use crate::judge::CallJudge;
use crate::rule_judge::{ApprovalCallback, ApprovalWaiters, Approver, JudgeContext, RuleJudge, Rulebook};

/// Decides what happens to a call, and knows whom the model can ask.
#[derive(Clone)]
pub struct PermissionGate {
    judge: Arc<dyn CallJudge>,
    person: Option<Arc<QuestionWaiters>>,
}

/// The rules that a gate decides by, and where. Without them there are no rules, and commands are not confined.
pub type GateRules = Option<(Arc<dyn Rulebook>, JudgeContext)>;

/// What the model asked, by the calls that asked it.
#[derive(Debug, Default)]
struct QuestionWaiters(Mutex<HashMap<CallId, oneshot::Sender<String>>>);

impl QuestionWaiters {
    fn open(&self) -> MutexGuard<'_, HashMap<CallId, oneshot::Sender<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PermissionGate {
    /// A gate that says yes to what the rules would ask.
    pub fn answering_yes(rules: GateRules) -> PermissionGate {
        PermissionGate::with_judge(Arc::new(RuleJudge::new(Approver::AlwaysYes, rules)))
    }

    /// A gate that refuses what the rules would ask, because there is nobody to ask.
    pub fn answering_no(rules: GateRules) -> PermissionGate {
        PermissionGate::with_judge(Arc::new(RuleJudge::new(Approver::Nobody, rules)))
    }

    /// A gate that asks a person, by events and commands.
    pub fn asking_person(rules: GateRules) -> PermissionGate {
        let approver = Approver::Person(ApprovalWaiters::default());
        PermissionGate::with_judge(Arc::new(RuleJudge::new(approver, rules))).with_person()
    }

    /// A gate that asks somebody who answers at once.
    pub fn asking_callback(ask: ApprovalCallback, rules: GateRules) -> PermissionGate {
        PermissionGate::with_judge(Arc::new(RuleJudge::new(Approver::Callback(ask), rules)))
    }

    pub(crate) fn with_judge(judge: Arc<dyn CallJudge>) -> PermissionGate {
        PermissionGate { judge, person: None }
    }

    /// The same gate, with a person whom the model can ask, whatever is allowed.
    #[must_use]
    pub fn with_person(self) -> PermissionGate {
        PermissionGate { person: Some(Arc::default()), ..self }
    }

    pub fn has_person(&self) -> bool {
        self.person.is_some()
    }

    pub(crate) fn judge(&self) -> &dyn CallJudge {
        &*self.judge
    }

    /// Where the answer to what a call asks will come; none if nobody is there.
    pub(crate) fn open_question(&self, call: CallId) -> Option<oneshot::Receiver<String>> {
        let (sender, receiver) = oneshot::channel();
        self.person.as_ref()?.open().insert(call, sender);
        Some(receiver)
    }

    pub(crate) fn withdraw(&self, call: CallId) {
        self.person.iter().for_each(|questions| drop(questions.open().remove(&call)));
    }

    /// Answers what a call asked, or tells it that nobody will.
    pub(crate) fn answer_question(&self, call: CallId, text: Option<String>) -> Result<(), &'static str> {
        let waiting = self.person.as_ref().and_then(|questions| questions.open().remove(&call));
        let waiting = waiting.ok_or("nobody waits for this answer (any more)")?;
        match text {
            Some(text) => waiting.send(text).map_err(|_| "the question was withdrawn"),
            None => Ok(()),
        }
    }
}
