//! What is known of models, and what their answers cost.

use helve_models::{
    DEFAULT_CONTEXT_TOKENS, DEFAULT_OUTPUT_TOKENS, ModelCatalogue, ModelFacts, ModelFactsOrigin,
    ModelOverrides, ModelPrices, PriceTier, TokenRates, per_token,
};
use helve_protocol::{Cost, TokenUsage};
use proptest::prelude::*;

const USAGE: TokenUsage =
    TokenUsage { input: 1_234, output: 567, cache_read: 89_012, cache_write: 3_456, reasoning: 400 };

fn find(provider: &str, model: &str) -> ModelFacts {
    ModelCatalogue::built_in().find(provider, model)
}

fn dollars(text: &str) -> Cost {
    text.parse().unwrap()
}

/// The price of a token, from that of a million.
fn price(per_million: &str) -> Cost {
    per_token(dollars(per_million)).unwrap()
}

#[test]
fn a_known_model_has_its_facts() {
    let facts = find("anthropic", "claude-sonnet-4-5");
    assert_eq!(facts.origin, ModelFactsOrigin::BuiltIn);
    assert_eq!(facts.context, Some(200_000));
    assert_eq!(facts.output_limit(), 64_000);
    assert!(
        facts.abilities.tools && facts.abilities.thinking && facts.abilities.images && facts.abilities.pdf
    );
    let facts = find("openai", "gpt-5.1");
    assert_eq!(
        (facts.title.as_str(), facts.context, facts.input_limit),
        ("GPT-5.1", Some(400_000), Some(272_000))
    );
    assert!(!facts.abilities.temperature);
    assert_eq!(find("anthropic", "claude-3-5-sonnet-20241022").status.as_deref(), Some("deprecated"));
}

#[test]
fn names_that_people_still_use_are_known() {
    for (provider, model) in [
        ("openai", "gpt-4o"),
        ("openai", "gpt-4o-mini"),
        ("anthropic", "claude-sonnet-4-0"),
        ("anthropic", "claude-sonnet-4-20250514"),
        ("anthropic", "claude-opus-4-0"),
        ("anthropic", "claude-opus-4-20250514"),
        ("deepseek", "deepseek-chat"),
        ("deepseek", "deepseek-reasoner"),
        ("groq", "llama-3.3-70b-versatile"),
        ("cerebras", "llama-3.3-70b"),
        ("qwen", "qwen-max"),
        ("moonshot", "moonshot-v1-128k"),
    ] {
        let facts = find(provider, model);
        assert_eq!(facts.origin, ModelFactsOrigin::BuiltIn, "{provider}/{model}");
        assert!(facts.prices.is_some() && facts.context.is_some(), "{provider}/{model}");
    }
}

/// Each sum is the four counts of `USAGE` by hand, in pico-dollars.
#[test]
fn costs_of_real_models_are_exact() {
    for (provider, model, cost) in [
        // Four prices: 3, 15, 0.3, 3.75.
        (
            "anthropic",
            "claude-sonnet-4-5",
            1_234 * 3_000_000 + 567 * 15_000_000 + 89_012 * 300_000 + 3_456 * 3_750_000,
        ),
        // Three prices: 0.15, 0.6, 0.075; what is written to the cache costs as much as input.
        ("openai", "gpt-4o-mini", (1_234 + 3_456) * 150_000 + 567 * 600_000 + 89_012 * 75_000),
        // Two prices: 0.59, 0.79; all input costs the same.
        ("groq", "llama-3.3-70b-versatile", (1_234 + 89_012 + 3_456) * 590_000 + 567 * 790_000),
        // A price to the millionth: 0.3, 2.5, 0.03, 0.083333.
        (
            "openrouter",
            "google/gemini-2.5-flash",
            1_234 * 300_000 + 567 * 2_500_000 + 89_012 * 30_000 + 3_456 * 83_333,
        ),
    ] {
        let expected = Cost::from_pico_dollars(cost);
        assert_eq!(find(provider, model).cost(USAGE), Some(expected), "{provider}/{model}");
    }
}

