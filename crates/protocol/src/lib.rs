//! What is said in Helve, and nothing of how it is done.
//!
//! - [`Command`] and [`Query`] go to a session, [`Reply`] and [`Event`] come back. Screen, browser, editor,
//!   headless output, journal and tests all speak this one vocabulary.
//! - [`Message`] and [`Part`] are the conversation. [`History`] makes it out of events, for people
//!   ([`History::messages`]) and for the model ([`History::for_model`]); both are total functions.
//! - [`Blobs`], [`Clock`] and [`Ids`] are the few contracts that cross crates.
//!
//! The JSON form of everything is described in `docs/reference/events.md`, made by [`reference`].

mod action;
mod activity;
mod command;
mod contracts;
mod event;
mod history;
mod ids;
mod message;
mod money;
mod query;
pub mod reference;
mod session_state;
mod state;

pub use action::{Action, Needs};
pub use activity::{Activity, Work};
pub use command::{Command, Delivery, Prompt, RewindScope};
pub use contracts::{BlobError, Blobs, Clock, Ids, Timestamp};
pub use event::*;
pub use history::History;
pub use ids::{
    AgentName, ApprovalId, BlobId, CallId, Id, IdError, IdKind, MessageId, ModelName, RequestId, Seq,
    SessionId, StepId, TurnId,
};
pub use message::{
    Change, FileChange, FilePart, Interruption, InvalidTransition, Message, NotKept, Part, PatchPart,
    ReasoningPart, Role, TextKind, TextPart, ToolOutput, ToolPart, ToolResult, ToolState,
};
pub use money::{Cost, CostError, Usage};
pub use query::{ContextShare, Query, Reply, SessionSummary};
pub use session_state::{OpenTurn, SessionState};
pub use state::{Effort, Limit, Mode, Outcome, Status, StopReason, ToolClass};
