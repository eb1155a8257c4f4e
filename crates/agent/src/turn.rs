//! The loop. Ask the model; write its answer down; run the tools that it calls; and again, until it calls none.

use std::sync::Arc;
use std::time::Duration;

use helve_models::{Dialogue, FailureKind, ModelAnswer, ModelRequest, RequestFailure};
use helve_protocol::{
    BlobId, CallId, Cost, DialogueBegan, ErrorRaised, EventBody, LimitKind, LimitReached, MessageId,
    MessagePart, NoteAdded, PromptDelivery, QueueChanged, QueuedMessage, ResponseEnded, StepEnded,
    StepStarted, StopReason, Timestamp, TokenUsage, ToolPart, TurnMetrics, TurnOutcome, UserMessage,
};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::change_tracker::{ChangeTracker, OutsideChanges};
use crate::dispatch::{CallDispatcher, StepResult, WatchTimes};
use crate::recorder::{Recorder, SessionError};
use crate::session::Services;
use crate::stream_recorder::StreamRecorder;
use crate::toolbox::Toolbox;

/// What a turn works with.
#[derive(Clone, Copy)]
pub(crate) struct TurnContext<'a> {
    pub(crate) record: &'a Recorder,
    pub(crate) house: &'a Services,
    pub(crate) toolbox: &'a Toolbox,
    pub(crate) watching: &'a ChangeTracker,
    pub(crate) stop: &'a CancellationToken,
    /// Told when a person does not want to wait for what runs.
    pub(crate) background: &'a Arc<Notify>,
}

/// One turn.
pub(crate) struct TurnRunner<'a> {
    work: TurnContext<'a>,
    dialogue: &'a mut Dialogue,
    dispatch: CallDispatcher,
    metrics: TurnMetrics,
    spent: Cost,
    /// What tries took that came to nothing.
    lost: TokenUsage,
}

/// What became of a request.
enum ModelRequestResult {
    Answered(Box<AnsweredRequest>),
    Ended(TurnOutcome),
}

struct AnsweredRequest {
    message: MessageId,
    answer: ModelAnswer,
    /// The ids of its calls, as they were announced.
    ids: Vec<CallId>,
}

