//! Gemini generateContent: each event is a whole little response with the next parts.

mod read;
mod write;

pub(super) use read::GeminiReader;
pub(super) use write::{head, items};
