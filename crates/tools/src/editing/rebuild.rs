//! Making the change that was asked for to what is really there.
//!
//! Where a tolerant match was made, the text in the file is not quite the text that was written. So the new text is not
//! simply put in its place: what the edit leaves as it is stays as it is in the file, to the byte.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices_by_key};

use super::normalize::MistypedChars;
use super::shift::IndentShift;

/// A piece of text up to a line break. The last one has no ending, and may be empty.
#[derive(Clone, Copy)]
struct LineSegment<'a> {
    content: &'a str,
    ending: &'a str,
}

fn segments(text: &str) -> Vec<LineSegment<'_>> {
    let mut segments: Vec<LineSegment<'_>> = text
        .split('\n')
        .map(|line| match line.strip_suffix('\r') {
            Some(content) => LineSegment { content, ending: "\r\n" },
            None => LineSegment { content: line, ending: "\n" },
        })
        .collect();
    if let Some(last) = segments.last_mut() {
        let content = text.rsplit('\n').next().unwrap_or_default();
        *last = LineSegment { content, ending: "" };
    }
    segments
}

/// Which lines of the old text the new one keeps.
pub(super) fn kept(old: &[&str], new: &[&str]) -> Vec<bool> {
    let mut kept = vec![false; old.len()];
    for op in capture_diff_slices_by_key(Algorithm::Myers, old, new, |line| *line) {
        if let DiffOp::Equal { .. } = op {
            kept.get_mut(op.old_range()).unwrap_or_default().fill(true);
        }
    }
    kept
}

/// What stands in the place of `real` when `old`, which is the same line for line, becomes `new`. Lines that are new are
/// shifted and end as their neighbours do, or with `ending`.
pub(super) fn rebuild(real: &str, old: &str, new: &str, shift: &IndentShift, ending: &str) -> Option<String> {
    let [real, mut old, mut new] = [real, old, new].map(segments);
    // The text ends where the old one has a line break: that break is not there to be replaced.
    if real.len() + 1 == old.len() && old.last().is_some_and(|last| last.content.is_empty()) {
        old.pop();
        if new.len() > 1 && new.last().is_some_and(|last| last.content.is_empty()) {
            new.pop();
        }
    }
    if real.len() != old.len() {
        return None;
    }
    let mistyped =
        MistypedChars::between(old.iter().zip(&real).map(|(old, real)| (old.content, real.content)));
    let mut text = String::new();
    for op in capture_diff_slices_by_key(Algorithm::Myers, &old, &new, |segment| segment.content) {
        let (from, to) = (op.old_range(), op.new_range());
        let is_equal = matches!(op, DiffOp::Equal { .. });
        for (nth, at) in to.clone().enumerate() {
            let written = new.get(at)?.content;
            let pair =
                from.clone().nth(nth).and_then(|at| Some((real.get(at)?.content, old.get(at)?.content)));
            match pair {
                Some((real, _)) if is_equal => text.push_str(real),
                Some((real, old)) if from.len() == to.len() && *shift == IndentShift::None => {
                    text.push_str(&graft(real, old, written, &mistyped));
                }
                _ => text.push_str(&shift.line(&mistyped.line(written))?),
            }
            if at + 1 < new.len() {
                text.push_str(neighbour(&real, &from, nth).unwrap_or(ending));
            }
        }
    }
    Some(text)
}

/// How the line ends in whose place a new one stands, or the one before it, or the one after it.
fn neighbour<'a>(real: &[LineSegment<'a>], replaced: &Range<usize>, nth: usize) -> Option<&'a str> {
    let own = replaced.clone().nth(nth);
    let before = replaced.start.checked_sub(1);
    let places = own.into_iter().chain(replaced.clone().next_back()).chain(before).chain([replaced.end]);
    places.filter_map(|at| real.get(at)).map(|segment| segment.ending).find(|ending| !ending.is_empty())
}

/// The new line, with the letters of the real one before and after what the edit changes: who writes `"` where the file
/// has `“` does not mean to change it. The same holds for space at the end.
fn graft(real: &str, old: &str, new: &str, mistyped: &MistypedChars) -> String {
    let space = |line: &'_ str| line.len() - line.trim_end().len();
    let [real_end, old_end, new_end] = [real, old, new].map(|line| line.split_at(line.len() - space(line)).1);
    let end = if new_end == old_end { real_end } else { new_end };
    let [real, old, new] = [real, old, new].map(|line| line.trim_end().chars().collect::<Vec<_>>());
    let same = |(one, other): &(&char, &char)| one == other;
    let head = old.iter().zip(&new).take_while(same).count();
    let most = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(most).take_while(same).count();
    if real.len() != old.len() {
        return new.into_iter().map(|letter| mistyped.letter(letter)).chain(end.chars()).collect();
    }
    let middle = new.iter().take(new.len() - tail).skip(head).map(|letter| mistyped.letter(*letter));
    let (before, after) = (real.iter().take(head), real.iter().skip(real.len() - tail));
    before.copied().chain(middle).chain(after.copied()).chain(end.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(real: &str, old: &str, new: &str) -> String {
        rebuild(real, old, new, &IndentShift::None, "\r\n").unwrap()
    }

    #[test]
    fn what_is_kept_stays_as_it_is() {
        assert_eq!(built("a \r\nb\nc\r\n", "a\nb\nc\n", "a\nB\nc\n"), "a \r\nB\nc\r\n");
        assert_eq!(built("a\r\nb", "a\nb", "a\nx\ny\nb"), "a\r\nx\r\ny\r\nb");
        assert_eq!(built("a", "a", "a\nb"), "a\r\nb");
        assert_eq!(built("a\r\nb\r\n", "a\nb\n", ""), "");
    }

    #[test]
    fn the_end_of_the_text_stays_without_a_break() {
        assert_eq!(built("a\r\nb", "a\nb\n", "a\nc\n"), "a\r\nc");
        assert_eq!(built("a\r\nb", "a\nb\n", "a\n"), "a");
    }

    #[test]
    fn letters_around_a_change_stay_as_they_are() {
        assert_eq!(built("say “hi” to", "say \"hi\" to", "say \"hi\" you"), "say “hi” you");
        assert_eq!(built("it’s “x”", "it's \"x\"", "it's y and \"x\""), "it’s y and “x”");
        let graft = |real, old, new| graft(real, old, new, &MistypedChars::default());
        assert_eq!(graft("aa", "aa", "aaa"), "aaa");
        assert_eq!(graft("–", "-", ""), "");
        assert_eq!(graft("x = 1", "x = 1  ", "x = 2  "), "x = 2");
        assert_eq!(graft("x = 1\t", "x = 1", "x = 2"), "x = 2\t");
        assert_eq!(graft("x = 1", "x = 1 ", "x = 2"), "x = 2");
    }

    #[test]
    fn typographic_letters_that_the_file_does_not_have_do_not_come_into_it() {
        assert_eq!(built("x = 'a'", "x = ‘a’", "x = ‘a’\ny = ‘b’"), "x = 'a'\r\ny = 'b'");
        assert_eq!(built("x = 'a'\n", "x = ‘a’\n", "x = ‘b’ + ‘c’\n"), "x = 'b' + 'c'\n");
        // Here the file has one, so they may be meant.
        assert_eq!(built("x = '’'", "x = ‘’’", "x = ‘’’\ny = ‘’’"), "x = '’'\r\ny = '’’");
    }

    #[test]
    fn what_does_not_fit_line_for_line_is_not_built() {
        assert_eq!(rebuild("a\nb\nc", "a\nb", "x", &IndentShift::None, "\n"), None);
    }
}
