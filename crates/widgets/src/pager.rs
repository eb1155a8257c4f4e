//! Long texts, page by page. Only what is looked at is laid out, so that a million lines are as good as ten.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use crate::document::PagerDocument;
use crate::draw::put_line;
use crate::pager_layout::PagerLayout;
use crate::text_search::SearchNeedle;
use crate::theme::Theme;
use crate::width::{grouped, truncate};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScrollStep {
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
pub enum SearchDirection {
    Next,
    Previous,
}

/// A row: of which line, and the how-manieth of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct PagerPosition {
    line: usize,
    row: usize,
}

#[derive(Clone, Debug)]
pub struct Pager<D> {
    document: D,
    pub title: String,
    top: PagerPosition,
    height: usize,
    layout: PagerLayout,
    needle: Option<SearchNeedle>,
    /// What was found last: its line, and where in it.
    hit: Option<(usize, usize)>,
    /// The last search found nothing.
    is_missing: bool,
}

impl<D: PagerDocument> Pager<D> {
    pub fn new(title: impl Into<String>, document: D) -> Pager<D> {
        Pager {
            document,
            title: title.into(),
            top: PagerPosition::default(),
            height: 24,
            layout: PagerLayout::new(80),
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
        self.top = PagerPosition { line: line.min(self.document.count().saturating_sub(1)), row: 0 };
        self.clamp_to_last_page();
    }

    pub fn scroll(&mut self, scroll: ScrollStep) {
        let page = self.height.max(1);
        match scroll {
            ScrollStep::Up => self.go_up(1),
            ScrollStep::Down => self.go_down(1),
            ScrollStep::HalfUp => self.go_up(page.div_ceil(2)),
            ScrollStep::HalfDown => self.go_down(page.div_ceil(2)),
            ScrollStep::PageUp => self.go_up(page),
            ScrollStep::PageDown => self.go_down(page),
            ScrollStep::Home => self.top = PagerPosition::default(),
            ScrollStep::End => self.top = self.last_top(),
        }
    }

    /// Looks for a text from the first shown row on; capitals count if there are any. An empty one ends the search.
    pub fn search(&mut self, text: &str) -> bool {
        self.needle = SearchNeedle::new(text);
        self.hit = None;
        self.is_missing = false;
        self.needle.is_some() && self.find(self.top, SearchDirection::Next)
    }

    /// The next row in which it is found, or the one before; at the end it goes on at the beginning.
    pub fn find_again(&mut self, towards: SearchDirection) -> bool {
        let here = self.hit.map_or(self.top, |(line, offset)| self.place(line, offset));
        let from = match towards {
            SearchDirection::Next => PagerPosition { row: here.row + 1, ..here },
            SearchDirection::Previous => here,
        };
        self.find(from, towards)
    }

    /// Looks for it from the beginning of a row on, or for the last one before it.
    fn find(&mut self, from: PagerPosition, towards: SearchDirection) -> bool {
        let offset = self.layout.offset(&self.document, from.line, from.row).unwrap_or(usize::MAX);
        let hit = self.found(from.line, offset, towards);
        self.is_missing = hit.is_none();
        if let Some((line, offset)) = hit {
            self.hit = hit;
            let place = self.place(line, offset);
            self.show(place);
        }
        hit.is_some()
    }

    fn found(&self, from: usize, offset: usize, towards: SearchDirection) -> Option<(usize, usize)> {
        let needle = self.needle.as_ref()?;
        let count = self.document.count();
        // The first line comes again at the end, for what is on the other side of the offset.
        let steps = if count > 0 { 0..count + 1 } else { 0..0 };
        steps.into_iter().find_map(|step| {
            let is_first = step == 0;
            let (line, place) = match towards {
                SearchDirection::Next => {
                    let line = (from + step) % count;
                    let text = self.document.text(line)?;
                    (line, needle.matches_from(&text, if is_first { offset } else { 0 }).next())
                }
                SearchDirection::Previous => {
                    let line = (from + count - step) % count;
                    let text = self.document.text(line)?;
                    let most = if is_first { offset } else { usize::MAX };
                    (line, needle.places(&text).take_while(|place| place.start < most).last())
                }
            };
            Some((line, place?.start))
        })
    }

    fn place(&mut self, line: usize, offset: usize) -> PagerPosition {
        PagerPosition { line, row: self.layout.row(&self.document, line, offset) }
    }

    /// Scrolls to a row, unless it is there already.
    fn show(&mut self, place: PagerPosition) {
        let mut bottom = self.top;
        for _ in 1..self.height.max(1) {
            bottom = self.after(bottom).unwrap_or(bottom);
        }
        if place < self.top || place > bottom {
            // A little of what is before says where it is.
            self.top = place;
            self.go_up(self.height / 4);
            self.clamp_to_last_page();
        }
    }

    fn last_row_of(&mut self, line: usize) -> usize {
        self.layout.count(&self.document, line).saturating_sub(1)
    }

    fn before(&mut self, place: PagerPosition) -> Option<PagerPosition> {
        if let Some(row) = place.row.checked_sub(1) {
            return Some(PagerPosition { row, ..place });
        }
        let line = place.line.checked_sub(1)?;
        Some(PagerPosition { line, row: self.last_row_of(line) })
    }

    fn after(&mut self, place: PagerPosition) -> Option<PagerPosition> {
        if place.row < self.last_row_of(place.line) {
            return Some(PagerPosition { row: place.row + 1, ..place });
        }
        (place.line + 1 < self.document.count()).then_some(PagerPosition { line: place.line + 1, row: 0 })
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
        self.clamp_to_last_page();
    }

    /// The first row of the last page.
    fn last_top(&mut self) -> PagerPosition {
        let line = self.document.count().saturating_sub(1);
        let mut place = PagerPosition { line, row: self.last_row_of(line) };
        for _ in 1..self.height.max(1) {
            place = self.before(place).unwrap_or(place);
        }
        place
    }

    fn clamp_to_last_page(&mut self) {
        self.top = self.top.min(self.last_top());
    }

    /// The last row is the status line, if there are two.
    pub fn draw(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        if area.is_empty() {
            return;
        }
        let status = u16::from(area.height > 1);
        let page = Rect { height: area.height - status, ..area };
        self.height = page.height.into();
        self.set_width(page.width.into());
        self.clamp_to_last_page();
        let shown = self.draw_page(page, buffer, theme);
        if status > 0 {
            self.draw_status(Rect { y: page.bottom(), height: 1, ..area }, shown, buffer, theme);
        }
    }

    /// What stands in the first row stays there.
    fn set_width(&mut self, width: usize) {
        if self.layout.width() != width {
            let offset = self.layout.offset(&self.document, self.top.line, self.top.row);
            self.layout = PagerLayout::new(width);
            self.top = self.place(self.top.line, offset.unwrap_or(0));
        }
    }

    /// Draws rows, and says which line was the last.
    fn draw_page(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) -> usize {
        let mut y = area.y;
        let mut next = self.top;
        let needle = self.needle.as_ref().map(|needle| (needle, theme.found));
        while y < area.bottom() && next.line < self.document.count() {
            let room = (area.bottom() - y).into();
            for row in self.layout.rows(&self.document, next.line, next.row, room, needle) {
                put_line(buffer, Position::new(area.x, y), area.width, &row);
                y += 1;
            }
            next = PagerPosition { line: next.line + 1, row: 0 };
        }
        next.line.saturating_sub(1)
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
        put_line(buffer, area.as_position(), area.width, &truncate(&Line::from(spans), area.width.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::PlainText;
    use crate::glyph_source::READ;

    const AREA: Rect = Rect::new(0, 0, 80, 24);

    /// How many glyphs are read by some work and the frame after it.
    fn read(pager: &mut Pager<PlainText>, work: impl FnOnce(&mut Pager<PlainText>)) -> usize {
        let before = READ.get();
        work(pager);
        pager.draw(AREA, &mut Buffer::empty(AREA), &Theme::default());
        READ.get() - before
    }

    #[test]
    fn a_key_on_a_line_of_a_megabyte_reads_a_few_rows() {
        let text = "some words, andaverylongone ".repeat(40_000);
        for text in [format!("first\n{text}\nlast"), "x".repeat(1 << 20), " ".repeat(1 << 20)] {
            let mut pager = Pager::new("big", PlainText::new(text));
            read(&mut pager, |_| {});
            read(&mut pager, |pager| _ = pager.search("longone"));
            let all = [
                ScrollStep::Down,
                ScrollStep::PageDown,
                ScrollStep::End,
                ScrollStep::Up,
                ScrollStep::PageUp,
                ScrollStep::HalfUp,
                ScrollStep::Home,
            ];
            for scroll in all {
                let count = read(&mut pager, |pager| pager.scroll(scroll));
                assert!(count < 20_000, "{scroll:?} reads {count}");
            }
            let count = read(&mut pager, |pager| _ = pager.find_again(SearchDirection::Next));
            assert!(count < 40_000, "the next place reads {count}");
        }
    }
}
