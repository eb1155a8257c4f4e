//! Tokens and money, in exact integers.

use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An amount of money in pico-dollars (10⁻¹² USD), so that a price of a fraction of a cent per million
/// tokens is still a whole number per token. Sums saturate instead of wrapping; the largest amount is
/// about 18 million dollars.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Cost(u64);

impl Cost {
    pub const ZERO: Cost = Cost(0);
    pub const DOLLAR: Cost = Cost(1_000_000_000_000);

    pub const fn from_pico_dollars(pico: u64) -> Cost {
        Cost(pico)
    }

    pub const fn pico_dollars(self) -> u64 {
        self.0
    }

    /// The price of `count` things that cost this much each.
    pub fn times(self, count: u64) -> Cost {
        Cost(self.0.saturating_mul(count))
    }

    /// `None` when `other` is more than this amount.
    pub fn checked_sub(self, other: Cost) -> Option<Cost> {
        self.0.checked_sub(other.0).map(Cost)
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Cost>>(costs: I) -> Cost {
        costs.fold(Cost::ZERO, |mut total, cost| {
            total += cost;
            total
        })
    }
}

/// Dollars with as many decimals as the amount needs and at least two: `$1.50`, `$0.000075`.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dollars = self.0 / Cost::DOLLAR.0;
        let decimals = format!("{:012}", self.0 % Cost::DOLLAR.0);
        let shown = decimals.trim_end_matches('0').len().max(2);
        write!(f, "${dollars}.{}", decimals.get(..shown).unwrap_or(&decimals))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an amount in dollars such as \"2.50\"")]
pub struct CostError(String);

/// Reads `2.50`, `$2.50` or `2`. At most twelve decimals: nothing is ever rounded.
impl FromStr for Cost {
    type Err = CostError;

    fn from_str(text: &str) -> Result<Cost, CostError> {
        let error = || CostError(text.to_owned());
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let amount = text.strip_prefix('$').unwrap_or(text);
        let (whole, decimals) = amount.split_once('.').unwrap_or((amount, "0"));
        if whole.is_empty()
            || decimals.is_empty()
            || decimals.len() > 12
            || !digits(whole)
            || !digits(decimals)
        {
            return Err(error());
        }
        let dollars: u64 = whole.parse().map_err(|_| error())?;
        let pico: u64 = format!("{decimals:0<12}").parse().map_err(|_| error())?;
        let total = dollars.checked_mul(Cost::DOLLAR.0).and_then(|whole| whole.checked_add(pico));
        total.map(Cost).ok_or_else(error)
    }
}

/// What one request consumed, in tokens. `input` does not include the two cache counts, and `output` includes
/// `reasoning`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TokenUsage {
    /// Tokens read afresh.
    pub input: u64,
    /// Tokens written, thinking included.
    pub output: u64,
    /// Tokens read from the provider's prompt cache.
    pub cache_read: u64,
    /// Tokens written to the provider's prompt cache.
    pub cache_write: u64,
    /// How many of the output tokens were thinking.
    pub reasoning: u64,
}

impl TokenUsage {
    /// How much of the model's context this request filled.
    pub fn context(self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
            .saturating_add(self.output)
    }
}

impl AddAssign for TokenUsage {
    fn add_assign(&mut self, other: TokenUsage) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn costs_read_as_people_write_them() {
        for (pico, text) in [
            (0, "$0.00"),
            (1, "$0.000000000001"),
            (75_000_000, "$0.000075"),
            (1_500_000_000_000, "$1.50"),
            (u64::MAX, "$18446744.073709551615"),
        ] {
            assert_eq!(Cost(pico).to_string(), text);
        }
    }

    #[test]
    fn what_is_not_an_amount_is_refused() {
        for text in
            ["", "$", ".", "1.", ".5", "-1", "+1", "1,5", "1e3", "0.0000000000001", "18446745", " 1", "١"]
        {
            assert!(text.parse::<Cost>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_cost_survives_its_text(pico: u64) {
            prop_assert_eq!(Cost(pico).to_string().parse::<Cost>(), Ok(Cost(pico)));
        }

        #[test]
        fn any_text_is_read_or_refused(text: String) {
            let _ = text.parse::<Cost>();
        }
    }
}
