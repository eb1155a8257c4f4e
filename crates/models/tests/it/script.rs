//! Scripts: what is asked is read on every wire, and what is played is what our decoder reads.

use std::path::Path;
use std::time::Duration;

use helve_models::script::{
    ModelScript, ScriptFrame, ScriptPlayer, ScriptRequest, ScriptRequestError, ScriptStep, ScriptToolResult,
    failure_response, response_frames,
};
use helve_models::{AnswerBlock, ModelAnswer, StreamError, WireProtocol, parse_error_body};
use helve_protocol::{StopReason, TokenUsage};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::decode;

const WIRES: [WireProtocol; 4] =
    [WireProtocol::Messages, WireProtocol::Chat, WireProtocol::Responses, WireProtocol::Gemini];

fn script(text: &str) -> ModelScript {
    ModelScript::parse(text).unwrap()
}

fn step(text: &str) -> ScriptStep {
    script(&format!("[[step]]\n{text}")).steps.remove(0)
}

/// A conversation with `answers` answers, each of which called `read` and heard `result`.
fn body(wire: WireProtocol, user: &str, answers: usize, result: &str) -> Value {
    let numbers = 1..=answers;
    match wire {
        WireProtocol::Messages => {
            let mut messages = vec![json!({"role": "user", "content": user})];
            messages.extend(numbers.flat_map(|n| {
                [
                    json!({"role": "assistant", "content": [
                        {"type": "text", "text": "I look."},
                        {"type": "tool_use", "id": format!("call_{n}"), "name": "read", "input": {}},
                    ]}),
                    json!({"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": format!("call_{n}"), "is_error": true,
                         "content": [{"type": "text", "text": result}]},
                    ]}),
                ]
            }));
            json!({
                "model": "m-1", "stream": true, "messages": messages,
                "system": [{"type": "text", "text": "Be kind."}, {"type": "text", "text": "Be short."}],
                "tools": [{"name": "read"}, {"name": "shell"}],
            })
        }
        WireProtocol::Chat => {
            let mut messages = vec![
                json!({"role": "system", "content": "Be kind.\nBe short."}),
                json!({"role": "user", "content": [{"type": "text", "text": user}]}),
            ];
            messages.extend(numbers.flat_map(|n| {
                [
                    json!({"role": "assistant", "content": null, "tool_calls": [
                        {"id": format!("call_{n}"), "type": "function", "function": {"name": "read", "arguments": "{}"}},
                    ]}),
                    json!({"role": "tool", "tool_call_id": format!("call_{n}"), "content": result}),
                ]
            }));
            json!({
                "model": "m-1", "stream": true, "stream_options": {"include_usage": true},
                "messages": messages,
                "tools": [{"type": "function", "function": {"name": "read"}}, {"type": "function", "function": {"name": "shell"}}],
            })
        }
        WireProtocol::Responses => {
            let mut input = vec![json!({"role": "user", "content": [{"type": "input_text", "text": user}]})];
            input.extend(numbers.flat_map(|n| {
                [
                    json!({"type": "reasoning", "summary": [], "encrypted_content": "x"}),
                    json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]}),
                    json!({"type": "function_call", "call_id": format!("call_{n}"), "name": "read", "arguments": "{}"}),
                    json!({"type": "function_call_output", "call_id": format!("call_{n}"), "output": result}),
                ]
            }));
            json!({
                "model": "m-1", "stream": true, "instructions": "Be kind.\nBe short.", "input": input,
                "tools": [{"type": "function", "name": "read"}, {"type": "function", "name": "shell"}],
            })
        }
        WireProtocol::Gemini => {
            let mut contents = vec![json!({"role": "user", "parts": [{"text": user}]})];
            contents.extend(numbers.flat_map(|n| {
                [
                    json!({"role": "model", "parts": [{"text": "I look."}, {"functionCall": {"id": format!("call_{n}"), "name": "read", "args": {}}}]}),
                    json!({"role": "user", "parts": [{"functionResponse": {"id": format!("call_{n}"), "name": "read", "response": {"error": result}}}]}),
                ]
            }));
            json!({
                "contents": contents,
                "systemInstruction": {"parts": [{"text": "Be kind."}, {"text": "Be short."}]},
                "tools": [{"functionDeclarations": [{"name": "read"}, {"name": "shell"}]}],
            })
        }
    }
}

