//! The program as a person meets it: real processes, real files, a real terminal.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod builds;
mod captures;
mod comfort;
mod config;
mod crash;
mod credentials;
mod deciding;
mod denied;
mod doctor;
mod evals;
mod first_run;
mod hidden_home;
mod home;
mod hostile_projects;
mod interactive;
mod interrupts;
mod left_behind;
mod logs;
mod long;
mod models;
mod output;
mod permissions;
mod picture;
mod private_registries;
mod run;
mod sessions;
mod stored_sessions;
mod terminal;
mod tools;
mod transport;
mod trust;
