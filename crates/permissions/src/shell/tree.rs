//! A command as the grammar sees it. Order and conditions are left out: every branch counts.

use std::cell::OnceCell;
use std::ops::Range;
use std::rc::Rc;

use super::UnknownConstruct;

pub(super) type ShellSpan = Range<usize>;

#[derive(Debug, Default)]
pub(super) struct ShellTree {
    pub(super) nodes: Vec<ShellNode>,
    /// What the parser could read but would not swear to, or why it stopped.
    pub(super) doubts: Vec<UnknownConstruct>,
}

#[derive(Debug)]
pub(super) enum ShellNode {
    Call(CallNode),
    Compound(CompoundNode),
    Function { name: String, body: Box<ShellNode> },
}

/// A simple command.
#[derive(Debug, Default)]
pub(super) struct CallNode {
    pub(super) assignments: Vec<Assignment>,
    pub(super) words: Vec<CallArgument>,
    pub(super) redirects: Vec<ShellRedirect>,
    /// Its output goes to the next command.
    pub(super) is_piped: bool,
    pub(super) span: ShellSpan,
}

#[derive(Debug)]
pub(super) enum CallArgument {
    Word(RawWord),
    /// An argument of `declare` and its like.
    Assignment(Assignment),
}

/// Loops, conditions, groups: commands within, and what is expanded besides.
#[derive(Debug, Default)]
pub(super) struct CompoundNode {
    pub(super) body: Vec<ShellNode>,
    pub(super) words: Vec<RawWord>,
    /// What is calculated: `(( ))`, and the operands of `-eq` and its like in `[[ ]]`.
    pub(super) calculations: Vec<RawWord>,
    pub(super) variable: Option<LoopVariable>,
    pub(super) redirects: Vec<ShellRedirect>,
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
    pub(super) value: AssignedValue,
}

#[derive(Debug)]
pub(super) enum AssignedValue {
    Scalar(RawWord),
    Array(Vec<ArrayElement>),
}

#[derive(Debug)]
pub(super) struct ArrayElement {
    pub(super) subscript: Option<RawWord>,
    pub(super) word: RawWord,
}

#[derive(Debug)]
pub(super) struct ShellRedirect {
    /// It concerns the standard input.
    pub(super) is_input: bool,
    /// `{variable}>`.
    pub(super) variable: Option<String>,
    pub(super) kind: ShellRedirectKind,
}

#[derive(Debug)]
pub(super) enum ShellRedirectKind {
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
    pub(super) parts: Vec<ShellWordPart>,
    pub(super) span: ShellSpan,
}

#[derive(Clone, Debug)]
pub(super) enum ShellWordPart {
    /// Without quotes: braces, patterns and tildes in it count.
    Text(String),
    Quoted(String),
    Expansion {
        what: WordExpansion,
        is_quoted: bool,
    },
}

#[derive(Clone, Debug)]
pub(super) enum WordExpansion {
    Parameter(Box<ParameterExpansion>),
    /// The output of commands.
    Command(Rc<Vec<ShellNode>>),
    /// `<( )` and `>( )`.
    Process(Rc<Vec<ShellNode>>),
    Arithmetic(Vec<ShellWordPart>),
    /// `$"…"`, or a text that can't be written here.
    Translated(Vec<ShellWordPart>),
}

#[derive(Clone, Debug, Default)]
pub(super) struct ParameterExpansion {
    pub(super) name: String,
    pub(super) is_length: bool,
    pub(super) is_indirect: bool,
    pub(super) subscript: Option<Vec<ShellWordPart>>,
    pub(super) operator: ParameterOperator,
    pub(super) operand: Vec<ShellWordPart>,
    /// It can be several words even between quotes.
    pub(super) is_many: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ParameterOperator {
    #[default]
    None,
    /// `:-`, `:+`, `:?` and without the colon.
    Default,
    Assign,
    Substring,
    Pattern,
    Transform(char),
}

impl ParameterExpansion {
    /// Whether it is the value of a variable as it is.
    pub(super) fn is_plain(&self) -> bool {
        let is_changed = self.is_length || self.is_indirect || self.is_many || self.subscript.is_some();
        !is_changed && self.operator == ParameterOperator::None && self.operand.is_empty()
    }
}

impl RawWord {
    /// The text if nothing in it is expanded by a variable or a command. Quotes are undone, nothing else is done.
    pub(super) fn literal(&self) -> Option<String> {
        literal(&self.parts)
    }

    pub(super) fn is_unquoted_text(&self, text: &str) -> bool {
        matches!(self.parts.as_slice(), [ShellWordPart::Text(own)] if own == text)
    }
}

pub(super) fn literal(parts: &[ShellWordPart]) -> Option<String> {
    let mut text = String::new();
    for part in parts {
        match part {
            ShellWordPart::Text(piece) | ShellWordPart::Quoted(piece) => text.push_str(piece),
            ShellWordPart::Expansion { .. } => return None,
        }
    }
    Some(text)
}
