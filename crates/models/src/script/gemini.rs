//! Writes Gemini generateContent. Its calls come whole, and their arguments are JSON.

use helve_protocol::StopReason;
use serde_json::{Value, json};

use super::frames::{ScriptFrameWriter, sealed};
use super::outline::{OutlineBlock, OutlineBlockKind, ResponseOutline};
use super::step::StreamEnding;

/// Where the stream told of an error, there is no status to tell its code.
const STREAM_ERROR_CODE: u16 = 503;

pub(super) fn write(outline: &ResponseOutline<'_>, tape: &mut ScriptFrameWriter) {
    let mut seal = Some(sealed(outline.seed, 0));
    for block in &outline.blocks {
        tape.wait(block.wait);
        if let OutlineBlockKind::Call { id, tool } = &block.kind {
            let call = json!({"id": id, "name": tool, "args": arguments(&block.whole())});
            // The first call of an answer is signed for all.
            let part = match seal.take() {
                Some(seal) => json!({"functionCall": call, "thoughtSignature": seal}),
                None => json!({"functionCall": call}),
            };
            event(outline, part, None, tape);
            continue;
        }
        for piece in &block.pieces {
            let part = match block.kind {
                OutlineBlockKind::Thinking => json!({"text": piece.text, "thought": true}),
                _ => json!({"text": piece.text}),
            };
            tape.wait(piece.wait);
            event(outline, part, None, tape);
        }
    }
    tape.wait(outline.wait);
    match &outline.answer.end {
        StreamEnding::CutOff => {}
        StreamEnding::Error { kind, message } => {
            write_event(
                &json!({"error": {"code": STREAM_ERROR_CODE, "message": message, "status": kind}}),
                tape,
            );
        }
        StreamEnding::Complete => {
            // An answer without calls is signed at its end, if the model has thought.
            let thought = |block: &OutlineBlock| block.kind == OutlineBlockKind::Thinking;
            let part = match seal.filter(|_| outline.blocks.iter().any(thought)) {
                Some(seal) => json!({"text": "", "thoughtSignature": seal}),
                None => json!({"text": ""}),
            };
            event(outline, part, Some(finish_reason(outline.answer.stop())), tape);
        }
    }
}

/// What is no JSON can't be written here but as a string.
fn arguments(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

/// Each event is a whole little response. Those before the last one count only the prompt.
fn event(outline: &ResponseOutline<'_>, part: Value, finish: Option<&str>, tape: &mut ScriptFrameWriter) {
    let usage = outline.usage;
    let prompt = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
    let content = json!({"parts": [part], "role": "model"});
    let (candidate, counts) = match finish {
        None => (
            json!({"content": content, "index": 0}),
            json!({"promptTokenCount": prompt, "totalTokenCount": prompt}),
        ),
        Some(finish) => (
            json!({"content": content, "finishReason": finish, "index": 0}),
            json!({
                "promptTokenCount": prompt, "cachedContentTokenCount": usage.cache_read,
                "candidatesTokenCount": usage.output.saturating_sub(usage.reasoning),
                "thoughtsTokenCount": usage.reasoning,
                "totalTokenCount": prompt.saturating_add(usage.output),
            }),
        ),
    };
    let event = json!({
        "candidates": [candidate], "usageMetadata": counts, "modelVersion": outline.asked.model,
        "responseId": format!("script-{}", outline.seed),
    });
    write_event(&event, tape);
}

/// This server ends its lines in its own way.
fn write_event(event: &Value, tape: &mut ScriptFrameWriter) {
    tape.raw(format!("data: {event}\r\n\r\n"));
}

fn finish_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndTurn | StopReason::ToolUse | StopReason::StopSequence => "STOP",
        StopReason::MaxTokens => "MAX_TOKENS",
        StopReason::Refusal => "SAFETY",
        StopReason::Pause | StopReason::Other => "OTHER",
    }
}
