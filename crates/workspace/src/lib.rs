//! What is worked on: files as text, and the merging of what several hands did to them.

mod merge;
mod text;

pub use merge::{Conflict, Hunk, Merged, NumberedLines, merge};
pub use text::{Encoding, Endings, Line, NotText, Sheet, TextFile, lines, main_ending, read_lossily};
