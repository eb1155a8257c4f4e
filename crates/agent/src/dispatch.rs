//! The calls of one answer: those that only read run side by side, one that changes something runs alone.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use helve_protocol::{
    BlobStore, CallId, CallPermissions, Interruption, NoteAdded, NoteTopic, ToolAction, ToolClass, ToolEnded,
    ToolOutput, ToolOutputDelta, ToolPart, ToolStarted, ToolState,
};
use helve_tools::{
    AccessTest, ChangeScope, DeniedPaths, HiddenPathTest, LiveOutput, SessionHost, ToolContext, ToolFailure,
    ToolOutcome, WorkspaceGuard,
};
use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tracing::Instrument;

use crate::change_tracker::{CallEffects, CallWatcher, WatchError};
use crate::gate::{ApprovalWeight, CallDecision, CallJudgement, PendingApproval, PermissionQuestion};
use crate::recorder::SessionError;
use crate::scope;
use crate::tool_host::ToolHost;
use crate::toolbox::ReadyCall;
use crate::turn::TurnContext;

/// So many calls run at the same time.
const MAX_PARALLEL_CALLS: usize = 10;
/// Whatever a tool returns, no more of it reaches the model.
const MAX_RESULT_BYTES: usize = 64 << 10;
/// So many pieces of live output wait to be told.
const LIVE_OUTPUT_CAPACITY: usize = 256;
/// How long a call that was stopped may take to end what it started.
const STOPPED_CALL_TIMEOUT: Duration = Duration::from_millis(900);
/// Steps of nothing but reading, before something is written and after, that bring a reminder.
const MAX_READ_STEPS_BEFORE_WRITE: u32 = 5;
const MAX_READ_STEPS_AFTER_WRITE: u32 = 10;

/// Runs calls, and remembers what the turn did, to notice when it goes in circles.
#[derive(Default)]
pub(crate) struct CallDispatcher {
    last: VecDeque<FinishedCall>,
    has_written: bool,
    reading_steps: u32,
    aside: WatchTimes,
}

/// The time that went into watching, and not into the calls themselves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WatchTimes {
    pub(crate) snapshot_ms: u64,
    pub(crate) changes_ms: u64,
}

/// A call and what came of it.
struct FinishedCall {
    call: CallId,
    name: String,
    input: Value,
    result: String,
    has_changed_files: bool,
}

impl FinishedCall {
    fn of(ready: ReadyCall, end: &ToolState, has_changed_files: bool) -> FinishedCall {
        let result = end.for_model().text.into_owned();
        FinishedCall { call: ready.call, name: ready.name, input: ready.input, result, has_changed_files }
    }
}

/// A call that is watched.
struct WatchedCall {
    watcher: CallWatcher,
    ground: WorkspaceGuard,
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

impl CallDispatcher {
    /// What watching took since this was last asked.
    pub(crate) fn take_watch_times(&mut self) -> WatchTimes {
        std::mem::take(&mut self.aside)
    }

    pub(crate) async fn run(
        &mut self,
        calls: &[ToolPart],
        work: &TurnContext<'_>,
    ) -> Result<StepResult, SessionError> {
        if calls.is_empty() {
            return Ok(StepResult::NoCalls);
        }
        let mut went = StepResult::Continue;
        let mut changes = false;
        for group in self.groups(calls, work)? {
            changes |= group.iter().any(|ready| ready.tool.class() != ToolClass::Reads);
            if self.group(group, work).await? == StepResult::EndTurn {
                went = StepResult::EndTurn;
            }
        }
        if work.stop.is_cancelled() {
            return Ok(StepResult::Stopped);
        }
        self.remind(changes, work)?;
        Ok(went)
    }

    /// Calls that may run at the same time, in their order. What changes something comes after all that are before it, and
    /// before all after it; sub-agents run side by side if there is nothing else.
    fn groups(
        &self,
        calls: &[ToolPart],
        work: &TurnContext<'_>,
    ) -> Result<Vec<Vec<ReadyCall>>, SessionError> {
        let mut groups: Vec<Vec<ReadyCall>> = Vec::new();
        let mut ready = Vec::new();
        for call in calls.iter().filter(|call| !call.state.is_ended()) {
            match work.toolbox.resolve_call(call) {
                Ok(call) => ready.push(call),
                Err(message) => {
                    work.record.tell(ToolEnded { call: call.call, end: ToolState::Error { message } })?;
                }
            }
        }
        let all_subagents = ready.iter().all(|ready| ready.tool.class() == ToolClass::Subagent);
        let beside = if all_subagents { ToolClass::Subagent } else { ToolClass::Reads };
        let mut before = None;
        for call in ready {
            let class = call.tool.class();
            match groups.last_mut() {
                Some(group) if class == beside && before == Some(beside) => group.push(call),
                _ => groups.push(vec![call]),
            }
            before = Some(class);
        }
        Ok(groups)
    }

