//! What we send.

use helve_protocol::{MessageRole, ReasoningEffort};
use serde_json::{Map, Value, json};

use crate::prompt::{ModelPrompt, ToolChoice};
use crate::quirks::{
    AfterToolResults, CacheKeyField, EffortField, ForcedChoice, MaxTokensField, OutputOption,
    ReturnedThinking, UsageOption,
};
use crate::wire::dialect::{ModelDialect, ThinkingSupport};
use crate::wire::effort;
use crate::wire::wire_message::{PrecedingItem, WireCall, WireFile, WireFileKind, WireMessage, WirePart};

/// The field that the conversation stands in, and what stands before it.
pub(crate) fn head(prompt: &ModelPrompt, dialect: &ModelDialect) -> (&'static str, Map<String, Value>) {
    let mut head = Map::new();
    let mut put = |key: &str, value: Value| drop(head.insert(key.to_owned(), value));
    put("model", json!(dialect.model));
    put("stream", json!(true));
    if dialect.quirks.usage == UsageOption::Asked {
        put("stream_options", json!({"include_usage": true}));
    }
    if let Some(max) = prompt.max_output {
        let field = match dialect.quirks.max_tokens {
            MaxTokensField::MaxTokens => "max_tokens",
            MaxTokensField::MaxCompletionTokens => "max_completion_tokens",
        };
        put(field, json!(dialect.output.map_or(max, |most| max.min(most))));
    }
    if let Some((field, value)) = effort(prompt, dialect) {
        put(field, value);
    }
    if let Some(wanted) = &prompt.output {
        put(
            "response_format",
            match dialect.quirks.output {
                OutputOption::JsonSchema => {
                    let strict = wanted.is_strict();
                    let schema = json!({"name": wanted.name, "schema": wanted.schema, "strict": strict});
                    json!({"type": "json_schema", "json_schema": schema})
                }
                OutputOption::JsonObject => json!({"type": "json_object"}),
            },
        );
    }
    match (dialect.quirks.cache_key, &prompt.cache_key) {
        (CacheKeyField::PromptCacheKey, Some(key)) => put("prompt_cache_key", json!(key)),
        (CacheKeyField::CacheControl, _) if dialect.model.starts_with("anthropic/") => {
            put("cache_control", json!({"type": "ephemeral"}));
        }
        _ => {}
    }
    if !prompt.tools.is_empty() {
        match &prompt.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::None => put("tool_choice", json!("none")),
            ToolChoice::Required => put("tool_choice", forced(dialect.quirks.forced_choice)),
            ToolChoice::Named(name) => {
                put("tool_choice", json!({"type": "function", "function": {"name": name}}));
            }
        }
        let tools = prompt.tools.iter().map(|tool| {
            let function =
                json!({"name": tool.name, "description": tool.description, "parameters": tool.schema});
            json!({"type": "function", "function": function})
        });
        put("tools", tools.collect());
    }
    ("messages", head)
}

fn forced(word: ForcedChoice) -> Value {
    match word {
        ForcedChoice::Required => json!("required"),
        ForcedChoice::Any => json!("any"),
    }
}

fn effort(prompt: &ModelPrompt, dialect: &ModelDialect) -> Option<(&'static str, Value)> {
    let effort = prompt.effort.filter(|_| dialect.thinking == ThinkingSupport::Yes)?;
    // Where thinking is switched on and off, a call can't be forced while it is on.
    let is_on = effort != ReasoningEffort::Off && !prompt.tool_choice.is_forced();
    let word = effort::word(&dialect.model, effort);
    match dialect.quirks.effort {
        EffortField::None => None,
        EffortField::ReasoningEffort => Some(("reasoning_effort", json!(word))),
        EffortField::Thinking => {
            Some(("thinking", json!({"type": if is_on { "enabled" } else { "disabled" }})))
        }
        EffortField::EnableThinking => Some(("enable_thinking", json!(is_on))),
        EffortField::Reasoning => Some(("reasoning", json!({"effort": word}))),
    }
}

/// The first item of the conversation.
pub(crate) fn system(prompt: &ModelPrompt) -> Option<Value> {
    (!prompt.system.trim().is_empty()).then(|| json!({"role": "system", "content": prompt.system}))
}

