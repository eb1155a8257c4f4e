//! The loop. Ask the model; write its answer down; run the tools that it calls; and again, until it calls none.

use std::time::Duration;

use helve_models::{Dialogue, FailureKind, ModelAnswer, RequestFailure};
use helve_protocol::{
    CallId, Cost, DialogueBegan, ErrorRaised, EventBody, LimitKind, LimitReached, MessageId, MessagePart,
    NoteAdded, PromptDelivery, QueueChanged, QueuedMessage, ResponseEnded, StepEnded, StopReason, Timestamp,
    TokenUsage, ToolPart, TurnMetrics, TurnOutcome, UserMessage,
};
use tokio::time::Instant;

use crate::change_watcher::OutsideChanges;
use crate::context::model_request::{RequestResult, StepRequest, ask_model};
use crate::context::{MadeRoom, make_room};
use crate::dispatch::{CallDispatcher, StepResult, WatchTimes};
use crate::recorder::SessionError;
use crate::spec::ParentSession;
use crate::turn_context::TurnContext;

/// One turn.
pub(crate) struct TurnRunner<'a> {
    context: TurnContext<'a>,
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
    call_ids: Vec<CallId>,
}

impl<'a> TurnRunner<'a> {
    pub(crate) fn new(context: TurnContext<'a>, dialogue: &'a mut Dialogue) -> TurnRunner<'a> {
        TurnRunner {
            context,
            dialogue,
            dispatch: CallDispatcher::default(),
            metrics: TurnMetrics::default(),
            spent: Cost::ZERO,
            lost: TokenUsage::default(),
        }
    }

    /// Works until there is an outcome. When the time is up, what runs is stopped like by an interrupt.
    pub(crate) async fn run(mut self) -> Result<(TurnOutcome, TurnMetrics), SessionError> {
        let TurnContext { record, spec, stop, .. } = self.context;
        let mut is_late = false;
        let outcome = {
            let work = self.steps();
            tokio::pin!(work);
            tokio::select! {
                biased;
                outcome = &mut work => outcome?,
                () = stopped(spec.parent.as_ref()) => {
                    stop.cancel();
                    work.await?
                }
                () = elapsed(spec.limits.time) => {
                    is_late = true;
                    stop.cancel();
                    work.await?
                }
            }
        };
        if is_late && outcome == TurnOutcome::Cancelled {
            let text = "The time for this turn is up.".to_owned();
            record.emit(LimitReached { limit: LimitKind::Time, text })?;
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
        let undone = self.context.record.state(|state| state.history.unfinished_calls());
        Ok(match self.run_tools(&undone).await? {
            StepResult::NoCalls | StepResult::Continue => None,
            StepResult::EndTurn => Some(TurnOutcome::EndTurn),
            StepResult::Stopped => Some(TurnOutcome::Cancelled),
        })
    }

    fn limit_reached(&mut self) -> Result<Option<TurnOutcome>, SessionError> {
        let TurnContext { record, spec, stop, .. } = self.context;
        if stop.is_cancelled() {
            return Ok(Some(TurnOutcome::Cancelled));
        }
        let limits = &spec.limits;
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
        record.emit(LimitReached { limit, text })?;
        Ok(Some(outcome))
    }

    fn has_steering(&self) -> bool {
        self.context.record.state(|state| state.queue.iter().any(is_steering))
    }

    /// Hands over what a person said meanwhile for this turn.
    fn deliver_steering(&mut self) -> Result<(), SessionError> {
        let record = self.context.record;
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
        let TurnContext { record, watcher, stop, services, .. } = self.context;
        let hides = services.gate.judge().hidden_path_test(&self.context.judged());
        let began = record.now();
        let OutsideChanges { mut events, notes } = watcher.outside_changes(stop, hides).await;
        self.metrics.changes_ms += self.passed(began);
        let note = |(topic, text)| NoteAdded { message: record.draw(), topic, text }.into();
        events.extend(notes.into_iter().map(note));
        if events.is_empty() { Ok(()) } else { record.emit_all(events) }
    }

    /// Asks the model, and the next one if it can't be reached.
    async fn ask(&mut self) -> Result<ModelRequestResult, SessionError> {
        let TurnContext { record, stop, .. } = self.context;
        self.metrics.steps += 1;
        let step = StepRequest { message: record.draw(), number: self.metrics.steps };
        loop {
            let began = record.now();
            let RequestResult { answer, call_ids, lost } =
                ask_model(self.dialogue, step, record, stop).await?;
            self.lost += lost;
            self.metrics.request_ms += self.passed(began);
            match answer {
                Ok(answer) => {
                    let answered = AnsweredRequest { message: step.message, answer, call_ids };
                    return Ok(ModelRequestResult::Answered(Box::new(answered)));
                }
                Err(failure) => {
                    if let Some(outcome) = self.give_up(&failure)? {
                        return Ok(ModelRequestResult::Ended(outcome));
                    }
                }
            }
        }
    }

    /// Goes over to the next model, or says how the turn ends.
    fn give_up(&mut self, failure: &RequestFailure) -> Result<Option<TurnOutcome>, SessionError> {
        let record = self.context.record;
        self.end_step(failure.spent, StopReason::Other)?;
        if failure.kind == FailureKind::Interrupted {
            return Ok(Some(TurnOutcome::Cancelled));
        }
        if failure.kind == FailureKind::TooLong {
            match make_room(failure) {
                MadeRoom::No => {}
            }
        }
        if let Some(switch) = self.dialogue.fall_back(failure) {
            let began = dialogue_began(self.dialogue);
            record.emit_all(vec![switch.into(), began.into()])?;
            return Ok(None);
        }
        let what = format!("{} did not answer", self.dialogue.target().name);
        let hint = failure.kind.hint().to_owned();
        let is_about_keys = failure.kind == FailureKind::Auth;
        record.emit(ErrorRaised { what, why: failure.to_string(), hint, is_about_keys })?;
        Ok(Some(TurnOutcome::Error))
    }

    /// Writes the answer down, and gives the calls that wait to be run.
    fn write_down(&mut self, answered: &AnsweredRequest) -> Result<Vec<ToolPart>, SessionError> {
        let AnsweredRequest { message, answer, call_ids } = answered;
        let record = self.context.record;
        let mut ids = call_ids.iter().copied();
        let parts = answer.parts(|| ids.next().unwrap_or_else(|| record.draw()));
        let calls: Vec<ToolPart> = parts
            .iter()
            .filter_map(|part| match part {
                MessagePart::Tool(tool) => Some(ToolPart::clone(tool)),
                _ => None,
            })
            .collect();
        let stop = answer.stop.unwrap_or(StopReason::Other);
        record.emit(ResponseEnded { message: *message, parts, stop })?;
        Ok(calls)
    }

    async fn run_tools(&mut self, calls: &[ToolPart]) -> Result<StepResult, SessionError> {
        let began = self.context.record.now();
        self.metrics.calls += u32::try_from(calls.len()).unwrap_or(u32::MAX);
        let went = self.dispatch.run(calls, &self.context).await?;
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
        self.context.record.emit(StepEnded { usage, cost, stop })?;
        self.context.record.set_step(None);
        Ok(())
    }

    fn passed(&self, since: Timestamp) -> u64 {
        self.context.record.now().millis_since(since)
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

/// Ends when the turn of the parent that a child works for is stopped.
async fn stopped(parent: Option<&ParentSession>) {
    match parent {
        Some(parent) => parent.stop.cancelled().await,
        None => std::future::pending().await,
    }
}

/// Ends when the time is up, if it ever is.
async fn elapsed(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep_until(Instant::now() + time).await,
        None => std::future::pending().await,
    }
}
