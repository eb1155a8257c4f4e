//! The loop. Ask the model; write its answer down; run the tools that it calls; and again, until it calls none.

use std::sync::Arc;
use std::time::Duration;

use helve_models::{Answer, Dialogue, Failure, FailureKind, Request};
use helve_protocol::{
    BlobId, Body, CallId, Cost, Delivery, DialogueBegan, ErrorRaised, Limit, LimitReached, MessageId,
    ModelSwitched, NoteAdded, Outcome, Part, QueueChanged, Queued, ResponseEnded, StepEnded, StepStarted,
    StopReason, Timestamp, ToolPart, TurnMetrics, Usage, UserMessage,
};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::dispatch::{Aside, Dispatch, Went};
use crate::hearing::Hearing;
use crate::record::{Error, Recorder};
use crate::session::House;
use crate::toolbox::Toolbox;
use crate::watching::{Outlook, Watching};

/// What a turn works with.
#[derive(Clone, Copy)]
pub(crate) struct Work<'a> {
    pub(crate) record: &'a Recorder,
    pub(crate) house: &'a House,
    pub(crate) toolbox: &'a Toolbox,
    pub(crate) watching: &'a Watching,
    pub(crate) stop: &'a CancellationToken,
    /// Told when a person does not want to wait for what runs.
    pub(crate) background: &'a Arc<Notify>,
}

/// One turn.
pub(crate) struct Turn<'a> {
    work: Work<'a>,
    dialogue: &'a mut Dialogue,
    dispatch: Dispatch,
    metrics: TurnMetrics,
    spent: Cost,
    /// What tries took that came to nothing.
    lost: Usage,
}

/// What became of a request.
enum Asked {
    Answered(Box<Answered>),
    Ended(Outcome),
}

