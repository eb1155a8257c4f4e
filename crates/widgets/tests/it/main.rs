//! The widgets, from outside.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking, and its numbers are small"
)]

mod diff;
mod editing;
mod hostile;
mod list;
mod markdown;
mod pager;
mod screen;
mod shot;
mod terminal;
mod tmux;
