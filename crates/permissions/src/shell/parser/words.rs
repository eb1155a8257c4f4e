//! Words and their quotes.

use std::rc::Rc;

use super::{ParseResult, ShellParser, is_meta};
use crate::shell::tree::{RawWord, ShellNode, ShellWordPart, WordExpansion};

/// How a word is written, which depends on where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShellWordStyle {
    Plain,
    /// After `==` in `[[ ]]`: `@(a|b)` is part of it.
    Pattern,
    /// After `=~`: so are parentheses and bars.
    Regex,
}

impl ShellParser<'_> {
    pub(super) fn word(&mut self) -> ParseResult<RawWord> {
        self.word_in(ShellWordStyle::Plain)
    }

    /// A word; there must be one.
    pub(super) fn word_in(&mut self, style: ShellWordStyle) -> ParseResult<RawWord> {
        self.skip_continuations();
        let start = self.at;
        let mut parts = Vec::new();
        let mut open = 0_usize;
        while let Some(byte) = self.peek() {
            if self.is_process_substitution() {
                self.process_substitution(&mut parts)?;
            } else if is_meta(byte) {
                match byte {
                    b'(' if open > 0 || opens_group(style, &parts) => open += 1,
                    b')' if open > 0 => open -= 1,
                    b'|' if open > 0 || style == ShellWordStyle::Regex && !self.is_next("||") => {}
                    b' ' | b'\t' | b'<' | b'>' | b'&' | b';' if open > 0 => {}
                    _ => break,
                }
                self.text_char(&mut parts)?;
            } else {
                self.plain_byte(byte, &mut parts)?;
            }
        }
        if open > 0 || parts.is_empty() {
            return Err(self.unexpected());
        }
        Ok(self.word_of(parts, start))
    }

    fn skip_continuations(&mut self) {
        self.peek();
    }

    /// One character, quote or expansion where nothing is quoted.
    pub(super) fn plain_byte(&mut self, byte: u8, parts: &mut Vec<ShellWordPart>) -> ParseResult<()> {
        match byte {
            b'\'' => self.single_quotes(parts),
            b'"' => self.double_quotes(parts),
            b'\\' => {
                self.at += 1;
                let next = self.take()?.unwrap_or('\\');
                push_quoted(parts, next);
                Ok(())
            }
            b'$' => self.dollar(false, parts),
            b'`' => self.backticks(false, parts),
            _ => self.text_char(parts),
        }
    }

    pub(super) fn text_char(&mut self, parts: &mut Vec<ShellWordPart>) -> ParseResult<()> {
        if let Some(next) = self.take()? {
            match parts.last_mut() {
                Some(ShellWordPart::Text(text)) => text.push(next),
                _ => parts.push(ShellWordPart::Text(next.to_string())),
            }
        }
        Ok(())
    }

    pub(super) fn single_quotes(&mut self, parts: &mut Vec<ShellWordPart>) -> ParseResult<()> {
        self.at += 1;
        let start = self.at;
        let Some(length) = self.rest().iter().position(|byte| *byte == b'\'') else {
            return Err(self.mistake_at(start, "a quote is not closed"));
        };
        self.at += length + 1;
        parts.push(ShellWordPart::Quoted(self.slice(start, start + length).to_owned()));
        Ok(())
    }

    pub(super) fn double_quotes(&mut self, parts: &mut Vec<ShellWordPart>) -> ParseResult<()> {
        self.at += 1;
        parts.push(ShellWordPart::Quoted(String::new()));
        loop {
            match self.raw() {
                None => return Err(self.mistake("a quote is not closed")),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') if self.rest().starts_with(b"\\\"") => {
                    self.at += 1;
                    let quote = self.take()?;
                    quote.into_iter().for_each(|quote| push_quoted(parts, quote));
                }
                Some(byte) => self.quoted_byte(byte, parts)?,
            }
        }
    }

    /// One character or expansion between double quotes, or in a here-document.
    pub(super) fn quoted_byte(&mut self, byte: u8, parts: &mut Vec<ShellWordPart>) -> ParseResult<()> {
        match byte {
            b'$' => return self.dollar(true, parts),
            b'`' => return self.backticks(true, parts),
            b'\\' => {
                self.at += 1;
                match self.raw() {
                    Some(b'\n') => {
                        self.at += 1;
                        return Ok(());
                    }
                    Some(b'$' | b'`' | b'\\') => {}
                    _ => {
                        push_quoted(parts, '\\');
                        return Ok(());
                    }
                }
            }
            _ => {}
        }
        let next = self.take()?;
        next.into_iter().for_each(|next| push_quoted(parts, next));
        Ok(())
    }

    /// `` `…` ``: ends at the first backtick that is not escaped, and is read for itself once its own escapes are undone.
    pub(super) fn backticks(&mut self, is_quoted: bool, parts: &mut Vec<ShellWordPart>) -> ParseResult<()> {
        self.at += 1;
        let mut script = String::new();
        loop {
            match self.take()? {
                None => return Err(self.mistake("a backtick is not closed")),
                Some('`') => break,
                Some('"') if is_quoted => return Err(self.mistake("quotes inside backticks inside quotes")),
                Some('\\') => match self.take()? {
                    Some(next @ ('$' | '`' | '\\')) => script.push(next),
                    Some('"') if is_quoted => {
                        return Err(self.mistake("quotes inside backticks inside quotes"));
                    }
                    next => script.extend(std::iter::once('\\').chain(next)),
                },
                Some(next) => script.push(next),
            }
        }
        let nodes = self.inner(&script, |parser| {
            let mut nodes = Vec::new();
            parser.script(&mut nodes)?;
            Ok(nodes)
        })?;
        parts.push(ShellWordPart::Expansion { what: WordExpansion::Command(Rc::new(nodes)), is_quoted });
        Ok(())
    }

    fn process_substitution(&mut self, parts: &mut Vec<ShellWordPart>) -> ParseResult<()> {
        self.bash_only("`<(`");
        self.peek();
        self.at += 1;
        self.expect("(")?;
        let nodes = self.substituted()?;
        let what = WordExpansion::Process(Rc::new(nodes));
        parts.push(ShellWordPart::Expansion { what, is_quoted: true });
        Ok(())
    }

    /// Commands up to the parenthesis that closes a substitution.
    pub(super) fn substituted(&mut self) -> ParseResult<Vec<ShellNode>> {
        let outer = std::mem::take(&mut self.pending);
        self.substitutions += 1;
        let nodes = self.nested(|parser| {
            let mut nodes = Vec::new();
            parser.list_into(&mut nodes)?;
            parser.expect(")")?;
            Ok(nodes)
        })?;
        self.substitutions -= 1;
        self.end_of_text()?;
        self.pending = outer;
        Ok(nodes)
    }
}

/// Whether a parenthesis here belongs to the word.
fn opens_group(style: ShellWordStyle, parts: &[ShellWordPart]) -> bool {
    let after_mark =
        matches!(parts.last(), Some(ShellWordPart::Text(text)) if text.ends_with(['?', '*', '+', '@', '!']));
    match style {
        ShellWordStyle::Plain => false,
        ShellWordStyle::Pattern => after_mark,
        ShellWordStyle::Regex => true,
    }
}

pub(super) fn push_quoted(parts: &mut Vec<ShellWordPart>, next: char) {
    match parts.last_mut() {
        Some(ShellWordPart::Quoted(text)) => text.push(next),
        _ => parts.push(ShellWordPart::Quoted(next.to_string())),
    }
}
