//! The life of one tool call: requested → checked → allowed → watched → run → ended. Each step is one function and gives what the
//! next one takes. A step that can't be taken writes down why, and the call has ended.

use std::sync::Arc;
use std::time::Duration;

use helve_protocol::{
    CallId, CallPermissions, Interruption, ToolAction, ToolEnded, ToolInputReplaced, ToolOutput, ToolPart,
    ToolStarted, ToolState,
};
use helve_tools::{
    AccessTest, ChangeScope, LiveOutput, Tool, ToolContext, ToolFailure, ToolOutcome, WorkspaceGuard,
};
use serde_json::Value;
use tokio::sync::mpsc;
use tracing::Instrument;

use crate::change_watcher::{CallEffects, CallWatcher, WatchError};
use crate::hooks::{CallIntervention, HookedCall};
use crate::judge::{ApprovalWeight, CallDecision, CallJudgement, PendingApproval, PermissionQuestion};
use crate::recorder::SessionError;
use crate::scope;
use crate::tool_host::ToolHost;
use crate::tool_runner::ToolRunner;
use crate::turn_context::TurnContext;

/// Whatever a tool returns, no more of it reaches the model.
const MAX_RESULT_BYTES: usize = 64 << 10;
/// How long a call that was stopped may take to end what it started.
const STOPPED_CALL_TIMEOUT: Duration = Duration::from_millis(900);

/// A call that names a tool and whose input fits it.
pub(crate) struct CheckedCall {
    pub(crate) call: CallId,
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) input: Value,
}

/// A call that may run.
pub(crate) struct AllowedCall {
    pub(crate) checked: CheckedCall,
    permissions: CallPermissions,
    access: AccessTest,
}

/// A call that has begun: all is kept that it could change.
pub(crate) struct WatchedCall {
    pub(crate) call: CallId,
    watcher: CallWatcher,
    guard: WorkspaceGuard,
}

/// A call and what came of it.
pub(crate) struct EndedCall {
    pub(crate) call: CallId,
    pub(crate) tool: String,
    pub(crate) input: Value,
    /// As the model sees it.
    pub(crate) result: String,
    pub(crate) has_changed_files: bool,
    /// The result says that nothing more is to be done in this turn.
    pub(crate) ends_turn: bool,
}

/// The pieces of live output on their way to whoever watches.
pub(crate) type LiveSender = mpsc::Sender<(CallId, String)>;

/// Requested → checked: finds the tool and fits the input to its schema.
pub(crate) fn check(
    requested: &ToolPart,
    context: &TurnContext<'_>,
) -> Result<Option<CheckedCall>, SessionError> {
    let found = context.tools.find(&requested.name).cloned();
    let fitted = context.tools.fit_input(&requested.name, requested.input.clone());
    match found.and_then(|tool| Ok((tool, fitted?))) {
        Ok((tool, input)) => Ok(Some(CheckedCall { call: requested.call, tool, input })),
        Err(message) => {
            end_unstarted(requested.call, ToolState::Error { message }, context)?;
            Ok(None)
        }
    }
}

/// Checked → allowed: hooks may step in, then the rules decide, and where they ask, a person.
pub(crate) async fn allow(
    checked: CheckedCall,
    weight: ApprovalWeight,
    context: &TurnContext<'_>,
) -> Result<Option<AllowedCall>, SessionError> {
    let Some(checked) = let_hooks_step_in(checked, context).await? else { return Ok(None) };
    let actions = checked.tool.actions(&checked.input, &context.spec.root);
    let judged = scope::with_real_paths(&actions);
    let end = match decide(&checked, actions, &judged, weight, context).await? {
        CallDecision::Allowed(permissions) => {
            let access =
                context.services.gate.judge().access_test(checked.tool.name(), judged, &context.judged());
            return Ok(Some(AllowedCall { checked, permissions, access }));
        }
        CallDecision::Impossible(message) => ToolState::Error { message },
        CallDecision::Refused(reason) => ToolState::Denied { reason },
        CallDecision::Interrupted => ToolState::interrupted(Interruption::NotStarted),
    };
    end_unstarted(checked.call, end, context)?;
    Ok(None)
}

