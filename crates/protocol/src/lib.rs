//! What is said in Helve, and nothing of how it is done.
//!
//! - [`SessionCommand`] and [`SessionQuery`] go to a session, [`QueryReply`] and [`SessionEvent`] come back. Screen, browser, editor,
//!   headless output, journal and tests all speak this one vocabulary.
//! - [`Message`] and [`MessagePart`] are the conversation. [`ConversationHistory`] makes it out of events, for people
//!   ([`ConversationHistory::messages`]) and for the model ([`ConversationHistory::for_model`]); both are total functions.
//! - [`BlobStore`], [`Clock`] and [`IdSource`] are the few contracts that cross crates.
//! - [`one_line`] and [`is_hidden`] are how text from outside is shown, the same in every front end.
//!
//! The JSON form of everything is described in `docs/reference/events.md`, made by [`reference`].

mod action;
mod activity;
mod command;
mod contracts;
mod enums;
mod event;
mod history;
mod ids;
mod line_answers;
mod message;
mod money;
mod notices;
mod query;
pub mod reference;
mod session_state;
mod status_bar;
mod visible_text;

pub use action::{CallPermissions, ToolAction};
pub use activity::{ActivityKind, SessionActivity};
pub use command::{PromptDelivery, RewindScope, SessionCommand, UserPrompt};
pub use contracts::{BlobError, BlobStore, Clock, IdSource, Timestamp};
pub use enums::{
    ConfinementLevel, KeyPlacement, LimitKind, PermissionMode, PermissionVerdict, ReasoningEffort,
    SessionStatus, StopReason, ToolClass, TurnOutcome, WireProtocol,
};
pub use event::*;
pub use history::ConversationHistory;
pub use ids::{
    AgentName, ApprovalId, BlobId, CallId, GeneratedId, IdError, IdKind, MessageId, ModelName, RequestId,
    Seq, SessionId, StepId, TurnId,
};
pub use message::{
    FileChange, FileChangeKind, FilePart, Interruption, InvalidTransition, IrreversibleChange, Message,
    MessagePart, MessageRole, PatchPart, ReasoningPart, TextKind, TextPart, ToolOutput, ToolPart,
    ToolResultText, ToolState, UnkeptReason,
};
pub use money::{Cost, CostError, TokenUsage};
pub use query::{QueryReply, SessionQuery, SessionSummary};
pub use session_state::{OpenTurn, SessionState, UnreadableEvents};
pub use status_bar::StatusBarItem;
pub use visible_text::{is_bidi_control, is_hidden, mark_hidden, one_line, split_words};
