//! How a model is written to, as it goes on record: enough to write the same requests again on any machine, without the
//! settings, keys and servers that were there.

use std::sync::Arc;

use helve_protocol::{Effort, ModelName};
use serde::{Deserialize, Serialize};

use crate::target::{Record, Recorded, Target, Via};
use crate::{ModelFacts, Prompt, Quirks, Wire};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manner {
    pub wire: Wire,
    pub quirks: Quirks,
    /// The model as its server calls it.
    pub model: String,
    pub facts: ModelFacts,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_key: Option<String>,
    /// The tools that were offered.
    #[serde(default)]
    pub tools: Vec<String>,
}

impl Manner {
    pub(crate) fn of(target: &Target, prompt: &Prompt) -> Manner {
        Manner {
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
    pub fn target(&self, name: ModelName, answers: Box<dyn Recorded>) -> Target {
        let record = Record { wire: self.wire, quirks: self.quirks, answers };
        let via = Via::Recorded(Arc::new(record));
        Target { name, model: self.model.clone(), via, facts: self.facts.clone() }
    }

    /// A prompt that asks in the same manner.
    pub fn prompt(&self, mut prompt: Prompt) -> Prompt {
        prompt.tools.retain(|tool| self.tools.contains(&tool.name));
        Prompt {
            effort: self.effort,
            max_output: self.max_output,
            cache_key: self.cache_key.clone(),
            ..prompt
        }
    }
}
