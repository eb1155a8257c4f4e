//! Finding files, and what is in them, as `rg` does.

pub(crate) mod glob;
pub(crate) mod grep;
mod hits;
pub(crate) mod list;
mod no_match;
pub(crate) mod walk;
