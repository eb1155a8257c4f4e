//! What a strict server takes and what it refuses.
#![expect(
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that can't spoil a body has failed"
)]

use helve_models::WireProtocol;
use helve_testkit::{ScriptedServer, strict};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::client::{Client, Response, WIRES, path, play};

/// Bodies that Helve sends, and that the types of the providers' own libraries take.
const SENT: [(WireProtocol, &str); 8] = [
    (WireProtocol::Messages, include_str!("../../../../crates/models/tests/requests/messages.json")),
    (WireProtocol::Messages, include_str!("../../../../crates/models/tests/requests/messages-forced.json")),
    (WireProtocol::Chat, include_str!("../../../../crates/models/tests/requests/chat.json")),
    (WireProtocol::Chat, include_str!("../../../../crates/models/tests/requests/chat-forced.json")),
    (WireProtocol::Responses, include_str!("../../../../crates/models/tests/requests/responses.json")),
    (WireProtocol::Responses, include_str!("../../../../crates/models/tests/requests/responses-forced.json")),
    (WireProtocol::Gemini, include_str!("../../../../crates/models/tests/requests/gemini.json")),
    (WireProtocol::Gemini, include_str!("../../../../crates/models/tests/requests/gemini-forced.json")),
];

/// The long body of a wire, in which everything occurs.
fn body(wire: WireProtocol) -> Value {
    let (_, text) = SENT.iter().find(|(of, _)| *of == wire).unwrap();
    serde_json::from_str(text).unwrap()
}

#[test]
fn what_helve_sends_is_taken() {
    for (wire, text) in SENT {
        assert_eq!(strict::check(wire, &serde_json::from_str(text).unwrap()), Ok(()), "{wire:?}");
    }
}

