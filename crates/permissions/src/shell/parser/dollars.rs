//! What a `$` begins.

use std::rc::Rc;

use super::arithmetic::NOT_ARITHMETIC;
use super::{ParseResult, ShellParser, is_name, is_name_start};
use crate::shell::tree::{ParameterExpansion, ParameterOperator, ShellWordPart, WordExpansion};

impl ShellParser<'_> {
    /// Reads what a `$` begins. One that begins nothing stands for itself.
    pub(super) fn dollar(&mut self, is_quoted: bool, parts: &mut Vec<ShellWordPart>) -> ParseResult<()> {
        self.at += 1;
        let part = match self.peek() {
            Some(b'\'') if !is_quoted => return self.escaped_quotes(parts),
            Some(b'"') if !is_quoted => {
                self.bash_only("`$\"`");
                let mut inner = Vec::new();
                self.double_quotes(&mut inner)?;
                ShellWordPart::Expansion { what: WordExpansion::Translated(inner), is_quoted: true }
            }
            _ => match self.dollar_expansion(is_quoted)? {
                Some(what) => ShellWordPart::Expansion { what, is_quoted },
                None if is_quoted => ShellWordPart::Quoted("$".to_owned()),
                None => ShellWordPart::Text("$".to_owned()),
            },
        };
        parts.push(part);
        Ok(())
    }

    /// What the shell puts in the place of a `$` and what follows it: a value, the output of a command, a number.
    fn dollar_expansion(&mut self, is_quoted: bool) -> ParseResult<Option<WordExpansion>> {
        Ok(Some(match self.peek() {
            Some(b'(') if self.is_arithmetic() => {
                self.expect("((")?;
                WordExpansion::Arithmetic(self.calculation("))")?.parts)
            }
            Some(b'(') => {
                if self.is_next("((") {
                    self.doubt(NOT_ARITHMETIC);
                }
                self.expect("(")?;
                WordExpansion::Command(Rc::new(self.substituted()?))
            }
            Some(b'[') => {
                self.bash_only("`$[`");
                self.at += 1;
                WordExpansion::Arithmetic(self.calculation("]")?.parts)
            }
            Some(b'{') => {
                self.at += 1;
                let parameter = self.nested(|parser| parser.parameter(is_quoted))?;
                WordExpansion::Parameter(Box::new(parameter))
            }
            Some(byte) if is_name_start(byte) => {
                let name = self.name()?.unwrap_or_default();
                WordExpansion::Parameter(Box::new(ParameterExpansion {
                    name,
                    ..ParameterExpansion::default()
                }))
            }
            Some(byte) if is_special(byte) => {
                let name: String = self.take()?.into_iter().collect();
                let is_many = name == "@";
                WordExpansion::Parameter(Box::new(ParameterExpansion {
                    name,
                    is_many,
                    ..ParameterExpansion::default()
                }))
            }
            _ => return Ok(None),
        }))
    }

    /// What stands between `${` and `}`.
    fn parameter(&mut self, is_quoted: bool) -> ParseResult<ParameterExpansion> {
        let start = self.at;
        let mut parameter = ParameterExpansion::default();
        self.parameter_name(&mut parameter)?;
        if self.peek() == Some(b'[') {
            self.at += 1;
            parameter.subscript = Some(self.bracketed(is_quoted)?);
        }
        let lists_names = parameter.is_indirect && (self.is_next("*}") || self.is_next("@}"));
        if lists_names {
            self.at += 2;
            return Ok(ParameterExpansion {
                is_many: true,
                is_indirect: false,
                is_length: true,
                ..parameter
            });
        }
        parameter.operator = self.operator()?;
        parameter.operand = self.operand(is_quoted)?;
        if parameter.operator == ParameterOperator::None && !parameter.operand.is_empty() {
            return Err(self.mistake_at(start, "what stands in `${…}` can't be read"));
        }
        parameter.is_many = parameter.is_indirect || self.slice(start, self.at).contains('@');
        Ok(parameter)
    }

    fn parameter_name(&mut self, parameter: &mut ParameterExpansion) -> ParseResult<()> {
        if self.peek() == Some(b'#') && !self.is_next("#}") {
            let start = self.at;
            self.at += 1;
            parameter.is_length = true;
            let begins = self.peek().is_some_and(|byte| is_name_start(byte) || is_special(byte));
            if begins && self.bare_name(parameter)? && matches!(self.peek(), Some(b'}' | b'[')) {
                return Ok(());
            }
            self.at = start;
            parameter.is_length = false;
        }
        if self.peek() == Some(b'!') && !self.is_next("!}") {
            self.at += 1;
            parameter.is_indirect = true;
        }
        if self.bare_name(parameter)? {
            return Ok(());
        }
        Err(self.mistake("what stands in `${…}` can't be read"))
    }

    /// A name, a number, or one of the special parameters.
    fn bare_name(&mut self, parameter: &mut ParameterExpansion) -> ParseResult<bool> {
        parameter.name.clear();
        match self.peek() {
            Some(byte) if is_name(byte) => {
                let only_digits = byte.is_ascii_digit();
                let fits = |byte: u8| if only_digits { byte.is_ascii_digit() } else { is_name(byte) };
                while self.peek().is_some_and(fits) {
                    parameter.name.extend(self.take()?);
                }
                Ok(true)
            }
            Some(byte) if is_special(byte) => {
                parameter.name.extend(self.take()?);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn operator(&mut self) -> ParseResult<ParameterOperator> {
        let operator = match self.peek() {
            Some(b':') => {
                self.at += 1;
                match self.peek() {
                    Some(b'-' | b'+' | b'?') => ParameterOperator::Default,
                    Some(b'=') => ParameterOperator::Assign,
                    _ => return Ok(ParameterOperator::Substring),
                }
            }
            Some(b'-' | b'+' | b'?') => ParameterOperator::Default,
            Some(b'=') => ParameterOperator::Assign,
            Some(b'#' | b'%' | b'/' | b'^' | b',' | b'~') => ParameterOperator::Pattern,
            Some(b'@') => {
                self.at += 1;
                let letter = self.peek().map_or('}', char::from);
                return Ok(ParameterOperator::Transform(letter));
            }
            _ => return Ok(ParameterOperator::None),
        };
        self.at += 1;
        Ok(operator)
    }

    /// Up to the `}`.
    fn operand(&mut self, is_quoted: bool) -> ParseResult<Vec<ShellWordPart>> {
        let mut parts = Vec::new();
        loop {
            match self.peek() {
                None => return Err(self.mistake("`${` is not closed")),
                Some(b'}') => {
                    self.at += 1;
                    return Ok(parts);
                }
                Some(byte) => self.inner_byte(byte, is_quoted, &mut parts)?,
            }
        }
    }

    /// Up to the `]`, others within counted.
    pub(super) fn bracketed(&mut self, is_quoted: bool) -> ParseResult<Vec<ShellWordPart>> {
        let mut parts = Vec::new();
        let mut open = 1_usize;
        loop {
            match self.peek() {
                None => return Err(self.mistake("`[` is not closed")),
                Some(b'[') => open += 1,
                Some(b']') if open == 1 => {
                    self.at += 1;
                    return Ok(parts);
                }
                Some(b']') => open -= 1,
                Some(byte) => {
                    self.inner_byte(byte, is_quoted, &mut parts)?;
                    continue;
                }
            }
            self.text_char(&mut parts)?;
        }
    }

    fn inner_byte(&mut self, byte: u8, is_quoted: bool, parts: &mut Vec<ShellWordPart>) -> ParseResult<()> {
        match byte {
            b'\'' if is_quoted => Err(self.mistake("a single quote stands in `${…}` between double quotes")),
            b'<' | b'>' if !is_quoted && self.is_process_substitution() => {
                Err(self.mistake("`<(` stands in `${…}`"))
            }
            b'$' => self.dollar(is_quoted, parts),
            b'`' => self.backticks(is_quoted, parts),
            _ => self.plain_byte(byte, parts),
        }
    }

    /// `$'…'`. Bytes that are no text make it a word that can't be known.
    fn escaped_quotes(&mut self, parts: &mut Vec<ShellWordPart>) -> ParseResult<()> {
        self.bash_only("`$'`");
        self.at += 1;
        let start = self.at;
        loop {
            match self.take()? {
                None => return Err(self.mistake_at(start, "a quote is not closed")),
                Some('\\') => {
                    self.take()?;
                }
                Some('\'') => break,
                Some(_) => {}
            }
        }
        parts.push(match super::escapes::undo(self.slice(start, self.at - 1)) {
            Some(text) => ShellWordPart::Quoted(text),
            None => ShellWordPart::Expansion { what: WordExpansion::Translated(Vec::new()), is_quoted: true },
        });
        Ok(())
    }
}

/// Parameters that are not names.
fn is_special(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!')
}
