//! Real responses of real providers, where they are at hand.

use std::path::{Path, PathBuf};

use helve_models::{AnswerBlock, ModelAnswer, WireProtocol};
use helve_protocol::StopReason;
use helve_testkit::skip;
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use serde_json::Value;

use crate::decode;

struct Recorded {
    name: String,
    wire: WireProtocol,
    body: String,
    /// The data of its events.
    events: Vec<Value>,
}

fn recordings(test: &str) -> Vec<Recorded> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/streams");
    if !folder.is_dir() {
        skip(test, "the recorded streams are not at hand");
        return Vec::new();
    }
    let files = std::fs::read_dir(folder).unwrap().flatten().filter(|entry| entry.path().is_dir());
    let files = files.flat_map(|folder| std::fs::read_dir(folder.path()).unwrap().flatten());
    let mut found: Vec<Recorded> = files.filter_map(|file| recorded(file.path())).collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// A whole response on one of our wires; some files are of other wires under the name of one of ours.
fn recorded(path: PathBuf) -> Option<Recorded> {
    let record: Value = serde_json::from_str(&std::fs::read_to_string(&path).ok()?).ok()?;
    if record["response"]["status"] != 200 {
        return None;
    }
    let body = record["response"]["body"].as_str()?.to_owned();
    let unix = body.replace("\r\n", "\n");
    let data = unix.split("\n\n").filter_map(|event| {
        let lines: Vec<&str> = event.lines().filter_map(|line| line.strip_prefix("data:")).collect();
        serde_json::from_str(&lines.join("\n")).ok()
    });
    let events: Vec<Value> = data.collect();
    let has = |field: &str| events.iter().any(|event| event.get(field).is_some());
    let wire = match record["api"].as_str()? {
        "messages" => WireProtocol::Messages,
        "chat" if has("choices") && !body.contains("text_completion") => WireProtocol::Chat,
        "chat" if body.contains("response.completed") => WireProtocol::Responses,
        "responses" => WireProtocol::Responses,
        "generateContent" if has("candidates") => WireProtocol::Gemini,
        _ => return None,
    };
    // Some files hold several responses one after the other, which no server sends.
    let begins = |event: &&Value| event["type"] == "message_start" || event["type"] == "response.created";
    if events.iter().filter(begins).count() > 1 {
        return None;
    }
    let name = path.file_stem()?.to_string_lossy().into_owned();
    Some(Recorded { name, wire, body, events })
}

/// The text of an answer, gathered in the plainest way.
fn plain_text(recorded: &Recorded) -> String {
    let strings = |event: &Value| -> String {
        let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        match recorded.wire {
            WireProtocol::Messages if event["delta"]["type"] == "text_delta" => text("/delta/text"),
            WireProtocol::Messages => text("/content_block/text"),
            WireProtocol::Chat if event["choices"][0]["index"] == 1 => String::new(),
            WireProtocol::Chat => match &event["choices"][0]["delta"]["content"] {
                Value::Array(pieces) => pieces.iter().filter_map(|piece| piece["text"].as_str()).collect(),
                _ => text("/choices/0/delta/content") + &text("/choices/0/delta/refusal"),
            },
            WireProtocol::Responses => match event["type"].as_str() {
                Some("response.output_text.delta" | "response.refusal.delta") => text("/delta"),
                _ => String::new(),
            },
            WireProtocol::Gemini => {
                let parts = event.pointer("/candidates/0/content/parts").and_then(Value::as_array);
                let said = parts.into_iter().flatten().filter(|part| part["thought"] != true);
                said.filter_map(|part| part["text"].as_str()).collect()
            }
        }
    };
    recorded.events.iter().map(strings).collect()
}

fn plain_calls(recorded: &Recorded) -> Option<usize> {
    let count = |path: &str, value: &str| {
        recorded
            .events
            .iter()
            .filter(|event| event.pointer(path).and_then(Value::as_str) == Some(value))
            .count()
    };
    match recorded.wire {
        WireProtocol::Messages => Some(count("/content_block/type", "tool_use")),
        WireProtocol::Responses => {
            let ended = recorded.events.iter().filter(|event| event["type"] == "response.output_item.done");
            Some(ended.filter(|event| event["item"]["type"] == "function_call").count())
        }
        // A call without a name goes on with the one before.
        WireProtocol::Gemini => {
            let parts =
                recorded.events.iter().filter_map(|event| event.pointer("/candidates/0/content/parts"));
            let parts = parts.filter_map(Value::as_array).flatten();
            let names = parts.filter_map(|part| part.pointer("/functionCall/name").and_then(Value::as_str));
            Some(names.filter(|name| !name.is_empty()).count())
        }
        WireProtocol::Chat => None,
    }
}

