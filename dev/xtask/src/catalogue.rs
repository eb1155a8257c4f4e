//! `cargo xtask catalogue FILE`: makes the built-in catalogue of models out of what models.dev and litellm say.
//!
//! models.dev comes first; litellm fills what it leaves out and adds models that it lacks.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::run::root;

/// Our name of each provider, with the names that it has in models.dev and in litellm.
const PROVIDERS: [(&str, &str, Option<&str>); 16] = [
    ("anthropic", "anthropic", Some("anthropic")),
    ("cerebras", "cerebras", Some("cerebras")),
    ("deepinfra", "deepinfra", Some("deepinfra")),
    ("deepseek", "deepseek", Some("deepseek")),
    ("fireworks", "fireworks-ai", Some("fireworks_ai")),
    ("gemini", "google", Some("gemini")),
    ("groq", "groq", Some("groq")),
    ("mistral", "mistral", Some("mistral")),
    ("moonshot", "moonshotai", Some("moonshot")),
    ("openai", "openai", Some("openai")),
    ("openrouter", "openrouter", Some("openrouter")),
    ("qwen", "alibaba", Some("dashscope")),
    ("together", "togetherai", Some("together_ai")),
    ("xai", "xai", Some("xai")),
    ("zai", "zai", Some("zai")),
    ("zhipu", "zhipuai", None),
];

/// Models that people still use and that neither source has under its maker's name. Their makers' prices are not known.
const ADDED: [(&str, &str); 2] = [
    (
        "qwen/qwen-coder-plus",
        "Qwen Coder Plus\t131072\t\t8192\t\t\t\t\t\ttools,structured,temperature\t\t2024-09-18\t",
    ),
    ("zhipu/glm-4-plus", "GLM-4 Plus\t128000\t\t4096\t\t\t\t\t\ttools,temperature\t\t2024-08-01\t"),
];

/// Words in the names of models that make or judge something else than a conversation in text.
const NOT_FOR_CHAT: [&str; 20] = [
    "asr",
    "audio",
    "embed",
    "embedding",
    "flux",
    "guard",
    "image",
    "imagine",
    "live",
    "livetranslate",
    "llamaguard",
    "lyria",
    "moderation",
    "ocr",
    "olmocr",
    "realtime",
    "safety",
    "transcribe",
    "tts",
    "whisper",
];

/// How names in litellm begin that are no models: classes of prices, and patterns for models that users trained.
const NOT_A_MODEL: [&str; 2] = ["together-ai-", "ft:"];

const COLUMNS: &str = "#name\ttitle\tcontext\tinput limit\toutput\tinput price\toutput price\tcache read\tcache write\ttiers\tabilities\tknowledge\treleased\tstatus";

/// The facts as they come.
#[derive(Deserialize)]
struct Facts<'a> {
    sources: Vec<Source>,
    #[serde(borrow)]
    models_dev: Vec<Entry<'a>>,
    #[serde(borrow)]
    litellm: Vec<Entry<'a>>,
}

#[derive(Deserialize)]
struct Source {
    repo: String,
    commit: String,
}

/// A model in either source. Numbers stay the text that they are: a float would not be exact.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry<'a> {
    provider: String,
    id: String,
    name: Option<String>,
    #[serde(borrow)]
    context: Option<&'a RawValue>,
    #[serde(borrow)]
    input_limit: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    cost_in: Option<&'a RawValue>,
    #[serde(borrow)]
    cost_out: Option<&'a RawValue>,
    #[serde(borrow)]
    cache_read: Option<&'a RawValue>,
    #[serde(borrow)]
    cache_write: Option<&'a RawValue>,
    modalities_in: Option<Vec<String>>,
    modalities_out: Option<Vec<String>>,
    tools: Option<bool>,
    reasoning: Option<bool>,
    /// Only litellm says so in this way.
    vision: Option<bool>,
    structured: Option<bool>,
    temperature: Option<bool>,
    knowledge: Option<String>,
    released: Option<String>,
    status: Option<String>,
    /// Only litellm has it.
    mode: Option<String>,
}

/// The catalogue, and the models whose prices could not be kept.
struct Made {
    text: String,
    models: usize,
    inexact: Vec<String>,
}

pub(crate) fn make(facts: &str) -> Result<(), String> {
    let text = fs::read_to_string(facts).map_err(|error| format!("{facts} can't be read: {error}"))?;
    let Made { text, models, inexact } = made_from(&text)?;
    let path = path();
    fs::write(&path, text).map_err(|error| format!("{} can't be written: {error}", path.display()))?;
    println!("{models} models in {}", path.display());
    for name in inexact {
        println!("left out the prices of {name}: they have more than six decimals");
    }
    Ok(())
}

