//! Workspaces as others see them: real files, real repositories, real oddities.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a test finds git by the PATH and knows the time")]

mod detection;
mod merge;
mod outside;
mod races;
mod random;
mod repositories;
mod restoring;
mod status;
mod strange;
mod support;
