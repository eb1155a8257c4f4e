//! Patches in the envelope: `*** Begin Patch` … `*** End Patch`.

use std::ops::Range;

use super::patch::{
    HunkLine, HunkMark, PatchError, PatchHunk, PatchOperation, PatchProblem, is_unseen, quote,
};
use super::patch_lines::{PatchLines, hunk_header};

const BEGIN_PATCH: &str = "*** Begin Patch";
const END_PATCH: &str = "*** End Patch";
const ADD_FILE: &str = "*** Add File:";
const DELETE_FILE: &str = "*** Delete File:";
const UPDATE_FILE: &str = "*** Update File:";
const MOVE_TO: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// The lines between the beginning and the end; nothing if this is no envelope. A fence or a here-document around it is
/// left aside.
pub(super) fn bounds(lines: &PatchLines<'_>) -> Result<Option<Range<usize>>, PatchError> {
    let is_wrapping = |line: &str| line.is_empty() || line.starts_with("```") || line.contains("<<");
    let said = (0..lines.len()).filter_map(|at| Some((at, bare(lines.get(at)?))));
    let Some((begin, BEGIN_PATCH)) = said.clone().find(|(_, line)| !is_wrapping(line)) else {
        return Ok(None);
    };
    let goes_elsewhere =
        |line: &str| line.split([';', '&', '(']).any(|part| part.trim_start().starts_with("cd "));
    if let Some((at, _)) = said.clone().take(begin).find(|(_, line)| goes_elsewhere(line)) {
        return Err(PatchProblem::OtherFolder.at(at + 1));
    }
    let is_word = |line: &str| !line.is_empty() && line.chars().all(char::is_alphanumeric);
    let mut last = said.rev().filter(|(_, line)| !line.is_empty() && !line.starts_with("```"));
    let end = match last.next() {
        Some((at, END_PATCH)) => Some(at),
        Some((_, line)) if is_word(line) => {
            last.next().filter(|(_, line)| *line == END_PATCH).map(|(at, _)| at)
        }
        _ => None,
    };
    match end {
        Some(end) => Ok(Some(begin + 1..end)),
        None => Err(PatchProblem::NoEnd.at(lines.len())),
    }
}

/// A line without what nobody sees around it.
fn bare(line: &str) -> &str {
    line.trim_matches(|letter: char| letter.is_whitespace() || is_unseen(letter))
}

pub(super) fn parse(lines: &PatchLines<'_>, bounds: Range<usize>) -> Result<Vec<PatchOperation>, PatchError> {
    let mut reader = EnvelopeReader { lines, at: bounds.start, end: bounds.end };
    let mut operations = Vec::new();
    reader.skip_blank();
    while let Some(line) = reader.peek() {
        operations.push(reader.operation(line.trim())?);
        reader.skip_blank();
    }
    Ok(operations)
}

struct EnvelopeReader<'a, 'b> {
    lines: &'b PatchLines<'a>,
    at: usize,
    end: usize,
}

