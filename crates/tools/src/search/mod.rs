//! Finding files, and what is in them, as `rg` does.

pub(crate) mod glob;
pub(crate) mod grep;
mod hits;
pub(crate) mod list;
mod missed;
pub(crate) mod walk;
