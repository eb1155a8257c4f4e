//! Is this what the settings look like? Every mistake is noted; what is right is kept.

use std::collections::BTreeMap;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeArray, DeInteger, DeTable, DeValue};

use crate::dollars::Dollars;
use crate::found::{Content, Found, Node};
use crate::key::{Key, is_model, is_name};
use crate::nearest::{alike, nearest};
use crate::place::Origin;
use crate::problem::{Problem, presentable};
use crate::shape::{Choice, Kind, NamedBy, Shape, Table, shape};
use crate::span::{Span, SpanError};
use crate::text::Text;

/// A longer list of valid keys would be no hint.
const MOST_KEYS_IN_A_HINT: usize = 8;

/// Where the checked tree comes from.
pub(crate) enum Source<'a> {
    /// A file, some lines of which may have been left out.
    File { text: &'a Text, has_gaps: bool },
    /// A variable or a flag: everything in it is at the same place.
    Line(Origin),
}

impl Source<'_> {
    fn origin(&self, offset: usize) -> Origin {
        match self {
            Source::File { text, .. } => text.origin(offset),
            Source::Line(origin) => origin.clone(),
        }
    }

    fn has_gaps(&self) -> bool {
        matches!(self, Source::File { has_gaps: true, .. })
    }
}

/// What `table` says, as far as it is right.
pub(crate) fn check(source: Source<'_>, table: &DeTable<'_>, problems: &mut Vec<Problem>) -> Found {
    let mut checker = Checker { source, problems };
    let content = match shape().as_table() {
        Some(shape) => checker.table(&Key::root(), table, shape),
        None => Content::Broken,
    };
    let root = Node { origin: checker.source.origin(0), content };
    let mut found = Found::new(&root, shape());
    found.has_gaps = checker.source.has_gaps();
    found
}

struct Checker<'a> {
    source: Source<'a>,
    problems: &'a mut Vec<Problem>,
}

impl Checker<'_> {
    /// `at` is where the key is, which is what a person looks for.
    fn node(&mut self, key: &Key, at: usize, value: &Spanned<DeValue<'_>>, shape: &Shape) -> Node {
        let content = match (&shape.kind, value.get_ref()) {
            (Kind::Table(shape), DeValue::Table(table)) => self.table(key, table, shape),
            (Kind::Map(named_by, entry), DeValue::Table(table)) => self.map(key, table, *named_by, entry),
            (Kind::List(item), DeValue::Array(items)) => self.list(key, items, item),
            (kind, found) => match read(kind, found) {
                Ok(value) => Content::Leaf(value),
                Err(fault) => {
                    let problem = Problem::new(
                        self.source.origin(value.span().start),
                        format!("{key}: {}", fault.message),
                    );
                    self.problems
                        .push(fault.hint.iter().fold(problem.about(key), |problem, hint| problem.hint(hint)));
                    Content::Broken
                }
            },
        };
        Node { origin: self.source.origin(at), content }
    }

    fn table(&mut self, key: &Key, table: &DeTable<'_>, shape: &Table) -> Content {
        let mut keys = BTreeMap::new();
        for (name, value) in table {
            let inner = key.child(name.get_ref());
            match shape.get(name.get_ref()) {
                Some(shape) => {
                    keys.insert(
                        name.get_ref().to_string(),
                        self.node(&inner, name.span().start, value, shape),
                    );
                }
                None => self.unknown_key(&inner, name, shape),
            }
        }
        self.refuse_rivals(key, table, shape);
        Content::Table(keys)
    }

    fn unknown_key(&mut self, key: &Key, name: &Spanned<std::borrow::Cow<'_, str>>, table: &Table) {
        let problem = Problem::new(self.source.origin(name.span().start), format!("unknown key `{key}`"));
        self.problems.push(problem.about(key).hint(key_hint(key, name.get_ref(), table)));
    }

    fn refuse_rivals(&mut self, key: &Key, table: &DeTable<'_>, shape: &Table) {
        let is_rival = |name: &str| shape.one_of.iter().any(|rival| rival == name);
        let rivals = table.keys().filter(|name| is_rival(name.get_ref()));
        let mut rivals: Vec<_> = rivals.map(|name| (name.span().start, name.get_ref())).collect();
        rivals.sort();
        if let [(_, first), .., (at, last)] = rivals.as_slice() {
            let problem =
                Problem::new(self.source.origin(*at), format!("{key} has both `{first}` and `{last}`"));
            self.problems.push(problem.about(key).hint("keep one of them"));
        }
    }

    fn map(&mut self, key: &Key, table: &DeTable<'_>, named_by: NamedBy, entry: &Shape) -> Content {
        let mut keys = BTreeMap::new();
        for (name, value) in table {
            let inner = key.child(name.get_ref());
            let hint = match named_by {
                NamedBy::Name if !is_name(name.get_ref()) => Some("use 1 to 64 letters, digits, `_` or `-`"),
                NamedBy::Model if !is_model(name.get_ref()) => Some("write it as \"provider/model\""),
                _ => None,
            };
            if let Some(hint) = hint {
                let problem = Problem::new(
                    self.source.origin(name.span().start),
                    format!("{inner}: this can't be a name"),
                );
                self.problems.push(problem.about(&inner).hint(hint));
                continue;
            }
            keys.insert(name.get_ref().to_string(), self.node(&inner, name.span().start, value, entry));
        }
        Content::Table(keys)
    }

    fn list(&mut self, key: &Key, items: &DeArray<'_>, shape: &Shape) -> Content {
        let mut nodes = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let key = key.item(index);
            let node = self.node(&key, item.span().start, item, shape);
            self.require_parts(&key, &node, shape);
            nodes.push(node);
        }
        Content::List(nodes)
    }

    /// Items of lists are never completed by another layer, so they are judged alone.
    fn require_parts(&mut self, key: &Key, node: &Node, shape: &Shape) {
        if let (Some(table), Content::Table(keys)) = (shape.as_table(), &node.content)
            && !self.source.has_gaps()
        {
            self.problems.extend(missing_parts(key, &node.origin, table, |name| keys.contains_key(name)));
        }
    }
}

