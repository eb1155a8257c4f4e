//! What is asked of a model, apart from the conversation.

use serde_json::Value;

/// A tool as a model is told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// The JSON schema of its input: an object.
    pub schema: Value,
}
