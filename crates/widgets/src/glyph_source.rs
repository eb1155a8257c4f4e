//! A line glyph by glyph, from any place in it.

use std::ops::Range;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::width::{TextGlyph, glyphs};

/// Where something is in a line. The column decides how wide the tabs are that follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GlyphPosition {
    span: usize,
    /// In the span.
    byte: usize,
    /// In the line.
    pub(crate) offset: usize,
    column: usize,
}

pub(crate) struct GlyphSource<'a> {
    spans: &'a [Span<'a>],
    style: Style,
    at: GlyphPosition,
    /// Places that have another style, in order.
    marks: &'a [Range<usize>],
    marked: Style,
}

impl<'a> GlyphSource<'a> {
    pub(crate) fn new(line: &'a Line<'_>) -> GlyphSource<'a> {
        GlyphSource::at(line, GlyphPosition::default())
    }

    pub(crate) fn at(line: &'a Line<'_>, at: GlyphPosition) -> GlyphSource<'a> {
        GlyphSource { spans: &line.spans, style: line.style, at, marks: &[], marked: Style::default() }
    }

    pub(crate) fn marked(self, marks: &'a [Range<usize>], marked: Style) -> GlyphSource<'a> {
        GlyphSource { marks, marked, ..self }
    }

    /// Nothing that is shown comes before.
    pub(crate) fn is_at_beginning(&self) -> bool {
        self.at.column == 0
    }

    /// Passes over plain spaces, of which there may be a megabyte, and says how many there were. The last one is left, for a
    /// mark may follow it.
    pub(crate) fn skip_spaces(&mut self) -> usize {
        let rest = self.spans.get(self.at.span).and_then(|span| span.content.get(self.at.byte..));
        let spaces = rest.unwrap_or_default().bytes().take_while(|byte| *byte == b' ').count();
        let skipped = spaces.saturating_sub(1);
        self.at.byte += skipped;
        self.at.offset += skipped;
        self.at.column += skipped;
        skipped
    }

    fn is_marked(&mut self, end: usize) -> bool {
        while let [first, rest @ ..] = self.marks
            && first.end <= self.at.offset
        {
            self.marks = rest;
        }
        self.marks.first().is_some_and(|mark| mark.start < end)
    }
}

impl<'a> Iterator for GlyphSource<'a> {
    type Item = (TextGlyph<'a>, Style, GlyphPosition);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let span = self.spans.get(self.at.span)?;
            let rest = span.content.get(self.at.byte..).unwrap_or_default();
            let Some(glyph) = glyphs(rest, self.at.column).next() else {
                let offset = self.at.offset + rest.len();
                self.at = GlyphPosition { span: self.at.span + 1, byte: 0, offset, ..self.at };
                continue;
            };
            #[cfg(test)]
            READ.set(READ.get() + 1);
            let mut style = self.style.patch(span.style);
            if self.is_marked(self.at.offset + glyph.bytes) {
                style = style.patch(self.marked);
            }
            let place = self.at;
            self.at.byte += glyph.bytes;
            self.at.offset += glyph.bytes;
            self.at.column += glyph.width;
            return Some((glyph, style, place));
        }
    }
}

/// The text from a place to an offset, or a little further.
pub(crate) fn text_between(line: &Line<'_>, from: GlyphPosition, to: usize) -> String {
    let mut text = String::new();
    let mut skipped = from.byte;
    for span in line.spans.iter().skip(from.span) {
        let rest = span.content.get(skipped..).unwrap_or_default();
        skipped = 0;
        let room = to.saturating_sub(from.offset + text.len());
        text.push_str(rest.get(..rest.ceil_char_boundary(room)).unwrap_or(rest));
        if room <= rest.len() {
            break;
        }
    }
    text
}

#[cfg(test)]
thread_local! {
    /// How many glyphs were read.
    pub(crate) static READ: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}
