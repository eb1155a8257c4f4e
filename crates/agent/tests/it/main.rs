//! Turns, with a scripted model, real tools and a journal.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod house;
mod interrupts;
mod order;
mod turns;
