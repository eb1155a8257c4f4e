//! Anthropic Messages: blocks with a number, which begin, grow and end.

mod read;
mod write;

pub(super) use read::Reader;
pub(super) use write::{calm, head, items};