fn path() -> PathBuf {
    root().join("crates/models/catalogue.tsv")
}

fn made_from(text: &str) -> Result<Made, String> {
    let facts: Facts =
        serde_json::from_str(text).map_err(|error| format!("the facts can't be read: {error}"))?;
    let mut made = Made { text: head(&facts.sources), models: 0, inexact: Vec::new() };
    let mut lines: BTreeMap<String, String> = BTreeMap::new();
    for (name, entry) in merged(facts).iter().filter(|(_, entry)| entry.is_for_chat()) {
        lines.insert(name.clone(), line(name, entry, &mut made.inexact)?);
    }
    for (name, rest) in ADDED {
        lines.entry(name.to_owned()).or_insert_with(|| format!("{name}\t{rest}\n"));
    }
    made.models = lines.len();
    made.text.extend(lines.into_values());
    Ok(made)
}

fn head(sources: &[Source]) -> String {
    let sources: Vec<String> = sources.iter().map(|from| format!("{} {}", from.repo, from.commit)).collect();
    format!(
        "# Made by `cargo xtask catalogue`, not by hand. Dollars per million tokens. Facts: {}\n{COLUMNS}\n",
        sources.join(", ")
    )
}

/// Every model by our name for it.
fn merged(facts: Facts<'_>) -> BTreeMap<String, Entry<'_>> {
    let mut models: BTreeMap<String, Entry> = BTreeMap::new();
    for entry in facts.models_dev {
        if let Some((ours, ..)) = PROVIDERS.iter().find(|(_, theirs, _)| *theirs == entry.provider) {
            models.entry(format!("{ours}/{}", entry.id)).or_default().fill(entry);
        }
    }
    for entry in facts.litellm.into_iter().filter(Entry::is_model_of_litellm) {
        if let Some((ours, ..)) =
            PROVIDERS.iter().find(|(.., theirs)| *theirs == Some(entry.provider.as_str()))
        {
            let prefix = format!("{}/", entry.provider);
            let id = entry.id.strip_prefix(&prefix).unwrap_or(&entry.id);
            models.entry(format!("{ours}/{id}")).or_default().fill(entry.without_zero_prices());
        }
    }
    models
}

impl<'a> Entry<'a> {
    fn is_model_of_litellm(&self) -> bool {
        let says_something = self.context.is_some() || self.cost_in.is_some();
        let is_chat = matches!(self.mode.as_deref(), Some("chat" | "responses"));
        is_chat && says_something && !NOT_A_MODEL.iter().any(|start| self.id.starts_with(start))
    }

    /// litellm writes zero also where a price depends on something, or does not exist.
    fn without_zero_prices(mut self) -> Entry<'a> {
        for price in [&mut self.cost_in, &mut self.cost_out, &mut self.cache_read, &mut self.cache_write] {
            *price = price.filter(|price| plain(price.get()) != "0");
        }
        self
    }

    /// Takes over what is missing here.
    fn fill(&mut self, other: Entry<'a>) {
        self.fill_prices(&other);
        self.id = other.id;
        fill(&mut self.name, other.name);
        fill(&mut self.context, other.context);
        fill(&mut self.input_limit, other.input_limit);
        fill(&mut self.output, other.output);
        fill(&mut self.modalities_in, other.modalities_in);
        fill(&mut self.modalities_out, other.modalities_out);
        fill(&mut self.tools, other.tools);
        fill(&mut self.reasoning, other.reasoning);
        fill(&mut self.vision, other.vision);
        fill(&mut self.structured, other.structured);
        fill(&mut self.temperature, other.temperature);
        fill(&mut self.knowledge, other.knowledge);
        fill(&mut self.released, other.released);
        fill(&mut self.status, other.status);
    }

    /// Prices belong together: those of a cache are worth nothing beside an input price that is another.
    fn fill_prices(&mut self, other: &Entry<'a>) {
        if self.cost_in.is_none() && self.cost_out.is_none() {
            (self.cost_in, self.cost_out) = (other.cost_in, other.cost_out);
        }
        let of = |price: Option<&'a RawValue>| price.map(|price| plain(price.get()));
        if of(self.cost_in) == of(other.cost_in) {
            fill(&mut self.cache_read, other.cache_read);
            fill(&mut self.cache_write, other.cache_write);
        }
    }

    fn is_for_chat(&self) -> bool {
        let id = self.id.to_lowercase();
        let mut words = id.split(|letter: char| !letter.is_alphanumeric());
        let has_text = |ways: &Option<Vec<String>>| ways.as_ref().is_none_or(|ways| has(ways, "text"));
        has_text(&self.modalities_in)
            && has_text(&self.modalities_out)
            && !words.any(|word| NOT_FOR_CHAT.contains(&word))
    }

    /// What is in neither source is taken to be missing, but for two. Tools: a model that is wrongly thought to have none
    /// could do nothing, one that has none says so. A temperature: only models that think refuse one.
    fn abilities(&self) -> String {
        let takes = |way| self.modalities_in.as_ref().map(|ways| has(ways, way));
        let thinks = self.reasoning.unwrap_or(false);
        let abilities = [
            ("tools", self.tools.unwrap_or(true)),
            ("thinking", thinks),
            ("images", takes("image").or(self.vision).unwrap_or(false)),
            ("pdf", takes("pdf").unwrap_or(false)),
            ("structured", self.structured.unwrap_or(false)),
            ("temperature", self.temperature.unwrap_or(!thinks)),
        ];
        let present = abilities.into_iter().filter(|(_, present)| *present).map(|(ability, _)| ability);
        present.collect::<Vec<_>>().join(",")
    }

    /// The four prices as they were written. `None` if one can't be kept exactly.
    fn prices(&self) -> Option<[&'a str; 4]> {
        let (Some(input), Some(output)) = (self.cost_in, self.cost_out) else {
            return Some([""; 4]);
        };
        let prices = [Some(input), Some(output), self.cache_read, self.cache_write];
        let prices = prices.map(|price| price.map_or("", RawValue::get));
        prices.iter().all(|price| price.is_empty() || is_exact(price)).then_some(prices)
    }
}

