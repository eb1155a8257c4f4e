//! Walks a tree and collects what could run.

use std::collections::{BTreeMap, BTreeSet};

use super::budget::{Budget, MAX_DEPTH};
use super::parser::parse;
use super::taint::{Flow, Taint, output_of};
use super::tree::{Argument, Assignment, Call, Compound, LoopVariable, Node, Part, RawWord, Span, Value};
use super::{Dialect, Manner, Reading, Simple, Unknown, Via, Word};
use super::{builtins, closing, expand, programs, variables, writers};

pub(super) fn read(command: &str, dialect: Dialect) -> Reading {
    let Some(budget) = Budget::new(command) else {
        let unknown =
            Unknown { reason: "the command is too long to read".to_owned(), span: 0..command.len() };
        return Reading { unknown: vec![unknown], ..Reading::default() };
    };
    let mut judge = Judge {
        budget: &budget,
        reading: Reading::default(),
        taint: Taint::default(),
        functions: BTreeSet::new(),
        scripts: Vec::new(),
        implied: Vec::new(),
        arrays: BTreeSet::new(),
        declared: Vec::new(),
        constants: BTreeMap::new(),
        depth: 0,
    };
    judge.script(command, &Context::outermost(dialect));
    closing::close(judge)
}

/// So many texts that words could be are looked at.
const MAX_CANDIDATES: usize = 64;
/// More reasons than a person reads are not collected.
const MAX_UNKNOWN: usize = 100;

/// Everything that is found in one command.
pub(super) struct Judge<'b> {
    pub(super) budget: &'b Budget,
    pub(super) reading: Reading,
    pub(super) taint: Taint,
    pub(super) functions: BTreeSet<String>,
    /// Files that are run by a shell or another interpreter, and where.
    pub(super) scripts: Vec<(Word, Span)>,
    /// Files that a program runs without being told, if they are there.
    pub(super) implied: Vec<(Word, Span)>,
    /// Arrays, and variables that `declare` gives a value that can't be known.
    pub(super) arrays: BTreeSet<String>,
    pub(super) declared: Vec<(String, Span)>,
    /// Texts that variables were given so far, wherever that was.
    pub(super) constants: BTreeMap<String, Vec<String>>,
    pub(super) depth: usize,
}

/// How and where something is run.
#[derive(Clone, Debug)]
pub(super) struct Context {
    pub(super) via: Vec<Via>,
    /// The standard input, if it stands in the text.
    pub(super) input: Option<String>,
    /// Where it stands in the outermost text. `None` in that text itself: there everything has its own place.
    pub(super) place: Option<Span>,
    pub(super) dialect: Dialect,
    /// Where those of its words come from that can't be known.
    pub(super) sources: Flow,
    /// What those words could be.
    pub(super) could_be: Vec<Word>,
}

impl Context {
    fn outermost(dialect: Dialect) -> Context {
        Context {
            via: Vec::new(),
            input: None,
            place: None,
            dialect,
            sources: Flow::nothing(),
            could_be: Vec::new(),
        }
    }

    pub(super) fn span(&self) -> Span {
        self.place.clone().unwrap_or_default()
    }

    /// For what this program runs.
    pub(super) fn via(&self, program: &str, manner: Manner) -> Context {
        let mut context = self.clone();
        context.via.push(Via { program: program.to_owned(), manner });
        context
    }

    pub(super) fn at(&self, span: &Span) -> Context {
        Context { place: Some(self.place.clone().unwrap_or_else(|| span.clone())), ..self.clone() }
    }

    pub(super) fn without_input(&self) -> Context {
        Context { input: None, ..self.clone() }
    }

    pub(super) fn in_dialect(&self, dialect: Dialect) -> Context {
        Context { dialect, ..self.clone() }
    }
}

