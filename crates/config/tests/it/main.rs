//! The crate from outside: real files in temporary folders.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't be set up has failed")]

mod administrator;
mod documents;
mod layers;
mod problems;
mod properties;
mod setup;
mod trust;
