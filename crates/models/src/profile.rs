//! How a model is written to, as it goes on record: enough to write the same requests again on any machine, without the
//! settings, keys and servers that were there.

use std::sync::Arc;

use helve_protocol::{ModelName, ReasoningEffort};
use serde::{Deserialize, Serialize};

use crate::target::{ModelTarget, RecordedAnswers, RecordedModel, TargetRoute};
use crate::{ModelFacts, ModelPrompt, Quirks, WireProtocol};

/// How the requests to one model are written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EncodingProfile {
    /// The protocol of its server.
    pub wire: WireProtocol,
    /// What is peculiar about its server.
    pub quirks: Quirks,
    /// The model as its server calls it.
    pub model: String,
    /// What was known of the model.
    pub facts: ModelFacts,
    /// How much it was asked to think.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<ReasoningEffort>,
    /// How many tokens it could answer with at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// What requests with the same beginning had in common.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_key: Option<String>,
    /// The tools that were offered.
    #[serde(default)]
    pub tools: Vec<String>,
}

impl EncodingProfile {
    pub(crate) fn of(target: &ModelTarget, prompt: &ModelPrompt) -> EncodingProfile {
        EncodingProfile {
            wire: target.wire(),
            quirks: target.quirks(),
            model: target.model.clone(),
            facts: target.facts.clone(),
            effort: prompt.effort,
            max_output: prompt.max_output,
            cache_key: prompt.cache_key.clone(),
            tools: prompt.tools.iter().map(|tool| tool.name.clone()).collect(),
        }
    }

    /// The same model, with answers from a recording.
    pub fn target(&self, name: ModelName, answers: Box<dyn RecordedAnswers>) -> ModelTarget {
        let record = RecordedModel { wire: self.wire, quirks: self.quirks, answers };
        let via = TargetRoute::Recorded(Arc::new(record));
        ModelTarget { name, model: self.model.clone(), via, facts: self.facts.clone() }
    }

    /// A prompt that asks in the same manner.
    pub fn prompt(&self, mut prompt: ModelPrompt) -> ModelPrompt {
        prompt.tools.retain(|tool| self.tools.contains(&tool.name));
        ModelPrompt {
            effort: self.effort,
            max_output: self.max_output,
            cache_key: self.cache_key.clone(),
            ..prompt
        }
    }
}
