//! Turns, with a scripted model, real tools and a journal.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod commands;
mod crashes;
mod house;
mod interrupts;
mod order;
mod replays;
mod turns;
