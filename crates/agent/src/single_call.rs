//! One call without a conversation: for people and scripts. It passes the same gate and the same watch.

use std::ops::ControlFlow;
use std::sync::Arc;

use helve_protocol::{
    CallId, EventBody, IdKind, MessageId, MessagePart, ModeSwitched, ResponseEnded, Seq, SessionCreated,
    SessionId, SessionState, StopReason, ToolPart, ToolState,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::change_tracker::ChangeTracker;
use crate::dispatch::CallDispatcher;
use crate::recorder::{Recorder, SessionError};
use crate::session::Services;
use crate::toolbox::Toolbox;
use crate::turn::TurnContext;

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct SingleCallResult {
    pub end: ToolState,
    /// The paths that it changed.
    pub changed: Vec<String>,
}

/// Runs a call. Its session is the journal's of the house, and as lasting as that.
pub async fn run_tool_once(
    house: &Services,
    tool: &str,
    input: Value,
    stop: &CancellationToken,
) -> Result<SingleCallResult, SessionError> {
    let id: SessionId = house.ids.draw(IdKind::Session).into();
    let log = house.journal.create(id)?;
    let record = Recorder::new(log, SessionState::default(), house.clock.clone(), house.ids.clone());
    let created = SessionCreated {
        workspace: house.root.display().to_string(),
        model: None,
        helve: house.version.clone(),
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
    record.tell(ModeSwitched { from, to: house.mode })?;
    house.gate.refresh(&record)?;
    let toolbox = Toolbox::new(&house.tools);
    let watching = ChangeTracker::new(house.watched.as_ref(), &id.to_string(), record.blobs(), &house.clock);
    let background = &Arc::default();
    let work =
        TurnContext { record: &record, house, toolbox: &toolbox, watching: &watching, stop, background };
    CallDispatcher::default().run(&[part], &work).await?;

    let (mut end, mut changed) = (ToolState::Pending, Vec::new());
    house.journal.read(id, Seq::START, &mut |event| {
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
