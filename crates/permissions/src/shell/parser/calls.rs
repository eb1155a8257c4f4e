//! Simple commands, with assignments and redirections, and functions, which begin like them.

use super::{Parsed, Parser, is_meta};
use crate::shell::tree::{Argument, Assignment, Call, Element, Node, RawWord, Value};

/// Builtins whose arguments can be assignments.
const DECLARING: [&str; 5] = ["declare", "typeset", "local", "export", "readonly"];

impl Parser<'_> {
    pub(super) fn call(&mut self) -> Parsed<Node> {
        let start = self.at;
        let mut call = Call::default();
        let mut end = start;
        loop {
            self.skip_blanks();
            if let Some(redirect) = self.redirect()? {
                call.redirects.push(redirect);
            } else if self.peek() == Some(b'(') {
                return self.function(&call);
            } else if self.peek().is_none_or(is_meta) && !self.is_process_substitution() {
                break;
            } else if let Some(assignment) = self.assignment_of(&call)? {
                if call.words.is_empty() {
                    call.assignments.push(assignment);
                } else {
                    call.words.push(Argument::Assignment(assignment));
                }
            } else {
                let word = self.word()?;
                call.words.push(Argument::Word(word));
            }
            end = self.at;
        }
        call.span = start..end;
        let is_empty = call.assignments.is_empty() && call.words.is_empty() && call.redirects.is_empty();
        if is_empty { Err(self.unexpected()) } else { Ok(Node::Call(call)) }
    }

    /// `name ()` and a body.
    fn function(&mut self, call: &Call) -> Parsed<Node> {
        let ([Argument::Word(name)], true) =
            (call.words.as_slice(), call.assignments.is_empty() && call.redirects.is_empty())
        else {
            return Err(self.unexpected());
        };
        let is_pattern = name.literal().is_none_or(|name| name.ends_with(['?', '*', '+', '@', '!']));
        if is_pattern && name.span.end == self.at {
            return Err(self.mistake("it is a pattern to some shells and a function to others"));
        }
        self.expect("(")?;
        self.skip_blanks();
        self.expect(")")?;
        self.function_body(name)
    }

    fn assignment_of(&mut self, call: &Call) -> Parsed<Option<Assignment>> {
        let may_assign = match call.words.first() {
            None => true,
            Some(Argument::Word(word)) => DECLARING.iter().any(|name| word.is_unquoted_text(name)),
            Some(Argument::Assignment(_)) => false,
        };
        if may_assign { self.assignment() } else { Ok(None) }
    }

    /// `name=value`, `name+=value`, `name[subscript]=value`; if there is none, nothing is taken.
    fn assignment(&mut self) -> Parsed<Option<Assignment>> {
        let start = self.at;
        let Some(name) = self.name()? else { return Ok(None) };
        let subscript = if self.peek() == Some(b'[') { Some(self.subscript()?) } else { None };
        let appends = self.is_next("+=");
        if !self.eat("+=") && !self.eat("=") {
            let is_odd = subscript.is_some_and(|subscript| {
                self.slice(subscript.span.start, subscript.span.end).bytes().any(is_meta)
            });
            if is_odd {
                return Err(self.mistake("it is neither an assignment nor a word"));
            }
            self.at = start;
            return Ok(None);
        }
        if appends || subscript.is_some() {
            self.bash_only("`+=` and arrays");
        }
        let value = if self.peek() == Some(b'(') { self.array()? } else { Value::Scalar(self.value()?) };
        Ok(Some(Assignment { name, subscript, appends, value }))
    }

    /// What stands between brackets.
    fn subscript(&mut self) -> Parsed<RawWord> {
        self.expect("[")?;
        let start = self.at;
        let parts = self.bracketed(false)?;
        Ok(self.word_of(parts, start))
    }

    fn value(&mut self) -> Parsed<RawWord> {
        let start = self.at;
        if self.peek().is_none_or(is_meta) && !self.is_process_substitution() {
            return Ok(self.word_of(Vec::new(), start));
        }
        self.word()
    }

    fn array(&mut self) -> Parsed<Value> {
        self.bash_only("arrays");
        self.expect("(")?;
        let mut elements = Vec::new();
        loop {
            self.skip_lines()?;
            if self.eat(")") {
                return Ok(Value::Array(elements));
            }
            elements.push(self.element()?);
        }
    }

    fn element(&mut self) -> Parsed<Element> {
        let start = self.at;
        if self.peek() == Some(b'[') {
            let subscript = self.subscript()?;
            if self.eat("+=") || self.eat("=") {
                return Ok(Element { subscript: Some(subscript), word: self.value()? });
            }
            if self.slice(start, self.at).bytes().any(is_meta) {
                return Err(self.mistake("it is neither an element nor a word"));
            }
            self.at = start;
        }
        Ok(Element { subscript: None, word: self.word()? })
    }
}
