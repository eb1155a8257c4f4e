//! Ranges of minutes in a day, and what can be done with them.

mod parse;
mod range;
mod set;

pub use parse::{parse_range, ParseError};
pub use range::Range;
pub use set::RangeSet;

/// How many minutes of a day nobody is at work.
pub fn uncovered(shifts: &[Range]) -> u32 {
    let day = Range::new(0, 24 * 60);
    let mut covered = RangeSet::default();
    for shift in shifts {
        covered.insert(*shift);
    }
    day.minutes() - covered.minutes()
}
