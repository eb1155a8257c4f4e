//! What a front may ask a session to do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AgentName, Answer, ApprovalId, CallId, Effort, MessageId, Mode, ModelName, Part, Seq};

/// Something to do. The answer comes as events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Send a message.
    Submit(Prompt),
    /// Change a message that still waits.
    EditQueued {
        message: MessageId,
        prompt: Prompt,
    },
    /// Take a message back that still waits.
    DropQueued {
        message: MessageId,
    },
    /// Stop the running turn.
    Interrupt,
    /// Let the commands that run now go on as jobs, while the turn goes on without them.
    Background,
    /// Go on where the turn stopped: after a limit, an error or a crash.
    GoOn,
    /// Decide what was asked.
    Decide {
        approval: ApprovalId,
        answer: Answer,
    },
    /// Answer what the model asked; without a text, nobody will.
    Answer {
        call: CallId,
        #[serde(default)]
        text: Option<String>,
    },
    SetModel {
        model: ModelName,
    },
    /// How much the model thinks from here on; without, as much as its provider lets it.
    SetEffort {
        #[serde(default)]
        effort: Option<Effort>,
    },
    SetAgent {
        agent: AgentName,
    },
    SetMode {
        mode: Mode,
    },
    /// Summarise the conversation now.
    Compact,
    /// Go back to an earlier point.
    Rewind {
        to: Seq,
        scope: RewindScope,
    },
    /// Begin another session with what was said up to a point.
    Fork {
        at: Seq,
    },
    /// Take back what the last turn changed in the workspace.
    Undo,
    /// Do again what was taken back last.
    Redo,
    Rename {
        title: String,
    },
    /// Stop and let the session go.
    ShutDown,
}

impl Command {
    /// As it stands in its JSON form.
    pub fn name(&self) -> &'static str {
        match self {
            Command::Submit(_) => "submit",
            Command::EditQueued { .. } => "edit_queued",
            Command::DropQueued { .. } => "drop_queued",
            Command::Interrupt => "interrupt",
            Command::Background => "background",
            Command::GoOn => "go_on",
            Command::Decide { .. } => "decide",
            Command::Answer { .. } => "answer",
            Command::SetModel { .. } => "set_model",
            Command::SetEffort { .. } => "set_effort",
            Command::SetAgent { .. } => "set_agent",
            Command::SetMode { .. } => "set_mode",
            Command::Compact => "compact",
            Command::Rewind { .. } => "rewind",
            Command::Fork { .. } => "fork",
            Command::Undo => "undo",
            Command::Redo => "redo",
            Command::Rename { .. } => "rename",
            Command::ShutDown => "shut_down",
        }
    }
}

/// A message on its way to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prompt {
    /// Texts and files.
    pub parts: Vec<Part>,
    #[serde(default)]
    pub delivery: Delivery,
}

/// When a message that is sent during a turn reaches the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// After the turn.
    #[default]
    Queue,
    /// Between two steps of the turn.
    Steer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RewindScope {
    Messages,
    Files,
    Both,
}