fn fill<T>(fact: &mut Option<T>, other: Option<T>) {
    if fact.is_none() {
        *fact = other;
    }
}

fn has(ways: &[String], way: &str) -> bool {
    ways.iter().any(|has| has == way)
}

/// A number without the zeros that say nothing: `10` for `10.0`.
fn plain(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

/// Whether dollars per million tokens are a whole number of pico-dollars per token.
fn is_exact(price: &str) -> bool {
    let (whole, decimals) = price.split_once('.').unwrap_or((price, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    digits(whole) && digits(decimals) && decimals.len() <= 6
}

fn line(name: &str, entry: &Entry, inexact: &mut Vec<String>) -> Result<String, String> {
    let [input, output, cache_read, cache_write] = entry.prices().unwrap_or_else(|| {
        inexact.push(name.to_owned());
        [""; 4]
    });
    let tokens = |number| tokens(number).map_err(|why| format!("{name}: {why}"));
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    // Neither source has tiers; the column is there for the day that one does.
    let tiers = "";
    let columns = [
        name,
        &text(&entry.name),
        &tokens(entry.context)?,
        &tokens(entry.input_limit)?,
        &tokens(entry.output)?,
        input,
        output,
        cache_read,
        cache_write,
        tiers,
        &entry.abilities(),
        &text(&entry.knowledge),
        &text(&entry.released),
        &text(&entry.status),
    ];
    if columns.iter().any(|column| column.contains(char::is_control)) {
        return Err(format!("{name:?} has a fact with a control character in it"));
    }
    Ok(columns.join("\t") + "\n")
}

/// A number of tokens; zero says that nobody knows.
fn tokens(number: Option<&RawValue>) -> Result<String, String> {
    let Some(number) = number.map(|number| plain(number.get())) else { return Ok(String::new()) };
    match number.parse::<u64>() {
        Ok(0) => Ok(String::new()),
        Ok(tokens) => Ok(tokens.to_string()),
        Err(_) => Err(format!("{number} is no number of tokens")),
    }
}

#[cfg(test)]
mod tests {
    use helve_testkit::skip;
    use serde_json::{Value, json};

    use super::*;

    fn lines(models_dev: Value, litellm: Value) -> Vec<String> {
        let facts = json!({ "sources": [], "models_dev": models_dev, "litellm": litellm }).to_string();
        let made = made_from(&facts).unwrap().text;
        let is_added = |line: &&str| ADDED.iter().any(|(name, _)| line.starts_with(name));
        made.lines().skip(2).filter(|line| !is_added(line)).map(str::to_owned).collect()
    }

    fn entry(provider: &str, id: &str, more: Value) -> Value {
        let mut entry = json!({ "provider": provider, "id": id, "mode": "chat" });
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        entry
    }

    #[test]
    fn the_second_source_fills_and_adds() {
        let first = json!([entry("alibaba", "b", json!({ "name": "B", "cost_in": 0.3, "cost_out": 2 }))]);
        let known =
            json!({ "context": 9000.0, "cost_in": 0.30, "cost_out": 7, "cache_read": 0.03, "tools": false });
        let second = json!([
            entry("dashscope", "dashscope/b", known),
            entry("dashscope", "a", json!({ "context": 5 }))
        ]);
        assert_eq!(
            lines(first, second),
            [
                "qwen/a\t\t5\t\t\t\t\t\t\t\ttools,temperature\t\t\t",
                "qwen/b\tB\t9000\t\t\t0.3\t2\t0.03\t\t\ttemperature\t\t\t"
            ]
        );
    }

    #[test]
    fn prices_of_a_cache_are_not_taken_beside_another_input_price() {
        let first = json!([entry("xai", "a", json!({ "cost_in": 0.3, "cost_out": 2 }))]);
        let second = json!([entry("xai", "a", json!({ "cost_in": 0.2, "cost_out": 2, "cache_read": 0.02 }))]);
        assert_eq!(lines(first, second), ["xai/a\t\t\t\t\t0.3\t2\t\t\t\ttools,temperature\t\t\t"]);
    }

    #[test]
    fn zero_is_a_price_in_the_first_source_only() {
        let free = json!({ "context": 1, "cost_in": 0, "cost_out": 0.0 });
        let made = lines(json!([entry("xai", "a", free.clone())]), json!([entry("xai", "b", free)]));
        let prices: Vec<Vec<&str>> =
            made.iter().map(|line| line.split('\t').skip(5).take(2).collect()).collect();
        assert_eq!(prices, [["0", "0.0"], ["", ""]]);
    }

    #[test]
    fn only_what_is_for_chat_is_kept() {
        let of = |way: &str| json!({ "context": 1, "modalities_in": ["text"], "modalities_out": [way] });
        let first = json!([
            entry("openai", "talks", of("text")),
            entry("openai", "sings", of("audio")),
            entry("openai", "text-embedding-3", of("text")),
            entry("elsewhere", "talks", of("text")),
        ]);
        let second = json!([
            entry("openai", "draws", json!({ "context": 1, "mode": "image_generation" })),
            entry("openai", "ft:talks", json!({ "context": 1 })),
            entry("openai", "container", json!({})),
            entry("openai", "answers", json!({ "context": 1, "mode": "responses" })),
        ]);
        let made = lines(first, second);
        let names: Vec<&str> = made.iter().filter_map(|line| line.split('\t').next()).collect();
        assert_eq!(names, ["openai/answers", "openai/talks"]);
    }

    #[test]
    fn prices_are_kept_as_they_were_written_or_not_at_all() {
        let facts = |input: &str| {
            let entry = format!(r#"{{"provider": "xai", "id": "a", "cost_in": {input}, "cost_out": 1.10}}"#);
            made_from(&format!(r#"{{"sources": [], "models_dev": [{entry}], "litellm": []}}"#)).unwrap()
        };
        assert!(facts("0.100").text.contains("\t0.100\t1.10\t"));
        assert_eq!(facts("0.000001").inexact, Vec::<String>::new());
        for inexact in ["0.0000001", "1e-1", "-1"] {
            let made = facts(inexact);
            assert_eq!(made.inexact, ["xai/a"], "{inexact}");
            assert!(!made.text.contains("1.10"), "{inexact}");
        }
    }

    #[test]
    fn a_fact_that_would_break_the_columns_is_refused() {
        let broken = json!({ "sources": [], "models_dev": [entry("xai", "a", json!({ "name": "a\tb" }))], "litellm": [] });
        assert!(made_from(&broken.to_string()).is_err());
    }

    /// The facts are no part of the repository; where they lie beside it, the catalogue must be what they make.
    #[test]
    fn the_same_facts_make_the_same_catalogue() {
        let facts = root().join("../shared/data/models.json");
        let Ok(facts) = fs::read_to_string(facts) else {
            return skip("the_same_facts_make_the_same_catalogue", "../shared/data/models.json is not there");
        };
        let made = made_from(&facts).unwrap();
        assert_eq!(made.inexact, Vec::<String>::new());
        // Not assert_eq: nobody wants to read both.
        assert!(made.text == fs::read_to_string(path()).unwrap(), "run `cargo xtask catalogue`");
    }
}
