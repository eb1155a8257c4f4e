//! What is known of models: how much they take, what they can do, what they cost.
//!
//! The built-in facts are a text of one line per model, sorted by name, that `cargo xtask catalogue` makes. A model is looked
//! up in the text by halving, so that a start that needs one model reads a dozen lines and not a thousand.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use helve_protocol::{Cost, TokenUsage};
use serde::{Deserialize, Serialize};

const BUILT_IN_CATALOGUE: &str = include_str!("../catalogue.tsv");

/// What a model is taken to read where nothing says so. Nine in ten models take this much. Too low a guess
/// only summarises early; too high a one makes requests fail.
pub const DEFAULT_CONTEXT_TOKENS: u64 = 32_768;

/// What a model is taken to write at most where nothing says so. Servers refuse a request that asks for more than they
/// allow, and hardly any allows less.
pub const DEFAULT_OUTPUT_TOKENS: u64 = 4_096;

/// What is known of one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelFacts {
    /// What people call it.
    pub title: String,
    /// How many tokens it holds, input and output together. See [`ModelFacts::context_limit`].
    pub context: Option<u64>,
    /// How many of them may be input, where that is less.
    pub input_limit: Option<u64>,
    /// How many tokens it writes at most in one answer. See [`ModelFacts::output_limit`].
    pub output: Option<u64>,
    /// `None` when they are not known, which is not the same as free.
    pub prices: Option<ModelPrices>,
    /// What it can do.
    pub abilities: ModelAbilities,
    /// Until when it knows the world: a date, or a part of one.
    pub knowledge: Option<String>,
    /// When it was released: a date, or a part of one.
    pub released: Option<String>,
    /// Such as `deprecated` or `beta`.
    pub status: Option<String>,
    /// Where these facts come from.
    pub origin: ModelFactsOrigin,
}

/// Where facts come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelFactsOrigin {
    /// All of them are built in.
    BuiltIn,
    /// At least one of them is from the user's settings.
    Settings,
    /// Nobody knows the model: these are safe defaults.
    Unknown,
}

/// What a model can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelAbilities {
    /// It can call tools.
    pub tools: bool,
    /// It can think before it answers.
    pub thinking: bool,
    /// It can look at images.
    pub images: bool,
    /// It can read PDF documents.
    pub pdf: bool,
    /// Answers that follow a JSON schema.
    pub structured: bool,
    /// Whether it takes a temperature.
    pub temperature: bool,
}

/// What a model costs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelPrices {
    /// The rates that hold where no tier does.
    pub base: TokenRates,
    /// In any order.
    pub tiers: Vec<PriceTier>,
}

/// Other rates for large requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceTier {
    /// They hold for the whole of a request whose input, cached or not, is more tokens than this.
    pub above: u64,
    /// The rates of such a request.
    pub rates: TokenRates,
}

/// What one token costs. See [`per_token`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRates {
    /// The price of one token of input that is not cached.
    pub input: Cost,
    /// The price of one token of output, thinking included.
    pub output: Cost,
    /// `None`: as much as input.
    pub cache_read: Option<Cost>,
    /// `None`: as much as input.
    pub cache_write: Option<Cost>,
}

/// Facts that the user gives. What is `None` stays as it is built in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelOverrides {
    /// What people call it.
    pub title: Option<String>,
    /// How many tokens it holds, input and output together.
    pub context: Option<u64>,
    /// How many of them may be input, where that is less.
    pub input_limit: Option<u64>,
    /// How many tokens it writes at most in one answer.
    pub output: Option<u64>,
    /// For one token, as are all prices here: see [`per_token`]. A model whose prices are not built in needs this one
    /// and `output_price`; one without the other says nothing.
    pub input_price: Option<Cost>,
    /// The price of output.
    pub output_price: Option<Cost>,
    /// The price of input that is read from the cache.
    pub cache_read_price: Option<Cost>,
    /// The price of input that is written to the cache.
    pub cache_write_price: Option<Cost>,
    /// Other rates for large requests.
    pub tiers: Option<Vec<PriceTier>>,
    /// It can call tools.
    pub tools: Option<bool>,
    /// It can think before it answers.
    pub thinking: Option<bool>,
    /// It can look at images.
    pub images: Option<bool>,
    /// It can read PDF documents.
    pub pdf: Option<bool>,
    /// It can answer in the form of a JSON schema.
    pub structured: Option<bool>,
    /// It takes a temperature.
    pub temperature: Option<bool>,
    /// Until when it knows the world: a date, or a part of one.
    pub knowledge: Option<String>,
    /// When it was released: a date, or a part of one.
    pub released: Option<String>,
    /// Such as `deprecated` or `beta`.
    pub status: Option<String>,
}