pub(crate) fn items(said: &WireMessage<'_>, dialect: &ModelDialect, before: PrecedingItem) -> Vec<Value> {
    let bridge = (dialect.quirks.after_results == AfterToolResults::TheModel)
        .then(|| json!({"role": "assistant", "content": "I have the results."}));
    let mut items = match said.role {
        MessageRole::User => {
            let user = user(said);
            let bridge = bridge.clone().filter(|_| before == PrecedingItem::Results && !user.is_empty());
            bridge.into_iter().chain(user).collect()
        }
        MessageRole::Assistant => assistant(said, dialect),
    };
    items.extend(said.results.iter().map(|result| {
        let text = if result.text.trim().is_empty() { "[See the next message.]" } else { &*result.text };
        json!({"role": "tool", "tool_call_id": result.id, "content": text})
    }));
    // A result can hold nothing but text here, so that what it shows follows in the user's name.
    let files: Vec<Value> = said.results.iter().flat_map(|result| &result.files).map(file_part).collect();
    if !files.is_empty() {
        let note = json!({"type": "text", "text": "<note>\nThe files of the results above:\n</note>"});
        items.extend(bridge);
        let content: Vec<Value> = std::iter::once(note).chain(files).collect();
        items.push(json!({"role": "user", "content": content}));
    }
    items
}

fn user(said: &WireMessage<'_>) -> Vec<Value> {
    let is_plain = said.pieces.iter().all(|piece| matches!(piece, WirePart::Text { .. }));
    if said.pieces.is_empty() {
        return Vec::new();
    }
    let content = if is_plain {
        json!(joined(said, "\n\n"))
    } else {
        let parts = said.pieces.iter().filter_map(|piece| match piece {
            WirePart::Text { text, .. } => Some(json!({"type": "text", "text": text})),
            WirePart::File(file) => Some(file_part(file)),
            WirePart::Thinking { .. } | WirePart::Call(_) => None,
        });
        parts.collect()
    };
    vec![json!({"role": "user", "content": content})]
}

fn assistant(said: &WireMessage<'_>, dialect: &ModelDialect) -> Vec<Value> {
    let calls: Vec<Value> = said.pieces.iter().filter_map(call).collect();
    let text = joined(said, "");
    if text.is_empty() && calls.is_empty() {
        return Vec::new();
    }
    let mut message = Map::new();
    message.insert("role".to_owned(), json!("assistant"));
    message.insert("content".to_owned(), if text.is_empty() { Value::Null } else { json!(text) });
    match dialect.quirks.thinking_back {
        ReturnedThinking::ReasoningContent if !calls.is_empty() => {
            let thoughts: String = thinking(said).map(|(text, _)| text).collect();
            if !thoughts.is_empty() {
                message.insert("reasoning_content".to_owned(), json!(thoughts));
            } else if dialect.thinking == ThinkingSupport::Yes {
                // What another model did came with no thoughts for this one, but the field must be there.
                message.insert("reasoning_content".to_owned(), json!(" "));
            }
        }
        ReturnedThinking::Details => {
            let details: Vec<&Value> = thinking(said)
                .filter_map(|(_, sealed)| sealed.get("details").and_then(Value::as_array))
                .flatten()
                .collect();
            if !details.is_empty() {
                message.insert("reasoning_details".to_owned(), json!(details));
            }
        }
        ReturnedThinking::Never | ReturnedThinking::ReasoningContent => {}
    }
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), json!(calls));
    }
    vec![Value::Object(message)]
}

fn thinking<'a>(said: &'a WireMessage<'a>) -> impl Iterator<Item = (&'a str, &'a Value)> {
    said.pieces.iter().filter_map(|piece| match piece {
        WirePart::Thinking { text, sealed } => Some((*text, *sealed)),
        _ => None,
    })
}

fn joined(said: &WireMessage<'_>, between: &str) -> String {
    let texts = said.pieces.iter().filter_map(|piece| match piece {
        WirePart::Text { text, .. } => Some(&**text),
        _ => None,
    });
    texts.collect::<Vec<_>>().join(between)
}

fn call(piece: &WirePart<'_>) -> Option<Value> {
    let WirePart::Call(call @ WireCall { id, name, .. }) = piece else { return None };
    let function = json!({"name": name, "arguments": call.arguments()});
    Some(json!({"id": id, "type": "function", "function": function}))
}

fn file_part(file: &WireFile<'_>) -> Value {
    match file.kind {
        WireFileKind::Image => json!({"type": "image_url", "image_url": {"url": file.data_url()}}),
        WireFileKind::Document => {
            json!({"type": "file", "file": {"filename": file.name, "file_data": file.data_url()}})
        }
    }
}
