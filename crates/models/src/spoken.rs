//! Calls that a model wrote into its text, because its server or its training knows no better.
//!
//! A model also explains calls, quotes them and writes files about them. So a call counts only if nothing but other
//! calls follows it, if it is whole, names a tool that was offered, and fits that tool's schema. If one of them does
//! not, all of it is text.

use serde_json::{Map, Value};

use crate::repair::{self, Repair};
use crate::{ToolSpec, schema};

/// Nobody says more than this.
const MAX_BYTES: usize = 8 << 20;
/// No honest answer has more calls than this.
const MAX_CALLS: usize = 64;

// The marks of the model families. Qwen, Hermes:
const TOOL_CALL: &str = "<tool_call>";
const END_TOOL_CALL: &str = "</tool_call>";
const FUNCTION: &str = "<function=";
const END_FUNCTION: &str = "</function>";
const PARAMETER: &str = "<parameter=";
const END_PARAMETER: &str = "</parameter>";
// Mistral:
const TOOL_CALLS: &str = "[TOOL_CALLS]";
const ARGS: &str = "[ARGS]";
// Llama:
const PYTHON_TAG: &str = "<|python_tag|>";
// DeepSeek:
const CALLS_BEGIN: &str = "<｜tool▁calls▁begin｜>";
const CALLS_END: &str = "<｜tool▁calls▁end｜>";
const CALL_BEGIN: &str = "<｜tool▁call▁begin｜>";
const CALL_END: &str = "<｜tool▁call▁end｜>";
const SEPARATOR: &str = "<｜tool▁sep｜>";

/// Tokens of their own in their model's language, so they may stand in the middle of a line. Other marks begin a line.
const TOKENS: [&str; 4] = [TOOL_CALLS, PYTHON_TAG, CALLS_BEGIN, CALL_BEGIN];
/// Marks that say nothing.
const FILLERS: [&str; 7] =
    [CALLS_BEGIN, CALLS_END, "<｜end▁of▁sentence｜>", "<|eom_id|>", "<|eot_id|>", "<|im_end|>", "</s>"];
/// What a fenced call may be marked as. Every other fence shows something.
const CALL_LANGUAGES: [&str; 6] = ["", "json", "tool", "tool_call", "tool_calls", "tool_use"];

const NAME_KEYS: [&str; 4] = ["name", "tool", "tool_name", "function"];
const INPUT_KEYS: [&str; 5] = ["arguments", "parameters", "input", "args", "tool_input"];
const OTHER_KEYS: [&str; 3] = ["id", "type", "index"];

/// A text that ends with calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Spoken {
    /// What was said before the calls, without the white space around it. Nothing is ever said after them.
    pub before: String,
    /// At least one.
    pub calls: Vec<SpokenCall>,
}

/// A call of an offered tool, with an input that fits.
#[derive(Clone, Debug, PartialEq)]
pub struct SpokenCall {
    pub name: String,
    pub input: Value,
}

/// The calls at the end of a text, if they are meant as calls beyond doubt.
pub fn calls(text: &str, tools: &[ToolSpec]) -> Option<Spoken> {
    if tools.is_empty() || text.len() > MAX_BYTES {
        return None;
    }
    let text = without_last_fillers(text);
    let (start, blocks) = last_blocks(text);
    let before = text.get(..start)?.trim();
    if blocks.is_empty() || is_thinking(before) {
        return None;
    }
    let mut calls = Vec::new();
    for block in &blocks {
        for request in block.requests()? {
            calls.push(request.fit(tools)?);
        }
        if calls.len() > MAX_CALLS {
            return None;
        }
    }
    (!calls.is_empty()).then(|| Spoken { before: before.to_owned(), calls })
}

fn without_last_fillers(text: &str) -> &str {
    let mut text = text.trim_end();
    while let Some(shorter) = FILLERS.iter().find_map(|filler| text.strip_suffix(filler)) {
        text = shorter.trim_end();
    }
    text
}

/// What a model considers is not what it does.
fn is_thinking(before: &str) -> bool {
    before.rfind("<think>") > before.rfind("</think>")
}

/// A piece of text that looks like a call, or several.
struct Block<'t> {
    form: Form,
    body: &'t str,
    /// Whether its end is marked, so that it can't have been cut off.
    is_closed: bool,
    /// With its marks.
    length: usize,
}

#[derive(Clone, Copy)]
enum Form {
    /// JSON, or Qwen's functions.
    Plain,
    /// One of Qwen's functions, from its name on.
    Function,
    Mistral,
    DeepSeek,
}

