//! What we send. The model's name stands in the address, not here.

use helve_protocol::{MessageRole, ReasoningEffort};
use serde_json::{Map, Value, json};

use crate::prompt::{ModelPrompt, ToolChoice};
use crate::wire::dialect::{ModelDialect, ThinkingSupport};
use crate::wire::effort;
use crate::wire::wire_message::{
    AuthorModel, PrecedingItem, WireCall, WireCallResult, WireFile, WireMessage, WirePart,
};

/// The field that the conversation stands in, and what stands before it.
pub(crate) fn head(prompt: &ModelPrompt, dialect: &ModelDialect) -> (&'static str, Map<String, Value>) {
    let mut head = Map::new();
    let mut put = |key: &str, value: Value| drop(head.insert(key.to_owned(), value));
    let generation = generation(prompt, dialect);
    if !generation.is_empty() {
        put("generationConfig", Value::Object(generation));
    }
    if !prompt.tools.is_empty() {
        let calling = match &prompt.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::None => Some(json!({"mode": "NONE"})),
            ToolChoice::Required => Some(json!({"mode": "ANY"})),
            ToolChoice::Named(name) => Some(json!({"mode": "ANY", "allowedFunctionNames": [name]})),
        };
        if let Some(calling) = calling {
            put("toolConfig", json!({"functionCallingConfig": calling}));
        }
        let functions: Vec<Value> = prompt
            .tools
            .iter()
            .map(|tool| {
                json!({
                    "name": tool.name,
                    "description": tool.description,
                    "parametersJsonSchema": tool.schema,
                })
            })
            .collect();
        put("tools", json!([{"functionDeclarations": functions}]));
    }
    if !prompt.system.trim().is_empty() {
        put("systemInstruction", json!({"parts": [{"text": prompt.system}]}));
    }
    ("contents", head)
}

fn generation(prompt: &ModelPrompt, dialect: &ModelDialect) -> Map<String, Value> {
    let mut config = Map::new();
    let mut put = |key: &str, value: Value| drop(config.insert(key.to_owned(), value));
    if let Some(max) = prompt.max_output {
        put("maxOutputTokens", json!(dialect.output.map_or(max, |most| max.min(most))));
    }
    if dialect.thinking == ThinkingSupport::Yes {
        put("thinkingConfig", thinking(prompt.effort, &dialect.model));
    }
    // Older models can't do this and call tools.
    let can = prompt.tools.is_empty() || !takes_budget(&dialect.model);
    if let Some(wanted) = prompt.output.as_ref().filter(|_| can) {
        put("responseMimeType", json!("application/json"));
        put("responseJsonSchema", wanted.schema.clone());
    }
    config
}

fn thinking(effort: Option<ReasoningEffort>, model: &str) -> Value {
    let is_on = effort != Some(ReasoningEffort::Off);
    match effort {
        None => json!({"includeThoughts": true}),
        Some(effort) if takes_budget(model) => {
            json!({"includeThoughts": is_on, "thinkingBudget": effort::gemini_budget(model, effort)})
        }
        Some(effort) => {
            json!({"includeThoughts": is_on, "thinkingLevel": effort::gemini_level(model, effort)})
        }
    }
}

/// Models up to this generation are told how many tokens to think; later ones are told a level.
fn takes_budget(model: &str) -> bool {
    model.starts_with("gemini-1") || model.starts_with("gemini-2")
}

pub(crate) fn items(said: &WireMessage<'_>, dialect: &ModelDialect, _: PrecedingItem) -> Vec<Value> {
    let mut unsigned = MissingSignature::new(said, dialect);
    let parts: Vec<Value> = said.pieces.iter().map(|piece| part(piece, &mut unsigned)).collect();
    let role = match said.role {
        MessageRole::User => "user",
        MessageRole::Assistant => "model",
    };
    let mut items = Vec::new();
    if !parts.is_empty() {
        items.push(json!({"role": role, "parts": parts}));
    }
    if !said.results.is_empty() {
        let responses = said.results.iter().map(result);
        let files = said.results.iter().flat_map(|result| &result.files).map(file_part);
        let parts: Vec<Value> = responses.chain(files).collect();
        items.push(json!({"role": "user", "parts": parts}));
    }
    items
}

/// Newer models refuse a first call that no signature comes with, unless this word stands there: calls that another model
/// made have none.
struct MissingSignature(Option<&'static str>);

impl MissingSignature {
    fn new(said: &WireMessage<'_>, dialect: &ModelDialect) -> MissingSignature {
        let signed = |piece: &WirePart<'_>| matches!(piece, WirePart::Call(call) if !call.sealed.is_null());
        let wants = !takes_budget(&dialect.model) && !said.pieces.iter().any(signed);
        MissingSignature(wants.then_some("skip_thought_signature_validator"))
    }
}

fn part(piece: &WirePart<'_>, unsigned: &mut MissingSignature) -> Value {
    let (mut part, sealed) = match piece {
        WirePart::Text { text, sealed } => (json!({"text": text}), *sealed),
        WirePart::Thinking { text: "", sealed } => (json!({"text": ""}), *sealed),
        WirePart::Thinking { text, sealed } => (json!({"text": text, "thought": true}), *sealed),
        WirePart::File(file) => return file_part(file),
        WirePart::Call(call) => (json!({"functionCall": function_call(call)}), call.sealed),
    };
    let signature = sealed.get("thoughtSignature").cloned();
    let is_call = matches!(piece, WirePart::Call(_));
    let signature = signature.or_else(|| unsigned.0.take_if(|_| is_call).map(|word| json!(word)));
    if let (Some(signature), Value::Object(part)) = (signature, &mut part) {
        part.insert("thoughtSignature".to_owned(), signature);
    }
    part
}

/// The id goes back if the server gave one; it knows no others.
fn function_call(call: &WireCall<'_>) -> Value {
    match call.origin {
        AuthorModel::Same => json!({"id": call.id, "name": call.name, "args": call.input}),
        AuthorModel::Other => json!({"name": call.name, "args": call.input}),
    }
}

fn result(result: &WireCallResult<'_>) -> Value {
    let key = if result.is_error { "error" } else { "output" };
    let mut response = Map::new();
    if let AuthorModel::Same = result.origin {
        response.insert("id".to_owned(), json!(result.id));
    }
    response.insert("name".to_owned(), json!(result.name));
    response.insert("response".to_owned(), json!({key: result.text}));
    json!({"functionResponse": response})
}

fn file_part(file: &WireFile<'_>) -> Value {
    json!({"inlineData": {"mimeType": file.media_type, "data": file.base64}})
}
