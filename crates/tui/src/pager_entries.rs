//! Something to read in full, and what of that no journal has.

use std::collections::VecDeque;

use helve_protocol::{BlobId, Seq};
use helve_widgets::{MarkdownStream, Theme, diff_lines};
use ratatui::text::Line;

const MAX_UNJOURNALED_ENTRIES: usize = 50;
const MAX_UNJOURNALED_BYTES: usize = 4 << 20;
/// More of one item is not shown.
pub(crate) const MAX_PAGER_ENTRY_BYTES: usize = 4 << 20;

/// One item in full.
#[derive(Clone, Debug, Default)]
pub(crate) struct PagerEntry {
    pub(crate) title: String,
    pub(crate) sections: Vec<PagerSection>,
    /// The event that it comes from, or after which it came.
    pub(crate) seq: Seq,
    /// Where all of the last section is, if that is a cut.
    pub(crate) whole: Option<BlobId>,
}

#[derive(Clone, Debug)]
pub(crate) enum PagerSection {
    Text(String),
    Markdown(String),
    Diff(String),
}

impl PagerSection {
    fn text(&self) -> &str {
        match self {
            PagerSection::Text(text) | PagerSection::Markdown(text) | PagerSection::Diff(text) => text,
        }
    }

    fn lines(&self, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        match self {
            PagerSection::Text(text) => {
                text.lines().map(|line| Line::styled(line.to_owned(), theme.text)).collect()
            }
            PagerSection::Markdown(text) => MarkdownStream::render(text, width, theme),
            PagerSection::Diff(diff) => diff_lines(diff, width, usize::MAX, theme),
        }
    }
}

impl PagerEntry {
    pub(crate) fn new(title: impl Into<String>, section: PagerSection) -> PagerEntry {
        PagerEntry { title: title.into(), sections: vec![section], ..PagerEntry::default() }
    }

    /// All of the last section has come.
    pub(crate) fn fill(&mut self, whole: String) {
        self.whole = None;
        self.sections.pop();
        self.sections.push(PagerSection::Text(whole));
        self.bound();
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

    fn bound(&mut self) {
        let mut left = MAX_PAGER_ENTRY_BYTES;
        for section in &mut self.sections {
            let (PagerSection::Text(text) | PagerSection::Markdown(text) | PagerSection::Diff(text)) =
                section;
            if text.len() > left {
                text.truncate(text.floor_char_boundary(left));
                text.push_str("\n[the rest is in `helve sessions show`]");
            }
            left = left.saturating_sub(text.len());
        }
    }
}

/// The last items that no journal has: what commands of the user's put out. The oldest first.
#[derive(Debug, Default)]
pub(crate) struct UnjournaledEntries {
    entries: VecDeque<PagerEntry>,
    bytes: usize,
}

impl UnjournaledEntries {
    pub(crate) fn push(&mut self, mut entry: PagerEntry) {
        entry.bound();
        self.bytes += entry.bytes();
        self.entries.push_back(entry);
        while self.entries.len() > MAX_UNJOURNALED_ENTRIES
            || (self.bytes > MAX_UNJOURNALED_BYTES && self.entries.len() > 1)
        {
            self.bytes -= self.entries.pop_front().map_or(0, |oldest| oldest.bytes());
        }
    }

    /// Puts those that belong there into a page that ends before an event.
    pub(crate) fn join(&self, page: &mut Vec<PagerEntry>, start: Seq, before: Seq) {
        let belongs = |entry: &&PagerEntry| entry.seq >= start && entry.seq < before;
        page.extend(self.entries.iter().filter(belongs).cloned());
        page.sort_by_key(|entry| entry.seq);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_much_comes_little_is_kept() {
        let mut kept = UnjournaledEntries::default();
        for number in 0..1_000 {
            kept.push(PagerEntry::new(number.to_string(), PagerSection::Text("x".repeat(200_000))));
            assert!(kept.bytes <= MAX_UNJOURNALED_BYTES && kept.entries.len() <= MAX_UNJOURNALED_ENTRIES);
        }
        assert_eq!(kept.entries.back().unwrap().title, "999");
        kept.push(PagerEntry::new("large", PagerSection::Text("é".repeat(MAX_PAGER_ENTRY_BYTES))));
        assert!(kept.entries.back().unwrap().bytes() < MAX_PAGER_ENTRY_BYTES + 200);
    }

    #[test]
    fn what_no_journal_has_stands_where_it_came() {
        let mut kept = UnjournaledEntries::default();
        let at = |seq: u64, title: &str| PagerEntry {
            seq: Seq(seq),
            ..PagerEntry::new(title, PagerSection::Text(String::new()))
        };
        for (seq, title) in [(2, "old"), (5, "here"), (9, "new")] {
            kept.push(at(seq, title));
        }
        let mut page = vec![at(4, "a"), at(5, "b"), at(6, "c")];
        kept.join(&mut page, Seq(4), Seq(9));
        let titles: Vec<&str> = page.iter().map(|entry| entry.title.as_str()).collect();
        assert_eq!(titles, ["a", "b", "here", "c"]);
    }
}
