//! A model at a provider: what a name means.

use std::sync::Arc;

use helve_protocol::{Cost, ModelName, Usage};

use crate::request::{Dialect, Sees, Thinks};
use crate::{ModelFacts, Provider};

#[derive(Clone, Debug)]
pub struct Target {
    /// As we call it: `provider/model`.
    pub name: ModelName,
    /// As its server calls it.
    pub model: String,
    pub provider: Arc<Provider>,
    pub facts: ModelFacts,
}

impl Target {
    /// How it is written to.
    pub fn dialect(&self) -> Dialect {
        let sees = |can: bool| if can { Sees::Yes } else { Sees::No };
        let abilities = &self.facts.abilities;
        Dialect {
            wire: self.provider.wire,
            quirks: self.provider.quirks,
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
