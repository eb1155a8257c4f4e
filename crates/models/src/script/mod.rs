//! A model that plays a script.
//!
//! A [`Script`] is a list of [`Step`]s: what a model answers, when, how fast, and how it fails. A [`Player`] chooses the
//! step that answers a request ([`Asked`]), and [`frames`] writes it as a server of any [`Wire`](crate::Wire) would. All
//! of it is pure, so the shipped program and the test server play the same scripts, and a bug report can be one.
//! `docs/scripts.md` tells how to write them.

mod asked;
mod chat;
mod failure;
mod frames;
mod gemini;
mod messages;
mod parse;
mod player;
mod responses;
mod step;

pub use asked::{Asked, NotAsked, ToolResult};
pub use failure::{Failure, failure};
pub use frames::{Frame, frames};
pub use parse::ScriptError;
pub use player::{NoStep, Player};
pub use step::{End, Fail, Reply, Say, Script, ScriptedAnswer, ScriptedCall, Step, When};
