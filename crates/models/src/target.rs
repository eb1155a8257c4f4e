//! What a model's name means.

use std::fmt;
use std::sync::Arc;

use helve_protocol::{Cost, ModelName, Usage};

use crate::played::{self, Stage};
use crate::request::{Dialect, Sees, Thinks};
use crate::script::Script;
use crate::{Abilities, Answer, Failure, ModelFacts, Origin, Provider, Quirks, Request, Wire};

/// A model that can be spoken to.
#[derive(Clone, Debug)]
pub struct Target {
    /// As we call it: `provider/model`, or `script:FILE`.
    pub name: ModelName,
    /// As its server calls it.
    pub model: String,
    pub via: Via,
    pub facts: ModelFacts,
}

/// How a model is reached.
#[derive(Clone, Debug)]
pub enum Via {
    Provider(Arc<Provider>),
    Script(Stage),
    /// Not at all: what it answered is on record.
    Recorded(Arc<Record>),
}

/// A model of which only what it answered is left.
pub struct Record {
    pub wire: Wire,
    pub quirks: Quirks,
    pub answers: Box<dyn Recorded>,
}

/// Gives the answers of a recording, one after the other.
pub trait Recorded: Send + Sync {
    fn answer(&self, request: &Request) -> Result<Answer, Failure>;
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("wire", &self.wire).finish_non_exhaustive()
    }
}

impl Target {
    /// A script that plays a model.
    pub fn script(name: &str, script: Script) -> Target {
        let facts = ModelFacts {
            title: "A script".to_owned(),
            context: Some(200_000),
            input_limit: None,
            output: Some(64_000),
            prices: None,
            abilities: Abilities {
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
            origin: Origin::BuiltIn,
        };
        let name = ModelName::new(name);
        Target { model: name.to_string(), name, via: Via::Script(Stage::new(script)), facts }
    }

    pub fn wire(&self) -> Wire {
        match &self.via {
            Via::Provider(provider) => provider.wire,
            Via::Script(_) => played::WIRE,
            Via::Recorded(record) => record.wire,
        }
    }

    pub(crate) fn quirks(&self) -> Quirks {
        match &self.via {
            Via::Provider(provider) => provider.quirks,
            Via::Script(_) => Quirks::PLAIN,
            Via::Recorded(record) => record.quirks,
        }
    }

    /// How it is written to.
    pub fn dialect(&self) -> Dialect {
        let sees = |can: bool| if can { Sees::Yes } else { Sees::No };
        let abilities = &self.facts.abilities;
        Dialect {
            wire: self.wire(),
            quirks: self.quirks(),
            name: self.name.clone(),
            model: self.model.clone(),
            images: sees(abilities.images),
            documents: sees(abilities.pdf),
            thinking: if abilities.thinking { Thinks::Yes } else { Thinks::No },
            output: self.facts.output,
        }
    }

    /// What an answer cost; none if nobody told us the prices.
    pub fn cost(&self, usage: Usage) -> Option<Cost> {
        self.facts.cost(usage)
    }
}
