//! Lists and pipelines of commands.

use super::{ParseResult, ShellParser};
use crate::shell::ShellDialect;
use crate::shell::tree::ShellNode;

/// Words that mean something where a command begins.
const RESERVED_WORDS: [&str; 22] = [
    "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "select",
    "function", "time", "coproc", "{", "}", "!", "[[", "]]", "in",
];

impl ShellParser<'_> {
    /// Commands up to whatever can't begin one: the end, `)`, `;;`, or a word like `done`.
    pub(super) fn list_into(&mut self, nodes: &mut Vec<ShellNode>) -> ParseResult<()> {
        loop {
            self.skip_lines()?;
            if self.is_list_end() {
                return Ok(());
            }
            self.and_or(nodes)?;
            self.skip_blanks();
            let is_case_end = self.is_next(";;") || self.is_next(";&");
            match self.peek() {
                Some(b'\n') => {}
                Some(b';' | b'&') if !is_case_end => self.at += 1,
                _ if self.is_list_end() => return Ok(()),
                _ => return Err(self.unexpected()),
            }
        }
    }

    /// A list with at least one command.
    pub(super) fn list(&mut self) -> ParseResult<Vec<ShellNode>> {
        let mut nodes = Vec::new();
        self.list_into(&mut nodes)?;
        if nodes.is_empty() { Err(self.unexpected()) } else { Ok(nodes) }
    }

    fn is_list_end(&mut self) -> bool {
        let ending = ["then", "elif", "else", "fi", "do", "done", "esac", "}"];
        self.reserved().is_some_and(|word| ending.contains(&word))
            || matches!(self.peek(), None | Some(b')'))
            || self.is_next(";;")
            || self.is_next(";&")
    }

    fn and_or(&mut self, nodes: &mut Vec<ShellNode>) -> ParseResult<()> {
        loop {
            self.pipeline(nodes)?;
            self.skip_blanks();
            if !self.eat("&&") && !self.eat("||") {
                return Ok(());
            }
            self.skip_lines()?;
        }
    }

    fn pipeline(&mut self, nodes: &mut Vec<ShellNode>) -> ParseResult<()> {
        if self.pipeline_prefix()? {
            return Ok(());
        }
        loop {
            nodes.push(self.nested(ShellParser::command)?);
            self.skip_blanks();
            if self.is_next("||") || !self.eat("|") {
                return Ok(());
            }
            if self.eat("&") {
                self.bash_only("`|&`");
            }
            if let Some(ShellNode::Call(call)) = nodes.last_mut() {
                call.is_piped = true;
            }
            self.skip_lines()?;
        }
    }

    /// `!` and `time`. True if nothing more follows, which is allowed after them.
    fn pipeline_prefix(&mut self) -> ParseResult<bool> {
        let mut prefixes = 0;
        loop {
            self.skip_blanks();
            match self.reserved() {
                Some("!") => {
                    self.expect("!")?;
                    if self.peek() == Some(b'(') {
                        self.doubt("`!(` is a pattern to some shells and a command to others");
                    }
                }
                Some("time") if self.dialect == ShellDialect::Bash => {
                    self.expect("time")?;
                    self.time_options();
                }
                Some("time") => {
                    self.time_program()?;
                    break;
                }
                _ => break,
            }
            prefixes += 1;
        }
        let ends_here = matches!(self.peek(), None | Some(b'\n' | b';' | b')' | b'&'));
        Ok(prefixes > 0 && ends_here && !self.is_next("&>"))
    }

    /// To some shells `time` is a program, and is judged as one; but only if a plain program follows is that the same to all.
    fn time_program(&mut self) -> ParseResult<()> {
        let start = self.at;
        self.expect("time")?;
        self.skip_blanks();
        let is_reserved = self.reserved().is_some();
        let rest = self.rest();
        let end = rest.iter().position(|byte| super::is_meta(*byte)).unwrap_or(rest.len());
        let next = rest.get(..end).unwrap_or_default();
        let is_plain = next.first().is_some_and(u8::is_ascii_alphabetic) && !next.contains(&b'=');
        if is_reserved || !is_plain {
            self.bash_only("what follows `time`");
        }
        self.at = start;
        Ok(())
    }

    fn time_options(&mut self) {
        for option in ["-p", "--"] {
            self.skip_blanks();
            let start = self.at;
            if self.eat(option) && !self.peek().is_none_or(super::is_meta) {
                self.at = start;
            }
        }
    }

    /// The reserved word that is next, if one is. It is not taken.
    pub(super) fn reserved(&mut self) -> Option<&'static str> {
        let first = self.peek()?;
        let start = self.at;
        let found =
            RESERVED_WORDS.into_iter().filter(|word| word.as_bytes().first() == Some(&first)).find(|word| {
                self.at = start;
                self.eat(word) && self.peek().is_none_or(super::is_meta)
            });
        self.at = start;
        found
    }

    pub(super) fn expect_word(&mut self, word: &str) -> ParseResult<()> {
        self.skip_lines()?;
        if self.reserved() == Some(word) { self.expect(word) } else { Err(self.unexpected()) }
    }

    /// The end of a line, and with it the texts of here-documents.
    pub(super) fn newline(&mut self) -> ParseResult<()> {
        self.at += 1;
        if !self.budget.steps(1) {
            return Err(self.mistake("it is too tangled to read"));
        }
        self.here_documents()
    }
}
