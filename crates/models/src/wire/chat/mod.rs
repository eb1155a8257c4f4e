//! OpenAI Chat Completions, as many servers speak it.
//!
//! The wire has no blocks: text, thinking and calls come in fields side by side, and calls have numbers of their own.

mod read;
mod write;

pub(super) use read::ChatReader;
pub(super) use write::{head, items, system};
