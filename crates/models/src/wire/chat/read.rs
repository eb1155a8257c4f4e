//! What the server says.

use std::collections::HashMap;

use helve_protocol::{StopReason, TokenUsage};
use serde_json::{Value, json};

use crate::wire::blocks::UnnamedBlocks;
use crate::wire::{AnswerProgress, number_at, server_error, text_at};
use crate::{ModelEvent, StreamError};

#[derive(Debug, Default)]
pub(crate) struct ChatReader {
    blocks: UnnamedBlocks,
    calls: Vec<KnownCall>,
    details: ReasoningDetails,
    finish: FinishReasonState,
    usage: bool,
}

/// Thinking that some servers want back item by item. It comes in pieces, and is told once it is whole.
#[derive(Debug, Default)]
struct ReasoningDetails {
    block: Option<u32>,
    items: Vec<Value>,
    /// Where the item of a number and a kind is.
    places: HashMap<(String, String), usize>,
}

impl ReasoningDetails {
    /// A piece belongs to the item of its number and kind; its texts are added, its other fields replace.
    fn grow(&mut self, piece: &Value) {
        let field = |name: &str| piece.get(name).map(Value::to_string).unwrap_or_default();
        let name = (field("index"), field("type"));
        let known = self.places.get(&name).filter(|_| !name.0.is_empty());
        let known = known.and_then(|place| self.items.get_mut(*place));
        let (Some(Value::Object(item)), Value::Object(piece)) = (known, piece) else {
            self.places.insert(name, self.items.len());
            self.items.push(piece.clone());
            return;
        };
        for (key, value) in piece {
            match (item.get_mut(key), value) {
                (Some(Value::String(whole)), Value::String(more))
                    if APPENDED_FIELDS.contains(&key.as_str()) =>
                {
                    whole.push_str(more);
                }
                (Some(_), Value::Null) => {}
                _ => drop(item.insert(key.clone(), value.clone())),
            }
        }
    }
}

/// The fields of an item that come in pieces.
const APPENDED_FIELDS: [&str; 4] = ["text", "summary", "data", "signature"];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FinishReasonState {
    #[default]
    Awaited,
    Reported,
}

/// A call that has begun, and by what its later pieces are known.
#[derive(Debug)]
struct KnownCall {
    block: u32,
    number: Option<u64>,
    id: Option<String>,
    name: String,
    /// What has come of its arguments.
    arguments: String,
}

impl KnownCall {
    /// Whether the last chunk tells this call once more, whole, though it gives it another id, or neither id nor number.
    fn is_repeated_by(&self, number: Option<u64>, id: Option<&str>, name: Option<&str>, piece: &str) -> bool {
        let is_same_number = number.is_some() && number == self.number;
        let is_nameless = number.is_none() && id.is_none() && (self.number.is_some() || self.id.is_some());
        let is_same_call = (is_same_number || is_nameless) && name == Some(self.name.as_str());
        is_same_call && !piece.is_empty() && self.added(piece, true).is_empty()
    }

    /// What a piece adds to the arguments. Some servers repeat the whole call at the end, which adds nothing, or only what
    /// had not come before.
    fn added<'a>(&self, piece: &'a str, is_last: bool) -> &'a str {
        let come = self.arguments.trim();
        // Cheap to find out first: most pieces are a few letters.
        if come.is_empty() || !piece.trim_start().starts_with('{') || !piece.trim_end().ends_with('}') {
            return piece;
        }
        let Ok(whole) = serde_json::from_str::<Value>(piece) else { return piece };
        match serde_json::from_str::<Value>(come) {
            Ok(known) if known == whole => "",
            Err(_) if is_last => piece.trim_start().strip_prefix(come).unwrap_or(piece),
            _ => piece,
        }
    }
}

