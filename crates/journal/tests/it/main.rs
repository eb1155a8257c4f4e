//! The journal as others see it: real files, real processes, real faults.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a child process is told by the environment what to be")]

mod back;
mod catalogue;
mod child;
mod child_data;
mod contract;
mod durability;
mod faults;
mod format;
mod kill;
mod ownership;
mod pack;
mod status;
mod support;
