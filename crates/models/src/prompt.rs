//! What is asked of a model, apart from the conversation.

use helve_protocol::ReasoningEffort;
use serde_json::Value;

/// What stands before the conversation in each request. While it stays the same, requests grow only at their end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelPrompt {
    /// The system prompt; empty for none.
    pub system: String,
    /// The tools that are offered.
    pub tools: Vec<ToolSpec>,
    /// Whether the model calls tools.
    pub tool_choice: ToolChoice,
    /// How much to think; none for what the provider does by itself.
    pub effort: Option<ReasoningEffort>,
    /// At most so many tokens; none for as many as the model can.
    pub max_output: Option<u64>,
    /// The answer must be JSON of this form.
    pub output: Option<OutputSchema>,
    /// Requests with the same key have the same beginning, so that a provider can send them to the same machine.
    pub cache_key: Option<String>,
}

/// A tool as a model is told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// What the model calls it by.
    pub name: String,
    /// What it does, in words for the model.
    pub description: String,
    /// The JSON schema of its input: an object.
    pub schema: Value,
}

/// Whether the model calls tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// As it thinks best.
    #[default]
    Auto,
    /// Not at all, though it is told of them.
    None,
    /// At least one.
    Required,
    /// This one.
    Named(String),
}

impl ToolChoice {
    pub(crate) fn is_forced(&self) -> bool {
        matches!(self, ToolChoice::Required | ToolChoice::Named(_))
    }
}

/// The form that an answer must have.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputSchema {
    /// A name for the form, which some servers want.
    pub name: String,
    /// The JSON schema that the answer must fit.
    pub schema: Value,
}

impl OutputSchema {
    /// Whether the schema leaves nothing open, as OpenAI wants it where it is to be kept to the letter: each object names
    /// all its fields as required, and takes no others.
    pub(crate) fn is_strict(&self) -> bool {
        is_strict(&self.schema)
    }
}

fn is_strict(schema: &Value) -> bool {
    let has_all = || {
        let Some(fields) = schema.get("properties").and_then(Value::as_object) else { return false };
        let required = schema.get("required").and_then(Value::as_array);
        let is_required =
            |name: &String| required.is_some_and(|required| required.iter().any(|of| of == name));
        schema.get("additionalProperties") == Some(&Value::Bool(false)) && fields.keys().all(is_required)
    };
    let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
    let parts = match schema {
        Value::Object(fields) => fields.values().collect::<Vec<_>>(),
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    };
    (!is_object || has_all()) && parts.into_iter().all(is_strict)
}