#[test]
fn a_model_that_nobody_knows_has_safe_defaults_and_says_so() {
    let facts = find("nowhere", "thing-1");
    assert_eq!(facts.origin, ModelFactsOrigin::Unknown);
    assert_eq!(facts.title, "thing-1");
    assert_eq!((facts.context, facts.output), (None, None));
    assert_eq!(
        (facts.context_limit(), facts.output_limit()),
        (DEFAULT_CONTEXT_TOKENS, DEFAULT_OUTPUT_TOKENS)
    );
    assert!(facts.abilities.tools && !facts.abilities.images);
    assert_eq!(facts.cost(USAGE), None);
}

#[test]
fn a_dated_name_has_its_own_facts_or_those_of_its_undated_one() {
    // The first gpt-4o was dearer, and has a line of its own.
    let input = |model| find("openai", model).prices.unwrap().base.input;
    assert_eq!(input("gpt-4o-2024-05-13"), price("5"));
    assert_eq!(input("gpt-4o-2031-01-01"), price("2.5"));
    assert_eq!(find("anthropic", "claude-opus-4-7-20310101"), find("anthropic", "claude-opus-4-7"));
    assert_eq!(find("anthropic", "claude-opus-4-7-latest"), find("anthropic", "claude-opus-4-7"));
    assert_eq!(find("mistral", "pixtral-large-20310101"), find("mistral", "pixtral-large-latest"));
    for other in
        ["gpt-4o-2031", "gpt-4o-2031-01-01-preview", "gpt-4o2031-01-01", "GPT-4o", "gpt-4o:nitro", ""]
    {
        assert_eq!(find("openai", other).origin, ModelFactsOrigin::Unknown, "{other}");
    }
    for provider in ["openai/gpt-4o", "#name", "", "\n", "é"] {
        assert_eq!(find(provider, "gpt-4o").origin, ModelFactsOrigin::Unknown, "{provider}");
    }
}

#[test]
fn variants_at_openrouter_are_the_model_and_free_ones_cost_nothing() {
    let base = find("openrouter", "openai/gpt-4o");
    assert_eq!(base.origin, ModelFactsOrigin::BuiltIn);
    assert_eq!(find("openrouter", "openai/gpt-4o:nitro"), base);
    assert_eq!(find("openrouter", "openai/gpt-4o-2031-01-01:floor"), base);
    let free = find("openrouter", "openai/gpt-4o:free");
    assert_eq!(free.context, base.context);
    assert_eq!(free.cost(USAGE), Some(Cost::ZERO));
    // One that has a line of its own.
    assert_eq!(find("openrouter", "google/gemma-4-31b-it:free").output, Some(8192));
    let unknown = find("openrouter", "nobody/thing:free");
    assert_eq!((unknown.origin, unknown.cost(USAGE)), (ModelFactsOrigin::Unknown, Some(Cost::ZERO)));
    // Whatever the user pays for the model itself.
    let dear = ModelOverrides { input_price: Some(price("9")), ..ModelOverrides::default() };
    let catalogue = ModelCatalogue::built_in().with("openrouter/openai/gpt-4o", dear);
    assert_eq!(catalogue.find("openrouter", "openai/gpt-4o:free").cost(USAGE), Some(Cost::ZERO));
    assert_ne!(catalogue.find("openrouter", "openai/gpt-4o:nitro").cost(USAGE), base.cost(USAGE));
}

#[test]
fn settings_lie_over_what_is_built_in() {
    let overrides = ModelOverrides {
        context: Some(1_000_000),
        input_price: Some(price("2")),
        images: Some(false),
        ..ModelOverrides::default()
    };
    let catalogue = ModelCatalogue::built_in().with("anthropic/claude-sonnet-4-5", overrides);
    let facts = catalogue.find("anthropic", "claude-sonnet-4-5");
    assert_eq!(facts.origin, ModelFactsOrigin::Settings);
    assert_eq!((facts.context, facts.output), (Some(1_000_000), Some(64_000)));
    assert!(!facts.abilities.images && facts.abilities.tools);
    let rates = facts.prices.unwrap().base;
    assert_eq!((rates.input, rates.output, rates.cache_read), (price("2"), price("15"), Some(price("0.3"))));
    // A dated name without facts of its own follows; one with facts of its own does not.
    assert_eq!(catalogue.find("anthropic", "claude-sonnet-4-5-20310101").context, Some(1_000_000));
    assert_eq!(catalogue.find("anthropic", "claude-sonnet-4-5-20250929").origin, ModelFactsOrigin::BuiltIn);
}

