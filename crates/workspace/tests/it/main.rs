//! What is worked on, from outside.
#![expect(clippy::panic, reason = "a test fails by panicking")]

mod merge;
