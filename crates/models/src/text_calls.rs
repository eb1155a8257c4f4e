//! Calls that a model wrote into its text, because its server or its training knows no better.
//!
//! A model also explains calls, quotes them and writes files about them. So a call counts only if nothing but other
//! calls follows it, if it is whole, names a tool that was offered, and fits that tool's schema. If one of them does
//! not, all of it is text.

use serde_json::{Map, Value};

use crate::repair::{self, ArgumentRepair};
use crate::{ToolSpec, schema};

/// Nobody says more than this.
const MAX_CALL_TEXT_BYTES: usize = 8 << 20;
/// No honest answer has more calls than this.
const MAX_TEXT_CALLS: usize = 64;

// The marks of the model families. Qwen, Hermes:
const TOOL_CALL_OPEN: &str = "<tool_call>";
const TOOL_CALL_CLOSE: &str = "</tool_call>";
const FUNCTION_OPEN: &str = "<function=";
const FUNCTION_CLOSE: &str = "</function>";
const PARAMETER_OPEN: &str = "<parameter=";
const PARAMETER_CLOSE: &str = "</parameter>";
// Mistral:
const MISTRAL_TOOL_CALLS: &str = "[TOOL_CALLS]";
const MISTRAL_ARGS: &str = "[ARGS]";
// Llama:
const LLAMA_PYTHON_TAG: &str = "<|python_tag|>";
// DeepSeek:
const DEEPSEEK_CALLS_BEGIN: &str = "<｜tool▁calls▁begin｜>";
const DEEPSEEK_CALLS_END: &str = "<｜tool▁calls▁end｜>";
const DEEPSEEK_CALL_BEGIN: &str = "<｜tool▁call▁begin｜>";
const DEEPSEEK_CALL_END: &str = "<｜tool▁call▁end｜>";
const DEEPSEEK_SEPARATOR: &str = "<｜tool▁sep｜>";

/// Tokens of their own in their model's language, so they may stand in the middle of a line. Other marks begin a line.
const SPECIAL_TOKENS: [&str; 4] =
    [MISTRAL_TOOL_CALLS, LLAMA_PYTHON_TAG, DEEPSEEK_CALLS_BEGIN, DEEPSEEK_CALL_BEGIN];
/// Marks that say nothing.
const IGNORED_TOKENS: [&str; 7] = [
    DEEPSEEK_CALLS_BEGIN,
    DEEPSEEK_CALLS_END,
    "<｜end▁of▁sentence｜>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|im_end|>",
    "</s>",
];
/// What a fenced call may be marked as. Every other fence shows something.
const CALL_FENCE_LANGUAGES: [&str; 6] = ["", "json", "tool", "tool_call", "tool_calls", "tool_use"];

const NAME_KEYS: [&str; 4] = ["name", "tool", "tool_name", "function"];
const INPUT_KEYS: [&str; 5] = ["arguments", "parameters", "input", "args", "tool_input"];
const IGNORED_KEYS: [&str; 3] = ["id", "type", "index"];

/// A text that ends with calls.
#[derive(Clone, Debug, PartialEq)]
pub struct TextWithCalls {
    /// What was said before the calls, without the white space around it. Nothing is ever said after them.
    pub before: String,
    /// At least one.
    pub calls: Vec<TextCall>,
}

/// A call of an offered tool, with an input that fits.
#[derive(Clone, Debug, PartialEq)]
pub struct TextCall {
    /// The name of the tool.
    pub name: String,
    /// An object that fits the schema of the tool.
    pub input: Value,
}

/// The calls at the end of a text, if they are meant as calls beyond doubt.
pub fn find_calls(text: &str, tools: &[ToolSpec]) -> Option<TextWithCalls> {
    if tools.is_empty() || text.len() > MAX_CALL_TEXT_BYTES {
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
        if calls.len() > MAX_TEXT_CALLS {
            return None;
        }
    }
    (!calls.is_empty()).then(|| TextWithCalls { before: before.to_owned(), calls })
}

fn without_last_fillers(text: &str) -> &str {
    let mut text = text.trim_end();
    while let Some(shorter) = IGNORED_TOKENS.iter().find_map(|filler| text.strip_suffix(filler)) {
        text = shorter.trim_end();
    }
    text
}

