//! Writes Anthropic Messages.

use helve_protocol::StopReason;
use serde_json::{Value, json};

use super::frames::{ScriptFrameWriter, sealed};
use super::outline::{OutlineBlock, OutlineBlockKind, ResponseOutline};
use super::step::StreamEnding;

pub(super) fn write(outline: &ResponseOutline<'_>, tape: &mut ScriptFrameWriter) {
    let usage = outline.usage;
    tape.named(&json!({"type": "message_start", "message": {
        "id": format!("msg_script_{}", outline.seed), "type": "message", "role": "assistant",
        "model": outline.asked.model, "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {
            "input_tokens": usage.input, "cache_creation_input_tokens": usage.cache_write,
            "cache_read_input_tokens": usage.cache_read, "output_tokens": usage.output.min(1),
        },
    }}));
    tape.named(&json!({"type": "ping"}));
    for (index, block) in outline.blocks.iter().enumerate() {
        write_block(index, block, outline.seed, tape);
    }
    tape.wait(outline.wait);
    match &outline.answer.end {
        StreamEnding::CutOff => {}
        StreamEnding::Error { kind, message } => {
            tape.named(&json!({"type": "error", "error": {"type": kind, "message": message}}));
        }
        StreamEnding::Complete => {
            let stop = stop_reason(outline.answer.stop());
            tape.named(&json!({
                "type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
                "usage": {
                    "input_tokens": usage.input, "cache_creation_input_tokens": usage.cache_write,
                    "cache_read_input_tokens": usage.cache_read, "output_tokens": usage.output,
                    "output_tokens_details": {"thinking_tokens": usage.reasoning},
                },
            }));
            tape.named(&json!({"type": "message_stop"}));
        }
    }
}

fn write_block(index: usize, block: &OutlineBlock, seed: u64, tape: &mut ScriptFrameWriter) {
    let (start, kind, field) = match &block.kind {
        OutlineBlockKind::Thinking => {
            (json!({"type": "thinking", "thinking": "", "signature": ""}), "thinking_delta", "thinking")
        }
        OutlineBlockKind::Text => (json!({"type": "text", "text": ""}), "text_delta", "text"),
        OutlineBlockKind::Call { id, tool } => {
            let start = json!({"type": "tool_use", "id": id, "name": tool, "input": {}});
            (start, "input_json_delta", "partial_json")
        }
    };
    let delta = |delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    tape.wait(block.wait);
    tape.named(&json!({"type": "content_block_start", "index": index, "content_block": start}));
    for piece in &block.pieces {
        tape.wait(piece.wait);
        tape.named(&delta(json!({"type": kind, field: piece.text})));
    }
    if block.kind == OutlineBlockKind::Thinking {
        tape.named(&delta(json!({"type": "signature_delta", "signature": sealed(seed, index)})));
    }
    tape.named(&json!({"type": "content_block_stop", "index": index}));
}

fn stop_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndTurn => "end_turn",
        StopReason::ToolUse => "tool_use",
        StopReason::MaxTokens => "max_tokens",
        StopReason::StopSequence => "stop_sequence",
        StopReason::Refusal => "refusal",
        StopReason::Pause => "pause_turn",
        StopReason::Other => "other",
    }
}
