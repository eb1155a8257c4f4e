//! A text in which some letters stand for others, and the way back to where they really are.

/// What is taken for the same.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NormalizationLevel {
    /// `\r\n` for `\n`.
    Endings,
    /// That, and typographic letters for plain ones.
    Letters,
}

/// A text as it looks under a tolerance.
pub(super) struct NormalizedText {
    pub(super) text: String,
    /// After each letter that changed its length: where we are here, and where in the original.
    marks: Vec<(usize, usize)>,
}

impl NormalizedText {
    pub(super) fn new(original: &str, tolerance: NormalizationLevel) -> NormalizedText {
        let mut squeezed = NormalizedText { text: String::with_capacity(original.len()), marks: Vec::new() };
        let mut letters = original.char_indices().peekable();
        while let Some((at, letter)) = letters.next() {
            let is_break = letter == '\r' && letters.next_if(|(_, next)| *next == '\n').is_some();
            let plain = match tolerance {
                _ if is_break => '\n',
                NormalizationLevel::Endings => letter,
                NormalizationLevel::Letters => plain(letter),
            };
            squeezed.text.push(plain);
            let length = letter.len_utf8() + usize::from(is_break);
            if length != plain.len_utf8() {
                squeezed.marks.push((squeezed.text.len(), at + length));
            }
        }
        squeezed
    }

    /// The place in the original.
    pub(super) fn original(&self, at: usize) -> usize {
        let marks = self.marks.partition_point(|(here, _)| *here <= at);
        let (here, there) =
            marks.checked_sub(1).and_then(|last| self.marks.get(last)).copied().unwrap_or_default();
        there + (at - here)
    }
}

/// The letter that a keyboard has for a typographic one.
pub(super) fn plain(letter: char) -> char {
    match letter {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

/// The typographic letters that somebody wrote where the file has the plain ones. In what is new they are not meant
/// either.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MistypedChars(Vec<char>);

impl MistypedChars {
    /// Compares lines that are the same but for such letters and the space around them.
    pub(super) fn between<'l>(pairs: impl Iterator<Item = (&'l str, &'l str)> + Clone) -> MistypedChars {
        let letters =
            || pairs.clone().flat_map(|(written, real)| written.trim().chars().zip(real.trim().chars()));
        let mut mistyped: Vec<char> = letters()
            .filter(|(written, real)| written != real && plain(*written) == *real)
            .map(|(written, _)| written)
            .collect();
        mistyped.sort_unstable();
        mistyped.dedup();
        // What the file has too is meant.
        mistyped.retain(|letter| letters().all(|(_, real)| real != *letter));
        MistypedChars(mistyped)
    }

    pub(super) fn letter(&self, letter: char) -> char {
        if self.0.contains(&letter) { plain(letter) } else { letter }
    }

    pub(super) fn line(&self, line: &str) -> String {
        line.chars().map(|letter| self.letter(letter)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn places_are_found_again() {
        let squeezed = NormalizedText::new("a\r\n“b”\r\nc", NormalizationLevel::Letters);
        assert_eq!(squeezed.text, "a\n\"b\"\nc");
        let places: Vec<usize> = (0..=squeezed.text.len()).map(|at| squeezed.original(at)).collect();
        assert_eq!(places, [0, 1, 3, 6, 7, 10, 12, 13]);
    }

    proptest! {
        #[test]
        fn every_letter_comes_from_its_own(text in "([a“ \u{a0}—é]|\r|\n|\r\n){0,40}") {
            let squeezed = NormalizedText::new(&text, NormalizationLevel::Letters);
            for (at, letter) in squeezed.text.char_indices() {
                let real = text[squeezed.original(at)..].chars().next().unwrap();
                let end = squeezed.original(at + letter.len_utf8());
                prop_assert!(plain(real) == letter || text[..end].ends_with("\r\n"));
            }
            prop_assert_eq!(squeezed.original(squeezed.text.len()), text.len());
        }
    }
}
