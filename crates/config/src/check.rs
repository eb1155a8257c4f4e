//! Is this what the settings look like? Every mistake is noted; what is right is kept.

use std::collections::BTreeMap;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeArray, DeInteger, DeTable, DeValue};

use crate::dollars::Dollars;
use crate::escaping::escape_and_shorten;
use crate::nearest::{is_same_word, nearest};
use crate::origin::SettingOrigin;
use crate::problem::ConfigProblem;
use crate::setting_key::{SettingKey, is_model, is_name};
use crate::settings_text::SettingsText;
use crate::shape::{MapKeyKind, SettingChoice, SettingKind, SettingShape, TableShape, settings_shape};
use crate::source_values::{CheckedContent, CheckedNode, SourceValues};
use crate::time_span::{TimeSpan, TimeSpanError};

/// A longer list of valid keys would be no hint.
const MAX_KEYS_IN_HINT: usize = 8;

/// Where the checked tree comes from.
pub(crate) enum CheckedSource<'a> {
    /// A file, some lines of which may have been left out.
    File { text: &'a SettingsText, has_gaps: bool },
    /// A variable or a flag: everything in it is at the same place.
    SingleValue(SettingOrigin),
}

impl CheckedSource<'_> {
    fn origin(&self, offset: usize) -> SettingOrigin {
        match self {
            CheckedSource::File { text, .. } => text.origin(offset),
            CheckedSource::SingleValue(origin) => origin.clone(),
        }
    }

    fn has_gaps(&self) -> bool {
        matches!(self, CheckedSource::File { has_gaps: true, .. })
    }
}

/// What `table` says, as far as it is right.
pub(crate) fn check_table(
    source: CheckedSource<'_>,
    table: &DeTable<'_>,
    problems: &mut Vec<ConfigProblem>,
) -> SourceValues {
    let mut checker = SettingsChecker { source, problems };
    let content = match settings_shape().as_table() {
        Some(shape) => checker.table(&SettingKey::root(), table, shape),
        None => CheckedContent::Broken,
    };
    let root = CheckedNode { origin: checker.source.origin(0), content };
    let mut found = SourceValues::new(&root, settings_shape());
    found.has_gaps = checker.source.has_gaps();
    found
}

struct SettingsChecker<'a> {
    source: CheckedSource<'a>,
    problems: &'a mut Vec<ConfigProblem>,
}

impl SettingsChecker<'_> {
    /// `at` is where the key is, which is what a person looks for.
    fn node(
        &mut self,
        key: &SettingKey,
        at: usize,
        value: &Spanned<DeValue<'_>>,
        shape: &SettingShape,
    ) -> CheckedNode {
        let content = match (&shape.kind, value.get_ref()) {
            (SettingKind::Table(shape), DeValue::Table(table)) => self.table(key, table, shape),
            (SettingKind::Map(named_by, entry), DeValue::Table(table)) => {
                self.map(key, table, *named_by, entry)
            }
            (SettingKind::List(item), DeValue::Array(items)) => self.list(key, items, item),
            (kind, found) => match read_value(kind, found) {
                Ok(value) => CheckedContent::Leaf(value),
                Err(fault) => {
                    let problem = ConfigProblem::new(
                        self.source.origin(value.span().start),
                        format!("{key}: {}", fault.message),
                    );
                    self.problems
                        .push(fault.hint.iter().fold(problem.about(key), |problem, hint| problem.hint(hint)));
                    CheckedContent::Broken
                }
            },
        };
        CheckedNode { origin: self.source.origin(at), content }
    }

    fn table(&mut self, key: &SettingKey, table: &DeTable<'_>, shape: &TableShape) -> CheckedContent {
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
        CheckedContent::Table(keys)
    }

    fn unknown_key(
        &mut self,
        key: &SettingKey,
        name: &Spanned<std::borrow::Cow<'_, str>>,
        table: &TableShape,
    ) {
        let problem =
            ConfigProblem::new(self.source.origin(name.span().start), format!("unknown key `{key}`"));
        self.problems.push(problem.about(key).hint(key_hint(key, name.get_ref(), table)));
    }

    fn map(
        &mut self,
        key: &SettingKey,
        table: &DeTable<'_>,
        named_by: MapKeyKind,
        entry: &SettingShape,
    ) -> CheckedContent {
        let mut keys = BTreeMap::new();
        for (name, value) in table {
            let inner = key.child(name.get_ref());
            let hint = match named_by {
                MapKeyKind::Name if !is_name(name.get_ref()) => {
                    Some("use 1 to 64 letters, digits, `_` or `-`")
                }
                MapKeyKind::ModelName if !is_model(name.get_ref()) => Some("write it as \"provider/model\""),
                _ => None,
            };
            if let Some(hint) = hint {
                let problem = ConfigProblem::new(
                    self.source.origin(name.span().start),
                    format!("{inner}: this can't be a name"),
                );
                self.problems.push(problem.about(&inner).hint(hint));
                continue;
            }
            keys.insert(name.get_ref().to_string(), self.node(&inner, name.span().start, value, entry));
        }
        CheckedContent::Table(keys)
    }

    fn list(&mut self, key: &SettingKey, items: &DeArray<'_>, shape: &SettingShape) -> CheckedContent {
        let mut nodes = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let key = key.item(index);
            let node = self.node(&key, item.span().start, item, shape);
            self.require_parts(&key, &node, shape);
            nodes.push(node);
        }
        CheckedContent::List(nodes)
    }

    /// Items of lists are never completed by another layer, so they are judged alone.
    fn require_parts(&mut self, key: &SettingKey, node: &CheckedNode, shape: &SettingShape) {
        if let (Some(table), CheckedContent::Table(keys)) = (shape.as_table(), &node.content)
            && !self.source.has_gaps()
        {
            self.problems.extend(missing_parts(key, &node.origin, table, |name| keys.contains_key(name)));
        }
    }
}

