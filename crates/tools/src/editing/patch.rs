//! What a patch says. Two forms are understood: the `*** Begin Patch` envelope, and unified diffs.

use helve_protocol::is_hidden;
use thiserror::Error;

use super::nearest::NearestLine;
use super::replace::MismatchHint;
use super::{envelope, unified};

/// Changes to files, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    pub operations: Vec<PatchOperation>,
}

/// What shall happen to a file. `line` is where the patch says so, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchOperation {
    Add {
        line: usize,
        path: String,
        text: String,
    },
    /// A unified diff shows what it deletes, and then that must be what is there.
    Delete {
        line: usize,
        path: String,
        hunks: Vec<PatchHunk>,
    },
    Update {
        line: usize,
        path: String,
        moved_to: Option<String>,
        hunks: Vec<PatchHunk>,
    },
}

/// Lines that are replaced together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchHunk {
    /// Where it stands in the patch, counted from 1.
    pub line: usize,
    /// Lines that stand before it in the file, one after the other, not necessarily next to it.
    pub anchors: Vec<String>,
    /// The number of its first old line, counted from 1; where it has none, of the line before it.
    pub number: Option<usize>,
    pub lines: Vec<HunkLine>,
    /// Whether it ends where the file does.
    pub is_at_end: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HunkLine {
    pub mark: HunkMark,
    pub content: String,
    /// How it ends, where the patch says it. Otherwise it ends as its neighbours do.
    pub ending: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HunkMark {
    Keep,
    Remove,
    Add,
}

/// Why no file was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line} of the patch: {problem}")]
pub struct PatchError {
    /// Counted from 1.
    pub line: usize,
    pub problem: PatchProblem,
}

/// What is wrong with a patch, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PatchProblem {
    #[error("it is larger than {} MiB", MAX_PATCH_BYTES >> 20)]
    TooLarge,
    #[error(
        "it begins neither with `*** Begin Patch` nor as a unified diff with `--- a/path` and `+++ b/path`"
    )]
    UnknownForm,
    #[error("it does not end with `*** End Patch`, so it may be cut off")]
    NoEnd,
    #[error(
        "it stands in a command that goes to another folder. Leave the command out and give paths from the project's folder"
    )]
    OtherFolder,
    #[error("it changes nothing")]
    Empty,
    #[error(
        "expected `*** Add File: path`, `*** Update File: path`, `*** Delete File: path` or `*** End Patch`, found `{0}`"
    )]
    UnknownHeader(String),
    #[error(
        "the patch goes on after `*** End Patch`. Put all changes between one `*** Begin Patch` and one `*** End Patch`"
    )]
    AfterEnd,
    #[error(
        "files of mode {0} can't be made by a patch. Leave that file out, and use the shell for it (ln -s, chmod)"
    )]
    Mode(String),
    #[error("a path is missing")]
    NoPath,
    #[error("every line of a new file begins with `+`, found `{0}`")]
    NotAdded(String),
    #[error("every line of a hunk begins with a space, `+` or `-`, found `{0}`")]
    NotInHunk(String),
    #[error("this hunk has none of the lines that it counts as old ones, so nobody knows where it belongs")]
    NoOldLines,
    #[error("{0} is to be updated, but there is no change for it")]
    NoHunks(String),
    #[error("expected `{expected}`, found `{found}`")]
    Expected { expected: &'static str, found: String },
    #[error(
        "the diff is of {from} and {to}: a file that gets another name needs `rename from` and `rename to` before it"
    )]
    TwoNames { from: String, to: String },
    #[error("there is no file {0}")]
    Missing(String),
    #[error("{0} is a folder")]
    Folder(String),
    #[error("{path} can't be edited: {reason}")]
    NotText { path: String, reason: String },
    #[error("{path} has no line `{anchor}` after line {after}.{}", nearest_words(.nearest))]
    NoAnchor { path: String, anchor: String, after: usize, nearest: Vec<NearestLine> },
    #[error("{path} does not have the lines that this hunk keeps and removes{}.{}{}", if *.is_at_end { " at its end" } else { "" }, .form.map(MismatchHint::words).unwrap_or_default(), nearest_words(.nearest))]
    NoMatch { path: String, is_at_end: bool, form: Option<MismatchHint>, nearest: Vec<NearestLine> },
    #[error("{path} has the lines of this hunk more than once. Add lines around them, or an `@@ line before it`. They are at:{}", listed(.places))]
    Ambiguous { path: String, places: Vec<NearestLine> },
    #[error("{0} has other lines than those that the patch deletes")]
    NotAllDeleted(String),
    #[error("this hunk changes lines of {0} that another hunk changes")]
    Overlap(String),
}

fn listed(lines: &[NearestLine]) -> String {
    lines.iter().map(|near| format!("\n{near}")).collect()
}

fn nearest_words(lines: &[NearestLine]) -> String {
    if lines.is_empty() { String::new() } else { format!(" The nearest lines are:{}", listed(lines)) }
}

const MAX_PATCH_BYTES: usize = 16 << 20;
/// How much of a line is quoted.
const MAX_QUOTED_CHARS: usize = 120;

/// Understands a patch.
pub fn parse_patch(text: &str) -> Result<Patch, PatchError> {
    if text.len() > MAX_PATCH_BYTES {
        return Err(PatchProblem::TooLarge.at(1));
    }
    let lines = PatchLines::new(text);
    let operations = match envelope::bounds(&lines)? {
        Some(bounds) => envelope::parse(&lines, bounds)?,
        None => unified::parse(&lines)?,
    };
    if operations.is_empty() {
        return Err(PatchProblem::Empty.at(1));
    }
    Ok(Patch { operations })
}

impl PatchProblem {
    pub(super) fn at(self, line: usize) -> PatchError {
        PatchError { line, problem: self }
    }
}

/// As much of a line as an error shows.
pub(super) fn quote(line: &str) -> String {
    let mut quoted = String::new();
    for letter in line.chars().take(MAX_QUOTED_CHARS) {
        if is_unseen(letter) { quoted.extend(letter.escape_unicode()) } else { quoted.push(letter) }
    }
    quoted
}

/// Whether nobody sees this letter, so that two lines with and without it look the same.
pub(super) fn is_unseen(letter: char) -> bool {
    let is_odd_space = letter != ' ' && letter.is_whitespace();
    letter != '\t' && (is_hidden(letter) || is_odd_space)
}

/// The lines of a patch.
pub(super) struct PatchLines<'a> {
    lines: Vec<helve_workspace::FileLine<'a>>,
    /// Whether its line endings are those of the files. If all are the same they are those of whoever sent it.
    says_endings: bool,
}

impl<'a> PatchLines<'a> {
    fn new(text: &'a str) -> PatchLines<'a> {
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
