//! Schedules the calls of one answer: those that only read run side by side, one that changes something runs alone. What happens to
//! each of them is in `call`.

use std::collections::{HashMap, VecDeque};

use helve_protocol::{CallId, NoteAdded, ToolClass, ToolOutputDelta, ToolPart, ToolState};
use tokio::sync::mpsc;
use tokio::task::{Id, JoinSet};

use crate::call::{self, AllowedCall, CallChanges, CheckedCall, EndedCall, LiveSender, WatchedCall};
use crate::context::notes;
use crate::judge::ApprovalWeight;
use crate::recorder::SessionError;
use crate::turn_context::TurnContext;

/// So many calls run at the same time.
const MAX_PARALLEL_CALLS: usize = 10;
/// So many pieces of live output wait to be told.
const LIVE_OUTPUT_CAPACITY: usize = 256;
/// Steps of nothing but reading, before something is written and after, that bring a reminder.
const MAX_READ_STEPS_BEFORE_WRITE: u32 = 5;
const MAX_READ_STEPS_AFTER_WRITE: u32 = 10;
/// The model is told this when a tool panicked.
const TOOL_PANICKED: &str = "The tool broke: a mistake in Helve. It may have done part of its work.";

/// Schedules calls, and remembers what the turn did, to notice when it goes in circles.
#[derive(Default)]
pub(crate) struct CallDispatcher {
    last: VecDeque<EndedCall>,
    has_written: bool,
    reading_steps: u32,
    watch_times: WatchTimes,
}

/// The time that went into watching, and not into the calls themselves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WatchTimes {
    pub(crate) snapshot_ms: u64,
    pub(crate) changes_ms: u64,
}

/// What became of the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepResult {
    /// There were none.
    NoCalls,
    Continue,
    /// A result says that nothing more is to be done.
    EndTurn,
    /// Somebody stopped it.
    Stopped,
}

/// Calls that run at this moment.
struct RunningCalls {
    tasks: JoinSet<(CheckedCall, ToolState)>,
    watched: HashMap<Id, WatchedCall>,
    live: LiveSender,
}

impl CallDispatcher {
    /// The time that watching took since this was last asked.
    pub(crate) fn take_watch_times(&mut self) -> WatchTimes {
        std::mem::take(&mut self.watch_times)
    }

    pub(crate) async fn run(
        &mut self,
        calls: &[ToolPart],
        context: &TurnContext<'_>,
    ) -> Result<StepResult, SessionError> {
        if calls.is_empty() {
            return Ok(StepResult::NoCalls);
        }
        let mut checked = Vec::new();
        for requested in calls.iter().filter(|requested| !requested.state.is_ended()) {
            checked.extend(call::check(requested, context)?);
        }
        let mut result = StepResult::Continue;
        let mut changes = false;
        for group in into_groups(checked) {
            changes |= group.iter().any(|checked| checked.tool.class() != ToolClass::Reads);
            if self.run_group(group, context).await? == StepResult::EndTurn {
                result = StepResult::EndTurn;
            }
        }
        if context.stop.is_cancelled() {
            return Ok(StepResult::Stopped);
        }
        self.remind(changes, context)?;
        Ok(result)
    }

    /// Runs calls side by side, those that may run.
    async fn run_group(
        &mut self,
        calls: Vec<CheckedCall>,
        context: &TurnContext<'_>,
    ) -> Result<StepResult, SessionError> {
        let mut allowed = Vec::with_capacity(calls.len());
        for checked in calls {
            let weight = self.weight_of(&checked);
            allowed.extend(call::allow(checked, weight, context).await?);
        }
        let order: Vec<CallId> = allowed.iter().map(|allowed| allowed.checked.call).collect();
        let mut ended = self.run_side_by_side(allowed, context).await?;
        // In the order of the calls: which of them ended first is chance.
        ended.sort_by_key(|ended| order.iter().position(|call| *call == ended.call));
        let ends_turn = ended.iter().any(|ended| ended.ends_turn);
        self.remember(ended);
        Ok(if ends_turn { StepResult::EndTurn } else { StepResult::Continue })
    }

