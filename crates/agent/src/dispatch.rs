//! The calls of one answer: those that only read run side by side, one that changes something runs alone.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use helve_protocol::{
    Action, Blobs, CallId, Interruption, Needs, NoteAdded, ToolClass, ToolEnded, ToolOutput, ToolOutputDelta,
    ToolPart, ToolStarted, ToolState,
};
use helve_tools::{Allows, Context, Denied, Done, Ground, Hides, Host, Live, ToolFailure, Touches};
use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tracing::Instrument;

use crate::desk::Desk;
use crate::gate::{Decision, Judged, Opened, Question, Weight};
use crate::record::Error;
use crate::scope;
use crate::toolbox::Ready;
use crate::turn::Work;
use crate::watching::{NoWatch, Told, Watcher};

/// So many calls run at the same time.
const SIDE_BY_SIDE: usize = 10;
/// Whatever a tool returns, no more of it reaches the model.
const MAX_RESULT_BYTES: usize = 64 << 10;
/// So many pieces of live output wait to be told.
const WAITING_PIECES: usize = 256;
/// How long a call that was stopped may take to end what it started.
const ENDING: Duration = Duration::from_millis(900);
/// Steps of nothing but reading, before something is written and after, that bring a reminder.
const READS_BEFORE: u32 = 5;
const READS_AFTER: u32 = 10;

/// Runs calls, and remembers what the turn did, to notice when it goes in circles.
#[derive(Default)]
pub(crate) struct Dispatch {
    last: VecDeque<Did>,
    has_written: bool,
    reading_steps: u32,
    aside: Aside,
}

/// The time that went into watching, and not into the calls themselves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Aside {
    pub(crate) snapshot_ms: u64,
    pub(crate) changes_ms: u64,
}

/// A call and what came of it.
struct Did {
    call: CallId,
    name: String,
    input: Value,
    result: String,
    has_changed_files: bool,
}

impl Did {
    fn of(ready: Ready, end: &ToolState, has_changed_files: bool) -> Did {
        let result = end.for_model().text.into_owned();
        Did { call: ready.call, name: ready.name, input: ready.input, result, has_changed_files }
    }
}

/// A call that is watched.
struct WatchedCall {
    watcher: Watcher,
    ground: Ground,
}

/// What became of the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Went {
    /// There were none.
    Nowhere,
    On,
    /// A result says that nothing more is to be done.
    Enough,
    /// Somebody stopped it.
    Stopped,
}

impl Dispatch {
    /// What watching took since this was last asked.
    pub(crate) fn aside(&mut self) -> Aside {
        std::mem::take(&mut self.aside)
    }

    pub(crate) async fn run(&mut self, calls: &[ToolPart], work: &Work<'_>) -> Result<Went, Error> {
        if calls.is_empty() {
            return Ok(Went::Nowhere);
        }
        let mut went = Went::On;
        let mut changes = false;
        for group in self.groups(calls, work)? {
            changes |= group.iter().any(|ready| ready.tool.class() != ToolClass::Reads);
            if self.group(group, work).await? == Went::Enough {
                went = Went::Enough;
            }
        }
        if work.stop.is_cancelled() {
            return Ok(Went::Stopped);
        }
        self.remind(changes, work)?;
        Ok(went)
    }

