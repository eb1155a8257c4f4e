//! Values that would run as code when the shell calculates with them.
//!
//! Where the shell calculates, a variable's value is an expression too, and `x[$(rm a)]` is one that runs a command.
//! So the names that a calculation leads to are followed through everything that is ever assigned to them in the text,
//! in whatever order. If that ends in something that can't be known, so does the reading. What the environment brings is
//! trusted: it is not part of the command.

use std::collections::{BTreeMap, BTreeSet};

use super::parser::arithmetic::names;
use super::tree::{Argument, Expansion, Node, Operator, Parameter, Part, Span};
use super::variables;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// Numbers, and whatever is in these variables.
    Names(BTreeSet<String>),
    /// From somewhere that is not known.
    Anywhere,
}

impl Flow {
    pub(super) fn nothing() -> Flow {
        Flow::Names(BTreeSet::new())
    }

    pub(super) fn name(name: &str) -> Flow {
        Flow::Names(BTreeSet::from([name.to_owned()]))
    }

    pub(super) fn text(text: &str) -> Flow {
        if text.contains(['$', '`']) {
            Flow::Anywhere
        } else {
            Flow::Names(names(text).map(str::to_owned).collect())
        }
    }

    /// A value. What could be a pattern can become the name of any file where it is not quoted.
    pub(super) fn value(text: &str) -> Flow {
        if text.contains(['*', '?', '[']) || begins_option(text) { Flow::Anywhere } else { Flow::text(text) }
    }

    /// A value of several parts.
    pub(super) fn of_value(parts: &[Part]) -> Flow {
        match parts.first() {
            Some(Part::Text(text) | Part::Quoted(text)) if begins_option(text) => Flow::Anywhere,
            _ => Flow::of(parts),
        }
    }

    /// What is split into words, which keeps only numbers as they are.
    pub(super) fn of_split(parts: &[Part]) -> Flow {
        match parts {
            [Part::Expansion { what: what @ (Expansion::Command(_) | Expansion::Arithmetic(_)), .. }] => {
                Flow::of_expansion(what)
            }
            _ => Flow::Anywhere,
        }
    }

    pub(super) fn and(self, other: Flow) -> Flow {
        match (self, other) {
            (Flow::Names(mut own), Flow::Names(others)) => {
                own.extend(others);
                Flow::Names(own)
            }
            _ => Flow::Anywhere,
        }
    }

    pub(super) fn of(parts: &[Part]) -> Flow {
        let mut flow = Flow::nothing();
        let mut ends_in_name = false;
        for part in parts {
            let (next, begins_with_name) = match part {
                Part::Text(text) | Part::Quoted(text) => {
                    (Flow::text(text), text.bytes().next().is_some_and(is_name))
                }
                Part::Expansion { what, .. } => (Flow::of_expansion(what), true),
            };
            flow = flow.and(next);
            // Two pieces can be one name together.
            if ends_in_name && begins_with_name {
                return Flow::Anywhere;
            }
            ends_in_name = match part {
                Part::Text(text) | Part::Quoted(text) if text.is_empty() => ends_in_name,
                Part::Text(text) | Part::Quoted(text) => text.bytes().last().is_some_and(is_name),
                Part::Expansion { .. } => true,
            };
        }
        flow
    }

    /// Whatever has a part in it, wherever it stands.
    pub(super) fn sources(parts: &[Part]) -> Flow {
        let text = |part: &Part| match part {
            Part::Text(text) | Part::Quoted(text) => Some(text.clone()).filter(|text| !text.is_empty()),
            Part::Expansion { .. } => None,
        };
        // What stands before a text may be nothing.
        if parts.iter().find_map(text).is_some_and(|first| begins_option(&first)) {
            return Flow::Anywhere;
        }
        parts.iter().fold(Flow::nothing(), |flow, part| match part {
            Part::Text(_) | Part::Quoted(_) => flow,
            Part::Expansion { what, .. } => flow.and(Flow::of_expansion(what)),
        })
    }

    fn of_expansion(what: &Expansion) -> Flow {
        match what {
            Expansion::Parameter(parameter) => Flow::of_parameter(parameter),
            Expansion::Command(nodes) => {
                number_printer(nodes).map_or(Flow::Anywhere, |name| Flow::name(&name))
            }
            Expansion::Arithmetic(_) => Flow::nothing(),
            Expansion::Process(_) | Expansion::Translated(_) => Flow::Anywhere,
        }
    }

    fn of_parameter(parameter: &Parameter) -> Flow {
        if parameter.is_length || matches!(parameter.name.as_str(), "#" | "?" | "$" | "!") {
            return Flow::nothing();
        }
        let is_named = parameter.name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
        if parameter.is_indirect || !is_named {
            return Flow::Anywhere;
        }
        match parameter.operator {
            Operator::None => Flow::name(&parameter.name),
            Operator::Default | Operator::Assign => {
                Flow::name(&parameter.name).and(Flow::of_value(&parameter.operand))
            }
            Operator::Substring | Operator::Pattern | Operator::Transform(_) => Flow::Anywhere,
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
fn number_printer(nodes: &[Node]) -> Option<String> {
    let (Node::Call(last), before) = nodes.split_last()? else { return None };
    if !before.iter().all(|node| matches!(node, Node::Call(call) if call.is_piped)) {
        return None;
    }
    let literal = |word: &Argument| match word {
        Argument::Word(word) => word.literal(),
        Argument::Assignment(_) => None,
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
pub(super) struct Taint {
    values: BTreeMap<String, Flow>,
    uses: Vec<(Flow, Span)>,
    /// Uses of what has been split into words first.
    split_uses: Vec<Span>,
}

impl Taint {
    pub(super) fn assign(&mut self, name: &str, value: Flow) {
        let known = self.values.remove(name).unwrap_or_else(Flow::nothing);
        self.values.insert(name.to_owned(), known.and(value));
    }

    pub(super) fn calculate(&mut self, value: Flow, span: Span) {
        self.uses.push((value, span));
    }

    /// The same with words that were split: where the shell splits can be changed.
    pub(super) fn calculate_split(&mut self, value: Flow, span: Span) {
        if value != Flow::nothing() {
            self.split_uses.push(span.clone());
        }
        self.calculate(value, span);
    }

    /// Every value that is assigned to it is calculated (`declare -i`).
    pub(super) fn number(&mut self, name: &str, span: Span) {
        self.calculate(Flow::name(name), span);
    }

    pub(super) fn is_assigned(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Where it is calculated with a value that could be code.
    pub(super) fn dangerous(&self) -> Vec<Span> {
        let tainted = self.tainted();
        let is_tainted = |name: &String| variables::holds_text(name) || tainted.contains(name.as_str());
        let is_dangerous = |flow: &Flow| match flow {
            Flow::Names(names) => names.iter().any(is_tainted),
            Flow::Anywhere => true,
        };
        let uses = self.uses.iter().filter(|(flow, _)| is_dangerous(flow)).map(|(_, span)| span);
        let split: &[Span] = if self.is_assigned("IFS") { &self.split_uses } else { &[] };
        uses.chain(split).cloned().collect()
    }

    /// The variables that something unknown leads to, through however many others.
    fn tainted(&self) -> BTreeSet<&str> {
        let mut leads_to: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut left: Vec<&str> = Vec::new();
        for (name, flow) in &self.values {
            match flow {
                Flow::Anywhere => left.push(name),
                Flow::Names(from) if from.iter().any(|from| variables::holds_text(from) || is_set(from)) => {
                    left.push(name)
                }
                Flow::Names(from) => {
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
