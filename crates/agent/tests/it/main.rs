//! Turns, with a scripted model, real tools and a journal.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

mod children;
mod commands;
mod crashes;
mod house;
mod interrupts;
mod order;
mod races;
mod replays;
mod turns;
mod watching;