fn key_hint(key: &SettingKey, name: &str, table: &TableShape) -> String {
    let siblings = || table.keys.iter().map(|(name, _)| name.as_str());
    if let Some(meant) = nearest(name, siblings()) {
        return format!("did you mean `{meant}`?");
    }
    if let Some(elsewhere) = same_name_elsewhere(key, name) {
        return format!("did you mean `{elsewhere}`?");
    }
    if table.keys.len() <= MAX_KEYS_IN_HINT {
        return format!("valid keys here: {}", siblings().collect::<Vec<_>>().join(", "));
    }
    "`helve reference settings` lists the valid keys".to_owned()
}

/// A key under the wrong header, such as `max_steps` at the top.
fn same_name_elsewhere(key: &SettingKey, name: &str) -> Option<SettingKey> {
    let mut found = None;
    settings_shape().walk(&SettingKey::root(), &mut |other, _| {
        if other != key && other.parts().last().is_some_and(|last| is_same_word(last, name)) {
            found.get_or_insert(other.clone());
        }
    });
    found
}

/// What a table at `key` lacks.
pub(crate) fn missing_parts(
    key: &SettingKey,
    origin: &SettingOrigin,
    table: &TableShape,
    has: impl Fn(&str) -> bool,
) -> Vec<ConfigProblem> {
    let problem =
        |message: String, hint: String| ConfigProblem::new(origin.clone(), message).about(key).hint(hint);
    let lacking = table.required.iter().filter(|name| !has(name));
    let problems: Vec<ConfigProblem> = lacking
        .map(|name| {
            let kind = table.get(name).map_or(&SettingKind::Opaque, |shape| &shape.kind);
            problem(format!("{key} has no `{name}`"), format!("add `{name}`: {}", expected(kind)))
        })
        .collect();
    problems
}

/// What is wrong with a single value.
struct SettingValueError {
    message: String,
    hint: Option<String>,
}

impl SettingValueError {
    fn new(message: impl ToString) -> SettingValueError {
        SettingValueError { message: message.to_string(), hint: None }
    }
}

