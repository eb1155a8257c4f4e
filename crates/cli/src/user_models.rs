//! From settings, variables and stored keys to models that can be spoken with.

use std::collections::hash_map::RandomState;
use std::fs;
use std::future::Future;
use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use helve_config::{ConfigLayer, Dollars, KeyStore, ModelFactSettings, Settings};
use helve_models::script::ModelScript;
use helve_models::{
    FailureKind, MAX_JITTER, ModelCatalogue, ModelClient, ModelOverrides, ModelPreferences, ModelProvider,
    ModelPurpose, ModelRouter, ModelTarget, ProviderOverrides, RequestTimeouts, RetryStrategy, RouteError,
    Secret, Vendor, per_token,
};
use helve_protocol::ReasoningEffort;

use crate::failure::CliFailure;
use crate::setup::{CliSetup, SystemClock};
use crate::text;

/// A server on this machine answers at once, or is not there.
const LOCAL_SERVER_TIMEOUT: Duration = Duration::from_millis(700);

/// What a model's name begins with that is a script.
const SCRIPT_PREFIX: &str = "script:";

/// The models of this user.
pub(crate) struct UserModels {
    pub(crate) router: ModelRouter,
    pub(crate) client: Arc<ModelClient>,
    pub(crate) effort: Option<ReasoningEffort>,
    main: Option<String>,
    cwd: PathBuf,
    /// Found a moment ago, for whoever asks next: to look for local servers again would take as long again.
    found: Mutex<Option<ModelTarget>>,
}

/// A local server, and the models that it has or what is odd about it.
pub(crate) struct LocalServer {
    pub(crate) provider: Arc<ModelProvider>,
    pub(crate) models: Result<Vec<String>, helve_models::RequestFailure>,
}

impl LocalServer {
    pub(crate) fn is_running(&self) -> bool {
        self.models.as_ref().map_or_else(|failure| failure.kind != FailureKind::NotRunning, |_| true)
    }

    /// Why a server that runs can't be used, if it can't.
    pub(crate) fn oddity(&self) -> Option<String> {
        let why = match &self.models {
            Ok(models) if models.is_empty() => "has no models".to_owned(),
            Ok(_) => return None,
            Err(failure) => match failure.kind {
                FailureKind::NotRunning => return None,
                FailureKind::Auth => format!("wants a key: `helve login {}`", self.provider.name),
                _ => format!("does not tell its models: {failure}"),
            },
        };
        Some(format!("{} runs at {}, but {why}", self.provider.name, self.provider.shown_url()))
    }
}

impl UserModels {
    pub(crate) fn new(setup: &CliSetup) -> Result<UserModels, CliFailure> {
        let config = setup.config()?;
        let settings = &config.settings;
        let is_chosen =
            config.origin("limits.max_retry_time").is_some_and(|origin| origin.layer != ConfigLayer::BuiltIn);
        let patience = match settings.retry {
            helve_config::RetrySetting::Long if is_chosen => {
                RetryStrategy::Within(settings.limits.max_retry_time.into())
            }
            helve_config::RetrySetting::Long => RetryStrategy::Long,
            helve_config::RetrySetting::Short => RetryStrategy::Short,
        };
        UserModels::with(setup, patience)
    }

    /// For what somebody waits for.
    pub(crate) fn with_short_retries(setup: &CliSetup) -> Result<UserModels, CliFailure> {
        UserModels::with(setup, RetryStrategy::Short)
    }

    fn with(setup: &CliSetup, patience: RetryStrategy) -> Result<UserModels, CliFailure> {
        let settings = &setup.config()?.settings;
        let keys = stored_keys(setup)?;
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let stored = |provider: &str| keys.get(provider).map(Secret::new);
        let router = ModelRouter::new(wishes(settings), catalogue(settings)?, &variable, &stored);
        let timeouts = RequestTimeouts {
            connect: settings.timeouts.connect.into(),
            first_byte: settings.timeouts.first_byte.into(),
            idle: settings.timeouts.idle.into(),
            keep_alive: settings.timeouts.keep_alive.into(),
        };
        let client = ModelClient::new(Arc::new(SystemClock), Box::new(jitter), patience, timeouts);
        let effort = settings.effort;
        let (main, cwd) = (settings.model.clone(), setup.cwd.clone());
        Ok(UserModels { router, client: Arc::new(client), effort, main, cwd, found: Mutex::default() })
    }

    /// Whether the other names in the settings mean something too.
    pub(crate) fn check_names(&self, main: &ModelTarget) -> Result<(), CliFailure> {
        let named = |what: &str, error: &RouteError| CliFailure::usage(what, error, error.hint());
        for (purpose, what) in
            [(ModelPurpose::Fast, "models.fast"), (ModelPurpose::Summary, "models.summary")]
        {
            self.router.for_purpose(purpose, main).map_err(|error| named(what, &error))?;
        }
        self.router.fallbacks().map_err(|error| named("models.fallback", &error)).map(|_| ())
    }

    /// The same, with another model chosen.
    pub(crate) fn choosing(mut self, name: Option<String>) -> UserModels {
        if let Some(name) = name {
            self.router = self.router.choosing(&name);
            self.main = Some(name);
        }
        self
    }

    /// The same, with what its main model was found to be.
    pub(crate) fn with_found(self, target: ModelTarget) -> UserModels {
        UserModels { found: Mutex::new(Some(target)), ..self }
    }

