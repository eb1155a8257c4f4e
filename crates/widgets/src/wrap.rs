//! Styled lines wrapped by words.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::width::{Glyph, glyphs, line_width, truncate};

/// Stands for what is wider than a whole row.
const TOO_WIDE: &str = "…";

/// The rows of a line, none wider than `width`.
pub fn wrap(line: &Line<'_>, width: usize) -> Vec<Line<'static>> {
    wrap_after(line, width, &Line::default(), &Line::default())
}

/// The rows of a line: `first` stands before the first of them, `rest` before all others. At least half of the width is
/// left for the line.
pub fn wrap_after(line: &Line<'_>, width: usize, first: &Line<'_>, rest: &Line<'_>) -> Vec<Line<'static>> {
    let width = width.max(1);
    let (first, rest) = (truncate_prefix(first, width / 2), truncate_prefix(rest, width / 2));
    let mut rows = Rows { width, rest, done: Vec::new(), row: Row::after(&first) };
    let mut word = Word::default();
    let mut column = 0;
    for span in &line.spans {
        let style = line.style.patch(span.style);
        for glyph in glyphs(&span.content, column) {
            column += glyph.width;
            let is_space = glyph.text.starts_with(' ');
            if is_space || word.ends_before(&glyph) {
                rows.place(&mut word);
            }
            if is_space {
                word.spaces.push((glyph, style));
            } else {
                word.add(glyph, style);
            }
        }
    }
    rows.finish(word)
}

fn truncate_prefix(prefix: &Line<'_>, most: usize) -> Line<'static> {
    let fits = line_width(prefix) <= most;
    if fits { truncate(prefix, most) } else { Line::from(" ".repeat(most.min(2))) }
}

/// Adds text to the spans of a row, to the last one if the style is the same.
pub(crate) fn push(spans: &mut Vec<Span<'static>>, text: &str, style: Style) {
    match spans.last_mut() {
        Some(last) if last.style == style => last.content.to_mut().push_str(text),
        _ => spans.push(Span::styled(text.to_owned(), style)),
    }
}

type Styled<'a> = (Glyph<'a>, Style);

/// What may not be torn unless it is wider than a row, with the spaces before it.
#[derive(Default)]
struct Word<'a> {
    spaces: Vec<Styled<'a>>,
    glyphs: Vec<Styled<'a>>,
    width: usize,
}

impl<'a> Word<'a> {
    fn add(&mut self, glyph: Glyph<'a>, style: Style) {
        self.width += glyph.width;
        self.glyphs.push((glyph, style));
    }

    /// Wide characters stand for themselves: their languages put no spaces between words.
    fn ends_before(&self, next: &Glyph<'_>) -> bool {
        self.glyphs.last().is_some_and(|(last, _)| last.width > 1 || next.width > 1)
    }
}

struct Row {
    spans: Vec<Span<'static>>,
    width: usize,
    /// Nothing but the prefix stands in it.
    is_fresh: bool,
}

impl Row {
    fn after(prefix: &Line<'static>) -> Row {
        Row { spans: prefix.spans.clone(), width: line_width(prefix), is_fresh: true }
    }

    fn add(&mut self, (glyph, style): &Styled<'_>) {
        push(&mut self.spans, &glyph.text, *style);
        self.width += glyph.width;
        self.is_fresh = false;
    }
}

struct Rows {
    width: usize,
    rest: Line<'static>,
    done: Vec<Line<'static>>,
    row: Row,
}

impl Rows {
    fn end_row(&mut self) {
        let row = std::mem::replace(&mut self.row, Row::after(&self.rest));
        self.done.push(Line::from(row.spans));
    }

    fn room(&self) -> usize {
        self.width - self.row.width
    }

    /// Puts the word where it fits, and forgets it.
    fn place(&mut self, word: &mut Word<'_>) {
        if word.glyphs.is_empty() {
            return;
        }
        let spaces: usize = word.spaces.iter().map(|(glyph, _)| glyph.width).sum();
        let is_indented = self.row.is_fresh && self.done.is_empty() && spaces < self.room();
        if is_indented || spaces + word.width <= self.room() {
            word.spaces.iter().for_each(|space| self.row.add(space));
        } else if !self.row.is_fresh {
            self.end_row();
        }
        for glyph in &word.glyphs {
            self.add(glyph);
        }
        *word = Word::default();
    }

    /// Adds a glyph, in the next row if this one is full.
    fn add(&mut self, glyph: &Styled<'_>) {
        if glyph.0.width > self.room() && !self.row.is_fresh {
            self.end_row();
        }
        if glyph.0.width <= self.room() {
            self.row.add(glyph);
        } else {
            push(&mut self.row.spans, TOO_WIDE, glyph.1);
            self.row.width += 1;
            self.row.is_fresh = false;
        }
    }

    /// Spaces at the end are kept as far as they fit: they may have a background.
    fn finish(mut self, mut word: Word<'_>) -> Vec<Line<'static>> {
        self.place(&mut word);
        for space in &word.spaces {
            if space.0.width <= self.room() {
                self.row.add(space);
            }
        }
        self.done.push(Line::from(self.row.spans));
        self.done
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ratatui::style::Stylize;

    use super::*;

    fn texts(rows: &[Line<'_>]) -> Vec<String> {
        rows.iter().map(ToString::to_string).collect()
    }

    fn wrapped(text: &str, width: usize) -> Vec<String> {
        texts(&wrap(&Line::from(text.to_owned()), width))
    }

    #[test]
    fn words_stay_whole_where_they_fit() {
        assert_eq!(wrapped("the quick brown fox", 10), ["the quick", "brown fox"]);
        assert_eq!(wrapped("a  b   c", 4), ["a  b", "c"]);
        assert_eq!(wrapped("incomprehensible", 6), ["incomp", "rehens", "ible"]);
        assert_eq!(wrapped("日本語です", 5), ["日本", "語で", "す"]);
        assert_eq!(wrapped("    code", 20), ["    code"]);
        assert_eq!(wrapped("", 5), [""]);
    }

    #[test]
    fn what_is_wider_than_the_window_is_replaced() {
        assert_eq!(wrapped("日a", 1), ["…", "a"]);
    }

    #[test]
    fn prefixes_hang() {
        let line = Line::from("one two three");
        let rows = wrap_after(&line, 9, &Line::from("• "), &Line::from("  "));
        assert_eq!(texts(&rows), ["• one two", "  three"]);
    }

    #[test]
    fn styles_follow_their_words() {
        let line = Line::from(vec!["plain ".into(), "bold words".bold()]);
        let rows = wrap(&line, 10);
        assert_eq!(rows, [Line::from(vec!["plain ".into(), "bold".bold()]), Line::from("words".bold())]);
    }

    proptest! {
        #[test]
        fn rows_fit_and_no_word_is_lost(text in "[a-d 日\t]{0,60}", width in 1usize..12, hang in 0usize..8) {
            let prefix = Line::from(" ".repeat(hang));
            let rows = wrap_after(&Line::from(text.clone()), width, &prefix, &prefix);
            prop_assert!(rows.iter().all(|row| line_width(row) <= width));
            let squeezed = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            if width > 3 {
                prop_assert_eq!(squeezed(&texts(&rows).concat()), squeezed(&text));
            }
        }

        #[test]
        fn any_text_fits(text in any::<String>(), width in 1usize..9) {
            prop_assert!(wrap(&Line::from(text), width).iter().all(|row| line_width(row) <= width));
        }
    }
}
