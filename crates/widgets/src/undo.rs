//! What was done to a text, and how it is taken back.

use std::collections::VecDeque;

use crate::chips::EditorContent;

const MAX_UNDO_CHANGES: usize = 1_000;
const MAX_UNDO_BYTES: usize = 16 << 20;

/// At one place, something was replaced.
#[derive(Clone, Debug)]
pub(crate) struct EditorChange {
    pub(crate) at: usize,
    pub(crate) removed: EditorContent,
    pub(crate) inserted: EditorContent,
    pub(crate) cursor_before: usize,
    pub(crate) cursor_after: usize,
}

impl EditorChange {
    fn weight(&self) -> usize {
        self.removed.weight() + self.inserted.weight()
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct UndoHistory {
    past: VecDeque<EditorChange>,
    future: Vec<EditorChange>,
    bytes: usize,
}

impl UndoHistory {
    pub(crate) fn add(&mut self, change: EditorChange) {
        self.future.clear();
        self.bytes += change.weight();
        self.past.push_back(change);
        while self.past.len() > MAX_UNDO_CHANGES || (self.bytes > MAX_UNDO_BYTES && self.past.len() > 1) {
            let forgotten = self.past.pop_front();
            self.bytes -= forgotten.map_or(0, |change| change.weight());
        }
    }

    /// Adds what was typed to the last change, if it was typed right behind it.
    pub(crate) fn extend(&mut self, change: EditorChange) {
        let last = self.past.back_mut().filter(|last| {
            last.removed.is_empty()
                && last.at + last.inserted.len() == change.at
                && last.cursor_after == change.cursor_before
        });
        match last {
            Some(last) => {
                self.future.clear();
                self.bytes += change.weight();
                last.inserted.append(&change.inserted);
                last.cursor_after = change.cursor_after;
            }
            None => self.add(change),
        }
    }

    /// Takes the last change back, and says where the cursor was before it.
    pub(crate) fn undo(&mut self, content: &mut EditorContent) -> Option<usize> {
        let change = self.past.pop_back()?;
        self.bytes -= change.weight();
        content.replace(change.at..change.at + change.inserted.len(), &change.removed);
        let cursor = change.cursor_before;
        self.future.push(change);
        Some(cursor)
    }

    pub(crate) fn redo(&mut self, content: &mut EditorContent) -> Option<usize> {
        let change = self.future.pop()?;
        content.replace(change.at..change.at + change.removed.len(), &change.inserted);
        let cursor = change.cursor_after;
        self.bytes += change.weight();
        self.past.push_back(change);
        Some(cursor)
    }
}
