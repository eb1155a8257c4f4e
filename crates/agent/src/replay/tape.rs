//! One recorded turn: answers, results, decisions, ids and times, in the places of those who would give them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use helve_journal::{JournalBlobLoader, SessionLog};
use helve_models::{
    FailureKind, ModelAnswer, ModelRequest, RecordedAnswers, RequestDifference, RequestFailure,
    first_difference,
};
use helve_protocol::{
    BlobError, BlobId, BlobStore, CallId, CallPermissions, Clock, EventBody, GeneratedId, IdKind, IdSource,
    Interruption, MessageId, MessagePart, NoteTopic, PromptDelivery, QueueChanged, QueuedMessage, RequestId,
    Seq, SessionEvent, SessionId, StepId, StepStarted, StopReason, Timestamp, TokenUsage, ToolState,
    TurnOutcome,
};
use helve_tools::{HiddenPathTest, Tool, ToolContext, ToolFailure, ToolFuture};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::boxed_future::BoxFuture;
use crate::change_watcher::{ChangeWatcher, OutsideChanges};
use crate::context::notes::OUTSIDE_NOTE_TOPICS;
use crate::hooks::{CallIntervention, HookedCall, SessionHooks};
use crate::judge::{CallDecision, CallJudge, CallJudgement, JudgedSession, PermissionQuestion};
use crate::recorder::Recorder;
use crate::session::TurnTask;
use crate::tool_runner::ToolRunner;
use crate::turn::is_steering;

/// What one turn of the record holds, and what was found while it was played.
#[derive(Default)]
pub(super) struct ReplayTape {
    reel: Mutex<TapeState>,
    now: Timestamp,
    /// What a person said before the first step.
    pub(super) first_steering: Vec<QueuedMessage>,
    /// Where what a person said is told.
    pub(super) record: OnceLock<Recorder>,
}

#[derive(Default)]
struct TapeState {
    steps: VecDeque<TapedStep>,
    ends: HashMap<CallId, ToolState>,
    /// What hooks gave calls instead of what the model did.
    inputs: HashMap<CallId, Value>,
    ids: HashMap<IdKind, VecDeque<Uuid>>,
    drawn: u128,
    /// Whether the turn came to its own end, so that nothing is missing.
    is_whole: bool,
    sent: TapedRequest,
    found: ReplayFindings,
}

/// What was found while a turn was played.
#[derive(Clone, Default)]
pub(super) struct ReplayFindings {
    pub(super) asked: usize,
    pub(super) compared: usize,
    pub(super) unkept: usize,
    /// By the step.
    pub(super) differences: Vec<(usize, RequestDifference)>,
    /// The record ends here: somebody interrupted, or the program ended.
    pub(super) ran_out: bool,
}

struct TapedStep {
    request: StepStarted,
    end: TapedStepEnd,
    usage: TokenUsage,
    /// What a person said before the next one.
    steering: Vec<QueuedMessage>,
    /// What was told before it of the world outside.
    outside: Vec<(NoteTopic, String)>,
}

enum TapedStepEnd {
    Open,
    Answered(Vec<MessagePart>, StopReason),
    Failed(FailureKind, String),
}

