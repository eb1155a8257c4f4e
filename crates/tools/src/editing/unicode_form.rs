//! Unicode forms. A letter with an accent can be one character or two, and both look the same: text that somebody copies from
//! a screen may not be there for a program.

use icu_normalizer::ComposingNormalizerBorrowed;

/// The line, counted from 1, where a text stands that is not there as written, but is in another Unicode form.
pub(super) fn line_in_other_form(text: &str, wanted: &str) -> Option<usize> {
    if text.is_ascii() || wanted.is_ascii() || wanted.trim().is_empty() {
        return None;
    }
    let composed = ComposingNormalizerBorrowed::new_nfc();
    let [text, wanted] = [text, wanted].map(|text| composed.normalize(text).replace("\r\n", "\n"));
    let at = text.find(&wanted)?;
    Some(1 + text.get(..at)?.matches('\n').count())
}

/// Whether two names look the same, but are not.
pub(crate) fn is_other_form(one: &str, other: &str) -> bool {
    let composed = ComposingNormalizerBorrowed::new_nfc();
    one != other && !one.is_ascii() && composed.normalize(one) == composed.normalize(other)
}
