//! The grammar of POSIX shell with bash's constructs, by recursive descent over the text.
//!
//! There are no tokens: what a character means depends on where it stands, so each rule looks at the text itself.
//! [`ShellParser::peek`] hides continued lines everywhere but between single quotes.

pub(super) mod arithmetic;
mod calls;
mod compounds;
mod conditions;
mod dollars;
mod escapes;
mod here_documents;
mod lists;
mod redirects;
mod words;

use super::budget::{AnalysisBudget, MAX_SHELL_NESTING};
use super::tree::{RawWord, ShellNode, ShellSpan, ShellTree};
use super::{ShellDialect, UnknownConstruct};
use here_documents::PendingHereDocument;

type ParseResult<T> = Result<T, UnknownConstruct>;

/// Reads a script. What stands before a mistake is in the tree, since a shell would run it.
pub(super) fn parse(text: &str, dialect: ShellDialect, budget: &AnalysisBudget, depth: usize) -> ShellTree {
    let mut parser = ShellParser::new(text, dialect, budget, depth);
    let mut nodes = Vec::new();
    if let Err(mistake) = parser.script(&mut nodes) {
        parser.doubts.push(mistake);
    }
    ShellTree { nodes, doubts: parser.doubts }
}

pub(super) struct ShellParser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    dialect: ShellDialect,
    budget: &'a AnalysisBudget,
    /// Here-documents whose text has yet to come.
    pending: Vec<PendingHereDocument>,
    doubts: Vec<UnknownConstruct>,
    /// How many `$(` are open.
    substitutions: usize,
}

impl<'a> ShellParser<'a> {
    fn new(
        text: &'a str,
        dialect: ShellDialect,
        budget: &'a AnalysisBudget,
        depth: usize,
    ) -> ShellParser<'a> {
        ShellParser {
            text,
            at: 0,
            depth,
            dialect,
            budget,
            pending: Vec::new(),
            doubts: Vec::new(),
            substitutions: 0,
        }
    }

    fn script(&mut self, nodes: &mut Vec<ShellNode>) -> ParseResult<()> {
        if let Some(at) = self.text.find(['\0', '\u{1}', '\u{7f}']) {
            return Err(self.mistake_at(at, "there is a control character in it"));
        }
        self.list_into(nodes)?;
        match self.peek() {
            None => self.end_of_text(),
            Some(_) => Err(self.unexpected()),
        }
    }

    /// The byte that is next, continued lines aside.
    fn peek(&mut self) -> Option<u8> {
        while self.rest().starts_with(b"\\\n") {
            self.at += 2;
        }
        self.raw()
    }

    fn raw(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn slice(&self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or_default()
    }

    /// The next character as it stands there. Every step through the text is counted here.
    fn take(&mut self) -> ParseResult<Option<char>> {
        if !self.budget.steps(1) {
            return Err(self.mistake("it is too tangled to read"));
        }
        let next = self.text.get(self.at..).and_then(|rest| rest.chars().next());
        self.at += next.map_or(0, char::len_utf8);
        Ok(next)
    }

    /// Goes past these bytes if they are next, continued lines in between or not.
    fn eat(&mut self, wanted: &str) -> bool {
        let start = self.at;
        for byte in wanted.bytes() {
            if self.peek() != Some(byte) {
                self.at = start;
                return false;
            }
            self.at += 1;
        }
        true
    }

    fn is_next(&mut self, wanted: &str) -> bool {
        let start = self.at;
        let is_next = self.eat(wanted);
        self.at = start;
        is_next
    }

    fn expect(&mut self, wanted: &str) -> ParseResult<()> {
        if self.eat(wanted) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Blanks and a comment; the end of the line stays.
    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        if self.raw() == Some(b'#') {
            let rest = self.rest();
            self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        }
    }

    /// Blanks, comments and ends of lines.
    fn skip_lines(&mut self) -> ParseResult<()> {
        self.skip_blanks();
        while self.peek() == Some(b'\n') {
            self.newline()?;
            self.skip_blanks();
        }
        Ok(())
    }

    /// Reads something that can contain itself.
    fn nested<T>(&mut self, rule: impl FnOnce(&mut Self) -> ParseResult<T>) -> ParseResult<T> {
        if self.depth >= MAX_SHELL_NESTING {
            return Err(self.mistake("it is nested too deep"));
        }
        self.depth += 1;
        let result = rule(self);
        self.depth -= 1;
        result
    }

    /// Reads another text that is part of this one, such as what stands between backticks.
    fn inner<T>(
        &mut self,
        text: &str,
        rule: impl FnOnce(&mut ShellParser<'_>) -> ParseResult<T>,
    ) -> ParseResult<T> {
        let span = self.here();
        let mut parser = ShellParser::new(text, self.dialect, self.budget, self.depth + 1);
        let result = if self.depth >= MAX_SHELL_NESTING {
            Err(self.mistake("it is nested too deep"))
        } else {
            rule(&mut parser)
        };
        self.doubts
            .extend(parser.doubts.into_iter().map(|doubt| UnknownConstruct { span: span.clone(), ..doubt }));
        result.map_err(|mistake| UnknownConstruct { span, ..mistake })
    }

    fn here(&self) -> ShellSpan {
        self.at..self.at
    }

    fn mistake(&self, reason: &str) -> UnknownConstruct {
        self.mistake_at(self.at, reason)
    }

    fn mistake_at(&self, at: usize, reason: &str) -> UnknownConstruct {
        UnknownConstruct { reason: reason.to_owned(), span: at..at }
    }

    fn unexpected(&mut self) -> UnknownConstruct {
        match self.peek() {
            None => self.mistake("it ends too early"),
            Some(_) => {
                let next: String = self
                    .text
                    .get(self.at..)
                    .unwrap_or_default()
                    .chars()
                    .take(1)
                    .flat_map(char::escape_debug)
                    .collect();
                self.mistake(&format!("`{next}` can't stand there"))
            }
        }
    }

    fn doubt(&mut self, reason: &str) {
        let doubt = self.mistake(reason);
        self.doubts.push(doubt);
    }

    /// Notes something that not every `sh` understands.
    fn bash_only(&mut self, what: &str) {
        if self.dialect == ShellDialect::Posix {
            self.doubt(&format!("not every shell reads {what} in the same way"));
        }
    }

    fn word_of(&self, parts: Vec<super::tree::ShellWordPart>, start: usize) -> RawWord {
        RawWord { parts, span: start..self.at }
    }
}

/// What ends a word where nothing is quoted.
fn is_meta(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