/// The price of one token, from the price of a million. `None` when it is no whole number of pico-dollars, that is, when
/// the price of a million has more than six decimals.
pub fn per_token(per_million: Cost) -> Option<Cost> {
    const MILLION: u64 = 1_000_000;
    let pico = per_million.pico_dollars();
    pico.is_multiple_of(MILLION).then(|| Cost::from_pico_dollars(pico / MILLION))
}

/// Every model that is built in or that the user tells of.
#[derive(Clone, Debug)]
pub struct ModelCatalogue {
    overrides: BTreeMap<String, ModelOverrides>,
}

impl ModelCatalogue {
    /// Costs nothing: facts are read when they are asked for.
    pub fn built_in() -> ModelCatalogue {
        ModelCatalogue { overrides: BTreeMap::new() }
    }

    /// Lays the user's facts over those of the model `name`, which is `provider/model`, or adds the model. What was laid
    /// over it before is forgotten.
    pub fn with(mut self, name: &str, overrides: ModelOverrides) -> ModelCatalogue {
        self.overrides.insert(name.to_owned(), overrides);
        self
    }

    /// What is known of a model; safe defaults if nothing is. A dated name that nobody knows has the facts of its
    /// undated one. What the user says of a name is not said of a longer one that has facts of its own.
    pub fn find(&self, provider: &str, model: &str) -> ModelFacts {
        let mut overrides = None;
        let mut built_in = None;
        for name in candidate_names(provider, model) {
            overrides = overrides.or_else(|| self.overrides.get(&name));
            built_in = line_of(BUILT_IN_CATALOGUE, &name).and_then(parse_line);
            if built_in.is_some() {
                break;
            }
        }
        let mut facts = built_in.map_or_else(|| ModelFacts::unknown(model), |(_, facts)| facts);
        if let Some(overrides) = overrides {
            overrides.apply(&mut facts);
        }
        // Last, since what the user pays for the model itself is not paid for this variant.
        if provider == OPENROUTER && model.ends_with(":free") {
            facts.prices = Some(ModelPrices::default());
        }
        facts
    }

    /// Every model as `provider/model`, sorted by that name.
    pub fn all(&self) -> impl Iterator<Item = (&str, ModelFacts)> {
        self.names().map(|(name, provider, model)| (name, self.find(provider, model)))
    }

    /// The providers that have a model of exactly this name.
    pub fn providers_of(&self, model: &str) -> Vec<&str> {
        self.names().filter(|(_, _, theirs)| *theirs == model).map(|(_, provider, _)| provider).collect()
    }

    /// The name of every model, whole and divided into provider and model.
    fn names(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let built_in = BUILT_IN_CATALOGUE.lines().filter_map(name_of);
        let names: BTreeSet<&str> = built_in.chain(self.overrides.keys().map(String::as_str)).collect();
        names
            .into_iter()
            .filter_map(|name| name.split_once('/').map(|(provider, model)| (name, provider, model)))
    }
}

impl ModelFacts {
    /// A model of which nothing is known is taken to call tools: if it can't, its server says so, while without tools it
    /// could do nothing here.
    fn unknown(model: &str) -> ModelFacts {
        ModelFacts {
            title: model.to_owned(),
            context: None,
            input_limit: None,
            output: None,
            prices: None,
            abilities: ModelAbilities { tools: true, temperature: true, ..ModelAbilities::default() },
            knowledge: None,
            released: None,
            status: None,
            origin: ModelFactsOrigin::Unknown,
        }
    }

    /// How many tokens it holds, as far as one may rely on it.
    pub fn context_limit(&self) -> u64 {
        self.context.unwrap_or(DEFAULT_CONTEXT_TOKENS)
    }

    /// How many tokens it may be asked to write, as far as one may rely on it.
    pub fn output_limit(&self) -> u64 {
        self.output.unwrap_or(DEFAULT_OUTPUT_TOKENS)
    }

    /// What a request cost. `None` when the prices are not known.
    pub fn cost(&self, usage: TokenUsage) -> Option<Cost> {
        self.prices.as_ref().map(|prices| prices.cost(usage))
    }
}

