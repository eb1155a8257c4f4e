//! Who decides before something is changed.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use helve_protocol::{Answer, ApprovalId, ApprovalRequested, ApprovalResolved, CallId};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::record::{Error, Recorder};

/// What happens to a call that may change something. Rules come later; until then everything that changes anything is
/// asked.
#[derive(Clone, Debug)]
pub enum Gate {
    /// The user said yes to everything beforehand.
    Yes,
    /// There is nobody to ask, so it is refused.
    Nobody,
    /// A person is asked.
    Ask(Arc<Approvals>),
}

/// Questions that wait for their answers.
#[derive(Debug, Default)]
pub struct Approvals {
    open: Mutex<HashMap<ApprovalId, oneshot::Sender<Answer>>>,
    /// The tools that may do their work for the rest of the session.
    allowed: Mutex<HashSet<String>>,
}

impl Approvals {
    /// Answers a question. An answer that comes too late, or twice, changes nothing.
    pub fn decide(&self, approval: ApprovalId, answer: Answer) {
        let waiting = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&approval);
        if let Some(waiting) = waiting {
            // Whoever asked may have been interrupted.
            let _ = waiting.send(answer);
        }
    }

    fn ask(&self, approval: ApprovalId) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(approval, sender);
        receiver
    }

    fn allows(&self, tool: &str) -> bool {
        self.allowed.lock().unwrap_or_else(PoisonError::into_inner).contains(tool)
    }

    fn allow(&self, tool: &str) {
        self.allowed.lock().unwrap_or_else(PoisonError::into_inner).insert(tool.to_owned());
    }
}

/// What a call is about.
pub(crate) struct Question<'a> {
    pub(crate) call: CallId,
    pub(crate) tool: &'a str,
    pub(crate) intent: String,
    pub(crate) reason: &'a str,
    pub(crate) weight: Weight,
}

/// Whether a general yes is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    Ordinary,
    /// The same call over and over: only a person can tell whether that has sense.
    DoomLoop,
}

pub(crate) enum Decision {
    Allowed,
    Refused(String),
    Interrupted,
}

impl Gate {
    pub(crate) async fn decide(
        &self,
        question: Question<'_>,
        record: &mut Recorder,
        stop: &CancellationToken,
    ) -> Result<Decision, Error> {
        match (self, question.weight) {
            (Gate::Yes, Weight::Ordinary) => Ok(Decision::Allowed),
            (Gate::Yes | Gate::Nobody, Weight::DoomLoop) => Ok(Decision::Refused(
                "this is the same call with the same result as twice before, and nobody is there to ask. Try another way."
                    .to_owned(),
            )),
            (Gate::Nobody, Weight::Ordinary) => {
                Ok(Decision::Refused("it changes something, and nobody is there to be asked".to_owned()))
            }
            (Gate::Ask(approvals), Weight::Ordinary) if approvals.allows(question.tool) => Ok(Decision::Allowed),
            (Gate::Ask(approvals), _) => ask(approvals, question, record, stop).await,
        }
    }
}

async fn ask(
    approvals: &Approvals,
    question: Question<'_>,
    record: &mut Recorder,
    stop: &CancellationToken,
) -> Result<Decision, Error> {
    let approval: ApprovalId = record.draw();
    let answer = approvals.ask(approval);
    record.tell(ApprovalRequested {
        approval,
        call: question.call,
        effects: vec![question.intent],
        reason: question.reason.to_owned(),
        rule: None,
    })?;
    let answer = tokio::select! {
        biased;
        () = stop.cancelled() => return Ok(Decision::Interrupted),
        answer = answer => answer.unwrap_or(Answer::Reject { message: None }),
    };
    record.tell(ApprovalResolved { approval, answer: answer.clone() })?;
    Ok(match answer {
        Answer::Once => Decision::Allowed,
        Answer::Session | Answer::Project => {
            approvals.allow(question.tool);
            Decision::Allowed
        }
        Answer::Reject { message } => {
            Decision::Refused(message.unwrap_or_else(|| "the user does not want this".to_owned()))
        }
    })
}
