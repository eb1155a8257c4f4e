//! What a tool may ask of the session that it works for.

use std::future::Future;
use std::pin::Pin;

use helve_protocol::{CallId, PlanTask};

use crate::ToolFailure;

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserQuestion {
    pub text: String,
    /// Answers to choose from. Any other is as good.
    pub options: Vec<String>,
}

/// What a person said; none if nobody will.
pub type UserReplyFuture<'a> = Pin<Box<dyn Future<Output = Option<String>> + Send + 'a>>;

pub trait SessionHost: Send + Sync {
    /// The task list is now this.
    fn set_plan(&self, tasks: Vec<PlanTask>) -> Result<(), ToolFailure>;
    /// Asks a person, for a call.
    fn ask(&self, call: CallId, question: UserQuestion) -> UserReplyFuture<'_>;
}

/// No session: a tool that is called by hand.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSessionHost;

impl SessionHost for NoSessionHost {
    fn set_plan(&self, _: Vec<PlanTask>) -> Result<(), ToolFailure> {
        Ok(())
    }

    fn ask(&self, _: CallId, _: UserQuestion) -> UserReplyFuture<'_> {
        Box::pin(std::future::ready(None))
    }
}
