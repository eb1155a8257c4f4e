//! The loop. Ask the model; write its answer down; run the tools that it calls; and again, until it calls none.

use std::time::Duration;

use helve_models::{Answer, Dialogue, Failure, FailureKind, Request};
use helve_protocol::{
    CallId, Cost, ErrorRaised, Limit, LimitReached, MessageId, ModelSwitched, Outcome, Part, ResponseEnded,
    StepEnded, StepStarted, StopReason, Timestamp, ToolPart, TurnMetrics,
};
use helve_tools::Context;
use tokio::time::Instant;

use crate::dispatch::{Dispatch, Went};
use crate::hearing::Hearing;
use crate::record::{Error, Recorder};
use crate::session::House;

/// One turn, with what it works with.
pub(crate) struct Turn<'a> {
    record: &'a mut Recorder,
    dialogue: &'a mut Dialogue,
    house: &'a House,
    context: &'a Context,
    dispatch: Dispatch,
    metrics: TurnMetrics,
    spent: Cost,
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
    pub(crate) fn new(
        record: &'a mut Recorder,
        dialogue: &'a mut Dialogue,
        house: &'a House,
        context: &'a Context,
    ) -> Turn<'a> {
        let (metrics, spent) = (TurnMetrics::default(), Cost::ZERO);
        Turn { record, dialogue, house, context, dispatch: Dispatch::default(), metrics, spent }
    }

    /// Works until there is an outcome. When the time is up, what runs is stopped like by an interrupt.
    pub(crate) async fn run(mut self) -> Result<(Outcome, TurnMetrics), Error> {
        let stop = self.context.stop.clone();
        let time = self.house.limits.time;
        let mut is_late = false;
        let outcome = {
            let work = self.steps();
            tokio::pin!(work);
            tokio::select! {
                biased;
                outcome = &mut work => outcome?,
                () = elapsed(time) => {
                    is_late = true;
                    stop.cancel();
                    work.await?
                }
            }
        };
        if is_late && outcome == Outcome::Cancelled {
            let text = "The time for this turn is up.".to_owned();
            self.record.tell(LimitReached { limit: Limit::Time, text })?;
            return Ok((Outcome::Timeout, self.metrics));
        }
        Ok((outcome, self.metrics))
    }

    async fn steps(&mut self) -> Result<Outcome, Error> {
        loop {
            if let Some(outcome) = self.limit_reached()? {
                return Ok(outcome);
            }
            let answered = match self.ask().await? {
                Asked::Answered(answered) => *answered,
                Asked::Ended(outcome) => return Ok(outcome),
            };
            let calls = self.write_down(&answered)?;
            let went = self.run_tools(calls).await?;
            self.end_step(&answered.answer)?;
            match went {
                Went::Nowhere => return Ok(Outcome::EndTurn),
                Went::Stopped => return Ok(Outcome::Cancelled),
                Went::On => {}
            }
        }
    }

    fn limit_reached(&mut self) -> Result<Option<Outcome>, Error> {
        if self.context.stop.is_cancelled() {
            return Ok(Some(Outcome::Cancelled));
        }
        let limits = &self.house.limits;
        let (limit, text, outcome) = if self.metrics.steps >= limits.steps {
            (
                Limit::Steps,
                format!("{} steps were made, and no more are allowed.", limits.steps),
                Outcome::MaxTurns,
            )
        } else if let Some(most) = limits.cost.filter(|most| self.spent >= *most) {
            (Limit::Cost, format!("{} were spent of {most}.", self.spent), Outcome::Budget)
        } else {
            return Ok(None);
        };
        self.record.tell(LimitReached { limit, text })?;
        Ok(Some(outcome))
    }

    /// Asks the model, and the next one if it can't be reached.
    async fn ask(&mut self) -> Result<Asked, Error> {
        self.metrics.steps += 1;
        let message = self.record.draw();
        loop {
            let request = self.prepare();
            self.record.step = Some(self.record.draw());
            self.record.tell(StepStarted {
                message,
                request: self.record.draw(),
                model: self.dialogue.target().name.clone(),
                number: self.metrics.steps,
                // Requests are not kept yet: a blob costs two syncs, which is too much for each step.
                kept: 0,
                segments: Vec::new(),
            })?;
            let began = self.record.now();
            let mut hearing = Hearing::new(self.record);
            let answer =
                self.dialogue.send(&request, &mut |heard| hearing.hear(&heard), &self.context.stop).await;
            let ids = hearing.calls()?;
            self.metrics.request_ms += self.passed(began);
            let failure = match answer {
                Ok(answer) => return Ok(Asked::Answered(Box::new(Answered { message, answer, ids }))),
                Err(failure) => failure,
            };
            if let Some(outcome) = self.give_up(&failure)? {
                return Ok(Asked::Ended(outcome));
            }
        }
    }

    fn prepare(&mut self) -> Request {
        let blobs = self.record.blobs();
        let view = self.record.history.for_model();
        let request = self.dialogue.prepare(&view, &*blobs);
        if let Some(broken) = &request.broken {
            tracing::warn!(name: "request.broken", path = broken.path, tokens = broken.tokens);
        }
        request
    }

    /// Goes over to the next model, or says how the turn ends.
    fn give_up(&mut self, failure: &Failure) -> Result<Option<Outcome>, Error> {
        if failure.kind == FailureKind::Interrupted {
            return Ok(Some(Outcome::Cancelled));
        }
        if let Some(switch) = self.dialogue.fall_back(failure) {
            self.record.tell(ModelSwitched { from: switch.from, to: switch.to, reason: switch.reason })?;
            return Ok(None);
        }
        let what = format!("{} did not answer", self.dialogue.target().name);
        let hint = failure.kind.hint().to_owned();
        self.record.tell(ErrorRaised { what, why: failure.to_string(), hint })?;
        Ok(Some(Outcome::Error))
    }

    /// Writes the answer down, and gives the calls that wait to be run.
    fn write_down(&mut self, answered: &Answered) -> Result<Vec<ToolPart>, Error> {
        let Answered { message, answer, ids } = answered;
        let mut ids = ids.iter().copied();
        let parts = answer.parts(|| ids.next().unwrap_or_else(|| self.record.draw()));
        let calls: Vec<ToolPart> = parts
            .iter()
            .filter_map(|part| match part {
                Part::Tool(tool) => Some(tool.clone()),
                _ => None,
            })
            .collect();
        let stop = answer.stop.unwrap_or(StopReason::Other);
        self.record.tell(ResponseEnded { message: *message, parts, stop })?;
        Ok(calls)
    }

    async fn run_tools(&mut self, calls: Vec<ToolPart>) -> Result<Went, Error> {
        let began = self.record.now();
        self.metrics.calls += u32::try_from(calls.len()).unwrap_or(u32::MAX);
        let went = self.dispatch.run(calls, self.record, self.house, self.context).await?;
        self.metrics.tools_ms += self.passed(began);
        Ok(went)
    }

    fn end_step(&mut self, answer: &Answer) -> Result<(), Error> {
        let usage = answer.usage;
        let cost = self.dialogue.target().cost(usage).unwrap_or_default();
        self.spent += cost;
        let stop = answer.stop.unwrap_or(StopReason::Other);
        self.record.tell(StepEnded { usage, cost, stop })?;
        self.record.step = None;
        Ok(())
    }

    fn passed(&self, since: Timestamp) -> u64 {
        self.record.now().millis_since(since)
    }
}

/// Ends when the time is up, if it ever is.
async fn elapsed(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep_until(Instant::now() + time).await,
        None => std::future::pending().await,
    }
}
