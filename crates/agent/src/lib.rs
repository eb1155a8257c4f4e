//! Sessions and turns: from a person's message to an outcome.
//!
//! - [`Session`] owns a conversation: its log, its dialogue with a model, its tools. It is made of [`Services`], which all sessions of
//!   a process share, and a [`SessionSpec`]. [`Session::listen`] gives it an address ([`SessionHandle`]): commands and queries go in,
//!   replies and events come out, and messages queue while a turn runs. [`SessionWorker`] gives it a thread.
//! - `turn` is the loop: ask the model, write its answer down, run the tools it calls, and again.
//! - `context` is what the model is told, and one request to it.
//! - `call` is the life of one tool call, step by step; `dispatch` schedules calls: those that only read side by side, those that change
//!   something alone.
//! - [`PermissionGate`] decides by the rules, or asks, before something is done; `scope` finds what a call is really about.
//! - [`SessionHooks`] are the points where hooks and planning step in.
//! - `tool_host` is the session as a tool sees it: the task list, and people who can be asked.
//! - `recorder` is the only way to the journal: an event is stored, folded into the state, and told, in that order.
//! - `workspace_watch` knows what calls do to the files of the project, and what others do to them meanwhile; a session shares it with
//!   those that it starts (`family_workspaces`).
//! - `recovery` puts in order what a crash left unfinished.
//! - [`run_tool_once`] runs one call without a conversation.
//! - [`replay_session`] runs a recorded session again and compares every request.

mod actor;
mod boxed_future;
mod call;
mod call_effects;
mod change_watcher;
mod context;
mod dispatch;
mod family_workspaces;
mod gate;
mod hooks;
mod judge;
mod recorder;
mod recovery;
mod replay;
mod rule_judge;
mod scope;
mod services;
mod session;
mod single_call;
mod spec;
mod tool_host;
mod tool_runner;
mod tool_set;
mod turn;
mod turn_context;
mod worker;
mod workspace_watch;

pub use actor::{SessionActor, SessionHandle};
pub use boxed_future::BoxFuture;
pub use context::SessionModel;
pub use family_workspaces::WorkspaceRegistry;
pub use gate::{GateRules, PermissionGate};
pub use hooks::{CallIntervention, HookedCall, NoHooks, SessionHooks};
pub use recorder::{Feed, SessionError};
pub use replay::{MismatchKind, ReplayBuild, ReplayMismatch, ReplayReport, replay_session};
pub use rule_judge::{ApprovalCallback, JudgeContext, RuleSet, Rulebook};
pub use services::{ModelSource, Services, ToolFactory};
pub use session::Session;
pub use single_call::{SingleCallResult, run_tool_once};
pub use spec::{ParentSession, SessionSpec, TurnBudget, WatchConfig};
pub use tool_set::ToolSet;
pub use worker::{SessionWorker, WorkerError};
