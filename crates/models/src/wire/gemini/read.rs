//! What the server says.

use helve_protocol::{StopReason, TokenUsage};
use serde_json::{Value, json};

use crate::wire::blocks::UnnamedBlocks;
use crate::wire::{AnswerProgress, CallPresence, number_at, server_error, text_at};
use crate::{ModelEvent, StreamError};

#[derive(Debug, Default)]
pub(crate) struct GeminiReader {
    blocks: UnnamedBlocks,
    calls: CallPresence,
    /// A call whose arguments come piece by piece.
    open: Option<PartialCall>,
    /// The id of the response that these events belong to.
    response: Option<String>,
}

#[derive(Debug)]
struct PartialCall {
    block: u32,
    arguments: Value,
}

impl GeminiReader {
    pub(crate) fn read(
        &mut self,
        event: &Value,
        said: &mut Vec<ModelEvent>,
    ) -> Result<AnswerProgress, StreamError> {
        if let Some(error) = server_error(event) {
            return Err(error);
        }
        if let Some(id) = text_at(event, "/responseId").filter(|id| !id.is_empty()) {
            let is_another = self.response.as_deref().is_some_and(|response| response != id);
            if is_another && !self.blocks.is_empty() {
                return Err(StreamError::Restarted("a second response begins"));
            }
            self.response = Some(id.to_owned());
        }
        let parts =
            event.pointer("/candidates/0/content/parts").and_then(Value::as_array).into_iter().flatten();
        parts.for_each(|part| self.part(part, said));
        if let Some(usage) = event.get("usageMetadata") {
            said.push(ModelEvent::Usage(usage_of(usage)));
        }
        let blocked = text_at(event, "/promptFeedback/blockReason").map(|_| StopReason::Refusal);
        let finished = text_at(event, "/candidates/0/finishReason").map(|reason| self.stop_reason(reason));
        if finished.is_some() {
            self.close(said);
        }
        match finished.or(blocked) {
            Some(stop) => {
                said.push(ModelEvent::Stopped(stop));
                Ok(AnswerProgress::MayEnd)
            }
            None => Ok(AnswerProgress::Incomplete),
        }
    }

    fn part(&mut self, part: &Value, said: &mut Vec<ModelEvent>) {
        let is_thought = part.get("thought").and_then(Value::as_bool) == Some(true);
        let text = text_at(part, "/text").filter(|text| !text.is_empty());
        let signature = text_at(part, "/thoughtSignature");
        let mut block = None;
        if is_thought {
            self.blocks.think(text, said);
            block = text.map(|_| self.blocks.thinking());
        } else if let (Some(text), Some(_)) = (text, signature) {
            // What is signed must go back as the part that it came in.
            block = Some(self.blocks.begin());
            said.extend(block.map(|block| ModelEvent::Text { block, text: text.to_owned() }));
        } else {
            self.blocks.text(text, said);
        }
        if let Some(call) = part.get("functionCall") {
            block = Some(self.call(call, said));
        }
        if let Some(signature) = signature {
            // A signature alone goes back as thinking of its own.
            let block = block.unwrap_or_else(|| self.blocks.begin());
            said.push(ModelEvent::Sealed { block, sealed: json!({"thoughtSignature": signature}) });
        }
    }

    fn call(&mut self, call: &Value, said: &mut Vec<ModelEvent>) -> u32 {
        let has_name = text_at(call, "/name").is_some_and(|name| !name.is_empty());
        let goes_on = call.get("willContinue").and_then(Value::as_bool) == Some(true);
        if let Some(open) = self.open.as_mut().filter(|_| !has_name) {
            let block = open.block;
            grow(&mut open.arguments, call);
            if !goes_on {
                self.close(said);
            }
            return block;
        }
        self.close(said);
        self.calls = CallPresence::Present;
        let block = self.blocks.begin();
        let id = text_at(call, "/id").map(str::to_owned);
        let name = text_at(call, "/name").unwrap_or_default().to_owned();
        said.push(ModelEvent::CallStarted { block, id, name });
        if goes_on || call.get("partialArgs").is_some() {
            let mut arguments = call.get("args").cloned().unwrap_or_else(|| json!({}));
            grow(&mut arguments, call);
            self.open = Some(PartialCall { block, arguments });
            if !goes_on {
                self.close(said);
            }
            return block;
        }
        let arguments =
            call.get("args").filter(|args| !args.is_null()).map_or_else(|| "{}".to_owned(), Value::to_string);
        said.push(ModelEvent::CallArguments { block, json: arguments });
        block
    }

