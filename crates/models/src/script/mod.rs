//! A model that plays a script.
//!
//! A [`ModelScript`] is a list of [`ScriptStep`]s: what a model answers, when, how fast, and how it fails. A [`ScriptPlayer`] chooses the
//! step that answers a request ([`ScriptRequest`]), and [`response_frames`] writes it as a server of any
//! [`WireProtocol`](crate::WireProtocol) would. All of it is pure, so the shipped program and the test server play the same scripts, and a bug report can be one.
//! `docs/scripts.md` tells how to write them.

mod chat;
mod frames;
mod gemini;
mod http_failure;
mod messages;
mod outline;
mod parse;
mod player;
mod request;
mod response;
mod responses;
mod step;

pub use frames::ScriptFrame;
pub use http_failure::{FailureResponse, failure_response};
pub use parse::ScriptError;
pub use player::{NoMatchingStep, ScriptPlayer};
pub use request::{ScriptRequest, ScriptRequestError, ScriptToolResult};
pub use response::response_frames;
pub use step::{
    ModelScript, ScriptStep, ScriptedAnswer, ScriptedCall, ScriptedFailure, ScriptedPart, ScriptedReply,
    StepCondition, StreamEnding,
};
