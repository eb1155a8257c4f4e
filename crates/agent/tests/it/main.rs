//! Turns, with a scripted model, real tools and a journal.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod commands;
mod crashes;
mod house;
mod interrupts;
mod order;
mod replays;
mod turns;
mod watching;