fn key_hint(key: &Key, name: &str, table: &Table) -> String {
    let siblings = || table.keys.iter().map(|(name, _)| name.as_str());
    if let Some(meant) = nearest(name, siblings()) {
        return format!("did you mean `{meant}`?");
    }
    if let Some(elsewhere) = same_name_elsewhere(key, name) {
        return format!("did you mean `{elsewhere}`?");
    }
    if table.keys.len() <= MOST_KEYS_IN_A_HINT {
        return format!("valid keys here: {}", siblings().collect::<Vec<_>>().join(", "));
    }
    "`helve reference settings` lists the valid keys".to_owned()
}

/// A key under the wrong header, such as `max_steps` at the top.
fn same_name_elsewhere(key: &Key, name: &str) -> Option<Key> {
    let mut found = None;
    shape().walk(&Key::root(), &mut |other, _| {
        if other != key && other.parts().last().is_some_and(|last| alike(last, name)) {
            found.get_or_insert(other.clone());
        }
    });
    found
}

/// What a table at `key` lacks.
pub(crate) fn missing_parts(
    key: &Key,
    origin: &Origin,
    table: &Table,
    has: impl Fn(&str) -> bool,
) -> Vec<Problem> {
    let problem = |message: String, hint: String| Problem::new(origin.clone(), message).about(key).hint(hint);
    let lacking = table.required.iter().filter(|name| !has(name));
    let mut problems: Vec<Problem> = lacking
        .map(|name| {
            let kind = table.get(name).map_or(&Kind::Opaque, |shape| &shape.kind);
            problem(format!("{key} has no `{name}`"), format!("add `{name}`: {}", expected(kind)))
        })
        .collect();
    if !table.one_of.is_empty() && !table.one_of.iter().any(|name| has(name)) {
        let names: Vec<_> = table.one_of.iter().map(|name| format!("`{name}`")).collect();
        problems.push(problem(
            format!("{key} has neither {}", names.join(" nor ")),
            "add one of them".to_owned(),
        ));
    }
    problems
}

/// What is wrong with a single value.
struct Fault {
    message: String,
    hint: Option<String>,
}

impl Fault {
    fn new(message: impl ToString) -> Fault {
        Fault { message: message.to_string(), hint: None }
    }
}