fn asked(wire: WireProtocol, user: &str, answers: usize, result: &str) -> ScriptRequest {
    let body = body(wire, user, answers, result).to_string();
    ScriptRequest::read(wire, Some("m-1"), body.as_bytes()).unwrap()
}

fn play(step: &ScriptStep, wire: WireProtocol, asked: &ScriptRequest) -> Result<ModelAnswer, StreamError> {
    let frames = response_frames(step, wire, asked, 1);
    decode(wire, frames.iter().map(|frame| frame.bytes.as_slice()))
}

#[test]
fn what_is_asked_is_read_on_every_wire() {
    for wire in WIRES {
        let first = asked(wire, "Fix é", 0, "");
        assert_eq!((first.model.as_str(), first.user.as_str()), ("m-1", "Fix é"), "{wire:?}");
        assert_eq!(first.system, "Be kind.\nBe short.", "{wire:?}");
        assert_eq!(first.tools, ["read", "shell"], "{wire:?}");
        assert_eq!((first.answers, first.results), (0, vec![]), "{wire:?}");

        let later = asked(wire, "Fix é", 3, "no such file");
        let is_error = matches!(wire, WireProtocol::Messages | WireProtocol::Gemini);
        let result =
            ScriptToolResult { tool: Some("read".to_owned()), text: "no such file".to_owned(), is_error };
        assert_eq!((later.answers, later.user.as_str()), (3, "Fix é"), "{wire:?}");
        assert_eq!(later.results, [result], "{wire:?}");
        assert_eq!(later.body, body(wire, "Fix é", 3, "no such file"));
    }
}

#[test]
fn what_the_user_says_beside_a_result_is_heard() {
    let body = json!({"model": "m", "messages": [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "read", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "result"},
            {"type": "text", "text": "stop it"},
        ]},
    ]});
    let asked = ScriptRequest::read(WireProtocol::Messages, None, body.to_string().as_bytes()).unwrap();
    assert_eq!((asked.user.as_str(), asked.results[0].text.as_str()), ("stop it", "result"));
}

#[test]
fn what_is_no_request_is_refused() {
    for wire in WIRES {
        let read = |body: &str| ScriptRequest::read(wire, None, body.as_bytes()).unwrap_err();
        assert!(matches!(read("{"), ScriptRequestError::NotJson(_)), "{wire:?}");
        for body in ["{}", "[]", "5", r#"{"messages": 1, "input": null, "contents": {}}"#] {
            assert!(matches!(read(body), ScriptRequestError::NoConversation(_)), "{wire:?}: {body}");
        }
    }
}

#[test]
fn steps_are_played_in_order_and_used_up() {
    let mut player = ScriptPlayer::new(script(
        "[[step]]\ntext = 'always'\nwhen = { asked = 'again' }\nrepeat = true\n\
         [[step]]\ntext = 'one'\n[[step]]\ntext = 'two'\nwhen = { model = 'm-2' }\n[[step]]\ntext = 'three'\n",
    ));
    let mut said = |user: &str| {
        let asked = asked(WireProtocol::Messages, user, 0, "");
        player.next(&asked).map(|step| play(step, WireProtocol::Messages, &asked).unwrap().text())
    };
    assert_eq!(said("hello").unwrap(), "one");
    assert_eq!(said("again").unwrap(), "always");
    assert_eq!(said("again").unwrap(), "always");
    assert_eq!(said("hello").unwrap(), "three");
    assert_eq!(
        said("hello").unwrap_err().to_string(),
        "the script has no step for this request: the user asked \"hello\", the model is \"m-1\"; \
         the 2 steps that are left are for another `when`"
    );
}

#[test]
fn a_step_waits_for_its_result() {
    let text = "[[step]]\nwhen = { result = 'found', tool = 'read' }\ntext = 'a'\nrepeat = true\n\
                [[step]]\nwhen = { tool = 'shell' }\ntext = 'b'\nrepeat = true\n";
    for wire in WIRES {
        let mut player = ScriptPlayer::new(script(text));
        assert!(player.next(&asked(wire, "found", 0, "")).is_err(), "{wire:?}: the user's word is no result");
        assert!(player.next(&asked(wire, "", 1, "nothing")).is_err(), "{wire:?}");
        let step = player.next(&asked(wire, "", 1, "it was found")).unwrap();
        assert_eq!(step.when.result.as_deref(), Some("found"), "{wire:?}");
    }
}

