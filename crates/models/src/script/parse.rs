//! From TOML to a script.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use helve_protocol::{StopReason, TokenUsage};
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;

use super::step::{
    ModelScript, ScriptStep, ScriptedAnswer, ScriptedCall, ScriptedFailure, ScriptedPart, ScriptedReply,
    StepCondition, StreamEnding,
};

const MAX_SCRIPT_BYTES: usize = 1 << 20;
const MAX_SCRIPT_WAIT: Duration = Duration::from_secs(3600);
const DEFAULT_PIECE_CHARS: usize = 24;

/// What carries an answer is not the script's to say.
const RESERVED_HEADERS: [&str; 3] = ["content-length", "transfer-encoding", "connection"];

/// What is wrong with a script, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", .line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct ScriptError {
    /// Counted from 1.
    pub line: Option<usize>,
    /// What is wrong, in words.
    pub message: String,
}

impl ModelScript {
    /// Reads a script from TOML.
    pub fn parse(text: &str) -> Result<ModelScript, ScriptError> {
        let whole = |message: String| ScriptError { line: None, message };
        if text.len() > MAX_SCRIPT_BYTES {
            return Err(whole(format!("the script is larger than {} KiB", MAX_SCRIPT_BYTES >> 10)));
        }
        let written: WrittenScript = toml::from_str(text).map_err(|error| ScriptError {
            line: error.span().map(|span| line_at(text, span.start)),
            message: error.message().to_owned(),
        })?;
        if written.step.is_empty() {
            return Err(whole(
                "the script has no steps: write [[step]] and below it text = \"…\"".to_owned(),
            ));
        }
        let steps = written.step.into_iter().map(|step| {
            let line = Some(line_at(text, step.span().start));
            step.into_inner().read().map_err(|message| ScriptError { line, message })
        });
        Ok(ModelScript { steps: steps.collect::<Result<_, _>>()? })
    }
}

