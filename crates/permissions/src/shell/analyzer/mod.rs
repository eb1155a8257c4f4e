//! Walks a tree and collects what could run.
//!
//! A shell runs programs, and programs run shells: what is found in one text may lead to another. So everything that a command
//! can lead to is in here, and hands what it finds back to the [`CommandAnalyzer`]:
//!
//! - `walk`: what runs while words and redirections are expanded.
//! - `builtins` and `programs`: those that run others are followed into what they run.
//! - `writers`: the files that programs are known to write.
//! - `final_checks`: what can be said only when everything has been read.

mod builtins;
mod final_checks;
mod programs;
mod run_context;
mod walk;
mod writers;

use std::collections::{BTreeMap, BTreeSet};

use super::budget::{AnalysisBudget, MAX_SHELL_NESTING};
use super::parser::parse;
use super::taint::{TaintTracker, ValueFlow, output_of};
use super::tree::{
    AssignedValue, Assignment, CallArgument, CallNode, CompoundNode, LoopVariable, RawWord, ShellNode,
    ShellSpan, ShellWordPart,
};
use super::{CommandAnalysis, ShellDialect, ShellWord, SimpleCommand, UnknownConstruct, expand, variables};
use run_context::ShellRunContext;

pub(super) fn analyze_command(command: &str, dialect: ShellDialect) -> CommandAnalysis {
    let Some(budget) = AnalysisBudget::new(command) else {
        let unknown =
            UnknownConstruct { reason: "the command is too long to read".to_owned(), span: 0..command.len() };
        return CommandAnalysis { unknown: vec![unknown], ..CommandAnalysis::default() };
    };
    let mut judge = CommandAnalyzer {
        budget: &budget,
        reading: CommandAnalysis::default(),
        taint: TaintTracker::default(),
        functions: BTreeSet::new(),
        scripts: Vec::new(),
        implied: Vec::new(),
        arrays: BTreeSet::new(),
        declared: Vec::new(),
        constants: BTreeMap::new(),
        depth: 0,
    };
    judge.script(command, &ShellRunContext::outermost(dialect));
    final_checks::finish_analysis(judge)
}

/// So many texts that words could be are looked at.
const MAX_COMMAND_CANDIDATES: usize = 64;
/// More reasons than a person reads are not collected.
const MAX_COLLECTED_UNKNOWNS: usize = 100;

/// Whether a program does nothing but run others; or why it can't be known what it does.
type ProgramAnalysis = Result<bool, String>;

/// Everything that is found in one command.
struct CommandAnalyzer<'b> {
    budget: &'b AnalysisBudget,
    reading: CommandAnalysis,
    taint: TaintTracker,
    functions: BTreeSet<String>,
    /// Files that are run by a shell or another interpreter, and where.
    scripts: Vec<(ShellWord, ShellSpan)>,
    /// Files that a program runs without being told, if they are there.
    implied: Vec<(ShellWord, ShellSpan)>,
    /// Arrays, and variables that `declare` gives a value that can't be known.
    arrays: BTreeSet<String>,
    declared: Vec<(String, ShellSpan)>,
    /// Texts that variables were given so far, wherever that was.
    constants: BTreeMap<String, Vec<String>>,
    depth: usize,
}

