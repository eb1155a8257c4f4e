//! What the server says.

use helve_protocol::{StopReason, Usage};
use serde_json::{Value, json};

use crate::wire::blocks::Blocks;
use crate::wire::{Calls, Progress, number_at, server_error, text_at};
use crate::{ModelEvent, StreamError};

#[derive(Debug, Default)]
pub(crate) struct Reader {
    blocks: Blocks,
    calls: Calls,
}

impl Reader {
    pub(crate) fn read(
        &mut self,
        event: &Value,
        said: &mut Vec<ModelEvent>,
    ) -> Result<Progress, StreamError> {
        if let Some(error) = server_error(event) {
            return Err(error);
        }
        let parts =
            event.pointer("/candidates/0/content/parts").and_then(Value::as_array).into_iter().flatten();
        parts.for_each(|part| self.part(part, said));
        if let Some(usage) = event.get("usageMetadata") {
            said.push(ModelEvent::Usage(usage_of(usage)));
        }
        let blocked = text_at(event, "/promptFeedback/blockReason").map(|_| StopReason::Refusal);
        let finished = text_at(event, "/candidates/0/finishReason").map(|reason| self.stop_reason(reason));
        match finished.or(blocked) {
            Some(stop) => {
                said.push(ModelEvent::Stopped(stop));
                Ok(Progress::MayEnd)
            }
            None => Ok(Progress::Expected),
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
        self.calls = Calls::Some;
        let block = self.blocks.begin();
        let id = text_at(call, "/id").map(str::to_owned);
        let name = text_at(call, "/name").unwrap_or_default().to_owned();
        said.push(ModelEvent::CallStarted { block, id, name });
        let arguments =
            call.get("args").filter(|args| !args.is_null()).map_or_else(|| "{}".to_owned(), Value::to_string);
        said.push(ModelEvent::CallArguments { block, json: arguments });
        block
    }

    /// The wire says `STOP` whether or not it wants a tool.
    fn stop_reason(&self, reason: &str) -> StopReason {
        match reason {
            "STOP" if self.calls == Calls::Some => StopReason::ToolUse,
            "STOP" => StopReason::EndTurn,
            "MAX_TOKENS" => StopReason::MaxTokens,
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" => {
                StopReason::Refusal
            }
            _ => StopReason::Other,
        }
    }
}

/// Here thinking is counted beside the answer, not in it.
fn usage_of(usage: &Value) -> Usage {
    let cache_read = number_at(usage, &["/cachedContentTokenCount"]).unwrap_or(0);
    let reasoning = number_at(usage, &["/thoughtsTokenCount"]).unwrap_or(0);
    let prompt = number_at(usage, &["/promptTokenCount"]).unwrap_or(0);
    let tools = number_at(usage, &["/toolUsePromptTokenCount"]).unwrap_or(0);
    Usage {
        input: prompt.saturating_sub(cache_read).saturating_add(tools),
        output: number_at(usage, &["/candidatesTokenCount"]).unwrap_or(0).saturating_add(reasoning),
        cache_read,
        cache_write: 0,
        reasoning,
    }
}