fn line_at(text: &str, byte: usize) -> usize {
    text.bytes().take(byte).filter(|byte| *byte == b'\n').count() + 1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenScript {
    #[serde(default)]
    step: Vec<Spanned<WrittenStep>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenStep {
    #[serde(default)]
    when: StepCondition,
    #[serde(default)]
    delay: WrittenWait,
    thinking: Option<String>,
    text: Option<String>,
    calls: Option<Vec<WrittenCall>>,
    say: Option<Vec<WrittenPart>>,
    usage: Option<WrittenUsage>,
    stop: Option<StopReason>,
    piece: Option<NonZeroUsize>,
    #[serde(default)]
    repeat: bool,
    fail: Option<WrittenFailure>,
    error: Option<WrittenError>,
    #[serde(default)]
    cut: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCall {
    tool: String,
    input: Option<Map<String, Value>>,
    arguments: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum WrittenPart {
    Thinking(String),
    Text(String),
    Call(WrittenCall),
    Wait(WrittenWait),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenUsage {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    reasoning: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFailure {
    status: u16,
    kind: Option<String>,
    message: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenError {
    kind: String,
    message: String,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(try_from = "String")]
struct WrittenWait(Duration);

impl TryFrom<String> for WrittenWait {
    type Error = String;

    fn try_from(text: String) -> Result<WrittenWait, String> {
        let units = [("ms", 1), ("s", 1_000), ("m", 60_000)];
        let millis = units.iter().find_map(|(unit, millis)| {
            let count: u64 = text.strip_suffix(unit)?.trim().parse().ok()?;
            count.checked_mul(*millis)
        });
        let wait = millis.map(Duration::from_millis).filter(|wait| *wait <= MAX_SCRIPT_WAIT);
        wait.map(WrittenWait)
            .ok_or_else(|| format!("{text:?} is no wait: write \"200ms\", \"1s\" or \"2m\", at most an hour"))
    }
}

impl WrittenStep {
    fn read(mut self) -> Result<ScriptStep, String> {
        let when = std::mem::take(&mut self.when);
        let (delay, repeat) = (self.delay.0, self.repeat);
        let reply = match self.fail.take() {
            Some(fail) => ScriptedReply::Fail(self.failure(fail)?),
            None => ScriptedReply::Answer(self.answer()?),
        };
        Ok(ScriptStep { when, delay, repeat, reply })
    }

    fn failure(self, fail: WrittenFailure) -> Result<ScriptedFailure, String> {
        let answers = self.says_something()
            || self.usage.is_some()
            || self.stop.is_some()
            || self.piece.is_some()
            || self.error.is_some()
            || self.cut;
        if answers {
            return Err("fail comes instead of an answer: beside it only when, delay and repeat".to_owned());
        }
        if !(400..600).contains(&fail.status) {
            return Err(format!("{} is no status of a failure: write one from 400 to 599", fail.status));
        }
        if let Some((name, value)) = fail.headers.iter().find(|(name, value)| !is_header(name, value)) {
            return Err(format!("{name}: {value:?} can't be a header here"));
        }
        let headers = fail.headers.into_iter().collect();
        Ok(ScriptedFailure { status: fail.status, kind: fail.kind, message: fail.message, headers })
    }

    fn says_something(&self) -> bool {
        self.thinking.is_some() || self.text.is_some() || self.calls.is_some() || self.say.is_some()
    }

    fn answer(self) -> Result<ScriptedAnswer, String> {
        if !self.says_something() && self.error.is_none() && !self.cut {
            return Err("the step says nothing: give it text, thinking, calls, say, fail, error or cut \
                        (text = \"\" is an empty answer)"
                .to_owned());
        }
        let end = match (self.error, self.cut) {
            (Some(_), true) => return Err("error and cut both end the stream: leave one out".to_owned()),
            (Some(error), false) => StreamEnding::Error { kind: error.kind, message: error.message },
            (None, true) => StreamEnding::CutOff,
            (None, false) => StreamEnding::Complete,
        };
        if end != StreamEnding::Complete && self.stop.is_some() {
            return Err("a stream that ends with error or cut tells no stop: leave it out".to_owned());
        }
        let usage = self.usage.map(WrittenUsage::read).transpose()?;
        let piece = self.piece.map_or(DEFAULT_PIECE_CHARS, NonZeroUsize::get);
        let says = match (self.say, self.thinking, self.text, self.calls) {
            (None, thinking, text, calls) => in_their_order(thinking, text, calls.unwrap_or_default())?,
            (Some(say), None, None, None) => {
                say.into_iter().map(WrittenPart::read).collect::<Result<_, _>>()?
            }
            _ => {
                return Err(
                    "say has everything in its order: put thinking, text and calls into it".to_owned()
                );
            }
        };
        Ok(ScriptedAnswer { says, usage, stop: self.stop, piece, end })
    }
}

/// Thinking comes first and calls come last, as models do it.
fn in_their_order(
    thinking: Option<String>,
    text: Option<String>,
    calls: Vec<WrittenCall>,
) -> Result<Vec<ScriptedPart>, String> {
    let said = thinking.map(ScriptedPart::Thinking).into_iter().chain(text.map(ScriptedPart::Text)).map(Ok);
    said.chain(calls.into_iter().map(|call| call.read().map(ScriptedPart::Call))).collect()
}

impl WrittenPart {
    fn read(self) -> Result<ScriptedPart, String> {
        Ok(match self {
            WrittenPart::Thinking(text) => ScriptedPart::Thinking(text),
            WrittenPart::Text(text) => ScriptedPart::Text(text),
            WrittenPart::Call(call) => ScriptedPart::Call(call.read()?),
            WrittenPart::Wait(wait) => ScriptedPart::Wait(wait.0),
        })
    }
}

impl WrittenCall {
    fn read(self) -> Result<ScriptedCall, String> {
        let arguments = match (self.input, self.arguments) {
            (Some(_), Some(_)) => {
                return Err(format!("the call of {} has input and arguments: leave one out", self.tool));
            }
            (_, Some(raw)) => raw,
            (input, None) => {
                let input = Value::Object(input.unwrap_or_default());
                check_json(&input)?;
                input.to_string()
            }
        };
        Ok(ScriptedCall { tool: self.tool, arguments })
    }
}

/// TOML has dates, which come as an object with a strange key, and numbers that are none, which come as null.
fn check_json(value: &Value) -> Result<(), String> {
    match value {
        Value::Null => Err("JSON has no nan and no inf".to_owned()),
        Value::Object(object) if object.keys().any(|key| key.starts_with("$__")) => {
            Err("JSON has no dates: put it in quotes".to_owned())
        }
        Value::Object(object) => object.values().try_for_each(check_json),
        Value::Array(list) => list.iter().try_for_each(check_json),
        _ => Ok(()),
    }
}

impl WrittenUsage {
    fn read(self) -> Result<TokenUsage, String> {
        let WrittenUsage { input, output, cache_read, cache_write, reasoning } = self;
        if reasoning > output {
            return Err("usage: reasoning is a part of output and can't be more".to_owned());
        }
        Ok(TokenUsage { input, output, cache_read, cache_write, reasoning })
    }
}

fn is_header(name: &str, value: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !name.is_empty()
        && name.bytes().all(is_token)
        && !RESERVED_HEADERS.contains(&name.to_ascii_lowercase().as_str())
        && value.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn only_step(text: &str) -> ScriptStep {
        ModelScript::parse(text).unwrap().steps.remove(0)
    }

    #[test]
    fn a_step_is_read_in_full() {
        let step = only_step(
            r#"
            [[step]]
            when = { asked = "a", result = "b", tool = "read", model = "m" }
            delay = "200ms"
            thinking = "t"
            text = "x"
            calls = [{ tool = "read", input = { path = "a.txt", deep = [1, 2.5, true, { z = 1, a = 2 }] } }, { tool = "list" }]
            usage = { input = 3, output = 2, reasoning = 1 }
            stop = "max_tokens"
            piece = 7
            repeat = true
            cut = false
            "#,
        );
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            step.when,
            StepCondition { asked: text("a"), result: text("b"), tool: text("read"), model: text("m") }
        );
        assert_eq!((step.delay, step.repeat), (Duration::from_millis(200), true));
        let ScriptedReply::Answer(answer) = step.reply else { panic!("an answer") };
        let call = |tool: &str, arguments: &str| {
            ScriptedPart::Call(ScriptedCall { tool: tool.to_owned(), arguments: arguments.to_owned() })
        };
        assert_eq!(
            answer.says,
            [
                ScriptedPart::Thinking("t".to_owned()),
                ScriptedPart::Text("x".to_owned()),
                call("read", r#"{"deep":[1,2.5,true,{"a":2,"z":1}],"path":"a.txt"}"#),
                call("list", "{}"),
            ]
        );
        assert_eq!(
            answer.usage,
            Some(TokenUsage { input: 3, output: 2, reasoning: 1, ..TokenUsage::default() })
        );
        assert_eq!(
            (answer.stop, answer.piece, answer.end),
            (Some(StopReason::MaxTokens), 7, StreamEnding::Complete)
        );
    }

    #[test]
    fn an_exact_order_is_kept() {
        let step = only_step(
            "[[step]]\nsay = [{ text = 'a' }, { wait = '1s' }, { call = { tool = 'x', arguments = '{no' } }, { thinking = 'b' }]",
        );
        let ScriptedReply::Answer(answer) = step.reply else { panic!("an answer") };
        assert_eq!(
            answer.says,
            [
                ScriptedPart::Text("a".to_owned()),
                ScriptedPart::Wait(Duration::from_secs(1)),
                ScriptedPart::Call(ScriptedCall { tool: "x".to_owned(), arguments: "{no".to_owned() }),
                ScriptedPart::Thinking("b".to_owned()),
            ]
        );
    }

    #[test]
    fn a_failure_is_read() {
        let step = only_step("[[step]]\nfail = { status = 429, headers = { retry-after = '1' } }");
        let headers = vec![("retry-after".to_owned(), "1".to_owned())];
        assert_eq!(
            step.reply,
            ScriptedReply::Fail(ScriptedFailure { status: 429, kind: None, message: None, headers })
        );
    }

    #[test]
    fn mistakes_are_told_with_their_line_and_what_to_write() {
        for (step, line, told) in [
            ("tect = 'a'", 4, "unknown field `tect`, expected one of"),
            ("text = 5", 4, "expected a string"),
            ("text = 'a", 4, "string"),
            ("delay = '5'", 4, "\"200ms\""),
            ("delay = '61m'", 4, "at most an hour"),
            ("stop = 'never'", 4, "unknown variant `never`, expected one of `end_turn`"),
            ("piece = 0", 4, "nonzero"),
            ("usage = { input = -1 }", 4, "invalid value"),
            ("usage = { output = 1, reasoning = 2 }\ntext = ''", 3, "reasoning"),
            ("when = { said = 'x' }", 4, "unknown field `said`"),
            ("repeat = true", 3, "the step says nothing"),
            ("text = 'a'\nsay = []", 3, "put thinking, text and calls into it"),
            ("say = [{ text = 'a', wait = '1s' }]", 4, ""),
            ("calls = [{ tool = 'x', input = {}, arguments = '' }]", 3, "leave one out"),
            ("calls = [{ tool = 'x', input = { at = 2026-01-01 } }]", 3, "put it in quotes"),
            ("calls = [{ tool = 'x', input = { at = [nan] } }]", 3, "nan"),
            ("calls = [{ input = {} }]", 4, "missing field `tool`"),
            ("fail = { status = 200 }", 3, "from 400 to 599"),
            ("fail = { status = 500 }\ntext = 'a'", 3, "instead of an answer"),
            ("fail = { status = 500, headers = { a = \"b\\nc: d\" } }", 3, "header"),
            ("fail = { status = 500, headers = { Content-Length = '3' } }", 3, "header"),
            ("cut = true\nerror = { kind = 'a', message = 'b' }", 3, "leave one out"),
            ("cut = true\nstop = 'end_turn'", 3, "leave it out"),
        ] {
            let error =
                ModelScript::parse(&format!("[[step]]\ntext = 'first'\n[[step]]\n{step}\n")).unwrap_err();
            assert_eq!(error.line, Some(line), "{step}: {error}");
            assert!(error.message.contains(told), "{step}: {error}");
        }
    }

    #[test]
    fn an_empty_or_endless_script_is_refused() {
        assert!(ModelScript::parse("# nothing").unwrap_err().to_string().contains("[[step]]"));
        assert!(
            ModelScript::parse(&" ".repeat(MAX_SCRIPT_BYTES + 1))
                .unwrap_err()
                .to_string()
                .contains("1024 KiB")
        );
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "(\\[\\[step\\]\\]\n|text = |calls = |say = |wait|fail = |[{}\\[\\],='\"é0-9a-z. \n]){0,40}") {
            let _ = ModelScript::parse(&text);
        }

        #[test]
        fn any_text_is_said_as_it_is_written(text in "\\PC{0,40}") {
            let step = only_step(&format!("[[step]]\ntext = {}", serde_json::to_string(&text).unwrap()));
            let ScriptedReply::Answer(answer) = step.reply else { panic!("an answer") };
            prop_assert_eq!(&answer.says, &[ScriptedPart::Text(text)]);
        }
    }
}
