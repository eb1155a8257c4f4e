//! The tools, from outside.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test fails by panicking, and tells what it counted"
)]

mod cases;
mod changing;
mod jobs;
mod killing;
mod notebooks;
mod patching;
mod pictures;
mod reading;
mod remembering;
mod replacing;
mod saving;
mod searching;
mod shell;
mod site;
mod torture;
mod web;
mod world;
mod written_files;
