//! The server that plays models, looked at byte by byte.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod client;
mod faults;
mod server;
mod strict;
