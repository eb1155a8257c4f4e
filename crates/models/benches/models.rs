//! How fast models' answers are read, and what building a request costs. `cargo xtask bench` runs it.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark that can't run has nothing to say"
)]
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures time and prints it")]

use std::hint::black_box;
use std::process::Command;
use std::time::{Duration, Instant};

use helve_models::script::{ModelScript, ScriptRequest, response_frames};
use helve_models::{
    Conversation, ModelAnswer, ModelCatalogue, ModelDialect, ModelPreferences, ModelPrompt, ModelRequest,
    ModelRouter, ResponseDecoder, ToolSpec, WireProtocol,
};
use helve_protocol::*;
use helve_testkit::{NoBlobs, sample_id};
use serde_json::{Value, json};

const WIRES: [(WireProtocol, &str); 4] = [
    (WireProtocol::Messages, "anthropic/claude-sonnet-5"),
    (WireProtocol::Chat, "deepseek/deepseek-chat"),
    (WireProtocol::Responses, "openai/gpt-5.5"),
    (WireProtocol::Gemini, "gemini/gemini-3.1-pro-preview"),
];

fn main() {
    let words: Vec<String> = std::env::args().collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        // Called by ourselves, under callgrind.
        [_, "one-request", wire, number] => one_request(wire.parse().unwrap(), number.parse().unwrap()),
        _ => {
            WIRES.into_iter().for_each(|(wire, _)| decoding(wire));
            (0..WIRES.len()).for_each(building);
        }
    }
}

/// An answer as a server streams it: words in small pieces, and calls.
fn stream(wire: WireProtocol) -> Vec<u8> {
    let text = "The parser fails on an empty line because the loop ends before the last one. ".repeat(200);
    let script = format!(
        "[[step]]\nsay = [{{ thinking = {text:?} }}, {{ text = {text:?} }}, \
         {{ call = {{ tool = 'write', input = {{ path = 'a.rs', text = {text:?} }} }} }}]\nrepeat = true"
    );
    let script = ModelScript::parse(&script).unwrap();
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "go"}], "input": "go",
        "contents": [{"role": "user", "parts": [{"text": "go"}]}], "stream_options": {"include_usage": true}});
    let asked = ScriptRequest::read(wire, Some("m"), body.to_string().as_bytes()).unwrap();
    let frames = response_frames(&script.steps[0], wire, &asked, 0);
    frames.into_iter().flat_map(|frame| frame.bytes).collect()
}

fn decoding(wire: WireProtocol) {
    let one = stream(wire);
    let answers = (8 << 20) / one.len();
    let read = || {
        for _ in 0..answers {
            let mut decoder = ResponseDecoder::new(wire);
            let mut answer = ModelAnswer::default();
            for piece in one.chunks(1400) {
                decoder.push(piece).unwrap().into_iter().for_each(|event| answer.apply(event));
            }
            decoder.finish().unwrap().into_iter().for_each(|event| answer.apply(event));
            black_box(&answer);
        }
    };
    let text = String::from_utf8(one.clone()).unwrap();
    let events: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    let parse = || {
        for _ in 0..answers {
            events.iter().for_each(|event| drop(black_box(serde_json::from_str::<Value>(event))));
        }
    };
    let (ours, baseline) = (best(read), best(parse));
    let speed = |time: Duration| megabytes(one.len() * answers) / time.as_secs_f64();
    println!(
        "decode a {} stream\t{:.0} MB/s\tparsing its JSON\t{:.0} MB/s\t{:.2}\t≥ 20 MB/s",
        name_of(wire),
        speed(ours),
        speed(baseline),
        ours.as_secs_f64() / baseline.as_secs_f64(),
    );
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

fn best(work: impl Fn()) -> Duration {
    let run = |_| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..5).map(run).min().unwrap_or_default()
}

fn name_of(wire: WireProtocol) -> String {
    format!("{wire:?}").to_ascii_lowercase()
}

