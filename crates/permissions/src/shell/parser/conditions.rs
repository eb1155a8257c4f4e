//! `[[ … ]]`.

use super::words::ShellWordStyle;
use super::{ParseResult, ShellParser};
use crate::shell::tree::{CompoundNode, RawWord};

/// Operators whose operands are calculated.
const NUMERIC_TESTS: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

impl ShellParser<'_> {
    pub(super) fn condition(&mut self) -> ParseResult<CompoundNode> {
        self.bash_only("`[[`");
        self.expect("[[")?;
        let mut compound = CompoundNode::default();
        let mut open = 0_usize;
        let mut style = ShellWordStyle::Plain;
        loop {
            self.skip_lines()?;
            if self.is_condition_end() {
                self.expect("]]")?;
                break;
            }
            if self.eat("&&") || self.eat("||") {
                continue;
            }
            match self.peek() {
                Some(b'<' | b'>') if !self.is_next("<(") && !self.is_next(">(") => self.at += 1,
                Some(b'(') if style == ShellWordStyle::Plain => {
                    self.at += 1;
                    open += 1;
                }
                Some(b')') if open > 0 => {
                    self.at += 1;
                    open -= 1;
                }
                _ => {
                    let word = self.word_in(style)?;
                    style = style_after(&word);
                    compound.words.push(word);
                }
            }
        }
        if open > 0 || compound.words.is_empty() {
            return Err(self.unexpected());
        }
        compound.calculations = calculated(&compound.words);
        Ok(compound)
    }

    fn is_condition_end(&mut self) -> bool {
        self.is_next("]]") && {
            let start = self.at;
            self.eat("]]");
            let ends = self.peek().is_none_or(super::is_meta);
            self.at = start;
            ends
        }
    }
}

/// How the word after an operator is written.
fn style_after(word: &RawWord) -> ShellWordStyle {
    match word.parts.as_slice() {
        [crate::shell::tree::ShellWordPart::Text(text)] => match text.as_str() {
            "=" | "==" | "!=" => ShellWordStyle::Pattern,
            "=~" => ShellWordStyle::Regex,
            _ => ShellWordStyle::Plain,
        },
        _ => ShellWordStyle::Plain,
    }
}

/// The words beside an operator on numbers, and those whose variable is looked at by its name.
fn calculated(words: &[RawWord]) -> Vec<RawWord> {
    let is_numeric = |word: &RawWord| NUMERIC_TESTS.iter().any(|operator| word.is_unquoted_text(operator));
    let names = |word: &RawWord| word.is_unquoted_text("-v") || word.is_unquoted_text("-R");
    let mut found = Vec::new();
    for window in words.windows(2) {
        if let [first, second] = window {
            if is_numeric(second) {
                found.push(first.clone());
            }
            if is_numeric(first) || names(first) {
                found.push(second.clone());
            }
        }
    }
    found
}
