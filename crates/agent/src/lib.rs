//! The turn: from a person's message to an outcome.
//!
//! - [`Session`] owns a conversation: its log, its dialogue with a model, its tools. [`Session::listen`] gives it an address
//!   ([`Handle`]): commands and queries go in, replies and events come out, and messages queue while a turn runs.
//! - `turn` is the loop: ask the model, write its answer down, run the tools it calls, and again.
//! - `dispatch` runs the calls of one answer: those that only read side by side, those that change something alone.
//! - [`Gate`] decides, or asks, before something is changed.
//! - `record` is the only way to the journal: an event is stored, folded into the state, and told, in that order.
//! - `recovery` puts in order what a crash left unfinished.
//! - [`replay`] runs a recorded session again and compares every request.

mod actor;
mod dispatch;
mod gate;
mod hearing;
mod record;
mod recovery;
mod replay;
mod session;
mod toolbox;
mod turn;

pub use actor::{Actor, Handle};
pub use gate::Gate;
pub use record::{Error, Feed};
pub use replay::{Mismatch, Report, What, replay};
pub use session::{FindModel, House, Limits, Session};
pub use toolbox::specs;