/// Builds a conversation up to one request, and then that request, which callgrind counts.
fn one_request(wire: usize, number: u64) {
    let mut conversation = Conversation::new(dialect(wire), &prompt());
    let messages: Vec<Message> = (0..number).map(|n| step(n, wire)).collect();
    for message in messages.iter().take(messages.len() - 1) {
        conversation.push(message, &NoBlobs);
    }
    // A request is compared with the one before it.
    black_box(conversation.next_request());
    black_box(the_counted_request(&mut conversation, messages.last().unwrap()));
}

#[inline(never)]
fn the_counted_request(conversation: &mut Conversation, message: &Message) -> ModelRequest {
    conversation.push(message, &NoBlobs);
    conversation.next_request()
}

fn dialect(wire: usize) -> ModelDialect {
    let variables = |name: &str| name.ends_with("_KEY").then(|| "key-for-tests".to_owned());
    let router =
        ModelRouter::new(ModelPreferences::default(), ModelCatalogue::built_in(), &variables, &|_| None);
    router.find(WIRES[wire].1).unwrap().dialect()
}

fn prompt() -> ModelPrompt {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let read = ToolSpec { name: "read".to_owned(), description: "Reads a file.".to_owned(), schema };
    ModelPrompt { system: "You are Helve. ".repeat(100), tools: vec![read; 12], ..ModelPrompt::default() }
}

/// A step with a call and a result of some lines.
fn step(n: u64, wire: usize) -> Message {
    let output =
        ToolOutput { text: "    let answer = ask(&context)?;\n".repeat(30), ..ToolOutput::default() };
    let call = ToolPart {
        call: sample_id(n),
        name: "read".to_owned(),
        input: json!({"path": "src/parse.rs"}),
        wire_id: Some(format!("call_{n}")),
        sealed: Value::Null,
        state: ToolState::Completed { output },
    };
    let model = ModelName::new(WIRES[wire].1);
    let parts = vec![
        MessagePart::StepStart { step: sample_id(n), model },
        MessagePart::Text(TextPart::said("I look at the parser.")),
        MessagePart::Tool(Box::new(call)),
    ];
    Message { id: sample_id(n), role: MessageRole::Assistant, time: Timestamp::from_millis(n), parts }
}

fn building(wire: usize) {
    let (Some(early), Some(late)) = (counted(wire, 20), counted(wire, 2_000)) else {
        println!("skipped: counting instructions: valgrind is not installed");
        return;
    };
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    let ratio = late.own as f64 / early.own as f64;
    println!(
        "build request 2,000 ({}), instructions\t{} (+ {} copying)\trequest 20\t{} (+ {})\t{ratio:.2}\t≤ 2",
        name_of(WIRES[wire].0),
        late.own,
        late.copying,
        early.own,
        early.copying,
    );
}

/// Instructions: those that copy or compare bytes, and all others.
struct Counted {
    own: u64,
    copying: u64,
}

fn counted(wire: usize, number: u64) -> Option<Counted> {
    let out = std::env::temp_dir().join(format!("helve-callgrind-{}-{wire}-{number}", std::process::id()));
    let ran = Command::new("valgrind")
        .args(["--tool=callgrind", "--toggle-collect=*the_counted_request*", "--compress-strings=no"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(std::env::current_exe().unwrap())
        .args(["one-request", &wire.to_string(), &number.to_string()])
        .output();
    let profile = std::fs::read_to_string(&out);
    let _ = std::fs::remove_file(&out);
    ran.ok().filter(|ran| ran.status.success())?;
    Some(sums(&profile.ok()?))
}

/// Adds up a profile: `fn=` names a function, lines of numbers are what it costs itself, and the line after a `calls=` is
/// what others cost.
fn sums(profile: &str) -> Counted {
    let mut sums = Counted { own: 0, copying: 0 };
    let (mut copies, mut of_others) = (false, false);
    for line in profile.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            copies = ["memcpy", "memmove", "memcmp", "bcmp"].iter().any(|word| name.contains(word));
        } else if line.starts_with("calls=") {
            of_others = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '*')) {
            let cost: u64 = line.split_whitespace().nth(1).and_then(|cost| cost.parse().ok()).unwrap_or(0);
            match (std::mem::take(&mut of_others), copies) {
                (true, _) => {}
                (false, true) => sums.copying += cost,
                (false, false) => sums.own += cost,
            }
        }
    }
    sums
}
