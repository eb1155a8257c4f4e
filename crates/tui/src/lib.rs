//! The terminal interface.
//!
//! - [`App`] is the interface as a value: what is typed, what the session tells and what errands bring comes in; orders for
//!   the session and errands for the machine come out.
//! - [`run`] is the loop around it. It has the terminal ([`Device`]), the way to the session ([`Link`]) and what the machine can
//!   do ([`World`]).
//! - `transcript`, `items` and `cards` show what happens, `composer` takes what a person writes, `approvals` what a person decides,
//!   `status` tells how things stand, `reading` fills the window with something to read or to choose from, `layout` says what is
//!   drawn where.
//! - [`keys`] is the table of keys.
//!
//! Nothing here knows the agent, the environment or the clock: they are handed in.

mod app;
mod approvals;
mod cards;
mod commands;
mod composer;
mod errands;
mod history;
mod items;
mod kept;
pub mod keys;
mod layout;
mod link;
mod menu;
mod pages;
mod plain;
mod reading;
mod run;
mod slash;
mod status;
mod terminal;
mod transcript;
mod words;

pub use app::App;
pub use approvals::GUARD;
pub use keys::KeyMap;
pub use link::{
    Attach, Ending, Facts, Link, Look, LookBack, Make, Measure, Opened, Order, Payload, Ran, Take, Told,
    World,
};
pub use plain::run_plain;
pub use run::{Device, run};
pub use terminal::{Keyboard, Raw, mend, restore_on_panic};
