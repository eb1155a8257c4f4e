//! Reading commands, from outside.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
#![expect(
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test tells what it counted, and is told how long to go on"
)]

mod attacks;
mod bounds;
mod children;
mod data;
mod day;
mod deciding;
mod fuzz;
mod hostile;
mod matching;
mod programs;
