//! How alike two lines are.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Lines that are longer are compared by their beginnings.
const LETTERS: usize = 400;

/// What two lines have in common.
pub(super) struct Similarity {
    /// Letters that are in both.
    common: usize,
    /// Letters that are in one only.
    pub(super) apart: usize,
}

impl Similarity {
    pub(super) fn of(one: &str, other: &str) -> Similarity {
        let [one, other] = [one, other].map(|line| line.chars().take(LETTERS).collect::<Vec<_>>());
        let ops = capture_diff_slices(Algorithm::Myers, &one, &other);
        let equal = |op: &DiffOp| if let DiffOp::Equal { len, .. } = op { *len } else { 0 };
        let common = ops.iter().map(equal).sum();
        Similarity { common, apart: one.len() + other.len() - 2 * common }
    }

    /// 100 for the same line, 0 for nothing in common.
    pub(super) fn percent(&self) -> usize {
        (200 * self.common).checked_div(2 * self.common + self.apart).unwrap_or(100)
    }
}

/// Whether a line could be typed wrongly for the other, and for nothing else: a few letters apart, most in common.
pub(super) fn is_slip(one: &str, other: &str) -> bool {
    let is_whole = one.chars().count().max(other.chars().count()) <= LETTERS;
    let similarity = Similarity::of(one, other);
    is_whole && similarity.apart <= 8 && similarity.percent() >= 85
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_small() {
        assert!(is_slip("let total = count(items);", "let total = count(item);"));
        assert!(is_slip("same", "same"));
        assert!(!is_slip("let total = count(items);", "let total = count(items); // but only if asked"));
        assert!(!is_slip("a = 1", "b = 2"));
        assert_eq!(Similarity::of("", "").percent(), 100);
        assert_eq!(Similarity::of("abc", "xyz").percent(), 0);
    }
}
