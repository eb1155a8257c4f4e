//! Editing text exactly, without touching a file.
//!
//! - [`replace`] puts new text where old text stands: search and replace, with a ladder of ever more tolerant matches.
//! - [`parse_patch`] and [`apply_patch`] understand patches: the `*** Begin Patch` envelope and unified diffs.
//!
//! Both do all or nothing, keep every byte that they were not asked to change, and refuse rather than guess.

mod apply;
mod blocks;
mod envelope;
mod nearest;
mod normalize;
mod parse_patch;
mod patch;
mod patch_lines;
mod rebuild;
mod replace;
mod shift;
mod similarity;
pub(crate) mod unicode_form;
mod unified;

pub use apply::{PatchTarget, PatchedFile, apply_patch};
pub use nearest::NearestLine;
pub use parse_patch::parse_patch;
pub use patch::{HunkLine, HunkMark, Patch, PatchError, PatchHunk, PatchOperation, PatchProblem};
pub use replace::{
    AppliedEdit, EditError, EditProblem, EditedText, MatchRung, MismatchHint, TextReplacement, replace,
};
