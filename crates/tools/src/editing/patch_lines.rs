//! The lines of a patch, as both of its forms have them: those of hunks, and the headers of hunks.

use super::patch::{HunkLine, HunkMark, PatchHunk};

/// The lines of a patch.
pub(super) struct PatchLines<'a> {
    lines: Vec<helve_workspace::FileLine<'a>>,
    /// Whether its line endings are those of the files. If all are the same they are those of whoever sent it.
    says_endings: bool,
}

impl<'a> PatchLines<'a> {
    pub(super) fn new(text: &'a str) -> PatchLines<'a> {
        let lines = helve_workspace::lines(text).collect();
        PatchLines {
            lines,
            says_endings: helve_workspace::LineEndings::of(text) == helve_workspace::LineEndings::Mixed,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// A line without its ending.
    pub(super) fn get(&self, at: usize) -> Option<&'a str> {
        self.lines.get(at).map(|line| line.content)
    }

    /// How a line ends, where that says something about the file.
    fn ending(&self, at: usize) -> Option<&'static str> {
        match self.lines.get(at).filter(|_| self.says_endings)?.ending {
            "\r\n" => Some("\r\n"),
            "\n" => Some("\n"),
            _ => None,
        }
    }

    /// A line of a new file, whole.
    pub(super) fn added(&self, at: usize, content: &str) -> String {
        format!("{content}{}", self.ending(at).unwrap_or("\n"))
    }

    /// The line as one of a hunk. An empty one is kept: many editors and models drop the space before nothing.
    pub(super) fn in_hunk(&self, at: usize) -> Option<HunkLine> {
        let line = self.get(at)?;
        let (mark, content) = match line.chars().next() {
            None => (HunkMark::Keep, line),
            Some(' ') => (HunkMark::Keep, line.strip_prefix(' ')?),
            Some('-') => (HunkMark::Remove, line.strip_prefix('-')?),
            Some('+') => (HunkMark::Add, line.strip_prefix('+')?),
            Some(_) => return None,
        };
        Some(HunkLine { mark, content: content.to_owned(), ending: self.ending(at) })
    }

    /// Takes the break from the last line of a hunk, after `\ No newline at end of file`.
    pub(super) fn without_break(&self, at: usize, line: &mut HunkLine) {
        // What looked like a `\r\n` is a `\r` and the patch's own break.
        if self.says_endings && self.lines.get(at).is_some_and(|line| line.ending == "\r\n") {
            line.content.push('\r');
        }
        line.ending = Some("");
    }
}

impl PatchHunk {
    /// Whether it says of itself that it has old lines, and has none: nobody knows where it belongs.
    pub(super) fn is_torn(&self, header: Option<HunkRange>) -> bool {
        let has_old = self.lines.iter().any(|line| line.mark != HunkMark::Add);
        !has_old && header.is_some_and(|old| old.count > 0)
    }
}

/// What stands behind `@@`.
#[derive(Default, Debug, PartialEq, Eq)]
pub(super) struct HunkHeader<'a> {
    pub(super) anchor: Option<&'a str>,
    pub(super) old: Option<HunkRange>,
    pub(super) new: Option<HunkRange>,
}

/// `12,3` or `12`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HunkRange {
    pub(super) first: usize,
    pub(super) count: usize,
}

/// Understands `@@`, `@@ -1,2 +1,3 @@ anything`, `@@ ... @@`, `@@ a line before it` and `@@ a line before it @@`.
pub(super) fn hunk_header(line: &str) -> Option<HunkHeader<'_>> {
    let rest = line.strip_prefix("@@")?;
    let mut words = rest.split_whitespace();
    if let (Some(old), Some(new)) =
        (words.next().and_then(|word| counted(word, '-')), words.next().and_then(|word| counted(word, '+')))
    {
        return Some(HunkHeader { anchor: None, old: Some(old), new: Some(new) });
    }
    let anchor = rest.strip_prefix(' ').unwrap_or(rest).trim_end();
    let anchor = anchor.strip_suffix("@@").map_or(anchor, str::trim_end);
    let says_nothing = anchor.chars().all(|letter| letter == '.' || letter == '…' || letter.is_whitespace());
    Some(HunkHeader { anchor: (!says_nothing).then_some(anchor), old: None, new: None })
}

fn counted(word: &str, sign: char) -> Option<HunkRange> {
    let numbers = word.strip_prefix(sign)?;
    let (first, count) = numbers.split_once(',').unwrap_or((numbers, "1"));
    Some(HunkRange { first: first.parse().ok()?, count: count.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunk_headers_come_in_many_forms() {
        let anchor = |text| Some(HunkHeader { anchor: Some(text), ..HunkHeader::default() });
        assert_eq!(hunk_header("@@"), Some(HunkHeader::default()));
        assert_eq!(hunk_header("@@ ... @@"), Some(HunkHeader::default()));
        assert_eq!(hunk_header("@@   def f():"), anchor("  def f():"));
        assert_eq!(hunk_header("@@ def f(): @@"), anchor("def f():"));
        let counted = |first, count| Some(HunkRange { first, count });
        let header = hunk_header("@@ -12,3 +14 @@ fn main() {").unwrap();
        assert_eq!((header.anchor, header.old, header.new), (None, counted(12, 3), counted(14, 1)));
        assert_eq!(hunk_header("x"), None);
    }
}
