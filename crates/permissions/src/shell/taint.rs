//! Values that would run as code when the shell calculates with them.
//!
//! Where the shell calculates, a variable's value is an expression too, and `x[$(rm a)]` is one that runs a command.
//! So the names that a calculation leads to are followed through everything that is ever assigned to them in the text,
//! in whatever order. If that ends in something that can't be known, so does the reading. What the environment brings is
//! trusted: it is not part of the command.

use std::collections::{BTreeMap, BTreeSet};

use super::parser::arithmetic::names;
use super::tree::{
    CallArgument, ParameterExpansion, ParameterOperator, ShellNode, ShellSpan, ShellWordPart, WordExpansion,
};
use super::variables;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ValueFlow {
    /// Numbers, and whatever is in these variables.
    Names(BTreeSet<String>),
    /// From somewhere that is not known.
    Anywhere,
}

impl ValueFlow {
    pub(super) fn nothing() -> ValueFlow {
        ValueFlow::Names(BTreeSet::new())
    }

    pub(super) fn name(name: &str) -> ValueFlow {
        ValueFlow::Names(BTreeSet::from([name.to_owned()]))
    }

    pub(super) fn text(text: &str) -> ValueFlow {
        if text.contains(['$', '`']) {
            ValueFlow::Anywhere
        } else {
            ValueFlow::Names(names(text).map(str::to_owned).collect())
        }
    }

    /// A value. What could be a pattern can become the name of any file where it is not quoted.
    pub(super) fn value(text: &str) -> ValueFlow {
        if text.contains(['*', '?', '[']) || begins_option(text) {
            ValueFlow::Anywhere
        } else {
            ValueFlow::text(text)
        }
    }

    /// A value of several parts.
    pub(super) fn of_value(parts: &[ShellWordPart]) -> ValueFlow {
        match parts.first() {
            Some(ShellWordPart::Text(text) | ShellWordPart::Quoted(text)) if begins_option(text) => {
                ValueFlow::Anywhere
            }
            _ => ValueFlow::of(parts),
        }
    }

    /// What is split into words, which keeps only numbers as they are.
    pub(super) fn of_split(parts: &[ShellWordPart]) -> ValueFlow {
        match parts {
            [
                ShellWordPart::Expansion {
                    what: what @ (WordExpansion::Command(_) | WordExpansion::Arithmetic(_)),
                    ..
                },
            ] => ValueFlow::of_expansion(what),
            _ => ValueFlow::Anywhere,
        }
    }

    pub(super) fn and(self, other: ValueFlow) -> ValueFlow {
        match (self, other) {
            (ValueFlow::Names(mut own), ValueFlow::Names(others)) => {
                own.extend(others);
                ValueFlow::Names(own)
            }
            _ => ValueFlow::Anywhere,
        }
    }

    pub(super) fn of(parts: &[ShellWordPart]) -> ValueFlow {
        let mut flow = ValueFlow::nothing();
        let mut ends_in_name = false;
        for part in parts {
            let (next, begins_with_name) = match part {
                ShellWordPart::Text(text) | ShellWordPart::Quoted(text) => {
                    (ValueFlow::text(text), text.bytes().next().is_some_and(is_name))
                }
                ShellWordPart::Expansion { what, .. } => (ValueFlow::of_expansion(what), true),
            };
            flow = flow.and(next);
            // Two pieces can be one name together.
            if ends_in_name && begins_with_name {
                return ValueFlow::Anywhere;
            }
            ends_in_name = match part {
                ShellWordPart::Text(text) | ShellWordPart::Quoted(text) if text.is_empty() => ends_in_name,
                ShellWordPart::Text(text) | ShellWordPart::Quoted(text) => {
                    text.bytes().last().is_some_and(is_name)
                }
                ShellWordPart::Expansion { .. } => true,
            };
        }
        flow
    }

    /// Whatever has a part in it, wherever it stands.
    pub(super) fn sources(parts: &[ShellWordPart]) -> ValueFlow {
        let text = |part: &ShellWordPart| match part {
            ShellWordPart::Text(text) | ShellWordPart::Quoted(text) => {
                Some(text.clone()).filter(|text| !text.is_empty())
            }
            ShellWordPart::Expansion { .. } => None,
        };
        // What stands before a text may be nothing.
        if parts.iter().find_map(text).is_some_and(|first| begins_option(&first)) {
            return ValueFlow::Anywhere;
        }
        parts.iter().fold(ValueFlow::nothing(), |flow, part| match part {
            ShellWordPart::Text(_) | ShellWordPart::Quoted(_) => flow,
            ShellWordPart::Expansion { what, .. } => flow.and(ValueFlow::of_expansion(what)),
        })
    }

    fn of_expansion(what: &WordExpansion) -> ValueFlow {
        match what {
            WordExpansion::Parameter(parameter) => ValueFlow::of_parameter(parameter),
            WordExpansion::Command(nodes) => {
                number_printer(nodes).map_or(ValueFlow::Anywhere, |name| ValueFlow::name(&name))
            }
            WordExpansion::Arithmetic(_) => ValueFlow::nothing(),
            WordExpansion::Process(_) | WordExpansion::Translated(_) => ValueFlow::Anywhere,
        }
    }

