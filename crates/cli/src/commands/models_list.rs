//! `helve models list`

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use helve_models::{
    KeyOrigin, KeyPlacement, ModelFacts, ModelFactsOrigin, ModelProvider, ModelPurpose, ModelTarget,
    ServerLocation, TargetRoute, TokenRates, Vendor,
};
use helve_tui::ModelChoice;
use serde_json::{Value, json};

use crate::console::{ConsoleOutput, DIM, GOOD, HEADING, WARN};
use crate::failure::{CliFailure, ProgramExit};
use crate::setup::CliSetup;
use crate::text::{count, fit, one_line, pad};
use crate::user_models::{UserModels, block_on};

pub(crate) struct ModelListOptions {
    pub(crate) provider: Option<String>,
    pub(crate) all: bool,
    pub(crate) json: bool,
}

/// Whether a provider can be used here, and why or why not.
struct ProviderState {
    provider: Arc<ModelProvider>,
    usable: bool,
    why: String,
    /// What a local server says it has.
    models: Vec<String>,
}

struct ListedModel {
    name: String,
    facts: ModelFacts,
    usable: bool,
    why_not: Option<String>,
}

pub(crate) fn run(
    options: &ModelListOptions,
    setup: &CliSetup,
    screen: &mut ConsoleOutput,
) -> Result<ProgramExit, CliFailure> {
    let models = UserModels::new(setup)?;
    let wanted = match &options.provider {
        Some(name) => {
            Some(models.router.provider(name).map_err(|error| CliFailure::route(&error))?.name.clone())
        }
        None => None,
    };
    let (states, main) = block_on(async { (states(&models).await, models.main().await) })?;
    let states: Vec<ProviderState> = states
        .into_iter()
        .filter(|state| wanted.as_ref().is_none_or(|name| state.provider.name == *name))
        .collect();
    let listed = listed(
        &models,
        &states,
        if options.all || options.json { ModelFilter::All } else { ModelFilter::Current },
    );
    let chosen = main.as_ref().ok().map(|main| chosen(&models, main)).unwrap_or_default();
    if options.json {
        writeln!(screen, "{:#}", as_json(&states, &listed, &chosen))?;
        return Ok(ProgramExit::Success);
    }
    show_providers(&states, options, screen)?;
    show_models(&listed, &chosen, options, screen)?;
    if let (Err(CliFailure::Explained { why, hint, .. }), None) = (&main, &wanted) {
        writeln!(screen, "\n{WARN}Nothing can be asked yet{WARN:#}: {}.\n{}", one_line(why), one_line(hint))?;
    }
    Ok(ProgramExit::Success)
}

/// The models that a person may choose from: those that can be used first, old ones not at all.
pub(super) async fn choices(models: &UserModels) -> Vec<ModelChoice> {
    let states = states(models).await;
    let why = |name: &str| {
        let provider = name.split_once('/').map(|(provider, _)| provider);
        let state = states.iter().find(|state| Some(state.provider.name.as_str()) == provider);
        state.map(|state| state.why.clone()).unwrap_or_default()
    };
    let choice = |model: ListedModel| ModelChoice {
        context: model.facts.context.map(tokens).unwrap_or_default(),
        prices: model.facts.prices.as_ref().map(|prices| {
            let price = |price| format!("${}", per_million(price));
            (price(prices.base.input), price(prices.base.output))
        }),
        is_usable: model.usable,
        why: why(&model.name),
        name: model.name,
    };
    let listed = listed(models, &states, ModelFilter::All).into_iter();
    let mut choices: Vec<ModelChoice> =
        listed.filter(|model| !is_old(&model.facts) || !is_of_catalogue(model)).map(choice).collect();
    choices.sort_by_key(|choice| !choice.is_usable);
    choices
}

/// What a local server says it has is offered, whatever the catalogue thinks of it.
fn is_of_catalogue(model: &ListedModel) -> bool {
    model.facts.origin != ModelFactsOrigin::Unknown
}

fn is_old(facts: &ModelFacts) -> bool {
    facts.status.is_some() || !facts.abilities.tools
}

/// Which model does what.
fn chosen(models: &UserModels, main: &ModelTarget) -> BTreeMap<String, Vec<&'static str>> {
    let mut chosen: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    chosen.entry(main.name.to_string()).or_default().push("main");
    for (purpose, word) in [(ModelPurpose::Fast, "fast"), (ModelPurpose::Summary, "summary")] {
        if let Ok(target) = models.router.for_purpose(purpose, main) {
            chosen.entry(target.name.to_string()).or_default().push(word);
        }
    }
    for target in models.router.fallbacks().unwrap_or_default() {
        chosen.entry(target.name.to_string()).or_default().push("fallback");
    }
    chosen
}

