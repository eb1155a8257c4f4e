//! Which model a name means, and which one is used if nobody says.

use std::collections::BTreeMap;
use std::sync::Arc;

use helve_protocol::{KeyPlacement, ModelName, WireProtocol};
use reqwest::Url;

use crate::provider::{KeyOrigin, ModelProvider, ProviderKey};
use crate::route_error::RouteError;
use crate::target::{ModelTarget, TargetRoute};
use crate::vendor::{BaseUrlVariable, ServerLocation, VENDORS, Vendor};
use crate::{ModelCatalogue, Quirks, Secret};

/// What the user wants of models.
#[derive(Clone, Debug, Default)]
pub struct ModelPreferences {
    /// The model that does the work.
    pub main: Option<String>,
    /// The model for small jobs.
    pub fast: Option<String>,
    /// The model that summarises long conversations.
    pub summary: Option<String>,
    /// Who takes over if the main model fails, in this order.
    pub fallback: Vec<String>,
    /// Other names of models, and what each means.
    pub aliases: BTreeMap<String, String>,
    /// New providers, and changes to known ones.
    pub providers: BTreeMap<String, ProviderOverrides>,
}

/// What the user's settings say of a provider. What is `None` stays as it is built in.
#[derive(Clone, Debug, Default)]
pub struct ProviderOverrides {
    /// The protocol that its server speaks.
    pub wire: Option<WireProtocol>,
    /// What the addresses of all requests begin with.
    pub base_url: Option<String>,
    /// The variable that holds its key.
    pub key_env: Option<String>,
    /// How the key is shown to the server.
    pub auth: Option<KeyPlacement>,
    /// Sent with each request.
    pub headers: Vec<(String, Secret)>,
}

/// What a model is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelPurpose {
    /// Small jobs.
    Fast,
    /// Summaries of long conversations.
    Summary,
}

/// Knows every provider and every name.
#[derive(Clone, Debug)]
pub struct ModelRouter {
    providers: Vec<Arc<ModelProvider>>,
    catalogue: ModelCatalogue,
    wishes: ModelPreferences,
}

/// Looks a variable up.
pub type VariableLookup<'a> = &'a dyn Fn(&str) -> Option<String>;
/// Looks up the key that is stored for a provider.
pub type StoredKeyLookup<'a> = &'a dyn Fn(&str) -> Option<Secret>;

/// An alias may mean another alias, but not for ever.
const MAX_ALIAS_DEPTH: usize = 8;

impl ModelRouter {
    /// Knows the built-in providers and those of the preferences, with the keys that the two look-ups find.
    pub fn new(
        wishes: ModelPreferences,
        catalogue: ModelCatalogue,
        variables: VariableLookup<'_>,
        stored: StoredKeyLookup<'_>,
    ) -> ModelRouter {
        let wish_of = |vendor: &Vendor| {
            let names = std::iter::once(&vendor.name).chain(vendor.also);
            names.filter_map(|name| wishes.providers.get(*name)).next().cloned().unwrap_or_default()
        };
        let known =
            VENDORS.iter().map(|vendor| provider_from_vendor(vendor, &wish_of(vendor), variables, stored));
        let is_new = |name: &&String| Vendor::find(name).is_none();
        let new = wishes.providers.keys().filter(is_new).map(|name| {
            let wish = wishes.providers.get(name).cloned().unwrap_or_default();
            provider_from_overrides(name, &wish, variables, stored)
        });
        let providers = known.chain(new).map(Arc::new).collect();
        ModelRouter { providers, catalogue, wishes }
    }

    /// The same, with another main model chosen.
    pub fn choosing(mut self, name: &str) -> ModelRouter {
        self.wishes.main = Some(name.to_owned());
        self
    }

    /// All providers, usable or not.
    pub fn providers(&self) -> impl Iterator<Item = &Arc<ModelProvider>> {
        self.providers.iter()
    }

    /// What is known of models.
    pub fn catalogue(&self) -> &ModelCatalogue {
        &self.catalogue
    }

    /// The provider of this name, or of another name that it has.
    pub fn provider(&self, name: &str) -> Result<&Arc<ModelProvider>, RouteError> {
        let name = Vendor::find(name).map_or(name, |vendor| vendor.name);
        self.providers.iter().find(|provider| provider.name == name).ok_or_else(|| self.no_provider(name))
    }

    fn no_provider(&self, name: &str) -> RouteError {
        let known = self.providers.iter().map(|provider| provider.name.clone()).collect();
        RouteError::NoProvider { name: name.to_owned(), known }
    }

