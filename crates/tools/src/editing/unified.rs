//! Patches as unified diffs: `--- a/path`, `+++ b/path`, `@@ -1,2 +1,3 @@`.
//!
//! Models count badly, so the counts of a hunk only say where it ends when its lines leave that open.

use super::patch::{HunkMark, PatchError, PatchHunk, PatchOperation, PatchProblem, quote};
use super::patch_lines::{HunkRange, PatchLines, hunk_header};

const DEV_NULL: &str = "/dev/null";

pub(super) fn parse(lines: &PatchLines<'_>) -> Result<Vec<PatchOperation>, PatchError> {
    let mut reader = UnifiedDiffReader { lines, at: 0, blank_until: 0 };
    let mut operations = Vec::new();
    // Whatever stands before the first file is for people.
    while reader.peek().is_some() && !reader.is_at_file() {
        reader.at += 1;
    }
    if reader.peek().is_none() {
        return Err(PatchProblem::UnknownForm.at(1));
    }
    while reader.peek().is_some() {
        operations.push(reader.file()?);
        reader.skip_between()?;
    }
    Ok(operations)
}

struct UnifiedDiffReader<'a, 'b> {
    lines: &'b PatchLines<'a>,
    at: usize,
    /// Empty lines up to here belong to a hunk that goes on after them.
    blank_until: usize,
}

/// What is said of a file before its hunks.
#[derive(Default)]
struct DiffFileHeader {
    line: usize,
    /// From `--- ` and `+++ `.
    from: Option<String>,
    to: Option<String>,
    /// From `diff --git a/x b/x`.
    git: Option<String>,
    renamed_from: Option<String>,
    renamed_to: Option<String>,
    /// What kind of file it becomes, and who may do what with it.
    mode: Option<String>,
    is_new: bool,
    is_deleted: bool,
}

impl<'a> UnifiedDiffReader<'a, '_> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at)
    }

    fn number(&self) -> usize {
        self.at + 1
    }

    fn is_at_file(&self) -> bool {
        self.peek().is_some_and(|line| line.starts_with("diff --git ")) || self.is_at_names()
    }

    /// Whether `--- ` and `+++ ` stand here, one after the other.
    fn is_at_names(&self) -> bool {
        let next = self.lines.get(self.at + 1);
        self.peek().is_some_and(|line| line.starts_with("--- "))
            && next.is_some_and(|line| line.starts_with("+++ "))
    }

    fn file(&mut self) -> Result<PatchOperation, PatchError> {
        let header = self.header();
        let mut hunks = Vec::new();
        while let Some(hunk) = self.hunk()? {
            hunks.push(hunk);
        }
        header.operation(hunks, self.lines)
    }

    fn header(&mut self) -> DiffFileHeader {
        let mut header = DiffFileHeader { line: self.number(), ..DiffFileHeader::default() };
        if let Some(names) = self.peek().and_then(|line| line.strip_prefix("diff --git ")) {
            header.git = same_name(names);
            self.at += 1;
        }
        while let Some(line) = self.peek().filter(|_| !self.is_at_file()) {
            if hunk_header(line).is_some() || !header.take(line) {
                break;
            }
            self.at += 1;
        }
        if self.is_at_names() {
            let name =
                |at: usize, mark: &str| self.lines.get(at).and_then(|line| line.strip_prefix(mark)).map(name);
            let (from, to) = (name(self.at, "--- "), name(self.at + 1, "+++ "));
            let is_of = |git: &String| {
                [&from, &to].iter().any(|name| name.as_ref().is_some_and(|name| name.ends_with(git)))
            };
            // An empty file has no names of its own; these are then of the next one.
            if header.git.as_ref().is_none_or(is_of) {
                (header.from, header.to) = (from, to);
                self.at += 2;
            }
        }
        header
    }

    fn hunk(&mut self) -> Result<Option<PatchHunk>, PatchError> {
        let Some(said) = self.peek().and_then(hunk_header) else { return Ok(None) };
        let number = said.old.map(|old| old.first);
        let anchors = said.anchor.map(str::to_owned).into_iter().collect();
        let mut hunk = PatchHunk { line: self.number(), anchors, number, ..PatchHunk::default() };
        let mut left = HunkLinesLeft::new(said.old, said.new);
        self.at += 1;
        while let Some(line) = self.peek() {
            if line.starts_with('\\') {
                if let Some(last) = hunk.lines.last_mut() {
                    self.lines.without_break(self.at - 1, last);
                }
                self.at += 1;
                continue;
            }
            if left.is_none() && self.is_after_hunk(line) {
                break;
            }
            let Some(line) = self.lines.in_hunk(self.at) else {
                if is_between(line) || hunk_header(line).is_some() {
                    break;
                }
                return Err(PatchProblem::NotInHunk(quote(line)).at(self.number()));
            };
            left.take(line.mark);
            hunk.lines.push(line);
            self.at += 1;
        }
        if hunk.lines.is_empty() {
            let found = quote(self.peek().unwrap_or("the end of the patch"));
            return Err(PatchProblem::Expected { expected: "a line of the hunk", found }.at(self.number()));
        }
        if hunk.is_torn(said.old) {
            return Err(PatchProblem::NoOldLines.at(hunk.line));
        }
        Ok(Some(hunk))
    }

    /// Whether a line that could belong to a hunk stands after it, now that all lines that were counted are there.
    fn is_after_hunk(&mut self, line: &str) -> bool {
        self.is_at_signature() || self.is_at_file() || line.is_empty() && !self.goes_on_after_blank()
    }

    /// Whether this is the end of a mail: `-- ` and a version.
    fn is_at_signature(&self) -> bool {
        let is_version = |line: &str| line.starts_with(|letter: char| letter.is_ascii_digit());
        let is_blank = |at| self.lines.get(at).is_none_or(|line| line.trim().is_empty());
        self.peek() == Some("-- ")
            && self.lines.get(self.at + 1).is_some_and(is_version)
            && (2..4).all(|offset| is_blank(self.at + offset))
            && self.at + 4 >= self.lines.len()
    }

    /// Whether the lines after empty ones are of the same hunk, which then counted wrongly.
    fn goes_on_after_blank(&mut self) -> bool {
        if self.at < self.blank_until {
            return true;
        }
        let is_said = |at: &usize| self.lines.get(*at).is_some_and(|line| !line.is_empty());
        let Some(next) = (self.at..self.lines.len()).find(is_said) else { return false };
        let there = UnifiedDiffReader { lines: self.lines, at: next, blank_until: 0 };
        let goes_on = self.lines.in_hunk(next).is_some() && !there.is_at_file() && !there.is_at_signature();
        self.blank_until = if goes_on { next } else { 0 };
        goes_on
    }

    /// Goes to the next file, over what diffs have between files and nothing else.
    fn skip_between(&mut self) -> Result<(), PatchError> {
        while let Some(line) = self.peek().filter(|_| !self.is_at_file()) {
            if self.is_at_signature() {
                self.at = self.lines.len();
            } else if is_between(line) {
                self.at += 1;
            } else {
                return Err(PatchProblem::NotInHunk(quote(line)).at(self.number()));
            }
        }
        Ok(())
    }
}