impl<'a> EnvelopeReader<'a, '_> {
    fn peek(&self) -> Option<&'a str> {
        (self.at < self.end).then(|| self.lines.get(self.at)).flatten()
    }

    /// The number of the line, for people.
    fn number(&self) -> usize {
        self.at + 1
    }

    fn skip_blank(&mut self) {
        while self.peek().is_some_and(|line| line.trim().is_empty()) {
            self.at += 1;
        }
    }

    fn operation(&mut self, header: &str) -> Result<PatchOperation, PatchError> {
        let line = self.number();
        let path = |rest: &str| match rest.trim() {
            "" => Err(PatchProblem::NoPath.at(line)),
            path => Ok(path.to_owned()),
        };
        self.at += 1;
        if let Some(rest) = header.strip_prefix(ADD_FILE) {
            Ok(PatchOperation::Add { line, path: path(rest)?, text: self.added()? })
        } else if let Some(rest) = header.strip_prefix(DELETE_FILE) {
            Ok(PatchOperation::Delete { line, path: path(rest)?, hunks: Vec::new() })
        } else if let Some(rest) = header.strip_prefix(UPDATE_FILE) {
            self.update(line, path(rest)?)
        } else if header == END_PATCH {
            Err(PatchProblem::AfterEnd.at(line))
        } else {
            Err(PatchProblem::UnknownHeader(quote(header)).at(line))
        }
    }

    fn added(&mut self) -> Result<String, PatchError> {
        let mut text = String::new();
        // Blank lines belong to the file only if more of it follows.
        let mut blank = String::new();
        while let Some(line) = self.peek().filter(|line| !is_header(line)) {
            match line.strip_prefix('+') {
                Some(content) => {
                    text.push_str(&std::mem::take(&mut blank));
                    text.push_str(&self.lines.added(self.at, content));
                }
                None if line.trim().is_empty() => blank.push_str(&self.lines.added(self.at, "")),
                None => return Err(PatchProblem::NotAdded(quote(line)).at(self.number())),
            }
            self.at += 1;
        }
        Ok(text)
    }

    fn update(&mut self, line: usize, path: String) -> Result<PatchOperation, PatchError> {
        let mut moved_to = None;
        if let Some(rest) = self.peek().and_then(|line| line.trim().strip_prefix(MOVE_TO)) {
            if rest.trim().is_empty() {
                return Err(PatchProblem::NoPath.at(self.number()));
            }
            moved_to = Some(rest.trim().to_owned());
            self.at += 1;
        }
        let mut hunks = Vec::new();
        while let Some(hunk) = self.hunk()? {
            hunks.push(hunk);
        }
        if hunks.is_empty() && moved_to.is_none() {
            return Err(PatchProblem::NoHunks(path).at(line));
        }
        Ok(PatchOperation::Update { line, path, moved_to, hunks })
    }

    fn hunk(&mut self) -> Result<Option<PatchHunk>, PatchError> {
        self.skip_to_hunk();
        if self.peek().is_none_or(is_header) {
            return Ok(None);
        }
        let mut hunk = PatchHunk { line: self.number(), ..PatchHunk::default() };
        let mut old = None;
        while let Some(header) = self.peek().and_then(hunk_header) {
            hunk.anchors.extend(header.anchor.map(str::to_owned));
            old = header.old;
            self.at += 1;
        }
        while let Some(line) = self.peek() {
            if line.trim_end() == END_OF_FILE {
                hunk.is_at_end = true;
                self.at += 1;
                break;
            }
            if is_header(line) || hunk_header(line).is_some() {
                break;
            }
            let Some(line) = self.lines.in_hunk(self.at) else {
                return Err(PatchProblem::NotInHunk(quote(line)).at(self.number()));
            };
            hunk.lines.push(line);
            self.at += 1;
        }
        if hunk.lines.iter().all(HunkLine::is_blank_context) {
            return Err(PatchProblem::Expected { expected: "a line to add or remove", found: self.found() }
                .at(self.number()));
        }
        if hunk.is_torn(old) {
            return Err(PatchProblem::NoOldLines.at(hunk.line));
        }
        hunk.number = old.map(|old| old.first);
        Ok(Some(hunk))
    }

    /// Skips empty lines before `@@` or the next file. Before anything else they belong to the hunk.
    fn skip_to_hunk(&mut self) {
        let next = (self.at..self.end).find(|at| self.lines.get(*at).is_some_and(|line| !line.is_empty()));
        let next = next.unwrap_or(self.end);
        let line = self.lines.get(next).filter(|_| next < self.end);
        if line.is_none_or(|line| is_header(line) || hunk_header(line).is_some()) {
            self.at = next;
        }
    }

    fn found(&self) -> String {
        quote(self.lines.get(self.at).unwrap_or("the end of the patch"))
    }
}

/// Whether a line begins the next file.
fn is_header(line: &str) -> bool {
    line.starts_with("*** ") && line.trim_end() != END_OF_FILE
}

impl HunkLine {
    fn is_blank_context(&self) -> bool {
        self.mark == HunkMark::Keep && self.content.is_empty()
    }
}
