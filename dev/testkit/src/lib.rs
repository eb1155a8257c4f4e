//! What tests share. Nothing here is part of the program.

mod samples;
mod skip;

pub use samples::{Session, every_kind, id};
pub use skip::skip;
