//! How a terminal draws: the screen, text input, Markdown as it comes, highlighted code, diffs, lists, the pager.
//!
//! Nothing here knows what is drawn or why: values come in, lines and cells come out. No text from outside steers the
//! terminal, whatever stands in it ([`width`]).

mod blocks;
mod chips;
mod diff;
mod document;
mod draw;
mod edit;
mod editor;
mod find;
mod frame;
mod fuzzy;
mod highlight;
mod invisible;
mod layout;
mod list;
mod lost;
mod markdown;
mod modes;
mod motion;
mod pager;
mod render;
mod rows;
mod screen;
mod source;
mod table;
mod theme;
mod undo;
pub mod width;
mod words;
mod wrap;

pub use chips::{Chip, Part};
pub use diff::diff_lines;
pub use document::{Document, PlainText};
pub use draw::put;
pub use edit::{Edit, Effect};
pub use editor::Editor;
pub use fuzzy::Pattern;
pub use highlight::Highlighter;
pub use invisible::is_hidden;
pub use list::{Choice, Drawn, Picker, Step};
pub use markdown::Markdown;
pub use modes::{Keys, RESTORE};
pub use pager::{Pager, Scroll, Towards};
pub use screen::{Cursor, Narrowing, Options, Screen, Shape};
pub use theme::{Colours, Ground, Theme};
pub use wrap::{wrap, wrap_after};
