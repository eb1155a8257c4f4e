//! What we send.

use helve_protocol::{MessageRole, ReasoningEffort};
use serde_json::{Map, Value, json};

use crate::prompt::{ModelPrompt, ToolChoice};
use crate::quirks::CacheKeyField;
use crate::wire::dialect::{ModelDialect, ThinkingSupport};
use crate::wire::effort;
use crate::wire::wire_message::{
    PrecedingItem, WireCallResult, WireFile, WireFileKind, WireMessage, WirePart,
};

/// The field that the conversation stands in, and what stands before it.
pub(crate) fn head(prompt: &ModelPrompt, dialect: &ModelDialect) -> (&'static str, Map<String, Value>) {
    let mut head = Map::new();
    let mut put = |key: &str, value: Value| drop(head.insert(key.to_owned(), value));
    put("model", json!(dialect.model));
    put("stream", json!(true));
    put("store", json!(false));
    if let Some(max) = prompt.max_output {
        put("max_output_tokens", json!(dialect.output.map_or(max, |most| max.min(most))));
    }
    if dialect.thinking == ThinkingSupport::Yes {
        // The server keeps nothing, so its thinking comes to us, sealed.
        put("include", json!(["reasoning.encrypted_content"]));
        put("reasoning", reasoning(prompt.effort, &dialect.model));
    }
    if let Some(wanted) = &prompt.output {
        let format = json!({"type": "json_schema", "name": wanted.name, "schema": wanted.schema, "strict": wanted.is_strict()});
        put("text", json!({"format": format}));
    }
    if let (CacheKeyField::PromptCacheKey, Some(key)) = (dialect.quirks.cache_key, &prompt.cache_key) {
        put("prompt_cache_key", json!(key));
    }
    if !prompt.tools.is_empty() {
        match &prompt.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::None => put("tool_choice", json!("none")),
            ToolChoice::Required => put("tool_choice", json!("required")),
            ToolChoice::Named(name) => put("tool_choice", json!({"type": "function", "name": name})),
        }
        let tools = prompt.tools.iter().map(|tool| {
            json!({
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.schema,
                "strict": false,
            })
        });
        put("tools", tools.collect());
    }
    if !prompt.system.trim().is_empty() {
        put("instructions", json!(prompt.system));
    }
    ("input", head)
}

fn reasoning(effort: Option<ReasoningEffort>, model: &str) -> Value {
    match effort {
        Some(effort) => json!({"effort": effort::word(model, effort), "summary": "auto"}),
        None => json!({"summary": "auto"}),
    }
}

pub(crate) fn items(said: &WireMessage<'_>, _: &ModelDialect, _: PrecedingItem) -> Vec<Value> {
    let mut items = match said.role {
        MessageRole::User => user(said),
        MessageRole::Assistant => assistant(said),
    };
    items.extend(said.results.iter().map(result));
    items
}

fn user(said: &WireMessage<'_>) -> Vec<Value> {
    let content: Vec<Value> = said
        .pieces
        .iter()
        .filter_map(|piece| match piece {
            WirePart::Text { text, .. } => Some(json!({"type": "input_text", "text": text})),
            WirePart::File(file) => Some(file_part(file)),
            WirePart::Thinking { .. } | WirePart::Call(_) => None,
        })
        .collect();
    if content.is_empty() {
        Vec::new()
    } else {
        vec![json!({"type": "message", "role": "user", "content": content})]
    }
}

/// Thinking is taken back only with what followed it.
fn assistant(said: &WireMessage<'_>) -> Vec<Value> {
    let mut items: Vec<Value> = said.pieces.iter().filter_map(item).collect();
    while items.last().is_some_and(|item| item.get("type").is_some_and(|kind| kind == "reasoning")) {
        items.pop();
    }
    items
}

fn item(piece: &WirePart<'_>) -> Option<Value> {
    match piece {
        WirePart::Text { text, sealed } => {
            let mut item = json!({"type": "message", "role": "assistant", "content": text});
            if let (Some(phase), Value::Object(item)) = (sealed.get("phase"), &mut item) {
                item.insert("phase".to_owned(), phase.clone());
            }
            Some(item)
        }
        WirePart::Thinking { sealed, .. } => reasoning_item(sealed),
        WirePart::Call(call) => Some(json!({
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments(),
        })),
        WirePart::File(_) => None,
    }
}

/// The item as it came, but for fields that say nothing. Without any content the server would look for it where nothing is
/// stored.
fn reasoning_item(sealed: &Value) -> Option<Value> {
    let item = sealed.as_object()?;
    let is_sealed = item.get("encrypted_content").is_some_and(Value::is_string);
    let is_open = item.get("content").and_then(Value::as_array).is_some_and(|content| !content.is_empty());
    if !is_sealed && !is_open {
        return None;
    }
    Some(Value::Object(
        item.iter().filter(|(_, value)| !value.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect(),
    ))
}

fn result(result: &WireCallResult<'_>) -> Value {
    let output = if result.files.is_empty() {
        json!(result.text)
    } else {
        let text =
            (!result.text.trim().is_empty()).then(|| json!({"type": "input_text", "text": result.text}));
        text.into_iter().chain(result.files.iter().map(file_part)).collect()
    };
    json!({"type": "function_call_output", "call_id": result.id, "output": output})
}

fn file_part(file: &WireFile<'_>) -> Value {
    match file.kind {
        WireFileKind::Image => json!({"type": "input_image", "detail": "auto", "image_url": file.data_url()}),
        WireFileKind::Document => {
            json!({"type": "input_file", "filename": file.name, "file_data": file.data_url()})
        }
    }
}