impl ChatReader {
    pub(crate) fn read(
        &mut self,
        chunk: &Value,
        said: &mut Vec<ModelEvent>,
    ) -> Result<AnswerProgress, StreamError> {
        if let Some(error) = server_error(chunk) {
            return Err(error);
        }
        let choices = chunk.get("choices").and_then(Value::as_array).into_iter().flatten();
        // We ask for one answer; a server that gives more mixes them.
        for choice in choices.filter(|choice| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0) {
            self.choice(choice, said)?;
        }
        let usage = chunk.get("usage").or_else(|| chunk.pointer("/x_groq/usage"));
        if let Some(usage) = usage.filter(|usage| usage.is_object()) {
            let usage = usage_of(usage);
            // Some servers count again at the end, and forget what they had.
            if !self.usage || usage != TokenUsage::default() {
                said.push(ModelEvent::Usage(usage));
            }
            self.usage = true;
        }
        // Most servers end with a word of their own. Those that do not have said why they stop, and what it cost.
        let may_end = self.finish == FinishReasonState::Reported && self.usage;
        Ok(if may_end { AnswerProgress::MayEnd } else { AnswerProgress::Incomplete })
    }

    /// Whether anything was said, or at least an end: a word that ends the stream alone is no answer.
    pub(crate) fn has_answered(&self) -> bool {
        self.finish == FinishReasonState::Reported || !self.blocks.is_empty()
    }

    fn choice(&mut self, choice: &Value, said: &mut Vec<ModelEvent>) -> Result<(), StreamError> {
        let is_last = text_at(choice, "/finish_reason").is_some_and(|reason| !reason.is_empty());
        if let Some(delta) = choice.get("delta") {
            self.thinking(delta, said);
            self.content(delta.get("content"), said);
            self.blocks.text(text_at(delta, "/refusal"), said);
            for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
                self.call(call, is_last, said)?;
            }
        }
        if let Some(reason) = text_at(choice, "/finish_reason").filter(|reason| !reason.is_empty()) {
            if SERVER_FAULT_REASONS.contains(&reason) {
                let message = format!("the model stopped: {reason}");
                return Err(StreamError::Server { kind: Some(reason.to_owned()), message });
            }
            self.finish = FinishReasonState::Reported;
            if let Some(block) = self.details.block.take() {
                let details = std::mem::take(&mut self.details.items);
                said.push(ModelEvent::Sealed { block, sealed: json!({"details": details}) });
            }
            said.push(ModelEvent::Stopped(stop_reason(reason)));
        }
        Ok(())
    }

    /// Servers have three names for it; one that uses two at once says the same in both.
    fn thinking(&mut self, delta: &Value, said: &mut Vec<ModelEvent>) {
        let text = text_at(delta, "/reasoning_content").or_else(|| text_at(delta, "/reasoning"));
        self.blocks.think(text, said);
        let details = delta.get("reasoning_details").and_then(Value::as_array);
        if let Some(details) = details.filter(|details| !details.is_empty()) {
            self.details.block.get_or_insert(self.blocks.thinking());
            details.iter().for_each(|piece| self.details.grow(piece));
        }
    }

    /// A text, or a list of pieces of which some are thinking.
    fn content(&mut self, content: Option<&Value>, said: &mut Vec<ModelEvent>) {
        match content {
            Some(Value::String(text)) => self.blocks.text(Some(text), said),
            Some(Value::Array(pieces)) => {
                for piece in pieces {
                    self.blocks.text(text_at(piece, "/text"), said);
                    let thoughts = piece.get("thinking").and_then(Value::as_array).into_iter().flatten();
                    thoughts.for_each(|thought| self.blocks.think(text_at(thought, "/text"), said));
                }
            }
            _ => {}
        }
    }

    fn call(&mut self, call: &Value, is_last: bool, said: &mut Vec<ModelEvent>) -> Result<(), StreamError> {
        let number = call.get("index").and_then(Value::as_u64);
        let id = text_at(call, "/id").filter(|id| !id.is_empty());
        let name = text_at(call, "/function/name").filter(|name| !name.is_empty());
        let piece = match call.pointer("/function/arguments") {
            Some(Value::String(json)) => json.clone(),
            // Some servers send the object itself.
            Some(object @ Value::Object(_)) => object.to_string(),
            _ => String::new(),
        };
        if is_last && self.calls.iter().any(|known| known.is_repeated_by(number, id, name, &piece)) {
            return Ok(());
        }
        let place = match self.known(number, id, name) {
            Some(place) => place,
            None if self.finish == FinishReasonState::Reported => {
                return Err(StreamError::Restarted("it goes on after its end"));
            }
            None => {
                let block = self.blocks.begin();
                let (id, name) = (id.map(str::to_owned), name.unwrap_or_default().to_owned());
                self.calls.push(KnownCall {
                    block,
                    number,
                    id: id.clone(),
                    name: name.clone(),
                    arguments: String::new(),
                });
                said.push(ModelEvent::CallStarted { block, id, name });
                self.calls.len() - 1
            }
        };
        let Some(known) = self.calls.get_mut(place) else { return Ok(()) };
        let json = known.added(&piece, is_last).to_owned();
        let is_other_number = number.is_some() && known.number.is_some() && known.number != number;
        // Only a call that is repeated whole may come under another number.
        let is_repeated = json.is_empty() && !piece.is_empty();
        if is_other_number && name.is_some() && !is_repeated {
            return Err(StreamError::Restarted("two calls have the same id"));
        }
        if !json.is_empty() {
            known.arguments.push_str(&json);
            said.push(ModelEvent::CallArguments { block: known.block, json });
        }
        Ok(())
    }

    /// The call that a piece belongs to: by its number, else by its id, else the last one. A new id with a name begins a
    /// new call, even under an old number: some servers number all calls 0.
    fn known(&self, number: Option<u64>, id: Option<&str>, name: Option<&str>) -> Option<usize> {
        let is_new = |known: &KnownCall| {
            id.is_some() && known.id.is_some() && known.id.as_deref() != id && name.is_some()
        };
        let find = |is_it: &dyn Fn(&KnownCall) -> bool| self.calls.iter().rposition(is_it);
        let by_number = || find(&|known| number.is_some() && known.number == number);
        let by_id = || find(&|known| id.is_some() && known.id.as_deref() == id);
        let is_bare = number.is_none() && id.is_none() && name.is_none();
        let last = || self.calls.len().checked_sub(1).filter(|_| is_bare);
        let place = by_id().or_else(by_number).or_else(last)?;
        self.calls.get(place).filter(|known| !is_new(known)).map(|_| place)
    }
}

