//! Styled lines wrapped by words.

use std::collections::VecDeque;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::glyph_source::{GlyphPosition, GlyphSource};
use crate::styled_spans::push_styled;
use crate::width::{TextGlyph, line_width, truncate};

/// Stands for what is wider than a whole row.
const TOO_WIDE_MARK: &str = "…";

/// The rows of a line, none wider than `width`.
pub fn wrap(line: &Line<'_>, width: usize) -> Vec<Line<'static>> {
    LineWrapper::new(line, width).map(|(_, row)| row).collect()
}

/// The rows of a line: `first` stands before the first of them, `rest` before all others. At least half of the width is
/// left for the line.
pub fn wrap_with_prefix(
    line: &Line<'_>,
    width: usize,
    first: &Line<'_>,
    rest: &Line<'_>,
) -> Vec<Line<'static>> {
    let mut rows = LineWrapper::new(line, width);
    let most = rows.width / 2;
    rows.row = WrapRow::after(&truncate_prefix(first, most));
    rows.rest = truncate_prefix(rest, most);
    rows.map(|(_, row)| row).collect()
}

fn truncate_prefix(prefix: &Line<'_>, most: usize) -> Line<'static> {
    let fits = line_width(prefix) <= most;
    if fits { truncate(prefix, most) } else { Line::from(" ".repeat(most.min(2))) }
}

/// A glyph, its style, and where it is.
type StyledGlyph<'a> = (TextGlyph<'a>, Style, GlyphPosition);

/// What may not be torn unless it is wider than a row, with the spaces before it.
#[derive(Default)]
struct WrapWord<'a> {
    /// As many as a row has room for.
    spaces: Vec<StyledGlyph<'a>>,
    spaces_width: usize,
    glyphs: Vec<StyledGlyph<'a>>,
    width: usize,
    last_width: Option<usize>,
    /// It is wider than a row, and its beginning is placed already.
    is_torn: bool,
}

impl WrapWord<'_> {
    /// Wide characters stand for themselves: their languages put no spaces between words.
    fn ends_before(&self, next: &TextGlyph<'_>) -> bool {
        self.last_width.is_some_and(|last| last > 1 || next.width > 1)
    }
}

struct WrapRow {
    spans: Vec<Span<'static>>,
    width: usize,
    /// Where its first glyph is; none if nothing but the prefix stands in it.
    start: Option<GlyphPosition>,
}

impl WrapRow {
    fn after(prefix: &Line<'static>) -> WrapRow {
        WrapRow { spans: prefix.spans.clone(), width: line_width(prefix), start: None }
    }

    fn add(&mut self, text: &str, width: usize, style: Style, place: GlyphPosition) {
        push_styled(&mut self.spans, text, style);
        self.width += width;
        self.start.get_or_insert(place);
    }
}

/// The rows of a line, each with the place where it begins. No more is read than the rows need, and to begin at the place
/// of a row makes the same rows from there on.
pub(crate) struct LineWrapper<'a> {
    source: GlyphSource<'a>,
    width: usize,
    rest: Line<'static>,
    word: WrapWord<'a>,
    row: WrapRow,
    is_first: bool,
    done: VecDeque<(GlyphPosition, Line<'static>)>,
    is_finished: bool,
}

impl<'a> LineWrapper<'a> {
    pub(crate) fn new(line: &'a Line<'_>, width: usize) -> LineWrapper<'a> {
        LineWrapper::of(GlyphSource::new(line), width)
    }

    pub(crate) fn of(source: GlyphSource<'a>, width: usize) -> LineWrapper<'a> {
        LineWrapper {
            is_first: source.is_at_beginning(),
            source,
            width: width.max(1),
            rest: Line::default(),
            word: WrapWord::default(),
            row: WrapRow::after(&Line::default()),
            done: VecDeque::new(),
            is_finished: false,
        }
    }

    fn take(&mut self, styled: StyledGlyph<'a>) {
        let glyph = &styled.0;
        let is_space = glyph.text.starts_with(' ');
        if is_space || self.word.ends_before(glyph) {
            self.end_word();
        }
        if is_space {
            self.word.spaces_width += glyph.width;
            if self.word.spaces_width <= self.width {
                self.word.spaces.push(styled);
            } else {
                self.word.spaces_width += self.source.skip_spaces();
            }
            return;
        }
        self.word.last_width = Some(glyph.width);
        if self.word.is_torn {
            self.add(&styled);
            return;
        }
        self.word.width += glyph.width;
        self.word.glyphs.push(styled);
        if self.word.width > self.width {
            self.place_word();
            self.word.is_torn = true;
        }
    }

    fn end_row(&mut self) {
        let row = std::mem::replace(&mut self.row, WrapRow::after(&self.rest));
        self.is_first = false;
        self.done.push_back((row.start.unwrap_or_default(), Line::from(row.spans)));
    }

    fn room(&self) -> usize {
        self.width - self.row.width
    }

    /// Spaces that follow each other belong together.
    fn end_word(&mut self) {
        if self.word.last_width.is_some() {
            self.place_word();
            self.word = WrapWord::default();
        }
    }

    /// Puts what there is of the word where it fits.
    fn place_word(&mut self) {
        let glyphs = std::mem::take(&mut self.word.glyphs);
        if glyphs.is_empty() {
            return;
        }
        let spaces = self.word.spaces_width;
        let is_fresh = self.row.start.is_none();
        let is_indented = is_fresh && self.is_first && spaces < self.room();
        if is_indented || spaces + self.word.width <= self.room() {
            for (glyph, style, place) in std::mem::take(&mut self.word.spaces) {
                self.row.add(&glyph.text, glyph.width, style, place);
            }
        } else if !is_fresh {
            self.end_row();
        }
        for glyph in &glyphs {
            self.add(glyph);
        }
    }

    /// Adds a glyph, in the next row if this one is full.
    fn add(&mut self, (glyph, style, place): &StyledGlyph<'_>) {
        if glyph.width > self.room() && self.row.start.is_some() {
            self.end_row();
        }
        if glyph.width <= self.room() {
            self.row.add(&glyph.text, glyph.width, *style, *place);
        } else {
            self.row.add(TOO_WIDE_MARK, 1, *style, *place);
        }
    }

    /// Spaces at the end are kept as far as they fit: they may have a background.
    fn finish(&mut self) {
        self.end_word();
        for (glyph, style, place) in std::mem::take(&mut self.word.spaces) {
            if glyph.width > self.room() {
                break;
            }
            self.row.add(&glyph.text, glyph.width, style, place);
        }
        self.end_row();
        self.is_finished = true;
    }
}