impl TapeState {
    /// Takes the ids that an event was drawn with.
    fn ids(&mut self, event: &SessionEvent) {
        match &event.body {
            EventBody::TurnStarted(_) => self.id(event.turn),
            EventBody::NoteAdded(note) => self.id(Some(note.message)),
            EventBody::StepStarted(step) => {
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

    fn id<T: GeneratedId + Into<Uuid>>(&mut self, id: Option<T>) {
        self.ids.entry(T::KIND).or_default().extend(id.map(Into::into));
    }
}

impl ReplayTape {
    /// Reads what a turn was about, and what it needs to be played.
    pub(super) fn read(events: &[SessionEvent], sent: TapedRequest) -> (TurnTask, ReplayTape) {
        let mut tape = ReplayTape {
            now: events.first().map_or(Timestamp::default(), |event| event.time),
            ..ReplayTape::default()
        };
        let mut reel = TapeState { sent, ..TapeState::default() };
        let mut task = TurnTask::ContinueTurn;
        let mut waiting = Vec::new();
        let mut outside = Vec::new();
        for (place, event) in events.iter().enumerate() {
            reel.ids(event);
            match &event.body {
                // Right behind the turn's beginning; one that comes later was handed over.
                EventBody::UserMessage(said) if place == 1 => {
                    task = TurnTask::UserMessage { message: said.message, parts: said.parts.clone() };
                }
                EventBody::UserMessage(said) => {
                    let queued = QueuedMessage {
                        message: said.message,
                        delivery: PromptDelivery::Steer,
                        parts: said.parts.clone(),
                    };
                    match reel.steps.back_mut() {
                        Some(step) => step.steering.push(queued),
                        None => tape.first_steering.push(queued),
                    }
                }
                EventBody::QueueChanged(changed) => waiting.clone_from(&changed.queue),
                EventBody::StepStarted(step) => {
                    let request = step.clone();
                    let (end, usage, steering) = (TapedStepEnd::Open, TokenUsage::default(), Vec::new());
                    let outside = std::mem::take(&mut outside);
                    reel.steps.push_back(TapedStep { request, end, usage, steering, outside });
                }
                EventBody::NoteAdded(note) if OUTSIDE_NOTE_TOPICS.contains(&note.topic) => {
                    outside.push((note.topic, note.text.clone()));
                }
                EventBody::ResponseEnded(response) => {
                    if let Some(step) = reel.steps.back_mut() {
                        step.end = TapedStepEnd::Answered(response.parts.clone(), response.stop);
                    }
                }
                EventBody::StepEnded(ended) => {
                    if let Some(step) = reel.steps.back_mut() {
                        step.usage = ended.usage;
                    }
                }
                EventBody::ModelSwitched(switch) => {
                    if let Some(step) = reel.steps.back_mut() {
                        step.end = TapedStepEnd::Failed(FailureKind::Server, switch.reason.to_string());
                    }
                }
                EventBody::ErrorRaised(error) => {
                    if let Some(step) =
                        reel.steps.back_mut().filter(|step| matches!(step.end, TapedStepEnd::Open))
                    {
                        step.end = TapedStepEnd::Failed(FailureKind::BadRequest, error.why.clone());
                    }
                }
                EventBody::TurnEnded(ended) => {
                    reel.is_whole = !matches!(ended.outcome, TurnOutcome::Cancelled | TurnOutcome::Timeout);
                }
                EventBody::ToolInputReplaced(replaced) => {
                    reel.inputs.insert(replaced.call, replaced.input.clone());
                }
                EventBody::ToolEnded(ended) => drop(reel.ends.insert(ended.call, ended.end.clone())),
                _ => {}
            }
        }
        // What came during the last step and was not handed over any more: it is why the turn did not just end.
        if let Some(step) = reel.steps.back_mut() {
            let said = &step.steering;
            let is_new = |queued: &QueuedMessage| said.iter().all(|said| said.message != queued.message);
            waiting.retain(|queued| is_steering(queued) && is_new(queued));
            step.steering.append(&mut waiting);
        }
        tape.reel = Mutex::new(reel);
        (task, tape)
    }

    /// What was sent last when the turn was over, however far it was played.
    pub(super) fn sent(&self) -> TapedRequest {
        let mut reel = self.reel();
        for step in std::mem::take(&mut reel.steps) {
            reel.sent.follow(&step.request);
        }
        std::mem::take(&mut reel.sent)
    }

    pub(super) fn found(&self) -> ReplayFindings {
        self.reel().found.clone()
    }

    fn reel(&self) -> MutexGuard<'_, TapeState> {
        self.reel.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answers of a turn.
pub(super) struct TapedAnswers(pub(super) Arc<ReplayTape>);

impl RecordedAnswers for TapedAnswers {
    fn answer(&self, request: &ModelRequest) -> Result<ModelAnswer, RequestFailure> {
        let mut reel = self.0.reel();
        let step = reel.steps.pop_front();
        if step.is_none() && !reel.is_whole {
            reel.found.ran_out = true;
        } else {
            reel.found.asked += 1;
        }
        let asked = reel.found.asked;
        let Some(step) = step else {
            return Err(RequestFailure::new(FailureKind::Interrupted, "the record ends here"));
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
            TapedStepEnd::Answered(parts, stop) => Ok(ModelAnswer::from_recording(parts, step.usage, stop)),
            TapedStepEnd::Failed(kind, why) => Err(RequestFailure::new(kind, why)),
            TapedStepEnd::Open => {
                reel.found.ran_out = true;
                Err(RequestFailure::new(FailureKind::Interrupted, "the record ends here"))
            }
        };
        drop(reel);
        if let Some(record) = self.0.record.get().filter(|_| !step.steering.is_empty()) {
            let said = record.emit(QueueChanged { queue: step.steering });
            said.map_err(|error| RequestFailure::new(FailureKind::BadRequest, error.to_string()))?;
        }
        answer
    }
}

impl Clock for ReplayTape {
    fn now(&self) -> Timestamp {
        self.now
    }
}

impl IdSource for ReplayTape {
    fn draw(&self, what: IdKind) -> Uuid {
        let mut reel = self.reel();
        let recorded = reel.ids.get_mut(&what).and_then(VecDeque::pop_front);
        recorded.unwrap_or_else(|| {
            reel.drawn += 1;
            Uuid::from_u128(reel.drawn)
        })
    }
}

/// Does the work of every tool from the record.
impl ToolRunner for ReplayTape {
    fn run<'a>(&'a self, _: &'a dyn Tool, _: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(async move {
            // In which order neighbours end must not matter, so they end in another one than they did.
            for _ in 0..context.call.uuid().as_u128() % 7 {
                tokio::task::yield_now().await;
            }
            let end = self.reel().ends.get(&context.call).cloned();
            match end {
                Some(ToolState::Completed { output }) => Ok(output),
                Some(ToolState::Error { message }) => Err(ToolFailure(message)),
                _ => {
                    self.reel().found.ran_out = true;
                    context.stop.cancel();
                    std::future::pending().await
                }
            }
        })
    }
}

/// Decides as it was decided then.
impl CallJudge for ReplayTape {
    fn judge(&self, question: &PermissionQuestion<'_>, _: &JudgedSession<'_>) -> CallJudgement {
        let mut reel = self.reel();
        CallJudgement::Settled(match reel.ends.get(&question.call) {
            Some(ToolState::Denied { reason }) => CallDecision::Refused(reason.clone()),
            Some(ToolState::Interrupted { how: Interruption::NotStarted, .. }) | None => {
                reel.found.ran_out = true;
                CallDecision::Interrupted
            }
            Some(_) => CallDecision::Allowed(CallPermissions::default()),
        })
    }
}

/// Tells of the world outside what was told then.
impl ChangeWatcher for ReplayTape {
    fn outside_changes<'a>(
        &'a self,
        _: &'a CancellationToken,
        _: HiddenPathTest,
    ) -> BoxFuture<'a, OutsideChanges> {
        let mut reel = self.reel();
        let notes = reel.steps.front_mut().map(|step| std::mem::take(&mut step.outside)).unwrap_or_default();
        Box::pin(std::future::ready(OutsideChanges { notes, ..OutsideChanges::default() }))
    }
}

