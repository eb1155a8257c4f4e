//! Lengths of time as people write them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A length of time in whole milliseconds, written with units from large to small: `90s`, `30m`, `1h30m`,
/// `500ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimeSpan(u64);

/// From large to small, which is also the order in which they may be written.
const TIME_UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl TimeSpan {
    /// So many milliseconds.
    pub const fn from_millis(millis: u64) -> TimeSpan {
        TimeSpan(millis)
    }

    /// So many seconds.
    pub const fn from_secs(seconds: u64) -> TimeSpan {
        TimeSpan(seconds.saturating_mul(1_000))
    }

    /// Its length in milliseconds.
    pub const fn millis(self) -> u64 {
        self.0
    }
}

impl From<TimeSpan> for Duration {
    fn from(span: TimeSpan) -> Duration {
        Duration::from_millis(span.0)
    }
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.0;
        for (unit, millis) in TIME_UNITS {
            if rest >= millis {
                write!(f, "{}{unit}", rest / millis)?;
            }
            rest %= millis;
        }
        Ok(())
    }
}

/// Why a text is no time span. Each holds the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeSpanError {
    /// Only a number.
    #[error("{0:?} has no unit: write a unit, such as \"30m\"")]
    NoUnit(String),
    /// No numbers with units, or in a wrong order.
    #[error("{0:?} is not a time span such as \"90s\", \"30m\" or \"1h30m\"")]
    Malformed(String),
    /// More milliseconds than fit in 64 bits.
    #[error("{0:?} is longer than can be counted")]
    TooLong(String),
}

impl FromStr for TimeSpan {
    type Err = TimeSpanError;

    fn from_str(text: &str) -> Result<TimeSpan, TimeSpanError> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(TimeSpanError::NoUnit(text.to_owned()));
        }
        let parts = parts(text).ok_or_else(|| TimeSpanError::Malformed(text.to_owned()))?;
        total(&parts).map(TimeSpan).ok_or_else(|| TimeSpanError::TooLong(text.to_owned()))
    }
}

/// The digits and the weight of each part; `None` unless there is one at least and each unit is smaller than
/// the one before.
fn parts(text: &str) -> Option<Vec<(&str, u64)>> {
    let mut parts: Vec<(&str, u64)> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (digits, after) = split_run(rest, |byte| byte.is_ascii_digit())?;
        let (name, after) = split_run(after, |byte| byte.is_ascii_alphabetic())?;
        let (_, weight) = TIME_UNITS.into_iter().find(|(unit, _)| *unit == name)?;
        if parts.last().is_some_and(|(_, before)| *before <= weight) {
            return None;
        }
        parts.push((digits, weight));
        rest = after;
    }
    (!parts.is_empty()).then_some(parts)
}

/// The leading bytes that belong together, which must not be none, and what follows them.
fn split_run(text: &str, belongs: impl Fn(u8) -> bool) -> Option<(&str, &str)> {
    let end = text.bytes().position(|byte| !belongs(byte)).unwrap_or(text.len());
    if end == 0 { None } else { text.split_at_checked(end) }
}

fn total(parts: &[(&str, u64)]) -> Option<u64> {
    parts.iter().try_fold(0_u64, |sum, (digits, weight)| {
        let count: u64 = digits.parse().ok()?;
        sum.checked_add(count.checked_mul(*weight)?)
    })
}

impl TryFrom<String> for TimeSpan {
    type Error = TimeSpanError;

    fn try_from(text: String) -> Result<TimeSpan, TimeSpanError> {
        text.parse()
    }
}

impl From<TimeSpan> for String {
    fn from(span: TimeSpan) -> String {
        span.to_string()
    }
}

impl JsonSchema for TimeSpan {
    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "time-span",
            "minLength": 2,
            "pattern": "^([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spans_read_as_people_write_them() {
        for (text, millis, shown) in [
            ("90s", 90_000, "1m30s"),
            ("30m", 1_800_000, "30m"),
            ("2h", 7_200_000, "2h"),
            ("1h30m", 5_400_000, "1h30m"),
            ("1h500ms", 3_600_500, "1h500ms"),
            ("0s", 0, "0s"),
        ] {
            assert_eq!(text.parse(), Ok(TimeSpan(millis)), "{text}");
            assert_eq!(TimeSpan(millis).to_string(), shown);
        }
    }

    #[test]
    fn what_is_not_a_span_is_refused() {
        for text in
            ["", "m", "1", "1x", "1m1h", "1m1m", "1.5h", "-1s", "1 h", " 1h", "1h ", "1H", "١s", "1hm"]
        {
            assert!(text.parse::<TimeSpan>().is_err(), "{text:?}");
        }
        assert_eq!("30".parse::<TimeSpan>(), Err(TimeSpanError::NoUnit("30".into())));
        assert_eq!(
            "99999999999999h".parse::<TimeSpan>(),
            Err(TimeSpanError::TooLong("99999999999999h".into()))
        );
    }

    proptest! {
        #[test]
        fn a_span_survives_its_text(millis: u64) {
            prop_assert_eq!(TimeSpan(millis).to_string().parse::<TimeSpan>(), Ok(TimeSpan(millis)));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9hms٣ ]{0,8}|\\PC*") {
            let _ = text.parse::<TimeSpan>();
        }
    }
}
