//! What runs, and which files are touched, while words and redirections are expanded.

use super::{CommandAnalyzer, ShellRunContext};
use crate::shell::expand;
use crate::shell::taint::ValueFlow;
use crate::shell::tree::{
    ParameterExpansion, ParameterOperator, RawWord, ShellRedirect, ShellRedirectKind, ShellWordPart,
    WordExpansion,
};
use crate::shell::{CommandTarget, ShellWord, TargetAccess};

impl CommandAnalyzer<'_> {
    /// Judges what a word runs while it is expanded.
    pub(super) fn walk(&mut self, word: &RawWord, context: &ShellRunContext) {
        self.walk_parts(&word.parts, &context.at(&word.span));
    }

    fn walk_parts(&mut self, parts: &[ShellWordPart], context: &ShellRunContext) {
        for part in parts {
            let ShellWordPart::Expansion { what, .. } = part else { continue };
            match what {
                WordExpansion::Parameter(parameter) => self.parameter(parameter, context),
                WordExpansion::Command(nodes) | WordExpansion::Process(nodes) => {
                    self.nodes(nodes, &context.without_input())
                }
                WordExpansion::Arithmetic(parts) => {
                    self.walk_parts(parts, context);
                    self.taint.calculate(ValueFlow::of(parts), context.span());
                }
                WordExpansion::Translated(parts) => self.walk_parts(parts, context),
            }
        }
    }

    fn parameter(&mut self, parameter: &ParameterExpansion, context: &ShellRunContext) {
        if let Some(subscript) = &parameter.subscript {
            self.walk_parts(subscript, context);
            self.taint.calculate(ValueFlow::of(subscript), context.span());
        }
        self.walk_parts(&parameter.operand, context);
        let is_list_of_names = parameter.operand.is_empty() && parameter.subscript.is_some();
        if parameter.is_indirect && !is_list_of_names {
            self.taint.calculate(ValueFlow::name(&parameter.name), context.span());
        }
        match parameter.operator {
            ParameterOperator::Substring => {
                self.taint.calculate(ValueFlow::of(&parameter.operand), context.span())
            }
            ParameterOperator::Assign => {
                self.note_assignment(&parameter.name, ValueFlow::of(&parameter.operand), context);
                self.push(Vec::new(), vec![(parameter.name.clone(), None)], context);
            }
            ParameterOperator::Transform('P') => {
                self.unknown("a value is expanded like a prompt, which can run code", context)
            }
            ParameterOperator::None
            | ParameterOperator::Default
            | ParameterOperator::Pattern
            | ParameterOperator::Transform(_) => {}
        }
    }

    /// Notes the files of redirections; returns the standard input if it stands in the text.
    pub(super) fn redirects(
        &mut self,
        redirects: &[ShellRedirect],
        context: &ShellRunContext,
    ) -> Option<String> {
        let mut input = None;
        for redirect in redirects {
            if let Some(variable) = &redirect.variable {
                self.number_into(variable, context);
            }
            let mut text = None;
            match &redirect.kind {
                ShellRedirectKind::Read(word) => self.target(word, TargetAccess::Read, context),
                ShellRedirectKind::Write(word) => self.target(word, TargetAccess::Write, context),
                ShellRedirectKind::Append(word) => self.target(word, TargetAccess::Append, context),
                ShellRedirectKind::ReadWrite(word) => {
                    self.target(word, TargetAccess::Read, context);
                    self.target(word, TargetAccess::Write, context);
                }
                ShellRedirectKind::Duplicate(word) => {
                    let is_descriptor =
                        |text: String| text.trim_end_matches('-').bytes().all(|byte| byte.is_ascii_digit());
                    if word.literal().is_none_or(|text| !is_descriptor(text)) {
                        self.target(word, TargetAccess::Write, context);
                    }
                }
                ShellRedirectKind::HereString(word) => {
                    self.walk(word, context);
                    text = expand::unsplit(word).known().map(str::to_owned);
                }
                ShellRedirectKind::HereDocument(body) => {
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
    fn number_into(&mut self, variable: &str, context: &ShellRunContext) {
        let name = match variable.split_once('[') {
            Some((name, subscript)) => {
                self.taint.calculate(ValueFlow::text(subscript), context.span());
                self.arrays.insert(name.to_owned());
                name
            }
            None => variable,
        };
        self.note_assignment(name, ValueFlow::nothing(), context);
        self.push(Vec::new(), vec![(name.to_owned(), None)], context);
    }

    fn target(&mut self, word: &RawWord, access: TargetAccess, context: &ShellRunContext) {
        self.walk(word, context);
        let mut words = self.expand(word, context);
        let path = match (words.pop(), words.is_empty()) {
            (Some(path), true) if path != ShellWord::UnknownMany => path,
            _ => ShellWord::UnknownOne,
        };
        self.touches(path, access);
    }

    /// Notes that a file is read or written.
    pub(super) fn touches(&mut self, path: ShellWord, access: TargetAccess) {
        let text = path.known().unwrap_or_default();
        let is_stream =
            matches!(text, "/dev/null" | "/dev/stdin" | "/dev/stdout" | "/dev/stderr" | "/dev/tty")
                || text.starts_with("/dev/fd/");
        let is_network = text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/");
        let list =
            if access == TargetAccess::Read { &mut self.reading.reads } else { &mut self.reading.writes };
        if !is_stream {
            list.push(CommandTarget {
                path,
                access: if is_network { TargetAccess::Network } else { access },
            });
        }
    }
}
