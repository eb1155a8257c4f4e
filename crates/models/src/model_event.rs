//! What a model says, event by event, whichever wire it came over.

use helve_protocol::{StopReason, TokenUsage};
use serde_json::Value;

/// Something that a model's response says. Blocks are numbered in the provider's order.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// A piece of what the model says to the user.
    Text {
        /// The block that it belongs to.
        block: u32,
        /// What is added to the block.
        text: String,
    },
    /// A piece of what the model thinks.
    Thinking {
        /// The block that it belongs to.
        block: u32,
        /// What is added to the block.
        text: String,
    },
    /// What the provider wants back with the thinking, or with the call, exactly as it came.
    Sealed {
        /// The block that it belongs to.
        block: u32,
        /// Whatever the provider sent: it is not looked into.
        sealed: Value,
    },
    /// The model begins to call a tool.
    CallStarted {
        /// The block that the call is.
        block: u32,
        /// The id that the provider gave to the call, if it gave one.
        id: Option<String>,
        /// The name of the tool.
        name: String,
    },
    /// A piece of the call's arguments, which are JSON when they are whole.
    CallArguments {
        /// The block that the call is.
        block: u32,
        /// What is added to the arguments.
        json: String,
    },
    /// The counts so far. Later ones replace earlier ones.
    Usage(TokenUsage),
    /// The model has stopped, for this reason.
    Stopped(StopReason),
}

impl ModelEvent {
    /// The block that it adds text to, and the text.
    pub(crate) fn text_mut(&mut self) -> Option<(u32, &mut String)> {
        match self {
            ModelEvent::Text { block, text } | ModelEvent::Thinking { block, text } => Some((*block, text)),
            ModelEvent::CallArguments { block, json } => Some((*block, json)),
            _ => None,
        }
    }

    /// How much space it takes in JSON.
    pub(crate) fn json_bytes(&self) -> usize {
        let text = |text: &str| serde_json::to_string(text).map_or(0, |json| json.len());
        match self {
            ModelEvent::Text { text: said, .. } | ModelEvent::Thinking { text: said, .. } => text(said),
            ModelEvent::CallArguments { json, .. } => text(json),
            ModelEvent::CallStarted { id, name, .. } => text(name) + id.as_deref().map_or(0, text),
            ModelEvent::Sealed { sealed, .. } => sealed.to_string().len(),
            ModelEvent::Usage(_) | ModelEvent::Stopped(_) => 0,
        }
    }

    /// The block that it is about.
    pub(crate) fn block(&self) -> Option<u32> {
        match self {
            ModelEvent::Text { block, .. }
            | ModelEvent::Thinking { block, .. }
            | ModelEvent::Sealed { block, .. }
            | ModelEvent::CallStarted { block, .. }
            | ModelEvent::CallArguments { block, .. } => Some(*block),
            ModelEvent::Usage(_) | ModelEvent::Stopped(_) => None,
        }
    }
}