/// Whether such a line stands between files: blank, a fence, or the beginning of the next.
fn is_between(line: &str) -> bool {
    line.trim().is_empty()
        || line.starts_with("```")
        || line.starts_with("diff --git ")
        || line.starts_with("Index: ")
        || line.starts_with("=====")
}

/// How many lines a hunk still has by its own count.
struct HunkLinesLeft {
    old: usize,
    new: usize,
}

impl HunkLinesLeft {
    fn new(old: Option<HunkRange>, new: Option<HunkRange>) -> HunkLinesLeft {
        let count = |counted: Option<HunkRange>| counted.map_or(0, |counted| counted.count);
        HunkLinesLeft { old: count(old), new: count(new) }
    }

    fn is_none(&self) -> bool {
        self.old == 0 && self.new == 0
    }

    fn take(&mut self, mark: HunkMark) {
        self.old = self.old.saturating_sub(usize::from(mark != HunkMark::Add));
        self.new = self.new.saturating_sub(usize::from(mark != HunkMark::Remove));
    }
}

impl DiffFileHeader {
    /// Whether the line says something about the file.
    fn take(&mut self, line: &str) -> bool {
        if let Some(path) = line.strip_prefix("rename from ") {
            self.renamed_from = Some(unquoted(path));
        } else if let Some(path) = line.strip_prefix("rename to ") {
            self.renamed_to = Some(unquoted(path));
        }
        let mode = line.strip_prefix("new file mode ").or_else(|| line.strip_prefix("new mode "));
        self.mode = mode.map(|mode| mode.trim().to_owned()).or_else(|| self.mode.take());
        self.is_new |= line.starts_with("new file mode");
        self.is_deleted |= line.starts_with("deleted file mode");
        let known = [
            "rename ",
            "new file mode",
            "deleted file mode",
            "index ",
            "similarity index",
            "old mode",
            "new mode",
        ];
        known.iter().any(|start| line.starts_with(start))
    }

