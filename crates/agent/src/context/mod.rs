//! What the model is told: the one owner of the system prompt, the tools and the notes, and of one request to a model.
//!
//! - `system_prompt` is what every conversation begins with.
//! - [`notes`] are what Helve adds on the way.
//! - [`model_request`] sends one request and records what comes back.
//! - [`make_room`] is where a conversation that has become too long is dealt with.

pub(crate) mod model_request;
pub(crate) mod notes;
mod stream_recorder;
mod system_prompt;

use std::sync::Arc;

use helve_models::{Dialogue, ModelClient, ModelPrompt, ModelTarget, RequestFailure};
use helve_protocol::ReasoningEffort;

use crate::tool_set::ToolSet;

/// The model that a session speaks with.
pub struct SessionModel {
    pub client: Arc<ModelClient>,
    pub target: ModelTarget,
    /// Those that take over, in this order, when one can't be reached.
    pub fallbacks: Vec<ModelTarget>,
    /// How much to think; none for what the provider does by itself.
    pub effort: Option<ReasoningEffort>,
    /// Requests with the same key have the same beginning, so that a provider can send them to the same machine.
    pub cache_key: Option<String>,
}

impl SessionModel {
    /// Begins the dialogue with the model.
    pub(crate) fn into_dialogue(self, tools: &ToolSet) -> Dialogue {
        let SessionModel { client, target, fallbacks, effort, cache_key } = self;
        let prompt = ModelPrompt { effort, cache_key, ..base_prompt(tools) };
        Dialogue::new(client, target, fallbacks, prompt)
    }
}

/// What this build tells every model, whatever the machine and the session.
pub(crate) fn base_prompt(tools: &ToolSet) -> ModelPrompt {
    ModelPrompt { system: system_prompt::system_prompt(), tools: tools.specs(), ..ModelPrompt::default() }
}

/// What was done about a conversation that is too long for its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MadeRoom {
    /// Nothing could be: the turn ends.
    No,
}

/// Makes room in a conversation that the model refused because it is too long. Nothing can be left out yet.
pub(crate) fn make_room(failure: &RequestFailure) -> MadeRoom {
    tracing::info!(name: "context.too_long", %failure);
    MadeRoom::No
}