    /// The arguments of the open call are whole.
    fn close(&mut self, said: &mut Vec<ModelEvent>) {
        if let Some(PartialCall { block, arguments }) = self.open.take() {
            said.push(ModelEvent::CallArguments { block, json: arguments.to_string() });
        }
    }

    /// The wire says `STOP` whether or not it wants a tool.
    fn stop_reason(&self, reason: &str) -> StopReason {
        match reason {
            "STOP" if self.calls == CallPresence::Present => StopReason::ToolUse,
            "STOP" => StopReason::EndTurn,
            "MAX_TOKENS" => StopReason::MaxTokens,
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" => {
                StopReason::Refusal
            }
            _ => StopReason::Other,
        }
    }
}

/// Takes the pieces of arguments in, each at its place.
fn grow(arguments: &mut Value, call: &Value) {
    let pieces = call.get("partialArgs").and_then(Value::as_array).into_iter().flatten();
    for piece in pieces {
        let Some(place) = text_at(piece, "/jsonPath").and_then(|path| place(arguments, path)) else {
            continue;
        };
        match (place, piece.get("stringValue").and_then(Value::as_str)) {
            (Value::String(whole), Some(more)) => whole.push_str(more),
            (place, Some(text)) => *place = Value::from(text),
            (place, None) => {
                let value = piece.get("numberValue").or_else(|| piece.get("boolValue"));
                *place = value.cloned().unwrap_or(Value::Null);
            }
        }
    }
}

/// More items of a list than this nobody names one by one.
const MAX_PARTIAL_LIST_ITEMS: usize = 10_000;

/// The place that a path such as `$.steps[0].name` means, made if it is not there.
fn place<'a>(value: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    let mut place = value;
    let mut rest = path.strip_prefix('$')?;
    while !rest.is_empty() {
        if let Some(named) = rest.strip_prefix('.') {
            let end = named.find(['.', '[']).unwrap_or(named.len());
            let (name, after) = named.split_at_checked(end)?;
            place = field(place, name);
            rest = after;
        } else {
            let (inside, after) = rest.strip_prefix('[')?.split_once(']')?;
            let name = inside.trim_matches(['"', '\'']);
            place = if name.len() < inside.len() {
                field(place, name)
            } else {
                item(place, inside.parse().ok()?)?
            };
            rest = after;
        }
    }
    Some(place)
}

fn field<'a>(value: &'a mut Value, name: &str) -> &'a mut Value {
    if !value.is_object() {
        *value = json!({});
    }
    &mut value[name]
}

fn item(value: &mut Value, place: usize) -> Option<&mut Value> {
    if !value.is_array() {
        *value = json!([]);
    }
    let items = value.as_array_mut()?;
    if place >= MAX_PARTIAL_LIST_ITEMS {
        return None;
    }
    if items.len() <= place {
        items.resize(place + 1, Value::Null);
    }
    items.get_mut(place)
}

/// Here thinking is counted beside the answer, not in it.
fn usage_of(usage: &Value) -> TokenUsage {
    let cache_read = number_at(usage, &["/cachedContentTokenCount"]).unwrap_or(0);
    let reasoning = number_at(usage, &["/thoughtsTokenCount"]).unwrap_or(0);
    let prompt = number_at(usage, &["/promptTokenCount"]).unwrap_or(0);
    let tools = number_at(usage, &["/toolUsePromptTokenCount"]).unwrap_or(0);
    TokenUsage {
        input: prompt.saturating_sub(cache_read).saturating_add(tools),
        output: number_at(usage, &["/candidatesTokenCount"]).unwrap_or(0).saturating_add(reasoning),
        cache_read,
        cache_write: 0,
        reasoning,
    }
}
