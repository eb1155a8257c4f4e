//! How a terminal draws: the screen, text input, Markdown as it comes, highlighted code, diffs, lists, the pager.
//!
//! Nothing here knows what is drawn or why: values come in, lines and cells come out. No text from outside steers the
//! terminal, whatever stands in it ([`width`]).

mod chips;
mod diff;
mod document;
mod draw;
mod edit;
mod editor;
mod editor_rows;
mod frame;
mod fuzzy;
mod glyph_source;
mod highlight;
mod invisible;
mod markdown;
mod markdown_blocks;
mod markdown_render;
mod markdown_table;
mod modes;
mod motion;
mod pager;
mod pager_layout;
mod picker;
mod screen;
mod scrolled_off;
mod styled_spans;
mod text_search;
mod theme;
mod undo;
pub mod width;
mod word_diff;
mod wrap;

pub use chips::{EditorChip, EditorPart};
pub use diff::diff_lines;
pub use document::{PagerDocument, PlainText};
pub use draw::put_line;
pub use edit::{EditorCommand, EditorOutcome};
pub use editor::Editor;
pub use fuzzy::FuzzyPattern;
pub use highlight::Highlighter;
pub use markdown::MarkdownStream;
pub use modes::{KeyboardProtocol, RESTORE_TERMINAL};
pub use pager::{Pager, ScrollStep, SearchDirection};
pub use picker::{Picker, PickerChoice, PickerMove, PickerPlacement};
pub use screen::{CursorShape, ReflowMode, ScreenCursor, ScreenOptions, TerminalScreen};
pub use theme::{Background, ColorDepth, Theme};
pub use wrap::{wrap, wrap_with_prefix};
