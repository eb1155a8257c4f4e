//! Writes OpenAI Chat Completions, with `reasoning_content` for thinking.

use helve_protocol::{StopReason, TokenUsage};
use serde_json::{Value, json};

use super::frames::{SCRIPT_CREATED_AT, ScriptFrameWriter};
use super::outline::{OutlineBlock, OutlineBlockKind, ResponseOutline};
use super::step::StreamEnding;

pub(super) fn write(outline: &ResponseOutline<'_>, tape: &mut ScriptFrameWriter) {
    tape.data(&delta(outline, json!({"role": "assistant", "content": ""}), None));
    let mut calls = 0;
    for block in &outline.blocks {
        write_block(outline, block, calls, tape);
        calls += usize::from(matches!(block.kind, OutlineBlockKind::Call { .. }));
    }
    tape.wait(outline.wait);
    match &outline.answer.end {
        StreamEnding::CutOff => {}
        StreamEnding::Error { kind, message } => {
            tape.data(&json!({"error": {"message": message, "type": kind, "param": null, "code": null}}));
        }
        StreamEnding::Complete => {
            tape.data(&delta(outline, json!({}), Some(finish_reason(outline.answer.stop()))));
            // Servers count only for those who ask.
            let wants_usage = outline.asked.body.pointer("/stream_options/include_usage");
            if wants_usage.and_then(Value::as_bool) == Some(true) {
                tape.data(&chunk(outline, json!([]), usage(outline.usage)));
            }
            tape.raw("data: [DONE]\n\n".to_owned());
        }
    }
}

fn write_block(
    outline: &ResponseOutline<'_>,
    block: &OutlineBlock,
    call: usize,
    tape: &mut ScriptFrameWriter,
) {
    tape.wait(block.wait);
    if let OutlineBlockKind::Call { id, tool } = &block.kind {
        let function = json!({"name": tool, "arguments": ""});
        let start = json!({"index": call, "id": id, "type": "function", "function": function});
        tape.data(&delta(outline, json!({"tool_calls": [start]}), None));
    }
    for piece in &block.pieces {
        let said = match block.kind {
            OutlineBlockKind::Thinking => json!({"content": null, "reasoning_content": piece.text}),
            OutlineBlockKind::Text => json!({"content": piece.text}),
            OutlineBlockKind::Call { .. } => {
                json!({"tool_calls": [{"index": call, "function": {"arguments": piece.text}}]})
            }
        };
        tape.wait(piece.wait);
        tape.data(&delta(outline, said, None));
    }
}

fn delta(outline: &ResponseOutline<'_>, delta: Value, finish: Option<&str>) -> Value {
    let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
    chunk(outline, json!([choice]), Value::Null)
}

fn chunk(outline: &ResponseOutline<'_>, choices: Value, usage: Value) -> Value {
    json!({
        "id": format!("chatcmpl-script-{}", outline.seed), "object": "chat.completion.chunk",
        "created": SCRIPT_CREATED_AT, "model": outline.asked.model, "choices": choices, "usage": usage,
    })
}

/// Here the prompt includes what was cached.
fn usage(usage: TokenUsage) -> Value {
    let prompt = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
    json!({
        "prompt_tokens": prompt, "completion_tokens": usage.output,
        "total_tokens": prompt.saturating_add(usage.output),
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write,
        },
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}

/// The wire has fewer words than we do.
fn finish_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndTurn | StopReason::StopSequence => "stop",
        StopReason::ToolUse => "tool_calls",
        StopReason::MaxTokens => "length",
        StopReason::Refusal => "content_filter",
        StopReason::Pause | StopReason::Other => "other",
    }
}
