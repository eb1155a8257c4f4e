//! Finding a block of whole lines in a text.

use std::borrow::Cow;
use std::cell::OnceCell;

use helve_workspace::{FileLine, lines};

use super::normalize::plain;
use super::shift::INDENT_CHARS;

/// How much two lines may differ and still be taken for the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineMatchMode {
    /// Only in how they end.
    Exact,
    /// In space at the end and typographic letters.
    Folded,
    /// In that and in indentation.
    IgnoreIndent,
}

impl LineMatchMode {
    /// What is the same in all lines that are alike.
    pub(super) fn key(self, line: &str) -> Cow<'_, str> {
        match self {
            LineMatchMode::Exact => Cow::Borrowed(line),
            LineMatchMode::Folded => fold(line.trim_end()),
            LineMatchMode::IgnoreIndent => fold(line.trim_end().trim_start_matches(INDENT_CHARS)),
        }
    }
}

/// How many letters and digits a text must have to be recognised at another depth: a lone `}` could be any.
pub(super) const MIN_RECOGNIZABLE_LETTERS: usize = 3;

/// Whether a text has that many letters and digits.
pub(super) fn has_letters(text: &str, count: usize) -> bool {
    text.chars().filter(|letter| letter.is_alphanumeric()).take(count).count() == count
}

fn fold(line: &str) -> Cow<'_, str> {
    if line.is_ascii() { Cow::Borrowed(line) } else { line.chars().map(plain).collect() }
}

/// A text as lines that can be searched.
pub(super) struct SearchableLines<'a> {
    pub(super) lines: Vec<FileLine<'a>>,
    indexes: [OnceCell<LineKeyIndex>; 3],
}

/// The keys of all lines in one string, so that the standard library's search, which is linear, finds blocks of them.
struct LineKeyIndex {
    keys: String,
    /// Where the key of each line begins.
    starts: Vec<usize>,
}

impl LineKeyIndex {
    fn new(lines: &[FileLine<'_>], likeness: LineMatchMode) -> LineKeyIndex {
        let mut index = LineKeyIndex { keys: "\n".to_owned(), starts: Vec::with_capacity(lines.len()) };
        for line in lines {
            index.starts.push(index.keys.len());
            index.keys.push_str(&likeness.key(line.content));
            index.keys.push('\n');
        }
        index
    }
}

impl<'a> SearchableLines<'a> {
    pub(super) fn new(text: &'a str) -> SearchableLines<'a> {
        SearchableLines { lines: lines(text).collect(), indexes: Default::default() }
    }

    /// Which lines such blocks begin at, from a line on; no more than `limit`.
    pub(super) fn find(
        &self,
        block: &[&str],
        likeness: LineMatchMode,
        from: usize,
        limit: usize,
    ) -> Vec<usize> {
        let [exact, folded, bare] = &self.indexes;
        let cell = match likeness {
            LineMatchMode::Exact => exact,
            LineMatchMode::Folded => folded,
            LineMatchMode::IgnoreIndent => bare,
        };
        let index = cell.get_or_init(|| LineKeyIndex::new(&self.lines, likeness));
        let mut wanted = "\n".to_owned();
        for line in block {
            wanted.push_str(&likeness.key(line));
            wanted.push('\n');
        }
        let mut found = Vec::new();
        let mut line = from;
        while found.len() < limit
            // A block begins with the break before its first line.
            && let Some(start) = index.starts.get(line).and_then(|start| start.checked_sub(1))
            && let Some(at) = index.keys.get(start..).and_then(|rest| rest.find(&wanted))
        {
            line = index.starts.partition_point(|key| *key <= start + at);
            found.push(line);
            line += 1;
        }
        found
    }

    /// The contents of some lines.
    pub(super) fn contents(&self, from: usize, count: usize) -> Vec<&'a str> {
        self.lines.iter().skip(from).take(count).map(|line| line.content).collect()
    }

    /// How lines end around a line.
    pub(super) fn ending_near(&self, line: usize) -> Option<&'a str> {
        let before = self.lines.iter().take(line).next_back();
        let around = before.into_iter().chain(self.lines.get(line));
        around.map(|line| line.ending).find(|ending| !ending.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_by_whole_lines() {
        let blocks = SearchableLines::new("ab\nb\r\nab\nb\n  “b”  ");
        assert_eq!(blocks.find(&["b"], LineMatchMode::Exact, 0, 9), [1, 3]);
        assert_eq!(blocks.find(&["b"], LineMatchMode::Exact, 2, 9), [3]);
        assert_eq!(blocks.find(&["ab", "b"], LineMatchMode::Exact, 0, 9), [0, 2]);
        assert_eq!(blocks.find(&["ab", "b"], LineMatchMode::Exact, 0, 1), [0]);
        assert_eq!(blocks.find(&["  \"b\""], LineMatchMode::Folded, 0, 9), [4]);
        assert_eq!(blocks.find(&["b", "\t\"b\""], LineMatchMode::IgnoreIndent, 0, 9), [3]);
        assert_eq!(blocks.find(&["b", "c"], LineMatchMode::IgnoreIndent, 0, 9), [] as [usize; 0]);
    }

    #[test]
    fn blocks_may_overlap() {
        let blocks = SearchableLines::new("x\nx\nx\n");
        assert_eq!(blocks.find(&["x", "x"], LineMatchMode::Exact, 0, 9), [0, 1]);
    }
}
