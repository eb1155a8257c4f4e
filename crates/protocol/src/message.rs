//! The conversation: messages and their parts.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BlobId, CallId, Cost, MessageId, ModelName, StepId, StopReason, Timestamp, TokenUsage};

/// One message. One step makes one assistant message; a tool's result stands in its part beside the call,
/// so that a call without a result can't be written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    pub id: MessageId,
    pub role: MessageRole,
    pub time: Timestamp,
    /// In the provider's order.
    pub parts: Vec<MessagePart>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageRole {
    User,
    Assistant,
}

/// A piece of a message. The model sees text, reasoning, files and tools; the rest is for people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum MessagePart {
    Text(TextPart),
    Reasoning(ReasoningPart),
    File(FilePart),
    Tool(Box<ToolPart>),
    /// What a step changed in the workspace.
    Patch(PatchPart),
    StepStart {
        step: StepId,
        model: ModelName,
    },
    StepFinish {
        step: StepId,
        usage: TokenUsage,
        cost: Cost,
        stop: StopReason,
    },
    /// The request failed and was sent again.
    Retry {
        attempt: u32,
        delay_ms: u64,
        reason: String,
    },
}

impl MessagePart {
    /// Whether the model sees it. Providers refuse texts of nothing but white space.
    pub fn is_for_model(&self) -> bool {
        match self {
            MessagePart::Text(text) => !text.text.trim().is_empty(),
            MessagePart::Reasoning(_) | MessagePart::File(_) | MessagePart::Tool(_) => true,
            _ => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextPart {
    pub text: String,
    #[serde(default, skip_serializing_if = "TextKind::is_said")]
    pub kind: TextKind,
    /// What the provider wants back with the text exactly as it came.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub sealed: Value,
}

impl TextPart {
    pub fn said(text: impl Into<String>) -> TextPart {
        TextPart { text: text.into(), kind: TextKind::Said, sealed: Value::Null }
    }

    pub fn note(text: impl Into<String>) -> TextPart {
        TextPart { text: text.into(), kind: TextKind::Note, sealed: Value::Null }
    }
}

/// Who put a text there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TextKind {
    /// The message's author said it.
    #[default]
    Said,
    /// Helve added it for the model: the date, a reminder, what changed outside.
    Note,
}

impl TextKind {
    fn is_said(&self) -> bool {
        *self == TextKind::Said
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReasoningPart {
    pub text: String,
    /// What the provider wants back exactly as it came: signatures, encrypted or redacted thinking.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub sealed: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilePart {
    pub name: String,
    /// Such as `image/png`.
    pub media_type: String,
    pub content: BlobId,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatchPart {
    pub changes: Vec<FileChange>,
}

/// One file that a call changed, with what is needed to take it back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// Relative to the workspace, with `/`; absolute if outside.
    pub path: String,
    pub change: FileChangeKind,
    pub added_lines: u64,
    pub removed_lines: u64,
    /// The content before; none if there was no file or it could not be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<BlobId>,
    /// The content after; none if there is no file or it could not be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<BlobId>,
    /// What kind of file it was, with its permissions, as `st_mode` has them; none if there was none. The content of a link is
    /// its target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_before: Option<u32>,
    /// The same afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_after: Option<u32>,
}

/// A path that was changed and can't be brought back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IrreversibleChange {
    /// As in [`FileChange`]; a folder's ends with `/`.
    pub path: String,
    pub why: UnkeptReason,
}

/// Why the content of a path is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnkeptReason {
    /// It is too large.
    TooLarge,
    /// The workspace as a whole has more than is kept.
    WorkspaceTooLarge,
    /// Nobody wants anything to be kept.
    KeepingDisabled,
    /// The project's ignore rules cover it.
    Ignored,
    /// It could not be read.
    Unreadable,
    /// A pipe, a socket, a device.
    Special,
    /// Its name is not Unicode.
    NotUnicode,
    /// It changed before anything was kept.
    NotReadBefore,
    /// It was in git's objects, and they were removed.
    GoneFromGit,
    /// It is git's own.
    GitInternal,
}

impl fmt::Display for UnkeptReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UnkeptReason::TooLarge => "it is too large to be kept",
            UnkeptReason::WorkspaceTooLarge => "the workspace has more than can be kept",
            UnkeptReason::KeepingDisabled => "nothing is kept outside of a session",
            UnkeptReason::Ignored => "it is ignored",
            UnkeptReason::Unreadable => "it could not be read",
            UnkeptReason::Special => "it is neither a file nor a link",
            UnkeptReason::NotUnicode => "its name is not Unicode",
            UnkeptReason::NotReadBefore => "it had not been read before",
            UnkeptReason::GitInternal => "it is git's own",
            UnkeptReason::GoneFromGit => "git does not have its content any more",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FileChangeKind {
    Added,
    Modified,
    Deleted,
    Moved { from: String },
}

/// A call of a tool and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolPart {
    pub call: CallId,
    pub name: String,
    pub input: Value,
    /// The provider's own id for the call, to be sent back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_id: Option<String>,
    /// What the provider wants back with the call exactly as it came.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub sealed: Value,
    pub state: ToolState,
}

/// pending → running → completed | error | denied | interrupted. A call that never ran may end in the last
/// three from pending, and one that was running when the program ended may begin again. What has ended stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolState {
    #[default]
    Pending,
    Running {
        since: Timestamp,
    },
    Completed {
        output: ToolOutput,
    },
    Error {
        message: String,
    },
    Denied {
        reason: String,
    },
    Interrupted {
        how: Interruption,
        /// The files that changed since it began, as far as that is known.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed: Vec<String>,
    },
}