/// The blocks that nothing else follows, and where they start. One pass: every step leaves behind what it looked at.
fn last_blocks(text: &str) -> (usize, Vec<Block<'_>>) {
    let mut start = 0;
    let mut blocks = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let at = text.len() - rest.len();
        let blank = rest.len() - rest.trim_start().len();
        let fence = if begins_line(text, at) { Fence::at(rest) } else { None };
        let length = if blank > 0 {
            blank
        } else if let Some(filler) = FILLERS.iter().find(|filler| rest.starts_with(**filler)) {
            filler.len()
        } else if let Some(block) = block_at(rest, fence.as_ref(), start == 0 && blocks.is_empty()) {
            let length = block.length;
            blocks.push(block);
            length
        } else {
            blocks.clear();
            let length = fence.map_or_else(|| prose_length(rest), |fence| fence.length);
            start = at + length;
            length
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    (start, blocks)
}

fn begins_line(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default().trim_end_matches([' ', '\t']);
    before.is_empty() || before.ends_with('\n')
}

/// The block that the text begins with. JSON without any marks must be all that is said.
fn block_at<'t>(text: &'t str, fence: Option<&Fence<'t>>, is_all: bool) -> Option<Block<'t>> {
    let bare = || Block { form: Form::Plain, body: text, is_closed: false, length: text.len() };
    enclosed(text, TOOL_CALL, END_TOOL_CALL, Form::Plain)
        .or_else(|| enclosed(text, FUNCTION, END_FUNCTION, Form::Function))
        .or_else(|| enclosed(text, CALL_BEGIN, CALL_END, Form::DeepSeek))
        .or_else(|| marked(text, TOOL_CALLS, Form::Mistral))
        .or_else(|| marked(text, PYTHON_TAG, Form::Plain))
        .or_else(|| fence?.as_call())
        .or_else(|| (is_all && text.starts_with(['{', '['])).then(bare))
}

/// What stands between two marks. The second may be missing at the end of the text.
fn enclosed<'t>(text: &'t str, opening: &str, closing: &str, form: Form) -> Option<Block<'t>> {
    let inside = text.strip_prefix(opening)?;
    Some(match inside.split_once(closing) {
        Some((body, after)) => Block { form, body, is_closed: true, length: text.len() - after.len() },
        None => Block { form, body: inside, is_closed: false, length: text.len() },
    })
}

/// What stands after a mark, up to the next one.
fn marked<'t>(text: &'t str, mark: &str, form: Form) -> Option<Block<'t>> {
    let body = text.strip_prefix(mark)?.split(mark).next()?;
    Some(Block { form, body, is_closed: false, length: mark.len() + body.len() })
}

/// How much of the text is certainly no call: what comes before the next line or token.
fn prose_length(text: &str) -> usize {
    let mut marks = text.match_indices(['\n', '<', '[']).map(|(at, _)| at);
    let next = marks.find_map(|at| {
        let rest = text.get(at..)?;
        if rest.starts_with('\n') {
            return Some(at + 1);
        }
        (at > 0 && TOKENS.iter().any(|token| rest.starts_with(token))).then_some(at)
    });
    next.unwrap_or(text.len())
}

/// A fenced block of Markdown.
struct Fence<'t> {
    language: &'t str,
    body: &'t str,
    is_closed: bool,
    length: usize,
}

impl<'t> Fence<'t> {
    fn at(text: &'t str) -> Option<Fence<'t>> {
        let mark = text.chars().next().filter(|first| matches!(first, '`' | '~'))?;
        let width = text.len() - text.trim_start_matches(mark).len();
        let (info, inside) = text.get(width..)?.split_once('\n')?;
        if width < 3 || info.contains('`') {
            return None;
        }
        let body_start = text.len() - inside.len();
        let mut length = 0;
        for line in inside.split_inclusive('\n') {
            let bare = line.trim();
            if bare.len() >= width && bare.chars().all(|letter| letter == mark) {
                let body = inside.get(..length)?;
                let length = body_start + length + line.len();
                return Some(Fence { language: info.trim(), body, is_closed: true, length });
            }
            length += line.len();
        }
        Some(Fence { language: info.trim(), body: inside, is_closed: false, length: text.len() })
    }

    fn as_call(&self) -> Option<Block<'t>> {
        let is_call = CALL_LANGUAGES.iter().any(|language| self.language.eq_ignore_ascii_case(language))
            && self.body.trim_start().starts_with(['{', '[']);
        let Fence { body, is_closed, length, .. } = *self;
        is_call.then_some(Block { form: Form::Plain, body, is_closed, length })
    }
}

/// A call that was asked for.
struct Request {
    name: String,
    input: Value,
}

impl Request {
    fn fit(self, tools: &[ToolSpec]) -> Option<SpokenCall> {
        let tool = tools.iter().find(|tool| tool.name == self.name)?;
        let input = match self.input {
            Value::String(text) => arguments(&text)?,
            Value::Null => Value::Object(Map::new()),
            other => other,
        };
        let input = schema::coerce(&tool.schema, input).value;
        let fits = input.is_object() && schema::check(&tool.schema, &input).is_ok();
        fits.then_some(SpokenCall { name: self.name, input })
    }
}