    fn operation(self, hunks: Vec<PatchHunk>, lines: &PatchLines<'_>) -> Result<PatchOperation, PatchError> {
        let line = self.line;
        match self.mode.as_deref() {
            None | Some("100644" | "100664") => {}
            Some("100755") if self.is_new || !hunks.is_empty() => {}
            Some(mode) => return Err(PatchProblem::Mode(mode.to_owned()).at(line)),
        }
        let is_new = self.is_new || self.from.as_deref() == Some(DEV_NULL);
        let is_deleted = self.is_deleted || self.to.as_deref() == Some(DEV_NULL);
        if let (Some(path), Some(to)) = (&self.renamed_from, &self.renamed_to) {
            return Ok(PatchOperation::Update {
                line,
                path: path.clone(),
                moved_to: Some(to.clone()),
                hunks,
            });
        }
        let path = self.path()?;
        match (is_new, is_deleted) {
            (true, _) => Ok(PatchOperation::Add { line, path, text: added(&hunks, lines)? }),
            (_, true) => Ok(PatchOperation::Delete { line, path, hunks }),
            _ if hunks.is_empty() => Err(PatchProblem::NoHunks(path).at(line)),
            _ => Ok(PatchOperation::Update { line, path, moved_to: None, hunks }),
        }
    }

    /// The file's name, without the `a/` and `b/` that git puts before it.
    fn path(self) -> Result<String, PatchError> {
        let (from, to) = match (self.from, self.to) {
            (Some(from), Some(to)) => (from, to),
            _ => return self.git.ok_or_else(|| PatchProblem::NoPath.at(self.line)),
        };
        let has_prefixes =
            (from.starts_with("a/") || from == DEV_NULL) && (to.starts_with("b/") || to == DEV_NULL);
        let bare = |name: String, prefix: &str| match name.strip_prefix(prefix) {
            Some(bare) if has_prefixes => bare.to_owned(),
            _ => name,
        };
        let (from, to) = (bare(from, "a/"), bare(to, "b/"));
        match (from.as_str(), to.as_str()) {
            (DEV_NULL, DEV_NULL) | ("", _) | (_, "") => Err(PatchProblem::NoPath.at(self.line)),
            (DEV_NULL, _) => Ok(to),
            (_, DEV_NULL) => Ok(from),
            _ if from == to || from.strip_suffix(".orig") == Some(&to) => Ok(to),
            _ => Err(PatchProblem::TwoNames { from, to }.at(self.line)),
        }
    }
}

/// The text of a new file.
fn added(hunks: &[PatchHunk], lines: &PatchLines<'_>) -> Result<String, PatchError> {
    let mut text = String::new();
    for hunk in hunks {
        for (offset, line) in hunk.lines.iter().enumerate() {
            if line.mark != HunkMark::Add {
                let found = quote(lines.get(hunk.line + offset).unwrap_or_default());
                return Err(PatchProblem::NotAdded(found).at(hunk.line + offset + 1));
            }
            text.push_str(&line.content);
            text.push_str(line.ending.unwrap_or("\n"));
        }
    }
    Ok(text)
}

/// The name after `--- ` or `+++ `; a date may follow it.
fn name(rest: &str) -> String {
    unquoted(rest.split('\t').next().unwrap_or_default().trim())
}

/// A name as git writes it in quotes if there is something unusual in it: `"\303\251\t.txt"`.
fn unquoted(name: &str) -> String {
    let Some(inside) = name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return name.to_owned();
    };
    let mut bytes = Vec::with_capacity(inside.len());
    let mut rest = inside.bytes();
    while let Some(byte) = rest.next() {
        let escaped = if byte == b'\\' { rest.next() } else { None };
        match escaped {
            None => bytes.push(byte),
            Some(b'a') => bytes.push(7),
            Some(b'b') => bytes.push(8),
            Some(b't') => bytes.push(b'\t'),
            Some(b'n') => bytes.push(b'\n'),
            Some(b'v') => bytes.push(11),
            Some(b'f') => bytes.push(12),
            Some(b'r') => bytes.push(b'\r'),
            Some(first @ b'0'..=b'3') => {
                let digits = [first, rest.next().unwrap_or(b'0'), rest.next().unwrap_or(b'0')];
                let value = digits.iter().fold(0_u8, |value, digit| {
                    value.wrapping_mul(8).wrapping_add(digit.wrapping_sub(b'0') & 7)
                });
                bytes.push(value);
            }
            Some(other) => bytes.push(other),
        }
    }
    // What is no text can't be the name of a file here; as it is written, nothing is found by it.
    String::from_utf8(bytes).unwrap_or_else(|_| name.to_owned())
}

/// The name in `a/x b/x`, if both are the same.
fn same_name(names: &str) -> Option<String> {
    let names = names.trim();
    if let Some((from, to)) = names.strip_prefix('"').and_then(|rest| rest.split_once("\" \"")) {
        let (from, to) = (unquoted(&format!("\"{from}\"")), unquoted(&format!("\"{to}")));
        let (from, to) = (from.strip_prefix("a/")?, to.strip_prefix("b/")?);
        return (from == to).then(|| to.to_owned());
    }
    let middle = names.len() / 2;
    let (from, to) = (names.get(..middle)?, names.get(middle + 1..)?);
    let (from, to) = (from.strip_prefix("a/")?, to.strip_prefix("b/")?);
    (from == to).then(|| from.to_owned())
}
