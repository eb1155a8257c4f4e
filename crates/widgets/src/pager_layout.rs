//! Which rows lines become. A line is wrapped as a whole once; then its rows are made from places that are remembered, so
//! that a row of a megabyte costs no more than any other.

use std::collections::HashMap;

use ratatui::style::Style;
use ratatui::text::Line;

use crate::document::PagerDocument;
use crate::glyph_source::{GlyphPosition, GlyphSource, text_between};
use crate::text_search::SearchNeedle;
use crate::wrap::LineWrapper;

/// The place of each so-manieth row is remembered.
const ROWS_PER_CHECKPOINT: usize = 32;

/// Of so many lines. A page and what is before and after it are fewer.
const MAX_CACHED_LINES: usize = 4_096;

#[derive(Clone, Debug)]
pub(crate) struct PagerLayout {
    width: usize,
    lines: HashMap<usize, PagerLineLayout>,
}

#[derive(Clone, Debug, Default)]
struct PagerLineLayout {
    rows: usize,
    /// Where the rows 0, `ROWS_PER_CHECKPOINT`, 2 × `ROWS_PER_CHECKPOINT` and so on begin.
    places: Vec<GlyphPosition>,
}

impl PagerLineLayout {
    fn new(line: &Line<'_>, width: usize) -> PagerLineLayout {
        let mut laid = PagerLineLayout::default();
        for (place, _) in LineWrapper::new(line, width) {
            if laid.rows.is_multiple_of(ROWS_PER_CHECKPOINT) {
                laid.places.push(place);
            }
            laid.rows += 1;
        }
        laid
    }

    /// A row that is remembered, at or before another one.
    fn near(&self, row: usize) -> (usize, GlyphPosition) {
        let number = (row / ROWS_PER_CHECKPOINT).min(self.places.len().saturating_sub(1));
        (number * ROWS_PER_CHECKPOINT, self.places.get(number).copied().unwrap_or_default())
    }
}

impl PagerLayout {
    pub(crate) fn new(width: usize) -> PagerLayout {
        PagerLayout { width, lines: HashMap::new() }
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// How many rows a line has.
    pub(crate) fn count(&mut self, document: &impl PagerDocument, number: usize) -> usize {
        self.laid(document, number).rows
    }

    /// The offset in its line at which a row begins.
    pub(crate) fn offset(
        &mut self,
        document: &impl PagerDocument,
        number: usize,
        row: usize,
    ) -> Option<usize> {
        let (near, place) = self.laid(document, number).near(row);
        let line = document.line(number)?;
        let mut rows = LineWrapper::of(GlyphSource::at(&line, place), self.width);
        rows.nth(row.checked_sub(near)?).map(|(place, _)| place.offset)
    }

    /// The row of a line in which an offset is.
    pub(crate) fn row(&mut self, document: &impl PagerDocument, number: usize, offset: usize) -> usize {
        let places = &self.laid(document, number).places;
        let index = places.partition_point(|place| place.offset <= offset).saturating_sub(1);
        let place = places.get(index).copied().unwrap_or_default();
        let Some(line) = document.line(number) else { return 0 };
        let rows = LineWrapper::of(GlyphSource::at(&line, place), self.width);
        let before = rows
            .skip(1)
            .take_while(|(place, _)| place.offset <= offset)
            .take(ROWS_PER_CHECKPOINT - 1)
            .count();
        index * ROWS_PER_CHECKPOINT + before
    }

    /// Some rows of a line, with what is looked for in another style.
    pub(crate) fn rows(
        &mut self,
        document: &impl PagerDocument,
        number: usize,
        from: usize,
        count: usize,
        needle: Option<(&SearchNeedle, Style)>,
    ) -> Vec<Line<'static>> {
        let (near, place) = self.laid(document, number).near(from);
        let Some(line) = document.line(number) else { return Vec::new() };
        let (_, before) = self.laid(document, number).near(from.saturating_sub(ROWS_PER_CHECKPOINT));
        let rows = |source| LineWrapper::of(source, self.width).skip(from.saturating_sub(near));
        let Some((needle, style)) = needle else {
            return rows(GlyphSource::at(&line, place)).take(count).map(|(_, row)| row).collect();
        };
        // What is found may begin before these rows, and end after them.
        let end = rows(GlyphSource::at(&line, place)).nth(count).map_or(usize::MAX, |(end, _)| end.offset);
        let text = text_between(&line, before, end.saturating_add(needle.most_bytes()));
        let marks: Vec<_> =
            needle.places(&text).map(|mark| before.offset + mark.start..before.offset + mark.end).collect();
        rows(GlyphSource::at(&line, place).marked(&marks, style)).take(count).map(|(_, row)| row).collect()
    }

    fn laid(&mut self, document: &impl PagerDocument, number: usize) -> &PagerLineLayout {
        if self.lines.len() >= MAX_CACHED_LINES && !self.lines.contains_key(&number) {
            self.lines.clear();
        }
        let width = self.width;
        self.lines.entry(number).or_insert_with(|| {
            document.line(number).map(|line| PagerLineLayout::new(&line, width)).unwrap_or_default()
        })
    }
}
