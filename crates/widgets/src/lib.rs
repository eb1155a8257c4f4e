//! How a terminal draws: the screen, text input, Markdown as it comes, highlighted code, diffs, lists, the pager.
//!
//! Nothing here knows what is drawn or why: values come in, lines and cells come out. No text from outside steers the
//! terminal, whatever stands in it ([`width`]).

mod draw;
mod frame;
mod modes;
mod screen;
pub mod width;
mod wrap;

pub use draw::put;
pub use modes::{Keys, RESTORE};
pub use screen::{Cursor, Narrowing, Options, Screen, Shape};
pub use wrap::{wrap, wrap_after};