fn read_value(kind: &SettingKind, value: &DeValue<'_>) -> Result<Value, SettingValueError> {
    match (kind, value) {
        (SettingKind::Text { min_chars }, DeValue::String(text))
            if text.chars().take(*min_chars).count() < *min_chars =>
        {
            Err(SettingValueError::new("this must not be empty"))
        }
        (SettingKind::Text { .. }, DeValue::String(text)) => Ok(text.as_ref().into()),
        (SettingKind::Boolean, DeValue::Boolean(flag)) => Ok((*flag).into()),
        (SettingKind::Integer { least, most }, DeValue::Integer(number)) => read_whole(number, *least, *most),
        (SettingKind::Money, DeValue::String(text)) => read_money(text),
        (SettingKind::Money, DeValue::Float(number)) => read_money(number.as_str().trim_start_matches('+')),
        (SettingKind::Money, DeValue::Integer(number)) => read_money(&decimal(number)),
        (SettingKind::Span, DeValue::String(text)) => read_span(text),
        (SettingKind::Span, DeValue::Integer(number)) => {
            Err(SettingValueError::new(TimeSpanError::NoUnit(decimal(number))))
        }
        (SettingKind::Span, DeValue::Float(number)) => {
            Err(SettingValueError::new(TimeSpanError::NoUnit(number.to_string())))
        }
        (SettingKind::Choice(choices), DeValue::String(text)) => read_choice(text, choices),
        (SettingKind::OneOrMoreTexts, DeValue::String(text)) => Ok(vec![text.as_ref()].into()),
        (SettingKind::OneOrMoreTexts, DeValue::Array(items)) => {
            let texts: Option<Vec<&str>> = items.iter().map(|item| item.get_ref().as_str()).collect();
            let mixed =
                || SettingValueError::new(format!("expected {}, found something else in it", expected(kind)));
            texts.map(Value::from).ok_or_else(mixed)
        }
        (kind, found) => {
            Err(SettingValueError::new(format!("expected {}, found {}", expected(kind), described(found))))
        }
    }
}

fn number(digits: &DeInteger<'_>) -> Option<i128> {
    i128::from_str_radix(digits.as_str(), digits.radix()).ok()
}

/// As it was written, unless that was in another base.
fn decimal(digits: &DeInteger<'_>) -> String {
    number(digits).map_or_else(|| digits.to_string(), |number| number.to_string())
}

fn read_whole(digits: &DeInteger<'_>, least: u64, most: u64) -> Result<Value, SettingValueError> {
    let shown = decimal(digits);
    match number(digits) {
        Some(number) if number < i128::from(least) => {
            Err(SettingValueError::new(format!("{shown} is too small; the least is {least}")))
        }
        Some(number) if number <= i128::from(most) => u64::try_from(number)
            .map(Value::from)
            .map_err(|_| SettingValueError::new(format!("{shown} is too large"))),
        _ => Err(SettingValueError::new(format!("{shown} is too large; the most is {most}"))),
    }
}

fn read_money(text: &str) -> Result<Value, SettingValueError> {
    text.parse::<Dollars>().map(|dollars| dollars.to_string().into()).map_err(SettingValueError::new)
}

fn read_span(text: &str) -> Result<Value, SettingValueError> {
    match text.parse::<TimeSpan>() {
        Ok(span) if span.millis() == 0 => Err(SettingValueError::new("this must be longer than zero")),
        Ok(span) => Ok(span.to_string().into()),
        Err(error) => Err(SettingValueError::new(error)),
    }
}

fn read_choice(text: &str, choices: &[SettingChoice]) -> Result<Value, SettingValueError> {
    let names = || choices.iter().map(|choice| choice.name.as_str());
    if names().any(|name| name == text) {
        return Ok(text.into());
    }
    let shown = escape_and_shorten(&text.chars().take(60).collect::<String>());
    let message = format!("\"{shown}\" is not one of {}", names().collect::<Vec<_>>().join(", "));
    let hint = nearest(text, names()).map(|meant| format!("did you mean \"{meant}\"?"));
    Err(SettingValueError { message, hint })
}

/// What belongs here, in words.
pub(crate) fn expected(kind: &SettingKind) -> String {
    match kind {
        SettingKind::Text { .. } => "a string".to_owned(),
        SettingKind::Boolean => "true or false".to_owned(),
        SettingKind::Integer { .. } => "a whole number".to_owned(),
        SettingKind::Money => "an amount in dollars, such as \"2.50\"".to_owned(),
        SettingKind::Span => "a time span, such as \"30m\"".to_owned(),
        SettingKind::Choice(choices) => {
            let names: Vec<_> = choices.iter().map(|choice| format!("\"{}\"", choice.name)).collect();
            format!("one of {}", names.join(", "))
        }
        SettingKind::OneOrMoreTexts => "a string or a list of strings".to_owned(),
        SettingKind::List(_) => "a list".to_owned(),
        SettingKind::Table(_) | SettingKind::Map(..) => "a table".to_owned(),
        SettingKind::Opaque => "nothing".to_owned(),
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
