//! Reads a patch, in whichever of its two forms it is.

use super::patch::{MAX_PATCH_BYTES, Patch, PatchError, PatchProblem};
use super::patch_lines::PatchLines;
use super::{envelope, unified};

/// Understands a patch.
pub fn parse_patch(text: &str) -> Result<Patch, PatchError> {
    if text.len() > MAX_PATCH_BYTES {
        return Err(PatchProblem::TooLarge.at(1));
    }
    let lines = PatchLines::new(text);
    let operations = match envelope::bounds(&lines)? {
        Some(bounds) => envelope::parse(&lines, bounds)?,
        None => unified::parse(&lines)?,
    };
    if operations.is_empty() {
        return Err(PatchProblem::Empty.at(1));
    }
    Ok(Patch { operations })
}