/// Allowed → watched: keeps all that the call could change, and writes down that it begins.
pub(crate) async fn watch(
    allowed: &AllowedCall,
    context: &TurnContext<'_>,
) -> Result<Option<WatchedCall>, SessionError> {
    let CheckedCall { call, tool, .. } = &allowed.checked;
    let (call, class) = (*call, tool.class());
    let not_started = || ToolState::interrupted(Interruption::NotStarted);
    if context.stop.is_cancelled() {
        end_unstarted(call, not_started(), context)?;
        return Ok(None);
    }
    let watcher = match context.watcher.begin(tool.touches(), context.stop).await {
        Ok(watcher) => watcher,
        Err(refusal) => {
            let end = match refusal {
                WatchError::Interrupted => not_started(),
                WatchError::Refused(message) => ToolState::Error { message },
            };
            end_unstarted(call, end, context)?;
            return Ok(None);
        }
    };
    context.record.emit(ToolStarted { call, class })?;
    Ok(Some(WatchedCall { call, watcher, guard: context.watcher.guard() }))
}

/// Watched → run: the work itself, as a future that needs nothing of the turn any more.
pub(crate) fn run(
    allowed: AllowedCall,
    watched: &WatchedCall,
    live: LiveSender,
    context: &TurnContext<'_>,
) -> impl Future<Output = (CheckedCall, ToolState)> + Send + 'static {
    let AllowedCall { checked, permissions, access } = allowed;
    let own = ToolContext { granted: permissions, allows: access, ..tool_context(&checked, context) };
    let live = LiveOutput::new(checked.call, live);
    let own = ToolContext { live, ground: watched.guard.clone(), ..own };
    let runner = context.runner.clone();
    async move {
        let end = run_tool(&checked, &own, &*runner).await;
        (checked, end)
    }
}

/// Run → ended: finds out what the call did to the files, and writes down how it ended.
pub(crate) async fn end(
    watched: WatchedCall,
    mut state: ToolState,
    context: &TurnContext<'_>,
) -> Result<(ToolState, CallChanges), SessionError> {
    let WatchedCall { call, watcher, guard } = watched;
    let CallEffects { mut events, changed, words } = context.watcher.end(call, watcher, &guard).await;
    let changes = if changed.is_empty() { CallChanges::None } else { CallChanges::Files };
    match &mut state {
        ToolState::Completed { output: ToolOutput { text, .. } } | ToolState::Error { message: text } => {
            text.extend(words.map(|words| format!("\n{words}")));
        }
        ToolState::Interrupted { changed: files, .. } => *files = changed,
        _ => {}
    }
    events.push(ToolEnded { call, end: state.clone() }.into());
    context.record.emit_all(events)?;
    Ok((state, changes))
}

/// Whether a call changed files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallChanges {
    None,
    Files,
}

impl EndedCall {
    pub(crate) fn new(checked: CheckedCall, end: &ToolState, changes: CallChanges) -> EndedCall {
        EndedCall {
            call: checked.call,
            tool: checked.tool.name().to_owned(),
            result: end.for_model().text.into_owned(),
            has_changed_files: changes == CallChanges::Files,
            ends_turn: matches!(end, ToolState::Completed { output } if output.ends_turn),
            input: checked.input,
        }
    }
}

impl CheckedCall {
    pub(crate) fn hooked<'a>(&'a self, context: &TurnContext<'_>) -> HookedCall<'a> {
        HookedCall {
            session: context.record.session(),
            call: self.call,
            tool: self.tool.name(),
            input: &self.input,
        }
    }
}

/// Writes down the end of a call that never began.
fn end_unstarted(call: CallId, end: ToolState, context: &TurnContext<'_>) -> Result<(), SessionError> {
    context.record.emit(ToolEnded { call, end })
}

/// Hooks may refuse a call, or give it another input, which then has to fit like the first one.
async fn let_hooks_step_in(
    checked: CheckedCall,
    context: &TurnContext<'_>,
) -> Result<Option<CheckedCall>, SessionError> {
    let call = checked.call;
    let input = match context.services.hooks.before_call(checked.hooked(context)).await {
        CallIntervention::None => return Ok(Some(checked)),
        CallIntervention::Refuse(reason) => {
            end_unstarted(call, ToolState::Denied { reason }, context)?;
            return Ok(None);
        }
        CallIntervention::ReplaceInput(input) => input,
    };
    match context.tools.fit_input(checked.tool.name(), input) {
        Ok(input) => {
            context.record.emit(ToolInputReplaced { call, input: input.clone() })?;
            Ok(Some(CheckedCall { input, ..checked }))
        }
        Err(message) => {
            let message = format!("A hook gave the call another input. {message}");
            end_unstarted(call, ToolState::Error { message }, context)?;
            Ok(None)
        }
    }
}

