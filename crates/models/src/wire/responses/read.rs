//! What the server says.

use std::collections::BTreeMap;

use helve_protocol::{StopReason, TokenUsage};
use serde_json::{Value, json};

use crate::wire::blocks::NamedBlocks;
use crate::wire::{AnswerProgress, CallPresence, number_at, server_error, text_at};
use crate::{ModelEvent, StreamError};

#[derive(Debug, Default)]
pub(crate) struct ResponsesReader {
    items: NamedBlocks,
    /// What has come of each item's text, thinking or arguments, so that a whole that comes at the end adds only the rest.
    grown: BTreeMap<u32, usize>,
    calls: CallPresence,
    has_begun: bool,
}

impl ResponsesReader {
    /// Reads an event about the response as a whole, or about one of its items.
    pub(crate) fn read(
        &mut self,
        event: &Value,
        said: &mut Vec<ModelEvent>,
    ) -> Result<AnswerProgress, StreamError> {
        match text_at(event, "/type") {
            // Its id says nothing: some proxies give the same response another one in every event.
            Some("response.created") => {
                if std::mem::replace(&mut self.has_begun, true) {
                    return Err(StreamError::Restarted("a second response begins"));
                }
            }
            Some(end @ ("response.completed" | "response.incomplete")) => {
                return self.finish(end, event.get("response").unwrap_or(&Value::Null), said);
            }
            Some("response.failed" | "response.cancelled") => {
                return Err(event.get("response").and_then(server_error).unwrap_or(StreamError::CutOff));
            }
            Some("error") => {
                // Some servers put the error's fields beside its type.
                let bare = || server_error(&json!({"error": event}));
                return Err(server_error(event).or_else(bare).unwrap_or(StreamError::CutOff));
            }
            _ => self.read_item(event, said)?,
        }
        Ok(AnswerProgress::Incomplete)
    }

    /// Reads an event about one item. One of a kind that is not known here may still tell of an error.
    fn read_item(&mut self, event: &Value, said: &mut Vec<ModelEvent>) -> Result<(), StreamError> {
        let name = name_of(event);
        let delta = || text_at(event, "/delta").unwrap_or_default();
        match text_at(event, "/type") {
            Some("response.output_text.delta" | "response.refusal.delta") => {
                let block = self.items.of(name);
                self.text(block, delta(), said);
            }
            Some("response.reasoning_summary_text.delta" | "response.reasoning_text.delta") => {
                let block = self.items.of(name);
                self.think(block, delta(), said);
            }
            Some("response.reasoning_summary_part.added") => {
                // Parts of a summary are paragraphs.
                let block = self.items.of(name);
                if self.grown.get(&block).is_some_and(|grown| *grown > 0) {
                    self.think(block, "\n\n", said);
                }
            }
            Some("response.function_call_arguments.delta") => {
                let block = self.items.of(name);
                self.arguments(block, delta(), said);
            }
            Some("response.output_item.added") => {
                if let Some(item) = event.get("item") {
                    let block = self.items.begin(name)?;
                    self.begin(block, item, said);
                }
            }
            Some("response.output_item.done") => {
                if let Some(item) = event.get("item") {
                    self.items.end(&name);
                    let block = self.items.of(name);
                    self.end(block, item, said);
                }
            }
            _ => return server_error(event).map_or(Ok(()), Err),
        }
        Ok(())
    }

    fn begin(&mut self, block: u32, item: &Value, said: &mut Vec<ModelEvent>) {
        if text_at(item, "/type") == Some("function_call") {
            self.calls = CallPresence::Present;
            let id = text_at(item, "/call_id").or_else(|| text_at(item, "/id")).map(str::to_owned);
            let name = text_at(item, "/name").unwrap_or_default().to_owned();
            said.push(ModelEvent::CallStarted { block, id, name });
            self.grown.entry(block).or_insert(0);
        }
    }