/// A way to spoil a body.
enum Spoil {
    /// Puts a value where the pointer leads; a last `-` adds to a list.
    Set(&'static str, Value),
    Remove(&'static str),
    /// Exchanges an element of a list with the one after it.
    Swap(&'static str),
    Twice(&'static str),
}
use Spoil::{Remove, Set, Swap, Twice};

impl Spoil {
    fn pointer(&self) -> &'static str {
        match self {
            Set(pointer, _) | Remove(pointer) | Swap(pointer) | Twice(pointer) => pointer,
        }
    }

    fn apply(&self, body: &mut Value) {
        let (parent, last) = self.pointer().rsplit_once('/').unwrap();
        let parent = body.pointer_mut(parent).unwrap_or_else(|| panic!("no {}", self.pointer()));
        let Value::Array(list) = parent else {
            let object = parent.as_object_mut().unwrap();
            match self {
                Set(_, value) => drop(object.insert(last.to_owned(), value.clone())),
                Remove(_) => drop(object.remove(last).unwrap()),
                Swap(_) | Twice(_) => panic!("{} is in no list", self.pointer()),
            }
            return;
        };
        let index = last.parse().unwrap_or(list.len());
        match self {
            Set(_, value) if index < list.len() => list[index] = value.clone(),
            Set(_, value) => list.push(value.clone()),
            Remove(_) => drop(list.remove(index)),
            Swap(_) => list.swap(index, index + 1),
            Twice(_) => list.insert(index, list[index].clone()),
        }
    }
}

/// Each spoiled body is refused, for the reason that it was spoiled for.
fn refuse(wire: WireProtocol, spoils: Vec<(Spoil, &str)>) {
    for (spoil, why) in spoils {
        let mut spoiled = body(wire);
        spoil.apply(&mut spoiled);
        let wrong = strict::check(wire, &spoiled).expect_err(spoil.pointer());
        assert!(wrong.contains(why), "{wire:?} {}: {wrong}", spoil.pointer());
    }
}

#[test]
fn messages_are_held_to_their_rules() {
    let mark = || json!({"type": "ephemeral"});
    refuse(
        WireProtocol::Messages,
        vec![
            // The top.
            (Set("/helve", json!(1)), "unknown field \"helve\""),
            (Remove("/max_tokens"), "has no \"max_tokens\""),
            (Set("/max_tokens", json!(0)), "no whole number from 1"),
            (Set("/model", json!("")), "model: is empty"),
            (Set("/messages", json!([])), "messages: is no list with something"),
            (Set("/system/0/text", json!(" ")), "system.0.text: is empty"),
            (Set("/output_config/effort", json!("much")), "\"much\", none of"),
            // Order.
            (Set("/messages", json!([{"role": "assistant", "content": "Hi."}])), "begins with the model"),
            (Remove("/messages/5"), "ends with the model"),
            (Remove("/messages/3"), "\"call_1\" has no result before this"),
            (Swap("/messages/2"), "a result without its call"),
            (Remove("/messages/3/content/1"), "\"call_2\" has no result before this"),
            (Twice("/messages/3/content/0"), "a second result"),
            (Remove("/messages/2/content/3"), "a result without its call"),
            (Set("/messages/3/content/1/tool_use_id", json!("call_9")), "a result without its call"),
            (Twice("/messages/4"), "the model speaks twice"),
            (
                Set("/messages/3/content/0", json!({"type": "text", "text": "First this."})),
                "\"call_1\" has no result before this",
            ),
            (Set("/messages/5/role", json!("system")), "\"system\", none of"),
            // Content.
            (Set("/messages/5/content", json!("")), "is empty"),
            (Set("/messages/5/content", json!([])), "is no list with something"),
            (Set("/messages/5/content/0/text", json!("\n ")), "is empty"),
            (Set("/messages/2/content/1/text", json!("")), "is empty"),
            (Set("/messages/3/content/0/content", json!([])), "is no list with something"),
            (
                Set(
                    "/messages/3/content/1/content/0",
                    json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aaaa"}}),
                ),
                "an error is told in text",
            ),
            (Set("/messages/0/content/1/source/media_type", json!("image/tiff")), "\"image/tiff\", none of"),
            (Set("/messages/0/content/1/source/data", json!("é")), "is no base64"),
            (Set("/messages/0/content/0/type", json!("tool_use")), "the user can't send"),
            (Set("/messages/5/name", json!("Ann")), "unknown field"),
            (Set("/messages/5/content/0/id", json!("1")), "unknown field"),
            // Calls and tools.
            (Set("/messages/2/content/2/id", json!("call.1")), "no id that is taken"),
            (Set("/messages/2/content/3/id", json!("call_1")), "same id"),
            (Set("/messages/2/content/2/name", json!("read file")), "no name that is taken"),
            (Set("/messages/2/content/2/input", json!("{}")), "is no object"),
            (Set("/tools/0/name", json!("x".repeat(65))), "no name that is taken"),
            (Twice("/tools/0"), "same name"),
            (Set("/tools/0/input_schema", json!([])), "has no \"type\""),
            (Set("/tools/0/input_schema/type", json!("array")), "\"array\", none of"),
            (Set("/tools/0/input_schema/anyOf", json!([])), "\"anyOf\" at the top"),
            (Set("/tools/0/input_schema/properties/a b", json!({})), "no name that is taken"),
            (Set("/tools/0/input_schema/required", json!(["gone"])), "requires \"gone\""),
            (Remove("/tools"), "none are there"),
            (Set("/tool_choice", json!({"type": "tool", "name": "gone"})), "there is no such tool"),
            // Thinking.
            (Set("/tool_choice", json!({"type": "any"})), "can't be forced"),
            (Remove("/messages/2/content/0/signature"), "has no \"signature\""),
            (Set("/messages/2/content/0/signature", json!("")), "is empty"),
            (
                Set(
                    "/messages/4/content/-",
                    json!({"type": "thinking", "thinking": "", "signature": "c2ln"}),
                ),
                "ends with thinking",
            ),
            (Set("/thinking", json!({"type": "enabled", "budget_tokens": 9})), "no whole number from 1024"),
            (Set("/thinking", json!({"type": "enabled", "budget_tokens": 64_000})), "leaves no tokens"),
            (Set("/temperature", json!(0)), "no temperature"),
            // Cache marks.
            (Set("/messages/5/content/0/cache_control", json!({"type": "forever"})), "none of"),
            (Set("/messages/2/content/0/cache_control", mark()), "unknown field"),
        ],
    );
}

#[test]
fn four_cache_marks_are_taken_and_a_fifth_is_not() {
    let mut marked = body(WireProtocol::Messages);
    let places = ["/messages/0/content/0", "/messages/3/content/0/content/0", "/tools/1"];
    for (number, place) in places.into_iter().enumerate() {
        assert_eq!(strict::check(WireProtocol::Messages, &marked), Ok(()), "{} marks", number + 2);
        marked.pointer_mut(place).unwrap()["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
    }
    let wrong = strict::check(WireProtocol::Messages, &marked).unwrap_err();
    assert!(wrong.contains("has 5 cache marks"), "{wrong}");
}

#[test]
fn a_model_with_a_budget_sees_the_thought_that_its_calls_came_from() {
    let mut calling = body(WireProtocol::Messages);
    calling["thinking"] = json!({"type": "enabled", "budget_tokens": 2_048});
    calling["messages"].as_array_mut().unwrap().truncate(4);
    assert_eq!(strict::check(WireProtocol::Messages, &calling), Ok(()));
    Remove("/messages/2/content/0").apply(&mut calling);
    let wrong = strict::check(WireProtocol::Messages, &calling).unwrap_err();
    assert!(wrong.contains("without the thought"), "{wrong}");
}

#[test]
fn chat_is_held_to_its_rules() {
    refuse(
        WireProtocol::Chat,
        vec![
            (Set("/thinking", json!({})), "unknown field \"thinking\""),
            (Remove("/model"), "has no \"model\""),
            (Remove("/messages"), "has no \"messages\""),
            (Set("/stream", json!(false)), "is only for streams"),
            (Set("/reasoning_effort", json!("off")), "none of"),
            (Set("/max_tokens", json!(0)), "no whole number"),
            // Order.
            (Remove("/messages/8"), "ends with the model"),
            (Set("/messages/1", json!({"role": "assistant", "content": "Hi."})), "begins with the model"),
            (Remove("/messages/4"), "\"call_1\" has no result before this"),
            (Twice("/messages/4"), "a second result"),
            (Remove("/messages/3"), "a result without its call"),
            (Swap("/messages/5"), "\"call_2\" has no result before this"),
            (Twice("/messages/7"), "the model speaks twice"),
            (Twice("/messages/3"), "\"call_1\" has no result before this"),
            (Set("/messages/8/role", json!("system")), "stands after the beginning"),
            (Set("/messages/8/role", json!("function")), "none of"),
            // Content.
            (Set("/messages/8/content", json!("")), "is empty"),
            (Set("/messages/8/content", Value::Null), "is no list with something"),
            (Set("/messages/1/content/0/text", json!("")), "is empty"),
            (Set("/messages/4/content", json!(" ")), "is empty"),
            (Set("/messages/7/content", Value::Null), "says nothing and calls nothing"),
            (Set("/messages/7/tool_calls", json!([])), "is no list with something"),
            (Set("/messages/1/content/1/image_url/url", json!("data:image/tiff;base64,aaaa")), "image/tiff"),
            (Set("/messages/1/content/1/image_url/url", json!("data:image/png;base64,a")), "no base64"),
            (Set("/messages/3/reasoning_content", json!("Hm.")), "unknown field"),
            // Calls and tools.
            (Set("/messages/3/tool_calls/0/id", json!("")), "no id of 1 to 40"),
            (Set("/messages/3/tool_calls/0/id", json!("x".repeat(41))), "no id of 1 to 40"),
            (Set("/messages/3/tool_calls/1/id", json!("call_1")), "same id"),
            (Set("/messages/3/tool_calls/0/function/name", json!("")), "no name that is taken"),
            (Set("/messages/3/tool_calls/0/function/arguments", json!("{")), "is no JSON object"),
            (Set("/messages/3/tool_calls/0/function/arguments", json!({})), "is no string"),
            (Set("/tools/0/function/parameters", json!({"type": "object"})), "has no \"properties\""),
            (Set("/tools/0/function/strict", json!(true)), "is optional"),
            (Set("/tools", json!([])), "is no list with something"),
            (Set("/tool_choice", json!("any")), "none of"),
        ],
    );
}

#[test]
fn responses_are_held_to_their_rules() {
    refuse(
        WireProtocol::Responses,
        vec![
            (Set("/messages", json!([])), "unknown field \"messages\""),
            (Remove("/input"), "has no \"input\""),
            (Set("/instructions", json!("")), "instructions: is empty"),
            (Set("/max_output_tokens", json!(1)), "no whole number from 16"),
            (Set("/include/0", json!("everything")), "none of"),
            // Order.
            (Remove("/input/9"), "ends with the model"),
            (Remove("/input/6"), "\"call_1\" has no result before this"),
            (Twice("/input/7"), "a second result"),
            (Remove("/input/5"), "a result without its call"),
            (Swap("/input/7"), "\"call_2\" has no result before this"),
            (
                Set("/input/0", json!({"type": "message", "role": "assistant", "content": "Hi."})),
                "begins with the model",
            ),
            // Content.
            (Set("/input/9/content/0/text", json!("")), "is empty"),
            (Set("/input/9/content", json!([])), "is no list with something"),
            (Set("/input/8/content", json!("")), "is empty"),
            (Set("/input/7/output", json!("")), "is empty"),
            (Set("/input/0/content/1/image_url", json!("here")), "is no address"),
            (Set("/input/9/content/0/type", json!("output_text")), "none of"),
            (Set("/input/9/type", json!("item_reference")), "is no item"),
            // Calls and tools.
            (Set("/input/4/call_id", json!("x".repeat(65))), "no id of 1 to 64"),
            (Set("/input/4/id", json!("call_1")), "does not begin with \"fc_\""),
            (Set("/input/5/call_id", json!("call_1")), "same id"),
            (Set("/input/4/name", json!("a.b")), "no name that is taken"),
            (Set("/input/4/arguments", json!("[]")), "is no JSON object"),
            (Remove("/tools/0/strict"), "has no \"strict\""),
            (Set("/tools/0/strict", json!(true)), "is optional"),
            (Set("/tools/0/parameters/type", json!("string")), "none of"),
            (Set("/tool_choice", json!({"type": "function", "name": "gone"})), "there is no such tool"),
            // Thinking.
            (Remove("/input/2/encrypted_content"), "the server has not stored it"),
            (Remove("/input/2/summary"), "has no \"summary\""),
            (Set("/input/2/id", json!("1")), "does not begin with \"rs_\""),
        ],
    );
}

#[test]
fn a_thought_is_followed_by_what_came_of_it() {
    let mut cut = body(WireProtocol::Responses);
    let input = cut["input"].as_array_mut().unwrap();
    input.drain(3..9);
    let wrong = strict::check(WireProtocol::Responses, &cut).unwrap_err();
    assert!(wrong.contains("nothing of the model's follows"), "{wrong}");
}

#[test]
fn gemini_is_held_to_its_rules() {
    refuse(
        WireProtocol::Gemini,
        vec![
            (Set("/model", json!("m")), "unknown field \"model\""),
            (Remove("/contents"), "has no \"contents\""),
            (Set("/systemInstruction/parts/0/text", json!("")), "is empty"),
            (Set("/generationConfig/thinkingConfig/thinkingBudget", json!(5)), "says twice"),
            (Set("/generationConfig/stop", json!(5)), "unknown field"),
            // Order.
            (Remove("/contents/5"), "ends with the model"),
            (Remove("/contents/3"), "\"call_1\" has no result before this"),
            (Remove("/contents/3/parts/1"), "\"call_2\" has no result before this"),
            (Twice("/contents/3/parts/0"), "a second result"),
            (Remove("/contents/2"), "a result without its call"),
            (Twice("/contents/4"), "the model speaks twice"),
            (Swap("/contents/3/parts/1"), "\"call_2\" has no result before this"),
            (Set("/contents/3/parts/0/functionResponse/name", json!("list")), "a result without its call"),
            (Set("/contents/5/role", json!("assistant")), "none of"),
            // Content.
            (Set("/contents/5/parts", json!([])), "is no list with something"),
            (Set("/contents/5/parts/0", json!({})), "is empty"),
            (Set("/contents/5/parts/0/text", json!("")), "is empty"),
            (Set("/contents/4/parts/0/text", json!("")), "is empty"),
            (Set("/contents/0/parts/1/text", json!("x")), "holds two things"),
            (Set("/contents/0/parts/1/inlineData/mimeType", json!("image/tiff")), "none of"),
            (Set("/contents/5/parts/0/thought", json!(true)), "unknown field"),
            // Calls and tools.
            (Set("/contents/2/parts/3/functionCall/args", json!("{}")), "is no object"),
            (Set("/contents/2/parts/3/functionCall/name", json!("a b")), "no name that is taken"),
            (Set("/contents/3/parts/0/functionResponse/response", json!("x")), "is no object"),
            (Set("/tools/0/functionDeclarations/0/name", json!("1st")), "begins neither"),
            (Set("/tools/0/functionDeclarations/0/parametersJsonSchema", json!(1)), "has no \"type\""),
            (
                Set(
                    "/toolConfig",
                    json!({"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["read"]}}),
                ),
                "not for the mode",
            ),
        ],
    );
}

#[test]
fn a_call_of_this_turn_is_signed_where_the_model_is_told_a_level() {
    let mut calling = body(WireProtocol::Gemini);
    calling["contents"].as_array_mut().unwrap().truncate(4);
    assert_eq!(strict::check(WireProtocol::Gemini, &calling), Ok(()));
    Remove("/contents/2/parts/2/thoughtSignature").apply(&mut calling);
    let wrong = strict::check(WireProtocol::Gemini, &calling).unwrap_err();
    assert!(wrong.contains("has no signature"), "{wrong}");
    Remove("/generationConfig").apply(&mut calling);
    assert_eq!(strict::check(WireProtocol::Gemini, &calling), Ok(()));
}

fn post(server: &ScriptedServer, wire: WireProtocol, body: &Value) -> Response {
    let body = body.to_string();
    let mut client = Client::connect(server);
    client.send(
        format!("POST {} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", path(wire), body.len()).as_bytes(),
    );
    client.response().unwrap()
}

#[test]
fn a_strict_server_refuses_in_the_words_of_the_wire_and_remembers_why() {
    let server = play("[[step]]\ntext = 'Hello.'\nrepeat = true");
    let ask = |body: &Value| post(&server, WireProtocol::Chat, body);
    let mut spoiled = body(WireProtocol::Chat);
    Remove("/messages/4").apply(&mut spoiled);
    assert_eq!(ask(&spoiled).status, 200, "a server is strict when it is told to be");
    server.be_strict();
    let refused = ask(&spoiled);
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("has no result before this"), "{}", refused.text());
    assert_eq!(ask(&body(WireProtocol::Chat)).status, 200);
    assert_eq!(server.refused().len(), 1, "{:?}", server.refused());
}

proptest! {
    /// Whatever a body is made of.
    #[test]
    fn nothing_panics(wire in 0..4usize, at in 0..2000usize, with in 0..6usize) {
        let wire = WIRES[wire];
        let mut spoiled = body(wire);
        let mut left = at;
        let values = [json!(null), json!([]), json!({}), json!("é"), json!(-1), json!([{"type": 1, "role": []}])];
        replace(&mut spoiled, &mut left, &values[with]);
        let _ = strict::check(wire, &spoiled);
    }
}

/// Puts something in the place of the value with a number.
fn replace(value: &mut Value, left: &mut usize, with: &Value) {
    if *left == 0 {
        *value = with.clone();
    }
    *left = left.wrapping_sub(1);
    match value {
        Value::Array(list) => list.iter_mut().for_each(|value| replace(value, left, with)),
        Value::Object(object) => object.values_mut().for_each(|value| replace(value, left, with)),
        _ => {}
    }
}
