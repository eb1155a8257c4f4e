//! What runs, and which files are touched, while words and redirections are expanded.

use super::expand;
use super::judge::{Context, Judge};
use super::taint::Flow;
use super::tree::{Expansion, Operator, Parameter, Part, RawWord, Redirect, RedirectKind};
use super::{Access, Target, Word};

impl Judge<'_> {
    /// Judges what a word runs while it is expanded.
    pub(super) fn walk(&mut self, word: &RawWord, context: &Context) {
        self.walk_parts(&word.parts, &context.at(&word.span));
    }

    fn walk_parts(&mut self, parts: &[Part], context: &Context) {
        for part in parts {
            let Part::Expansion { what, .. } = part else { continue };
            match what {
                Expansion::Parameter(parameter) => self.parameter(parameter, context),
                Expansion::Command(nodes) | Expansion::Process(nodes) => {
                    self.nodes(nodes, &context.without_input())
                }
                Expansion::Arithmetic(parts) => {
                    self.walk_parts(parts, context);
                    self.taint.calculate(Flow::of(parts), context.span());
                }
                Expansion::Translated(parts) => self.walk_parts(parts, context),
            }
        }
    }

    fn parameter(&mut self, parameter: &Parameter, context: &Context) {
        if let Some(subscript) = &parameter.subscript {
            self.walk_parts(subscript, context);
            self.taint.calculate(Flow::of(subscript), context.span());
        }
        self.walk_parts(&parameter.operand, context);
        let is_list_of_names = parameter.operand.is_empty() && parameter.subscript.is_some();
        if parameter.is_indirect && !is_list_of_names {
            self.taint.calculate(Flow::name(&parameter.name), context.span());
        }
        match parameter.operator {
            Operator::Substring => self.taint.calculate(Flow::of(&parameter.operand), context.span()),
            Operator::Assign => {
                self.assigned(&parameter.name, Flow::of(&parameter.operand), context);
                self.push(Vec::new(), vec![(parameter.name.clone(), None)], context);
            }
            Operator::Transform('P') => {
                self.unknown("a value is expanded like a prompt, which can run code", context)
            }
            Operator::None | Operator::Default | Operator::Pattern | Operator::Transform(_) => {}
        }
    }

    /// Notes the files of redirections; returns the standard input if it stands in the text.
    pub(super) fn redirects(&mut self, redirects: &[Redirect], context: &Context) -> Option<String> {
        let mut input = None;
        for redirect in redirects {
            if let Some(variable) = &redirect.variable {
                self.number_into(variable, context);
            }
            let mut text = None;
            match &redirect.kind {
                RedirectKind::Read(word) => self.target(word, Access::Read, context),
                RedirectKind::Write(word) => self.target(word, Access::Write, context),
                RedirectKind::Append(word) => self.target(word, Access::Append, context),
                RedirectKind::ReadWrite(word) => {
                    self.target(word, Access::Read, context);
                    self.target(word, Access::Write, context);
                }
                RedirectKind::Duplicate(word) => {
                    let is_descriptor =
                        |text: String| text.trim_end_matches('-').bytes().all(|byte| byte.is_ascii_digit());
                    if word.literal().is_none_or(|text| !is_descriptor(text)) {
                        self.target(word, Access::Write, context);
                    }
                }
                RedirectKind::HereString(word) => {
                    self.walk(word, context);
                    text = expand::unsplit(word).known().map(str::to_owned);
                }
                RedirectKind::HereDocument(body) => {
                    if let Some(body) = body.get() {
                        self.walk(body, context);
                        text = body.literal();
                    }
                }
            }
            if redirect.is_input {
                input = text;
            }
        }
        input
    }

    /// `{variable}>`: the number of the descriptor goes into the variable, or into an element whose subscript is
    /// calculated. A number can be dangerous too: it can be the name of a file.
    fn number_into(&mut self, variable: &str, context: &Context) {
        let name = match variable.split_once('[') {
            Some((name, subscript)) => {
                self.taint.calculate(Flow::text(subscript), context.span());
                self.arrays.insert(name.to_owned());
                name
            }
            None => variable,
        };
        self.assigned(name, Flow::nothing(), context);
        self.push(Vec::new(), vec![(name.to_owned(), None)], context);
    }

    fn target(&mut self, word: &RawWord, access: Access, context: &Context) {
        self.walk(word, context);
        let mut words = self.expand(word, context);
        let path = match (words.pop(), words.is_empty()) {
            (Some(path), true) if path != Word::Any => path,
            _ => Word::One,
        };
        self.touches(path, access);
    }

    /// Notes that a file is read or written.
    pub(super) fn touches(&mut self, path: Word, access: Access) {
        let text = path.known().unwrap_or_default();
        let is_stream =
            matches!(text, "/dev/null" | "/dev/stdin" | "/dev/stdout" | "/dev/stderr" | "/dev/tty")
                || text.starts_with("/dev/fd/");
        let is_network = text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/");
        let list = if access == Access::Read { &mut self.reading.reads } else { &mut self.reading.writes };
        if !is_stream {
            list.push(Target { path, access: if is_network { Access::Network } else { access } });
        }
    }
}
