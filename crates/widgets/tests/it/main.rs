//! The widgets, from outside.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking, and its numbers are small"
)]

mod editing;
mod markdown;
mod screen;
mod shot;
mod terminal;