impl ModelPrices {
    /// What a request costs, exactly. It saturates instead of wrapping.
    pub fn cost(&self, usage: TokenUsage) -> Cost {
        let rates = self.rates_for(usage);
        let costs = [
            rates.input.times(usage.input),
            rates.output.times(usage.output),
            rates.cache_read.unwrap_or(rates.input).times(usage.cache_read),
            rates.cache_write.unwrap_or(rates.input).times(usage.cache_write),
        ];
        costs.into_iter().sum()
    }

    fn rates_for(&self, usage: TokenUsage) -> TokenRates {
        let input = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
        let reached = self.tiers.iter().filter(|tier| input > tier.above);
        reached.max_by_key(|tier| tier.above).map_or(self.base, |tier| tier.rates)
    }
}

impl ModelOverrides {
    fn apply(&self, facts: &mut ModelFacts) {
        facts.prices = self.prices(facts.prices.take());
        // Taken apart, so that a new field is not forgotten here.
        let ModelFacts {
            title,
            context,
            input_limit,
            output,
            prices: _,
            abilities,
            knowledge,
            released,
            status,
            origin,
        } = facts;
        *origin = ModelFactsOrigin::Settings;
        lay_over(title, &self.title);
        lay_over_option(context, &self.context);
        lay_over_option(input_limit, &self.input_limit);
        lay_over_option(output, &self.output);
        lay_over_option(knowledge, &self.knowledge);
        lay_over_option(released, &self.released);
        lay_over_option(status, &self.status);
        let ModelAbilities { tools, thinking, images, pdf, structured, temperature } = abilities;
        lay_over(tools, &self.tools);
        lay_over(thinking, &self.thinking);
        lay_over(images, &self.images);
        lay_over(pdf, &self.pdf);
        lay_over(structured, &self.structured);
        lay_over(temperature, &self.temperature);
    }

    fn prices(&self, known: Option<ModelPrices>) -> Option<ModelPrices> {
        let mut prices = match (known, self.input_price, self.output_price) {
            (Some(known), _, _) => known,
            (None, Some(_), Some(_)) => ModelPrices::default(),
            (None, _, _) => return None,
        };
        let TokenRates { input, output, cache_read, cache_write } = &mut prices.base;
        lay_over(input, &self.input_price);
        lay_over(output, &self.output_price);
        lay_over_option(cache_read, &self.cache_read_price);
        lay_over_option(cache_write, &self.cache_write_price);
        lay_over(&mut prices.tiers, &self.tiers);
        Some(prices)
    }
}

fn lay_over<T: Clone>(fact: &mut T, given: &Option<T>) {
    if let Some(given) = given {
        fact.clone_from(given);
    }
}

fn lay_over_option<T: Clone>(fact: &mut Option<T>, given: &Option<T>) {
    if given.is_some() {
        fact.clone_from(given);
    }
}

const OPENROUTER: &str = "openrouter";

/// The names that stand for the same model, the surest first: as it is; without a variant such as `:nitro`, which only
/// OpenRouter has; without its date; and the one that is always the latest.
fn candidate_names(provider: &str, model: &str) -> [String; 4] {
    let plain = match model.rsplit_once(':') {
        Some((plain, _)) if provider == OPENROUTER => plain,
        _ => model,
    };
    let stem = plain.strip_suffix("-latest").or_else(|| without_date(plain)).unwrap_or(plain);
    let latest = format!("{stem}-latest");
    [model, plain, stem, &latest].map(|spelling| format!("{provider}/{spelling}"))
}

/// `claude-sonnet-4-5` from `claude-sonnet-4-5-20250929`, `gpt-4o` from `gpt-4o-2024-08-06`. Shorter numbers, as in
/// `mistral-large-2407`, tell different models apart.
fn without_date(model: &str) -> Option<&str> {
    // A letter stands for a digit.
    const DATES: [&str; 2] = ["-20YYMMDD", "-20YY-MM-DD"];
    let fits = |(pattern, byte): (u8, u8)| {
        if pattern.is_ascii_alphabetic() { byte.is_ascii_digit() } else { byte == pattern }
    };
    DATES.iter().find_map(|date| {
        let (stem, end) = model.split_at_checked(model.len().checked_sub(date.len())?)?;
        date.bytes().zip(end.bytes()).all(fits).then_some(stem)
    })
}

/// The line of a model, found by halving: lines are sorted by their names.
fn line_of<'a>(lines: &'a str, name: &str) -> Option<&'a str> {
    let mut left = lines;
    while !left.is_empty() {
        let (before, line, after) = middle_line(left)?;
        let found = line.split('\t').next().unwrap_or(line);
        left = match name.cmp(found) {
            Ordering::Less => before,
            Ordering::Equal => return Some(line),
            Ordering::Greater => after,
        };
    }
    None
}

