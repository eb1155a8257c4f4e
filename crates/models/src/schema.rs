//! Does an input fit the schema of its tool? The part of JSON Schema that tools use.
//!
//! Keywords that are not known here are ignored, and so are `pattern` and `patternProperties`: they would need a
//! language of regular expressions that not even their own users agree on. A schema may come from a stranger's server, so
//! it can cost only so many steps.

use std::fmt;

use serde_json::{Map, Number, Value, json};

use crate::repair;

/// A model can't mend more at once.
const MAX_VIOLATIONS: usize = 16;
/// How many fixes are told. More may be done.
const MAX_REPORTED_COERCIONS: usize = 64;
/// Schemas and values may be nested, and a schema may refer to itself.
const MAX_SCHEMA_DEPTH: usize = 160;
/// How many pairs of a schema and a value are looked at.
const MAX_SCHEMA_STEPS: usize = 1_000_000;
/// How much of a value is shown, and of a name.
const MAX_VALUE_CHARS_SHOWN: usize = 40;
/// A longer list would be no hint.
const MAX_NAMES_IN_HINT: usize = 8;
/// The largest number up to which every float without a fraction is one integer.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// What does not fit, in words for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaViolation {
    /// A JSON pointer. Empty for the input as a whole.
    pub path: String,
    /// What is wrong there.
    pub why: String,
}

impl fmt::Display for SchemaViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        at_path(f, &self.path, &self.why)
    }
}

/// An input after gentle fixes.
#[derive(Clone, Debug, PartialEq)]
pub struct CoercedInput {
    /// The input as it is now.
    pub value: Value,
    /// What was done: all of it, or the first of very much.
    pub changes: Vec<InputCoercion>,
}

/// What was fixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputCoercion {
    /// A JSON pointer. Empty for the input as a whole.
    pub path: String,
    /// What was done there.
    pub what: String,
}

impl fmt::Display for InputCoercion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        at_path(f, &self.path, &self.what)
    }
}

fn at_path(f: &mut fmt::Formatter<'_>, path: &str, text: &str) -> fmt::Result {
    if path.is_empty() { write!(f, "the input: {text}") } else { write!(f, "`{path}`: {text}") }
}

/// Tells everything in which the input does not fit the schema, up to a bound.
pub fn check(schema: &Value, input: &Value) -> Result<(), Vec<SchemaViolation>> {
    let mut checker = ToolInputChecker { schemas: SchemaContext::new(schema), misfits: Vec::new() };
    checker.visit(schema, input, &InputPath::Root);
    if checker.misfits.is_empty() { Ok(()) } else { Err(checker.misfits) }
}

/// Fixes what leaves no doubt: a text where no text is allowed and which is the JSON of what is (`"10"`, `"true"`,
/// `"[1, 2]"`), a whole float where an integer is wanted, and null for a property that may as well be left out.
/// What can't be fixed stays as it is, for [`check`] to tell.
pub fn coerce(schema: &Value, input: Value) -> CoercedInput {
    let mut coercer = ToolInputCoercer { schemas: SchemaContext::new(schema), changes: Vec::new() };
    let value = coercer.settle(schema, input, &InputPath::Root);
    CoercedInput { value, changes: coercer.changes }
}

/// Where we are in the input. It is written out only when something is told about the place.
enum InputPath<'p> {
    Root,
    Key(&'p InputPath<'p>, &'p str),
    Index(&'p InputPath<'p>, usize),
}

impl fmt::Display for InputPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputPath::Root => Ok(()),
            InputPath::Key(parent, key) => {
                write!(f, "{parent}/{}", shortened(key).replace('~', "~0").replace('/', "~1"))
            }
            InputPath::Index(parent, index) => write!(f, "{parent}/{index}"),
        }
    }
}

/// A schema with everything that it may refer to, and how much more may be done with it.
struct SchemaContext<'s> {
    root: &'s Value,
    depth: usize,
    steps: usize,
}

