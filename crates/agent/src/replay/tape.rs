//! One recorded turn: answers, results, decisions, ids and times, in the places of those who would give them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use helve_journal::{Payloads, SessionLog};
use helve_models::{Answer, Difference, Failure, FailureKind, Recorded, Request, first_difference};
use helve_protocol::{
    BlobError, BlobId, Blobs, Body, CallId, Clock, Delivery, Event, Id, IdKind, Ids, Interruption, MessageId,
    Needs, Outcome, Part, QueueChanged, Queued, RequestId, Seq, SessionId, StepId, StepStarted, StopReason,
    Timestamp, ToolClass, ToolState, Usage,
};
use helve_tools::{Context, Running, Tool, ToolFailure, Touches};
use serde_json::Value;
use uuid::Uuid;

use crate::gate::Decision;
use crate::record::Recorder;
use crate::session::Task;
use crate::turn::is_steering;
use crate::watching::TOPICS;

/// What one turn of the record holds, and what was found while it was played.
#[derive(Default)]
pub(crate) struct Tape {
    reel: Mutex<Reel>,
    now: Timestamp,
    /// What a person said before the first step.
    pub(super) first_steering: Vec<Queued>,
    /// Where what a person said is told.
    pub(super) record: OnceLock<Recorder>,
}

#[derive(Default)]
struct Reel {
    steps: VecDeque<Step>,
    ends: HashMap<CallId, ToolState>,
    ids: HashMap<IdKind, VecDeque<Uuid>>,
    drawn: u128,
    /// Whether the turn came to its own end, so that nothing is missing.
    is_whole: bool,
    sent: Sent,
    found: Found,
}

/// What was found while a turn was played.
#[derive(Clone, Default)]
pub(super) struct Found {
    pub(super) asked: usize,
    pub(super) compared: usize,
    pub(super) unkept: usize,
    /// By the step.
    pub(super) differences: Vec<(usize, Difference)>,
    /// The record ends here: somebody interrupted, or the program ended.
    pub(super) ran_out: bool,
}

struct Step {
    request: StepStarted,
    end: End,
    usage: Usage,
    /// What a person said before the next one.
    steering: Vec<Queued>,
    /// What was told before it of the world outside.
    outside: Vec<(&'static str, String)>,
}

enum End {
    Open,
    Answered(Vec<Part>, StopReason),
    Failed(FailureKind, String),
}

impl Reel {
    /// Takes the ids that an event was drawn with.
    fn ids(&mut self, event: &Event) {
        match &event.body {
            Body::TurnStarted(_) => self.id(event.turn),
            Body::NoteAdded(note) => self.id(Some(note.message)),
            Body::StepStarted(step) => {
                let messages = self.ids.entry(MessageId::KIND).or_default();
                // The next model goes on with the same message.
                if messages.back() != Some(&step.message.uuid()) {
                    messages.push_back(step.message.uuid());
                }
                self.id::<StepId>(event.step);
                self.id::<RequestId>(Some(step.request));
            }
            _ => {}
        }
    }

