//! What was shown, for whoever wants to read it in full: the last items, as far as they fit.

use std::collections::VecDeque;

use helve_widgets::{Markdown, Theme, diff_lines};
use ratatui::text::Line;

const MOST_ITEMS: usize = 200;
const MOST_BYTES: usize = 16 << 20;
/// More of one item is not kept: the journal has it.
const MOST_OF_ONE: usize = 2 << 20;

/// One item in full.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) title: String,
    pub(crate) sections: Vec<Section>,
}

#[derive(Clone, Debug)]
pub(crate) enum Section {
    Text(String),
    Markdown(String),
    Diff(String),
}

impl Section {
    fn text(&self) -> &str {
        match self {
            Section::Text(text) | Section::Markdown(text) | Section::Diff(text) => text,
        }
    }

    fn lines(&self, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        match self {
            Section::Text(text) => {
                text.lines().map(|line| Line::styled(line.to_owned(), theme.text)).collect()
            }
            Section::Markdown(text) => Markdown::render(text, width, theme),
            Section::Diff(diff) => diff_lines(diff, width, usize::MAX, theme),
        }
    }
}

impl Entry {
    pub(crate) fn new(title: impl Into<String>, section: Section) -> Entry {
        Entry { title: title.into(), sections: vec![section] }
    }

    pub(crate) fn lines(&self, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for section in &self.sections {
            if !lines.is_empty() {
                lines.push(Line::default());
            }
            lines.extend(section.lines(width, theme));
        }
        lines
    }

    fn bytes(&self) -> usize {
        self.title.len() + self.sections.iter().map(|section| section.text().len()).sum::<usize>()
    }

    fn bounded(mut self) -> Entry {
        let mut left = MOST_OF_ONE;
        for section in &mut self.sections {
            let (Section::Text(text) | Section::Markdown(text) | Section::Diff(text)) = section;
            if text.len() > left {
                text.truncate(text.floor_char_boundary(left));
                text.push_str("\n[the rest is in `helve sessions show`]");
            }
            left = left.saturating_sub(text.len());
        }
        self
    }
}

/// The last items, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    entries: VecDeque<Entry>,
    bytes: usize,
}

impl Kept {
    pub(crate) fn push(&mut self, entry: Entry) {
        let entry = entry.bounded();
        self.bytes += entry.bytes();
        self.entries.push_back(entry);
        while self.entries.len() > MOST_ITEMS || (self.bytes > MOST_BYTES && self.entries.len() > 1) {
            self.bytes -= self.entries.pop_front().map_or(0, |oldest| oldest.bytes());
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Counted from the oldest.
    pub(crate) fn get(&self, number: usize) -> Option<&Entry> {
        self.entries.get(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_much_comes_little_is_kept() {
        let mut kept = Kept::default();
        for number in 0..1_000 {
            kept.push(Entry::new(number.to_string(), Section::Text("x".repeat(200_000))));
            assert!(kept.bytes <= MOST_BYTES && kept.len() <= MOST_ITEMS);
        }
        assert_eq!(kept.get(kept.len() - 1).unwrap().title, "999");
        kept.push(Entry::new("large", Section::Text("é".repeat(MOST_OF_ONE))));
        assert!(kept.get(kept.len() - 1).unwrap().bytes() < MOST_OF_ONE + 200);
    }
}