impl Judge<'_> {
    /// Judges a text that a shell runs.
    pub(super) fn script(&mut self, text: &str, context: &Context) {
        if !self.budget.steps(text.len()) {
            return self.unknown("it is too tangled to read", context);
        }
        let tree = parse(text, context.dialect, self.budget, self.depth);
        for doubt in tree.doubts {
            let span = context.place.clone().unwrap_or(doubt.span);
            self.reading.unknown.push(Unknown { reason: doubt.reason, span });
        }
        self.nodes(&tree.nodes, context);
    }

    pub(super) fn unknown(&mut self, reason: &str, context: &Context) {
        let unknown = Unknown { reason: reason.to_owned(), span: context.span() };
        // Of what goes on and on, the beginning is enough.
        if self.reading.unknown.len() < MAX_UNKNOWN && self.reading.unknown.last() != Some(&unknown) {
            self.reading.unknown.push(unknown);
        }
    }

    pub(super) fn nodes(&mut self, nodes: &[Node], context: &Context) {
        if self.depth >= MAX_DEPTH {
            return self.unknown("it is nested too deep", context);
        }
        self.depth += 1;
        nodes.iter().for_each(|node| self.node(node, context));
        self.depth -= 1;
    }

    fn node(&mut self, node: &Node, context: &Context) {
        match node {
            Node::Call(call) => self.call(call, &context.at(&call.span)),
            Node::Compound(compound) => self.compound(compound, context),
            Node::Function { name, body } => {
                self.functions.insert(name.clone());
                self.taint.assign(&output_of(name), Flow::Anywhere);
                self.node(body, &context.without_input());
            }
        }
    }

    fn compound(&mut self, compound: &Compound, context: &Context) {
        compound.words.iter().for_each(|word| self.walk(word, context));
        for calculation in &compound.calculations {
            self.walk(calculation, context);
            let span = context.place.clone().unwrap_or_else(|| calculation.span.clone());
            self.taint.calculate(Flow::of(&calculation.parts), span);
        }
        if let Some(variable) = &compound.variable {
            self.loop_variable(variable, context);
        }
        let _ = self.redirects(&compound.redirects, context);
        self.nodes(&compound.body, &context.without_input());
    }

    fn loop_variable(&mut self, variable: &LoopVariable, context: &Context) {
        let mut flow = Flow::nothing();
        for word in variable.words.iter().flatten() {
            self.walk(word, context);
            let words = expand::words(word, context.dialect, self.budget).unwrap_or_else(|_| vec![Word::Any]);
            flow = flow.and(loop_flow(word, &words));
        }
        if variable.words.is_none() || variable.is_select {
            flow = Flow::Anywhere;
        }
        let context = match variable.words.as_ref().and_then(|words| words.first()) {
            Some(word) => context.at(&word.span),
            None => context.clone(),
        };
        self.assigned(&variable.name, flow, &context);
        self.push(Vec::new(), vec![(variable.name.clone(), None)], &context);
    }

    fn call(&mut self, call: &Call, context: &Context) {
        let mut assignments = Vec::new();
        for assignment in &call.assignments {
            self.assignment(assignment, context);
            assignments.push((assignment.name.clone(), value_of(assignment)));
        }
        let mut argv = Vec::new();
        let mut could_be = Vec::new();
        let mut sources = Flow::nothing();
        for argument in &call.words {
            match argument {
                Argument::Word(word) => {
                    self.walk(word, context);
                    argv.extend(self.expand(word, context));
                    could_be.extend(expand::candidates(word, &self.constants));
                    sources = sources.and(Flow::sources(&word.parts));
                }
                Argument::Assignment(assignment) => {
                    self.assignment(assignment, context);
                    assignments.push((assignment.name.clone(), value_of(assignment)));
                    argv.push(as_argument(assignment));
                }
            }
        }
        let input = self.redirects(&call.redirects, context);
        could_be.truncate(MAX_CANDIDATES);
        self.run_with(argv, assignments, &Context { input, sources, could_be, ..context.clone() });
    }

    pub(super) fn expand(&mut self, word: &RawWord, context: &Context) -> Vec<Word> {
        expand::words(word, context.dialect, self.budget).unwrap_or_else(|reason| {
            self.unknown(reason, context);
            vec![Word::Any]
        })
    }

    fn assignment(&mut self, assignment: &Assignment, context: &Context) {
        if let Some(subscript) = &assignment.subscript {
            self.walk(subscript, context);
            self.taint.calculate(Flow::of(&subscript.parts), context.span());
        }
        if assignment.subscript.is_some() || matches!(assignment.value, Value::Array(_)) {
            self.arrays.insert(assignment.name.clone());
        }
        let mut flow = Flow::nothing();
        match &assignment.value {
            Value::Scalar(word) => {
                self.walk(word, context);
                let values = self.constants.entry(assignment.name.clone()).or_default();
                if values.len() < MAX_CANDIDATES {
                    values.extend(word.literal());
                }
                flow = word.literal().map_or_else(|| Flow::of_value(&word.parts), |text| Flow::value(&text));
            }
            Value::Array(elements) => {
                for element in elements {
                    self.walk(&element.word, context);
                    flow = flow.and(Flow::of_value(&element.word.parts));
                    if expand::unsplit(&element.word).known().is_none() || has_pattern(&element.word) {
                        flow = Flow::Anywhere;
                    }
                    if let Some(subscript) = &element.subscript {
                        self.walk(subscript, context);
                        self.taint.calculate(Flow::of(&subscript.parts), context.span());
                    }
                }
            }
        }
        let is_number = matches!(&flow, Flow::Names(names) if names.is_empty());
        let flow = if assignment.appends && !is_number { Flow::Anywhere } else { flow };
        self.assigned(&assignment.name, flow, context);
    }

    /// Notes that a variable gets a value.
    pub(super) fn assigned(&mut self, name: &str, value: Flow, context: &Context) {
        if let Some(why) = variables::why_dangerous(name) {
            self.unknown(&format!("the variable {name} {why}"), context);
        }
        if variables::is_number(name) {
            self.taint.number(name, context.span());
        }
        self.taint.assign(name, value);
    }

    /// Judges a command that something runs.
    pub(super) fn run(&mut self, argv: Vec<Word>, context: &Context) {
        self.run_with(argv, Vec::new(), context);
    }

    pub(super) fn run_with(
        &mut self,
        argv: Vec<Word>,
        assignments: Vec<(String, Option<String>)>,
        context: &Context,
    ) {
        if argv.is_empty() && assignments.is_empty() {
            return;
        }
        let bytes: usize = argv.iter().filter_map(Word::known).map(str::len).sum();
        if self.depth >= MAX_DEPTH || !self.budget.words(argv.len() + 1) || !self.budget.steps(bytes) {
            return self.unknown("it runs too much to read", context);
        }
        let at = self.reading.commands.len();
        self.push(argv.clone(), assignments, context);
        let Some((program, arguments)) = argv.split_first() else { return };
        let program = match program {
            Word::Known(program) => program.clone(),
            Word::Home(path) => format!("~{path}"),
            Word::Pattern(_) | Word::Begins(_) | Word::One | Word::Any => {
                return self.unknown("the name of the program can't be known", context);
            }
        };
        self.depth += 1;
        let judged = match builtins::judge(self, &program, arguments, context) {
            Some(judged) => judged,
            None => programs::judge(self, &program, arguments, context),
        };
        self.depth -= 1;
        match judged {
            Ok(only_runs_others) => {
                if let Some(command) = self.reading.commands.get_mut(at) {
                    command.only_runs_others = only_runs_others;
                }
            }
            Err(reason) => self.unknown(&format!("{program}: {reason}"), context),
        }
        writers::judge(self, &program, arguments, context);
    }

    pub(super) fn push(
        &mut self,
        argv: Vec<Word>,
        assignments: Vec<(String, Option<String>)>,
        context: &Context,
    ) {
        let via = context.via.clone();
        self.reading.commands.push(Simple {
            argv,
            assignments,
            via,
            could_be: context.could_be.clone(),
            only_runs_others: false,
            span: context.span(),
        });
    }
}