    /// Calls that may run at the same time, in their order. What changes something comes after all that are before it, and
    /// before all after it; sub-agents run side by side if there is nothing else.
    fn groups(&self, calls: &[ToolPart], work: &Work<'_>) -> Result<Vec<Vec<Ready>>, Error> {
        let mut groups: Vec<Vec<Ready>> = Vec::new();
        let mut ready = Vec::new();
        for call in calls.iter().filter(|call| !call.state.is_ended()) {
            match work.toolbox.ready(call) {
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
    async fn group(&mut self, calls: Vec<Ready>, work: &Work<'_>) -> Result<Went, Error> {
        let mut waiting = Vec::with_capacity(calls.len());
        let mut granted: HashMap<CallId, (Needs, Allows)> = HashMap::new();
        for ready in calls {
            let judged = scope::with_real_paths(&ready.tool.actions(&ready.input, &work.house.root));
            match self.may_run(&ready, &judged, work).await? {
                Decision::Allowed(needs) => {
                    granted.insert(ready.call, (needs, work.allows(&ready, judged)));
                    waiting.push(ready);
                }
                Decision::Vain(message) => {
                    work.record.tell(ToolEnded { call: ready.call, end: ToolState::Error { message } })?;
                }
                Decision::Refused(reason) => {
                    work.record.tell(ToolEnded { call: ready.call, end: ToolState::Denied { reason } })?;
                }
                Decision::Interrupted => work.record.tell(not_started(ready.call))?,
            }
        }
        let (pieces, mut shown) = mpsc::channel(WAITING_PIECES);
        let order: Vec<CallId> = waiting.iter().map(|ready| ready.call).collect();
        let mut ended = Vec::with_capacity(order.len());
        let mut waiting = waiting.into_iter();
        let mut running = JoinSet::new();
        let mut begun: HashMap<tokio::task::Id, (CallId, WatchedCall)> = HashMap::new();
        let mut went = Went::On;
        loop {
            while running.len() < SIDE_BY_SIDE
                && let Some(ready) = waiting.next()
            {
                let Some(watched) = self.start(&ready, work).await? else { continue };
                let call = ready.call;
                let around = work.context(pieces.clone(), watched.ground.clone());
                let around = match granted.remove(&call) {
                    Some((granted, allows)) => Surroundings { granted, allows, ..around },
                    None => around,
                };
                let task = running.spawn(perform(ready, around));
                begun.insert(task.id(), (call, watched));
            }
            tokio::select! {
                biased;
                Some((call, text)) = shown.recv() => work.record.tell(ToolOutputDelta { call, text })?,
                done = running.join_next_with_id() => match done {
                    None => break,
                    Some(Ok((task, (ready, mut end)))) => {
                        if matches!(&end, ToolState::Completed { output } if output.ends_turn) {
                            went = Went::Enough;
                        }
                        let watched = begun.remove(&task).map(|(_, watched)| watched);
                        let has_changed_files = self.finish(ready.call, &mut end, watched, work).await?;
                        ended.push(Did::of(ready, &end, has_changed_files));
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
    async fn start(&mut self, ready: &Ready, work: &Work<'_>) -> Result<Option<WatchedCall>, Error> {
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
            Err(NoWatch::Interrupted) => {
                work.record.tell(not_started(call))?;
                return Ok(None);
            }
            Err(NoWatch::Refused(message)) => {
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
        work: &Work<'_>,
    ) -> Result<bool, Error> {
        let began = work.record.now();
        let told = match watched {
            Some(WatchedCall { watcher, ground }) => work.watching.end(call, watcher, &ground).await,
            None => Told::default(),
        };
        self.aside.changes_ms += work.record.now().millis_since(began);
        let Told { mut events, changed: files, words } = told;
        let has_changed_files = !files.is_empty();
        match end {
            ToolState::Completed { output: ToolOutput { text, .. } } | ToolState::Error { message: text } => {
                text.extend(words.map(|words| format!("\n{words}")));
            }
            ToolState::Interrupted { changed, .. } => *changed = files,
            _ => {}
        }
        events.push(ToolEnded { call, end: end.clone() }.into());
        work.record.tell_all(events)?;
        Ok(has_changed_files)
    }

    async fn may_run(&self, ready: &Ready, judged: &[Action], work: &Work<'_>) -> Result<Decision, Error> {
        if work.stop.is_cancelled() {
            return Ok(Decision::Interrupted);
        }
        let house = work.house;
        let question = Question {
            call: ready.call,
            tool: &ready.name,
            intent: ready.tool.intent(&ready.input),
            actions: ready.tool.actions(&ready.input, &house.root),
            real_actions: judged,
            weight: if self.is_doomed(ready) { Weight::DoomLoop } else { Weight::Ordinary },
            root: &house.root,
            added: &house.added,
        };
        let opened = match house.gate.judge(&question, work.record) {
            Judged::Settled(decision) => return Ok(decision),
            Judged::Open(opened) => opened,
        };
        // Nobody is asked about what could not be done.
        let tried = tokio::select! {
            biased;
            () = work.stop.cancelled() => return Ok(Decision::Interrupted),
            tried = try_out(ready, &opened, judged, work) => tried,
        };
        let diff = match tried {
            Ok(diff) => diff,
            Err(ToolFailure(message)) => return Ok(Decision::Vain(message)),
        };
        house.gate.ask(ready.call, opened, diff, work.record, work.stop).await
    }

    /// Keeps the last two calls.
    fn remember(&mut self, ended: Vec<Did>) {
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
    fn is_doomed(&self, ready: &Ready) -> bool {
        if ready.tool.polls() {
            return false;
        }
        let same = |did: &Did| did.name == ready.name && did.input == ready.input;
        match (self.last.front(), self.last.back()) {
            (Some(first), Some(second)) if self.last.len() == 2 => {
                let has_changed_files = first.has_changed_files || second.has_changed_files;
                same(first) && same(second) && first.result == second.result && !has_changed_files
            }
            _ => false,
        }
    }

    /// Reminds a model that reads and reads.
    fn remind(&mut self, changes: bool, work: &Work<'_>) -> Result<(), Error> {
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
        work.record.tell(NoteAdded { message: work.record.draw(), topic: "read_loop".to_owned(), text })
    }
}

impl Work<'_> {
    fn allows(&self, ready: &Ready, judged: Vec<Action>) -> Allows {
        let places = (self.house.root.as_path(), self.house.added.as_slice());
        self.house.gate.allows(self.record, &ready.name, judged, places)
    }

    fn context(&self, pieces: mpsc::Sender<(CallId, String)>, ground: Ground) -> Surroundings {
        Surroundings {
            ground,
            host: Arc::new(Desk { record: self.record.clone(), gate: self.house.gate.clone() }),
            root: self.house.root.clone(),
            added: self.house.added.clone(),
            stop: self.stop.clone(),
            background: self.background.clone(),
            blobs: self.record.blobs(),
            pieces,
            granted: Needs::default(),
            // Whoever was not judged may do nothing.
            allows: Arc::new(|_, _| false),
            hides: self.house.gate.hides(self.record, &self.house.root, &self.house.added),
            denied: self.house.gate.denied(self.record, &self.house.root, &self.house.added),
            is_trial: false,
        }
    }
}

/// What the context of a call is made of.
struct Surroundings {
    ground: Ground,
    host: Arc<dyn Host>,
    root: std::path::PathBuf,
    added: Vec<std::path::PathBuf>,
    stop: tokio_util::sync::CancellationToken,
    background: Arc<Notify>,
    blobs: Arc<dyn Blobs>,
    pieces: mpsc::Sender<(CallId, String)>,
    granted: Needs,
    allows: Allows,
    hides: Hides,
    denied: Denied,
    is_trial: bool,
}

impl Surroundings {
    fn of_call(self, call: CallId) -> Context {
        let Surroundings {
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
        let live = Live::new(call, pieces);
        Context {
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
async fn try_out(
    ready: &Ready,
    opened: &Opened,
    judged: &[Action],
    work: &Work<'_>,
) -> Result<Option<String>, ToolFailure> {
    // What a failed trial tells the model, it would have read: nobody has allowed that of what is not shown unasked.
    let hides = work.house.gate.hides(work.record, &work.house.root, &work.house.added);
    let is_hidden = judged.iter().any(|action| match action {
        Action::Read(path) | Action::Write(path) | Action::Delete(path) => hides(path),
        _ => false,
    });
    if !ready.tool.can_be_tried() || is_hidden {
        return Ok(None);
    }
    let (pieces, _) = mpsc::channel(1);
    let around = work.context(pieces, Ground::default());
    let (granted, allows) = (opened.needs().clone(), work.allows(ready, judged.to_vec()));
    let context = Surroundings { granted, allows, is_trial: true, ..around }.of_call(ready.call);
    Ok(ready.tool.run(ready.input.clone(), &context).await?.display)
}

fn not_started(call: CallId) -> ToolEnded {
    ToolEnded { call, end: ToolState::interrupted(Interruption::NotStarted) }
}

/// Runs a call to its end, or until it is stopped.
async fn perform(ready: Ready, around: Surroundings) -> (Ready, ToolState) {
    let context = around.of_call(ready.call);
    let span = tracing::debug_span!(
        "execute_tool",
        "gen_ai.operation.name" = "execute_tool",
        "gen_ai.tool.name" = ready.name,
        "gen_ai.tool.call.id" = %ready.call,
        "error.type" = tracing::field::Empty,
    );
    let work = async {
        let mut run = ready.tool.run(ready.input.clone(), &context);
        let done: Option<Done> = tokio::select! {
            biased;
            () = context.stop.cancelled() => None,
            done = &mut run => Some(done),
        };
        let done = match (done, ready.tool.touches()) {
            (None, Touches::Anything) => {
                // What it started still has to end: before that nobody knows what it changed.
                let _ = tokio::time::timeout(ENDING, run).await;
                None
            }
            // It is writing already, which takes a moment, and then it is done.
            (None, Touches::Named) if !context.ground.call_off() => Some(run.await),
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