/// Gives calls the inputs that hooks gave them then.
impl SessionHooks for ReplayTape {
    fn before_call<'a>(&'a self, call: HookedCall<'a>) -> BoxFuture<'a, CallIntervention> {
        let replaced = self.reel().inputs.remove(&call.call);
        let intervention = replaced.map_or(CallIntervention::None, CallIntervention::ReplaceInput);
        Box::pin(std::future::ready(intervention))
    }
}

/// The last recorded request, by its segments.
#[derive(Clone, Default)]
pub(super) struct TapedRequest {
    payloads: Option<Arc<JournalBlobLoader>>,
    /// None for one whose bytes were lost.
    segments: Vec<Option<Vec<u8>>>,
}

impl TapedRequest {
    pub(super) fn new(payloads: Arc<JournalBlobLoader>) -> TapedRequest {
        TapedRequest { payloads: Some(payloads), segments: Vec::new() }
    }

    /// Goes on to the next request, and gives its body if it was kept.
    fn follow(&mut self, step: &StepStarted) -> Option<Vec<u8>> {
        self.segments.truncate(usize::try_from(step.kept).unwrap_or(usize::MAX));
        let payloads = self.payloads.as_ref()?;
        self.segments.extend(step.segments.iter().map(|blob| payloads(*blob).ok()));
        let segments: Option<Vec<&[u8]>> = self.segments.iter().map(Option::as_deref).collect();
        let marks: Vec<usize> = step.marks.iter().filter_map(|mark| usize::try_from(*mark).ok()).collect();
        segments
            .filter(|segments| !segments.is_empty())
            .map(|segments| ModelRequest::assemble_body(&segments, &marks))
    }
}

/// A log that keeps nothing. Payloads come from the record.
pub(super) struct ReplayLog {
    pub(super) session: SessionId,
    pub(super) last: Seq,
    pub(super) payloads: Arc<JournalBlobLoader>,
}

impl SessionLog for ReplayLog {
    fn session(&self) -> SessionId {
        self.session
    }

    fn last(&self) -> Seq {
        self.last
    }

    fn append(&mut self, events: &[SessionEvent]) -> helve_journal::JournalResult<()> {
        self.last = events.last().map_or(self.last, |event| event.seq);
        Ok(())
    }

    fn sync(&mut self) -> helve_journal::JournalResult<()> {
        Ok(())
    }

    fn blobs(&self) -> Arc<dyn BlobStore> {
        Arc::new(ReplayBlobStore(self.payloads.clone()))
    }
}

struct ReplayBlobStore(Arc<JournalBlobLoader>);

impl BlobStore for ReplayBlobStore {
    fn put(&self, _: &[u8]) -> Result<BlobId, BlobError> {
        Ok(BlobId::from_hash([0; 32]))
    }

    fn put_unsynced(&self, content: &[u8]) -> Result<BlobId, BlobError> {
        self.put(content)
    }

    fn get(&self, blob: BlobId) -> Result<Vec<u8>, BlobError> {
        (self.0)(blob).map_err(|error| BlobError(Box::new(error)))
    }
}