    /// Runs calls side by side, those that may run.
    async fn group(
        &mut self,
        calls: Vec<ReadyCall>,
        work: &TurnContext<'_>,
    ) -> Result<StepResult, SessionError> {
        let mut waiting = Vec::with_capacity(calls.len());
        let mut granted: HashMap<CallId, (CallPermissions, AccessTest)> = HashMap::new();
        for ready in calls {
            let judged = scope::with_real_paths(&ready.tool.actions(&ready.input, &work.house.root));
            match self.may_run(&ready, &judged, work).await? {
                CallDecision::Allowed(needs) => {
                    granted.insert(ready.call, (needs, work.allows(&ready, judged)));
                    waiting.push(ready);
                }
                CallDecision::Impossible(message) => {
                    work.record.tell(ToolEnded { call: ready.call, end: ToolState::Error { message } })?;
                }
                CallDecision::Refused(reason) => {
                    work.record.tell(ToolEnded { call: ready.call, end: ToolState::Denied { reason } })?;
                }
                CallDecision::Interrupted => work.record.tell(not_started(ready.call))?,
            }
        }
        let (pieces, mut shown) = mpsc::channel(LIVE_OUTPUT_CAPACITY);
        let order: Vec<CallId> = waiting.iter().map(|ready| ready.call).collect();
        let mut ended = Vec::with_capacity(order.len());
        let mut waiting = waiting.into_iter();
        let mut running = JoinSet::new();
        let mut begun: HashMap<tokio::task::Id, (CallId, WatchedCall)> = HashMap::new();
        let mut went = StepResult::Continue;
        loop {
            while running.len() < MAX_PARALLEL_CALLS
                && let Some(ready) = waiting.next()
            {
                let Some(watched) = self.start(&ready, work).await? else { continue };
                let call = ready.call;
                let around = work.context(pieces.clone(), watched.ground.clone());
                let around = match granted.remove(&call) {
                    Some((granted, allows)) => CallContextParts { granted, allows, ..around },
                    None => around,
                };
                let task = running.spawn(run_call(ready, around));
                begun.insert(task.id(), (call, watched));
            }
            tokio::select! {
                biased;
                Some((call, text)) = shown.recv() => work.record.tell(ToolOutputDelta { call, text })?,
                done = running.join_next_with_id() => match done {
                    None => break,
                    Some(Ok((task, (ready, mut end)))) => {
                        if matches!(&end, ToolState::Completed { output } if output.ends_turn) {
                            went = StepResult::EndTurn;
                        }
                        let watched = begun.remove(&task).map(|(_, watched)| watched);
                        let has_changed_files = self.finish(ready.call, &mut end, watched, work).await?;
                        ended.push(FinishedCall::of(ready, &end, has_changed_files));
                    }
                    Some(Err(error)) => {
                        tracing::error!(name: "tool.panicked", %error);
                        if let Some((call, watched)) = begun.remove(&error.id()) {
                            let message = "The tool broke: a mistake in Helve. It may have done part of its work.".to_owned();
                            self.finish(call, &mut ToolState::Error { message }, Some(watched), work).await?;
                        }
                    }
                },
            }
        }
        // In the order of the calls: which of them ended first is chance.
        ended.sort_by_key(|did| order.iter().position(|call| *call == did.call));
        self.remember(ended);
        Ok(went)
    }

    /// Notes that a call begins, when all is kept that it could change. None if it does not begin.
    async fn start(
        &mut self,
        ready: &ReadyCall,
        work: &TurnContext<'_>,
    ) -> Result<Option<WatchedCall>, SessionError> {
        let (call, class) = (ready.call, ready.tool.class());
        if work.stop.is_cancelled() {
            work.record.tell(not_started(call))?;
            return Ok(None);
        }
        let began = work.record.now();
        let watcher = work.watching.begin(ready.tool.touches(), work.stop).await;
        self.aside.snapshot_ms += work.record.now().millis_since(began);
        let watcher = match watcher {
            Ok(watcher) => watcher,
            Err(WatchError::Interrupted) => {
                work.record.tell(not_started(call))?;
                return Ok(None);
            }
            Err(WatchError::Refused(message)) => {
                work.record.tell(ToolEnded { call, end: ToolState::Error { message } })?;
                return Ok(None);
            }
        };
        self.has_written |= class != ToolClass::Reads;
        work.record.tell(ToolStarted { call, class })?;
        Ok(Some(WatchedCall { watcher, ground: work.watching.ground() }))
    }

