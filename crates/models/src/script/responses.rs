//! Writes OpenAI Responses.

use helve_protocol::{StopReason, TokenUsage};
use serde_json::{Value, json};

use super::frames::{SCRIPT_CREATED_AT, ScriptFrameWriter, sealed};
use super::outline::{OutlineBlock, OutlineBlockKind, ResponseOutline};
use super::step::StreamEnding;

pub(super) fn write(outline: &ResponseOutline<'_>, tape: &mut ScriptFrameWriter) {
    let mut writer = ResponsesWriter { outline, tape, sequence: 0, output: Vec::new() };
    writer.response("response.created", "in_progress", json!({}));
    writer.response("response.in_progress", "in_progress", json!({}));
    for (index, block) in outline.blocks.iter().enumerate() {
        writer.block(index, block);
    }
    writer.tape.wait(outline.wait);
    writer.end();
}

struct ResponsesWriter<'a, 'b> {
    outline: &'a ResponseOutline<'b>,
    tape: &'a mut ScriptFrameWriter,
    /// Every event has a number.
    sequence: u64,
    /// The items that are done.
    output: Vec<Value>,
}

impl ResponsesWriter<'_, '_> {
    fn event(&mut self, kind: &str, fields: Value) {
        let mut event = json!({"type": kind, "sequence_number": self.sequence});
        lay_over(&mut event, fields);
        self.sequence += 1;
        self.tape.named(&event);
    }

    /// An event that is about the whole response.
    fn response(&mut self, kind: &str, status: &str, fields: Value) {
        let mut response = json!({
            "id": format!("resp_script_{}", self.outline.seed), "object": "response", "created_at": SCRIPT_CREATED_AT,
            "status": status, "error": null, "incomplete_details": null, "model": self.outline.asked.model,
            "output": self.output, "usage": null,
        });
        lay_over(&mut response, fields);
        self.event(kind, json!({"response": response}));
    }

    fn block(&mut self, index: usize, block: &OutlineBlock) {
        self.tape.wait(block.wait);
        let item = match &block.kind {
            OutlineBlockKind::Thinking => self.reasoning(index, block),
            OutlineBlockKind::Text => self.message(index, block),
            OutlineBlockKind::Call { id, tool } => self.call(index, block, id, tool),
        };
        self.event("response.output_item.done", json!({"output_index": index, "item": item}));
        self.output.push(item);
    }

    fn reasoning(&mut self, index: usize, block: &OutlineBlock) -> Value {
        let id = format!("rs_script_{}_{index}", self.outline.seed);
        let item = |summary: Value| {
            let sealed = sealed(self.outline.seed, index);
            json!({"id": id, "type": "reasoning", "summary": summary, "encrypted_content": sealed})
        };
        let (begun, whole) = (item(json!([])), block.whole());
        let part = |text: &str| json!({"type": "summary_text", "text": text});
        let done = item(json!([part(&whole)]));
        let place = json!({"item_id": id, "output_index": index, "summary_index": 0});
        self.event("response.output_item.added", json!({"output_index": index, "item": begun}));
        self.part("response.reasoning_summary_part.added", &place, "part", part(""));
        self.pieces("response.reasoning_summary_text.delta", &place, block);
        self.part("response.reasoning_summary_text.done", &place, "text", json!(whole));
        self.part("response.reasoning_summary_part.done", &place, "part", part(&whole));
        done
    }

    fn message(&mut self, index: usize, block: &OutlineBlock) -> Value {
        let id = format!("msg_script_{}_{index}", self.outline.seed);
        let item = |status: &str, content: Value| json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": content});
        let part =
            |text: &str| json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text});
        let whole = block.whole();
        let place = json!({"item_id": id, "output_index": index, "content_index": 0});
        let begun = item("in_progress", json!([]));
        self.event("response.output_item.added", json!({"output_index": index, "item": begun}));
        self.part("response.content_part.added", &place, "part", part(""));
        self.pieces("response.output_text.delta", &place, block);
        self.part("response.output_text.done", &place, "text", json!(whole));
        self.part("response.content_part.done", &place, "part", part(&whole));
        item("completed", json!([part(&whole)]))
    }

    fn call(&mut self, index: usize, block: &OutlineBlock, call_id: &str, tool: &str) -> Value {
        let id = format!("fc_script_{}_{index}", self.outline.seed);
        let item = |status: &str, arguments: &str| {
            json!({
                "id": id, "type": "function_call", "status": status, "arguments": arguments,
                "call_id": call_id, "name": tool,
            })
        };
        let whole = block.whole();
        let place = json!({"item_id": id, "output_index": index});
        let begun = item("in_progress", "");
        self.event("response.output_item.added", json!({"output_index": index, "item": begun}));
        self.pieces("response.function_call_arguments.delta", &place, block);
        self.part("response.function_call_arguments.done", &place, "arguments", json!(whole));
        item("completed", &whole)
    }

    /// An event about a place within an item.
    fn part(&mut self, kind: &str, place: &Value, name: &str, value: Value) {
        let mut fields = place.clone();
        lay_over(&mut fields, json!({name: value}));
        self.event(kind, fields);
    }

    fn pieces(&mut self, kind: &str, place: &Value, block: &OutlineBlock) {
        for piece in &block.pieces {
            self.tape.wait(piece.wait);
            self.part(kind, place, "delta", json!(piece.text));
        }
    }

    fn end(&mut self) {
        let answer = self.outline.answer;
        match &answer.end {
            StreamEnding::CutOff => {}
            StreamEnding::Error { kind, message } => {
                let error = json!({"error": {"code": kind, "message": message}});
                self.response("response.failed", "failed", error);
            }
            StreamEnding::Complete => {
                let usage = usage(self.outline.usage);
                match incomplete_reason(answer.stop()) {
                    Some(reason) => {
                        let fields = json!({"incomplete_details": {"reason": reason}, "usage": usage});
                        self.response("response.incomplete", "incomplete", fields);
                    }
                    None => self.response("response.completed", "completed", json!({"usage": usage})),
                }
            }
        }
    }
}

/// Sets the fields of an object, those that it has in their place.
fn lay_over(object: &mut Value, fields: Value) {
    if let (Value::Object(object), Value::Object(fields)) = (object, fields) {
        object.extend(fields);
    }
}

/// Here the input includes what was cached.
fn usage(usage: TokenUsage) -> Value {
    let input = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
    json!({
        "input_tokens": input,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": input.saturating_add(usage.output),
    })
}

/// The wire only tells why a response is not complete.
fn incomplete_reason(stop: StopReason) -> Option<&'static str> {
    match stop {
        StopReason::EndTurn | StopReason::ToolUse | StopReason::StopSequence => None,
        StopReason::MaxTokens => Some("max_output_tokens"),
        StopReason::Refusal => Some("content_filter"),
        StopReason::Pause | StopReason::Other => Some("other"),
    }
}
