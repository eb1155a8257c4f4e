//! The turn: from a person's message to an outcome.
//!
//! - [`Session`] owns a conversation: its log, its dialogue with a model, its tools.
//! - `turn` is the loop: ask the model, write its answer down, run the tools it calls, and again.
//! - `dispatch` runs the calls of one answer: those that only read side by side, those that change something alone.
//! - [`Gate`] decides, or asks, before something is changed.
//! - `record` is the only way to the journal: an event is stored, folded into the history, and told, in that order.
//! - `recovery` puts in order what a crash left unfinished.

mod dispatch;
mod gate;
mod hearing;
mod record;
mod recovery;
mod session;
mod turn;

pub use gate::{Approvals, Gate};
pub use record::{Error, Feed};
pub use session::{House, Limits, Session};
