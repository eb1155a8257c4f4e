//! Places in a text: between clusters, around words.

use unicode_segmentation::GraphemeCursor;

use crate::chips::MARK;

/// The place one cluster before.
pub(crate) fn before(text: &str, at: usize) -> usize {
    GraphemeCursor::new(at, text.len(), true).prev_boundary(text, 0).ok().flatten().unwrap_or(0)
}

/// The place one cluster after.
pub(crate) fn after(text: &str, at: usize) -> usize {
    GraphemeCursor::new(at, text.len(), true).next_boundary(text, 0).ok().flatten().unwrap_or(text.len())
}

/// The place, or the end of the cluster that it is in: what was put together may have become one.
pub(crate) fn snapped(text: &str, at: usize) -> usize {
    let is_between = GraphemeCursor::new(at, text.len(), true).is_boundary(text, 0).unwrap_or(true);
    if is_between { at } else { after(text, at) }
}

pub(crate) fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The beginning of the word that ends here or before. A chip is a word.
pub(crate) fn word_before(text: &str, at: usize) -> usize {
    let to_word = text.get(..at).unwrap_or_default().trim_end_matches(|c| !is_of_word(c) && c != MARK);
    let start = match to_word.strip_suffix(MARK) {
        Some(rest) => rest.len(),
        None => to_word.trim_end_matches(is_of_word).len(),
    };
    // Never into a cluster: its beginning is before.
    if snapped(text, start) == start { start } else { before(text, start) }
}

/// The end of the word that begins here or after.
pub(crate) fn word_after(text: &str, at: usize) -> usize {
    let from_word = text.get(at..).unwrap_or_default().trim_start_matches(|c| !is_of_word(c) && c != MARK);
    let rest = match from_word.strip_prefix(MARK) {
        Some(rest) => rest,
        None => from_word.trim_start_matches(is_of_word),
    };
    snapped(text, text.len() - rest.len())
}
