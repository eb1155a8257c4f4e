//! Who decides before something is changed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use helve_protocol::{Answer, ApprovalId, ApprovalRequested, ApprovalResolved, CallId, Mode};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::record::{Error, Recorder};
use crate::replay::Tape;

/// What happens to a call that may change something. Rules come later; until then everything that changes anything is
/// asked.
#[derive(Clone)]
pub struct Gate(Judge);

#[derive(Clone)]
enum Judge {
    /// The user said yes to everything beforehand.
    Yes,
    /// There is nobody to ask, so it is refused.
    Nobody,
    /// A person is asked.
    Person(Arc<Approvals>),
    /// It was decided when the session was recorded.
    Tape(Arc<Tape>),
}

/// Questions that wait for their answers.
#[derive(Debug, Default)]
struct Approvals(Mutex<HashMap<ApprovalId, oneshot::Sender<Answer>>>);

impl Approvals {
    fn ask(&self, approval: ApprovalId) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(approval, sender);
        receiver
    }

    fn take(&self, approval: ApprovalId) -> Option<oneshot::Sender<Answer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&approval)
    }
}

/// What a call is about.
pub(crate) struct Question<'a> {
    pub(crate) call: CallId,
    pub(crate) tool: &'a str,
    pub(crate) intent: String,
    pub(crate) weight: Weight,
}

/// Whether a general yes is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    Ordinary,
    /// The same call over and over: only a person can tell whether that has sense.
    DoomLoop,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Allowed,
    Refused(String),
    Interrupted,
}

impl Gate {
    /// Everything is allowed.
    pub fn open() -> Gate {
        Gate(Judge::Yes)
    }

    /// Nothing is, for there is nobody to ask.
    pub fn shut() -> Gate {
        Gate(Judge::Nobody)
    }

    /// A person is asked.
    pub fn asking() -> Gate {
        Gate(Judge::Person(Arc::default()))
    }

    pub(crate) fn recorded(tape: Arc<Tape>) -> Gate {
        Gate(Judge::Tape(tape))
    }

    /// Answers a question. An answer that comes too late, or twice, changes nothing, and says so.
    pub(crate) fn answer(&self, approval: ApprovalId, answer: Answer) -> Result<(), &'static str> {
        let waiting = match &self.0 {
            Judge::Person(approvals) => approvals.take(approval),
            _ => None,
        };
        let waiting = waiting.ok_or("nobody waits for this answer (any more)")?;
        // Whoever asked may have been interrupted meanwhile.
        waiting.send(answer).map_err(|_| "the question was withdrawn")
    }

    pub(crate) async fn decide(
        &self,
        question: Question<'_>,
        record: &Recorder,
        stop: &CancellationToken,
    ) -> Result<Decision, Error> {
        let refused = |why: &str| Ok(Decision::Refused(why.to_owned()));
        match (&self.0, question.weight) {
            (Judge::Tape(tape), _) => Ok(tape.decision(question.call)),
            (_, Weight::Ordinary) if record.state(|state| state.mode) == Mode::Plan => {
                refused("in plan mode nothing is changed. Say what you would do.")
            }
            (Judge::Yes, Weight::Ordinary) => Ok(Decision::Allowed),
            (Judge::Yes | Judge::Nobody, Weight::DoomLoop) => refused(
                "this is the same call with the same result as twice before, and nobody is there to ask. Try another way.",
            ),
            (Judge::Nobody, Weight::Ordinary) => {
                refused("it changes something, and nobody is there to be asked")
            }
            (Judge::Person(_), Weight::Ordinary)
                if record.state(|state| state.allowed.contains(question.tool)) =>
            {
                Ok(Decision::Allowed)
            }
            (Judge::Person(approvals), _) => ask(approvals, question, record, stop).await,
        }
    }
}

async fn ask(
    approvals: &Approvals,
    question: Question<'_>,
    record: &Recorder,
    stop: &CancellationToken,
) -> Result<Decision, Error> {
    let approval: ApprovalId = record.draw();
    let answer = approvals.ask(approval);
    let (reason, rule) = match question.weight {
        Weight::Ordinary => ("it changes something", Some(question.tool.to_owned())),
        Weight::DoomLoop => ("it is the same call as twice before", None),
    };
    let (effects, reason) = (vec![question.intent], reason.to_owned());
    record.tell(ApprovalRequested { approval, call: question.call, effects, reason, rule })?;
    let answer = tokio::select! {
        biased;
        () = stop.cancelled() => {
            approvals.take(approval);
            return Ok(Decision::Interrupted);
        }
        answer = answer => answer.unwrap_or(Answer::Reject { message: None }),
    };
    record.tell(ApprovalResolved { approval, answer: answer.clone() })?;
    Ok(match answer {
        Answer::Once | Answer::Session | Answer::Project => Decision::Allowed,
        Answer::Reject { message } => {
            Decision::Refused(message.unwrap_or_else(|| "the user does not want this".to_owned()))
        }
    })
}
