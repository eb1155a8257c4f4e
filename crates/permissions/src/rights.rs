//! What an agent may do.

use std::sync::Arc;

use helve_protocol::Mode;

use crate::decide::{Action, Decision, Level, Policy, decide};
use crate::pattern::Places;
use crate::rules::Rules;

/// The rights of an agent: its own, and those of all that it works for. A child is made by its parent and can only add what
/// narrows them, so it never has more.
#[derive(Clone, Debug)]
pub struct Rights {
    first: (Arc<Rules>, Mode),
    /// Of those that work for it, the nearest first.
    others: Vec<(Arc<Rules>, Mode)>,
    places: Arc<Places>,
    level: Level,
    network: bool,
}

impl Rights {
    pub fn new(rules: Rules, mode: Mode, places: Places, level: Level) -> Rights {
        Rights {
            first: (Arc::new(rules), mode),
            others: Vec::new(),
            places: Arc::new(places),
            level,
            network: false,
        }
    }

    /// The user lets commands use the network from now on.
    #[must_use]
    pub fn with_network(self) -> Rights {
        Rights { network: true, ..self }
    }

    /// The rights of an agent that works for this one.
    #[must_use]
    pub fn child(&self, rules: Rules, mode: Mode) -> Rights {
        let mut child = self.clone();
        child.others.push((Arc::new(rules), mode));
        child
    }

    /// The strictest of all that have a say.
    pub fn decide(&self, tool: &str, action: &Action) -> Decision {
        let Rights { first, others, places, level, network } = self;
        let decide = |(rules, mode): &(Arc<Rules>, Mode)| {
            decide(tool, action, Policy { rules, places, mode: *mode, level: *level, network: *network })
        };
        // Of equals the first: it is the one nearest to the user.
        others.iter().map(decide).fold(decide(first), |strictest, next| {
            if next.verdict > strictest.verdict { next } else { strictest }
        })
    }
}
