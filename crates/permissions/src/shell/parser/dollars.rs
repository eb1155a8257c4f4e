//! What a `$` begins.

use std::rc::Rc;

use super::arithmetic::NOT_ARITHMETIC;
use super::{Parsed, Parser, is_name, is_name_start};
use crate::shell::tree::{Expansion, Operator, Parameter, Part};

impl Parser<'_> {
    pub(super) fn dollar(&mut self, is_quoted: bool, parts: &mut Vec<Part>) -> Parsed<()> {
        self.at += 1;
        let what = match self.peek() {
            Some(b'\'') if !is_quoted => return self.escaped_quotes(parts),
            Some(b'"') if !is_quoted => {
                self.bash_only("`$\"`");
                let mut inner = Vec::new();
                self.double_quotes(&mut inner)?;
                parts.push(Part::Expansion { what: Expansion::Translated(inner), is_quoted: true });
                return Ok(());
            }
            Some(b'(') if self.is_arithmetic() => {
                self.expect("((")?;
                Expansion::Arithmetic(self.calculation("))")?.parts)
            }
            Some(b'(') => {
                if self.is_next("((") {
                    self.doubt(NOT_ARITHMETIC);
                }
                self.expect("(")?;
                Expansion::Command(Rc::new(self.substituted()?))
            }
            Some(b'[') => {
                self.bash_only("`$[`");
                self.at += 1;
                Expansion::Arithmetic(self.calculation("]")?.parts)
            }
            Some(b'{') => {
                self.at += 1;
                let parameter = self.nested(|parser| parser.parameter(is_quoted))?;
                Expansion::Parameter(Box::new(parameter))
            }
            Some(byte) if is_name_start(byte) => {
                let name = self.name()?.unwrap_or_default();
                Expansion::Parameter(Box::new(Parameter { name, ..Parameter::default() }))
            }
            Some(byte) if is_special(byte) => {
                let name: String = self.take()?.into_iter().collect();
                let is_many = name == "@";
                Expansion::Parameter(Box::new(Parameter { name, is_many, ..Parameter::default() }))
            }
            _ => {
                let dollar = "$".to_owned();
                parts.push(if is_quoted { Part::Quoted(dollar) } else { Part::Text(dollar) });
                return Ok(());
            }
        };
        parts.push(Part::Expansion { what, is_quoted });
        Ok(())
    }

    /// What stands between `${` and `}`.
    fn parameter(&mut self, is_quoted: bool) -> Parsed<Parameter> {
        let start = self.at;
        let mut parameter = Parameter::default();
        self.parameter_name(&mut parameter)?;
        if self.peek() == Some(b'[') {
            self.at += 1;
            parameter.subscript = Some(self.bracketed(is_quoted)?);
        }
        let lists_names = parameter.is_indirect && (self.is_next("*}") || self.is_next("@}"));
        if lists_names {
            self.at += 2;
            return Ok(Parameter { is_many: true, is_indirect: false, is_length: true, ..parameter });
        }
        parameter.operator = self.operator()?;
        parameter.operand = self.operand(is_quoted)?;
        if parameter.operator == Operator::None && !parameter.operand.is_empty() {
            return Err(self.mistake_at(start, "what stands in `${…}` can't be read"));
        }
        parameter.is_many = parameter.is_indirect || self.slice(start, self.at).contains('@');
        Ok(parameter)
    }

    fn parameter_name(&mut self, parameter: &mut Parameter) -> Parsed<()> {
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
    fn bare_name(&mut self, parameter: &mut Parameter) -> Parsed<bool> {
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

    fn operator(&mut self) -> Parsed<Operator> {
        let operator = match self.peek() {
            Some(b':') => {
                self.at += 1;
                match self.peek() {
                    Some(b'-' | b'+' | b'?') => Operator::Default,
                    Some(b'=') => Operator::Assign,
                    _ => return Ok(Operator::Substring),
                }
            }
            Some(b'-' | b'+' | b'?') => Operator::Default,
            Some(b'=') => Operator::Assign,
            Some(b'#' | b'%' | b'/' | b'^' | b',' | b'~') => Operator::Pattern,
            Some(b'@') => {
                self.at += 1;
                let letter = self.peek().map_or('}', char::from);
                return Ok(Operator::Transform(letter));
            }
            _ => return Ok(Operator::None),
        };
        self.at += 1;
        Ok(operator)
    }

    /// Up to the `}`.
    fn operand(&mut self, is_quoted: bool) -> Parsed<Vec<Part>> {
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
    pub(super) fn bracketed(&mut self, is_quoted: bool) -> Parsed<Vec<Part>> {
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

    fn inner_byte(&mut self, byte: u8, is_quoted: bool, parts: &mut Vec<Part>) -> Parsed<()> {
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
    fn escaped_quotes(&mut self, parts: &mut Vec<Part>) -> Parsed<()> {
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
            Some(text) => Part::Quoted(text),
            None => Part::Expansion { what: Expansion::Translated(Vec::new()), is_quoted: true },
        });
        Ok(())
    }
}

/// Parameters that are not names.
fn is_special(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!')
}
