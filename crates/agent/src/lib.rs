//! The turn: from a person's message to an outcome.
//!
//! - [`Session`] owns a conversation: its log, its dialogue with a model, its tools. [`Session::listen`] gives it an address
//!   ([`SessionHandle`]): commands and queries go in, replies and events come out, and messages queue while a turn runs.
//! - `turn` is the loop: ask the model, write its answer down, run the tools it calls, and again.
//! - `dispatch` runs the calls of one answer: those that only read side by side, those that change something alone.
//! - [`PermissionGate`] decides by the rules, or asks, before something is done; `scope` finds what a call is really about.
//! - `tool_host` is the session as a tool sees it: the task list, and people who can be asked.
//! - `recorder` is the only way to the journal: an event is stored, folded into the state, and told, in that order.
//! - `change_tracker` knows what calls do to the files of the project, and what others do to them meanwhile.
//! - `recovery` puts in order what a crash left unfinished.
//! - [`single_call`] runs one call without a conversation.
//! - [`replay`] runs a recorded session again and compares every request.

mod actor;
mod change_tracker;
mod dispatch;
mod gate;
mod linked_files;
mod recorder;
mod recovery;
mod replay;
mod scope;
mod session;
mod single_call;
mod stream_recorder;
mod tool_host;
mod toolbox;
mod turn;

pub use actor::{SessionActor, SessionHandle};
pub use change_tracker::WatchConfig;
pub use gate::{ApprovalCallback, JudgeContext, PermissionGate, RuleSet, Rulebook};
pub use recorder::{Feed, SessionError};
pub use replay::{MismatchKind, ReplayMismatch, ReplayReport, replay_session};
pub use session::{ModelFinder, Services, Session, TurnBudget};
pub use single_call::{SingleCallResult, run_tool_once};
pub use toolbox::specs;
