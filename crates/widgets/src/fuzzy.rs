//! Fuzzy matching: the characters of the pattern must occur in this order; where and how closely decides the score.
//!
//! Bytes are compared, so that a hundred thousand paths take milliseconds. Capital letters count if the pattern has any;
//! letters beyond ASCII match themselves only.

use std::ops::Range;

/// For each character that is found.
const MATCH_SCORE: i32 = 16;
const SEPARATOR_BONUS: i32 = 10;
const WORD_START_BONUS: i32 = 8;
const CAMEL_CASE_BONUS: i32 = 7;
const CONSECUTIVE_BONUS: i32 = 6;
const GAP_PENALTY: i32 = -3;
const GAP_EXTENSION_PENALTY: i32 = -1;
/// All of it is in the last part of a path.
const FILE_NAME_BONUS: i32 = 24;

/// The two bytes that a byte of the pattern stands for: small and capital, or twice itself.
type PatternByte = [u8; 2];

/// What is looked for: parts that must all be found, in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FuzzyPattern {
    parts: Vec<Vec<PatternByte>>,
    letters: u64,
}

impl FuzzyPattern {
    pub fn new(text: &str) -> FuzzyPattern {
        let is_exact = text.bytes().any(|byte| byte.is_ascii_uppercase());
        let wanted = |byte: u8| [byte, if is_exact { byte } else { byte.to_ascii_uppercase() }];
        let parts = text.split_whitespace().map(|part| part.bytes().map(wanted).collect()).collect();
        let letters = text.split_whitespace().fold(0, |all, part| all | letter_mask(part.as_bytes()));
        FuzzyPattern { parts, letters }
    }

    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// A quick no, from the [`letters`] of a text.
    pub(crate) fn may_match(&self, letters: u64) -> bool {
        letters & self.letters == self.letters
    }

    /// How well the text matches, if it does.
    pub fn score(&self, text: &str) -> Option<i32> {
        self.parts.iter().try_fold(0i32, |sum, part| {
            let (place, bonus) = locate_part(part, text.as_bytes())?;
            Some(sum + bonus + score_stretch(part, text.as_bytes(), place, |_| ()))
        })
    }

    /// The places of the bytes that are found, in order.
    pub fn places(&self, text: &str) -> Vec<usize> {
        let mut places = Vec::new();
        for part in &self.parts {
            if let Some((place, _)) = locate_part(part, text.as_bytes()) {
                score_stretch(part, text.as_bytes(), place, |at| places.push(at));
            }
        }
        places.sort_unstable();
        places.dedup();
        places
    }
}

/// The shortest stretch that ends where the part is first complete: in the name if it is there, else in the whole path.
fn locate_part(part: &[PatternByte], text: &[u8]) -> Option<(Range<usize>, i32)> {
    let name = text.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    match stretch(part, text, name) {
        Some(place) => Some((place, FILE_NAME_BONUS)),
        None if name > 0 => Some((stretch(part, text, 0)?, 0)),
        None => None,
    }
}

fn stretch(part: &[PatternByte], text: &[u8], from: usize) -> Option<Range<usize>> {
    let rest = text.get(from..)?;
    let end = last_of(part.iter(), rest.iter())?;
    let back = last_of(part.iter().rev(), rest.get(..=end)?.iter().rev())?;
    Some(from + end - back..from + end + 1)
}

/// After how many bytes all of the part has been met, counted from zero.
fn last_of<'a>(
    mut part: impl Iterator<Item = &'a PatternByte>,
    text: impl Iterator<Item = &'a u8>,
) -> Option<usize> {
    let mut wanted = part.next()?;
    for (at, byte) in text.enumerate() {
        if wanted.contains(byte) {
            match part.next() {
                Some(next) => wanted = next,
                None => return Some(at),
            }
        }
    }
    None
}