    /// The whole item comes at its end; a server that does not stream sends nothing before.
    fn end(&mut self, block: u32, item: &Value, said: &mut Vec<ModelEvent>) {
        let is_known = self.grown.contains_key(&block);
        match text_at(item, "/type") {
            Some("function_call") => {
                if !is_known {
                    self.begin(block, item, said);
                }
                self.rest(
                    block,
                    text_at(item, "/arguments").unwrap_or_default(),
                    ResponsesReader::arguments,
                    said,
                );
            }
            Some("message") => {
                let pieces = item.get("content").and_then(Value::as_array).into_iter().flatten();
                let text: String = pieces
                    .filter_map(|piece| text_at(piece, "/text").or_else(|| text_at(piece, "/refusal")))
                    .collect();
                self.rest(block, &text, ResponsesReader::text, said);
                if let Some(phase) = item.get("phase").filter(|phase| phase.is_string()) {
                    said.push(ModelEvent::Sealed { block, sealed: json!({"phase": phase}) });
                }
            }
            Some("reasoning") => {
                let texts = |name: &str| -> Vec<&str> {
                    let pieces = item.get(name).and_then(Value::as_array).into_iter().flatten();
                    pieces.filter_map(|piece| text_at(piece, "/text")).collect()
                };
                let mut whole = texts("summary");
                if whole.is_empty() {
                    whole = texts("content");
                }
                self.rest(block, &whole.join("\n\n"), ResponsesReader::think, said);
                said.push(ModelEvent::Sealed { block, sealed: item.clone() });
            }
            _ => {}
        }
    }

    /// What of a whole has not come in pieces.
    fn rest(
        &mut self,
        block: u32,
        whole: &str,
        push: fn(&mut ResponsesReader, u32, &str, &mut Vec<ModelEvent>),
        said: &mut Vec<ModelEvent>,
    ) {
        if self.grown.get(&block).copied().unwrap_or(0) == 0 {
            push(self, block, whole, said);
        }
    }

    fn text(&mut self, block: u32, text: &str, said: &mut Vec<ModelEvent>) {
        if !text.is_empty() {
            self.grow(block, text);
            said.push(ModelEvent::Text { block, text: text.to_owned() });
        }
    }

    fn think(&mut self, block: u32, text: &str, said: &mut Vec<ModelEvent>) {
        if !text.is_empty() {
            self.grow(block, text);
            said.push(ModelEvent::Thinking { block, text: text.to_owned() });
        }
    }

    fn arguments(&mut self, block: u32, json: &str, said: &mut Vec<ModelEvent>) {
        if !json.is_empty() {
            self.grow(block, json);
            said.push(ModelEvent::CallArguments { block, json: json.to_owned() });
        }
    }

    fn grow(&mut self, block: u32, text: &str) {
        *self.grown.entry(block).or_insert(0) += text.len();
    }

    fn finish(
        &mut self,
        end: &str,
        response: &Value,
        said: &mut Vec<ModelEvent>,
    ) -> Result<AnswerProgress, StreamError> {
        if let Some(error) = server_error(response) {
            return Err(error);
        }
        // A server that does not stream tells everything here.
        if self.items.is_empty() {
            let items = response.get("output").and_then(Value::as_array).into_iter().flatten();
            for (place, item) in items.enumerate() {
                let block = self.items.begin(place.to_string())?;
                self.end(block, item, said);
            }
        }
        if let Some(usage) = response.get("usage").filter(|usage| usage.is_object()) {
            said.push(ModelEvent::Usage(usage_of(usage)));
        }
        let stop = match (text_at(response, "/status"), text_at(response, "/incomplete_details/reason")) {
            (Some("failed" | "cancelled"), _) => return Err(StreamError::CutOff),
            (_, Some("max_output_tokens")) => StopReason::MaxTokens,
            (_, Some("content_filter")) => StopReason::Refusal,
            (_, Some(_)) => StopReason::Other,
            _ if end == "response.incomplete" => StopReason::Other,
            _ if self.calls == CallPresence::Present => StopReason::ToolUse,
            _ => StopReason::EndTurn,
        };
        said.push(ModelEvent::Stopped(stop));
        Ok(AnswerProgress::Ended)
    }
}

/// How an event names its item: by its place, or by its id.
fn name_of(event: &Value) -> String {
    let place = event.get("output_index").filter(|place| place.is_u64()).map(Value::to_string);
    let id = || text_at(event, "/item_id").or_else(|| text_at(event, "/item/id")).map(str::to_owned);
    place.or_else(id).unwrap_or_default()
}

fn usage_of(usage: &Value) -> TokenUsage {
    let cache_read = number_at(usage, &["/input_tokens_details/cached_tokens"]).unwrap_or(0);
    let cache_write = number_at(usage, &["/input_tokens_details/cache_write_tokens"]).unwrap_or(0);
    let input = number_at(usage, &["/input_tokens"]).unwrap_or(0);
    TokenUsage {
        input: input.saturating_sub(cache_read).saturating_sub(cache_write),
        output: number_at(usage, &["/output_tokens"]).unwrap_or(0),
        cache_read,
        cache_write,
        reasoning: number_at(usage, &["/output_tokens_details/reasoning_tokens"]).unwrap_or(0),
    }
}
