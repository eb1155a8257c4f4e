//! An answer as the events of its wire, with the waits between them.

use std::time::Duration;

use helve_protocol::TokenUsage;
use serde_json::Value;

use super::request::ScriptRequest;
use super::step::{ScriptStep, ScriptedAnswer, ScriptedPart, ScriptedReply};
use super::{chat, gemini, messages, responses};
use crate::WireProtocol;

/// However small its pieces are meant to be, no text comes in more.
const MAX_PIECES_PER_TEXT: usize = 10_000;

/// One server-sent event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFrame {
    /// Before it comes.
    pub wait: Duration,
    pub bytes: Vec<u8>,
}

/// The events with which a server of this wire gives the step's answer; none if the step is a failure. The seed tells one
/// response's ids from another's.
pub fn response_frames(
    step: &ScriptStep,
    wire: WireProtocol,
    asked: &ScriptRequest,
    id_seed: u64,
) -> Vec<ScriptFrame> {
    let ScriptedReply::Answer(answer) = &step.reply else { return Vec::new() };
    let outline = ResponseOutline::of(answer, asked, id_seed);
    let mut tape = ScriptFrameWriter { frames: Vec::new(), wait: step.delay };
    match wire {
        WireProtocol::Messages => messages::write(&outline, &mut tape),
        WireProtocol::Chat => chat::write(&outline, &mut tape),
        WireProtocol::Responses => responses::write(&outline, &mut tape),
        WireProtocol::Gemini => gemini::write(&outline, &mut tape),
    }
    tape.frames
}

/// What the wires write, each in its way.
pub(super) struct ResponseOutline<'a> {
    pub(super) asked: &'a ScriptRequest,
    pub(super) answer: &'a ScriptedAnswer,
    pub(super) seed: u64,
    pub(super) blocks: Vec<OutlineBlock>,
    /// After the last of them.
    pub(super) wait: Duration,
    pub(super) usage: TokenUsage,
}

/// Something that is said in one go.
pub(super) struct OutlineBlock {
    /// Before it begins.
    pub(super) wait: Duration,
    pub(super) kind: OutlineBlockKind,
    pub(super) pieces: Vec<OutlinePiece>,
}

#[derive(PartialEq)]
pub(super) enum OutlineBlockKind {
    Thinking,
    Text,
    Call { id: String, tool: String },
}

pub(super) struct OutlinePiece {
    pub(super) wait: Duration,
    pub(super) text: String,
}

impl ResponseOutline<'_> {
    fn of<'a>(answer: &'a ScriptedAnswer, asked: &'a ScriptRequest, seed: u64) -> ResponseOutline<'a> {
        let usage = answer.usage.unwrap_or_else(|| count(answer, asked));
        let mut outline =
            ResponseOutline { asked, answer, seed, blocks: Vec::new(), wait: Duration::ZERO, usage };
        let mut last_call = asked.last_call;
        for say in &answer.says {
            match say {
                ScriptedPart::Wait(wait) => outline.wait = outline.wait.saturating_add(*wait),
                ScriptedPart::Thinking(text) => outline.say(OutlineBlockKind::Thinking, text),
                ScriptedPart::Text(text) => outline.say(OutlineBlockKind::Text, text),
                ScriptedPart::Call(call) => {
                    last_call = last_call.saturating_add(1);
                    let id = format!("call_{last_call}");
                    outline.begin(OutlineBlockKind::Call { id, tool: call.tool.clone() }, &call.arguments);
                }
            }
        }
        outline
    }

    /// Adds to the last block if it is of this kind, as no model says two of them in a row.
    fn say(&mut self, kind: OutlineBlockKind, text: &str) {
        if text.is_empty() {
            return;
        }
        let Some(block) = self.blocks.last_mut().filter(|block| block.kind == kind) else {
            return self.begin(kind, text);
        };
        let mut pieces = pieces(text, self.answer.piece);
        if let Some(first) = pieces.first_mut() {
            first.wait = std::mem::take(&mut self.wait);
        }
        block.pieces.append(&mut pieces);
    }

    fn begin(&mut self, kind: OutlineBlockKind, text: &str) {
        let wait = std::mem::take(&mut self.wait);
        self.blocks.push(OutlineBlock { wait, kind, pieces: pieces(text, self.answer.piece) });
    }
}

impl OutlineBlock {
    pub(super) fn whole(&self) -> String {
        self.pieces.iter().map(|piece| piece.text.as_str()).collect()
    }
}

fn pieces(text: &str, size: usize) -> Vec<OutlinePiece> {
    let characters: Vec<char> = text.chars().collect();
    let size = size.max(characters.len().div_ceil(MAX_PIECES_PER_TEXT)).max(1);
    let pieces = characters.chunks(size);
    pieces.map(|piece| OutlinePiece { wait: Duration::ZERO, text: piece.iter().collect() }).collect()
}

/// A count that is always the same: four bytes are a token.
fn count(answer: &ScriptedAnswer, asked: &ScriptRequest) -> TokenUsage {
    let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX);
    let mut usage = TokenUsage { input: tokens(asked.bytes), ..TokenUsage::default() };
    for say in &answer.says {
        match say {
            ScriptedPart::Thinking(text) => {
                usage.reasoning += tokens(text.len());
                usage.output += tokens(text.len());
            }
            ScriptedPart::Text(text) => usage.output += tokens(text.len()),
            ScriptedPart::Call(call) => usage.output += tokens(call.tool.len() + call.arguments.len()),
            ScriptedPart::Wait(_) => {}
        }
    }
    usage
}

/// What the wires write on.
pub(super) struct ScriptFrameWriter {
    frames: Vec<ScriptFrame>,
    /// Before the next frame.
    wait: Duration,
}

impl ScriptFrameWriter {
    pub(super) fn wait(&mut self, wait: Duration) {
        self.wait = self.wait.saturating_add(wait);
    }

    /// An event of which only the data counts.
    pub(super) fn data(&mut self, data: &Value) {
        self.raw(format!("data: {data}\n\n"));
    }

    /// An event with the name that its data has, too.
    pub(super) fn named(&mut self, data: &Value) {
        let name = data.get("type").and_then(Value::as_str).unwrap_or_default();
        self.raw(format!("event: {name}\ndata: {data}\n\n"));
    }

    pub(super) fn raw(&mut self, event: String) {
        let wait = std::mem::take(&mut self.wait);
        self.frames.push(ScriptFrame { wait, bytes: event.into_bytes() });
    }
}

/// A moment for the fields that want one: a script knows no clock.
pub(super) const SCRIPT_CREATED_AT: u64 = 1_767_225_600;

/// Something in the place of what a provider would seal: text in base64's letters, another one for each block.
pub(super) fn sealed(seed: u64, block: usize) -> String {
    format!("c2NyaXB0{seed:08x}{block:08x}")
}
