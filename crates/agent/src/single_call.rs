//! One call without a conversation: for people and scripts. It passes the same gate and the same watch.

use std::ops::ControlFlow;
use std::sync::Arc;

use helve_protocol::{
    CallId, EventBody, IdKind, MessageId, MessagePart, ModeSwitched, ResponseEnded, Seq, SessionCreated,
    SessionId, SessionState, StopReason, ToolPart, ToolState,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::dispatch::CallDispatcher;
use crate::recorder::{Recorder, SessionError};
use crate::services::Services;
use crate::session::watcher_for;
use crate::spec::SessionSpec;
use crate::tool_runner::{DirectRunner, ToolRunner};
use crate::tool_set::ToolSet;
use crate::turn_context::TurnContext;

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct SingleCallResult {
    pub end: ToolState,
    /// The paths that it changed.
    pub changed: Vec<String>,
}

/// Runs one call in a session of its own, which is as lasting as the journal of the services.
pub async fn run_tool_once(
    services: &Services,
    spec: &SessionSpec,
    tool: &str,
    input: Value,
    stop: &CancellationToken,
) -> Result<SingleCallResult, SessionError> {
    let id: SessionId = services.ids.draw(IdKind::Session).into();
    let log = services.journal.create(id)?;
    let record = Recorder::new(log, SessionState::default(), services.clock.clone(), services.ids.clone());
    let created = SessionCreated {
        workspace: spec.root.display().to_string(),
        model: None,
        helve: services.version.clone(),
        parent: None,
    };
    let call: CallId = record.draw();
    let part = ToolPart {
        call,
        name: tool.to_owned(),
        input,
        wire_id: None,
        sealed: Value::Null,
        state: ToolState::Pending,
    };
    let message: MessageId = record.draw();
    let called = ResponseEnded {
        message,
        parts: vec![MessagePart::Tool(Box::new(part.clone()))],
        stop: StopReason::ToolUse,
    };
    record.emit_all(vec![created.into(), called.into()])?;
    let from = record.state(|state| state.mode);
    record.emit(ModeSwitched { from, to: spec.mode })?;
    services.gate.judge().refresh(&record)?;
    let watcher = watcher_for(&record, services, spec);
    let runner: Arc<dyn ToolRunner> = Arc::new(DirectRunner);
    let context = TurnContext {
        record: &record,
        services,
        spec,
        tools: &ToolSet::new(services.tools.make_tools(spec)),
        watcher: &*watcher,
        runner: &runner,
        stop,
        background: &Arc::default(),
    };
    CallDispatcher::default().run(&[part], &context).await?;

    let (mut end, mut changed) = (ToolState::Pending, Vec::new());
    services.journal.read(id, Seq::START, &mut |event| {
        match event.body {
            EventBody::ToolEnded(ended) if ended.call == call => end = ended.end,
            EventBody::FilesChanged(files) if files.call == Some(call) => {
                changed.extend(files.changes.into_iter().map(|change| change.path));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    Ok(SingleCallResult { end, changed })
}