/// What a model considers is not what it does.
fn is_thinking(before: &str) -> bool {
    before.rfind("<think>") > before.rfind("</think>")
}

/// A piece of text that looks like a call, or several.
struct CallBlock<'t> {
    form: CallSyntax,
    body: &'t str,
    /// Whether its end is marked, so that it can't have been cut off.
    is_closed: bool,
    /// With its marks.
    length: usize,
}

#[derive(Clone, Copy)]
enum CallSyntax {
    /// JSON, or Qwen's functions.
    Plain,
    /// One of Qwen's functions, from its name on.
    Function,
    Mistral,
    DeepSeek,
}

/// The blocks that nothing else follows, and where they start. One pass: every step leaves behind what it looked at.
fn last_blocks(text: &str) -> (usize, Vec<CallBlock<'_>>) {
    let mut start = 0;
    let mut blocks = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let at = text.len() - rest.len();
        let blank = rest.len() - rest.trim_start().len();
        let fence = if begins_line(text, at) { CallFence::at(rest) } else { None };
        let length = if blank > 0 {
            blank
        } else if let Some(filler) = IGNORED_TOKENS.iter().find(|filler| rest.starts_with(**filler)) {
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
fn block_at<'t>(text: &'t str, fence: Option<&CallFence<'t>>, is_all: bool) -> Option<CallBlock<'t>> {
    let bare = || CallBlock { form: CallSyntax::Plain, body: text, is_closed: false, length: text.len() };
    enclosed(text, TOOL_CALL_OPEN, TOOL_CALL_CLOSE, CallSyntax::Plain)
        .or_else(|| enclosed(text, FUNCTION_OPEN, FUNCTION_CLOSE, CallSyntax::Function))
        .or_else(|| enclosed(text, DEEPSEEK_CALL_BEGIN, DEEPSEEK_CALL_END, CallSyntax::DeepSeek))
        .or_else(|| marked(text, MISTRAL_TOOL_CALLS, CallSyntax::Mistral))
        .or_else(|| marked(text, LLAMA_PYTHON_TAG, CallSyntax::Plain))
        .or_else(|| fence?.as_call())
        .or_else(|| (is_all && text.starts_with(['{', '['])).then(bare))
}

/// What stands between two marks. The second may be missing at the end of the text.
fn enclosed<'t>(text: &'t str, opening: &str, closing: &str, form: CallSyntax) -> Option<CallBlock<'t>> {
    let inside = text.strip_prefix(opening)?;
    Some(match inside.split_once(closing) {
        Some((body, after)) => CallBlock { form, body, is_closed: true, length: text.len() - after.len() },
        None => CallBlock { form, body: inside, is_closed: false, length: text.len() },
    })
}

/// What stands after a mark, up to the next one.
fn marked<'t>(text: &'t str, mark: &str, form: CallSyntax) -> Option<CallBlock<'t>> {
    let body = text.strip_prefix(mark)?.split(mark).next()?;
    Some(CallBlock { form, body, is_closed: false, length: mark.len() + body.len() })
}

/// How much of the text is certainly no call: what comes before the next line or token.
fn prose_length(text: &str) -> usize {
    let mut marks = text.match_indices(['\n', '<', '[']).map(|(at, _)| at);
    let next = marks.find_map(|at| {
        let rest = text.get(at..)?;
        if rest.starts_with('\n') {
            return Some(at + 1);
        }
        (at > 0 && SPECIAL_TOKENS.iter().any(|token| rest.starts_with(token))).then_some(at)
    });
    next.unwrap_or(text.len())
}

/// A fenced block of Markdown.
struct CallFence<'t> {
    language: &'t str,
    body: &'t str,
    is_closed: bool,
    length: usize,
}

impl<'t> CallFence<'t> {
    fn at(text: &'t str) -> Option<CallFence<'t>> {
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
                return Some(CallFence { language: info.trim(), body, is_closed: true, length });
            }
            length += line.len();
        }
        Some(CallFence { language: info.trim(), body: inside, is_closed: false, length: text.len() })
    }

    fn as_call(&self) -> Option<CallBlock<'t>> {
        let is_call =
            CALL_FENCE_LANGUAGES.iter().any(|language| self.language.eq_ignore_ascii_case(language))
                && self.body.trim_start().starts_with(['{', '[']);
        let CallFence { body, is_closed, length, .. } = *self;
        is_call.then_some(CallBlock { form: CallSyntax::Plain, body, is_closed, length })
    }
}

