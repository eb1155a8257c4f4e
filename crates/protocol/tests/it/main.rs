//! The vocabulary from outside: its JSON form, and what the fold makes of any events.

mod activity;
mod history;
mod json;
