//! Anthropic Messages: blocks with a number, which begin, grow and end.

mod read;
mod write;

pub(super) use read::MessagesReader;
pub(super) use write::{disable_thinking, head, items};