/// The line around the middle of a text, with what stands before and after it.
fn middle_line(text: &str) -> Option<(&str, &str, &str)> {
    let (first, second) = text.as_bytes().split_at_checked(text.len() / 2)?;
    let start = first.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let end =
        second.iter().position(|byte| *byte == b'\n').map_or(text.len(), |newline| first.len() + newline);
    // A newline is one byte and never part of a character, so that these are always whole.
    Some((text.get(..start)?, text.get(start..end)?, text.get(end + 1..).unwrap_or_default()))
}

/// The name in a line; comments have none.
fn name_of(line: &str) -> Option<&str> {
    line.split('\t').next().filter(|_| !line.starts_with('#'))
}

/// Reads a line: the model's name and its facts, in the order of the columns. `None` if it is not such a line.
fn parse_line(line: &str) -> Option<(&str, ModelFacts)> {
    let mut columns = line.split('\t');
    let mut next = || columns.next();
    let name = next()?;
    let (_, model) = name.split_once('/')?;
    let facts = ModelFacts {
        title: text(next()?).unwrap_or_else(|| model.to_owned()),
        context: optional(next()?, tokens)?,
        input_limit: optional(next()?, tokens)?,
        output: optional(next()?, tokens)?,
        prices: read_prices([next()?, next()?, next()?, next()?], next()?)?,
        abilities: read_abilities(next()?)?,
        knowledge: text(next()?),
        released: text(next()?),
        status: text(next()?),
        origin: ModelFactsOrigin::BuiltIn,
    };
    next().is_none().then_some((name, facts))
}

fn text(column: &str) -> Option<String> {
    optional(column, |text| Some(text.to_owned())).flatten()
}

/// `Some(None)` for an empty column, `None` for one that can't be read.
fn optional<T>(column: &str, read: impl Fn(&str) -> Option<T>) -> Option<Option<T>> {
    if column.is_empty() { Some(None) } else { read(column).map(Some) }
}

fn tokens(column: &str) -> Option<u64> {
    column.parse().ok()
}

fn price(column: &str) -> Option<Cost> {
    per_token(column.parse().ok()?)
}

fn read_prices(base: [&str; 4], tiers: &str) -> Option<Option<ModelPrices>> {
    if base.iter().all(|column| column.is_empty()) && tiers.is_empty() {
        return Some(None);
    }
    let tiers = tiers.split(';').filter(|tier| !tier.is_empty()).map(read_tier).collect::<Option<_>>()?;
    Some(Some(ModelPrices { base: read_rates(base)?, tiers }))
}

fn read_rates([input, output, cache_read, cache_write]: [&str; 4]) -> Option<TokenRates> {
    Some(TokenRates {
        input: price(input)?,
        output: price(output)?,
        cache_read: optional(cache_read, price)?,
        cache_write: optional(cache_write, price)?,
    })
}

/// A tier is `200000:2.5/15/0.25/`: its bound, and its rates in the order of the columns.
fn read_tier(tier: &str) -> Option<PriceTier> {
    let (above, rates) = tier.split_once(':')?;
    let rates: Vec<&str> = rates.split('/').collect();
    Some(PriceTier { above: tokens(above)?, rates: read_rates(rates.try_into().ok()?)? })
}

