//! What is wrong with the settings, said so that a person can put it right.

use std::fmt;

use serde::Serialize;

use crate::place::{Layer, Origin, Place};

/// A message may quote a file that anybody wrote: longer ones are cut.
const LONGEST_MESSAGE: usize = 400;
/// More problems than this at once help nobody.
const MOST_PROBLEMS: usize = 200;

/// One mistake, with the place to mend it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub layer: Layer,
    pub place: Place,
    /// The dotted key, where there is one.
    pub key: Option<String>,
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(origin: Origin, message: impl AsRef<str>) -> Problem {
        let Origin { layer, place } = origin;
        Problem { layer, place, key: None, message: presentable(message.as_ref()), hint: None }
    }

    pub(crate) fn about(mut self, key: &impl ToString) -> Problem {
        self.key = Some(presentable(&key.to_string()));
        self
    }

    pub(crate) fn hint(mut self, hint: impl AsRef<str>) -> Problem {
        self.hint = Some(presentable(hint.as_ref()));
        self
    }
}

/// Text that is safe to show in a terminal, whatever file it quotes.
pub(crate) fn presentable(text: &str) -> String {
    match text.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => escaped(text.get(..end).unwrap_or(text)) + "…",
        None => escaped(text),
    }
}

/// The same, however long it is.
pub(crate) fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_unsafe(letter) { shown.extend(letter.escape_unicode()) } else { shown.push(letter) }
    }
    shown
}

/// Whether it could act on the terminal, or make text look like other text by turning it around.
fn is_unsafe(letter: char) -> bool {
    let turns = matches!(letter, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    letter.is_control() || turns
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  {hint}"),
            None => Ok(()),
        }
    }
}

/// Every mistake in all sources, sorted by layer and position. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    list: Vec<Problem>,
    /// How many were left out.
    more: usize,
}

impl Problems {
    pub(crate) fn new(mut list: Vec<Problem>) -> Problems {
        list.sort_by(|a, b| (a.layer, &a.place).cmp(&(b.layer, &b.place)));
        let more = list.len().saturating_sub(MOST_PROBLEMS);
        list.truncate(MOST_PROBLEMS);
        Problems { list, more }
    }

    pub fn list(&self) -> &[Problem] {
        &self.list
    }

    /// How many problems there are, those beyond the listed ones too.
    pub fn count(&self) -> usize {
        self.list.len() + self.more
    }
}

/// One problem per paragraph.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.list.iter().enumerate() {
            let gap = if index == 0 { "" } else { "\n\n" };
            write!(f, "{gap}{problem}")?;
        }
        if self.more > 0 {
            write!(f, "\n\nand {} more", self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_escape_sequence_never_reaches_the_terminal() {
        assert_eq!(presentable("a\u{1b}[2Jb\u{9b}c"), "a\\u{1b}[2Jb\\u{9b}c");
        assert_eq!(presentable("é\u{202e}"), "é\\u{202e}");
    }

    #[test]
    fn a_flood_of_problems_is_cut_and_counted() {
        let one = Problem::new(Origin::BUILT_IN, "wrong");
        let problems = Problems::new(vec![one; MOST_PROBLEMS + 7]);
        assert_eq!((problems.list().len(), problems.count()), (MOST_PROBLEMS, MOST_PROBLEMS + 7));
        assert!(problems.to_string().ends_with("\n\nand 7 more"));
    }
}
