//! How alike two lines are.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Lines that are longer are compared by their beginnings.
const MAX_COMPARED_CHARS: usize = 400;

#[cfg(test)]
thread_local! {
    /// How many pairs of lines were compared letter by letter: the one step that is slow.
    pub(super) static COMPARED_PAIRS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// What two lines have in common.
pub(super) struct LineSimilarity {
    /// Letters that are in both.
    common: usize,
    /// Letters that are in one only.
    pub(super) apart: usize,
}

impl LineSimilarity {
    pub(super) fn of(one: &str, other: &str) -> LineSimilarity {
        #[cfg(test)]
        COMPARED_PAIRS.set(COMPARED_PAIRS.get() + 1);
        let [one, other] = [one, other].map(|line| line.chars().take(MAX_COMPARED_CHARS).collect::<Vec<_>>());
        let ops = capture_diff_slices(Algorithm::Myers, &one, &other);
        let equal = |op: &DiffOp| if let DiffOp::Equal { len, .. } = op { *len } else { 0 };
        let common = ops.iter().map(equal).sum();
        LineSimilarity { common, apart: one.len() + other.len() - 2 * common }
    }

    /// 100 for the same line, 0 for nothing in common.
    pub(super) fn percent(&self) -> usize {
        (200 * self.common).checked_div(2 * self.common + self.apart).unwrap_or(100)
    }
}

/// Whether a line could be written for the other by a slip, and both mean the same: only the space between their words
/// differs, or they are a comment and a few letters apart. Another name, number or sign in code means something else.
pub(super) fn is_slip(one: &str, other: &str) -> bool {
    words(one).eq(words(other)) || (is_comment(one) && is_comment(other) && is_nearly(one, other))
}

/// What a line says, without the space between.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.split_whitespace().flat_map(move |part| {
        // Each sign is a word of its own.
        part.split_inclusive(move |letter| !is_word(letter)).flat_map(move |part| {
            let sign = part.chars().next_back().filter(|letter| !is_word(*letter)).map_or(0, char::len_utf8);
            let (word, sign) = part.split_at(part.len() - sign);
            [word, sign].into_iter().filter(|part| !part.is_empty())
        })
    })
}

fn is_comment(line: &str) -> bool {
    const MARKS: [&str; 7] = ["//", "# ", "/*", "* ", "<!--", "-- ", ";; "];
    MARKS.iter().any(|mark| line.trim_start().starts_with(mark))
}

/// A few letters apart, most in common, and no digit among those that differ.
fn is_nearly(one: &str, other: &str) -> bool {
    let digits = |line: &str| line.chars().filter(char::is_ascii_digit).collect::<String>();
    let is_whole = one.chars().count().max(other.chars().count()) <= MAX_COMPARED_CHARS;
    let similarity = LineSimilarity::of(one, other);
    is_whole && similarity.apart <= 8 && similarity.percent() >= 85 && digits(one) == digits(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_small() {
        assert!(is_slip("// Counts the items.", "// Counts all items."));
        assert!(is_slip("f( a,b )", "f(a, b)"));
        assert!(is_slip("same", "same"));
        assert!(!is_slip("// Counts the items.", "// Counts the items, but only if asked"));
        assert!(!is_slip("// See issue 12.", "// See issue 13."));
        let meanings = [
            ("count(items)", "count(item)"),
            ("if (ready) {", "if (!ready) {"),
            ("while a < b {", "while a > b {"),
            ("return x", "returnx"),
            ("let most = 100;", "let most = 10;"),
            ("say('a b')", "say('ab')"),
            ("#define MOST", "#define MOSTLY"),
        ];
        assert!(meanings.iter().all(|(one, other)| !is_slip(one, other)));
        assert_eq!(LineSimilarity::of("", "").percent(), 100);
        assert_eq!(LineSimilarity::of("abc", "xyz").percent(), 0);
    }
}