    /// Notes how a call ended and what it did to the files. Says whether it did anything to them.
    async fn finish(
        &mut self,
        call: CallId,
        end: &mut ToolState,
        watched: Option<WatchedCall>,
        work: &TurnContext<'_>,
    ) -> Result<bool, SessionError> {
        let began = work.record.now();
        let told = match watched {
            Some(WatchedCall { watcher, ground }) => work.watching.end(call, watcher, &ground).await,
            None => CallEffects::default(),
        };
        self.aside.changes_ms += work.record.now().millis_since(began);
        let CallEffects { mut events, changed: files, words } = told;
        let has_changed_files = !files.is_empty();
        match end {
            ToolState::Completed { output: ToolOutput { text, .. } } | ToolState::Error { message: text } => {
                text.extend(words.map(|words| format!("\n{words}")));
            }
            ToolState::Interrupted { changed, .. } => *changed = files,
            _ => {}
        }
        events.push(ToolEnded { call, end: end.clone() }.into());
        work.record.emit_all(events)?;
        Ok(has_changed_files)
    }

    async fn may_run(
        &self,
        ready: &ReadyCall,
        judged: &[ToolAction],
        work: &TurnContext<'_>,
    ) -> Result<CallDecision, SessionError> {
        if work.stop.is_cancelled() {
            return Ok(CallDecision::Interrupted);
        }
        let house = work.house;
        let question = PermissionQuestion {
            call: ready.call,
            tool: &ready.name,
            intent: ready.tool.intent(&ready.input),
            actions: ready.tool.actions(&ready.input, &house.root),
            real_actions: judged,
            weight: if self.is_repeated_call(ready) {
                ApprovalWeight::DoomLoop
            } else {
                ApprovalWeight::Ordinary
            },
            root: &house.root,
            added: &house.added,
        };
        let opened = match house.gate.judge(&question, work.record) {
            CallJudgement::Settled(decision) => return Ok(decision),
            CallJudgement::NeedsApproval(opened) => opened,
        };
        // Nobody is asked about what could not be done.
        let tried = tokio::select! {
            biased;
            () = work.stop.cancelled() => return Ok(CallDecision::Interrupted),
            tried = preview_call(ready, &opened, judged, work) => tried,
        };
        let diff = match tried {
            Ok(diff) => diff,
            Err(ToolFailure(message)) => return Ok(CallDecision::Impossible(message)),
        };
        house.gate.ask(ready.call, opened, diff, work.record, work.stop).await
    }

    /// Keeps the last two calls.
    fn remember(&mut self, ended: Vec<FinishedCall>) {
        self.last.extend(ended);
        let too_old = self.last.len().saturating_sub(2);
        self.last.drain(..too_old);
    }

    /// A person said something: what comes now has a new reason.
    pub(crate) fn forget(&mut self) {
        self.last.clear();
        self.reading_steps = 0;
    }

    /// The same call a third time in a row, after the same result and without any effect on files.
    fn is_repeated_call(&self, ready: &ReadyCall) -> bool {
        if ready.tool.polls() {
            return false;
        }
        let same = |did: &FinishedCall| did.name == ready.name && did.input == ready.input;
        match (self.last.front(), self.last.back()) {
            (Some(first), Some(second)) if self.last.len() == 2 => {
                let has_changed_files = first.has_changed_files || second.has_changed_files;
                same(first) && same(second) && first.result == second.result && !has_changed_files
            }
            _ => false,
        }
    }

    /// Reminds a model that reads and reads.
    fn remind(&mut self, changes: bool, work: &TurnContext<'_>) -> Result<(), SessionError> {
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
        let text = format!(
            "You have only read for {bearable} steps. If you know enough, act on it now; if not, say what you are looking for."
        );
        work.record.tell(NoteAdded { message: work.record.draw(), topic: NoteTopic::ReadLoop, text })
    }
}

impl TurnContext<'_> {
    fn allows(&self, ready: &ReadyCall, judged: Vec<ToolAction>) -> AccessTest {
        let places = (self.house.root.as_path(), self.house.added.as_slice());
        self.house.gate.allows(self.record, &ready.name, judged, places)
    }