    async fn run_side_by_side(
        &mut self,
        allowed: Vec<AllowedCall>,
        context: &TurnContext<'_>,
    ) -> Result<Vec<EndedCall>, SessionError> {
        let (live, mut pieces) = mpsc::channel(LIVE_OUTPUT_CAPACITY);
        let mut running = RunningCalls { tasks: JoinSet::new(), watched: HashMap::new(), live };
        let mut waiting = allowed.into_iter();
        let mut all_ended = Vec::new();
        loop {
            while running.tasks.len() < MAX_PARALLEL_CALLS
                && let Some(allowed) = waiting.next()
            {
                self.start(allowed, &mut running, context).await?;
            }
            tokio::select! {
                biased;
                Some((call, text)) = pieces.recv() => context.record.emit(ToolOutputDelta { call, text })?,
                done = running.tasks.join_next_with_id() => match done {
                    None => return Ok(all_ended),
                    Some(Ok((task, (checked, state)))) => {
                        let Some(watched) = running.watched.remove(&task) else { continue };
                        let (state, changes) = self.end(watched, state, context).await?;
                        context.services.hooks.after_call(checked.hooked(context), &state).await;
                        all_ended.push(EndedCall::new(checked, &state, changes));
                    }
                    Some(Err(error)) => {
                        tracing::error!(name: "tool.panicked", %error);
                        if let Some(watched) = running.watched.remove(&error.id()) {
                            let state = ToolState::Error { message: TOOL_PANICKED.to_owned() };
                            self.end(watched, state, context).await?;
                        }
                    }
                },
            }
        }
    }

    /// Starts a call, unless it can't begin.
    async fn start(
        &mut self,
        allowed: AllowedCall,
        running: &mut RunningCalls,
        context: &TurnContext<'_>,
    ) -> Result<(), SessionError> {
        let began = context.record.now();
        let watched = call::watch(&allowed, context).await?;
        self.watch_times.snapshot_ms += context.record.now().millis_since(began);
        if let Some(watched) = watched {
            self.has_written |= allowed.checked.tool.class() != ToolClass::Reads;
            let task = running.tasks.spawn(call::run(allowed, &watched, running.live.clone(), context));
            running.watched.insert(task.id(), watched);
        }
        Ok(())
    }

    async fn end(
        &mut self,
        watched: WatchedCall,
        state: ToolState,
        context: &TurnContext<'_>,
    ) -> Result<(ToolState, CallChanges), SessionError> {
        let began = context.record.now();
        let ended = call::end(watched, state, context).await;
        self.watch_times.changes_ms += context.record.now().millis_since(began);
        ended
    }

    /// Keeps the last two calls.
    fn remember(&mut self, ended: Vec<EndedCall>) {
        self.last.extend(ended);
        let too_old = self.last.len().saturating_sub(2);
        self.last.drain(..too_old);
    }

    /// A person said something: what comes now has a new reason.
    pub(crate) fn forget(&mut self) {
        self.last.clear();
        self.reading_steps = 0;
    }

    /// The same call a third time in a row, after the same result and without any effect on files, needs a person.
    fn weight_of(&self, checked: &CheckedCall) -> ApprovalWeight {
        let is_same = |ended: &EndedCall| ended.tool == checked.tool.name() && ended.input == checked.input;
        let is_loop = match (self.last.front(), self.last.back()) {
            (Some(first), Some(second)) if self.last.len() == 2 && !checked.tool.polls() => {
                let has_changed_files = first.has_changed_files || second.has_changed_files;
                is_same(first) && is_same(second) && first.result == second.result && !has_changed_files
            }
            _ => false,
        };
        if is_loop { ApprovalWeight::DoomLoop } else { ApprovalWeight::Ordinary }
    }

    /// Reminds a model that reads and reads.
    fn remind(&mut self, changes: bool, context: &TurnContext<'_>) -> Result<(), SessionError> {
        if changes {
            self.reading_steps = 0;
            return Ok(());
        }
        self.reading_steps += 1;
        let bearable =
            if self.has_written { MAX_READ_STEPS_AFTER_WRITE } else { MAX_READ_STEPS_BEFORE_WRITE };
        if self.reading_steps < bearable {
            return Ok(());
        }
        self.reading_steps = 0;
        let (topic, text) = notes::read_loop(bearable);
        let message = context.record.draw();
        context.record.emit(NoteAdded { message, topic, text })
    }
}

/// Calls that may run at the same time, in their order. What changes something comes after all that are before it, and before all
/// after it; sub-agents run side by side if there is nothing else.
fn into_groups(calls: Vec<CheckedCall>) -> Vec<Vec<CheckedCall>> {
    let all_subagents = calls.iter().all(|call| call.tool.class() == ToolClass::Subagent);
    let beside = if all_subagents { ToolClass::Subagent } else { ToolClass::Reads };
    let mut groups: Vec<Vec<CheckedCall>> = Vec::new();
    let mut before = None;
    for call in calls {
        let class = call.tool.class();
        match groups.last_mut() {
            Some(group) if class == beside && before == Some(beside) => group.push(call),
            _ => groups.push(vec![call]),
        }
        before = Some(class);
    }
    groups
}