#[test]
fn settings_of_a_dated_name_lie_over_the_facts_of_its_undated_one() {
    let overrides = ModelOverrides { output: Some(1), ..ModelOverrides::default() };
    let catalogue = ModelCatalogue::built_in().with("openai/gpt-4o-2031-01-01", overrides);
    let facts = catalogue.find("openai", "gpt-4o-2031-01-01");
    assert_eq!(
        (facts.context, facts.output, facts.origin),
        (Some(128_000), Some(1), ModelFactsOrigin::Settings)
    );
    assert_eq!(catalogue.find("openai", "gpt-4o").origin, ModelFactsOrigin::BuiltIn);
}

#[test]
fn settings_can_tell_every_fact_of_a_new_model() {
    let tiers = vec![PriceTier { above: 7, rates: TokenRates::default() }];
    let overrides = ModelOverrides {
        title: Some("Mine".to_owned()),
        context: Some(1),
        input_limit: Some(2),
        output: Some(3),
        input_price: Some(price("1")),
        output_price: Some(price("2")),
        cache_read_price: Some(price("3")),
        cache_write_price: Some(price("4")),
        tiers: Some(tiers.clone()),
        tools: Some(false),
        thinking: Some(true),
        images: Some(true),
        pdf: Some(true),
        structured: Some(true),
        temperature: Some(false),
        knowledge: Some("2030".to_owned()),
        released: Some("2031".to_owned()),
        status: Some("beta".to_owned()),
    };
    let catalogue = ModelCatalogue::built_in().with("local/mine", overrides);
    let facts = catalogue.find("local", "mine");
    assert_eq!((facts.title.as_str(), facts.origin), ("Mine", ModelFactsOrigin::Settings));
    assert_eq!((facts.context, facts.input_limit, facts.output), (Some(1), Some(2), Some(3)));
    let base = TokenRates {
        input: price("1"),
        output: price("2"),
        cache_read: Some(price("3")),
        cache_write: Some(price("4")),
    };
    assert_eq!(facts.prices, Some(ModelPrices { base, tiers }));
    let abilities = facts.abilities;
    assert!(abilities.thinking && abilities.images && abilities.pdf && abilities.structured);
    assert!(!abilities.tools && !abilities.temperature);
    let texts = [facts.knowledge, facts.released, facts.status].map(Option::unwrap);
    assert_eq!(texts, ["2030", "2031", "beta"]);
}

#[test]
fn one_price_alone_is_no_price() {
    let overrides = ModelOverrides { input_price: Some(price("1")), ..ModelOverrides::default() };
    let catalogue = ModelCatalogue::built_in().with("local/mine", overrides);
    assert_eq!(catalogue.find("local", "mine").prices, None);
}

#[test]
fn a_tier_holds_for_the_whole_request_once_its_input_is_above_the_bound() {
    let rates = |input: &str, output: &str, cache_read: Option<&str>| TokenRates {
        input: price(input),
        output: price(output),
        cache_read: cache_read.map(price),
        cache_write: None,
    };
    let tiers = vec![
        PriceTier { above: 500_000, rates: rates("5", "20", None) },
        PriceTier { above: 200_000, rates: rates("2.5", "15", Some("0.25")) },
    ];
    let prices = ModelPrices { base: rates("1.25", "10", Some("0.125")), tiers };
    let cost = |input, cache_read, cache_write| {
        prices
            .cost(TokenUsage { input, output: 1_000, cache_read, cache_write, reasoning: 1_000 })
            .pico_dollars()
    };
    let million = 1_000_000;
    // At the bound it does not hold yet. Output does not count.
    assert_eq!(cost(100_000, 99_999, 1), 100_001 * 1_250_000 + 99_999 * 125_000 + 1_000 * 10 * million);
    assert_eq!(cost(100_000, 100_000, 1), 100_001 * 2_500_000 + 100_000 * 250_000 + 1_000 * 15 * million);
    // The highest that is reached, whatever their order; without a price of its own its cache costs its input.
    assert_eq!(cost(1, 500_000, 0), 500_001 * 5 * million + 1_000 * 20 * million);
}