    fn context(&self, pieces: mpsc::Sender<(CallId, String)>, ground: WorkspaceGuard) -> CallContextParts {
        CallContextParts {
            ground,
            host: Arc::new(ToolHost { record: self.record.clone(), gate: self.house.gate.clone() }),
            root: self.house.root.clone(),
            added: self.house.added.clone(),
            stop: self.stop.clone(),
            background: self.background.clone(),
            blobs: self.record.blobs(),
            pieces,
            granted: CallPermissions::default(),
            // Whoever was not judged may do nothing.
            allows: Arc::new(|_, _| false),
            hides: self.house.gate.hides(self.record, &self.house.root, &self.house.added),
            denied: self.house.gate.denied(self.record, &self.house.root, &self.house.added),
            is_trial: false,
        }
    }
}

/// What the context of a call is made of.
struct CallContextParts {
    ground: WorkspaceGuard,
    host: Arc<dyn SessionHost>,
    root: std::path::PathBuf,
    added: Vec<std::path::PathBuf>,
    stop: tokio_util::sync::CancellationToken,
    background: Arc<Notify>,
    blobs: Arc<dyn BlobStore>,
    pieces: mpsc::Sender<(CallId, String)>,
    granted: CallPermissions,
    allows: AccessTest,
    hides: HiddenPathTest,
    denied: DeniedPaths,
    is_trial: bool,
}

impl CallContextParts {
    fn into_context(self, call: CallId) -> ToolContext {
        let CallContextParts {
            root,
            added,
            stop,
            background,
            blobs,
            pieces,
            ground,
            host,
            granted,
            allows,
            hides,
            denied,
            is_trial,
        } = self;
        let live = LiveOutput::new(call, pieces);
        ToolContext {
            root,
            added,
            stop,
            background,
            call,
            blobs,
            live,
            ground,
            host,
            granted,
            allows,
            hides,
            denied,
            is_trial,
        }
    }
}

/// What a call would change, if that can be found without doing it.
async fn preview_call(
    ready: &ReadyCall,
    opened: &PendingApproval,
    judged: &[ToolAction],
    work: &TurnContext<'_>,
) -> Result<Option<String>, ToolFailure> {
    // What a failed trial tells the model, it would have read: nobody has allowed that of what is not shown unasked.
    let hides = work.house.gate.hides(work.record, &work.house.root, &work.house.added);
    let is_hidden = judged.iter().any(|action| match action {
        ToolAction::Read(path) | ToolAction::Write(path) | ToolAction::Delete(path) => hides(path),
        _ => false,
    });
    if !ready.tool.can_be_tried() || is_hidden {
        return Ok(None);
    }
    let (pieces, _) = mpsc::channel(1);
    let around = work.context(pieces, WorkspaceGuard::default());
    let (granted, allows) = (opened.needs().clone(), work.allows(ready, judged.to_vec()));
    let context = CallContextParts { granted, allows, is_trial: true, ..around }.into_context(ready.call);
    Ok(ready.tool.run(ready.input.clone(), &context).await?.display)
}

fn not_started(call: CallId) -> ToolEnded {
    ToolEnded { call, end: ToolState::interrupted(Interruption::NotStarted) }
}

/// Runs a call to its end, or until it is stopped.
async fn run_call(ready: ReadyCall, around: CallContextParts) -> (ReadyCall, ToolState) {
    let context = around.into_context(ready.call);
    let span = tracing::debug_span!(
        "execute_tool",
        "gen_ai.operation.name" = "execute_tool",
        "gen_ai.tool.name" = ready.name,
        "gen_ai.tool.call.id" = %ready.call,
        "error.type" = tracing::field::Empty,
    );
    let work = async {
        let mut run = ready.tool.run(ready.input.clone(), &context);
        let done: Option<ToolOutcome> = tokio::select! {
            biased;
            () = context.stop.cancelled() => None,
            done = &mut run => Some(done),
        };
        let done = match (done, ready.tool.touches()) {
            (None, ChangeScope::Anything) => {
                // What it started still has to end: before that nobody knows what it changed.
                let _ = tokio::time::timeout(STOPPED_CALL_TIMEOUT, run).await;
                None
            }
            // It is writing already, which takes a moment, and then it is done.
            (None, ChangeScope::Named) if !context.ground.call_off() => Some(run.await),
            (done, _) => done,
        };
        match done {
            None => ToolState::interrupted(Interruption::Stopped),
            Some(Ok(output)) => ToolState::Completed { output: bounded(output) },
            Some(Err(ToolFailure(message))) => ToolState::Error { message: cut(message) },
        }
    };
    let end = work.instrument(span.clone()).await;
    if !matches!(end, ToolState::Completed { .. }) {
        span.record("error.type", end.name());
    }
    (ready, end)
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