struct Answered {
    message: MessageId,
    answer: Answer,
    /// The ids of its calls, as they were announced.
    ids: Vec<CallId>,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(work: Work<'a>, dialogue: &'a mut Dialogue) -> Turn<'a> {
        Turn {
            work,
            dialogue,
            dispatch: Dispatch::default(),
            metrics: TurnMetrics::default(),
            spent: Cost::ZERO,
            lost: Usage::default(),
        }
    }

    /// Works until there is an outcome. When the time is up, what runs is stopped like by an interrupt.
    pub(crate) async fn run(mut self) -> Result<(Outcome, TurnMetrics), Error> {
        let Work { record, house, stop, .. } = self.work;
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
        if is_late && outcome == Outcome::Cancelled {
            let text = "The time for this turn is up.".to_owned();
            record.tell(LimitReached { limit: Limit::Time, text })?;
            return Ok((Outcome::Timeout, self.metrics));
        }
        Ok((outcome, self.metrics))
    }

    async fn steps(&mut self) -> Result<Outcome, Error> {
        if let Some(outcome) = self.take_up().await? {
            return Ok(outcome);
        }
        loop {
            if let Some(outcome) = self.limit_reached()? {
                return Ok(outcome);
            }
            self.hand_over()?;
            self.look_outside().await?;
            let answered = match self.ask().await? {
                Asked::Answered(answered) => *answered,
                Asked::Ended(outcome) => return Ok(outcome),
            };
            let calls = match self.write_down(&answered) {
                Ok(calls) => calls,
                // What the journal does not take is no answer. The session stays as it was before it.
                Err(Error::Journal(error)) if is_no_answer(&error) => {
                    let failure =
                        Failure::new(FailureKind::TooLarge, format!("the answer can't be kept: {error}"));
                    match self.give_up(&Failure { spent: answered.answer.usage, ..failure })? {
                        Some(outcome) => return Ok(outcome),
                        None => continue,
                    }
                }
                Err(error) => return Err(error),
            };
            let went = self.run_tools(&calls).await?;
            self.end_step(answered.answer.usage, answered.answer.stop.unwrap_or(StopReason::Other))?;
            match went {
                Went::Nowhere if self.has_steering() => {}
                Went::Nowhere | Went::Enough => return Ok(Outcome::EndTurn),
                Went::Stopped => return Ok(Outcome::Cancelled),
                Went::On => {}
            }
        }
    }

    /// Runs the calls that an earlier process left undone. Those that may have changed something are not among them.
    async fn take_up(&mut self) -> Result<Option<Outcome>, Error> {
        let undone = self.work.record.state(|state| state.history.unfinished());
        Ok(match self.run_tools(&undone).await? {
            Went::Nowhere | Went::On => None,
            Went::Enough => Some(Outcome::EndTurn),
            Went::Stopped => Some(Outcome::Cancelled),
        })
    }

    fn limit_reached(&mut self) -> Result<Option<Outcome>, Error> {
        let Work { record, house, stop, .. } = self.work;
        if stop.is_cancelled() {
            return Ok(Some(Outcome::Cancelled));
        }
        let limits = &house.limits;
        let (limit, text, outcome) = if self.metrics.steps >= limits.steps {
            let text = match limits.steps {
                1 => "One step was made, which is the limit of a turn.".to_owned(),
                steps => format!("{steps} steps were made, which is the limit of a turn."),
            };
            (Limit::Steps, text, Outcome::MaxTurns)
        } else if let Some(most) = limits.cost.filter(|most| self.spent >= *most) {
            (
                Limit::Cost,
                format!("{} were spent, and {most} is the limit of a turn.", self.spent),
                Outcome::Budget,
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
    fn hand_over(&mut self) -> Result<(), Error> {
        let record = self.work.record;
        let (now, later): (Vec<Queued>, Vec<Queued>) =
            record.state(|state| state.queue.iter().cloned().partition(is_steering));
        if now.is_empty() {
            return Ok(());
        }
        self.dispatch.forget();
        let said = now.into_iter().map(|Queued { message, parts, .. }| UserMessage { message, parts }.into());
        let events: Vec<Body> = said.chain([QueueChanged { queue: later }.into()]).collect();
        record.tell_all(events)
    }

    /// Tells what others did to the files since the last request.
    async fn look_outside(&mut self) -> Result<(), Error> {
        let Work { record, watching, stop, house, .. } = self.work;
        let hides = house.gate.hides(record, &house.root, &house.added);
        let began = record.now();
        let Outlook { mut events, notes } = watching.outside(stop, hides).await;
        self.metrics.changes_ms += self.passed(began);
        let note = |(topic, text): (&str, String)| {
            NoteAdded { message: record.draw(), topic: topic.to_owned(), text }.into()
        };
        events.extend(notes.into_iter().map(note));
        if events.is_empty() { Ok(()) } else { record.tell_all(events) }
    }

    /// Asks the model, and the next one if it can't be reached.
    async fn ask(&mut self) -> Result<Asked, Error> {
        let Work { record, stop, .. } = self.work;
        self.metrics.steps += 1;
        let message = record.draw();
        loop {
            let request = self.begin_request(message)?;
            let began = record.now();
            let mut hearing = Hearing::new(record);
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
            let mut ear = |heard: helve_models::Heard<'_>| hearing.hear(&heard);
            let answer = self.dialogue.send(&request, &mut ear, stop).instrument(span.clone()).await;
            let (ids, lost) = hearing.end()?;
            self.lost += lost;
            self.metrics.request_ms += self.passed(began);
            let failure = match answer {
                Ok(answer) => {
                    span.record("gen_ai.usage.input_tokens", answer.usage.context());
                    span.record("gen_ai.usage.output_tokens", answer.usage.output);
                    return Ok(Asked::Answered(Box::new(Answered { message, answer, ids })));
                }
                Err(failure) => failure,
            };
            span.record("error.type", format!("{:?}", failure.kind));
            if let Some(outcome) = self.give_up(&failure)? {
                return Ok(Asked::Ended(outcome));
            }
        }
    }

    /// Writes a request down, before it leaves.
    fn begin_request(&mut self, message: MessageId) -> Result<Request, Error> {
        let record = self.work.record;
        let blobs = record.blobs();
        let request = record.state(|state| self.dialogue.prepare(&state.history, &*blobs));
        if let Some(broken) = &request.broken {
            tracing::warn!(name: "request.broken", path = broken.path, tokens = broken.tokens);
        }
        let stored = request.segments.iter().map(|segment| blobs.put_soon(segment));
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
    fn give_up(&mut self, failure: &Failure) -> Result<Option<Outcome>, Error> {
        let record = self.work.record;
        self.end_step(failure.spent, StopReason::Other)?;
        if failure.kind == FailureKind::Interrupted {
            return Ok(Some(Outcome::Cancelled));
        }
        if let Some(switch) = self.dialogue.fall_back(failure) {
            let began = dialogue_began(self.dialogue);
            let switched = ModelSwitched { from: switch.from, to: switch.to, reason: switch.reason };
            record.tell_all(vec![switched.into(), began.into()])?;
            return Ok(None);
        }
        let what = format!("{} did not answer", self.dialogue.target().name);
        let hint = failure.kind.hint().to_owned();
        let is_about_keys = failure.kind == FailureKind::Auth;
        record.tell(ErrorRaised { what, why: failure.to_string(), hint, is_about_keys })?;
        Ok(Some(Outcome::Error))
    }

    /// Writes the answer down, and gives the calls that wait to be run.
    fn write_down(&mut self, answered: &Answered) -> Result<Vec<ToolPart>, Error> {
        let Answered { message, answer, ids } = answered;
        let record = self.work.record;
        let mut ids = ids.iter().copied();
        let parts = answer.parts(|| ids.next().unwrap_or_else(|| record.draw()));
        let calls: Vec<ToolPart> = parts
            .iter()
            .filter_map(|part| match part {
                Part::Tool(tool) => Some(ToolPart::clone(tool)),
                _ => None,
            })
            .collect();
        let stop = answer.stop.unwrap_or(StopReason::Other);
        record.tell(ResponseEnded { message: *message, parts, stop })?;
        Ok(calls)
    }

    async fn run_tools(&mut self, calls: &[ToolPart]) -> Result<Went, Error> {
        let began = self.work.record.now();
        self.metrics.calls += u32::try_from(calls.len()).unwrap_or(u32::MAX);
        let went = self.dispatch.run(calls, &self.work).await?;
        let Aside { snapshot_ms, changes_ms } = self.dispatch.aside();
        self.metrics.snapshot_ms += snapshot_ms;
        self.metrics.changes_ms += changes_ms;
        self.metrics.tools_ms += self.passed(began).saturating_sub(snapshot_ms + changes_ms);
        Ok(went)
    }

    /// Writes down what the step took, with the tries that came to nothing.
    fn end_step(&mut self, usage: Usage, stop: StopReason) -> Result<(), Error> {
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

pub(crate) fn is_steering(queued: &Queued) -> bool {
    queued.delivery == Delivery::Steer
}

/// How the model is written to from here on.
pub(crate) fn dialogue_began(dialogue: &Dialogue) -> DialogueBegan {
    let manner = serde_json::to_value(dialogue.manner()).unwrap_or_default();
    DialogueBegan { model: dialogue.target().name.clone(), effort: dialogue.prompt().effort, manner }
}

/// Whether an answer is such that no journal keeps it, now or later.
fn is_no_answer(error: &helve_journal::Error) -> bool {
    matches!(error, helve_journal::Error::TooLarge { .. } | helve_journal::Error::TooDeep { .. })
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
