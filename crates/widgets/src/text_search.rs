//! Finding a text in lines. Capitals count if the text has any.

use std::ops::Range;

/// What is looked for; not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SearchNeedle {
    text: String,
    folded: Vec<char>,
    is_exact: bool,
}

impl SearchNeedle {
    pub(crate) fn new(text: &str) -> Option<SearchNeedle> {
        let is_exact = text.chars().any(char::is_uppercase);
        let folded = text.chars().flat_map(char::to_lowercase).collect();
        (!text.is_empty()).then(|| SearchNeedle { text: text.to_owned(), folded, is_exact })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// More bytes than it takes in any line: letters of another case may be longer.
    pub(crate) fn most_bytes(&self) -> usize {
        self.text.len() * 4
    }

    /// All places, none over another.
    pub(crate) fn places(&self, line: &str) -> impl Iterator<Item = Range<usize>> {
        self.matches_from(line, 0)
    }

    /// The places from an offset on.
    pub(crate) fn matches_from(&self, line: &str, from: usize) -> impl Iterator<Item = Range<usize>> {
        let is_ascii = line.is_ascii();
        let mut from = from;
        std::iter::from_fn(move || {
            let place = self.next(line, from, is_ascii)?;
            from = place.end;
            Some(place)
        })
    }

    fn next(&self, line: &str, from: usize, is_ascii: bool) -> Option<Range<usize>> {
        let rest = line.get(from..)?;
        if self.is_exact {
            let at = from + rest.find(&self.text)?;
            return Some(at..at + self.text.len());
        }
        let first = *self.folded.first()?;
        if first.is_ascii() && is_ascii {
            return self.next_ascii(rest.as_bytes(), from);
        }
        let mut starts = rest.char_indices().filter(|(_, c)| c.to_lowercase().next() == Some(first));
        starts.find_map(|(at, _)| Some(from + at..from + at + self.length_at(rest.get(at..)?)?))
    }

    fn next_ascii(&self, rest: &[u8], from: usize) -> Option<Range<usize>> {
        let wanted = self.text.as_bytes();
        let at = rest.windows(wanted.len()).position(|window| window.eq_ignore_ascii_case(wanted))?;
        Some(from + at..from + at + wanted.len())
    }

    /// How many bytes of the text it takes, if it stands at the beginning.
    fn length_at(&self, text: &str) -> Option<usize> {
        let mut wanted = self.folded.iter();
        for (at, c) in text.char_indices() {
            if wanted.len() == 0 {
                return Some(at);
            }
            for lower in c.to_lowercase() {
                if wanted.next() != Some(&lower) {
                    return None;
                }
            }
        }
        (wanted.len() == 0).then_some(text.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn capitals_count_if_there_are_any() {
        let places =
            |needle: &str, line: &str| SearchNeedle::new(needle).unwrap().places(line).collect::<Vec<_>>();
        assert_eq!(places("err", "Error and ERR"), [0..3, 10..13]);
        assert_eq!(places("ERR", "Error, ERR, ERR"), [7..10, 12..15]);
        assert_eq!(places("éa", "xÉa éA"), [1..4, 5..8]);
        assert_eq!(places("aa", "aaaaa"), [0..2, 2..4]);
        assert_eq!(SearchNeedle::new(""), None);
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_was_looked_for(needle in "[a-bé日A ]{1,3}", line in "[a-bé日AÉ ]{0,20}") {
            let needle = SearchNeedle::new(&needle).unwrap();
            let places: Vec<_> = needle.places(&line).collect();
            let is_in = !places.is_empty();
            prop_assert_eq!(is_in, if needle.is_exact { line.contains(needle.text()) } else { line.to_lowercase().contains(&needle.text().to_lowercase()) });
            for place in places {
                prop_assert_eq!(line[place].to_lowercase(), needle.text().to_lowercase());
            }
        }
    }
}
