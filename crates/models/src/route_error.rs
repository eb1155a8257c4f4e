//! Why a name leads to no model that can be used.

/// Why no model could be found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// Nobody chose a model, and there is none that could be used unasked.
    #[error("no model is chosen, no key is set, and {}", servers(.odd))]
    NothingUsable {
        /// What is odd about local servers that do run.
        odd: Vec<String>,
    },
    /// The model's provider has no key.
    #[error("{provider} wants a key, and there is none")]
    NoKey {
        /// The name of the provider.
        provider: String,
        /// The variables that may hold its key.
        variables: Vec<String>,
    },
    /// The first part of `provider/model` is no provider.
    #[error("there is no provider {:?}", shortened(.name))]
    NoProvider {
        /// What was taken for one.
        name: String,
        /// The names of all providers.
        known: Vec<String>,
    },
    /// A name without a provider that the catalogue does not have.
    #[error("{name:?} is no model that Helve knows, nor an alias")]
    NoModel {
        /// The name as it was given.
        name: String,
    },
    /// An alias that means nothing but aliases.
    #[error("the alias {name:?} leads back to itself")]
    AliasCycle {
        /// The alias that was looked up.
        name: String,
    },
    /// A provider of the user's own of which too little is said.
    #[error("the provider {name:?} needs a base URL and a wire")]
    Incomplete {
        /// The name of the provider.
        name: String,
    },
    /// A provider whose base URL can't be used.
    #[error("the base URL of the provider {name:?} is no http or https address")]
    InvalidBaseUrl {
        /// The name of the provider.
        name: String,
    },
}

fn servers(odd: &[String]) -> String {
    if odd.is_empty() { "no local server is running".to_owned() } else { odd.join("; ") }
}

/// A name that somebody typed. What is longer than a name may be a key in the wrong place.
fn shortened(name: &str) -> String {
    if name.chars().count() <= 24 { name.to_owned() } else { name.chars().take(8).chain(['…']).collect() }
}

impl RouteError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            RouteError::NothingUsable { .. } => {
                "Set a key, such as ANTHROPIC_API_KEY or OPENAI_API_KEY, store one with `helve login PROVIDER`, or start a \
                 local server such as Ollama. `helve models list` shows every provider."
                    .to_owned()
            }
            RouteError::NoKey { provider, variables } if variables.is_empty() => {
                format!("Store it with `helve login {provider}`.")
            }
            RouteError::NoKey { provider, variables } => {
                format!("Set {}, or store it with `helve login {provider}`.", variables.join(" or "))
            }
            RouteError::NoProvider { known, .. } => {
                format!("Known are {}; `providers.NAME` in the settings adds others.", known.join(", "))
            }
            RouteError::NoModel { .. } => {
                "Write it as provider/model; `helve models list` shows the known ones.".to_owned()
            }
            RouteError::AliasCycle { .. } => "Mend models.aliases in the settings.".to_owned(),
            RouteError::Incomplete { name } => {
                format!("Set providers.{name}.base_url and providers.{name}.wire in the settings.")
            }
            RouteError::InvalidBaseUrl { .. } => "Write it as https://host/path or http://host:port/path.".to_owned(),
        }
    }

    /// Whether a key is all that is missing.
    pub fn is_about_keys(&self) -> bool {
        matches!(self, RouteError::NothingUsable { .. } | RouteError::NoKey { .. })
    }
}