    fn of_parameter(parameter: &ParameterExpansion) -> ValueFlow {
        if parameter.is_length || matches!(parameter.name.as_str(), "#" | "?" | "$" | "!") {
            return ValueFlow::nothing();
        }
        let is_named = parameter.name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
        if parameter.is_indirect || !is_named {
            return ValueFlow::Anywhere;
        }
        match parameter.operator {
            ParameterOperator::None => ValueFlow::name(&parameter.name),
            ParameterOperator::Default | ParameterOperator::Assign => {
                ValueFlow::name(&parameter.name).and(ValueFlow::of_value(&parameter.operand))
            }
            ParameterOperator::Substring | ParameterOperator::Pattern | ParameterOperator::Transform(_) => {
                ValueFlow::Anywhere
            }
        }
    }
}

/// Whether it could be the option by which `printf` sets a variable.
fn begins_option(text: &str) -> bool {
    text == "-" || text.starts_with("-v")
}

/// Whether a value names a variable that must not be set: `printf` sets the one after a `-v`, wherever that comes from.
fn is_set(name: &str) -> bool {
    let names = [Some(name), name.strip_prefix('v')];
    names.into_iter().flatten().any(|name| name == "PATH" || variables::why_dangerous(name).is_some())
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// If commands can print nothing but a number: the output of the last one as a variable, in case it is a function.
fn number_printer(nodes: &[ShellNode]) -> Option<String> {
    let (ShellNode::Call(last), before) = nodes.split_last()? else { return None };
    if !before.iter().all(|node| matches!(node, ShellNode::Call(call) if call.is_piped)) {
        return None;
    }
    let literal = |word: &CallArgument| match word {
        CallArgument::Word(word) => word.literal(),
        CallArgument::Assignment(_) => None,
    };
    let words: Vec<String> = last.words.iter().map(literal).collect::<Option<_>>()?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let prints_number = match words.as_slice() {
        ["wc", "-l" | "-w" | "-c" | "-m"] | ["nproc"] | ["id", "-u" | "-g"] | ["grep", "-c", _] => true,
        ["date", "+%s" | "+%Y" | "+%s%N"] => true,
        ["seq", numbers @ ..] => {
            numbers.iter().all(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        }
        ["echo", number] => number.bytes().all(|byte| byte.is_ascii_digit()),
        _ => false,
    };
    words.first().filter(|_| prints_number).map(|name| output_of(name))
}

/// The name under which the output of a function is known here. No variable has it.
pub(super) fn output_of(function: &str) -> String {
    format!("{function}()")
}

/// Everything about variables in one command.
#[derive(Debug, Default)]
pub(super) struct TaintTracker {
    values: BTreeMap<String, ValueFlow>,
    uses: Vec<(ValueFlow, ShellSpan)>,
    /// Uses of what has been split into words first.
    split_uses: Vec<ShellSpan>,
}

impl TaintTracker {
    pub(super) fn assign(&mut self, name: &str, value: ValueFlow) {
        let known = self.values.remove(name).unwrap_or_else(ValueFlow::nothing);
        self.values.insert(name.to_owned(), known.and(value));
    }

    pub(super) fn calculate(&mut self, value: ValueFlow, span: ShellSpan) {
        self.uses.push((value, span));
    }

    /// The same with words that were split: where the shell splits can be changed.
    pub(super) fn calculate_split(&mut self, value: ValueFlow, span: ShellSpan) {
        if value != ValueFlow::nothing() {
            self.split_uses.push(span.clone());
        }
        self.calculate(value, span);
    }

    /// Every value that is assigned to it is calculated (`declare -i`).
    pub(super) fn number(&mut self, name: &str, span: ShellSpan) {
        self.calculate(ValueFlow::name(name), span);
    }

    pub(super) fn is_assigned(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Where it is calculated with a value that could be code.
    pub(super) fn dangerous(&self) -> Vec<ShellSpan> {
        let tainted = self.tainted();
        let is_tainted = |name: &String| variables::holds_text(name) || tainted.contains(name.as_str());
        let is_dangerous = |flow: &ValueFlow| match flow {
            ValueFlow::Names(names) => names.iter().any(is_tainted),
            ValueFlow::Anywhere => true,
        };
        let uses = self.uses.iter().filter(|(flow, _)| is_dangerous(flow)).map(|(_, span)| span);
        let split: &[ShellSpan] = if self.is_assigned("IFS") { &self.split_uses } else { &[] };
        uses.chain(split).cloned().collect()
    }

    /// The variables that something unknown leads to, through however many others.
    fn tainted(&self) -> BTreeSet<&str> {
        let mut leads_to: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut left: Vec<&str> = Vec::new();
        for (name, flow) in &self.values {
            match flow {
                ValueFlow::Anywhere => left.push(name),
                ValueFlow::Names(from)
                    if from.iter().any(|from| variables::holds_text(from) || is_set(from)) =>
                {
                    left.push(name)
                }
                ValueFlow::Names(from) => {
                    from.iter().for_each(|from| leads_to.entry(from).or_default().push(name))
                }
            }
        }
        let mut tainted = BTreeSet::new();
        while let Some(name) = left.pop() {
            if tainted.insert(name) {
                left.extend(leads_to.get(name).into_iter().flatten());
            }
        }
        tainted
    }
}
