//! The calls of one answer: those that only read run side by side, one that changes something runs alone.

use std::collections::VecDeque;
use std::sync::Arc;

use helve_models::schema;
use helve_protocol::{
    CallId, Interruption, NoteAdded, ToolClass, ToolEnded, ToolOutput, ToolPart, ToolStarted, ToolState,
};
use helve_tools::{Context, Done, Tool, ToolFailure};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::gate::{Decision, Question, Weight};
use crate::record::{Error, Recorder};
use crate::session::House;

/// So many calls that only read run at the same time.
const SIDE_BY_SIDE: usize = 10;
/// Whatever a tool returns, no more of it reaches the model.
const MAX_RESULT_BYTES: usize = 64 << 10;
/// Steps of nothing but reading, before something is written and after, that bring a reminder.
const READS_BEFORE: u32 = 5;
const READS_AFTER: u32 = 10;

/// Runs calls, and remembers what the turn did, to notice when it goes in circles.
#[derive(Default)]
pub(crate) struct Dispatch {
    last: VecDeque<Did>,
    has_written: bool,
    reading_steps: u32,
}

/// A call and what came of it.
#[derive(Clone, PartialEq)]
struct Did {
    name: String,
    input: Value,
    result: String,
}

/// What became of the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Went {
    /// There were none.
    Nowhere,
    On,
    /// Somebody stopped it.
    Stopped,
}

/// A call that may run.
struct Ready {
    call: CallId,
    name: String,
    tool: Arc<dyn Tool>,
    input: Value,
}

impl Dispatch {
    pub(crate) async fn run(
        &mut self,
        calls: Vec<ToolPart>,
        record: &mut Recorder,
        house: &House,
        context: &Context,
    ) -> Result<Went, Error> {
        if calls.is_empty() {
            return Ok(Went::Nowhere);
        }
        let mut changes = false;
        let mut reads: Vec<Ready> = Vec::new();
        for call in calls.iter().filter(|call| call.state == ToolState::Pending) {
            let ready = match ready(call, &house.tools) {
                Ok(ready) => ready,
                Err(message) => {
                    record.tell(ToolEnded { call: call.call, end: ToolState::Error { message } })?;
                    continue;
                }
            };
            if ready.tool.class() == ToolClass::Reads && !self.is_doomed(&ready) {
                reads.push(ready);
                continue;
            }
            // What changes something comes after all reads before it, and before all after it.
            self.side_by_side(std::mem::take(&mut reads), record, context).await?;
            changes |= ready.tool.class() != ToolClass::Reads;
            self.alone(ready, record, house, context).await?;
        }
        self.side_by_side(reads, record, context).await?;
        if context.stop.is_cancelled() {
            return Ok(Went::Stopped);
        }
        self.remind(changes, record)?;
        Ok(Went::On)
    }

    async fn side_by_side(
        &mut self,
        calls: Vec<Ready>,
        record: &mut Recorder,
        context: &Context,
    ) -> Result<(), Error> {
        let mut waiting = calls.into_iter();
        let mut running = JoinSet::new();
        let mut done: Vec<Did> = Vec::new();
        loop {
            while running.len() < SIDE_BY_SIDE
                && let Some(ready) = waiting.next()
            {
                if context.stop.is_cancelled() {
                    record.tell(not_started(ready.call))?;
                    continue;
                }
                record.tell(ToolStarted { call: ready.call, class: ready.tool.class() })?;
                let context = context.clone();
                running.spawn(async move {
                    let end = perform(&ready, &context).await;
                    (ready, end)
                });
            }
            match running.join_next().await {
                None => break,
                Some(Ok((ready, end))) => {
                    done.push(Did { name: ready.name, input: ready.input, result: result_of(&end) });
                    record.tell(ToolEnded { call: ready.call, end })?;
                }
                // A tool that panics is a mistake of ours; its call stays open and reads as interrupted.
                Some(Err(error)) => tracing::error!(name: "tool.panicked", %error),
            }
        }
        done.into_iter().for_each(|did| self.remember(did));
        Ok(())
    }

