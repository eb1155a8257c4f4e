//! The terminal interface.
//!
//! - [`App`] is the interface as a value: what is typed, what the session tells and what errands bring comes in; orders for
//!   the session and errands for the machine come out.
//! - [`run`] is the loop around it. It has the terminal ([`Device`]), the way to the session ([`Link`]) and what the machine can
//!   do ([`World`]).
//! - `transcript`, `items` and `cards` show what happens, `composer` takes what a person writes, `approvals` what a person decides,
//!   `status` tells how things stand, `reading` fills the window with something to read or to choose from, `layout` says what is
//!   drawn where.
//! - [`Guide`] is the first start, before there is a session.
//! - [`keys`] is the table of keys, [`KeyMap`] what the user made of it.
//!
//! Nothing here knows the agent, the environment or the clock: they are handed in.

mod app;
mod approvals;
mod cards;
mod choosing;
mod commands;
mod composer;
mod errands;
mod guide;
mod guide_view;
mod history;
mod items;
mod kept;
mod keymap;
pub mod keys;
mod layout;
mod link;
mod menu;
mod own;
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
pub use approvals::{GUARD, WRITING};
pub use guide::{Guide, Helper, Led, Nearby, Store, lead};
pub use keymap::{KeyMap, Refused, Trouble, reference};
pub use link::{
    Attach, Changed, Ending, Facts, Glimpse, Link, Look, LookBack, LookInto, Make, Measure, ModelChoice,
    Opened, Order, Past, Payload, Ran, RunOwn, Stop, Take, Told, World,
};
pub use plain::run_plain;
pub use run::{Device, run};
pub use status::StatusItem;
pub use terminal::{Keyboard, Raw, mend, restore_on_panic};
