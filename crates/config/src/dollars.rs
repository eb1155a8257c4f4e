//! Exact money in a settings file.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use helve_protocol::{Cost, CostError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// An amount of dollars as it is written in a settings file: `"2.50"`, `2.5` or `2`. Files are read from the
/// text of the number, so that it never passes through a float.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Dollars(pub Cost);

impl fmt::Display for Dollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.to_string().trim_start_matches('$'))
    }
}

impl FromStr for Dollars {
    type Err = CostError;

    fn from_str(text: &str) -> Result<Dollars, CostError> {
        text.parse().map(Dollars)
    }
}

impl TryFrom<String> for Dollars {
    type Error = CostError;

    fn try_from(text: String) -> Result<Dollars, CostError> {
        text.parse()
    }
}

impl From<Dollars> for String {
    fn from(dollars: Dollars) -> String {
        dollars.to_string()
    }
}

impl JsonSchema for Dollars {
    fn schema_name() -> Cow<'static, str> {
        "Dollars".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number"], "format": "dollars", "minimum": 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dollars_are_written_without_the_sign() {
        assert_eq!("2.5".parse::<Dollars>().unwrap().to_string(), "2.50");
        assert_eq!("$3".parse::<Dollars>().unwrap().to_string(), "3.00");
    }

    proptest! {
        #[test]
        fn dollars_survive_their_text(pico: u64) {
            let dollars = Dollars(Cost::from_pico_dollars(pico));
            prop_assert_eq!(dollars.to_string().parse::<Dollars>(), Ok(dollars));
        }
    }
}