impl Iterator for LineWrapper<'_> {
    type Item = (GlyphPosition, Line<'static>);

    fn next(&mut self) -> Option<Self::Item> {
        while self.done.is_empty() && !self.is_finished {
            match self.source.next() {
                Some(glyph) => self.take(glyph),
                None => self.finish(),
            }
        }
        self.done.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ratatui::style::Stylize;

    use super::*;
    use crate::width::{glyphs, width as columns};

    fn texts(rows: &[Line<'_>]) -> Vec<String> {
        rows.iter().map(ToString::to_string).collect()
    }

    fn wrapped(text: &str, width: usize) -> Vec<String> {
        texts(&wrap(&Line::from(text.to_owned()), width))
    }

    /// The words of a text with the spaces before them; the last word may be empty.
    fn words(text: &str) -> Vec<(String, String)> {
        let mut words = vec![(String::new(), String::new())];
        for glyph in glyphs(text, 0) {
            let (spaces, word) = words.last_mut().unwrap();
            let is_space = glyph.text.starts_with(' ');
            if is_space && word.is_empty() {
                spaces.push_str(&glyph.text);
            } else if is_space {
                words.push((glyph.text.into(), String::new()));
            } else if !word.is_empty() && (glyph.width > 1 || word.contains('日')) {
                words.push((String::new(), glyph.text.into()));
            } else {
                word.push_str(&glyph.text);
            }
        }
        words
    }

    /// All at once, word by word.
    fn plainly_wrapped(text: &str, width: usize) -> Vec<String> {
        let mut rows = vec![String::new()];
        for (spaces, word) in words(text) {
            let row = rows.last().unwrap();
            let room = width - columns(row);
            let is_indented = rows.len() == 1 && row.is_empty() && spaces.len() < room;
            if word.is_empty() {
                rows.last_mut().unwrap().extend(spaces.chars().take(room));
                break;
            }
            if is_indented || spaces.len() + columns(&word) <= room {
                rows.last_mut().unwrap().push_str(&spaces);
            } else if !row.is_empty() {
                rows.push(String::new());
            }
            for c in word.chars() {
                let c_width = columns(&c.to_string());
                if columns(rows.last().unwrap()) + c_width > width && !rows.last().unwrap().is_empty() {
                    rows.push(String::new());
                }
                rows.last_mut().unwrap().push(if c_width > width { '…' } else { c });
            }
        }
        rows
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
        let rows = wrap_with_prefix(&line, 9, &Line::from("• "), &Line::from("  "));
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
        fn rows_are_those_of_a_plain_way_to_wrap(text in "[a-d 日]{0,60}", width in 1usize..12) {
            prop_assert_eq!(wrapped(&text, width), plainly_wrapped(&text, width));
        }

        #[test]
        fn rows_are_the_same_from_any_of_them_on(texts in prop::collection::vec("[ \t]{0,3}[a-d 日\t\u{301}]{0,20}|\u{301}?", 0..5), width in 1usize..12) {
            let line = Line::from(texts.into_iter().map(Span::raw).collect::<Vec<_>>());
            let rows: Vec<_> = LineWrapper::new(&line, width).collect();
            for (number, (place, _)) in rows.iter().enumerate() {
                let rest: Vec<_> = LineWrapper::of(GlyphSource::at(&line, *place), width).collect();
                prop_assert_eq!(&rest[..], &rows[number..]);
            }
        }

        #[test]
        fn rows_fit_and_no_word_is_lost(text in "[a-d 日\t]{0,60}", width in 1usize..12, hang in 0usize..8) {
            let prefix = Line::from(" ".repeat(hang));
            let rows = wrap_with_prefix(&Line::from(text.clone()), width, &prefix, &prefix);
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
