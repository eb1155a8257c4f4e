//! The points of a session where others can step in: hooks of the user's, and planning.
//!
//! Each point is a method of [`SessionHooks`] that does nothing unless it is written. A hook never breaks the loop: it returns what it
//! wants, and whoever calls it goes on.

use helve_protocol::{CallId, MessagePart, SessionId, ToolState, TurnOutcome};
use serde_json::Value;

use crate::boxed_future::BoxFuture;

/// Steps in at the named points of a session.
pub trait SessionHooks: Send + Sync {
    /// A session begins, or is opened again by this process.
    fn session_started<'a>(&'a self, session: SessionId) -> BoxFuture<'a, ()> {
        let _ = session;
        Box::pin(std::future::ready(()))
    }

    /// A message of the user's was written down and goes to the model next.
    fn message_accepted<'a>(&'a self, session: SessionId, parts: &'a [MessagePart]) -> BoxFuture<'a, ()> {
        let _ = (session, parts);
        Box::pin(std::future::ready(()))
    }

    /// A call fits its tool and is about to be judged. It may be refused, or get another input, which is recorded.
    fn before_call<'a>(&'a self, call: HookedCall<'a>) -> BoxFuture<'a, CallIntervention> {
        let _ = call;
        Box::pin(std::future::ready(CallIntervention::None))
    }

    /// A call has ended and its result is written down.
    fn after_call<'a>(&'a self, call: HookedCall<'a>, end: &'a ToolState) -> BoxFuture<'a, ()> {
        let _ = (call, end);
        Box::pin(std::future::ready(()))
    }

    /// The conversation is about to be replaced by a summary.
    fn before_compaction<'a>(&'a self, session: SessionId) -> BoxFuture<'a, ()> {
        let _ = session;
        Box::pin(std::future::ready(()))
    }

    /// The turn is about to end in this way.
    fn before_turn_ends<'a>(&'a self, session: SessionId, outcome: TurnOutcome) -> BoxFuture<'a, ()> {
        let _ = (session, outcome);
        Box::pin(std::future::ready(()))
    }

    /// This process lets go of the session.
    fn session_ended<'a>(&'a self, session: SessionId) -> BoxFuture<'a, ()> {
        let _ = session;
        Box::pin(std::future::ready(()))
    }
}

/// A call as hooks see it.
#[derive(Clone, Copy, Debug)]
pub struct HookedCall<'a> {
    pub session: SessionId,
    pub call: CallId,
    pub tool: &'a str,
    pub input: &'a Value,
}

/// What a hook wants with a call before it is judged.
#[derive(Clone, Debug, PartialEq)]
pub enum CallIntervention {
    /// The call goes on as it is.
    None,
    /// The call goes on with another input. It is checked and judged like any other.
    ReplaceInput(Value),
    /// The call is refused, for a reason that the model is told.
    Refuse(String),
}

/// Hooks of a session that has none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHooks;

impl SessionHooks for NoHooks {}
