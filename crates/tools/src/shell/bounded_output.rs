//! What is kept of an output, however long it is, and what the model is shown of it.

use std::collections::VecDeque;

use helve_protocol::{BlobId, BlobStore};

use crate::files::read::wrapped;
use crate::files::report::counted_lines;

/// What reaches the model of one output, in letters, half of it from the end. Letters can be long, so bytes are bounded too.
const MAX_OUTPUT_CHARS: usize = 30_000;
const MAX_SHOWN_OUTPUT_BYTES: usize = 56 << 10;

/// The beginning and the end of a text.
#[derive(Debug)]
pub(crate) struct HeadTailBuffer {
    head: String,
    head_room: usize,
    tail: VecDeque<u8>,
    tail_room: usize,
    left_out: u64,
}

impl HeadTailBuffer {
    /// Keeps so many bytes of the beginning, and so many of the end.
    pub(crate) fn new(head_room: usize, tail_room: usize) -> HeadTailBuffer {
        HeadTailBuffer { head: String::new(), head_room, tail: VecDeque::new(), tail_room, left_out: 0 }
    }

    pub(crate) fn take(&mut self, text: &str) {
        let mut rest = text;
        if self.tail.is_empty() {
            let room = text.floor_char_boundary(self.head_room.saturating_sub(self.head.len()));
            let (head, after) = text.split_at_checked(room).unwrap_or((text, ""));
            self.head.push_str(head);
            rest = after;
        }
        self.tail.extend(rest.as_bytes());
        let over = self.tail.len().saturating_sub(self.tail_room);
        self.tail.drain(..over);
        self.left_out += over as u64;
    }

    /// All that was kept, with a note where something is missing.
    pub(crate) fn into_text(self) -> String {
        self.into_whole().text
    }

    /// The same, with how much is missing.
    pub(crate) fn into_whole(mut self) -> CollectedOutput {
        while self.left_out > 0 && self.tail.front().is_some_and(|byte| is_inside_letter(*byte)) {
            self.tail.pop_front();
            self.left_out += 1;
        }
        let mut text = self.head;
        if self.left_out > 0 {
            let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            text.push_str(&format!("{line_end}[{} bytes were not kept]\n", self.left_out));
        }
        text.push_str(&String::from_utf8_lossy(self.tail.make_contiguous()));
        CollectedOutput { text, not_kept: self.left_out }
    }
}

/// An output as far as it was kept.
#[derive(Debug, Default)]
pub(crate) struct CollectedOutput {
    pub(crate) text: String,
    /// How many bytes of its middle were not.
    pub(crate) not_kept: u64,
}

fn is_inside_letter(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// What the model is shown, and where the whole is.
#[derive(Debug, Default)]
pub(crate) struct ShownOutput {
    pub(crate) text: String,
    pub(crate) whole: Option<BlobId>,
}

/// Cuts the middle out of a text that is too long for the model, and keeps the whole where `read` finds it.
pub(crate) fn cut_middle(
    CollectedOutput { text: whole, not_kept }: CollectedOutput,
    blobs: &dyn BlobStore,
) -> ShownOutput {
    let head = head(&whole, MAX_OUTPUT_CHARS, MAX_SHOWN_OUTPUT_BYTES);
    if head.len() == whole.len() {
        return ShownOutput { text: whole, whole: None };
    }
    let head = up_to_line_end(self::head(&whole, MAX_OUTPUT_CHARS / 2, MAX_SHOWN_OUTPUT_BYTES / 2));
    let tail = from_line_start(tail(&whole, MAX_OUTPUT_CHARS / 2, MAX_SHOWN_OUTPUT_BYTES / 2));
    let middle = whole.get(head.len()..whole.len() - tail.len()).unwrap_or_default();
    let left_out = match not_kept {
        0 => format!("{}, {} bytes", counted_lines(middle.lines().count()), middle.len()),
        _ => format!("{} bytes", middle.len() as u64 + not_kept),
    };
    let (how, id) = match blobs.put_unsynced(whole.as_bytes()) {
        Ok(id) => {
            let line = wrapped(head).matches('\n').count() + 1;
            let most = match not_kept {
                0 => String::new(),
                _ => format!("; {not_kept} of them, in the middle, were not kept"),
            };
            (format!("use read with path output:{id} and offset {line}{most}"), Some(id))
        }
        Err(error) => (format!("they could not be kept: {error}"), None),
    };
    let line_end = if head.ends_with('\n') { "" } else { "\n" };
    ShownOutput { text: format!("{head}{line_end}[{left_out} are left out here: {how}]\n{tail}"), whole: id }
}

fn head(text: &str, letters: usize, bytes: usize) -> &str {
    let at = text.char_indices().nth(letters).map_or(text.len(), |(at, _)| at);
    text.get(..at.min(text.floor_char_boundary(bytes))).unwrap_or(text)
}

fn tail(text: &str, letters: usize, bytes: usize) -> &str {
    let at = text.char_indices().nth_back(letters.saturating_sub(1)).map_or(0, |(at, _)| at);
    let least = text.ceil_char_boundary(text.len().saturating_sub(bytes));
    text.get(at.max(least)..).unwrap_or(text)
}

/// Whole lines only, if that costs little.
fn up_to_line_end(text: &str) -> &str {
    match text.rfind('\n') {
        Some(at) if at > text.len() / 2 => text.get(..=at).unwrap_or(text),
        _ => text,
    }
}

fn from_line_start(text: &str) -> &str {
    match text.find('\n') {
        Some(at) if at < text.len() / 2 => text.get(at + 1..).unwrap_or(text),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_beginning_and_the_end_are_kept() {
        let mut kept = HeadTailBuffer::new(4, 4);
        ["ab", "cdé", "", "fghij\nk", "ö"].into_iter().for_each(|piece| kept.take(piece));
        assert_eq!(kept.into_text(), "abcd\n[7 bytes were not kept]\n\nkö");
    }

    proptest! {
        #[test]
        fn what_fits_is_whole_and_what_does_not_is_bounded(pieces in vec("[a-zé🦀\n]{0,9}", 0..20), head in 0..40_usize, tail in 1..40_usize) {
            let whole = pieces.concat();
            let mut kept = HeadTailBuffer::new(head, tail);
            pieces.iter().for_each(|piece| kept.take(piece));
            let text = kept.into_text();
            if whole.len() + 6 <= head + tail {
                prop_assert_eq!(text, whole);
            } else {
                prop_assert!(text.len() <= head + tail + 50);
                prop_assert!(!text.contains(char::REPLACEMENT_CHARACTER));
            }
        }
    }
}
