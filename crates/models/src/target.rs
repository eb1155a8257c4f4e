//! What a model's name means.

use std::fmt;
use std::sync::Arc;

use helve_protocol::{Cost, ModelName, TokenUsage};

use crate::script::ModelScript;
use crate::scripted::{self, ScriptedModel};
use crate::wire::dialect::{MediaSupport, ModelDialect, ThinkingSupport};
use crate::{
    ModelAbilities, ModelAnswer, ModelFacts, ModelFactsOrigin, ModelProvider, ModelRequest, Quirks,
    RequestFailure, WireProtocol,
};

/// A model that can be spoken to.
#[derive(Clone, Debug)]
pub struct ModelTarget {
    /// As we call it: `provider/model`, or `script:FILE`.
    pub name: ModelName,
    /// As its server calls it.
    pub model: String,
    /// How it is reached.
    pub via: TargetRoute,
    /// What is known of it.
    pub facts: ModelFacts,
}

/// How a model is reached.
#[derive(Clone, Debug)]
pub enum TargetRoute {
    /// Over the network, or on this machine.
    Provider(Arc<ModelProvider>),
    /// A script plays it.
    Script(ScriptedModel),
    /// Not at all: what it answered is on record.
    Recorded(Arc<RecordedModel>),
}

/// A model of which only what it answered is left.
pub struct RecordedModel {
    /// The protocol that its requests were written in.
    pub wire: WireProtocol,
    /// What was peculiar about its server.
    pub quirks: Quirks,
    /// What it answered.
    pub answers: Box<dyn RecordedAnswers>,
}

/// Gives the answers of a recording, one after the other.
pub trait RecordedAnswers: Send + Sync {
    /// The answer to the next request, or how it failed.
    fn answer(&self, request: &ModelRequest) -> Result<ModelAnswer, RequestFailure>;
}

impl fmt::Debug for RecordedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("wire", &self.wire).finish_non_exhaustive()
    }
}

impl ModelTarget {
    /// A script that plays a model.
    pub fn script(name: &str, script: ModelScript) -> ModelTarget {
        let facts = ModelFacts {
            title: "A script".to_owned(),
            context: Some(200_000),
            input_limit: None,
            output: Some(64_000),
            prices: None,
            abilities: ModelAbilities {
                tools: true,
                thinking: true,
                images: true,
                pdf: true,
                structured: true,
                temperature: true,
            },
            knowledge: None,
            released: None,
            status: None,
            origin: ModelFactsOrigin::BuiltIn,
        };
        let name = ModelName::new(name);
        ModelTarget {
            model: name.to_string(),
            name,
            via: TargetRoute::Script(ScriptedModel::new(script)),
            facts,
        }
    }

    /// The protocol that its requests are written in.
    pub fn wire(&self) -> WireProtocol {
        match &self.via {
            TargetRoute::Provider(provider) => provider.wire,
            TargetRoute::Script(_) => scripted::SCRIPT_WIRE,
            TargetRoute::Recorded(record) => record.wire,
        }
    }

    pub(crate) fn quirks(&self) -> Quirks {
        match &self.via {
            TargetRoute::Provider(provider) => provider.quirks,
            TargetRoute::Script(_) => Quirks::PLAIN,
            TargetRoute::Recorded(record) => record.quirks,
        }
    }

    /// How it is written to.
    pub fn dialect(&self) -> ModelDialect {
        let sees = |can: bool| if can { MediaSupport::Yes } else { MediaSupport::No };
        let abilities = &self.facts.abilities;
        ModelDialect {
            wire: self.wire(),
            quirks: self.quirks(),
            name: self.name.clone(),
            model: self.model.clone(),
            images: sees(abilities.images),
            documents: sees(abilities.pdf),
            thinking: if abilities.thinking { ThinkingSupport::Yes } else { ThinkingSupport::No },
            output: self.facts.output,
        }
    }

    /// What an answer cost; none if nobody told us the prices.
    pub fn cost(&self, usage: TokenUsage) -> Option<Cost> {
        self.facts.cost(usage)
    }
}