fn tells_error(recorded: &Recorded) -> bool {
    let errors = recorded.events.iter().any(|event| event.get("error").is_some_and(|error| !error.is_null()));
    errors || recorded.body.contains("response.failed")
}

#[test]
fn every_recorded_answer_is_read() {
    let recordings = recordings("every_recorded_answer_is_read");
    let mut wrong = Vec::new();
    for recorded in &recordings {
        let decoded = decode(recorded.wire, [recorded.body.as_bytes()]);
        match decoded {
            Err(error) if tells_error(recorded) => drop(error),
            Err(error) => wrong.push(format!("{}: {error}", recorded.name)),
            Ok(_) if tells_error(recorded) => wrong.push(format!("{}: an error was not told", recorded.name)),
            Ok(answer) => {
                if answer.text() != plain_text(recorded) {
                    wrong.push(format!("{}: another text", recorded.name));
                }
                if plain_calls(recorded).is_some_and(|calls| calls != answer.calls().count()) {
                    wrong.push(format!("{}: {} calls", recorded.name, answer.calls().count()));
                }
                let tells_stop =
                    recorded.body.contains("finish_reason\":\"") || recorded.wire != WireProtocol::Chat;
                if tells_stop && answer.stop.is_none() {
                    wrong.push(format!("{}: no reason to stop", recorded.name));
                }
            }
        }
    }
    println!("{} recordings", recordings.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), recordings.len(), wrong.join("\n"));
}

/// A body in pieces that are cut at random.
fn pieces<'a>(body: &'a [u8], random: &mut TestRng) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let most = [3, 40, 900][random.next_u32() as usize % 3];
        let (piece, after) = rest.split_at((1 + random.next_u32() as usize % most).min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

#[test]
fn a_recorded_answer_in_pieces_is_the_same() {
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    for recorded in recordings("a_recorded_answer_in_pieces_is_the_same") {
        let body = recorded.body.as_bytes();
        let expected = decode(recorded.wire, [body]);
        if body.len() <= 4096 {
            for cut in 0..body.len() {
                let (first, second) = body.split_at(cut);
                assert_eq!(
                    decode(recorded.wire, [first, second]),
                    expected,
                    "{} cut at {cut}",
                    recorded.name
                );
            }
            continue;
        }
        for _ in 0..200 {
            let pieces = pieces(body, &mut random);
            assert_eq!(decode(recorded.wire, pieces), expected, "{}", recorded.name);
        }
    }
}

/// What an answer says, without what it cost.
fn said(answer: &ModelAnswer) -> (Vec<AnswerBlock>, Option<StopReason>) {
    (answer.blocks().cloned().collect(), answer.stop)
}

#[test]
fn a_recorded_answer_that_is_cut_off_is_an_error() {
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut taken = Vec::new();
    for recorded in recordings("a_recorded_answer_that_is_cut_off_is_an_error") {
        let body = recorded.body.as_bytes();
        let Ok(whole) = decode(recorded.wire, [body]) else { continue };
        // With two reasons to stop nobody can know that the first was not the last.
        if recorded.wire == WireProtocol::Gemini && recorded.body.matches("finishReason").count() > 1 {
            continue;
        }
        let cuts: Vec<usize> = match body.len() {
            0..=4096 => (0..body.len()).collect(),
            length => (0..50).map(|_| random.next_u32() as usize % length).collect(),
        };
        for cut in cuts {
            let part = decode(recorded.wire, [&body[..cut]]);
            if part.is_ok_and(|part| said(&part) != said(&whole)) {
                taken.push(format!("{} cut at {cut} of {}", recorded.name, body.len()));
                break;
            }
        }
    }
    assert!(taken.is_empty(), "half answers were taken for whole ones:\n{}", taken.join("\n"));
}
