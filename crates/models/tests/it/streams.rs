//! Streams of our own, one of each wire, that all say the same.

use helve_models::{Answer, Block, StreamError, Wire};
use helve_protocol::StopReason;
use serde_json::{Value, json};

use crate::decode;

const WIRES: [(Wire, &str, &str); 4] = [
    (Wire::Messages, include_str!("../streams/messages.sse"), include_str!("../streams/messages-error.sse")),
    (Wire::Chat, include_str!("../streams/chat.sse"), include_str!("../streams/chat-error.sse")),
    (
        Wire::Responses,
        include_str!("../streams/responses.sse"),
        include_str!("../streams/responses-error.sse"),
    ),
    (Wire::Gemini, include_str!("../streams/gemini.sse"), include_str!("../streams/gemini-error.sse")),
];

fn whole(wire: Wire, body: &str) -> Answer {
    decode(wire, [body.as_bytes()]).unwrap()
}

#[test]
fn every_wire_tells_the_same() {
    for (wire, body, _) in WIRES {
        let answer = whole(wire, body);
        assert_eq!(answer.text(), "I read it: é☃", "{wire:?}");
        assert_eq!(answer.thinking(), "The file is small.", "{wire:?}");
        let calls: Vec<(&str, Value)> = answer
            .calls()
            .map(|call| (call.name.as_str(), serde_json::from_str(&call.arguments).unwrap()))
            .collect();
        assert_eq!(calls, [("read", json!({"path": "a.rs"})), ("list", json!({}))], "{wire:?}");
        assert_eq!(answer.stop, Some(StopReason::ToolUse), "{wire:?}");
        let usage = answer.usage;
        assert_eq!(usage.input + usage.cache_write, 19, "{wire:?}");
        assert_eq!((usage.cache_read, usage.output), (100, 80), "{wire:?}");
    }
}

#[test]
fn what_is_sealed_is_kept_in_its_place() {
    let sealed = |wire: Wire| -> Vec<Value> {
        let (_, body, _) = WIRES.into_iter().find(|(of, _, _)| *of == wire).unwrap();
        let answer = whole(wire, body);
        let sealed = answer.blocks().map(|block| match block {
            Block::Thinking { sealed, .. } => sealed.clone(),
            Block::Call(call) => call.sealed.clone(),
            Block::Text { sealed, .. } => sealed.clone(),
            Block::Written(_) => unreachable!("nothing was recorded"),
        });
        sealed.collect()
    };
    assert_eq!(
        sealed(Wire::Messages),
        [
            json!({"signature": "c2lnbmVk"}),
            json!({"redacted": "aGlkZGVu"}),
            json!(null),
            json!(null),
            json!(null)
        ]
    );
    assert_eq!(sealed(Wire::Responses)[0]["encrypted_content"], "c2VhbGVk");
    assert_eq!(sealed(Wire::Gemini)[2], json!({"thoughtSignature": "c2lnbmVk"}));
}

#[test]
fn pieces_do_not_matter() {
    for (wire, body, _) in WIRES {
        let expected = whole(wire, body);
        for size in 1..=64 {
            assert_eq!(
                decode(wire, body.as_bytes().chunks(size)).unwrap(),
                expected,
                "{wire:?} in pieces of {size}"
            );
        }
        for cut in 0..body.len() {
            let (first, second) = body.as_bytes().split_at(cut);
            assert_eq!(decode(wire, [first, second]).unwrap(), expected, "{wire:?} cut at {cut}");
        }
    }
}

#[test]
fn an_answer_that_is_cut_off_is_an_error() {
    for (wire, body, _) in WIRES {
        for cut in 0..body.len() {
            let is_whole = decode(wire, [&body.as_bytes()[..cut]]).is_ok();
            let rest = body[..].get(cut..).unwrap_or("x").trim();
            // Between the last event and a server's closing word nothing is missing but that word.
            let nothing_is_missing = rest.is_empty() || (wire == Wire::Chat && rest == "data: [DONE]");
            assert!(!is_whole || nothing_is_missing, "{wire:?} cut at {cut} of {}", body.len());
        }
    }
}

