//! The lines of a file that come nearest to lines that are not in it. Everything here is linear in the file.

use std::collections::{HashMap, HashSet};
use std::fmt;

use helve_workspace::FileLine;

use super::similarity::LineSimilarity;

/// A line that is really there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearestLine {
    /// Counted from 1.
    pub line: usize,
    pub text: String,
}

impl fmt::Display for NearestLine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:>6}\t{}", self.line, self.text)
    }
}

/// What is shown at most.
const MAX_NEAREST_LINES: usize = 12;
const MAX_NEAREST_LINE_CHARS: usize = 200;
/// How many of the wanted lines are looked for.
const MAX_WANTED_LINES: usize = 400;
/// A line that is there more often says little about where we are.
const MAX_LINE_REPEATS: usize = 32;
/// How many lines are compared letter by letter.
pub(super) const MAX_COMPARED_LINES: usize = 24;
/// What is less alike is not worth showing.
const MIN_SIMILARITY_PERCENT: usize = 50;

/// The lines that come nearest, a dozen at most; none if nothing is like them.
pub(super) fn nearest(lines: &[FileLine<'_>], wanted: &[&str]) -> Vec<NearestLine> {
    let wanted: Vec<&str> = wanted.iter().take(MAX_WANTED_LINES).map(|line| line.trim()).collect();
    let first = by_equal_lines(lines, &wanted).or_else(|| by_words(lines, &wanted));
    let Some(first) = first else { return Vec::new() };
    shown(lines, first, wanted.len().saturating_add(2).clamp(5, MAX_NEAREST_LINES))
}

/// Some lines as they are shown.
pub(super) fn shown(lines: &[FileLine<'_>], from: usize, count: usize) -> Vec<NearestLine> {
    let lines = lines.iter().enumerate().skip(from).take(count);
    lines
        .map(|(at, line)| NearestLine {
            line: at + 1,
            text: line.content.chars().take(MAX_NEAREST_LINE_CHARS).collect(),
        })
        .collect()
}

/// Lines that are equal but for space at both ends vote for where the block would begin. The answer is a little before the
/// first line that differs.
fn by_equal_lines(lines: &[FileLine<'_>], wanted: &[&str]) -> Option<usize> {
    let mut places: HashMap<&str, Vec<usize>> =
        wanted.iter().filter(|line| !line.is_empty()).map(|line| (*line, Vec::new())).collect();
    for (at, line) in lines.iter().enumerate() {
        if let Some(places) = places.get_mut(line.content.trim())
            && places.len() <= MAX_LINE_REPEATS
        {
            places.push(at);
        }
    }
    // A block may begin before the file does, so all beginnings are counted from a block's length before it.
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (index, line) in wanted.iter().enumerate() {
        let Some(places) = places.get(line).filter(|places| places.len() <= MAX_LINE_REPEATS) else {
            continue;
        };
        for at in places {
            *votes.entry(at + wanted.len() - index).or_default() += line.len().min(40);
        }
    }
    let best = votes.into_iter().max_by_key(|(begin, weight)| (*weight, std::cmp::Reverse(*begin)))?.0;
    let differs = |index: &usize| {
        let at = (best + index).checked_sub(wanted.len());
        let real = at.and_then(|at| lines.get(at)).map(|line| line.content.trim());
        real != wanted.get(*index).copied()
    };
    let first = (0..wanted.len()).find(differs).unwrap_or(0);
    Some((best + first).saturating_sub(wanted.len() + 2))
}

/// The line that shares most words with the longest of the wanted ones.
fn by_words(lines: &[FileLine<'_>], wanted: &[&str]) -> Option<usize> {
    let longest = wanted.iter().max_by_key(|line| line.len())?;
    let words: HashSet<&str> = words(longest).collect();
    let shared = |line: &FileLine<'_>| self::words(line.content).filter(|word| words.contains(word)).count();
    let mut ranked: Vec<(usize, usize)> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| (shared(line), at))
        .filter(|(shared, _)| *shared > 0)
        .collect();
    ranked.sort_unstable_by_key(|(shared, at)| (std::cmp::Reverse(*shared), *at));
    let alike = |at: usize| {
        lines.get(at).map_or(0, |line| LineSimilarity::of(line.content.trim(), longest).percent())
    };
    let compared = ranked.into_iter().take(MAX_COMPARED_LINES).map(|(_, at)| (alike(at), at));
    let best = compared
        .filter(|(alike, _)| *alike >= MIN_SIMILARITY_PERCENT)
        .max_by_key(|(alike, at)| (*alike, std::cmp::Reverse(*at)));
    best.map(|(_, at)| at.saturating_sub(2))
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| word.len() > 1)
}

#[cfg(test)]
mod tests {
    use helve_workspace::lines;

    use super::*;

    fn near(text: &str, wanted: &[&str]) -> Vec<usize> {
        nearest(&lines(text).collect::<Vec<_>>(), wanted).iter().map(|near| near.line).collect()
    }

    #[test]
    fn equal_lines_say_where() {
        let text = "a\nb\nfn one() {\n    work();\n}\nfn two() {\n    rest();\n}\nc\nd\n";
        assert_eq!(near(text, &["fn two() {", "    play();", "}"]), [5, 6, 7, 8, 9]);
        assert_eq!(near(text, &["before", "a"]), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn words_say_where_if_no_line_is_equal() {
        let text = "alpha\nbeta\nlet total = sum(prices);\ngamma\n";
        assert_eq!(near(text, &["let totals = sum(prices)"]), [1, 2, 3, 4]);
        assert_eq!(near(text, &["nothing like this"]), [] as [usize; 0]);
    }

    #[test]
    fn what_is_shown_is_bounded() {
        let text = format!("{}\n", "long ".repeat(1_000)).repeat(50);
        let wanted = "long ".repeat(999);
        let lines: Vec<FileLine<'_>> = lines(&text).collect();
        let shown = nearest(&lines, &[wanted.as_str(); 60]);
        assert_eq!(shown.len(), MAX_NEAREST_LINES);
        assert!(shown.iter().all(|near| near.text.len() <= MAX_NEAREST_LINE_CHARS));
    }
}