    fn id<T: Id + Into<Uuid>>(&mut self, id: Option<T>) {
        self.ids.entry(T::KIND).or_default().extend(id.map(Into::into));
    }
}

impl Tape {
    /// Reads what a turn was about, and what it needs to be played.
    pub(super) fn read(events: &[Event], sent: Sent) -> (Task, Tape) {
        let mut tape =
            Tape { now: events.first().map_or(Timestamp::default(), |event| event.time), ..Tape::default() };
        let mut reel = Reel { sent, ..Reel::default() };
        let mut task = Task::GoOn;
        let mut waiting = Vec::new();
        let mut outside = Vec::new();
        for (place, event) in events.iter().enumerate() {
            reel.ids(event);
            match &event.body {
                // Right behind the turn's beginning; one that comes later was handed over.
                Body::UserMessage(said) if place == 1 => {
                    task = Task::Said { message: said.message, parts: said.parts.clone() };
                }
                Body::UserMessage(said) => {
                    let queued = Queued {
                        message: said.message,
                        delivery: Delivery::Steer,
                        parts: said.parts.clone(),
                    };
                    match reel.steps.back_mut() {
                        Some(step) => step.steering.push(queued),
                        None => tape.first_steering.push(queued),
                    }
                }
                Body::QueueChanged(changed) => waiting.clone_from(&changed.queue),
                Body::StepStarted(step) => {
                    let request = step.clone();
                    let (end, usage, steering) = (End::Open, Usage::default(), Vec::new());
                    let outside = std::mem::take(&mut outside);
                    reel.steps.push_back(Step { request, end, usage, steering, outside });
                }
                Body::NoteAdded(note) => {
                    let topic = TOPICS.iter().find(|topic| **topic == note.topic);
                    outside.extend(topic.map(|topic| (*topic, note.text.clone())));
                }
                Body::ResponseEnded(response) => {
                    if let Some(step) = reel.steps.back_mut() {
                        step.end = End::Answered(response.parts.clone(), response.stop);
                    }
                }
                Body::StepEnded(ended) => {
                    if let Some(step) = reel.steps.back_mut() {
                        step.usage = ended.usage;
                    }
                }
                Body::ModelSwitched(switch) => {
                    if let Some(step) = reel.steps.back_mut() {
                        step.end = End::Failed(FailureKind::Server, switch.reason.clone());
                    }
                }
                Body::ErrorRaised(error) => {
                    if let Some(step) = reel.steps.back_mut().filter(|step| matches!(step.end, End::Open)) {
                        step.end = End::Failed(FailureKind::BadRequest, error.why.clone());
                    }
                }
                Body::TurnEnded(ended) => {
                    reel.is_whole = !matches!(ended.outcome, Outcome::Cancelled | Outcome::Timeout);
                }
                Body::ToolEnded(ended) => drop(reel.ends.insert(ended.call, ended.end.clone())),
                _ => {}
            }
        }
        // What came during the last step and was not handed over any more: it is why the turn did not just end.
        if let Some(step) = reel.steps.back_mut() {
            let said = &step.steering;
            let is_new = |queued: &Queued| said.iter().all(|said| said.message != queued.message);
            waiting.retain(|queued| is_steering(queued) && is_new(queued));
            step.steering.append(&mut waiting);
        }
        tape.reel = Mutex::new(reel);
        (task, tape)
    }

    /// What was sent last when the turn was over, however far it was played.
    pub(super) fn sent(&self) -> Sent {
        let mut reel = self.reel();
        for step in std::mem::take(&mut reel.steps) {
            reel.sent.follow(&step.request);
        }
        std::mem::take(&mut reel.sent)
    }

    pub(super) fn found(&self) -> Found {
        self.reel().found.clone()
    }

    fn reel(&self) -> MutexGuard<'_, Reel> {
        self.reel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is told before the next step of the world outside.
    pub(crate) fn outside(&self) -> Vec<(&'static str, String)> {
        self.reel().steps.front_mut().map(|step| std::mem::take(&mut step.outside)).unwrap_or_default()
    }

    pub(crate) fn decision(&self, call: CallId) -> Decision {
        let mut reel = self.reel();
        match reel.ends.get(&call) {
            Some(ToolState::Denied { reason }) => Decision::Refused(reason.clone()),
            Some(ToolState::Interrupted { how: Interruption::NotStarted, .. }) | None => {
                reel.found.ran_out = true;
                Decision::Interrupted
            }
            Some(_) => Decision::Allowed(Needs::default()),
        }
    }
}

/// The answers of a turn.
pub(super) struct Answers(pub(super) Arc<Tape>);

impl Recorded for Answers {
    fn answer(&self, request: &Request) -> Result<Answer, Failure> {
        let mut reel = self.0.reel();
        let step = reel.steps.pop_front();
        if step.is_none() && !reel.is_whole {
            reel.found.ran_out = true;
        } else {
            reel.found.asked += 1;
        }
        let asked = reel.found.asked;
        let Some(step) = step else {
            return Err(Failure::new(FailureKind::Interrupted, "the record ends here"));
        };
        match reel.sent.follow(&step.request) {
            Some(body) => {
                reel.found.compared += 1;
                let difference = first_difference(&body, &request.body);
                reel.found.differences.extend(difference.map(|difference| (asked, difference)));
            }
            None => reel.found.unkept += 1,
        }
        let answer = match step.end {
            End::Answered(parts, stop) => Ok(Answer::written(parts, step.usage, stop)),
            End::Failed(kind, why) => Err(Failure::new(kind, why)),
            End::Open => {
                reel.found.ran_out = true;
                Err(Failure::new(FailureKind::Interrupted, "the record ends here"))
            }
        };
        drop(reel);
        if let Some(record) = self.0.record.get().filter(|_| !step.steering.is_empty()) {
            let said = record.tell(QueueChanged { queue: step.steering });
            said.map_err(|error| Failure::new(FailureKind::BadRequest, error.to_string()))?;
        }
        answer
    }
}

impl Clock for Tape {
    fn now(&self) -> Timestamp {
        self.now
    }
}

impl Ids for Tape {
    fn draw(&self, what: IdKind) -> Uuid {
        let mut reel = self.reel();
        let recorded = reel.ids.get_mut(&what).and_then(VecDeque::pop_front);
        recorded.unwrap_or_else(|| {
            reel.drawn += 1;
            Uuid::from_u128(reel.drawn)
        })
    }
}

/// A tool as this build has it, with the results of the record.
pub(super) struct Taped(pub(super) Arc<dyn Tool>, pub(super) Arc<Tape>);

impl Tool for Taped {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn description(&self) -> &'static str {
        self.0.description()
    }