#[test]
fn peeking_uses_nothing_up() {
    let mut player = ScriptPlayer::new(script("[[step]]\ntext = 'one'\n"));
    let asked = asked(WireProtocol::Chat, "", 0, "");
    assert_eq!(player.peek(&asked).unwrap().clone(), *player.next(&asked).unwrap());
    assert!(player.peek(&asked).unwrap_err().to_string().ends_with("all its steps are played"));
}

#[test]
fn a_resumed_session_goes_on_where_it_was() {
    let text = "[[step]]\nfail = { status = 503 }\n[[step]]\ntext = '1'\n[[step]]\ntext = 'r'\nrepeat = true\nwhen = { asked = 'r' }\n\
                [[step]]\ncut = true\n[[step]]\ntext = '2'\n[[step]]\nfail = { status = 500 }\n[[step]]\ntext = '3'\n";
    for (answers, user, expected) in [(0, "", 0), (1, "", 3), (1, "r", 2), (2, "", 5), (2, "r", 2)] {
        let script = script(text);
        let mut player = ScriptPlayer::new(script.clone());
        let step = player.next(&asked(WireProtocol::Chat, user, answers, "x")).unwrap();
        assert_eq!(*step, script.steps[expected], "{answers} answers, {user:?}");
    }
    let mut player = ScriptPlayer::new(script(text));
    assert!(player.next(&asked(WireProtocol::Chat, "", 3, "x")).is_err());
    assert!(player.next(&asked(WireProtocol::Chat, "r", 3, "x")).is_ok());
}

const RICH: &str = r#"
say = [{ thinking = "Let me see." }, { text = "I look: é☃" }, { call = { tool = "read", input = { path = "a" } } },
       { text = "and" }, { call = { tool = "list" } }]
usage = { input = 10, output = 20, cache_read = 30, cache_write = 5, reasoning = 7 }
piece = 3
"#;

