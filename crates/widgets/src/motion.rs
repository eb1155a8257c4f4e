//! Places in a text: between clusters, around words.

use unicode_segmentation::GraphemeCursor;

use crate::chips::CHIP_PLACEHOLDER;

/// The place one cluster before.
pub(crate) fn previous_boundary(text: &str, at: usize) -> usize {
    GraphemeCursor::new(at, text.len(), true).prev_boundary(text, 0).ok().flatten().unwrap_or(0)
}

/// The place one cluster after.
pub(crate) fn next_boundary(text: &str, at: usize) -> usize {
    GraphemeCursor::new(at, text.len(), true).next_boundary(text, 0).ok().flatten().unwrap_or(text.len())
}

/// The place, or the end of the cluster that it is in: what was put together may have become one.
pub(crate) fn snap_to_boundary(text: &str, at: usize) -> usize {
    let is_between = GraphemeCursor::new(at, text.len(), true).is_boundary(text, 0).unwrap_or(true);
    if is_between { at } else { next_boundary(text, at) }
}

pub(crate) fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The beginning of the word that ends here or before. A chip is a word.
pub(crate) fn word_before(text: &str, at: usize) -> usize {
    let to_word =
        text.get(..at).unwrap_or_default().trim_end_matches(|c| !is_word_char(c) && c != CHIP_PLACEHOLDER);
    let start = match to_word.strip_suffix(CHIP_PLACEHOLDER) {
        Some(rest) => rest.len(),
        None => to_word.trim_end_matches(is_word_char).len(),
    };
    // Never into a cluster: its beginning is before.
    if snap_to_boundary(text, start) == start { start } else { previous_boundary(text, start) }
}

/// The end of the word that begins here or after.
pub(crate) fn word_after(text: &str, at: usize) -> usize {
    let from_word =
        text.get(at..).unwrap_or_default().trim_start_matches(|c| !is_word_char(c) && c != CHIP_PLACEHOLDER);
    let rest = match from_word.strip_prefix(CHIP_PLACEHOLDER) {
        Some(rest) => rest,
        None => from_word.trim_start_matches(is_word_char),
    };
    snap_to_boundary(text, text.len() - rest.len())
}