#[test]
fn an_error_within_the_stream_is_told() {
    let errors = WIRES.map(|(wire, _, body)| decode(wire, [body.as_bytes()]).unwrap_err());
    let server = |kind: &str, message: &str| StreamError::Server {
        kind: Some(kind.to_owned()),
        message: message.to_owned(),
    };
    assert_eq!(
        errors,
        [
            server("overloaded_error", "Overloaded"),
            server("rate_limit_error/429", "Rate limit reached"),
            server("server_error", "The server had an error"),
            server("UNAVAILABLE/503", "The model is overloaded."),
        ]
    );
}

#[test]
fn what_is_no_stream_is_an_error() {
    for (wire, _, _) in WIRES {
        for body in
            ["", "<html>busy</html>", "data: {\n\n", "data: nonsense\n\n", "data: [1]\n\n", "{\"ok\":true}"]
        {
            assert!(decode(wire, [body.as_bytes()]).is_err(), "{wire:?}: {body:?}");
        }
    }
}

fn events(list: &[Value]) -> String {
    list.iter().map(|event| format!("data: {event}\n\n")).collect()
}

#[test]
fn arguments_that_come_piece_by_piece_are_put_together() {
    let part = |part: Value| json!({"candidates": [{"content": {"parts": [{"functionCall": part}]}}]});
    let grow = |path: &str, piece: Value, goes_on: bool| {
        let mut piece = piece;
        piece["jsonPath"] = json!(path);
        piece["willContinue"] = json!(goes_on);
        part(json!({"partialArgs": [piece], "willContinue": true}))
    };
    let body = events(&[
        part(json!({"name": "plain", "args": {"x": 1}})),
        part(json!({"name": "cook", "willContinue": true})),
        grow("$.recipe.name", json!({"stringValue": "Las"}), true),
        grow("$.recipe.name", json!({"stringValue": "agna"}), false),
        grow("$.recipe.steps[1]", json!({"stringValue": "bake"}), false),
        grow("$.recipe.steps[0]", json!({"stringValue": "mix"}), false),
        grow("$['serves']", json!({"numberValue": 4}), false),
        grow("$.hot", json!({"boolValue": true}), false),
        part(json!({})),
        part(json!({"name": "none", "willContinue": true})),
        part(json!({"name": "last", "willContinue": true})),
        grow("$.a", json!({"stringValue": "b"}), false),
        json!({"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]}),
    ]);
    let answer = whole(Wire::Gemini, &body);
    let calls: Vec<(&str, Value)> = answer
        .calls()
        .map(|call| (call.name.as_str(), serde_json::from_str(&call.arguments).unwrap()))
        .collect();
    let cook = json!({"recipe": {"name": "Lasagna", "steps": ["mix", "bake"]}, "serves": 4, "hot": true});
    assert_eq!(
        calls,
        [("plain", json!({"x": 1})), ("cook", cook), ("none", json!({})), ("last", json!({"a": "b"}))]
    );
}

#[test]
fn absurd_places_of_arguments_harm_nobody() {
    for path in ["$.a[99999999999]", "$.a[10000]", "$..", "$[", "$.a[b]", "a", "$.a.b[0", ""] {
        let call = json!({"name": "x", "partialArgs": [{"jsonPath": path, "stringValue": "v"}]});
        let body = events(&[
            json!({"candidates": [{"content": {"parts": [{"functionCall": call}]}, "finishReason": "STOP"}]}),
        ]);
        assert_eq!(whole(Wire::Gemini, &body).calls().count(), 1, "{path}");
    }
}

#[test]
fn an_end_that_tells_of_no_answer_is_none() {
    let finish = |reason: &str| {
        let choice = json!({"choices": [{"delta": {"content": "half"}, "finish_reason": reason}]});
        format!("{}data: [DONE]\n\n", events(&[choice]))
    };
    for (wire, body) in [
        (Wire::Chat, "data: [DONE]\n\n".to_owned()),
        (Wire::Chat, finish("network_error")),
        (Wire::Chat, finish("insufficient_system_resource")),
        (Wire::Chat, finish("error")),
        (Wire::Messages, events(&[json!({"type": "message_start"}), json!({"type": "message_stop"})])),
        (Wire::Responses, events(&[json!({"type": "response.failed", "response": {"error": null}})])),
        (Wire::Responses, events(&[json!({"type": "response.cancelled"})])),
    ] {
        assert!(decode(wire, [body.as_bytes()]).is_err(), "{wire:?}: {body}");
    }
    let incomplete = events(&[json!({"type": "response.incomplete", "response": {}})]);
    assert_eq!(whole(Wire::Responses, &incomplete).stop, Some(StopReason::Other));
}

#[test]
fn an_answer_that_comes_at_its_end_only_is_an_answer() {
    let output = json!([
        {"type": "reasoning", "id": "rs_1", "summary": [{"text": "Hm."}]},
        {"type": "message", "content": [{"type": "output_text", "text": "Hello."}]},
        {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"},
    ]);
    let body = events(&[
        json!({"type": "response.completed", "response": {"status": "completed", "output": output}}),
    ]);
    let answer = whole(Wire::Responses, &body);
    assert_eq!((answer.text().as_str(), answer.thinking().as_str()), ("Hello.", "Hm."));
    assert_eq!((answer.calls().count(), answer.stop), (1, Some(StopReason::ToolUse)));
}

#[test]
fn numbers_that_are_used_twice_mean_two_blocks() {
    let block = |name: &str| {
        json!({"type": "content_block_start", "index": 0,
        "content_block": {"type": "tool_use", "id": name, "name": name, "input": {}}})
    };
    let piece = json!({"type": "content_block_delta", "index": 0,
        "delta": {"type": "input_json_delta", "partial_json": "{\"a\":1}"}});
    let stop = json!({"type": "content_block_stop", "index": 0});
    let body = events(&[
        block("one"),
        piece.clone(),
        stop.clone(),
        block("two"),
        piece,
        stop,
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        json!({"type": "message_stop"}),
    ]);
    let calls: Vec<String> = whole(Wire::Messages, &body)
        .calls()
        .map(|call| format!("{} {}", call.name, call.arguments))
        .collect();
    assert_eq!(calls, [r#"one {"a":1}"#, r#"two {"a":1}"#]);

    let item = |kind: &str, id: &str| {
        json!({"type": format!("response.output_item.{kind}"),
        "item": {"type": "function_call", "id": id, "call_id": id, "name": id, "arguments": "{}"}})
    };
    let body = events(&[
        item("added", "one"),
        item("done", "one"),
        item("added", "two"),
        item("done", "two"),
        json!({"type": "response.completed", "response": {"status": "completed"}}),
    ]);
    assert_eq!(whole(Wire::Responses, &body).calls().count(), 2);
}

#[test]
fn what_comes_instead_of_a_stream_is_told() {
    for wire in WIRES.map(|(wire, _, _)| wire) {
        for (body, expected) in [
            (r#"{"error": {"message": "no credit"}}"#, "no credit"),
            (r#"[{"error": {"message": "no credit"}}]"#, "no credit"),
            (r#"{"object": "error", "message": "no credit"}"#, "no credit"),
            (r#"{"detail": "no credit"}"#, "no credit"),
            (r#"{"id": "x", "choices": []}"#, "no stream of events"),
            ("<html><body>Log in</body></html>", "no stream of events"),
        ] {
            let error = decode(wire, [body.as_bytes()]).unwrap_err().to_string();
            assert!(error.contains(expected), "{wire:?} {body}: {error}");
        }
    }
}

#[test]
fn an_answer_of_countless_parts_is_refused() {
    let choice = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]});
    let pair = events(&[choice(json!({"content": "a"})), choice(json!({"reasoning_content": "b"}))]);
    let body = pair.repeat(10_000);
    assert_eq!(decode(Wire::Chat, [body.as_bytes()]).unwrap_err(), StreamError::TooLarge);
}