/// So many changed files are named to the model.
const MAX_INTERRUPTED_FILES_NAMED: usize = 50;

/// How much of an interrupted call was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Interruption {
    /// It had not begun.
    NotStarted,
    /// It was stopped on the way.
    Stopped,
    /// Helve died while it ran, so nobody knows.
    Unknown,
}

impl Interruption {
    /// What the model is told instead of a result.
    pub fn for_model(self) -> &'static str {
        match self {
            Interruption::NotStarted => "Interrupted: this call was not run. Nothing was changed by it.",
            Interruption::Stopped => {
                "Interrupted: this call was stopped before it finished. It may have done part of its work."
            }
            Interruption::Unknown => {
                "Unknown outcome: the program ended while this call ran. It may or may not have done its work. \
                 Look at the present state before you call it again."
            }
        }
    }
}

fn interruption_text(how: Interruption, changed: &[String]) -> String {
    let mut text = how.for_model().to_owned();
    if !changed.is_empty() {
        let named: Vec<&str> = changed.iter().take(MAX_INTERRUPTED_FILES_NAMED).map(String::as_str).collect();
        text.push_str(" Changed since it began: ");
        text.push_str(&named.join(", "));
        text.push_str(&match changed.len().saturating_sub(MAX_INTERRUPTED_FILES_NAMED) {
            0 => ".".to_owned(),
            more => format!(", and {more} more."),
        });
    }
    text
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToolOutput {
    /// For the model; bounded.
    pub text: String,
    /// For people, where it differs from the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display: Option<String>,
    /// The whole output, where the text is a cut of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<BlobId>,
    /// Images and the like, for the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FilePart>,
    /// Nothing more is to be done: the turn ends after this result.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ends_turn: bool,
}

/// A call's result as the model reads it; images stand in the output's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResultText<'a> {
    pub text: Cow<'a, str>,
    pub is_error: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a tool call can't go from {from} to {to}")]
pub struct InvalidTransition {
    from: &'static str,
    to: &'static str,
}

impl ToolState {
    pub fn interrupted(how: Interruption) -> ToolState {
        ToolState::Interrupted { how, changed: Vec::new() }
    }

    pub fn name(&self) -> &'static str {
        match self {
            ToolState::Pending => "pending",
            ToolState::Running { .. } => "running",
            ToolState::Completed { .. } => "completed",
            ToolState::Error { .. } => "error",
            ToolState::Denied { .. } => "denied",
            ToolState::Interrupted { .. } => "interrupted",
        }
    }

    pub fn is_ended(&self) -> bool {
        !matches!(self, ToolState::Pending | ToolState::Running { .. })
    }

    /// Goes on to `next`, or stays as it is and says why.
    pub fn advance(&mut self, next: ToolState) -> Result<(), InvalidTransition> {
        let allowed = match self {
            ToolState::Pending => !matches!(next, ToolState::Pending | ToolState::Completed { .. }),
            ToolState::Running { .. } => !matches!(next, ToolState::Pending),
            _ => false,
        };
        if !allowed {
            return Err(InvalidTransition { from: self.name(), to: next.name() });
        }
        *self = next;
        Ok(())
    }

    /// What the model gets as the call's result. Unfinished calls read as interrupted, so that there always is one.
    pub fn for_model(&self) -> ToolResultText<'_> {
        let failed = |text| ToolResultText { text, is_error: true };
        match self {
            ToolState::Completed { output } => {
                ToolResultText { text: Cow::Borrowed(&output.text), is_error: false }
            }
            ToolState::Error { message } => failed(Cow::Borrowed(message)),
            ToolState::Denied { reason } => failed(format!("Denied: {reason}").into()),
            ToolState::Interrupted { how, changed } => failed(interruption_text(*how, changed).into()),
            ToolState::Pending => failed(Interruption::NotStarted.for_model().into()),
            ToolState::Running { .. } => failed(Interruption::Unknown.for_model().into()),
        }
    }

    /// The end of a call that will not go on: a crash or an interrupt left it unfinished.
    pub fn settled(&self) -> ToolState {
        match self {
            ToolState::Pending => ToolState::interrupted(Interruption::NotStarted),
            ToolState::Running { .. } => ToolState::interrupted(Interruption::Unknown),
            ended => ended.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states() -> [ToolState; 6] {
        [
            ToolState::Pending,
            ToolState::Running { since: Timestamp::from_millis(1) },
            ToolState::Completed { output: ToolOutput::default() },
            ToolState::Error { message: "no such file".to_owned() },
            ToolState::Denied { reason: "outside the workspace".to_owned() },
            ToolState::interrupted(Interruption::Stopped),
        ]
    }

    #[test]
    fn a_call_only_goes_forward() {
        let allowed = [
            ("pending", "running"),
            ("pending", "error"),
            ("pending", "denied"),
            ("pending", "interrupted"),
            ("running", "running"),
            ("running", "completed"),
            ("running", "error"),
            ("running", "denied"),
            ("running", "interrupted"),
        ];
        for from in states() {
            for to in states() {
                let mut state = from.clone();
                let moved = state.advance(to.clone()).is_ok();
                assert_eq!(moved, allowed.contains(&(from.name(), to.name())), "{from:?} to {to:?}");
                assert_eq!(state, if moved { to } else { from.clone() });
            }
        }
    }

    #[test]
    fn settling_always_ends_a_call_and_keeps_a_real_result() {
        for state in states() {
            assert!(state.settled().is_ended());
            assert!(!state.is_ended() || state.settled() == state);
        }
    }
}
