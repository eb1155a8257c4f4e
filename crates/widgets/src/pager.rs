//! Long texts, page by page. Only what is looked at is laid out, so that a million lines are as good as ten.

use std::borrow::Cow;
use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use crate::draw::put;
use crate::find::Needle;
use crate::theme::Theme;
use crate::width::{grouped, truncate};
use crate::wrap::wrap;

/// Where lines come from.
pub trait Document {
    fn count(&self) -> usize;
    fn line(&self, number: usize) -> Option<Cow<'_, Line<'static>>>;
    /// The text of a line, to search in.
    fn text(&self, number: usize) -> Option<Cow<'_, str>>;
}

impl Document for Vec<Line<'static>> {
    fn count(&self) -> usize {
        self.len()
    }

    fn line(&self, number: usize) -> Option<Cow<'_, Line<'static>>> {
        self.get(number).map(Cow::Borrowed)
    }

    fn text(&self, number: usize) -> Option<Cow<'_, str>> {
        let spans = &self.get(number)?.spans;
        Some(match &spans[..] {
            [one] => Cow::Borrowed(&*one.content),
            many => many.iter().map(|span| &*span.content).collect::<String>().into(),
        })
    }
}

/// A text without styles.
#[derive(Clone, Debug, Default)]
pub struct PlainText {
    text: String,
    starts: Vec<usize>,
}

impl PlainText {
    pub fn new(text: String) -> PlainText {
        let mut starts = vec![0];
        starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        if starts.last() == Some(&text.len()) {
            starts.pop();
        }
        PlainText { text, starts }
    }

    fn get(&self, number: usize) -> Option<&str> {
        let start = *self.starts.get(number)?;
        let end = self.starts.get(number + 1).copied().unwrap_or(self.text.len());
        let line = self.text.get(start..end)?;
        let line = line.strip_suffix('\n').unwrap_or(line);
        Some(line.strip_suffix('\r').unwrap_or(line))
    }
}

impl Document for PlainText {
    fn count(&self) -> usize {
        self.starts.len()
    }

    fn line(&self, number: usize) -> Option<Cow<'_, Line<'static>>> {
        self.get(number).map(|line| Cow::Owned(Line::from(Span::raw(line.to_owned()))))
    }

    fn text(&self, number: usize) -> Option<Cow<'_, str>> {
        self.get(number).map(Cow::Borrowed)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scroll {
    Up,
    Down,
    HalfUp,
    HalfDown,
    PageUp,
    PageDown,
    Home,
    End,
}

/// Which way to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Towards {
    Next,
    Previous,
}

/// A row: of which line, and the how-manieth of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    line: usize,
    row: usize,
}

#[derive(Clone, Debug)]
pub struct Pager<D> {
    document: D,
    pub title: String,
    top: Place,
    width: usize,
    height: usize,
    needle: Option<Needle>,
    /// The line that was found last.
    hit: Option<usize>,
    /// The last search found nothing.
    is_missing: bool,
}

impl<D: Document> Pager<D> {
    pub fn new(title: impl Into<String>, document: D) -> Pager<D> {
        Pager {
            document,
            title: title.into(),
            top: Place::default(),
            width: 80,
            height: 24,
            needle: None,
            hit: None,
            is_missing: false,
        }
    }

    pub fn document(&self) -> &D {
        &self.document
    }

    /// The first line that is shown.
    pub fn top_line(&self) -> usize {
        self.top.line
    }

    pub fn go_to_line(&mut self, line: usize) {
        self.top = Place { line: line.min(self.document.count().saturating_sub(1)), row: 0 };
        self.keep_full();
    }

    pub fn scroll(&mut self, scroll: Scroll) {
        let page = self.height.max(1);
        match scroll {
            Scroll::Up => self.go_up(1),
            Scroll::Down => self.go_down(1),
            Scroll::HalfUp => self.go_up(page.div_ceil(2)),
            Scroll::HalfDown => self.go_down(page.div_ceil(2)),
            Scroll::PageUp => self.go_up(page),
            Scroll::PageDown => self.go_down(page),
            Scroll::Home => self.top = Place::default(),
            Scroll::End => self.top = self.last_top(),
        }
    }

    /// Looks for a text from the first shown line on; capitals count if there are any. An empty one ends the search.
    pub fn search(&mut self, text: &str) -> bool {
        self.needle = Needle::new(text);
        self.hit = None;
        self.is_missing = false;
        self.needle.is_some() && self.find(self.top.line, Towards::Next)
    }

    /// The next line in which it is found, or the one before; at the end it goes on at the beginning.
    pub fn find_again(&mut self, towards: Towards) -> bool {
        let count = self.document.count().max(1);
        let here = self.hit.unwrap_or(self.top.line);
        let from = match towards {
            Towards::Next => (here + 1) % count,
            Towards::Previous => here.checked_sub(1).unwrap_or(count - 1),
        };
        self.find(from, towards)
    }

    fn find(&mut self, from: usize, towards: Towards) -> bool {
        let Some(needle) = &self.needle else { return false };
        let count = self.document.count();
        let number = |step: usize| match towards {
            Towards::Next => (from + step) % count,
            Towards::Previous => (from + count - step) % count,
        };
        let is_hit = |line: &usize| self.document.text(*line).is_some_and(|text| needle.is_in(&text));
        let hit = (0..count).map(number).find(is_hit);
        self.is_missing = hit.is_none();
        if let Some(line) = hit {
            self.hit = Some(line);
            self.show(line);
        }
        hit.is_some()
    }