impl<'s> SchemaContext<'s> {
    fn new(root: &'s Value) -> SchemaContext<'s> {
        SchemaContext { root, depth: 0, steps: 0 }
    }

    /// Counts a step down. False if it would be too much; then there is none to come back from.
    fn enter(&mut self) -> bool {
        let may = self.depth < MAX_SCHEMA_DEPTH && self.steps < MAX_SCHEMA_STEPS;
        self.depth += usize::from(may);
        self.steps += usize::from(may);
        may
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    /// What the schema refers to, if it does and that exists.
    fn referred(&self, schema: &'s Value) -> Option<&'s Value> {
        self.root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
    }

    /// Whether a value of this kind can fit. Nothing inside of it is looked at.
    fn allows(&mut self, schema: &'s Value, value: &Value) -> bool {
        if !self.enter() {
            return true;
        }
        let allowed = self.allows_kind(schema, value);
        self.leave();
        allowed
    }

    fn allows_kind(&mut self, schema: &'s Value, value: &Value) -> bool {
        if value.is_null() && is_nullable(schema) {
            return true;
        }
        if schema.get("type").is_some_and(|wanted| !is_of_type(wanted, value)) {
            return false;
        }
        if self.referred(schema).is_some_and(|target| !self.allows(target, value)) {
            return false;
        }
        let of_choices = |choices: &[Value]| choices.iter().any(|choice| kind(choice) == kind(value));
        if listed(schema, "enum").is_some_and(|choices| !of_choices(choices)) {
            return false;
        }
        if schema.get("const").is_some_and(|constant| kind(constant) != kind(value)) {
            return false;
        }
        let any = |schemas: &mut Self, branches: Option<&'s [Value]>| {
            branches.is_none_or(|branches| branches.iter().any(|branch| schemas.allows(branch, value)))
        };
        listed(schema, "allOf").unwrap_or_default().iter().all(|part| self.allows(part, value))
            && any(self, listed(schema, "anyOf"))
            && any(self, listed(schema, "oneOf"))
    }

    /// The schemas that certainly apply to the value: this one, what it refers to, and of its branches those that must
    /// be meant.
    fn applying(&mut self, schema: &'s Value, value: &Value) -> Vec<&'s Value> {
        if !self.enter() {
            return Vec::new();
        }
        let mut next: Vec<&Value> = self.referred(schema).into_iter().collect();
        next.extend(listed(schema, "allOf").unwrap_or_default());
        for branches in ["anyOf", "oneOf"].into_iter().filter_map(|name| listed(schema, name)) {
            let possible: Vec<&Value> = branches.iter().filter(|branch| self.allows(branch, value)).collect();
            if let [only] = possible.as_slice() {
                next.push(only);
            }
        }
        let mut applying = vec![schema];
        for schema in next {
            applying.extend(self.applying(schema, value));
        }
        self.leave();
        applying
    }

    /// What the schema wants, in a few words.
    fn described(&self, schema: &'s Value) -> String {
        let schema = self.referred(schema).unwrap_or(schema);
        if let Some(wanted) = schema.get("type") {
            type_names(wanted)
        } else if let Some(constant) = schema.get("const") {
            shown(constant)
        } else if let Some(choices) = listed(schema, "enum") {
            enumerated(choices.iter().map(shown), " or ")
        } else {
            "something else".to_owned()
        }
    }
}

struct ToolInputChecker<'s> {
    schemas: SchemaContext<'s>,
    misfits: Vec<SchemaViolation>,
}

impl<'s> ToolInputChecker<'s> {
    fn tell(&mut self, path: &InputPath<'_>, why: impl Into<String>) {
        if self.misfits.len() < MAX_VIOLATIONS {
            self.misfits.push(SchemaViolation { path: path.to_string(), why: why.into() });
        }
    }

    fn visit(&mut self, schema: &'s Value, input: &Value, path: &InputPath<'_>) {
        if self.misfits.len() == MAX_VIOLATIONS {
            return;
        }
        if !self.schemas.enter() {
            return self.tell(path, "there is too much in it to be checked");
        }
        match schema {
            Value::Bool(false) => self.tell(path, "nothing is allowed here"),
            Value::Object(_) if input.is_null() && is_nullable(schema) => {}
            Value::Object(_) => self.compare(schema, input, path),
            _ => {}
        }
        self.schemas.leave();
    }

    fn compare(&mut self, schema: &'s Value, input: &Value, path: &InputPath<'_>) {
        if let Some(wanted) = schema.get("type").filter(|wanted| !is_of_type(wanted, input)) {
            // Whatever else the schema says is about another type.
            return self.tell(path, format!("expected {}, got {}", type_names(wanted), shown(input)));
        }
        if let Some(target) = self.schemas.referred(schema) {
            self.visit(target, input, path);
        }
        self.choices(schema, input, path);
        match input {
            Value::String(text) => self.text(schema, text, path),
            Value::Number(number) => self.number(schema, number, path),
            Value::Array(items) => self.list(schema, items, path),
            Value::Object(members) => self.object(schema, members, path),
            Value::Null | Value::Bool(_) => {}
        }
        for part in listed(schema, "allOf").unwrap_or_default() {
            self.visit(part, input, path);
        }
        if let Some(branches) = listed(schema, "anyOf") {
            self.branches(branches, input, path);
        }
        if let Some(branches) = listed(schema, "oneOf")
            && self.branches(branches, input, path) > 1
        {
            self.tell(path, "it fits more than one of the forms of which exactly one is allowed");
        }
    }

    fn choices(&mut self, schema: &Value, input: &Value, path: &InputPath<'_>) {
        if let Some(choices) = listed(schema, "enum")
            && !choices.iter().any(|choice| is_same(choice, input))
        {
            let choices = enumerated(choices.iter().map(shown), " or ");
            self.tell(path, format!("expected {choices}, got {}", shown(input)));
        }
        if let Some(constant) = schema.get("const")
            && !is_same(constant, input)
        {
            self.tell(path, format!("expected {}, got {}", shown(constant), shown(input)));
        }
    }

    fn text(&mut self, schema: &Value, text: &str, path: &InputPath<'_>) {
        let bounds = ["minLength", "maxLength"].map(|name| schema.get(name).and_then(Value::as_u64));
        if bounds != [None, None] {
            self.size(bounds, text.chars().count(), "characters", path);
        }
    }

    fn size(&mut self, [least, most]: [Option<u64>; 2], size: usize, of: &str, path: &InputPath<'_>) {
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        if let Some(least) = least.filter(|least| size < *least) {
            self.tell(path, format!("expected at least {least} {of}, got {size}"));
        }
        if let Some(most) = most.filter(|most| size > *most) {
            self.tell(path, format!("expected at most {most} {of}, got {size}"));
        }
    }

    fn number(&mut self, schema: &Value, number: &Number, path: &InputPath<'_>) {
        let Some(value) = number.as_f64() else { return };
        type Holds = fn(&f64, &f64) -> bool;
        let rules: [(&str, &str, Holds); 4] = [
            ("minimum", "at least", f64::ge),
            ("maximum", "at most", f64::le),
            ("exclusiveMinimum", "more than", f64::gt),
            ("exclusiveMaximum", "less than", f64::lt),
        ];
        for (keyword, words, holds) in rules {
            let Some(bound) = schema.get(keyword).filter(|bound| bound.is_number()) else { continue };
            if bound.as_f64().is_some_and(|limit| !holds(&value, &limit)) {
                self.tell(path, format!("expected {words} {bound}, got {number}"));
            }
        }
    }

    fn list(&mut self, schema: &'s Value, items: &[Value], path: &InputPath<'_>) {
        let bounds = ["minItems", "maxItems"].map(|name| schema.get(name).and_then(Value::as_u64));
        self.size(bounds, items.len(), "items", path);
        if let Some(each) = schema.get("items") {
            for (index, item) in items.iter().enumerate() {
                self.visit(each, item, &InputPath::Index(path, index));
            }
        }
    }

    fn object(&mut self, schema: &'s Value, members: &Map<String, Value>, path: &InputPath<'_>) {
        for name in listed(schema, "required").unwrap_or_default().iter().filter_map(Value::as_str) {
            if !members.contains_key(name) {
                self.tell(&InputPath::Key(path, name), "is required, but missing");
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, value) in members {
            let path = InputPath::Key(path, name);
            if let Some(property) = properties.and_then(|properties| properties.get(name)) {
                self.visit(property, value, &path);
            } else if schema.get("patternProperties").is_none() {
                match schema.get("additionalProperties") {
                    Some(Value::Bool(false)) => self.tell(&path, unknown(name, properties)),
                    Some(others) => self.visit(others, value, &path),
                    None => {}
                }
            }
        }
    }

    /// How many of the branches fit. If none does, it is told why.
    fn branches(&mut self, branches: &'s [Value], input: &Value, path: &InputPath<'_>) -> usize {
        let outside = std::mem::take(&mut self.misfits);
        let mut fitting = 0;
        let mut near: Vec<Vec<SchemaViolation>> = Vec::new();
        for branch in branches {
            self.visit(branch, input, path);
            let misfits = std::mem::take(&mut self.misfits);
            if misfits.is_empty() {
                fitting += 1;
            } else if self.schemas.allows(branch, input) {
                near.push(misfits);
            }
        }
        self.misfits = outside;
        if fitting == 0 {
            self.tell_nearest(near, branches, input, path);
        }
        fitting
    }

    /// One branch that is nearer than the others is what was meant.
    fn tell_nearest(
        &mut self,
        mut near: Vec<Vec<SchemaViolation>>,
        branches: &'s [Value],
        input: &Value,
        path: &InputPath<'_>,
    ) {
        near.sort_by_key(Vec::len);
        match near.as_slice() {
            [nearest, others @ ..] if others.first().is_none_or(|other| other.len() > nearest.len()) => {
                let room = MAX_VIOLATIONS.saturating_sub(self.misfits.len());
                self.misfits.extend(nearest.iter().take(room).cloned());
            }
            _ => {
                let forms = enumerated(branches.iter().map(|branch| self.schemas.described(branch)), " or ");
                self.tell(path, format!("fits none of the allowed forms ({forms}): {}", shown(input)));
            }
        }
    }
}

struct ToolInputCoercer<'s> {
    schemas: SchemaContext<'s>,
    changes: Vec<InputCoercion>,
}

impl<'s> ToolInputCoercer<'s> {
    fn tell(&mut self, path: &InputPath<'_>, what: String) {
        if self.changes.len() < MAX_REPORTED_COERCIONS {
            self.changes.push(InputCoercion { path: path.to_string(), what });
        }
    }

    fn settle(&mut self, schema: &'s Value, value: Value, path: &InputPath<'_>) -> Value {
        if !self.schemas.enter() {
            return value;
        }
        let value = self.converted(schema, value, path);
        let applying = match &value {
            Value::Object(_) | Value::Array(_) => self.schemas.applying(schema, &value),
            _ => Vec::new(),
        };
        let settled = match value {
            Value::Object(members) => self.members(&applying, members, path),
            Value::Array(items) => self.items(&applying, items, path),
            other => other,
        };
        self.schemas.leave();
        settled
    }

    fn converted(&mut self, schema: &'s Value, value: Value, path: &InputPath<'_>) -> Value {
        let meant = match &value {
            Value::String(text) if !self.schemas.allows(schema, &value) => {
                repair::plain(text).filter(|meant| self.schemas.allows(schema, meant))
            }
            Value::Number(number) if number.is_f64() && !self.schemas.allows(schema, &json!(0.5)) => {
                whole(number).filter(|meant| self.schemas.allows(schema, meant))
            }
            _ => None,
        };
        let Some(meant) = meant else { return value };
        self.tell(path, format!("read {} as {}", shown(&value), shown(&meant)));
        meant
    }

    fn members(
        &mut self,
        applying: &[&'s Value],
        members: Map<String, Value>,
        path: &InputPath<'_>,
    ) -> Value {
        let mut settled = Map::new();
        for (name, value) in members {
            let path = InputPath::Key(path, &name);
            let Some(schema) = applying.iter().find_map(|schema| member(schema, &name)) else {
                settled.insert(name, value);
                continue;
            };
            let may_lack = !applying.iter().any(|schema| requires(schema, &name));
            if value.is_null() && may_lack && !self.schemas.allows(schema, &Value::Null) {
                self.tell(&path, "left out, as it is null".to_owned());
                continue;
            }
            let value = self.settle(schema, value, &path);
            settled.insert(name, value);
        }
        Value::Object(settled)
    }

    fn items(&mut self, applying: &[&'s Value], items: Vec<Value>, path: &InputPath<'_>) -> Value {
        let Some(each) = applying.iter().find_map(|schema| schema.get("items")) else {
            return Value::Array(items);
        };
        let settled = items.into_iter().enumerate();
        Value::Array(
            settled.map(|(index, item)| self.settle(each, item, &InputPath::Index(path, index))).collect(),
        )
    }
}

fn member<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    let named = schema.get("properties").and_then(|properties| properties.get(name));
    named.or_else(|| schema.get("additionalProperties").filter(|others| others.is_object()))
}

fn requires(schema: &Value, name: &str) -> bool {
    listed(schema, "required").unwrap_or_default().iter().any(|required| required == name)
}

fn listed<'s>(schema: &'s Value, keyword: &str) -> Option<&'s [Value]> {
    schema.get(keyword)?.as_array().map(Vec::as_slice)
}

/// A word of OpenAPI that many tools use.
fn is_nullable(schema: &Value) -> bool {
    schema.get("nullable") == Some(&Value::Bool(true))
}

fn is_of_type(wanted: &Value, value: &Value) -> bool {
    match wanted {
        Value::String(name) if name == "integer" => is_whole(value),
        Value::String(name) => kind(value) == name,
        Value::Array(names) => names.iter().any(|name| name.is_string() && is_of_type(name, value)),
        _ => true,
    }
}

/// The name that JSON Schema gives to the type of a value.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_whole(value: &Value) -> bool {
    let Value::Number(number) = value else { return false };
    !number.is_f64() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
}

