//! What the model is told when a tool fails.

/// What the model is told when a tool could not do its work: what happened, and what to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolFailure(pub String);

impl ToolFailure {
    /// A failure that is told in these words.
    pub fn new(what: impl Into<String>) -> ToolFailure {
        ToolFailure(what.into())
    }
}