#[test]
fn every_wire_tells_the_same() {
    for wire in WIRES {
        let answer = play(&step(RICH), wire, &asked(wire, "", 2, "x")).unwrap();
        assert_eq!((answer.thinking().as_str(), answer.text().as_str()), ("Let me see.", "I look: é☃and"));
        let calls: Vec<_> = answer.calls().map(|call| (call.id.as_deref(), call.name.as_str())).collect();
        assert_eq!(calls, [(Some("call_3"), "read"), (Some("call_4"), "list")], "{wire:?}");
        assert_eq!(answer.calls().next().unwrap().arguments, r#"{"path":"a"}"#, "{wire:?}");
        assert_eq!(answer.stop, Some(StopReason::ToolUse), "{wire:?}");
        assert_eq!(
            answer.usage,
            heard(wire, TokenUsage { input: 10, output: 20, cache_read: 30, cache_write: 5, reasoning: 7 })
        );
    }
}

/// What a wire can say of the counts.
fn heard(wire: WireProtocol, usage: TokenUsage) -> TokenUsage {
    match wire {
        WireProtocol::Messages => TokenUsage { reasoning: 0, ..usage },
        WireProtocol::Gemini => {
            TokenUsage { input: usage.input + usage.cache_write, cache_write: 0, ..usage }
        }
        WireProtocol::Chat | WireProtocol::Responses => usage,
    }
}

#[test]
fn thinking_is_sealed_where_the_wire_does_it() {
    let sealed = |wire: WireProtocol| {
        let answer = play(&step(RICH), wire, &asked(wire, "", 0, "")).unwrap();
        let blocks: Vec<AnswerBlock> = answer.blocks().cloned().collect();
        let AnswerBlock::Thinking { sealed, .. } = &blocks[0] else { panic!("thinking comes first") };
        (sealed.clone(), answer.calls().next().unwrap().sealed.clone())
    };
    assert!(sealed(WireProtocol::Messages).0["signature"].is_string());
    assert!(sealed(WireProtocol::Responses).0["encrypted_content"].is_string());
    assert_eq!(sealed(WireProtocol::Responses).0["summary"][0]["text"], "Let me see.");
    assert!(sealed(WireProtocol::Gemini).1["thoughtSignature"].is_string());
    assert_eq!(sealed(WireProtocol::Chat).0, Value::Null);
}

#[test]
fn what_is_not_counted_by_the_script_is_counted_by_its_size() {
    for wire in WIRES {
        let asked = asked(wire, "hello", 0, "");
        let size = body(wire, "hello", 0, "").to_string().len() as u64;
        let answer = play(&step("thinking = '12345'\ntext = '123456789'"), wire, &asked).unwrap();
        let usage = TokenUsage { input: size.div_ceil(4), output: 5, reasoning: 2, ..TokenUsage::default() };
        assert_eq!(answer.usage, heard(wire, usage), "{wire:?}");
    }
}

#[test]
fn chat_counts_only_for_those_who_ask() {
    let body = json!({"model": "m", "stream": true, "messages": []}).to_string();
    let asked = ScriptRequest::read(WireProtocol::Chat, None, body.as_bytes()).unwrap();
    assert_eq!(play(&step("text = 'a'"), WireProtocol::Chat, &asked).unwrap().usage, TokenUsage::default());
}

#[test]
fn a_stop_is_told_as_far_as_the_wire_has_a_word_for_it() {
    for wire in WIRES {
        for (stop, expected) in [
            ("end_turn", StopReason::EndTurn),
            ("max_tokens", StopReason::MaxTokens),
            ("refusal", StopReason::Refusal),
            ("other", StopReason::Other),
        ] {
            let step = step(&format!("text = 'a'\nstop = '{stop}'"));
            assert_eq!(play(&step, wire, &asked(wire, "", 0, "")).unwrap().stop, Some(expected), "{wire:?}");
        }
    }
}

#[test]
fn broken_arguments_come_as_they_are_written() {
    let step = step(r#"calls = [{ tool = "shell", arguments = '{"not json' }]"#);
    for wire in WIRES {
        let answer = play(&step, wire, &asked(wire, "", 0, "")).unwrap();
        let arguments = &answer.calls().next().unwrap().arguments;
        let expected = if wire == WireProtocol::Gemini { r#""{\"not json""# } else { r#"{"not json"# };
        assert_eq!(arguments, expected, "{wire:?}");
    }
}

#[test]
fn a_stream_may_be_cut_or_tell_of_an_error() {
    for wire in WIRES {
        let asked = asked(wire, "", 0, "");
        assert_eq!(
            play(&step("text = 'half'\ncut = true"), wire, &asked),
            Err(StreamError::CutOff),
            "{wire:?}"
        );
        let error = step("text = 'half'\nerror = { kind = 'overloaded_error', message = 'Busy' }");
        let told = play(&error, wire, &asked).unwrap_err();
        assert!(tells(&told, "overloaded_error", "Busy"), "{wire:?}: {told:?}");
        let half: Vec<u8> =
            response_frames(&error, wire, &asked, 1).into_iter().flat_map(|frame| frame.bytes).collect();
        assert!(String::from_utf8(half).unwrap().contains("half"), "{wire:?}");
    }
}

#[test]
fn waits_stand_before_what_they_are_written_before() {
    let step = step(
        "delay = '9s'\npiece = 2\nsay = [{ text = 'abcd' }, { wait = '1s' }, { text = 'efgh' }, { wait = '2s' }, \
         { call = { tool = 'x', arguments = '' } }, { wait = '3s' }]",
    );
    for wire in WIRES {
        let frames = response_frames(&step, wire, &asked(wire, "", 0, ""), 1);
        let at = |seconds: u64| -> Vec<String> {
            let waits = frames.iter().filter(|frame| frame.wait == Duration::from_secs(seconds));
            waits.map(|frame| String::from_utf8(frame.bytes.clone()).unwrap()).collect()
        };
        assert_eq!(frames[0].wait, Duration::from_secs(9), "{wire:?}");
        assert!(at(1).len() == 1 && at(1)[0].contains("\"ef\""), "{wire:?}: {:?}", at(1));
        assert!(at(2).len() == 1 && at(2)[0].contains("call_1"), "{wire:?}: {:?}", at(2));
        assert_eq!(at(3).len(), 1, "{wire:?}");
        let all: Duration = frames.iter().map(|frame| frame.wait).sum();
        assert_eq!(all, Duration::from_secs(15), "{wire:?}");
    }
}

#[test]
fn no_text_comes_in_endless_pieces() {
    let step = step(&format!("piece = 1\ntext = '{}'", "x".repeat(100_000)));
    for wire in WIRES {
        let count = response_frames(&step, wire, &asked(wire, "", 0, ""), 1).len();
        assert!((10_000..10_020).contains(&count), "{wire:?}: {count}");
    }
}

/// Whether an error is of a kind, which a wire may write with a code after it, and says this.
fn tells(error: &StreamError, of: &str, says: &str) -> bool {
    matches!(error, StreamError::Server { kind: Some(kind), message }
        if kind.split('/').next() == Some(of) && message == says)
}

#[test]
fn a_failure_speaks_the_words_of_its_wire() {
    let kinds = ["rate_limit_error", "rate_limit_error", "rate_limit_error", "RESOURCE_EXHAUSTED"];
    for (wire, kind) in WIRES.into_iter().zip(kinds) {
        let plain = failure_response(&step("fail = { status = 429, headers = { retry-after = '1' } }"), wire)
            .unwrap();
        assert_eq!(plain.status, 429);
        assert!(plain.headers.contains(&("retry-after".to_owned(), "1".to_owned())));
        let told = parse_error_body(&String::from_utf8(plain.body).unwrap()).unwrap();
        assert!(tells(&told, kind, "The script fails here."), "{wire:?}: {told:?}");

        let own = failure_response(&step("fail = { status = 529, kind = 'odd', message = 'Later' }"), wire)
            .unwrap();
        let told = parse_error_body(&String::from_utf8(own.body).unwrap()).unwrap();
        assert!(tells(&told, "odd", "Later"), "{wire:?}: {told:?}");
        assert_eq!(failure_response(&step("text = 'a'"), wire), None);
        assert_eq!(response_frames(&step("fail = { status = 500 }"), wire, &asked(wire, "", 0, ""), 1), []);
    }
}

/// Every frame is one event, as its wire writes it.
fn is_one_event(wire: WireProtocol, frame: &ScriptFrame) -> bool {
    let Ok(text) = std::str::from_utf8(&frame.bytes) else { return false };
    let end = if wire == WireProtocol::Gemini { "\r\n\r\n" } else { "\n\n" };
    let Some(event) = text.strip_suffix(end) else { return false };
    let (name, data) = match wire {
        WireProtocol::Messages | WireProtocol::Responses => match event.split_once('\n') {
            Some((name, data)) => (name.strip_prefix("event: "), data),
            None => return false,
        },
        WireProtocol::Chat | WireProtocol::Gemini => (None, event),
    };
    let Some(data) = data.strip_prefix("data: ").filter(|data| !data.contains(['\n', '\r'])) else {
        return false;
    };
    let data: Value = serde_json::from_str(data).unwrap_or_default();
    name.is_none_or(|name| data["type"] == name)
}

#[derive(Clone, Debug, PartialEq)]
enum Said {
    Thinking(String),
    Text(String),
    Call(String, Value),
}

fn any_said() -> impl Strategy<Value = Said> {
    let input = prop::collection::btree_map(
        "[a-z]{1,6}",
        prop_oneof![Just(json!(1)), Just(json!([true, "é"])), Just(json!({"k": "\""}))],
        0..3,
    );
    prop_oneof![
        "\\PC{0,30}|[ \n\t☃\"\\\\]{0,9}".prop_map(Said::Thinking),
        "\\PC{0,30}|[ \n\t☃\"\\\\]{0,9}".prop_map(Said::Text),
        ("[a-z_]{1,9}", input).prop_map(|(tool, input)| Said::Call(tool, json!(input))),
    ]
}

/// As it is written in TOML, whose strings are almost those of JSON.
fn toml_of(said: &Said) -> String {
    let quoted = |text: &str| json!(text).to_string().replace('\u{7f}', "\\u007f");
    match said {
        Said::Thinking(text) => format!("{{ thinking = {} }}", quoted(text)),
        Said::Text(text) => format!("{{ text = {} }}", quoted(text)),
        Said::Call(tool, input) => {
            format!("{{ call = {{ tool = {}, arguments = {} }} }}", quoted(tool), quoted(&input.to_string()))
        }
    }
}

/// Neighbours of one kind are one; what is empty is nothing.
fn merged(said: impl IntoIterator<Item = Said>) -> Vec<Said> {
    let mut merged: Vec<Said> = Vec::new();
    for next in said {
        match (merged.last_mut(), next) {
            (_, Said::Text(text) | Said::Thinking(text)) if text.is_empty() => {}
            (Some(Said::Text(last)), Said::Text(text)) => last.push_str(&text),
            (Some(Said::Thinking(last)), Said::Thinking(text)) => last.push_str(&text),
            (_, next) => merged.push(next),
        }
    }
    merged
}

fn heard_blocks(answer: &ModelAnswer) -> Vec<Said> {
    merged(answer.blocks().map(|block| match block {
        AnswerBlock::Text { text, .. } => Said::Text(text.clone()),
        AnswerBlock::Thinking { text, .. } => Said::Thinking(text.clone()),
        AnswerBlock::Recorded(_) => unreachable!("nothing was recorded"),
        AnswerBlock::Call(call) => {
            Said::Call(call.name.clone(), serde_json::from_str(&call.arguments).unwrap())
        }
    }))
}

proptest! {
    #[test]
    fn what_is_played_is_what_is_read(says in prop::collection::vec(any_said(), 0..8), piece in 1usize..40) {
        let says_toml: Vec<String> = says.iter().map(toml_of).collect();
        let step = step(&format!("piece = {piece}\nsay = [{}]", says_toml.join(", ")));
        let calls = says.iter().any(|said| matches!(said, Said::Call(..)));
        for wire in WIRES {
            let asked = asked(wire, "", 1, "x");
            let response_frames = response_frames(&step, wire, &asked, 1);
            prop_assert!(response_frames.iter().all(|frame| is_one_event(wire, frame)), "{:?}", wire);
            let answer = decode(wire, response_frames.iter().map(|frame| frame.bytes.as_slice())).unwrap();
            prop_assert_eq!(heard_blocks(&answer), merged(says.clone()), "{:?}", wire);
            let stop = if calls { StopReason::ToolUse } else { StopReason::EndTurn };
            prop_assert_eq!(answer.stop, Some(stop), "{:?}", wire);
            let mut ids: Vec<_> = answer.calls().map(|call| call.id.clone().unwrap()).collect();
            let count = ids.len();
            ids.push("call_1".to_owned());
            ids.sort();
            ids.dedup();
            prop_assert_eq!(ids.len(), count + 1, "an id was given twice");
        }
    }

    #[test]
    fn no_body_makes_reading_panic(body in any_json(), bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        for wire in WIRES {
            let _ = ScriptRequest::read(wire, None, &bytes);
            if let Ok(asked) = ScriptRequest::read(wire, None, body.to_string().as_bytes()) {
                prop_assert!(play(&step("text = 'a'"), wire, &asked).is_ok());
            }
        }
    }
}

/// Something that resembles a request.
fn any_json() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec![
        "messages",
        "input",
        "contents",
        "role",
        "content",
        "parts",
        "type",
        "tool_calls",
        "function",
        "name",
        "id",
        "call_id",
        "text",
        "functionCall",
        "functionResponse",
        "response",
        "tools",
        "system",
    ]);
    let leaf = prop::sample::select(vec![
        json!(null),
        json!(1),
        json!("user"),
        json!("assistant"),
        json!("model"),
        json!("tool"),
        json!("tool_use"),
        json!("tool_result"),
        json!("function_call"),
        json!("call_4294967295"),
    ]);
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((key.clone(), inner), 0..5).prop_map(|fields| Value::Object(
                fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            )),
        ]
    })
}

/// The scripts on the page that tells how to write them.
fn documented() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scripts.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = page.split("```toml\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn every_documented_script_can_be_read_and_played() {
    let scripts = documented();
    assert!(scripts.len() >= 3, "the page has lost its examples");
    for text in scripts {
        let script = ModelScript::parse(&text).unwrap_or_else(|error| panic!("{error} in\n{text}"));
        for (wire, step) in
            WIRES.into_iter().flat_map(|wire| script.steps.iter().map(move |step| (wire, step)))
        {
            let asked = asked(wire, "", 0, "");
            let played = response_frames(step, wire, &asked, 1);
            assert_ne!(failure_response(step, wire).is_some(), !played.is_empty(), "{wire:?}: {step:?}");
        }
    }
}