/// Decides about a call. Nobody is asked about what could not be done anyway.
async fn decide(
    checked: &CheckedCall,
    actions: Vec<ToolAction>,
    judged: &[ToolAction],
    weight: ApprovalWeight,
    context: &TurnContext<'_>,
) -> Result<CallDecision, SessionError> {
    if context.stop.is_cancelled() {
        return Ok(CallDecision::Interrupted);
    }
    let judge = context.services.gate.judge();
    let question = PermissionQuestion {
        call: checked.call,
        tool: checked.tool.name(),
        intent: checked.tool.intent(&checked.input),
        actions,
        real_actions: judged,
        weight,
    };
    let pending = match judge.judge(&question, &context.judged()) {
        CallJudgement::Settled(decision) => return Ok(decision),
        CallJudgement::NeedsApproval(pending) => pending,
    };
    let preview = tokio::select! {
        biased;
        () = context.stop.cancelled() => return Ok(CallDecision::Interrupted),
        preview = preview(checked, &pending, judged, context) => preview,
    };
    match preview {
        Ok(diff) => judge.ask(checked.call, pending, diff, context.record, context.stop).await,
        Err(ToolFailure(message)) => Ok(CallDecision::Impossible(message)),
    }
}

/// What a call would change, if that can be found without doing it.
async fn preview(
    checked: &CheckedCall,
    pending: &PendingApproval,
    judged: &[ToolAction],
    context: &TurnContext<'_>,
) -> Result<Option<String>, ToolFailure> {
    // What a failed trial tells the model, it would have read: nobody has allowed that of what is not shown unasked.
    let judge = context.services.gate.judge();
    let hides = judge.hidden_path_test(&context.judged());
    let is_hidden = judged.iter().any(|action| match action {
        ToolAction::Read(path) | ToolAction::Write(path) | ToolAction::Delete(path) => hides(path),
        _ => false,
    });
    if !checked.tool.can_be_tried() || is_hidden {
        return Ok(None);
    }
    let granted = pending.needs.clone();
    let allows = judge.access_test(checked.tool.name(), judged.to_vec(), &context.judged());
    let trial = ToolContext { granted, allows, is_trial: true, ..tool_context(checked, context) };
    Ok(context.runner.run(&*checked.tool, checked.input.clone(), &trial).await?.display)
}

/// What a tool works with before it is granted anything. Whoever was not judged may do nothing.
fn tool_context(checked: &CheckedCall, context: &TurnContext<'_>) -> ToolContext {
    let gate = &context.services.gate;
    let (record, judged) = (context.record, context.judged());
    ToolContext {
        root: context.spec.root.clone(),
        added: context.spec.added.clone(),
        stop: context.stop.clone(),
        background: context.background.clone(),
        call: checked.call,
        blobs: record.blobs(),
        live: LiveOutput::default(),
        ground: WorkspaceGuard::default(),
        host: Arc::new(ToolHost { record: record.clone(), gate: gate.clone() }),
        granted: CallPermissions::default(),
        hides: gate.judge().hidden_path_test(&judged),
        denied: gate.judge().denied_paths(&judged),
        allows: Arc::new(|_, _| false),
        is_trial: false,
    }
}

/// Runs a tool to its end, or until it is stopped.
async fn run_tool(checked: &CheckedCall, context: &ToolContext, runner: &dyn ToolRunner) -> ToolState {
    let span = tracing::debug_span!(
        "execute_tool",
        "gen_ai.operation.name" = "execute_tool",
        "gen_ai.tool.name" = checked.tool.name(),
        "gen_ai.tool.call.id" = %checked.call,
        "error.type" = tracing::field::Empty,
    );
    let work = async {
        let mut run = runner.run(&*checked.tool, checked.input.clone(), context);
        let done: Option<ToolOutcome> = tokio::select! {
            biased;
            () = context.stop.cancelled() => None,
            done = &mut run => Some(done),
        };
        let done = match (done, checked.tool.touches()) {
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
    end
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