    /// The model that does the work: the chosen one, else one whose key is there, else one of a local server that runs.
    pub(crate) async fn main(&self) -> Result<ModelTarget, CliFailure> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(found) = found {
            return Ok(found);
        }
        if let Some(file) = self.main.as_deref().and_then(|name| name.strip_prefix(SCRIPT_PREFIX)) {
            return script(&self.cwd.join(file), file);
        }
        if let Some(target) = self.router.main().map_err(|error| CliFailure::route(&error))? {
            return Ok(target);
        }
        let servers = self.servers().await;
        let usable = servers.iter().find_map(|server| Some((server, server.models.as_ref().ok()?.first()?)));
        match usable {
            Some((server, model)) => Ok(self.router.target(&server.provider, model)),
            None => {
                let odd = servers.iter().filter_map(LocalServer::oddity).collect();
                Err(CliFailure::route(&RouteError::NothingUsable { odd }))
            }
        }
    }

    /// The model that a name means, or why there is none.
    pub(crate) fn find(&self, name: &str) -> Result<ModelTarget, String> {
        match name.strip_prefix(SCRIPT_PREFIX) {
            Some(file) => script(&self.cwd.join(file), file).map_err(|failure| failure.to_string()),
            None => self.router.find(name).map_err(|error| error.to_string()),
        }
    }

    /// The local servers, with the models that they have.
    pub(crate) async fn servers(&self) -> Vec<LocalServer> {
        let mut asked = tokio::task::JoinSet::new();
        for (place, provider) in self.router.local().cloned().enumerate() {
            let client = self.client.clone();
            asked.spawn(async move {
                let models = client.models_of(&provider, LOCAL_SERVER_TIMEOUT).await;
                (place, LocalServer { provider, models })
            });
        }
        let mut servers = asked.join_all().await;
        servers.sort_by_key(|(place, _)| *place);
        servers.into_iter().map(|(_, server)| server).collect()
    }
}

/// Runs what waits for servers.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> Result<T, CliFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        CliFailure::new("no connections can be made", error, "Check the limits of this process.")
    })?;
    let done = runtime.block_on(work);
    // Whatever still runs aside is of no interest any more: nobody waits for it.
    runtime.shutdown_background();
    Ok(done)
}

pub(crate) fn stored_keys(setup: &CliSetup) -> Result<KeyStore, CliFailure> {
    KeyStore::read(setup.places.keys())
        .map_err(|error| CliFailure::keys("the stored keys can't be used", &error))
}

fn script(path: &Path, shown: &str) -> Result<ModelTarget, CliFailure> {
    let name = format!("{SCRIPT_PREFIX}{shown}");
    let shown = text::one_line(shown);
    let read = fs::read_to_string(path).map_err(|error| {
        CliFailure::usage(format!("the script {shown} can't be read"), error, "Check the path.")
    })?;
    let script = ModelScript::parse(&read).map_err(|error| {
        CliFailure::usage(
            format!("the script {shown} has a mistake"),
            error,
            "Fix it; docs/scripts.md explains the format.",
        )
    })?;
    Ok(ModelTarget::script(&name, script))
}

/// What is added to a wait; any will do, as long as others draw another.
fn jitter() -> Duration {
    let drawn = RandomState::new().build_hasher().finish();
    Duration::from_millis(drawn % u64::try_from(MAX_JITTER.as_millis()).unwrap_or(1_000))
}

fn wishes(settings: &Settings) -> ModelPreferences {
    let provider = |provider: &helve_config::ProviderSettings| ProviderOverrides {
        wire: provider.wire,
        base_url: provider.base_url.clone(),
        key_env: provider.key_env.clone(),
        auth: provider.auth,
        headers: provider.headers.iter().map(|(name, value)| (name.clone(), Secret::new(value))).collect(),
    };
    ModelPreferences {
        main: settings.model.clone(),
        fast: settings.models.fast.clone(),
        summary: settings.models.summary.clone(),
        fallback: settings.models.fallback.clone(),
        aliases: settings.models.aliases.clone(),
        providers: settings.providers.iter().map(|(name, wish)| (name.clone(), provider(wish))).collect(),
    }
}

fn catalogue(settings: &Settings) -> Result<ModelCatalogue, CliFailure> {
    let mut catalogue = ModelCatalogue::built_in();
    for (name, facts) in &settings.catalogue {
        // Known providers have one name in the catalogue.
        let (provider, model) = name.split_once('/').unwrap_or((name, ""));
        let provider = Vendor::find(provider).map_or(provider, |vendor| vendor.name);
        catalogue = catalogue.with(&format!("{provider}/{model}"), overrides(name, facts)?);
    }
    Ok(catalogue)
}

fn overrides(name: &str, facts: &ModelFactSettings) -> Result<ModelOverrides, CliFailure> {
    let price = |dollars: Option<Dollars>| match dollars.map(|dollars| per_token(dollars.0)) {
        Some(None) => {
            let what = format!("a price of {name} can't be counted exactly");
            let why = "it has more than six decimals for a million tokens";
            Err(CliFailure::usage(what, why, format!("Round it in the setting catalogue.{name:?}.")))
        }
        price => Ok(price.flatten()),
    };
    Ok(ModelOverrides {
        context: facts.context.map(u64::from),
        output: facts.output.map(u64::from),
        input_price: price(facts.input_price)?,
        output_price: price(facts.output_price)?,
        cache_read_price: price(facts.cache_read_price)?,
        cache_write_price: price(facts.cache_write_price)?,
        tools: facts.tools,
        thinking: facts.thinking,
        images: facts.images,
        pdf: facts.pdf,
        ..ModelOverrides::default()
    })
}