fn read_abilities(column: &str) -> Option<ModelAbilities> {
    let mut abilities = ModelAbilities::default();
    for ability in column.split(',').filter(|ability| !ability.is_empty()) {
        let has = match ability {
            "tools" => &mut abilities.tools,
            "thinking" => &mut abilities.thinking,
            "images" => &mut abilities.images,
            "pdf" => &mut abilities.pdf,
            "structured" => &mut abilities.structured,
            "temperature" => &mut abilities.temperature,
            _ => return None,
        };
        *has = true;
    }
    Some(abilities)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: &str = "lab/m-1\tM One\t200000\t\t8192\t3\t15.0\t0.30\t\t200000:6/22.5/0.6/;500000:9/30//\ttools,pdf\t2025-03\t\tbeta";

    fn pico(amount: u64) -> Cost {
        Cost::from_pico_dollars(amount)
    }

    #[test]
    fn a_line_has_facts_in_fixed_columns() {
        let rates = |input, output, cache_read: Option<u64>| TokenRates {
            input: pico(input),
            output: pico(output),
            cache_read: cache_read.map(pico),
            cache_write: None,
        };
        let (name, facts) = parse_line(LINE).unwrap();
        assert_eq!(name, "lab/m-1");
        let expected = ModelFacts {
            title: "M One".to_owned(),
            context: Some(200_000),
            input_limit: None,
            output: Some(8192),
            prices: Some(ModelPrices {
                base: rates(3_000_000, 15_000_000, Some(300_000)),
                tiers: vec![
                    PriceTier { above: 200_000, rates: rates(6_000_000, 22_500_000, Some(600_000)) },
                    PriceTier { above: 500_000, rates: rates(9_000_000, 30_000_000, None) },
                ],
            }),
            abilities: ModelAbilities { tools: true, pdf: true, ..ModelAbilities::default() },
            knowledge: Some("2025-03".to_owned()),
            released: None,
            status: Some("beta".to_owned()),
            origin: ModelFactsOrigin::BuiltIn,
        };
        assert_eq!(facts, expected);
    }

    #[test]
    fn a_line_with_anything_else_in_it_is_refused() {
        for (right, wrong) in [
            ("lab/m-1", "m-1"),
            ("200000\t", "many\t"),
            ("\t3\t", "\t\t"),
            ("\t3\t", "\t3e-1\t"),
            ("\t3\t", "\t0.0000001\t"),
            ("/22.5/", "/"),
            (":6/", "/6/"),
            ("pdf", "cooking"),
            ("\tbeta", ""),
            ("\tbeta", "\tbeta\t"),
        ] {
            let line = LINE.replacen(right, wrong, 1);
            assert_ne!(line, LINE);
            assert_eq!(parse_line(&line), None, "{line}");
        }
    }

    #[test]
    fn every_built_in_line_can_be_read_and_stands_in_its_place() {
        let lines: Vec<&str> = BUILT_IN_CATALOGUE.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(lines.len() > 1000, "{}", lines.len());
        for pair in lines.windows(2) {
            assert!(name_of(pair[0]) < name_of(pair[1]), "{} {}", pair[0], pair[1]);
        }
        for line in lines {
            let (name, _) = parse_line(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(line_of(BUILT_IN_CATALOGUE, name), Some(line));
        }
    }

    #[test]
    fn only_whole_dates_are_taken_off() {
        for (dated, stem) in [
            ("claude-sonnet-4-5-20250929", Some("claude-sonnet-4-5")),
            ("gpt-4o-2024-08-06", Some("gpt-4o")),
            ("mistral-large-2407", None),
            ("gpt-4-0613", None),
            ("thing-19990101", None),
            ("thing-120250929", None),
            ("gpt-4o-2024-08-0é", None),
            ("é2024-08-06", None),
            ("20250929", None),
        ] {
            assert_eq!(without_date(dated), stem, "{dated}");
        }
    }

    proptest! {
        #[test]
        fn halving_finds_what_reading_all_lines_finds(
            names in prop::collection::btree_set("[a-cé]{0,3}/[a-dé-]{0,4}", 0..30),
            comment: bool,
            newline_at_end: bool,
            sought in "[a-cé]{0,3}/[a-dé-]{0,4}",
        ) {
            let mut lines: Vec<String> = names.iter().map(|name| format!("{name}\tsomething é")).collect();
            if comment {
                lines.insert(0, "# what follows".to_owned());
            }
            let mut text = lines.join("\n");
            if newline_at_end {
                text.push('\n');
            }
            for name in names.iter().chain([&sought]) {
                let expected = names.get(name).map(|name| format!("{name}\tsomething é"));
                prop_assert_eq!(line_of(&text, name), expected.as_deref());
            }
        }

        #[test]
        fn looking_in_any_text_ends(text: String, name: String) {
            if let Some(line) = line_of(&text, &name) {
                prop_assert_eq!(line.split('\t').next(), Some(name.as_str()));
            }
        }

        #[test]
        fn any_line_is_read_or_refused(line in "[a/]{0,3}(\t[0-9./:;a-z,é]{0,6}){12,15}", any: String) {
            for line in [line, any] {
                if let Some((name, _)) = parse_line(&line) {
                    prop_assert_eq!(line.split('\t').count(), 14);
                    prop_assert!(line.starts_with(name));
                }
            }
        }

        #[test]
        fn a_price_of_six_decimals_is_exact(whole in 0..1_000_000_u64, millionths in 0..1_000_000_u64) {
            prop_assert_eq!(price(&format!("{whole}.{millionths:06}")), Some(pico(whole * 1_000_000 + millionths)));
        }
    }
}
