use std::fmt;

use crate::Range;

/// Why a text is not a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseError {
    NoDash,
    BadTime(String),
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseError::NoDash => write!(f, "write it as 09:00-17:30"),
            ParseError::BadTime(text) => write!(f, "{text:?} is not a time"),
        }
    }
}

impl std::error::Error for ParseError {}

/// Reads `09:00-17:30`.
pub fn parse_range(text: &str) -> Result<Range, ParseError> {
    let (start, end) = text.split_once('-').ok_or(ParseError::NoDash)?;
    Ok(Range::new(parse_time(start)?, parse_time(end)?))
}

fn parse_time(text: &str) -> Result<u32, ParseError> {
    let bad = || ParseError::BadTime(text.to_owned());
    let (hours, minutes) = text.trim().split_once(':').ok_or_else(bad)?;
    let hours: u32 = hours.parse().map_err(|_| bad())?;
    let minutes: u32 = minutes.parse().map_err(|_| bad())?;
    if hours > 24 || minutes > 59 {
        return Err(bad());
    }
    Ok(hours * 60 + minutes)
}
