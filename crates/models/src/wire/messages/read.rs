//! What the server says.

use helve_protocol::{StopReason, TokenUsage};
use serde_json::{Value, json};

use crate::wire::blocks::NamedBlocks;
use crate::wire::{AnswerProgress, number_at, server_error, text_at};
use crate::{ModelEvent, StreamError};

#[derive(Debug, Default)]
pub(crate) struct MessagesReader {
    blocks: NamedBlocks,
    usage: TokenUsage,
    has_stopped: bool,
    /// The id of the message that has begun.
    begun: Option<String>,
    /// The input of a call that came whole at its start; pieces that come later are the input instead.
    whole_input: Option<(u32, String)>,
}

impl MessagesReader {
    pub(crate) fn read(
        &mut self,
        event: &Value,
        said: &mut Vec<ModelEvent>,
    ) -> Result<AnswerProgress, StreamError> {
        let index = event.get("index").map(Value::to_string).unwrap_or_default();
        match text_at(event, "/type") {
            Some("message_start") => {
                self.start(text_at(event, "/message/id").unwrap_or_default())?;
                self.count(event.pointer("/message/usage"), said);
            }
            Some("content_block_start") => {
                if self.has_stopped {
                    return Err(StreamError::Restarted("it goes on after its end"));
                }
                if let Some(content) = event.get("content_block") {
                    let block = self.blocks.begin(index)?;
                    self.begin(block, content, said);
                }
            }
            Some("content_block_delta") => {
                if let Some(delta) = event.get("delta") {
                    let block = self.blocks.of(index);
                    self.grow(block, delta, said);
                }
            }
            Some("content_block_stop") => {
                self.blocks.end(&index);
                let block = self.blocks.of(index);
                self.end(block, said);
            }
            Some("message_delta") => {
                self.count(event.get("usage"), said);
                if let Some(reason) = text_at(event, "/delta/stop_reason") {
                    self.has_stopped = true;
                    said.push(ModelEvent::Stopped(stop_reason(reason)));
                }
            }
            // An end of nothing is none.
            Some("message_stop") if self.has_stopped || !self.blocks.is_empty() => {
                return Ok(AnswerProgress::Ended);
            }
            Some("message_stop") => return Err(StreamError::CutOff),
            _ => {
                if let Some(error) = server_error(event) {
                    return Err(error);
                }
            }
        }
        Ok(AnswerProgress::Incomplete)
    }

    /// A response holds one message. Some proxies announce it twice, which harms nobody before anything is said.
    fn start(&mut self, id: &str) -> Result<(), StreamError> {
        let is_harmless = self.blocks.is_empty() && !self.has_stopped;
        match &self.begun {
            Some(begun) if !is_harmless || begun != id => {
                Err(StreamError::Restarted("a second message begins"))
            }
            _ => {
                self.begun = Some(id.to_owned());
                Ok(())
            }
        }
    }

    /// Blocks of tools that the server runs itself are not ours to run.
    fn begin(&mut self, block: u32, content: &Value, said: &mut Vec<ModelEvent>) {
        match text_at(content, "/type") {
            Some("text") => push_text(block, text_at(content, "/text"), said),
            Some("thinking") => {
                push_thinking(block, text_at(content, "/thinking"), said);
                if let Some(signature) =
                    text_at(content, "/signature").filter(|signature| !signature.is_empty())
                {
                    said.push(ModelEvent::Sealed { block, sealed: json!({"signature": signature}) });
                }
            }
            Some("redacted_thinking") => {
                said.push(ModelEvent::Sealed { block, sealed: json!({"redacted": content.get("data")}) })
            }
            Some("tool_use") => {
                let id = text_at(content, "/id").map(str::to_owned);
                let name = text_at(content, "/name").unwrap_or_default().to_owned();
                said.push(ModelEvent::CallStarted { block, id, name });
                let input = content.get("input").filter(|input| input.is_object());
                self.whole_input = input.map(|input| (block, input.to_string()));
            }
            _ => {}
        }
    }

    fn grow(&mut self, block: u32, delta: &Value, said: &mut Vec<ModelEvent>) {
        match text_at(delta, "/type") {
            Some("text_delta") => push_text(block, text_at(delta, "/text"), said),
            Some("thinking_delta") => push_thinking(block, text_at(delta, "/thinking"), said),
            Some("signature_delta") => {
                said.push(ModelEvent::Sealed { block, sealed: json!({"signature": delta.get("signature")}) });
            }
            Some("input_json_delta") => {
                let json = text_at(delta, "/partial_json").unwrap_or_default().to_owned();
                if !json.is_empty() {
                    self.whole_input = None;
                    said.push(ModelEvent::CallArguments { block, json });
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, block: u32, said: &mut Vec<ModelEvent>) {
        if let Some((_, json)) = self.whole_input.take_if(|(of, _)| *of == block) {
            said.push(ModelEvent::CallArguments { block, json });
        }
    }

    /// Counts come at the start and again at the end, each time only some of them.
    fn count(&mut self, usage: Option<&Value>, said: &mut Vec<ModelEvent>) {
        let Some(usage) = usage else { return };
        let update = |count: &mut u64, path: &str| *count = number_at(usage, &[path]).unwrap_or(*count);
        update(&mut self.usage.input, "/input_tokens");
        update(&mut self.usage.output, "/output_tokens");
        update(&mut self.usage.cache_read, "/cache_read_input_tokens");
        update(&mut self.usage.cache_write, "/cache_creation_input_tokens");
        said.push(ModelEvent::Usage(self.usage));
    }
}

fn push_text(block: u32, text: Option<&str>, said: &mut Vec<ModelEvent>) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        said.push(ModelEvent::Text { block, text: text.to_owned() });
    }
}

fn push_thinking(block: u32, text: Option<&str>, said: &mut Vec<ModelEvent>) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        said.push(ModelEvent::Thinking { block, text: text.to_owned() });
    }
}

fn stop_reason(reason: &str) -> StopReason {
    match reason {
        "end_turn" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
        "stop_sequence" => StopReason::StopSequence,
        "refusal" => StopReason::Refusal,
        "pause_turn" => StopReason::Pause,
        _ => StopReason::Other,
    }
}