    fn schema(&self) -> Value {
        self.0.schema()
    }

    fn class(&self) -> ToolClass {
        self.0.class()
    }

    fn touches(&self) -> Touches {
        self.0.touches()
    }

    fn polls(&self) -> bool {
        self.0.polls()
    }

    fn intent(&self, input: &Value) -> String {
        self.0.intent(input)
    }

    fn run<'a>(&'a self, _: Value, context: &'a Context) -> Running<'a> {
        Box::pin(async move {
            // In which order neighbours end must not matter, so they end in another one than they did.
            for _ in 0..context.call.uuid().as_u128() % 7 {
                tokio::task::yield_now().await;
            }
            let end = self.1.reel().ends.get(&context.call).cloned();
            match end {
                Some(ToolState::Completed { output }) => Ok(output),
                Some(ToolState::Error { message }) => Err(ToolFailure(message)),
                _ => {
                    self.1.reel().found.ran_out = true;
                    context.stop.cancel();
                    std::future::pending().await
                }
            }
        })
    }
}

/// The last recorded request, by its segments.
#[derive(Clone, Default)]
pub(super) struct Sent {
    payloads: Option<Arc<Payloads>>,
    /// None for one whose bytes were lost.
    segments: Vec<Option<Vec<u8>>>,
}

impl Sent {
    pub(super) fn new(payloads: Arc<Payloads>) -> Sent {
        Sent { payloads: Some(payloads), segments: Vec::new() }
    }

    /// Goes on to the next request, and gives its body if it was kept.
    fn follow(&mut self, step: &StepStarted) -> Option<Vec<u8>> {
        self.segments.truncate(usize::try_from(step.kept).unwrap_or(usize::MAX));
        let payloads = self.payloads.as_ref()?;
        self.segments.extend(step.segments.iter().map(|blob| payloads(*blob).ok()));
        let segments: Option<Vec<&[u8]>> = self.segments.iter().map(Option::as_deref).collect();
        let marks: Vec<usize> = step.marks.iter().filter_map(|mark| usize::try_from(*mark).ok()).collect();
        segments.filter(|segments| !segments.is_empty()).map(|segments| Request::body_of(&segments, &marks))
    }
}

/// A log that keeps nothing. Payloads come from the record.
pub(super) struct Paper {
    pub(super) session: SessionId,
    pub(super) last: Seq,
    pub(super) payloads: Arc<Payloads>,
}

impl SessionLog for Paper {
    fn session(&self) -> SessionId {
        self.session
    }

    fn last(&self) -> Seq {
        self.last
    }

    fn append(&mut self, events: &[Event]) -> helve_journal::Result<()> {
        self.last = events.last().map_or(self.last, |event| event.seq);
        Ok(())
    }

    fn sync(&mut self) -> helve_journal::Result<()> {
        Ok(())
    }

    fn blobs(&self) -> Arc<dyn Blobs> {
        Arc::new(RecordedBlobs(self.payloads.clone()))
    }
}

struct RecordedBlobs(Arc<Payloads>);

impl Blobs for RecordedBlobs {
    fn put(&self, _: &[u8]) -> Result<BlobId, BlobError> {
        Ok(BlobId::from_hash([0; 32]))
    }

    fn put_soon(&self, content: &[u8]) -> Result<BlobId, BlobError> {
        self.put(content)
    }

    fn get(&self, blob: BlobId) -> Result<Vec<u8>, BlobError> {
        (self.0)(blob).map_err(|error| BlobError(Box::new(error)))
    }
}
