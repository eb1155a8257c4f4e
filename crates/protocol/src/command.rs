//! What a front may ask a session to do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ApprovalAnswer, ApprovalId, CallId, MessageId, MessagePart, ModelName, PermissionMode, ReasoningEffort,
    Seq,
};

/// Something to do. The answer comes as events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum SessionCommand {
    /// Send a message.
    Submit(UserPrompt),
    /// Change a message that still waits.
    EditQueued {
        message: MessageId,
        prompt: UserPrompt,
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
        answer: ApprovalAnswer,
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
        effort: Option<ReasoningEffort>,
    },
    SetMode {
        mode: PermissionMode,
    },
    /// Go back to an earlier point.
    Rewind {
        to: Seq,
        scope: RewindScope,
    },
    Rename {
        title: String,
    },
    /// Stop and let the session go.
    ShutDown,
}

impl SessionCommand {
    /// As it stands in its JSON form.
    pub fn name(&self) -> &'static str {
        match self {
            SessionCommand::Submit(_) => "submit",
            SessionCommand::EditQueued { .. } => "edit_queued",
            SessionCommand::DropQueued { .. } => "drop_queued",
            SessionCommand::Interrupt => "interrupt",
            SessionCommand::Background => "background",
            SessionCommand::GoOn => "go_on",
            SessionCommand::Decide { .. } => "decide",
            SessionCommand::Answer { .. } => "answer",
            SessionCommand::SetModel { .. } => "set_model",
            SessionCommand::SetEffort { .. } => "set_effort",
            SessionCommand::SetMode { .. } => "set_mode",
            SessionCommand::Rewind { .. } => "rewind",
            SessionCommand::Rename { .. } => "rename",
            SessionCommand::ShutDown => "shut_down",
        }
    }
}

/// A message on its way to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserPrompt {
    /// Texts and files.
    pub parts: Vec<MessagePart>,
    #[serde(default)]
    pub delivery: PromptDelivery,
}

/// When a message that is sent during a turn reaches the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptDelivery {
    /// After the turn.
    #[default]
    Queue,
    /// Between two steps of the turn.
    Steer,
}

/// What goes back to an earlier point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RewindScope {
    /// The conversation; the files stay as they are.
    Messages,
}
