//! Editing text exactly, without touching a file.
//!
//! - [`replace`] puts new text where old text stands: search and replace, with a ladder of ever more tolerant matches.
//! - [`parse_patch`] and [`apply_patch`] understand patches: the `*** Begin Patch` envelope and unified diffs.
//!
//! Both do all or nothing, keep every byte that they were not asked to change, and refuse rather than guess.

mod apply;
mod blocks;
mod envelope;
pub(crate) mod form;
mod nearest;
mod patch;
mod rebuild;
mod replace;
mod shift;
mod similarity;
mod squeeze;
mod unified;

pub use apply::{FileResult, Found, apply_patch};
pub use nearest::Near;
pub use patch::{Hunk, HunkLine, Mark, Operation, Patch, PatchError, PatchProblem, parse_patch};
pub use replace::{Applied, Edit, Hint, Refusal, Refused, Replaced, Rung, replace};