fn read(kind: &Kind, value: &DeValue<'_>) -> Result<Value, Fault> {
    match (kind, value) {
        (Kind::Text { min_chars }, DeValue::String(text))
            if text.chars().take(*min_chars).count() < *min_chars =>
        {
            Err(Fault::new("this must not be empty"))
        }
        (Kind::Text { .. }, DeValue::String(text)) => Ok(text.as_ref().into()),
        (Kind::Flag, DeValue::Boolean(flag)) => Ok((*flag).into()),
        (Kind::Whole { least, most }, DeValue::Integer(number)) => read_whole(number, *least, *most),
        (Kind::Money, DeValue::String(text)) => read_money(text),
        (Kind::Money, DeValue::Float(number)) => read_money(number.as_str().trim_start_matches('+')),
        (Kind::Money, DeValue::Integer(number)) => read_money(&decimal(number)),
        (Kind::Span, DeValue::String(text)) => read_span(text),
        (Kind::Span, DeValue::Integer(number)) => Err(Fault::new(SpanError::NoUnit(decimal(number)))),
        (Kind::Span, DeValue::Float(number)) => Err(Fault::new(SpanError::NoUnit(number.to_string()))),
        (Kind::Choice(choices), DeValue::String(text)) => read_choice(text, choices),
        (Kind::Texts, DeValue::String(text)) => Ok(vec![text.as_ref()].into()),
        (Kind::Texts, DeValue::Array(items)) => {
            let texts: Option<Vec<&str>> = items.iter().map(|item| item.get_ref().as_str()).collect();
            let mixed = || Fault::new(format!("expected {}, found something else in it", expected(kind)));
            texts.map(Value::from).ok_or_else(mixed)
        }
        (kind, found) => Err(Fault::new(format!("expected {}, found {}", expected(kind), described(found)))),
    }
}

fn number(digits: &DeInteger<'_>) -> Option<i128> {
    i128::from_str_radix(digits.as_str(), digits.radix()).ok()
}

/// As it was written, unless that was in another base.
fn decimal(digits: &DeInteger<'_>) -> String {
    number(digits).map_or_else(|| digits.to_string(), |number| number.to_string())
}

fn read_whole(digits: &DeInteger<'_>, least: u64, most: u64) -> Result<Value, Fault> {
    let shown = decimal(digits);
    match number(digits) {
        Some(number) if number < i128::from(least) => {
            Err(Fault::new(format!("{shown} is too small; the least is {least}")))
        }
        Some(number) if number <= i128::from(most) => {
            u64::try_from(number).map(Value::from).map_err(|_| Fault::new(format!("{shown} is too large")))
        }
        _ => Err(Fault::new(format!("{shown} is too large; the most is {most}"))),
    }
}

fn read_money(text: &str) -> Result<Value, Fault> {
    text.parse::<Dollars>().map(|dollars| dollars.to_string().into()).map_err(Fault::new)
}

fn read_span(text: &str) -> Result<Value, Fault> {
    match text.parse::<Span>() {
        Ok(span) if span.millis() == 0 => Err(Fault::new("this must be longer than zero")),
        Ok(span) => Ok(span.to_string().into()),
        Err(error) => Err(Fault::new(error)),
    }
}

fn read_choice(text: &str, choices: &[Choice]) -> Result<Value, Fault> {
    let names = || choices.iter().map(|choice| choice.name.as_str());
    if names().any(|name| name == text) {
        return Ok(text.into());
    }
    let shown = presentable(&text.chars().take(60).collect::<String>());
    let message = format!("\"{shown}\" is not one of {}", names().collect::<Vec<_>>().join(", "));
    let hint = nearest(text, names()).map(|meant| format!("did you mean \"{meant}\"?"));
    Err(Fault { message, hint })
}

/// What belongs here, in words.
pub(crate) fn expected(kind: &Kind) -> String {
    match kind {
        Kind::Text { .. } => "a string".to_owned(),
        Kind::Flag => "true or false".to_owned(),
        Kind::Whole { .. } => "a whole number".to_owned(),
        Kind::Money => "an amount in dollars, such as \"2.50\"".to_owned(),
        Kind::Span => "a time span, such as \"30m\"".to_owned(),
        Kind::Choice(choices) => {
            let names: Vec<_> = choices.iter().map(|choice| format!("\"{}\"", choice.name)).collect();
            format!("one of {}", names.join(", "))
        }
        Kind::Texts => "a string or a list of strings".to_owned(),
        Kind::List(_) => "a list".to_owned(),
        Kind::Table(_) | Kind::Map(..) => "a table".to_owned(),
        Kind::Opaque => "nothing".to_owned(),
    }
}

fn described(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with decimals",
        DeValue::Boolean(true) => "true",
        DeValue::Boolean(false) => "false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
