//! Which words of a line have changed.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

/// Lines with more words are compared at their ends only: the table grows with the square.
const MAX_COMPARED_WORDS: usize = 200;

/// If less than a third is the same, the line is another one, and nothing in it is pointed out.
const MIN_SAME_DIVISOR: usize = 3;

/// What is gone from the old line, and what is new in the new one.
pub(crate) fn changed_parts(old: &str, new: &str) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    let nothing = (Vec::new(), Vec::new());
    let (old_words, new_words) = (words(old), words(new));
    let prefix = old_words.iter().zip(&new_words).take_while(|(old, new)| old.1 == new.1).count();
    let room = old_words.len().min(new_words.len()) - prefix;
    let suffix = old_words
        .iter()
        .rev()
        .zip(new_words.iter().rev())
        .take(room)
        .take_while(|(old, new)| old.1 == new.1)
        .count();
    let middle = |words: &[IndexedWord<'_>]| prefix..words.len() - suffix;
    let (old_middle, new_middle) = (middle(&old_words), middle(&new_words));
    let old_rest = old_words.get(old_middle).unwrap_or_default();
    let new_rest = new_words.get(new_middle).unwrap_or_default();
    let (gone, came) = if old_rest.len().max(new_rest.len()) <= MAX_COMPARED_WORDS {
        differences(old_rest, new_rest)
    } else {
        (vec![true; old_rest.len()], vec![true; new_rest.len()])
    };
    let (old_parts, new_parts) = (joined(old_rest, &gone), joined(new_rest, &came));
    let changed: usize = old_parts.iter().chain(&new_parts).map(Range::len).sum();
    let same = (old.len() + new.len()).saturating_sub(changed);
    if same * MIN_SAME_DIVISOR < old.len() + new.len() { nothing } else { (old_parts, new_parts) }
}

/// Where a word begins, and the word.
type IndexedWord<'a> = (usize, &'a str);

fn words(text: &str) -> Vec<IndexedWord<'_>> {
    text.split_word_bound_indices().collect()
}

/// For each word, whether it has no counterpart: by the longest common subsequence.
fn differences(old: &[IndexedWord<'_>], new: &[IndexedWord<'_>]) -> (Vec<bool>, Vec<bool>) {
    let width = new.len() + 1;
    // The length of the longest common subsequence of what comes from here on.
    let mut table = vec![0u16; (old.len() + 1) * width];
    let at = |table: &[u16], i: usize, j: usize| table.get(i * width + j).copied().unwrap_or(0);
    for (i, (_, old_word)) in old.iter().enumerate().rev() {
        for (j, (_, new_word)) in new.iter().enumerate().rev() {
            let length = if old_word == new_word {
                at(&table, i + 1, j + 1) + 1
            } else {
                at(&table, i + 1, j).max(at(&table, i, j + 1))
            };
            if let Some(cell) = table.get_mut(i * width + j) {
                *cell = length;
            }
        }
    }
    let (mut gone, mut came) = (Vec::new(), Vec::new());
    let (mut i, mut j) = (0, 0);
    while let (Some((_, old_word)), Some((_, new_word))) = (old.get(i), new.get(j)) {
        if old_word == new_word {
            gone.push(false);
            came.push(false);
            (i, j) = (i + 1, j + 1);
        } else if at(&table, i + 1, j) >= at(&table, i, j + 1) {
            gone.push(true);
            i += 1;
        } else {
            came.push(true);
            j += 1;
        }
    }
    gone.resize(old.len(), true);
    came.resize(new.len(), true);
    (gone, came)
}

/// The ranges of the marked words; neighbours are one.
fn joined(words: &[IndexedWord<'_>], marks: &[bool]) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    for ((start, word), _) in words.iter().zip(marks).filter(|(_, is_marked)| **is_marked) {
        let part = *start..start + word.len();
        match parts.last_mut() {
            Some(last) if last.end == part.start => last.end = part.end,
            _ => parts.push(part),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told<'a>(old: &'a str, new: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
        let (gone, came) = changed_parts(old, new);
        (gone.into_iter().map(|part| &old[part]).collect(), came.into_iter().map(|part| &new[part]).collect())
    }

    #[test]
    fn changed_words_are_found() {
        assert_eq!(told("let x = foo(a, b);", "let x = bar(a, b);"), (vec!["foo"], vec!["bar"]));
        assert_eq!(told("a b c d e", "a x c d y e"), (vec!["b"], vec!["x", " y"]));
        assert_eq!(told("same", "same"), (vec![], vec![]));
        assert_eq!(told("nothing alike", "quite different words"), (vec![], vec![]));
    }

    proptest! {
        #[test]
        fn what_is_not_pointed_out_is_the_same(old in "[ab ,日]{0,30}", new in "[ab ,日]{0,30}") {
            let (gone, came) = changed_parts(&old, &new);
            let left = |text: &str, parts: &[Range<usize>]| {
                text.char_indices().filter(|(at, _)| !parts.iter().any(|part| part.contains(at))).map(|(_, c)| c).collect::<String>()
            };
            prop_assert!((gone.is_empty() && came.is_empty()) || left(&old, &gone) == left(&new, &came));
        }
    }
}