/// The score of a stretch, telling each place that counts.
fn score_stretch(
    part: &[PatternByte],
    text: &[u8],
    place: Range<usize>,
    mut found: impl FnMut(usize),
) -> i32 {
    let mut score = 0;
    let mut part = part.iter();
    let mut next = part.next();
    let mut gap = 0;
    let mut before = place.start.checked_sub(1).and_then(|at| text.get(at)).copied();
    for (at, byte) in (place.start..).zip(text.get(place.clone()).unwrap_or_default()) {
        let Some(wanted) = next else { break };
        if wanted.contains(byte) {
            let is_consecutive = gap == 0 && at > place.start;
            score +=
                MATCH_SCORE + bonus(before, *byte).max(if is_consecutive { CONSECUTIVE_BONUS } else { 0 });
            found(at);
            next = part.next();
            gap = 0;
        } else {
            score += if gap == 0 { GAP_PENALTY } else { GAP_EXTENSION_PENALTY };
            gap += 1;
        }
        before = Some(*byte);
    }
    score
}

/// What a byte gets for where it stands.
fn bonus(before: Option<u8>, byte: u8) -> i32 {
    match before {
        None | Some(b'/' | b'\\') => SEPARATOR_BONUS,
        Some(before)
            if !before.is_ascii_alphanumeric() && before.is_ascii() && byte.is_ascii_alphanumeric() =>
        {
            WORD_START_BONUS
        }
        Some(before) if before.is_ascii_lowercase() && byte.is_ascii_uppercase() => CAMEL_CASE_BONUS,
        Some(before) if !before.is_ascii_digit() && byte.is_ascii_digit() => CAMEL_CASE_BONUS,
        Some(_) => 0,
    }
}

/// Which letters occur, as bits.
pub(crate) fn letter_mask(text: &[u8]) -> u64 {
    text.iter().fold(0, |all, byte| all | 1 << (byte.to_ascii_lowercase() & 63))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The texts that match, best first.
    fn ranked<'a>(pattern: &str, texts: &[&'a str]) -> Vec<&'a str> {
        let pattern = FuzzyPattern::new(pattern);
        let mut found: Vec<(i32, &str)> =
            texts.iter().filter_map(|text| Some((pattern.score(text)?, *text))).collect();
        found.sort_by_key(|(score, text)| (-score, text.len()));
        found.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn names_and_beginnings_come_first() {
        assert_eq!(
            ranked("main", &["src/domain.rs", "src/main.rs", "main/x.rs"]),
            ["src/main.rs", "src/domain.rs", "main/x.rs"]
        );
        assert_eq!(
            ranked("ev", &["believe.rs", "event.rs", "my_event.rs"]),
            ["event.rs", "my_event.rs", "believe.rs"]
        );
        assert_eq!(ranked("fb", &["afab", "foo_bar", "fooBar"]), ["fooBar", "foo_bar", "afab"]);
        assert_eq!(ranked("xyz", &["xy"]), Vec::<&str>::new());
    }

    #[test]
    fn capitals_count_if_there_are_any() {
        assert_eq!(ranked("readme", &["README.md", "readme.txt"]).len(), 2);
        assert_eq!(ranked("README", &["README.md", "readme.txt"]), ["README.md"]);
    }

    #[test]
    fn all_parts_must_be_there() {
        assert_eq!(ranked("rs src", &["src/a.rs", "lib/a.rs", "src/a.md"]), ["src/a.rs"]);
    }

    #[test]
    fn places_are_those_that_are_found() {
        assert_eq!(FuzzyPattern::new("mn").places("src/main.rs"), [4, 7]);
        assert_eq!(FuzzyPattern::new("").places("abc"), Vec::<usize>::new());
    }

    proptest! {
        #[test]
        fn exactly_the_texts_match_that_have_the_letters_in_order(pattern in "[a-c]{1,4}", text in "[a-cA-C/_日]{0,12}") {
            let mut rest = text.to_lowercase().into_bytes().into_iter();
            let expected = pattern.bytes().all(|wanted| rest.any(|byte| byte == wanted));
            let pattern = FuzzyPattern::new(&pattern);
            prop_assert_eq!(pattern.score(&text).is_some(), expected);
            prop_assert!(!expected || pattern.may_match(letter_mask(text.as_bytes())));
            prop_assert!(pattern.places(&text).iter().all(|at| *at < text.len()));
        }
    }
}