/// Where the values of a loop's variable come from. What is split can become any other name, and patterns any name at all.
fn loop_flow(word: &RawWord, words: &[Word]) -> Flow {
    let texts: Option<Vec<&str>> = words.iter().map(Word::known).collect();
    match texts {
        Some(texts) => texts.into_iter().fold(Flow::nothing(), |flow, text| flow.and(Flow::value(text))),
        None if words.iter().all(|word| *word == Word::One) => Flow::of(&word.parts),
        None => Flow::of_split(&word.parts),
    }
}

fn has_pattern(word: &RawWord) -> bool {
    word.parts.iter().any(|part| matches!(part, Part::Text(text) if text.contains(['*', '?', '[', '{', '~'])))
}

fn value_of(assignment: &Assignment) -> Option<String> {
    match &assignment.value {
        Value::Scalar(word) if !assignment.appends && assignment.subscript.is_none() => {
            expand::unsplit(word).known().map(str::to_owned)
        }
        _ => None,
    }
}

/// An assignment as `export` and its like get it: [`Word::Any`] for an array.
fn as_argument(assignment: &Assignment) -> Word {
    match value_of(assignment) {
        Some(value) => Word::Known(format!("{}={value}", assignment.name)),
        None if matches!(assignment.value, Value::Array(_)) => Word::Any,
        None => Word::Begins(format!("{}=", assignment.name)),
    }
}