async fn states(models: &UserModels) -> Vec<ProviderState> {
    let servers = models.servers().await;
    let state = |provider: &Arc<ModelProvider>| {
        let found = servers.iter().find(|server| server.provider.name == provider.name);
        let served = found.and_then(|server| server.models.as_ref().ok()).cloned().unwrap_or_default();
        let (usable, why) = match (provider.place, &provider.key) {
            _ if provider.fault.is_some() => {
                (false, provider.fault.as_ref().map(ToString::to_string).unwrap_or_default())
            }
            (ServerLocation::Local, _) => {
                let url = provider.shown_url();
                match found {
                    Some(server) if server.oddity().is_some() => {
                        (server.models.is_ok(), server.oddity().unwrap_or_default())
                    }
                    Some(server) if server.is_running() => (true, format!("running at {url}")),
                    _ => (false, format!("not running at {url}")),
                }
            }
            (_, Some(key)) => (true, key_words(&key.origin)),
            (_, None) if provider.auth == KeyPlacement::None => {
                (true, format!("no key needed, at {}", provider.shown_url()))
            }
            (_, None) => (false, format!("no key: {}", missing(provider))),
        };
        ProviderState { provider: provider.clone(), usable, why, models: served }
    };
    models.router.providers().map(state).collect()
}

fn key_words(origin: &KeyOrigin) -> String {
    match origin {
        KeyOrigin::Variable(name) => format!("key from {name}"),
        KeyOrigin::Stored => "key from `helve login`".to_owned(),
    }
}

fn missing(provider: &ModelProvider) -> String {
    let variables = &provider.key_names;
    let login = format!("`helve login {}`", provider.name);
    if variables.is_empty() { login } else { format!("set {}, or {login}", variables.join(" or ")) }
}

/// Which models are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModelFilter {
    /// Those that can be used and are not old.
    Current,
    All,
}

/// The models of the catalogue and of local servers.
fn listed(models: &UserModels, states: &[ProviderState], filter: ModelFilter) -> Vec<ListedModel> {
    let mut listed: Vec<ListedModel> = Vec::new();
    for state in states {
        for model in &state.models {
            let target = models.router.target(&state.provider, model);
            let name = target.name.to_string();
            listed.push(ListedModel { name, facts: target.facts, usable: true, why_not: None });
        }
    }
    for (name, facts) in models.router.catalogue().all() {
        let provider = name.split_once('/').map_or(name, |(provider, _)| provider);
        let Some(state) = states.iter().find(|state| state.provider.name == provider) else { continue };
        if filter == ModelFilter::All || (state.usable && !is_old(&facts)) {
            let why_not = (!state.usable).then(|| state.why.clone());
            listed.push(ListedModel { name: name.to_owned(), facts, usable: state.usable, why_not });
        }
    }
    // The newest of each provider first.
    let provider_of = |model: &ListedModel| {
        let provider = model.name.split_once('/').map(|(provider, _)| provider);
        states.iter().position(|state| Some(state.provider.name.as_str()) == provider)
    };
    listed.sort_by_cached_key(|model| {
        (provider_of(model), std::cmp::Reverse(model.facts.released.clone()), model.name.clone())
    });
    listed
}

fn show_providers(
    states: &[ProviderState],
    options: &ModelListOptions,
    screen: &mut ConsoleOutput,
) -> Result<(), CliFailure> {
    writeln!(screen, "{DIM}PROVIDERS{DIM:#}")?;
    let width = states.iter().map(|state| state.provider.name.len()).max().unwrap_or(0);
    let room = screen.width().map(|columns| columns.saturating_sub(width + 4).max(20));
    // Whoever can use some does not want to read about all the others.
    let in_short = !options.all && options.provider.is_none() && states.iter().any(|state| state.usable);
    let (others, shown): (Vec<&ProviderState>, Vec<&ProviderState>) =
        states.iter().partition(|state| in_short && is_unasked(state));
    let usable = shown.iter().filter(|state| state.usable);
    for state in usable.chain(shown.iter().filter(|state| !state.usable)) {
        let (style, mark) = if state.usable { (GOOD, "✓") } else { (DIM, "·") };
        let name = pad(&state.provider.name, width);
        let why = one_line(&state.why);
        let why = room.map_or(why.clone(), |room| fit(&why, room));
        writeln!(screen, "{style}{mark}{style:#} {HEADING}{name}{HEADING:#}  {why}")?;
    }
    if !others.is_empty() {
        let them = count(others.len(), "other provider", "other providers");
        writeln!(screen, "{DIM}· {them} without a key or not running: --all shows what they need{DIM:#}")?;
    }
    Ok(())
}

/// A provider that the user has said nothing about: one that is known, and has no key or does not run.
fn is_unasked(state: &ProviderState) -> bool {
    let is_known = state.provider.vendor.is_some() && state.provider.fault.is_none();
    is_known && !state.usable && !state.why.contains("runs at")
}