    /// The model that a name means: `provider/model`, an alias, or a model's name alone where it is known.
    pub fn find(&self, name: &str) -> Result<ModelTarget, RouteError> {
        let name = self.unaliased(name)?;
        if let Some((provider, model)) = name.split_once('/')
            && !model.is_empty()
            && self.is_provider(provider)
        {
            return self.usable(provider, model);
        }
        let providers = self.catalogue.providers_of(name);
        // The service that makes a model comes before those that resell it, for the table is in that order.
        let mut known = self.providers.iter().filter(|provider| providers.contains(&facts_name(provider)));
        let first = known.clone().next();
        match (known.find(|provider| provider.has_key()).or(first), name.split_once('/')) {
            (Some(provider), _) => self.usable(&provider.name, name),
            (None, Some((provider, _))) if !self.is_provider(provider) => Err(self.no_provider(provider)),
            (None, _) => Err(RouteError::NoModel { name: name.to_owned() }),
        }
    }

    fn is_provider(&self, name: &str) -> bool {
        self.provider(name).is_ok()
    }

    fn unaliased<'a>(&'a self, name: &'a str) -> Result<&'a str, RouteError> {
        let mut meant = name;
        for _ in 0..MAX_ALIAS_DEPTH {
            match self.wishes.aliases.get(meant) {
                Some(next) => meant = next,
                None => return Ok(meant),
            }
        }
        Err(RouteError::AliasCycle { name: name.to_owned() })
    }

    fn usable(&self, provider: &str, model: &str) -> Result<ModelTarget, RouteError> {
        let provider = self.provider(provider)?;
        if let Some(fault) = &provider.fault {
            return Err(fault.clone());
        }
        if !provider.has_key() {
            let variables = provider.key_names.clone();
            return Err(RouteError::NoKey { provider: provider.name.clone(), variables });
        }
        Ok(self.target(provider, model))
    }

    /// A model of a provider, whether it is known or not.
    pub fn target(&self, provider: &Arc<ModelProvider>, model: &str) -> ModelTarget {
        ModelTarget {
            name: ModelName::new(format!("{}/{model}", provider.name)),
            model: model.to_owned(),
            facts: self.catalogue.find(facts_name(provider), model),
            via: TargetRoute::Provider(provider.clone()),
        }
    }

    /// The model that does the work: the one that was chosen, else one whose key is there. None if there is no key at
    /// all; then a local server may be running.
    pub fn main(&self) -> Result<Option<ModelTarget>, RouteError> {
        if let Some(name) = &self.wishes.main {
            return self.find(name).map(Some);
        }
        let favourite = |provider: &Arc<ModelProvider>| {
            let vendor = provider.vendor.filter(|_| provider.key.is_some() && provider.fault.is_none())?;
            Some(self.target(provider, vendor.models.main)).filter(|target| !target.model.is_empty())
        };
        Ok(self.providers.iter().find_map(favourite))
    }

    /// The servers on this machine that may be running.
    pub fn local(&self) -> impl Iterator<Item = &Arc<ModelProvider>> {
        self.providers
            .iter()
            .filter(|provider| provider.place == ServerLocation::Local && provider.fault.is_none())
    }

    /// The model for a purpose: the one that was chosen, else a fitting one of the main model's provider, else the main model.
    pub fn for_purpose(&self, purpose: ModelPurpose, main: &ModelTarget) -> Result<ModelTarget, RouteError> {
        let wished = match purpose {
            ModelPurpose::Fast => &self.wishes.fast,
            ModelPurpose::Summary => &self.wishes.summary,
        };
        if let Some(name) = wished {
            return self.find(name);
        }
        let fast = || {
            let TargetRoute::Provider(provider) = &main.via else { return None };
            let model = provider.vendor?.models.fast;
            (!model.is_empty()).then(|| self.target(provider, model))
        };
        Ok(fast().filter(|_| purpose == ModelPurpose::Fast).unwrap_or_else(|| main.clone()))
    }

    /// Who takes over if the main model fails.
    pub fn fallbacks(&self) -> Result<Vec<ModelTarget>, RouteError> {
        self.wishes.fallback.iter().map(|name| self.find(name)).collect()
    }
}

/// The name under which the catalogue has a provider's models.
fn facts_name(provider: &ModelProvider) -> &str {
    provider.vendor.and_then(|vendor| vendor.facts).unwrap_or(&provider.name)
}