#[test]
fn all_models_are_listed_in_order_with_those_of_the_user() {
    let mine = ModelOverrides { context: Some(5), ..ModelOverrides::default() };
    let catalogue = ModelCatalogue::built_in().with("local/mine", mine.clone()).with("openai/gpt-4o", mine);
    let all: Vec<(&str, ModelFacts)> = catalogue.all().collect();
    assert!(all.is_sorted_by(|(one, _), (next, _)| one < next));
    assert_eq!(all.len(), ModelCatalogue::built_in().all().count() + 1);
    for (name, facts) in &all {
        let expected = if ["local/mine", "openai/gpt-4o"].contains(name) {
            ModelFactsOrigin::Settings
        } else {
            ModelFactsOrigin::BuiltIn
        };
        assert_eq!(facts.origin, expected, "{name}");
    }
}

#[test]
fn a_bare_name_leads_to_its_providers() {
    let catalogue = ModelCatalogue::built_in().with("local/gpt-4o", ModelOverrides::default());
    assert_eq!(catalogue.providers_of("gpt-4o"), ["local", "openai"]);
    assert_eq!(catalogue.providers_of("glm-4.6"), ["zai", "zhipu"]);
    assert_eq!(catalogue.providers_of("thing-1"), Vec::<&str>::new());
}

#[test]
fn a_price_that_is_not_exact_for_one_token_is_none() {
    assert_eq!(per_token(dollars("0.000001")), Some(Cost::from_pico_dollars(1)));
    assert_eq!(per_token(dollars("0.0000001")), None);
}

fn any_rates() -> impl Strategy<Value = TokenRates> {
    // Small ones, as they are, and any, so that sums overflow too.
    let cost = || prop_oneof![0..100_000_000_u64, any::<u64>()].prop_map(Cost::from_pico_dollars);
    (cost(), cost(), prop::option::of(cost()), prop::option::of(cost())).prop_map(
        |(input, output, cache_read, cache_write)| TokenRates { input, output, cache_read, cache_write },
    )
}

fn any_prices() -> impl Strategy<Value = ModelPrices> {
    let tier = (0..3_000_000_u64, any_rates()).prop_map(|(above, rates)| PriceTier { above, rates });
    (any_rates(), prop::collection::vec(tier, 0..4)).prop_map(|(base, tiers)| ModelPrices { base, tiers })
}

fn any_usage() -> impl Strategy<Value = TokenUsage> {
    let count = || prop_oneof![4 => 0..1_500_000_u64, 1 => any::<u64>()];
    (count(), count(), count(), count()).prop_map(|(input, output, cache_read, cache_write)| TokenUsage {
        input,
        output,
        cache_read,
        cache_write,
        reasoning: output / 2,
    })
}

/// What a request costs in numbers that can't overflow, cut to the largest amount that there is.
fn cost_in_wide_numbers(prices: &ModelPrices, usage: TokenUsage) -> u64 {
    let wide = |cost: Cost| u128::from(cost.pico_dollars());
    let whole = u128::from(usage.input) + u128::from(usage.cache_read) + u128::from(usage.cache_write);
    let mut rates = prices.base;
    let mut reached = None;
    for tier in &prices.tiers {
        if whole > u128::from(tier.above) && reached.is_none_or(|above| tier.above >= above) {
            (rates, reached) = (tier.rates, Some(tier.above));
        }
    }
    let products = [
        (rates.input, usage.input),
        (rates.output, usage.output),
        (rates.cache_read.unwrap_or(rates.input), usage.cache_read),
        (rates.cache_write.unwrap_or(rates.input), usage.cache_write),
    ];
    // A product of two u64 fits; a sum of four is cut before it can overflow.
    let total = products
        .into_iter()
        .fold(0_u128, |total, (price, count)| total.saturating_add(wide(price) * u128::from(count)));
    u64::try_from(total).unwrap_or(u64::MAX)
}

proptest! {
    #[test]
    fn a_cost_is_exact(prices in any_prices(), usage in any_usage()) {
        prop_assert_eq!(prices.cost(usage).pico_dollars(), cost_in_wide_numbers(&prices, usage));
    }

    #[test]
    fn more_tokens_never_cost_less(base in any_rates(), usage in any_usage(), more in any_usage()) {
        let prices = ModelPrices { base, tiers: Vec::new() };
        let mut sum = usage;
        sum += more;
        prop_assert!(prices.cost(sum) >= prices.cost(usage));
    }

    #[test]
    fn any_name_can_be_looked_up(provider: String, model: String) {
        let facts = find(&provider, &model);
        prop_assert_eq!(facts.origin, ModelFactsOrigin::Unknown);
        prop_assert_eq!(find("openrouter", &model).origin, ModelFactsOrigin::Unknown);
    }
}