/// A float as the integer that it is.
fn whole(number: &Number) -> Option<Value> {
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < MAX_EXACT_INTEGER)?;
    format!("{float:.0}").parse::<i64>().ok().map(Value::from)
}

fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        _ => a == b,
    }
}

fn type_names(wanted: &Value) -> String {
    let names: Vec<&Value> = wanted.as_array().map_or(vec![wanted], |names| names.iter().collect());
    enumerated(names.into_iter().map(|name| type_name(name.as_str().unwrap_or_default()).to_owned()), " or ")
}

fn type_name(name: &str) -> &str {
    match name {
        "null" => "null",
        "boolean" => "true or false",
        "integer" => "an integer",
        "number" => "a number",
        "string" => "a string",
        "array" => "a list",
        "object" => "an object",
        other => other,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => Value::String(shortened(text)).to_string(),
        other => other.to_string(),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_VALUE_CHARS_SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn enumerated(words: impl Iterator<Item = String>, between: &str) -> String {
    let mut words: Vec<String> = words.take(MAX_NAMES_IN_HINT + 1).collect();
    if words.len() > MAX_NAMES_IN_HINT {
        words.truncate(MAX_NAMES_IN_HINT);
        words.push("…".to_owned());
    }
    words.join(between)
}

fn unknown(name: &str, properties: Option<&Map<String, Value>>) -> String {
    let names = || properties.into_iter().flat_map(Map::keys);
    if let Some(meant) = nearest(name, names().map(String::as_str)) {
        return format!("there is no such property; did you mean `{meant}`?");
    }
    match enumerated(names().map(|name| format!("`{}`", shortened(name))), ", ") {
        names if names.is_empty() => "there is no such property; there are none".to_owned(),
        names => format!("there is no such property; there are {names}"),
    }
}

/// The name that was probably meant: the same but for case and dashes, or a third of its letters at most.
fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let folded = |name: &str| -> Vec<char> {
        let letters = name.chars().filter(|letter| !matches!(letter, '_' | '-'));
        letters.flat_map(char::to_lowercase).take(MAX_VALUE_CHARS_SHOWN).collect()
    };
    let name = folded(name);
    let measured = names.map(|choice| (distance(&name, &folded(choice)), choice));
    measured.filter(|(distance, _)| *distance * 3 <= name.len().max(3)).min().map(|(_, choice)| choice)
}

/// How many letters must be added, dropped or changed.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (index, letter) in a.iter().enumerate() {
        let mut left = index + 1;
        let mut next = vec![left];
        for (other, above) in b.iter().zip(row.windows(2)) {
            let [diagonal, above] = above else { continue };
            left = (diagonal + usize::from(letter != other)).min(above + 1).min(left + 1);
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found() {
        for (name, meant) in [
            ("pth", Some("path")),
            ("filePath", Some("file_path")),
            ("Limit", Some("limit")),
            ("limits", Some("limit")),
            ("x", None),
            ("", None),
            ("something", None),
        ] {
            assert_eq!(nearest(name, ["path", "file_path", "limit"].into_iter()), meant, "{name}");
        }
    }

    #[test]
    fn letters_are_counted() {
        let letters = |word: &str| word.chars().collect::<Vec<char>>();
        for (a, b, expected) in
            [("", "", 0), ("abc", "", 3), ("", "abc", 3), ("kitten", "sitting", 3), ("ab", "ba", 2)]
        {
            assert_eq!(distance(&letters(a), &letters(b)), expected, "{a} {b}");
        }
    }
}
