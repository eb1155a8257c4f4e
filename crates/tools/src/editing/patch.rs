//! What a patch says. Two forms are understood: the `*** Begin Patch` envelope, and unified diffs.

use helve_protocol::is_hidden;
use thiserror::Error;

use super::nearest::NearestLine;
use super::replace::MismatchHint;

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

/// A larger patch is not read.
pub(super) const MAX_PATCH_BYTES: usize = 16 << 20;
/// How much of a line is quoted.
const MAX_QUOTED_CHARS: usize = 120;

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