impl Block<'_> {
    /// What is asked for, if it can be read as a whole.
    fn requests(&self) -> Option<Vec<Request>> {
        match self.form {
            // Without its end, more parameters may have been to come.
            Form::Function if self.is_closed => function(self.body).map(|request| vec![request]),
            Form::Function => None,
            Form::Plain if self.is_closed && self.body.trim_start().starts_with(FUNCTION) => {
                functions(self.body)
            }
            Form::Plain => self.json(),
            Form::Mistral => match self.body.split_once(ARGS) {
                Some((name, input)) if !name.contains(['{', '[']) => one(name, input),
                _ => self.json(),
            },
            Form::DeepSeek => deepseek(self.body),
        }
    }

    fn json(&self) -> Option<Vec<Request>> {
        let values = repair::values(self.body).or_else(|| {
            // Small models forget the bracket of the outer object. The end is marked, so nothing was cut off, and where the
            // bracket belongs is sure, as an envelope has no keys but those that we know.
            let closed = format!("{}}}", self.body);
            if self.is_closed { repair::values(&closed) } else { None }
        })?;
        let requests: Option<Vec<_>> = values.into_iter().map(requests_in).collect();
        Some(requests?.into_iter().flatten().collect())
    }
}

/// `<function=NAME>…</function>`, several in a row.
fn functions(text: &str) -> Option<Vec<Request>> {
    let mut requests = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let inside = rest.strip_prefix(FUNCTION)?;
        let (body, after) = inside.split_once(END_FUNCTION).unwrap_or((inside, ""));
        requests.push(function(body)?);
        rest = after.trim_start();
    }
    Some(requests)
}

/// `NAME>` and the input: JSON or parameters.
fn function(text: &str) -> Option<Request> {
    let (name, body) = text.split_once('>')?;
    let is_json = body.trim_start().starts_with('{');
    let input = if is_json { arguments(body)? } else { parameters(body)? };
    Some(Request { name: name.trim().to_owned(), input })
}

/// `<parameter=KEY>value</parameter>`, several in a row. The values are texts; the schema says what they mean.
fn parameters(text: &str) -> Option<Value> {
    let mut members = Map::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (key, after) = rest.strip_prefix(PARAMETER)?.split_once('>')?;
        let (value, after) = after.split_once(END_PARAMETER)?;
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        if members.insert(key.trim().to_owned(), value.into()).is_some() {
            return None;
        }
        rest = after.trim_start();
    }
    Some(Value::Object(members))
}

/// `function<｜tool▁sep｜>NAME`, a line break and the input in a fence; newer ones write `NAME<｜tool▁sep｜>` and the input.
fn deepseek(text: &str) -> Option<Vec<Request>> {
    let (kind, after) = text.split_once(SEPARATOR)?;
    if kind.trim() != "function" {
        return one(kind, after);
    }
    let (name, input) = after.split_once('\n')?;
    one(name, input)
}

fn one(name: &str, input: &str) -> Option<Vec<Request>> {
    let input = arguments(input)?;
    Some(vec![Request { name: name.trim().to_owned(), input }])
}

fn requests_in(value: Value) -> Option<Vec<Request>> {
    match value {
        Value::Array(items) => {
            let requests: Option<Vec<_>> = items.into_iter().map(requests_in).collect();
            Some(requests?.into_iter().flatten().collect())
        }
        Value::Object(mut members) => match members.get_mut("tool_calls").map(Value::take) {
            Some(calls) if members.len() == 1 => requests_in(calls),
            Some(_) => None,
            None => request(members).map(|request| vec![request]),
        },
        _ => None,
    }
}

/// The call in an envelope: a name, an input, and nothing that is not known to stand there.
fn request(mut members: Map<String, Value>) -> Option<Request> {
    members.retain(|key, _| !OTHER_KEYS.contains(&key.as_str()));
    if let Some(Value::Object(_)) = members.get("function") {
        let Some(Value::Object(inner)) = members.remove("function") else { return None };
        return if members.is_empty() && !inner.contains_key("function") { request(inner) } else { None };
    }
    let mut one_of = |keys: &[&str]| keys.iter().find_map(|key| members.remove(*key));
    let (name, input) = (one_of(&NAME_KEYS)?, one_of(&INPUT_KEYS)?);
    let Value::String(name) = name else { return None };
    members.is_empty().then_some(Request { name, input })
}

/// The input that the text is. With prose around it, it is an example.
fn arguments(text: &str) -> Option<Value> {
    let read = repair::arguments(text).ok()?;
    let has_prose = read.repaired.is_some_and(|repaired| repaired.includes(&Repair::Prose));
    (!has_prose).then_some(read.value)
}