fn show_models(
    models: &[ListedModel],
    chosen: &BTreeMap<String, Vec<&str>>,
    options: &ModelListOptions,
    screen: &mut ConsoleOutput,
) -> Result<(), CliFailure> {
    if models.is_empty() {
        return Ok(());
    }
    let longest = models.iter().map(|model| model.name.chars().count()).max().unwrap_or(0);
    let columns = screen.width().unwrap_or(usize::MAX);
    // On a narrow screen the name is cut, and what it can do is left out.
    let width = longest.min(60).min(columns.saturating_sub(46).max(20));
    let room = columns.saturating_sub(width + 46);
    let heading = format!("{}  CONTEXT   OUTPUT     IN $/M    OUT $/M  CAN", pad("MODELS", width + 2));
    writeln!(screen, "\n{DIM}{}{DIM:#}", fit(&heading, columns))?;
    for model in models {
        let (style, mark) = if model.usable { (GOOD, "✓") } else { (DIM, "·") };
        let facts = &model.facts;
        let price = |of: fn(&TokenRates) -> helve_protocol::Cost| {
            facts.prices.as_ref().map_or("?".to_owned(), |prices| per_million(of(&prices.base)))
        };
        let words =
            chosen.get(&model.name).map(|words| format!("[{}] ", words.join(", "))).unwrap_or_default();
        let can = format!("{words}{}", abilities(facts).join(", "));
        let can = if room < 4 { String::new() } else { fit(&can, room) };
        writeln!(
            screen,
            "{style}{mark}{style:#} {}  {:>7}  {:>7}  {:>9}  {:>9}  {can}",
            pad(&fit(&one_line(&model.name), width), width),
            facts.context.map_or("?".to_owned(), tokens),
            facts.output.map_or("?".to_owned(), tokens),
            price(|rates| rates.input),
            price(|rates| rates.output),
        )?;
    }
    let unknown = models.iter().filter(|model| model.facts.origin == ModelFactsOrigin::Unknown).count();
    if unknown > 0 {
        let them = count(unknown, "model is", "models are");
        writeln!(
            screen,
            "{DIM}{them} not in the catalogue: careful limits are assumed; see catalogue in the settings{DIM:#}"
        )?;
    }
    if !options.all && options.provider.is_none() {
        writeln!(
            screen,
            "{DIM}`helve models list --all` shows those that can't be used here, and old ones{DIM:#}"
        )?;
    }
    Ok(())
}

fn abilities(facts: &ModelFacts) -> Vec<&'static str> {
    let can = &facts.abilities;
    let words = [(can.tools, "tools"), (can.thinking, "thinking"), (can.images, "images"), (can.pdf, "pdf")];
    let status =
        facts.status.iter().map(|status| if status == "deprecated" { "deprecated" } else { "preview" });
    words.into_iter().filter(|(can, _)| *can).map(|(_, word)| word).chain(status).collect()
}

/// `200k`, `1M`
fn tokens(count: u64) -> String {
    match count {
        0..10_000 => count.to_string(),
        10_000..1_000_000 => format!("{}k", count / 1_000),
        _ if count.is_multiple_of(1_000_000) => format!("{}M", count / 1_000_000),
        _ => format!("{}.{:02}M", count / 1_000_000, count % 1_000_000 / 10_000),
    }
}

fn per_million(price: helve_protocol::Cost) -> String {
    price.times(1_000_000).to_string().trim_start_matches('$').to_owned()
}

fn as_json(states: &[ProviderState], models: &[ListedModel], chosen: &BTreeMap<String, Vec<&str>>) -> Value {
    let main = chosen.iter().find(|(_, words)| words.contains(&"main")).map(|(name, _)| name);
    let providers: Vec<Value> = states
        .iter()
        .map(|state| {
            let ModelProvider { name, wire, vendor, .. } = &*state.provider;
            json!({
                "name": name,
                "title": vendor.map_or(name.as_str(), |vendor: &Vendor| vendor.title),
                "wire": format!("{wire:?}").to_ascii_lowercase(),
                "base_url": state.provider.shown_url(),
                "usable": state.usable,
                "why": state.why,
            })
        })
        .collect();
    let models: Vec<Value> = models
        .iter()
        .map(|model| {
            let facts = &model.facts;
            let prices = facts.prices.as_ref().map(|prices| {
                let TokenRates { input, output, cache_read, cache_write } = &prices.base;
                json!({
                    "input": per_million(*input),
                    "output": per_million(*output),
                    "cache_read": cache_read.map(per_million),
                    "cache_write": cache_write.map(per_million),
                })
            });
            json!({
                "name": model.name,
                "title": facts.title,
                "context": facts.context,
                "output": facts.output,
                "prices_per_million": prices,
                "can": abilities_of(facts),
                "knowledge": facts.knowledge,
                "released": facts.released,
                "status": facts.status,
                "known": facts.origin != ModelFactsOrigin::Unknown,
                "chosen_for": chosen.get(&model.name).cloned().unwrap_or_default(),
                "usable": model.usable,
                "why_not": model.why_not,
            })
        })
        .collect();
    json!({"main": main, "providers": providers, "models": models})
}

fn abilities_of(facts: &ModelFacts) -> Value {
    let can = &facts.abilities;
    json!({
        "tools": can.tools,
        "thinking": can.thinking,
        "images": can.images,
        "pdf": can.pdf,
        "structured_output": can.structured,
    })
}

/// Where a model is reached, for people.
pub(super) fn place_of(target: &ModelTarget) -> String {
    match &target.via {
        TargetRoute::Provider(provider) => provider.shown_url(),
        TargetRoute::Script(_) => "a script".to_owned(),
        TargetRoute::Recorded(_) => "a recording".to_owned(),
    }
}
