//! What is calculated: `(( ))`, `$(( ))`, `$[ ]`.

use super::{ParseResult, ShellParser};
use crate::shell::tree::RawWord;

/// Bash reads it twice then, and takes here-documents in it for commands.
pub(super) const NOT_ARITHMETIC: &str = "`((` begins something that is no calculation";

impl ShellParser<'_> {
    /// Whether `((` here begins a calculation and not two groups: whether the parenthesis that closes the inner one is
    /// followed by another.
    pub(super) fn is_arithmetic(&mut self) -> bool {
        let start = self.at;
        let is_arithmetic = self.eat("((") && self.closes_twice();
        self.at = start;
        is_arithmetic
    }

    fn closes_twice(&mut self) -> bool {
        let mut open = 1_usize;
        let mut quote = None;
        let mut is_escaped = false;
        for (at, byte) in self.rest().iter().enumerate() {
            if is_escaped {
                is_escaped = false;
            } else if *byte == b'\\' && quote != Some(b'\'') {
                is_escaped = true;
            } else if quote.is_some() {
                quote = quote.filter(|quote| quote != byte);
            } else {
                match byte {
                    b'\'' | b'"' => quote = Some(*byte),
                    b'(' => open += 1,
                    b')' => open -= 1,
                    _ => {}
                }
                if open == 0 {
                    self.budget.steps(at);
                    return self.rest().get(at + 1) == Some(&b')');
                }
            }
        }
        self.budget.steps(self.rest().len());
        false
    }

    /// A calculation up to what closes it. Anything but numbers, names, operators and expansions is refused.
    pub(super) fn calculation(&mut self, closing: &str) -> ParseResult<RawWord> {
        self.nested(|parser| parser.calculated(closing))
    }

    fn calculated(&mut self, closing: &str) -> ParseResult<RawWord> {
        let start = self.at;
        let mut parts = Vec::new();
        // What has been opened: only what was opened last can be closed.
        let mut open = Vec::new();
        loop {
            if open.is_empty() && self.eat(closing) {
                return Ok(self.word_of(parts, start));
            }
            match self.peek() {
                None => return Err(self.mistake("a calculation is not closed")),
                Some(b'$') => {
                    self.dollar(true, &mut parts)?;
                    continue;
                }
                Some(b'`') => {
                    self.backticks(true, &mut parts)?;
                    continue;
                }
                Some(b'"') => {
                    self.at += 1;
                    continue;
                }
                Some(byte @ (b'(' | b'[')) => open.push(byte),
                Some(b')') if open.pop() == Some(b'(') => {}
                Some(b']') if open.pop() == Some(b'[') => {}
                Some(b'<' | b'>') if self.is_process_substitution() => {
                    return Err(self.mistake("`<(` stands in a calculation"));
                }
                Some(byte) if is_calculation(byte) => {}
                Some(_) => return Err(self.mistake("a calculation can't be read")),
            }
            self.text_char(&mut parts)?;
        }
    }
}

fn is_calculation(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" \t\n_+-*/%<>=!&|^~?:,#@".contains(&byte)
}

/// The names in a text that is calculated.
pub(in crate::shell) fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|char: char| !char.is_ascii_alphanumeric() && char != '_')
        .filter(|word| word.bytes().next().is_some_and(super::is_name_start))
}
