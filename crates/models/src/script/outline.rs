//! An answer of a script as what all wires have in common: blocks that come in pieces, and the count of tokens.

use std::time::Duration;

use helve_protocol::TokenUsage;

use super::request::ScriptRequest;
use super::step::{ScriptedAnswer, ScriptedPart};

/// However small its pieces are meant to be, no text comes in more.
const MAX_PIECES_PER_TEXT: usize = 10_000;

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
    pub(super) fn of<'a>(
        answer: &'a ScriptedAnswer,
        asked: &'a ScriptRequest,
        seed: u64,
    ) -> ResponseOutline<'a> {
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
