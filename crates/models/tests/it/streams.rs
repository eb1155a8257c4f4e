//! Streams of our own, one of each wire, that all say the same.

use helve_models::{AnswerBlock, ModelAnswer, StreamError, WireProtocol, parse_error_body};
use helve_protocol::StopReason;
use serde_json::{Value, json};

use crate::decode;

const WIRES: [(WireProtocol, &str, &str); 4] = [
    (
        WireProtocol::Messages,
        include_str!("../streams/messages.sse"),
        include_str!("../streams/messages-error.sse"),
    ),
    (WireProtocol::Chat, include_str!("../streams/chat.sse"), include_str!("../streams/chat-error.sse")),
    (
        WireProtocol::Responses,
        include_str!("../streams/responses.sse"),
        include_str!("../streams/responses-error.sse"),
    ),
    (
        WireProtocol::Gemini,
        include_str!("../streams/gemini.sse"),
        include_str!("../streams/gemini-error.sse"),
    ),
];

fn whole(wire: WireProtocol, body: &str) -> ModelAnswer {
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
    let sealed = |wire: WireProtocol| -> Vec<Value> {
        let (_, body, _) = WIRES.into_iter().find(|(of, _, _)| *of == wire).unwrap();
        let answer = whole(wire, body);
        let sealed = answer.blocks().map(|block| match block {
            AnswerBlock::Thinking { sealed, .. } => sealed.clone(),
            AnswerBlock::Call(call) => call.sealed.clone(),
            AnswerBlock::Text { sealed, .. } => sealed.clone(),
            AnswerBlock::Recorded(_) => unreachable!("nothing was recorded"),
        });
        sealed.collect()
    };
    assert_eq!(
        sealed(WireProtocol::Messages),
        [
            json!({"signature": "c2lnbmVk"}),
            json!({"redacted": "aGlkZGVu"}),
            json!(null),
            json!(null),
            json!(null)
        ]
    );
    assert_eq!(sealed(WireProtocol::Responses)[0]["encrypted_content"], "c2VhbGVk");
    assert_eq!(sealed(WireProtocol::Gemini)[2], json!({"thoughtSignature": "c2lnbmVk"}));
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
            let nothing_is_missing =
                rest.is_empty() || (wire == WireProtocol::Chat && rest == "data: [DONE]");
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
    let answer = whole(WireProtocol::Gemini, &body);
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
        assert_eq!(whole(WireProtocol::Gemini, &body).calls().count(), 1, "{path}");
    }
}

#[test]
fn an_end_that_tells_of_no_answer_is_none() {
    let finish = |reason: &str| {
        let choice = json!({"choices": [{"delta": {"content": "half"}, "finish_reason": reason}]});
        format!("{}data: [DONE]\n\n", events(&[choice]))
    };
    for (wire, body) in [
        (WireProtocol::Chat, "data: [DONE]\n\n".to_owned()),
        (WireProtocol::Chat, finish("network_error")),
        (WireProtocol::Chat, finish("insufficient_system_resource")),
        (WireProtocol::Chat, finish("error")),
        (
            WireProtocol::Messages,
            events(&[json!({"type": "message_start"}), json!({"type": "message_stop"})]),
        ),
        (WireProtocol::Responses, events(&[json!({"type": "response.failed", "response": {"error": null}})])),
        (WireProtocol::Responses, events(&[json!({"type": "response.cancelled"})])),
    ] {
        assert!(decode(wire, [body.as_bytes()]).is_err(), "{wire:?}: {body}");
    }
    let incomplete = events(&[json!({"type": "response.incomplete", "response": {}})]);
    assert_eq!(whole(WireProtocol::Responses, &incomplete).stop, Some(StopReason::Other));
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
    let answer = whole(WireProtocol::Responses, &body);
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
    let calls: Vec<String> = whole(WireProtocol::Messages, &body)
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
    assert_eq!(whole(WireProtocol::Responses, &body).calls().count(), 2);
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
    assert_eq!(decode(WireProtocol::Chat, [body.as_bytes()]).unwrap_err(), StreamError::TooLarge);
}

/// What a server says whose answer comes twice, because something between it and us began anew.
fn replayed(
    wire: WireProtocol,
    first: &[Value],
    second: &[Value],
    end: &[Value],
) -> Result<ModelAnswer, StreamError> {
    let done = if wire == WireProtocol::Chat { "data: [DONE]\n\n" } else { "" };
    let body = [events(first), events(second), events(end), done.to_owned()].concat();
    decode(wire, [body.as_bytes()])
}