/// A call that was asked for.
struct RequestedCall {
    name: String,
    input: Value,
}

impl RequestedCall {
    fn fit(self, tools: &[ToolSpec]) -> Option<TextCall> {
        let tool = tools.iter().find(|tool| tool.name == self.name)?;
        let input = match self.input {
            Value::String(text) => arguments(&text)?,
            Value::Null => Value::Object(Map::new()),
            other => other,
        };
        let input = schema::coerce(&tool.schema, input).value;
        let fits = input.is_object() && schema::check(&tool.schema, &input).is_ok();
        fits.then_some(TextCall { name: self.name, input })
    }
}

impl CallBlock<'_> {
    /// What is asked for, if it can be read as a whole.
    fn requests(&self) -> Option<Vec<RequestedCall>> {
        match self.form {
            // Without its end, more parameters may have been to come.
            CallSyntax::Function if self.is_closed => function(self.body).map(|request| vec![request]),
            CallSyntax::Function => None,
            CallSyntax::Plain if self.is_closed && self.body.trim_start().starts_with(FUNCTION_OPEN) => {
                functions(self.body)
            }
            CallSyntax::Plain => self.json(),
            CallSyntax::Mistral => match self.body.split_once(MISTRAL_ARGS) {
                Some((name, input)) if !name.contains(['{', '[']) => one(name, input),
                _ => self.json(),
            },
            CallSyntax::DeepSeek => deepseek(self.body),
        }
    }

    fn json(&self) -> Option<Vec<RequestedCall>> {
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
fn functions(text: &str) -> Option<Vec<RequestedCall>> {
    let mut requests = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let inside = rest.strip_prefix(FUNCTION_OPEN)?;
        let (body, after) = inside.split_once(FUNCTION_CLOSE).unwrap_or((inside, ""));
        requests.push(function(body)?);
        rest = after.trim_start();
    }
    Some(requests)
}

/// `NAME>` and the input: JSON or parameters.
fn function(text: &str) -> Option<RequestedCall> {
    let (name, body) = text.split_once('>')?;
    let is_json = body.trim_start().starts_with('{');
    let input = if is_json { arguments(body)? } else { parameters(body)? };
    Some(RequestedCall { name: name.trim().to_owned(), input })
}

/// `<parameter=KEY>value</parameter>`, several in a row. The values are texts; the schema says what they mean.
fn parameters(text: &str) -> Option<Value> {
    let mut members = Map::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (key, after) = rest.strip_prefix(PARAMETER_OPEN)?.split_once('>')?;
        let (value, after) = after.split_once(PARAMETER_CLOSE)?;
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
fn deepseek(text: &str) -> Option<Vec<RequestedCall>> {
    let (kind, after) = text.split_once(DEEPSEEK_SEPARATOR)?;
    if kind.trim() != "function" {
        return one(kind, after);
    }
    let (name, input) = after.split_once('\n')?;
    one(name, input)
}

fn one(name: &str, input: &str) -> Option<Vec<RequestedCall>> {
    let input = arguments(input)?;
    Some(vec![RequestedCall { name: name.trim().to_owned(), input }])
}

fn requests_in(value: Value) -> Option<Vec<RequestedCall>> {
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
fn request(mut members: Map<String, Value>) -> Option<RequestedCall> {
    members.retain(|key, _| !IGNORED_KEYS.contains(&key.as_str()));
    if let Some(Value::Object(_)) = members.get("function") {
        let Some(Value::Object(inner)) = members.remove("function") else { return None };
        return if members.is_empty() && !inner.contains_key("function") { request(inner) } else { None };
    }
    let mut one_of = |keys: &[&str]| keys.iter().find_map(|key| members.remove(*key));
    let (name, input) = (one_of(&NAME_KEYS)?, one_of(&INPUT_KEYS)?);
    let Value::String(name) = name else { return None };
    members.is_empty().then_some(RequestedCall { name, input })
}

/// The input that the text is. With prose around it, it is an example.
fn arguments(text: &str) -> Option<Value> {
    let read = repair::parse_arguments(text).ok()?;
    let has_prose = read.repaired.is_some_and(|repaired| repaired.includes(&ArgumentRepair::Prose));
    (!has_prose).then_some(read.value)
}
