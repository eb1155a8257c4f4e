//! Simple commands, with assignments and redirections, and functions, which begin like them.

use super::{ParseResult, ShellParser, is_meta};
use crate::shell::tree::{
    ArrayElement, AssignedValue, Assignment, CallArgument, CallNode, RawWord, ShellNode,
};

/// Builtins whose arguments can be assignments.
const DECLARATION_BUILTINS: [&str; 5] = ["declare", "typeset", "local", "export", "readonly"];

impl ShellParser<'_> {
    pub(super) fn call(&mut self) -> ParseResult<ShellNode> {
        let start = self.at;
        let mut call = CallNode::default();
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
                    call.words.push(CallArgument::Assignment(assignment));
                }
            } else {
                let word = self.word()?;
                call.words.push(CallArgument::Word(word));
            }
            end = self.at;
        }
        call.span = start..end;
        let is_empty = call.assignments.is_empty() && call.words.is_empty() && call.redirects.is_empty();
        if is_empty { Err(self.unexpected()) } else { Ok(ShellNode::Call(call)) }
    }

    /// `name ()` and a body.
    fn function(&mut self, call: &CallNode) -> ParseResult<ShellNode> {
        let ([CallArgument::Word(name)], true) =
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

    fn assignment_of(&mut self, call: &CallNode) -> ParseResult<Option<Assignment>> {
        let may_assign = match call.words.first() {
            None => true,
            Some(CallArgument::Word(word)) => {
                DECLARATION_BUILTINS.iter().any(|name| word.is_unquoted_text(name))
            }
            Some(CallArgument::Assignment(_)) => false,
        };
        if may_assign { self.assignment() } else { Ok(None) }
    }

    /// `name=value`, `name+=value`, `name[subscript]=value`; if there is none, nothing is taken.
    fn assignment(&mut self) -> ParseResult<Option<Assignment>> {
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
        let value =
            if self.peek() == Some(b'(') { self.array()? } else { AssignedValue::Scalar(self.value()?) };
        Ok(Some(Assignment { name, subscript, appends, value }))
    }

    /// What stands between brackets.
    fn subscript(&mut self) -> ParseResult<RawWord> {
        self.expect("[")?;
        let start = self.at;
        let parts = self.bracketed(false)?;
        Ok(self.word_of(parts, start))
    }

    fn value(&mut self) -> ParseResult<RawWord> {
        let start = self.at;
        if self.peek().is_none_or(is_meta) && !self.is_process_substitution() {
            return Ok(self.word_of(Vec::new(), start));
        }
        self.word()
    }

    fn array(&mut self) -> ParseResult<AssignedValue> {
        self.bash_only("arrays");
        self.expect("(")?;
        let mut elements = Vec::new();
        loop {
            self.skip_lines()?;
            if self.eat(")") {
                return Ok(AssignedValue::Array(elements));
            }
            elements.push(self.element()?);
        }
    }

    fn element(&mut self) -> ParseResult<ArrayElement> {
        let start = self.at;
        if self.peek() == Some(b'[') {
            let subscript = self.subscript()?;
            if self.eat("+=") || self.eat("=") {
                return Ok(ArrayElement { subscript: Some(subscript), word: self.value()? });
            }
            if self.slice(start, self.at).bytes().any(is_meta) {
                return Err(self.mistake("it is neither an element nor a word"));
            }
            self.at = start;
        }
        Ok(ArrayElement { subscript: None, word: self.word()? })
    }
}
