//! The interface as a value: whatever is typed and told, nothing breaks and nothing that was asked is lost.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking"
)]

mod anything;
mod desk;
mod panicking;
mod talking;
