//! What we send.

use helve_protocol::{MessageRole, ReasoningEffort};
use serde_json::{Map, Value, json};

use crate::prompt::{ModelPrompt, ToolChoice};
use crate::wire::dialect::{ModelDialect, ThinkingSupport};
use crate::wire::effort;
use crate::wire::wire_message::{
    PrecedingItem, WireCallResult, WireFile, WireFileKind, WireMessage, WirePart,
};

/// The field that the conversation stands in, and what stands before it.
pub(crate) fn head(prompt: &ModelPrompt, dialect: &ModelDialect) -> (&'static str, Map<String, Value>) {
    let mut head = Map::new();
    let mut put = |key: &str, value: Value| drop(head.insert(key.to_owned(), value));
    let thinking = thinking(prompt, dialect);
    put("model", json!(dialect.model));
    put("max_tokens", json!(max_tokens(prompt, dialect, &thinking)));
    put("stream", json!(true));
    if let Some(thinking) = thinking.field {
        put("thinking", thinking);
    }
    let mut output = Map::new();
    if let Some(effort) = thinking.effort {
        output.insert("effort".to_owned(), json!(effort));
    }
    if let Some(wanted) = &prompt.output {
        output.insert("format".to_owned(), json!({"type": "json_schema", "schema": wanted.schema}));
    }
    if !output.is_empty() {
        put("output_config", Value::Object(output));
    }
    if !prompt.tools.is_empty() {
        match &prompt.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::None => put("tool_choice", json!({"type": "none"})),
            ToolChoice::Required => put("tool_choice", json!({"type": "any"})),
            ToolChoice::Named(name) => put("tool_choice", json!({"type": "tool", "name": name})),
        }
        let tools = prompt.tools.iter().map(
            |tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.schema}),
        );
        put("tools", tools.collect());
    }
    if !prompt.system.trim().is_empty() {
        put("system", json!([{"type": "text", "text": prompt.system}]));
    }
    ("messages", head)
}

/// A prompt that makes the model answer without thinking, if it would have to think: older models that think refuse to go
/// on with calls that another model made without their thoughts.
pub(crate) fn disable_thinking(prompt: &ModelPrompt, dialect: &ModelDialect) -> Option<ModelPrompt> {
    let thinks = thinking(prompt, dialect).budget > 0;
    thinks.then(|| ModelPrompt { effort: Some(ReasoningEffort::Off), ..prompt.clone() })
}

/// What a request says about thinking.
struct ThinkingOptions {
    field: Option<Value>,
    effort: Option<&'static str>,
    budget: u64,
}

/// A call can't be forced while the model thinks, so then it does not.
fn thinking(prompt: &ModelPrompt, dialect: &ModelDialect) -> ThinkingOptions {
    let nothing = ThinkingOptions { field: None, effort: None, budget: 0 };
    let Some(effort) = prompt.effort.filter(|_| dialect.thinking == ThinkingSupport::Yes) else {
        return nothing;
    };
    if effort == ReasoningEffort::Off || prompt.tool_choice.is_forced() {
        return ThinkingOptions { field: Some(json!({"type": "disabled"})), ..nothing };
    }
    if takes_budget(&dialect.model) {
        // The budget is part of what the model may write.
        let most = dialect.output.unwrap_or(8_192).saturating_sub(2_048).max(1_024);
        let budget = effort::budget(effort).min(most);
        let field = json!({"type": "enabled", "budget_tokens": budget});
        return ThinkingOptions { field: Some(field), effort: None, budget };
    }
    let effort = match effort {
        ReasoningEffort::Off | ReasoningEffort::Minimal | ReasoningEffort::Low => "low",
        ReasoningEffort::Medium => "medium",
        ReasoningEffort::High => "high",
        ReasoningEffort::Max => "max",
    };
    let field = json!({"type": "adaptive", "display": "summarized"});
    ThinkingOptions { field: Some(field), effort: Some(effort), budget: 0 }
}

/// Models up to this generation are told how many tokens to think; later ones decide by themselves.
fn takes_budget(model: &str) -> bool {
    const BUDGETED: [&str; 8] = [
        "claude-3-",
        "claude-opus-4-0",
        "claude-opus-4-1",
        "claude-opus-4-2025",
        "claude-opus-4-5",
        "claude-sonnet-4-0",
        "claude-sonnet-4-2025",
        "claude-sonnet-4-5",
    ];
    BUDGETED.iter().any(|begin| model.starts_with(begin)) || model.starts_with("claude-haiku-4-5")
}

/// The wire wants a number. The budget for thinking is part of it.
fn max_tokens(prompt: &ModelPrompt, dialect: &ModelDialect, thinking: &ThinkingOptions) -> u64 {
    let possible = dialect.output.unwrap_or(8_192);
    let wanted = prompt.max_output.unwrap_or(64_000).min(possible).max(1);
    if thinking.budget == 0 {
        wanted
    } else {
        wanted.max(thinking.budget.saturating_add(1_024)).min(possible)
    }
}

pub(crate) fn items(said: &WireMessage<'_>, _: &ModelDialect, _: PrecedingItem) -> Vec<Value> {
    let mut content: Vec<Value> = said.pieces.iter().filter_map(block).collect();
    // A message of the model's must not end with thinking.
    let is_thinking = |block: &Value| {
        matches!(block.get("type").and_then(Value::as_str), Some("thinking" | "redacted_thinking"))
    };
    while content.last().is_some_and(is_thinking) {
        content.pop();
    }
    let role = match said.role {
        MessageRole::User => "user",
        MessageRole::Assistant => "assistant",
    };
    let mut items = Vec::new();
    if !content.is_empty() {
        items.push(json!({"role": role, "content": content}));
    }
    if !said.results.is_empty() {
        let results: Vec<Value> = said.results.iter().map(result).collect();
        items.push(json!({"role": "user", "content": results}));
    }
    items
}

fn block(piece: &WirePart<'_>) -> Option<Value> {
    match piece {
        WirePart::Text { text, .. } => Some(json!({"type": "text", "text": text})),
        WirePart::Thinking { text, sealed } => match (sealed.get("signature"), sealed.get("redacted")) {
            (Some(signature), _) => {
                Some(json!({"type": "thinking", "thinking": text, "signature": signature}))
            }
            (None, Some(data)) => Some(json!({"type": "redacted_thinking", "data": data})),
            // Without a signature nobody takes it back.
            (None, None) => None,
        },
        WirePart::File(file) => Some(file_block(file)),
        WirePart::Call(call) => {
            Some(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}))
        }
    }
}

fn file_block(file: &WireFile<'_>) -> Value {
    let source = json!({"type": "base64", "media_type": file.media_type, "data": file.base64});
    match file.kind {
        WireFileKind::Image => json!({"type": "image", "source": source}),
        WireFileKind::Document => json!({"type": "document", "title": file.name, "source": source}),
    }
}

fn result(result: &WireCallResult<'_>) -> Value {
    let text = (!result.text.trim().is_empty()).then(|| json!({"type": "text", "text": result.text}));
    let content: Vec<Value> = text.into_iter().chain(result.files.iter().map(file_block)).collect();
    let mut block = json!({"type": "tool_result", "tool_use_id": result.id, "content": content});
    if let (true, Value::Object(block)) = (result.is_error, &mut block) {
        block.insert("is_error".to_owned(), json!(true));
    }
    block
}