impl CommandAnalyzer<'_> {
    /// Judges a text that a shell runs.
    fn script(&mut self, text: &str, context: &ShellRunContext) {
        if !self.budget.steps(text.len()) {
            return self.unknown("it is too tangled to read", context);
        }
        let tree = parse(text, context.dialect, self.budget, self.depth);
        for doubt in tree.doubts {
            let span = context.place.clone().unwrap_or(doubt.span);
            self.reading.unknown.push(UnknownConstruct { reason: doubt.reason, span });
        }
        self.nodes(&tree.nodes, context);
    }

    fn unknown(&mut self, reason: &str, context: &ShellRunContext) {
        let unknown = UnknownConstruct { reason: reason.to_owned(), span: context.span() };
        // Of what goes on and on, the beginning is enough.
        if self.reading.unknown.len() < MAX_COLLECTED_UNKNOWNS
            && self.reading.unknown.last() != Some(&unknown)
        {
            self.reading.unknown.push(unknown);
        }
    }

    fn nodes(&mut self, nodes: &[ShellNode], context: &ShellRunContext) {
        if self.depth >= MAX_SHELL_NESTING {
            return self.unknown("it is nested too deep", context);
        }
        self.depth += 1;
        nodes.iter().for_each(|node| self.node(node, context));
        self.depth -= 1;
    }

    fn node(&mut self, node: &ShellNode, context: &ShellRunContext) {
        match node {
            ShellNode::Call(call) => self.call(call, &context.at(&call.span)),
            ShellNode::Compound(compound) => self.compound(compound, context),
            ShellNode::Function { name, body } => {
                self.functions.insert(name.clone());
                self.taint.assign(&output_of(name), ValueFlow::Anywhere);
                self.node(body, &context.without_input());
            }
        }
    }

    fn compound(&mut self, compound: &CompoundNode, context: &ShellRunContext) {
        compound.words.iter().for_each(|word| self.walk(word, context));
        for calculation in &compound.calculations {
            self.walk(calculation, context);
            let span = context.place.clone().unwrap_or_else(|| calculation.span.clone());
            self.taint.calculate(ValueFlow::of(&calculation.parts), span);
        }
        if let Some(variable) = &compound.variable {
            self.loop_variable(variable, context);
        }
        let _ = self.redirects(&compound.redirects, context);
        self.nodes(&compound.body, &context.without_input());
    }

    fn loop_variable(&mut self, variable: &LoopVariable, context: &ShellRunContext) {
        let mut flow = ValueFlow::nothing();
        for word in variable.words.iter().flatten() {
            self.walk(word, context);
            let words = expand::words(word, context.dialect, self.budget)
                .unwrap_or_else(|_| vec![ShellWord::UnknownMany]);
            flow = flow.and(loop_flow(word, &words));
        }
        if variable.words.is_none() || variable.is_select {
            flow = ValueFlow::Anywhere;
        }
        let context = match variable.words.as_ref().and_then(|words| words.first()) {
            Some(word) => context.at(&word.span),
            None => context.clone(),
        };
        self.note_assignment(&variable.name, flow, &context);
        self.push(Vec::new(), vec![(variable.name.clone(), None)], &context);
    }

    fn call(&mut self, call: &CallNode, context: &ShellRunContext) {
        let mut assignments = Vec::new();
        for assignment in &call.assignments {
            self.assignment(assignment, context);
            assignments.push((assignment.name.clone(), value_of(assignment)));
        }
        let mut argv = Vec::new();
        let mut could_be = Vec::new();
        let mut sources = ValueFlow::nothing();
        for argument in &call.words {
            match argument {
                CallArgument::Word(word) => {
                    self.walk(word, context);
                    argv.extend(self.expand(word, context));
                    could_be.extend(expand::candidates(word, &self.constants));
                    sources = sources.and(ValueFlow::sources(&word.parts));
                }
                CallArgument::Assignment(assignment) => {
                    self.assignment(assignment, context);
                    assignments.push((assignment.name.clone(), value_of(assignment)));
                    argv.push(as_argument(assignment));
                }
            }
        }
        let input = self.redirects(&call.redirects, context);
        could_be.truncate(MAX_COMMAND_CANDIDATES);
        self.run_with(argv, assignments, &ShellRunContext { input, sources, could_be, ..context.clone() });
    }

    fn expand(&mut self, word: &RawWord, context: &ShellRunContext) -> Vec<ShellWord> {
        expand::words(word, context.dialect, self.budget).unwrap_or_else(|reason| {
            self.unknown(reason, context);
            vec![ShellWord::UnknownMany]
        })
    }

    fn assignment(&mut self, assignment: &Assignment, context: &ShellRunContext) {
        if let Some(subscript) = &assignment.subscript {
            self.walk(subscript, context);
            self.taint.calculate(ValueFlow::of(&subscript.parts), context.span());
        }
        if assignment.subscript.is_some() || matches!(assignment.value, AssignedValue::Array(_)) {
            self.arrays.insert(assignment.name.clone());
        }
        let mut flow = ValueFlow::nothing();
        match &assignment.value {
            AssignedValue::Scalar(word) => {
                self.walk(word, context);
                let values = self.constants.entry(assignment.name.clone()).or_default();
                if values.len() < MAX_COMMAND_CANDIDATES {
                    values.extend(word.literal());
                }
                flow = word
                    .literal()
                    .map_or_else(|| ValueFlow::of_value(&word.parts), |text| ValueFlow::value(&text));
            }
            AssignedValue::Array(elements) => {
                for element in elements {
                    self.walk(&element.word, context);
                    flow = flow.and(ValueFlow::of_value(&element.word.parts));
                    if expand::unsplit(&element.word).known().is_none() || has_pattern(&element.word) {
                        flow = ValueFlow::Anywhere;
                    }
                    if let Some(subscript) = &element.subscript {
                        self.walk(subscript, context);
                        self.taint.calculate(ValueFlow::of(&subscript.parts), context.span());
                    }
                }
            }
        }
        let is_number = matches!(&flow, ValueFlow::Names(names) if names.is_empty());
        let flow = if assignment.appends && !is_number { ValueFlow::Anywhere } else { flow };
        self.note_assignment(&assignment.name, flow, context);
    }

    /// Notes that a variable gets a value.
    fn note_assignment(&mut self, name: &str, value: ValueFlow, context: &ShellRunContext) {
        if let Some(why) = variables::why_dangerous(name) {
            self.unknown(&format!("the variable {name} {why}"), context);
        }
        if variables::is_number(name) {
            self.taint.number(name, context.span());
        }
        self.taint.assign(name, value);
    }

    /// Judges a command that something runs.
    fn run(&mut self, argv: Vec<ShellWord>, context: &ShellRunContext) {
        self.run_with(argv, Vec::new(), context);
    }

    fn run_with(
        &mut self,
        argv: Vec<ShellWord>,
        assignments: Vec<(String, Option<String>)>,
        context: &ShellRunContext,
    ) {
        if argv.is_empty() && assignments.is_empty() {
            return;
        }
        let bytes: usize = argv.iter().filter_map(ShellWord::known).map(str::len).sum();
        if self.depth >= MAX_SHELL_NESTING || !self.budget.words(argv.len() + 1) || !self.budget.steps(bytes)
        {
            return self.unknown("it runs too much to read", context);
        }
        let at = self.reading.commands.len();
        self.push(argv.clone(), assignments, context);
        let Some((program, arguments)) = argv.split_first() else { return };
        let program = match program {
            ShellWord::Known(program) => program.clone(),
            ShellWord::Home(path) => format!("~{path}"),
            ShellWord::Pattern(_) | ShellWord::Prefix(_) | ShellWord::UnknownOne | ShellWord::UnknownMany => {
                return self.unknown("the name of the program can't be known", context);
            }
        };
        self.depth += 1;
        let judged = match builtins::analyze_builtin(self, &program, arguments, context) {
            Some(judged) => judged,
            None => programs::analyze_program(self, &program, arguments, context),
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
        writers::collect_writes(self, &program, arguments, context);
    }

    fn push(
        &mut self,
        argv: Vec<ShellWord>,
        assignments: Vec<(String, Option<String>)>,
        context: &ShellRunContext,
    ) {
        let via = context.via.clone();
        self.reading.commands.push(SimpleCommand {
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
fn loop_flow(word: &RawWord, words: &[ShellWord]) -> ValueFlow {
    let texts: Option<Vec<&str>> = words.iter().map(ShellWord::known).collect();
    match texts {
        Some(texts) => {
            texts.into_iter().fold(ValueFlow::nothing(), |flow, text| flow.and(ValueFlow::value(text)))
        }
        None if words.iter().all(|word| *word == ShellWord::UnknownOne) => ValueFlow::of(&word.parts),
        None => ValueFlow::of_split(&word.parts),
    }
}

fn has_pattern(word: &RawWord) -> bool {
    word.parts
        .iter()
        .any(|part| matches!(part, ShellWordPart::Text(text) if text.contains(['*', '?', '[', '{', '~'])))
}

fn value_of(assignment: &Assignment) -> Option<String> {
    match &assignment.value {
        AssignedValue::Scalar(word) if !assignment.appends && assignment.subscript.is_none() => {
            expand::unsplit(word).known().map(str::to_owned)
        }
        _ => None,
    }
}

/// An assignment as `export` and its like get it: [`ShellWord::UnknownMany`] for an array.
fn as_argument(assignment: &Assignment) -> ShellWord {
    match value_of(assignment) {
        Some(value) => ShellWord::Known(format!("{}={value}", assignment.name)),
        None if matches!(assignment.value, AssignedValue::Array(_)) => ShellWord::UnknownMany,
        None => ShellWord::Prefix(format!("{}=", assignment.name)),
    }
}
