//! Who decides before something is changed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use helve_protocol::{Answer, ApprovalId, ApprovalRequested, ApprovalResolved, CallId, Mode};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::record::{Error, Recorder};
use crate::replay::Tape;

/// What happens to a call that may change something. Rules come later; until then everything that changes anything is
/// asked. And whom the model can ask.
#[derive(Clone)]
pub struct Gate {
    judge: Judge,
    person: Option<Arc<Questions>>,
}

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

/// What the model asked, by the calls that asked it.
#[derive(Debug, Default)]
struct Questions(Mutex<HashMap<CallId, oneshot::Sender<String>>>);

impl Questions {
    fn open(&self) -> MutexGuard<'_, HashMap<CallId, oneshot::Sender<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        Gate { judge: Judge::Yes, person: None }
    }

    /// Nothing is, for there is nobody to ask.
    pub fn shut() -> Gate {
        Gate { judge: Judge::Nobody, person: None }
    }

    /// A person is asked.
    pub fn asking() -> Gate {
        Gate { judge: Judge::Person(Arc::default()), person: None }.with_person()
    }

    /// Whatever is allowed: a person is there whom the model can ask.
    pub fn with_person(self) -> Gate {
        Gate { person: Some(Arc::default()), ..self }
    }

    pub fn has_person(&self) -> bool {
        self.person.is_some()
    }

    /// Where the answer to what a call asks will come; none if nobody is there.
    pub(crate) fn question(&self, call: CallId) -> Option<oneshot::Receiver<String>> {
        let (sender, receiver) = oneshot::channel();
        self.person.as_ref()?.open().insert(call, sender);
        Some(receiver)
    }

    pub(crate) fn withdraw(&self, call: CallId) {
        self.person.iter().for_each(|questions| drop(questions.open().remove(&call)));
    }

    /// Answers what a call asked, or tells it that nobody will.
    pub(crate) fn reply(&self, call: CallId, text: Option<String>) -> Result<(), &'static str> {
        let waiting = self.person.as_ref().and_then(|questions| questions.open().remove(&call));
        let waiting = waiting.ok_or("nobody waits for this answer (any more)")?;
        match text {
            Some(text) => waiting.send(text).map_err(|_| "the question was withdrawn"),
            None => Ok(()),
        }
    }

    pub(crate) fn recorded(tape: Arc<Tape>) -> Gate {
        Gate { judge: Judge::Tape(tape), person: None }
    }

    /// Answers a question. An answer that comes too late, or twice, changes nothing, and says so.
    pub(crate) fn answer(&self, approval: ApprovalId, answer: Answer) -> Result<(), &'static str> {
        let waiting = match &self.judge {
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
        match (&self.judge, question.weight) {
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
