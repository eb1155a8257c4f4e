//! Which rows lines become. A line is wrapped as a whole once; then its rows are made from places that are remembered, so
//! that a row of a megabyte costs no more than any other.

use std::collections::HashMap;

use ratatui::style::Style;
use ratatui::text::Line;

use crate::document::Document;
use crate::find::Needle;
use crate::source::{Place, Source, text_between};
use crate::wrap::Wrapping;

/// The place of each so-manieth row is remembered.
const STRIDE: usize = 32;

/// Of so many lines. A page and what is before and after it are fewer.
const MOST_LINES: usize = 4_096;

#[derive(Clone, Debug)]
pub(crate) struct Layout {
    width: usize,
    lines: HashMap<usize, Laid>,
}

#[derive(Clone, Debug, Default)]
struct Laid {
    rows: usize,
    /// Where the rows 0, `STRIDE`, 2 × `STRIDE` and so on begin.
    places: Vec<Place>,
}

impl Laid {
    fn new(line: &Line<'_>, width: usize) -> Laid {
        let mut laid = Laid::default();
        for (place, _) in Wrapping::new(line, width) {
            if laid.rows.is_multiple_of(STRIDE) {
                laid.places.push(place);
            }
            laid.rows += 1;
        }
        laid
    }

    /// A row that is remembered, at or before another one.
    fn near(&self, row: usize) -> (usize, Place) {
        let number = (row / STRIDE).min(self.places.len().saturating_sub(1));
        (number * STRIDE, self.places.get(number).copied().unwrap_or_default())
    }
}

impl Layout {
    pub(crate) fn new(width: usize) -> Layout {
        Layout { width, lines: HashMap::new() }
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// How many rows a line has.
    pub(crate) fn count(&mut self, document: &impl Document, number: usize) -> usize {
        self.laid(document, number).rows
    }

    /// The offset in its line at which a row begins.
    pub(crate) fn offset(&mut self, document: &impl Document, number: usize, row: usize) -> Option<usize> {
        let (near, place) = self.laid(document, number).near(row);
        let line = document.line(number)?;
        let mut rows = Wrapping::of(Source::at(&line, place), self.width);
        rows.nth(row.checked_sub(near)?).map(|(place, _)| place.offset)
    }

    /// The row of a line in which an offset is.
    pub(crate) fn row(&mut self, document: &impl Document, number: usize, offset: usize) -> usize {
        let places = &self.laid(document, number).places;
        let index = places.partition_point(|place| place.offset <= offset).saturating_sub(1);
        let place = places.get(index).copied().unwrap_or_default();
        let Some(line) = document.line(number) else { return 0 };
        let rows = Wrapping::of(Source::at(&line, place), self.width);
        let before = rows.skip(1).take_while(|(place, _)| place.offset <= offset).take(STRIDE - 1).count();
        index * STRIDE + before
    }

    /// Some rows of a line, with what is looked for in another style.
    pub(crate) fn rows(
        &mut self,
        document: &impl Document,
        number: usize,
        from: usize,
        count: usize,
        needle: Option<(&Needle, Style)>,
    ) -> Vec<Line<'static>> {
        let (near, place) = self.laid(document, number).near(from);
        let Some(line) = document.line(number) else { return Vec::new() };
        let (_, before) = self.laid(document, number).near(from.saturating_sub(STRIDE));
        let rows = |source| Wrapping::of(source, self.width).skip(from.saturating_sub(near));
        let Some((needle, style)) = needle else {
            return rows(Source::at(&line, place)).take(count).map(|(_, row)| row).collect();
        };
        // What is found may begin before these rows, and end after them.
        let end = rows(Source::at(&line, place)).nth(count).map_or(usize::MAX, |(end, _)| end.offset);
        let text = text_between(&line, before, end.saturating_add(needle.most_bytes()));
        let marks: Vec<_> =
            needle.places(&text).map(|mark| before.offset + mark.start..before.offset + mark.end).collect();
        rows(Source::at(&line, place).marked(&marks, style)).take(count).map(|(_, row)| row).collect()
    }

    fn laid(&mut self, document: &impl Document, number: usize) -> &Laid {
        if self.lines.len() >= MOST_LINES && !self.lines.contains_key(&number) {
            self.lines.clear();
        }
        let width = self.width;
        self.lines
            .entry(number)
            .or_insert_with(|| document.line(number).map(|line| Laid::new(&line, width)).unwrap_or_default())
    }
}
