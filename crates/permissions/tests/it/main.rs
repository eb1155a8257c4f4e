//! Reading commands, from outside.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod children;
mod data;
mod day;
mod deciding;
mod matching;