impl<'a> TurnRunner<'a> {
    pub(crate) fn new(work: TurnContext<'a>, dialogue: &'a mut Dialogue) -> TurnRunner<'a> {
        TurnRunner {
            work,
            dialogue,
            dispatch: CallDispatcher::default(),
            metrics: TurnMetrics::default(),
            spent: Cost::ZERO,
            lost: TokenUsage::default(),
        }
    }

    /// Works until there is an outcome. When the time is up, what runs is stopped like by an interrupt.
    pub(crate) async fn run(mut self) -> Result<(TurnOutcome, TurnMetrics), SessionError> {
        let TurnContext { record, house, stop, .. } = self.work;
        let mut is_late = false;
        let outcome = {
            let work = self.steps();
            tokio::pin!(work);
            tokio::select! {
                biased;
                outcome = &mut work => outcome?,
                () = elapsed(house.limits.time) => {
                    is_late = true;
                    stop.cancel();
                    work.await?
                }
            }
        };
        if is_late && outcome == TurnOutcome::Cancelled {
            let text = "The time for this turn is up.".to_owned();
            record.tell(LimitReached { limit: LimitKind::Time, text })?;
            return Ok((TurnOutcome::Timeout, self.metrics));
        }
        Ok((outcome, self.metrics))
    }

    async fn steps(&mut self) -> Result<TurnOutcome, SessionError> {
        if let Some(outcome) = self.run_unfinished_calls().await? {
            return Ok(outcome);
        }
        loop {
            if let Some(outcome) = self.limit_reached()? {
                return Ok(outcome);
            }
            self.deliver_steering()?;
            self.look_outside().await?;
            let answered = match self.ask().await? {
                ModelRequestResult::Answered(answered) => *answered,
                ModelRequestResult::Ended(outcome) => return Ok(outcome),
            };
            let calls = match self.write_down(&answered) {
                Ok(calls) => calls,
                // What the journal does not take is no answer. The session stays as it was before it.
                Err(SessionError::Journal(error)) if is_no_answer(&error) => {
                    let failure = RequestFailure::new(
                        FailureKind::TooLarge,
                        format!("the answer can't be kept: {error}"),
                    );
                    match self.give_up(&RequestFailure { spent: answered.answer.usage, ..failure })? {
                        Some(outcome) => return Ok(outcome),
                        None => continue,
                    }
                }
                Err(error) => return Err(error),
            };
            let went = self.run_tools(&calls).await?;
            self.end_step(answered.answer.usage, answered.answer.stop.unwrap_or(StopReason::Other))?;
            match went {
                StepResult::NoCalls if self.has_steering() => {}
                StepResult::NoCalls | StepResult::EndTurn => return Ok(TurnOutcome::EndTurn),
                StepResult::Stopped => return Ok(TurnOutcome::Cancelled),
                StepResult::Continue => {}
            }
        }
    }

    /// Runs the calls that an earlier process left undone. Those that may have changed something are not among them.
    async fn run_unfinished_calls(&mut self) -> Result<Option<TurnOutcome>, SessionError> {
        let undone = self.work.record.state(|state| state.history.unfinished_calls());
        Ok(match self.run_tools(&undone).await? {
            StepResult::NoCalls | StepResult::Continue => None,
            StepResult::EndTurn => Some(TurnOutcome::EndTurn),
            StepResult::Stopped => Some(TurnOutcome::Cancelled),
        })
    }

    fn limit_reached(&mut self) -> Result<Option<TurnOutcome>, SessionError> {
        let TurnContext { record, house, stop, .. } = self.work;
        if stop.is_cancelled() {
            return Ok(Some(TurnOutcome::Cancelled));
        }
        let limits = &house.limits;
        let (limit, text, outcome) = if self.metrics.steps >= limits.steps {
            let text = match limits.steps {
                1 => "One step was made, which is the limit of a turn.".to_owned(),
                steps => format!("{steps} steps were made, which is the limit of a turn."),
            };
            (LimitKind::Steps, text, TurnOutcome::MaxTurns)
        } else if let Some(most) = limits.cost.filter(|most| self.spent >= *most) {
            (
                LimitKind::Cost,
                format!("{} were spent, and {most} is the limit of a turn.", self.spent),
                TurnOutcome::Budget,
            )
        } else {
            return Ok(None);
        };
        record.tell(LimitReached { limit, text })?;
        Ok(Some(outcome))
    }

    fn has_steering(&self) -> bool {
        self.work.record.state(|state| state.queue.iter().any(is_steering))
    }

    /// Hands over what a person said meanwhile for this turn.
    fn deliver_steering(&mut self) -> Result<(), SessionError> {
        let record = self.work.record;
        let (now, later): (Vec<QueuedMessage>, Vec<QueuedMessage>) =
            record.state(|state| state.queue.iter().cloned().partition(is_steering));
        if now.is_empty() {
            return Ok(());
        }
        self.dispatch.forget();
        let said =
            now.into_iter().map(|QueuedMessage { message, parts, .. }| UserMessage { message, parts }.into());
        let events: Vec<EventBody> = said.chain([QueueChanged { queue: later }.into()]).collect();
        record.emit_all(events)
    }

    /// Tells what others did to the files since the last request.
    async fn look_outside(&mut self) -> Result<(), SessionError> {
        let TurnContext { record, watching, stop, house, .. } = self.work;
        let hides = house.gate.hides(record, &house.root, &house.added);
        let began = record.now();
        let OutsideChanges { mut events, notes } = watching.outside(stop, hides).await;
        self.metrics.changes_ms += self.passed(began);
        let note = |(topic, text)| NoteAdded { message: record.draw(), topic, text }.into();
        events.extend(notes.into_iter().map(note));
        if events.is_empty() { Ok(()) } else { record.emit_all(events) }
    }

    /// Asks the model, and the next one if it can't be reached.
    async fn ask(&mut self) -> Result<ModelRequestResult, SessionError> {
        let TurnContext { record, stop, .. } = self.work;
        self.metrics.steps += 1;
        let message = record.draw();
        loop {
            let request = self.begin_request(message)?;
            let began = record.now();
            let mut hearing = StreamRecorder::new(record);
            let target = self.dialogue.target();
            let span = tracing::debug_span!(
                "chat",
                "gen_ai.operation.name" = "chat",
                "gen_ai.provider.name" = target.name.as_str().split('/').next(),
                "gen_ai.request.model" = target.model,
                "gen_ai.conversation.id" = %record.session(),
                "gen_ai.usage.input_tokens" = tracing::field::Empty,
                "gen_ai.usage.output_tokens" = tracing::field::Empty,
                "error.type" = tracing::field::Empty,
            );
            let mut ear = |heard: helve_models::StreamEvent<'_>| hearing.hear(&heard);
            let answer = self.dialogue.send(&request, &mut ear, stop).instrument(span.clone()).await;
            let (ids, lost) = hearing.end()?;
            self.lost += lost;
            self.metrics.request_ms += self.passed(began);
            let failure = match answer {
                Ok(answer) => {
                    span.record("gen_ai.usage.input_tokens", answer.usage.context());
                    span.record("gen_ai.usage.output_tokens", answer.usage.output);
                    return Ok(ModelRequestResult::Answered(Box::new(AnsweredRequest {
                        message,
                        answer,
                        ids,
                    })));
                }
                Err(failure) => failure,
            };
            span.record("error.type", format!("{:?}", failure.kind));
            if let Some(outcome) = self.give_up(&failure)? {
                return Ok(ModelRequestResult::Ended(outcome));
            }
        }
    }

    /// Writes a request down, before it leaves.
    fn begin_request(&mut self, message: MessageId) -> Result<ModelRequest, SessionError> {
        let record = self.work.record;
        let blobs = record.blobs();
        let request = record.state(|state| self.dialogue.prepare(&state.history, &*blobs));
        if let Some(broken) = &request.broken {
            tracing::warn!(name: "request.broken", path = broken.path, tokens = broken.tokens);
        }
        let stored = request.segments.iter().map(|segment| blobs.put_unsynced(segment));
        let mut segments: Vec<BlobId> = stored.collect::<Result<_, _>>()?;
        // A new process begins with nothing in hand, but what it sends may be what was sent before.
        let mut kept = request.kept;
        if kept == 0 {
            kept = record.state(|state| common(&state.request, &segments));
            segments.drain(..kept);
        }
        record.set_step(Some(record.draw()));
        record.tell(StepStarted {
            message,
            request: record.draw(),
            model: self.dialogue.target().name.clone(),
            number: self.metrics.steps,
            kept: kept as u64,
            segments,
            marks: request.marks.iter().map(|mark| *mark as u64).collect(),
        })?;
        Ok(request)
    }

    /// Goes over to the next model, or says how the turn ends.
    fn give_up(&mut self, failure: &RequestFailure) -> Result<Option<TurnOutcome>, SessionError> {
        let record = self.work.record;
        self.end_step(failure.spent, StopReason::Other)?;
        if failure.kind == FailureKind::Interrupted {
            return Ok(Some(TurnOutcome::Cancelled));
        }
        if let Some(switch) = self.dialogue.fall_back(failure) {
            let began = dialogue_began(self.dialogue);
            record.emit_all(vec![switch.into(), began.into()])?;
            return Ok(None);
        }
        let what = format!("{} did not answer", self.dialogue.target().name);
        let hint = failure.kind.hint().to_owned();
        let is_about_keys = failure.kind == FailureKind::Auth;
        record.tell(ErrorRaised { what, why: failure.to_string(), hint, is_about_keys })?;
        Ok(Some(TurnOutcome::Error))
    }

    /// Writes the answer down, and gives the calls that wait to be run.
    fn write_down(&mut self, answered: &AnsweredRequest) -> Result<Vec<ToolPart>, SessionError> {
        let AnsweredRequest { message, answer, ids } = answered;
        let record = self.work.record;
        let mut ids = ids.iter().copied();
        let parts = answer.parts(|| ids.next().unwrap_or_else(|| record.draw()));
        let calls: Vec<ToolPart> = parts
            .iter()
            .filter_map(|part| match part {
                MessagePart::Tool(tool) => Some(ToolPart::clone(tool)),
                _ => None,
            })
            .collect();
        let stop = answer.stop.unwrap_or(StopReason::Other);
        record.tell(ResponseEnded { message: *message, parts, stop })?;
        Ok(calls)
    }

    async fn run_tools(&mut self, calls: &[ToolPart]) -> Result<StepResult, SessionError> {
        let began = self.work.record.now();
        self.metrics.calls += u32::try_from(calls.len()).unwrap_or(u32::MAX);
        let went = self.dispatch.run(calls, &self.work).await?;
        let WatchTimes { snapshot_ms, changes_ms } = self.dispatch.take_watch_times();
        self.metrics.snapshot_ms += snapshot_ms;
        self.metrics.changes_ms += changes_ms;
        self.metrics.tools_ms += self.passed(began).saturating_sub(snapshot_ms + changes_ms);
        Ok(went)
    }

    /// Writes down what the step took, with the tries that came to nothing.
    fn end_step(&mut self, usage: TokenUsage, stop: StopReason) -> Result<(), SessionError> {
        let mut usage = usage;
        usage += std::mem::take(&mut self.lost);
        let cost = self.dialogue.target().cost(usage).unwrap_or_default();
        self.spent += cost;
        self.work.record.tell(StepEnded { usage, cost, stop })?;
        self.work.record.set_step(None);
        Ok(())
    }

    fn passed(&self, since: Timestamp) -> u64 {
        self.work.record.now().millis_since(since)
    }
}

pub(crate) fn is_steering(queued: &QueuedMessage) -> bool {
    queued.delivery == PromptDelivery::Steer
}

/// How the model is written to from here on.
pub(crate) fn dialogue_began(dialogue: &Dialogue) -> DialogueBegan {
    let manner = serde_json::to_value(dialogue.encoding_profile()).unwrap_or_default();
    DialogueBegan { model: dialogue.target().name.clone(), effort: dialogue.prompt().effort, manner }
}

/// Whether an answer is such that no journal keeps it, now or later.
fn is_no_answer(error: &helve_journal::JournalError) -> bool {
    matches!(
        error,
        helve_journal::JournalError::TooLarge { .. } | helve_journal::JournalError::TooDeep { .. }
    )
}

/// How many segments two requests begin with in common.
fn common(sent: &[BlobId], now: &[BlobId]) -> usize {
    sent.iter().zip(now).take_while(|(sent, now)| sent == now).count()
}

/// Ends when the time is up, if it ever is.
async fn elapsed(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep_until(Instant::now() + time).await,
        None => std::future::pending().await,
    }
}