/// Here the prompt includes what was cached, and only sums are given.
fn usage_of(usage: &Value) -> TokenUsage {
    let cached = [
        "/prompt_tokens_details/cached_tokens",
        "/prompt_cache_hit_tokens",
        "/cache_read_input_tokens",
        "/cached_tokens",
    ];
    let written = ["/prompt_tokens_details/cache_write_tokens", "/cache_creation_input_tokens"];
    let cache_read = number_at(usage, &cached).unwrap_or(0);
    let cache_write = number_at(usage, &written).unwrap_or(0);
    let prompt = number_at(usage, &["/prompt_tokens"]).unwrap_or(0);
    let written_out = number_at(usage, &["/completion_tokens"]).unwrap_or(0);
    let reasoning =
        number_at(usage, &["/completion_tokens_details/reasoning_tokens", "/reasoning_tokens"]).unwrap_or(0);
    // Some servers count thinking beside the answer; their own total shows it.
    let sums = [prompt, written_out, reasoning].iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
    let is_beside = number_at(usage, &["/total_tokens"]) == Some(sums);
    TokenUsage {
        input: prompt.saturating_sub(cache_read).saturating_sub(cache_write),
        output: if is_beside { written_out.saturating_add(reasoning) } else { written_out },
        cache_read,
        cache_write,
        reasoning,
    }
}

/// Reasons that some servers give when they broke, not the model.
const SERVER_FAULT_REASONS: [&str; 4] = ["error", "network_error", "insufficient_system_resource", "abort"];

fn stop_reason(reason: &str) -> StopReason {
    match reason {
        "stop" | "eos" | "end_turn" => StopReason::EndTurn,
        "tool_calls" | "function_call" | "tool_use" => StopReason::ToolUse,
        "length" | "max_tokens" | "model_length" => StopReason::MaxTokens,
        "content_filter" | "refusal" | "sensitive" => StopReason::Refusal,
        _ => StopReason::Other,
    }
}