/// A call that came twice would run twice.
#[test]
fn an_answer_that_begins_anew_in_the_same_response_is_an_error() {
    let start =
        |id: &str| json!({"type": "message_start", "message": {"id": id, "usage": {"input_tokens": 3}}});
    let block = |kind: &str, index: u32, fields: Value| {
        let mut event = json!({"type": format!("content_block_{kind}"), "index": index});
        event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        event
    };
    let call = |index: u32, id: &str| {
        let content = json!({"type": "tool_use", "id": id, "name": "shell", "input": {"command": "make"}});
        [block("start", index, json!({"content_block": content})), block("stop", index, json!({}))]
    };
    let text = block("start", 0, json!({"content_block": {"type": "text", "text": "So "}}));
    let stop = json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}});
    let end = [stop.clone(), json!({"type": "message_stop"})];
    let [open, close] = call(0, "c1");
    for (first, second) in [
        // The same message again, another one, one without an id, after a call and after half of a text.
        (vec![start("m1"), open.clone(), close.clone()], vec![start("m1"), open.clone(), close.clone()]),
        (vec![start("m1"), open.clone(), close.clone()], vec![start("m2")]),
        (vec![start("m1"), text.clone()], vec![start("m2"), open.clone(), close.clone()]),
        (vec![json!({"type": "message_start"}), text.clone()], vec![json!({"type": "message_start"})]),
        (vec![start("m1")], vec![start("m2"), open.clone(), close.clone()]),
        // A block that begins while it is open, an id of a call that was used, a block after the end.
        (vec![start("m1"), text.clone()], vec![text.clone()]),
        (vec![start("m1"), open.clone()], vec![open.clone(), close.clone()]),
        (vec![start("m1"), open.clone(), close.clone()], call(1, "c1").to_vec()),
        (vec![start("m1"), open.clone(), close.clone(), stop.clone()], call(1, "c2").to_vec()),
    ] {
        let answer = replayed(WireProtocol::Messages, &first, &second, &end);
        assert!(matches!(answer, Err(StreamError::Restarted(_))), "{first:?} {second:?}: {answer:?}");
    }
    // An announcement that comes twice, before anything is said, harms nobody; nor does what comes after the end.
    let answer = replayed(WireProtocol::Messages, &[start("m1"), start("m1")], &call(0, "c1"), &end).unwrap();
    assert_eq!(answer.calls().count(), 1);
    let answer =
        replayed(WireProtocol::Messages, &[start("m1"), open, close], &end, &[end[1].clone(), start("m2")]);
    assert_eq!(answer.unwrap().calls().count(), 1);

    let created = |id: &str| json!({"type": "response.created", "response": {"id": id}});
    let item = |kind: &str, place: u32, id: &str| {
        json!({"type": format!("response.output_item.{kind}"), "output_index": place,
        "item": {"type": "function_call", "id": id, "call_id": id, "name": "shell", "arguments": "{}"}})
    };
    let end = [json!({"type": "response.completed", "response": {"status": "completed"}})];
    for second in [
        vec![created("r1")],
        vec![created("r2"), item("added", 0, "c1"), item("done", 0, "c1")],
        vec![item("added", 1, "c1"), item("done", 1, "c1")],
        vec![item("done", 1, "c1")],
        vec![item("added", 1, "c2"), item("added", 1, "c3")],
    ] {
        let first = [created("r1"), item("added", 0, "c1"), item("done", 0, "c1")];
        let answer = replayed(WireProtocol::Responses, &first, &second, &end);
        assert!(matches!(answer, Err(StreamError::Restarted(_))), "{second:?}: {answer:?}");
    }

    let candidate = |response: &str, id: &str| {
        json!({"responseId": response, "candidates": [{"content": {"parts": [
            {"functionCall": {"id": id, "name": "shell", "args": {}}}]}, "finishReason": "STOP"}]})
    };
    for second in [candidate("g2", "c2"), candidate("g1", "c1")] {
        let answer =
            replayed(WireProtocol::Gemini, &[candidate("g1", "c1")], std::slice::from_ref(&second), &[]);
        assert!(matches!(answer, Err(StreamError::Restarted(_))), "{second}: {answer:?}");
    }

    let piece = |index: u32, id: &str, arguments: &str| {
        let function = json!({"name": "shell", "arguments": arguments});
        json!({"choices": [{"delta": {"tool_calls": [{"index": index, "id": id, "function": function}]}}]})
    };
    let finish = json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]});
    for (first, second) in [
        (vec![piece(0, "c1", "{}"), finish.clone()], vec![piece(0, "c2", "{}")]),
        (vec![piece(0, "c1", "{\"command\":\"a\"}")], vec![piece(1, "c1", "{\"command\":\"b\"}")]),
        (vec![piece(0, "c1", "{\"command\":\"a\"}")], vec![piece(1, "c1", "")]),
    ] {
        let answer = replayed(WireProtocol::Chat, &first, &second, std::slice::from_ref(&finish));
        assert!(matches!(answer, Err(StreamError::Restarted(_))), "{second:?}: {answer:?}");
    }
}