    /// Scrolls to a line, unless it is there already.
    fn show(&mut self, line: usize) {
        let mut bottom = self.top;
        for _ in 1..self.height.max(1) {
            bottom = self.after(bottom).unwrap_or(bottom);
        }
        if line < self.top.line || (line == self.top.line && self.top.row > 0) || line > bottom.line {
            // A little of what is before says where it is.
            self.top = Place { line, row: 0 };
            self.go_up(self.height / 4);
            self.keep_full();
        }
    }

    fn rows_of(&self, line: usize) -> Vec<Line<'static>> {
        let Some(source) = self.document.line(line) else { return Vec::new() };
        wrap(&source, self.width)
    }

    fn before(&self, place: Place) -> Option<Place> {
        if let Some(row) = place.row.checked_sub(1) {
            return Some(Place { row, ..place });
        }
        let line = place.line.checked_sub(1)?;
        Some(Place { line, row: self.rows_of(line).len().saturating_sub(1) })
    }

    fn after(&self, place: Place) -> Option<Place> {
        if place.row + 1 < self.rows_of(place.line).len() {
            return Some(Place { row: place.row + 1, ..place });
        }
        (place.line + 1 < self.document.count()).then_some(Place { line: place.line + 1, row: 0 })
    }

    fn go_up(&mut self, rows: usize) {
        for _ in 0..rows {
            self.top = self.before(self.top).unwrap_or(self.top);
        }
    }

    fn go_down(&mut self, rows: usize) {
        for _ in 0..rows {
            self.top = self.after(self.top).unwrap_or(self.top);
        }
        self.keep_full();
    }

    /// The first row of the last page.
    fn last_top(&self) -> Place {
        let line = self.document.count().saturating_sub(1);
        let mut place = Place { line, row: self.rows_of(line).len().saturating_sub(1) };
        for _ in 1..self.height.max(1) {
            place = self.before(place).unwrap_or(place);
        }
        place
    }

    fn keep_full(&mut self) {
        self.top = self.top.min(self.last_top());
    }

    /// The last row is the status line, if there are two.
    pub fn draw(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        if area.is_empty() {
            return;
        }
        let status = u16::from(area.height > 1);
        let page = Rect { height: area.height - status, ..area };
        (self.width, self.height) = (page.width.into(), page.height.into());
        let rows = self.rows_of(self.top.line).len();
        self.top.row = self.top.row.min(rows.saturating_sub(1));
        self.keep_full();
        let shown = self.draw_page(page, buffer, theme);
        if status > 0 {
            self.draw_status(Rect { y: page.bottom(), height: 1, ..area }, shown, buffer, theme);
        }
    }

    /// Draws rows, and says which line was the last.
    fn draw_page(&self, area: Rect, buffer: &mut Buffer, theme: &Theme) -> usize {
        let mut y = area.y;
        let mut number = self.top.line;
        let mut skipped = self.top.row;
        while y < area.bottom() && number < self.document.count() {
            for row in self.marked(number, theme).iter().skip(skipped) {
                if y == area.bottom() {
                    return number;
                }
                put(buffer, Position::new(area.x, y), area.width, row);
                y += 1;
            }
            skipped = 0;
            number += 1;
        }
        number.saturating_sub(1)
    }

    /// The rows of a line, with what was found in it.
    fn marked(&self, number: usize, theme: &Theme) -> Vec<Line<'static>> {
        let Some(line) = self.document.line(number) else { return Vec::new() };
        let places = self.needle.as_ref().zip(self.document.text(number));
        let places = places.map(|(needle, text)| needle.places(&text)).unwrap_or_default();
        if places.is_empty() {
            return wrap(&line, self.width);
        }
        wrap(&mark(&line, &places, theme), self.width)
    }

    fn draw_status(&self, area: Rect, last: usize, buffer: &mut Buffer, theme: &Theme) {
        let count = self.document.count();
        let percent = ((last + 1) * 100).checked_div(count).unwrap_or(100);
        let place = format!(
            "{}-{} of {} ({percent}%)",
            grouped(self.top.line + 1),
            grouped(last + 1),
            grouped(count)
        );
        let place = if count == 0 { "empty".to_owned() } else { place };
        let mut spans =
            vec![Span::styled(format!("{}  ", self.title), theme.accent), Span::styled(place, theme.muted)];
        if let Some(needle) = &self.needle {
            let (note, style) =
                if self.is_missing { (" not found", theme.warning) } else { ("", theme.muted) };
            spans.push(Span::styled(format!("  /{}{note}", needle.text()), style));
        }
        put(buffer, area.as_position(), area.width, &truncate(&Line::from(spans), area.width.into()));
    }
}

/// The line with some places in another style.
fn mark(line: &Line<'static>, places: &[Range<usize>], theme: &Theme) -> Line<'static> {
    let mut spans = Vec::new();
    let mut start = 0;
    for span in &line.spans {
        let end = start + span.content.len();
        let mut at = start;
        for place in places.iter().filter(|place| place.start < end && place.end > start) {
            let (from, to) = (place.start.max(at), place.end.min(end));
            let part = |from: usize, to: usize| {
                span.content.get(from - start..to - start).unwrap_or_default().to_owned()
            };
            spans.push(Span::styled(part(at, from), span.style));
            spans.push(Span::styled(part(from, to), span.style.patch(theme.found)));
            at = to;
        }
        spans.push(Span::styled(span.content.get(at - start..).unwrap_or_default().to_owned(), span.style));
        start = end;
    }
    Line::from(spans).style(line.style)
}
