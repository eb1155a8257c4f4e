//! The vocabulary from outside: its JSON form, and what the fold makes of any events.

mod history;
mod json;