#[test]
fn a_call_that_is_repeated_whole_is_one_call() {
    let chunk = |call: Value, finish: Value| json!({"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": finish}]});
    let piece =
        |arguments: &str| chunk(json!({"index": 0, "function": {"arguments": arguments}}), Value::Null);
    let begin = || {
        let call = json!({"index": 0, "id": "c1", "function": {"name": "read", "arguments": ""}});
        chunk(call, Value::Null)
    };
    for (pieces, last) in [
        (vec!["{\"path\":", "\"a.rs\"}"], json!("{\"path\":\"a.rs\"}")),
        (vec!["{\"path\":", "\"a.rs\"}"], json!("{ \"path\": \"a.rs\" }")),
        (vec!["{\"path\":", "\"a.rs\"}"], json!({"path": "a.rs"})),
        // The last piece comes in the repetition only.
        (vec!["{\"path\":\"a"], json!("{\"path\":\"a.rs\"}")),
        (vec![], json!("{\"path\":\"a.rs\"}")),
    ] {
        let whole = json!({"index": 0, "id": "c1", "function": {"name": "read", "arguments": last}});
        let mut list = vec![begin()];
        list.extend(pieces.iter().map(|json| piece(json)));
        list.push(chunk(whole, json!("tool_calls")));
        if pieces.len() == 2 {
            // Under another id, and without any.
            for again in [json!({"index": 0, "id": "c2"}), json!({})] {
                let mut again = again;
                again["function"] = json!({"name": "read", "arguments": last});
                list.push(chunk(again, json!("tool_calls")));
            }
        }
        let body = format!("{}data: [DONE]\n\n", events(&list));
        let answer = self::whole(WireProtocol::Chat, &body);
        let calls: Vec<Value> =
            answer.calls().map(|call| serde_json::from_str(&call.arguments).unwrap()).collect();
        assert_eq!(calls, [json!({"path": "a.rs"})], "{pieces:?} {last}");
    }
    // Braces that meet between two pieces are no repetition.
    let nested =
        [begin(), piece("{\"a\":"), piece("{\"a\":1}"), piece("}"), chunk(json!({}), json!("tool_calls"))];
    let body = format!("{}data: [DONE]\n\n", events(&nested));
    let answer = whole(WireProtocol::Chat, &body);
    assert_eq!(answer.calls().next().unwrap().arguments, "{\"a\":{\"a\":1}}");
}

#[test]
fn halves_of_a_character_are_joined_or_replaced() {
    let texts = |wire: WireProtocol, pieces: &[&str]| -> String {
        let event = |text: &&str| match wire {
            WireProtocol::Messages => format!(
                r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#
            ),
            WireProtocol::Chat => format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#),
            WireProtocol::Responses => {
                format!(r#"{{"type":"response.output_text.delta","output_index":0,"delta":"{text}"}}"#)
            }
            WireProtocol::Gemini => {
                format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}]}}}}]}}"#)
            }
        };
        let end = match wire {
            WireProtocol::Messages => {
                let stop = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}});
                events(&[stop, json!({"type": "message_stop"})])
            }
            WireProtocol::Chat => {
                let finish = json!({"choices": [{"delta": {}, "finish_reason": "stop"}]});
                format!("{}data: [DONE]\n\n", events(&[finish]))
            }
            WireProtocol::Responses => {
                events(&[json!({"type": "response.completed", "response": {"status": "completed"}})])
            }
            WireProtocol::Gemini => events(&[json!({"candidates": [{"finishReason": "STOP"}]})]),
        };
        let said: String = pieces.iter().map(|text| format!("data: {}\n\n", event(text))).collect();
        whole(wire, &(said + &end)).text()
    };
    for (wire, _, _) in WIRES {
        for (pieces, expected) in [
            (vec![r"a\ud83d", r"\ude00b"], "a😀b"),
            (vec![r"\uD83D", r"\uDE00\ud83d", r"\ude01"], "😀😁"),
            (vec![r"\ud83d\ude00"], "😀"),
            (vec![r"a\ud83d", "b"], "a\u{fffd}b"),
            (vec![r"a\ude00b"], "a\u{fffd}b"),
            (vec![r"a\ud83d"], "a\u{fffd}"),
            (vec![r"\ud83d\ud83d", r"\ude00"], "\u{fffd}😀"),
            // A backslash that is escaped itself begins no escape.
            (vec![r"\\ud83d\ud83d", r"\ude00"], r"\ud83d😀"),
        ] {
            assert_eq!(texts(wire, &pieces), expected, "{wire:?} {pieces:?}");
        }
    }
}

/// What a service says that passes requests on, and what the provider behind it said.
#[test]
fn the_words_of_the_provider_behind_are_told() {
    for (metadata, expected) in [
        (
            json!({"raw": "{\"error\":{\"message\":\"Slow down\"}}", "provider_name": "Acme"}),
            "returned error: Acme: Slow down",
        ),
        (json!({"raw": {"error": {"message": "Slow down"}}}), "returned error: Slow down"),
        (json!({"raw": "upstream is busy"}), "returned error: upstream is busy"),
        (json!({"raw": {"odd": 1}}), "returned error: {\"odd\":1}"),
        (json!({"raw": ""}), "returned error"),
        (json!({"raw": null}), "returned error"),
        (json!({}), "returned error"),
    ] {
        let error =
            json!({"error": {"message": "Provider returned error", "code": 429, "metadata": metadata}});
        let StreamError::Server { message, .. } = parse_error_body(&error.to_string()).unwrap() else {
            panic!()
        };
        assert!(message.ends_with(expected), "{message}");
        let told = decode(WireProtocol::Chat, [events(&[error]).as_bytes()]).unwrap_err().to_string();
        assert!(told.ends_with(expected), "{told}");
    }
}
