//! Text in which some places stand for something larger.

use std::ops::Range;
use std::sync::Arc;

/// Stands in the text for a chip. One that comes from outside is replaced.
pub(crate) const CHIP_PLACEHOLDER: char = '\u{fffc}';

/// One thing in the text input that stands for another: a long paste, an image. It is moved over and deleted as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditorChip {
    pub label: Arc<str>,
    pub payload: Arc<str>,
}

/// What was written, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditorPart<'a> {
    Text(&'a str),
    Chip(&'a EditorChip),
}

/// A text with its chips: for each mark, in order, one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EditorContent {
    text: String,
    chips: Vec<EditorChip>,
}

impl EditorContent {
    /// A text from outside. All ends of lines are the same in it.
    pub(crate) fn plain(text: &str) -> EditorContent {
        let mut clean = text.to_owned();
        if text.contains('\r') {
            clean = clean.replace("\r\n", "\n").replace('\r', "\n");
        }
        if text.contains(CHIP_PLACEHOLDER) {
            clean = clean.replace(CHIP_PLACEHOLDER, "\u{fffd}");
        }
        EditorContent { text: clean, chips: Vec::new() }
    }

    pub(crate) fn chip(chip: EditorChip) -> EditorContent {
        EditorContent { text: CHIP_PLACEHOLDER.into(), chips: vec![chip] }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// How many bytes it keeps.
    pub(crate) fn weight(&self) -> usize {
        self.text.len() + self.chips.iter().map(|chip| chip.payload.len()).sum::<usize>()
    }

    /// The chips from a place on.
    pub(crate) fn chips_from(&self, at: usize) -> &[EditorChip] {
        if self.chips.is_empty() {
            return &[];
        }
        let before = self.text.get(..at).map_or(0, |text| text.matches(CHIP_PLACEHOLDER).count());
        self.chips.get(before..).unwrap_or_default()
    }

    pub(crate) fn append(&mut self, other: &EditorContent) {
        self.text.push_str(&other.text);
        self.chips.extend_from_slice(&other.chips);
    }

    pub(crate) fn copy_range(&self, range: Range<usize>) -> EditorContent {
        let text = self.text.get(range.clone()).unwrap_or_default().to_owned();
        let count = if self.chips.is_empty() { 0 } else { text.matches(CHIP_PLACEHOLDER).count() };
        let chips = self.chips_from(range.start).iter().take(count).cloned().collect();
        EditorContent { text, chips }
    }

    /// Puts `with` in the place of a range that begins and ends between characters.
    pub(crate) fn replace(&mut self, range: Range<usize>, with: &EditorContent) {
        let Some(removed) = self.text.get(range.clone()) else { return };
        if !self.chips.is_empty() || !with.chips.is_empty() {
            let first = self.chips.len() - self.chips_from(range.start).len();
            let count = removed.matches(CHIP_PLACEHOLDER).count();
            self.chips.splice(first..(first + count).min(self.chips.len()), with.chips.iter().cloned());
        }
        self.text.replace_range(range, &with.text);
    }

    pub(crate) fn parts(&self) -> Vec<EditorPart<'_>> {
        let mut parts = Vec::new();
        let mut chips = self.chips.iter();
        for (index, text) in self.text.split(CHIP_PLACEHOLDER).enumerate() {
            if index > 0 {
                parts.extend(chips.next().map(EditorPart::Chip));
            }
            if !text.is_empty() {
                parts.push(EditorPart::Text(text));
            }
        }
        parts
    }

    pub(crate) fn expanded(&self) -> String {
        let texts = self.parts().into_iter().map(|part| match part {
            EditorPart::Text(text) => text,
            EditorPart::Chip(chip) => &*chip.payload,
        });
        texts.collect()
    }
}