    async fn alone(
        &mut self,
        ready: Ready,
        record: &mut Recorder,
        house: &House,
        context: &Context,
    ) -> Result<(), Error> {
        let call = ready.call;
        if context.stop.is_cancelled() {
            return record.tell(not_started(call));
        }
        let question = Question {
            call,
            tool: &ready.name,
            intent: ready.tool.intent(&ready.input),
            reason: if self.is_doomed(&ready) {
                "it is the same call as twice before"
            } else {
                "it changes something"
            },
            weight: if self.is_doomed(&ready) { Weight::DoomLoop } else { Weight::Ordinary },
        };
        match house.gate.decide(question, record, &context.stop).await? {
            Decision::Allowed => {}
            Decision::Refused(reason) => {
                return record.tell(ToolEnded { call, end: ToolState::Denied { reason } });
            }
            Decision::Interrupted => return record.tell(not_started(call)),
        }
        record.tell(ToolStarted { call, class: ready.tool.class() })?;
        let end = perform(&ready, context).await;
        self.has_written = true;
        self.remember(Did { name: ready.name, input: ready.input, result: result_of(&end) });
        record.tell(ToolEnded { call, end })
    }

    fn remember(&mut self, did: Did) {
        self.last.push_back(did);
        if self.last.len() > 2 {
            self.last.pop_front();
        }
    }

    /// The same call a third time in a row, after the same result.
    fn is_doomed(&self, ready: &Ready) -> bool {
        let same = |did: &Did| did.name == ready.name && did.input == ready.input;
        match (self.last.front(), self.last.back()) {
            (Some(first), Some(second)) if self.last.len() == 2 => first == second && same(first),
            _ => false,
        }
    }

    /// Reminds a model that reads and reads.
    fn remind(&mut self, changes: bool, record: &mut Recorder) -> Result<(), Error> {
        if changes {
            self.reading_steps = 0;
            return Ok(());
        }
        self.reading_steps += 1;
        let bearable = if self.has_written { READS_AFTER } else { READS_BEFORE };
        if self.reading_steps < bearable {
            return Ok(());
        }
        self.reading_steps = 0;
        let text = format!(
            "You have only read for {bearable} steps. If you know enough, act on it now; if not, say what you are looking for."
        );
        record.tell(NoteAdded { message: record.draw(), topic: "read_loop".to_owned(), text })
    }
}

fn not_started(call: CallId) -> ToolEnded {
    ToolEnded { call, end: ToolState::Interrupted { how: Interruption::NotStarted } }
}

/// A call that names a tool and fits its schema, or what the model is told.
fn ready(call: &ToolPart, tools: &[Arc<dyn Tool>]) -> Result<Ready, String> {
    let tool = tools.iter().find(|tool| tool.name() == call.name).ok_or_else(|| {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
        format!("There is no tool {:?}. There are: {}.", call.name, names.join(", "))
    })?;
    let schema = tool.schema();
    let input = schema::coerce(&schema, call.input.clone()).value;
    schema::check(&schema, &input).map_err(|misfits| {
        let lines: Vec<String> = misfits.iter().map(ToString::to_string).collect();
        format!("The input does not fit the tool {}:\n{}", call.name, lines.join("\n"))
    })?;
    Ok(Ready { call: call.call, name: call.name.clone(), tool: tool.clone(), input })
}

/// Runs a call to its end, or until it is stopped.
async fn perform(ready: &Ready, context: &Context) -> ToolState {
    let done: Option<Done> = tokio::select! {
        biased;
        () = context.stop.cancelled() => None,
        done = ready.tool.run(ready.input.clone(), context) => Some(done),
    };
    match done {
        None => ToolState::Interrupted { how: Interruption::Stopped },
        Some(Ok(output)) => ToolState::Completed { output: bounded(output) },
        Some(Err(ToolFailure(message))) => ToolState::Error { message: cut(message) },
    }
}

fn bounded(output: ToolOutput) -> ToolOutput {
    ToolOutput { text: cut(output.text), ..output }
}

/// The beginning and the end of a text that is too long.
fn cut(text: String) -> String {
    if text.len() <= MAX_RESULT_BYTES {
        return text;
    }
    let half = MAX_RESULT_BYTES / 2 - 100;
    let head = text.get(..text.floor_char_boundary(half)).unwrap_or_default();
    let tail = text.get(text.ceil_char_boundary(text.len() - half)..).unwrap_or_default();
    let left = text.len() - head.len() - tail.len();
    format!("{head}\n[{left} bytes are left out here]\n{tail}")
}

fn result_of(end: &ToolState) -> String {
    end.for_model().text.into_owned()
}