fn provider_from_vendor(
    vendor: &'static Vendor,
    wish: &ProviderOverrides,
    variables: VariableLookup<'_>,
    stored: StoredKeyLookup<'_>,
) -> ModelProvider {
    let by_variable = vendor.base_url_env.iter().find_map(|variable| match variable {
        BaseUrlVariable::Whole(name) => variables(name),
        BaseUrlVariable::Host(name) => variables(name).map(|host| of_host(&host)),
    });
    let base_url = wish.base_url.clone().or(by_variable).unwrap_or_else(|| vendor.base_url.to_owned());
    // A server that usually wants no key may still be given one.
    let usual_auth = if vendor.auth() == KeyPlacement::None { KeyPlacement::Bearer } else { vendor.auth() };
    let wished_key = wish.key_env.iter().map(|name| (name.as_str(), wish.auth.unwrap_or(usual_auth)));
    let mut usual = vendor.keys.iter().map(|(name, auth)| (*name, wish.auth.unwrap_or(*auth)));
    let found = wished_key.chain(&mut usual).find_map(|(name, auth)| Some((key_of(name, variables)?, auth)));
    // Services that take the same key share a stored one.
    let same = || VENDORS.iter().filter(|other| !vendor.keys.is_empty() && other.keys == vendor.keys);
    let kept = || {
        let key = stored_key(vendor.name, stored)
            .or_else(|| same().find_map(|other| stored_key(other.name, stored)));
        Some((key?, wish.auth.unwrap_or(usual_auth)))
    };
    let (key, auth) = found.or_else(kept).unzip();
    let (base_url, fault) = address(vendor.name, Ok(&base_url), vendor.base_url);
    ModelProvider {
        name: vendor.name.to_owned(),
        wire: wish.wire.unwrap_or(vendor.wire),
        base_url,
        auth: auth.or(wish.auth).unwrap_or(vendor.auth()),
        key,
        key_names: wish
            .key_env
            .clone()
            .into_iter()
            .chain(vendor.keys.iter().map(|(name, _)| (*name).to_owned()))
            .collect(),
        fault,
        headers: wish.headers.clone(),
        quirks: vendor.quirks,
        place: vendor.place,
        vendor: Some(vendor),
    }
}

fn provider_from_overrides(
    name: &str,
    wish: &ProviderOverrides,
    variables: VariableLookup<'_>,
    stored: StoredKeyLookup<'_>,
) -> ModelProvider {
    let incomplete = || RouteError::Incomplete { name: name.to_owned() };
    let base_url = wish.base_url.as_ref().filter(|_| wish.wire.is_some()).ok_or_else(incomplete);
    let (base_url, fault) = address(name, base_url.map(String::as_str), INVALID_BASE_URL);
    let wire = wish.wire.unwrap_or(WireProtocol::Chat);
    let key = wish.key_env.as_ref().and_then(|variable| key_of(variable, variables));
    let key = key.or_else(|| stored_key(name, stored));
    let usual = match wire {
        WireProtocol::Messages => KeyPlacement::XApiKey,
        WireProtocol::Gemini => KeyPlacement::XGoogApiKey,
        WireProtocol::Chat | WireProtocol::Responses => KeyPlacement::Bearer,
    };
    // Without any word of a key, none is needed: most servers at home have none.
    let needs_key = wish.key_env.is_some() || key.is_some();
    ModelProvider {
        name: name.to_owned(),
        wire,
        base_url,
        auth: wish.auth.unwrap_or(if needs_key { usual } else { KeyPlacement::None }),
        key,
        key_names: wish.key_env.clone().into_iter().collect(),
        fault,
        headers: wish.headers.clone(),
        quirks: Quirks::PLAIN,
        place: ServerLocation::Remote,
        vendor: None,
    }
}

fn key_of(variable: &str, variables: VariableLookup<'_>) -> Option<ProviderKey> {
    let value = variables(variable).filter(|value| !value.trim().is_empty())?;
    Some(ProviderKey { secret: Secret::new(value.trim()), origin: KeyOrigin::Variable(variable.to_owned()) })
}

fn stored_key(provider: &str, stored: StoredKeyLookup<'_>) -> Option<ProviderKey> {
    stored(provider).map(|secret| ProviderKey { secret, origin: KeyOrigin::Stored })
}

/// Where a provider without a good address is: nowhere.
const INVALID_BASE_URL: &str = "http://invalid";

/// The address that a text means; if it means none, another one and the reason why the provider can't be used.
fn address(name: &str, text: Result<&str, RouteError>, instead: &'static str) -> (Url, Option<RouteError>) {
    let is_web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    let read = text.and_then(|text| {
        let url = Url::parse(text.trim()).ok().filter(is_web);
        url.ok_or_else(|| RouteError::InvalidBaseUrl { name: name.to_owned() })
    });
    match read {
        Ok(url) => (url, None),
        Err(fault) => (constant(instead), Some(fault)),
    }
}

#[expect(clippy::expect_used, reason = "a constant, which a test reads too")]
fn constant(url: &'static str) -> Url {
    Url::parse(url).expect("the table holds good addresses")
}

/// `0.0.0.0:11434` is where a server listens; it is reached at the loopback address.
fn of_host(host: &str) -> String {
    let host = host.trim().trim_end_matches('/');
    let host = if host.starts_with(':') { format!("127.0.0.1{host}") } else { host.to_owned() };
    let with_scheme = if host.contains("://") { host } else { format!("http://{host}") };
    let reached = with_scheme.replace("://0.0.0.0", "://127.0.0.1");
    let after_scheme = reached.split_once("://").map_or(reached.as_str(), |(_, rest)| rest);
    let has_port = after_scheme.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if has_port || reached.starts_with("https") {
        format!("{reached}/v1")
    } else {
        format!("{reached}:11434/v1")
    }
}
