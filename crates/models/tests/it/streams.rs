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
            server("rate_limit_error", "Rate limit reached"),
            server("server_error", "The server had an error"),
            server("UNAVAILABLE", "The model is overloaded."),
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
