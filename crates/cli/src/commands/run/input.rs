//! `--input stream-json`: commands and queries as lines of JSON on the standard input.

use std::io::{self, BufRead};

use helve_agent::SessionHandle;
use helve_protocol::{
    MessagePart, PromptDelivery, QueryReply, SessionCommand, SessionQuery, TextPart, UserPrompt,
};
use serde_json::Value;
use tokio::sync::mpsc;

/// A line that is longer is no command.
const MAX_INPUT_LINE_BYTES: u64 = 16 << 20;

/// What a line says.
#[derive(Debug, PartialEq)]
pub(super) enum StreamInputLine {
    Command(SessionCommand),
    Query(SessionQuery),
    /// What is wrong with it.
    Invalid(String),
}

/// Reads lines on a thread of its own: the standard input can't be waited for otherwise.
pub(super) fn lines() -> mpsc::Receiver<StreamInputLine> {
    let (sender, receiver) = mpsc::channel(16);
    std::thread::spawn(move || {
        let mut input = io::BufReader::new(io::stdin());
        loop {
            let mut line = Vec::new();
            let read = io::Read::take(&mut input, MAX_INPUT_LINE_BYTES).read_until(b'\n', &mut line);
            if !matches!(read, Ok(bytes) if bytes > 0) {
                return;
            }
            let text = String::from_utf8_lossy(&line);
            if !text.trim().is_empty() && sender.blocking_send(parse(text.trim())).is_err() {
                return;
            }
        }
    });
    receiver
}

/// One line: `{"command": …}`, `{"query": …}`, or a user's message as other agents take it.
fn parse(line: &str) -> StreamInputLine {
    let value: Value = match serde_json::from_str(line) {
        Ok(value) => value,
        Err(error) => return StreamInputLine::Invalid(format!("a line is not JSON: {error}")),
    };
    let wrong =
        |error: serde_json::Error| StreamInputLine::Invalid(format!("a line is not understood: {error}"));
    if value.get("command").is_some() {
        return serde_json::from_value(value).map_or_else(wrong, StreamInputLine::Command);
    }
    if value.get("query").is_some() {
        return serde_json::from_value(value).map_or_else(wrong, StreamInputLine::Query);
    }
    match message(&value) {
        Some(text) => StreamInputLine::Command(SessionCommand::Submit(UserPrompt {
            parts: vec![MessagePart::Text(TextPart::said(text))],
            delivery: PromptDelivery::Queue,
        })),
        None => StreamInputLine::Invalid(
            "a line has neither `command` nor `query`; `helve reference events` lists both".to_owned(),
        ),
    }
}

/// The text of `{"type": "user", "message": {"content": "…" or [{"type": "text", "text": "…"}]}}`.
fn message(value: &Value) -> Option<String> {
    if value.get("type")?.as_str()? != "user" {
        return None;
    }
    let content = value.get("message")?.get("content")?;
    let texts = |blocks: &Vec<Value>| {
        let texts = blocks.iter().map(|block| block.get("text").and_then(Value::as_str));
        texts.collect::<Option<Vec<&str>>>().map(|texts| texts.join("\n"))
    };
    content.as_str().map(str::to_owned).or_else(|| content.as_array().and_then(texts))
}

/// Does what a line says. What it is answered goes out as a line.
pub(super) async fn take(line: StreamInputLine, handle: &SessionHandle) -> Option<QueryReply> {
    match line {
        StreamInputLine::Command(command) => {
            handle.send(command).await;
            None
        }
        StreamInputLine::Query(query) => Some(handle.ask(query).await),
        StreamInputLine::Invalid(why) => Some(QueryReply::Failed { why }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Option<String> {
        match parse(line) {
            StreamInputLine::Command(SessionCommand::Submit(prompt)) => match prompt.parts.first() {
                Some(MessagePart::Text(text)) => Some(text.text.clone()),
                _ => None,
            },
            _ => None,
        }
    }

    #[test]
    fn a_message_may_come_in_three_forms() {
        for line in [
            r#"{"command":"submit","parts":[{"type":"text","text":"hi"}]}"#,
            r#"{"type":"user","message":{"role":"user","content":"hi"}}"#,
            r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"hi"}]}}"#,
        ] {
            assert_eq!(said(line).as_deref(), Some("hi"), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(parse(r#"{"query":"state"}"#), StreamInputLine::Query(SessionQuery::State));
        for line in ["{", "3", r#"{"command":"fly"}"#, r#"{"type":"user"}"#, r#"{"query":"weather"}"#] {
            assert!(matches!(parse(line), StreamInputLine::Invalid(_)), "{line}");
        }
    }
}
