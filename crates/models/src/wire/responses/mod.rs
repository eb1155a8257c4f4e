//! OpenAI Responses: items with a number, each with pieces of its own.

mod read;
mod write;

pub(super) use read::ResponsesReader;
pub(super) use write::{head, items};
