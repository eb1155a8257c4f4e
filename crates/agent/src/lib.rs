//! The turn: from a person's message to an outcome.
//!
//! - [`Session`] owns a conversation: its log, its dialogue with a model, its tools. [`Session::listen`] gives it an address
//!   ([`Handle`]): commands and queries go in, replies and events come out, and messages queue while a turn runs.
//! - `turn` is the loop: ask the model, write its answer down, run the tools it calls, and again.
//! - `dispatch` runs the calls of one answer: those that only read side by side, those that change something alone.
//! - [`Gate`] decides by the rules, or asks, before something is done; `scope` finds what a call is really about.
//! - `desk` is the session as a tool sees it: the task list, and people who can be asked.
//! - `record` is the only way to the journal: an event is stored, folded into the state, and told, in that order.
//! - `watching` knows what calls do to the files of the project, and what others do to them meanwhile.
//! - `recovery` puts in order what a crash left unfinished.
//! - [`by_hand`] runs one call without a conversation.
//! - [`replay`] runs a recorded session again and compares every request.

mod actor;
mod by_hand;
mod desk;
mod dispatch;
mod gate;
mod hearing;
mod record;
mod recovery;
mod replay;
mod scope;
mod session;
mod toolbox;
mod turn;
mod watching;

pub use actor::{Actor, Handle};
pub use by_hand::{ByHand, by_hand};
pub use gate::{AskAtOnce, Book, Gate, Grounds, Rulebook};
pub use record::{Error, Feed};
pub use replay::{Mismatch, Report, What, replay};
pub use session::{FindModel, House, Limits, Session};
pub use toolbox::specs;
pub use watching::Watched;
