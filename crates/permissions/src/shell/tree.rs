//! A command as the grammar sees it. Order and conditions are left out: every branch counts.

use std::cell::OnceCell;
use std::ops::Range;
use std::rc::Rc;

use super::Unknown;

pub(super) type Span = Range<usize>;

#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    /// What the parser could read but would not swear to, or why it stopped.
    pub(super) doubts: Vec<Unknown>,
}

#[derive(Debug)]
pub(super) enum Node {
    Call(Call),
    Compound(Compound),
    Function { name: String, body: Box<Node> },
}

/// A simple command.
#[derive(Debug, Default)]
pub(super) struct Call {
    pub(super) assignments: Vec<Assignment>,
    pub(super) words: Vec<Argument>,
    pub(super) redirects: Vec<Redirect>,
    /// Its output goes to the next command.
    pub(super) is_piped: bool,
    pub(super) span: Span,
}

#[derive(Debug)]
pub(super) enum Argument {
    Word(RawWord),
    /// An argument of `declare` and its like.
    Assignment(Assignment),
}

/// Loops, conditions, groups: commands within, and what is expanded besides.
#[derive(Debug, Default)]
pub(super) struct Compound {
    pub(super) body: Vec<Node>,
    pub(super) words: Vec<RawWord>,
    /// What is calculated: `(( ))`, and the operands of `-eq` and its like in `[[ ]]`.
    pub(super) calculations: Vec<RawWord>,
    pub(super) variable: Option<LoopVariable>,
    pub(super) redirects: Vec<Redirect>,
}

/// The variable of `for` or `select`, and what it runs over; `None` means the positional parameters.
#[derive(Debug)]
pub(super) struct LoopVariable {
    pub(super) name: String,
    pub(super) words: Option<Vec<RawWord>>,
    pub(super) is_select: bool,
}

#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) name: String,
    pub(super) subscript: Option<RawWord>,
    pub(super) appends: bool,
    pub(super) value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    Scalar(RawWord),
    Array(Vec<Element>),
}

#[derive(Debug)]
pub(super) struct Element {
    pub(super) subscript: Option<RawWord>,
    pub(super) word: RawWord,
}

#[derive(Debug)]
pub(super) struct Redirect {
    /// It concerns the standard input.
    pub(super) is_input: bool,
    /// `{variable}>`.
    pub(super) variable: Option<String>,
    pub(super) kind: RedirectKind,
}

#[derive(Debug)]
pub(super) enum RedirectKind {
    Read(RawWord),
    Write(RawWord),
    Append(RawWord),
    ReadWrite(RawWord),
    /// `>&word`: a descriptor or a file.
    Duplicate(RawWord),
    HereString(RawWord),
    HereDocument(Rc<OnceCell<RawWord>>),
}

/// A word before anything is expanded.
#[derive(Clone, Debug, Default)]
pub(super) struct RawWord {
    pub(super) parts: Vec<Part>,
    pub(super) span: Span,
}

#[derive(Clone, Debug)]
pub(super) enum Part {
    /// Without quotes: braces, patterns and tildes in it count.
    Text(String),
    Quoted(String),
    Expansion {
        what: Expansion,
        is_quoted: bool,
    },
}

#[derive(Clone, Debug)]
pub(super) enum Expansion {
    Parameter(Box<Parameter>),
    /// The output of commands.
    Command(Rc<Vec<Node>>),
    /// `<( )` and `>( )`.
    Process(Rc<Vec<Node>>),
    Arithmetic(Vec<Part>),
    /// `$"…"`, or a text that can't be written here.
    Translated(Vec<Part>),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) is_length: bool,
    pub(super) is_indirect: bool,
    pub(super) subscript: Option<Vec<Part>>,
    pub(super) operator: Operator,
    pub(super) operand: Vec<Part>,
    /// It can be several words even between quotes.
    pub(super) is_many: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Operator {
    #[default]
    None,
    /// `:-`, `:+`, `:?` and without the colon.
    Default,
    Assign,
    Substring,
    Pattern,
    Transform(char),
}

impl Parameter {
    /// Whether it is the value of a variable as it is.
    pub(super) fn is_plain(&self) -> bool {
        let is_changed = self.is_length || self.is_indirect || self.is_many || self.subscript.is_some();
        !is_changed && self.operator == Operator::None && self.operand.is_empty()
    }
}

impl RawWord {
    /// The text if nothing in it is expanded by a variable or a command. Quotes are undone, nothing else is done.
    pub(super) fn literal(&self) -> Option<String> {
        literal(&self.parts)
    }

    pub(super) fn is_unquoted_text(&self, text: &str) -> bool {
        matches!(self.parts.as_slice(), [Part::Text(own)] if own == text)
    }
}

pub(super) fn literal(parts: &[Part]) -> Option<String> {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Text(piece) | Part::Quoted(piece) => text.push_str(piece),
            Part::Expansion { .. } => return None,
        }
    }
    Some(text)
}
