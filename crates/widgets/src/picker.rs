//! A list to choose from: filtered, scrolled, drawn in any size.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::draw::put_line;
use crate::fuzzy::{FuzzyPattern, letter_mask};
use crate::styled_spans::push_styled;
use crate::theme::Theme;
use crate::width::{grouped, line_width, truncate};

/// Below this, a list has no room for a preview or a count beside its rows.
const MIN_ROWS_FOR_DETAILS: u16 = 4;

/// So many are in order; nobody reads further.
const MAX_SORTED_MATCHES: usize = 1_000;

/// One row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PickerChoice {
    /// What the filter looks at.
    pub title: String,
    /// Stands behind it.
    pub detail: String,
}

impl PickerChoice {
    pub fn new(title: impl Into<String>, detail: impl Into<String>) -> PickerChoice {
        PickerChoice { title: title.into(), detail: detail.into() }
    }
}

/// How the selection moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PickerMove {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
}

/// Where things were drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PickerPlacement {
    /// Behind the filter, if there is a prompt.
    pub cursor: Option<Position>,
    /// For the caller to draw in; empty if there is no room.
    pub preview: Rect,
}

#[derive(Clone, Debug, Default)]
pub struct Picker {
    choices: Vec<PickerChoice>,
    letters: Vec<u64>,
    filter: String,
    pattern: FuzzyPattern,
    /// Which choices match, best first.
    found: Vec<u32>,
    selected: usize,
    top: usize,
    rows: usize,
    /// Stands before the filter; without it the filter is not drawn.
    pub prompt: Option<String>,
    /// How many rows below the list are for a preview, if there is room.
    pub preview: u16,
}

impl Picker {
    pub fn new(choices: Vec<PickerChoice>) -> Picker {
        let letters = choices.iter().map(|choice| letter_mask(choice.title.as_bytes())).collect();
        let found = (0..).zip(&choices).map(|(index, _)| index).collect();
        Picker { choices, letters, found, ..Picker::default() }
    }

    pub fn filter(&self) -> &str {
        &self.filter
    }

    /// Looks anew, and selects the best.
    pub fn set_filter(&mut self, filter: &str) {
        let pattern = FuzzyPattern::new(filter);
        // What did not match less does not match more, if capitals count as before.
        let is_narrower = filter.starts_with(&self.filter)
            && !self.filter.is_empty()
            && !self.filter.chars().any(char::is_uppercase)
            && !filter.chars().any(char::is_uppercase);
        let candidates = if is_narrower { std::mem::take(&mut self.found) } else { self.all() };
        self.found = if pattern.is_empty() { self.all() } else { self.ranked(&pattern, &candidates) };
        (self.selected, self.top) = (0, 0);
        self.filter = filter.to_owned();
        self.pattern = pattern;
    }

    fn all(&self) -> Vec<u32> {
        (0..).zip(&self.choices).map(|(index, _)| index).collect()
    }

    /// Score, length and place in one number each, so that sorting is fast.
    fn ranked(&self, pattern: &FuzzyPattern, candidates: &[u32]) -> Vec<u32> {
        let key = |index: u32| -> Option<u64> {
            let place = usize::try_from(index).ok()?;
            let choice = self
                .choices
                .get(place)
                .filter(|_| self.letters.get(place).is_some_and(|letters| pattern.may_match(*letters)))?;
            let score = pattern.score(&choice.title)?;
            let worse = u64::from(0x7fff_u16.saturating_sub(u16::try_from(score.max(0)).unwrap_or(0x7fff)));
            let length = u64::try_from(choice.title.len().min(0xffff)).ok()?;
            Some(worse << 48 | length << 32 | u64::from(index))
        };
        let mut keys: Vec<u64> = candidates.iter().filter_map(|index| key(*index)).collect();
        if keys.len() > MAX_SORTED_MATCHES {
            let (best, ..) = keys.select_nth_unstable(MAX_SORTED_MATCHES);
            best.sort_unstable();
        } else {
            keys.sort_unstable();
        }
        keys.into_iter().filter_map(|key| u32::try_from(key & 0xffff_ffff).ok()).collect()
    }

    /// How many match.
    pub fn count(&self) -> usize {
        self.found.len()
    }

    pub fn choices(&self) -> &[PickerChoice] {
        &self.choices
    }

    /// The number of the selected choice, as it was given.
    pub fn selected(&self) -> Option<usize> {
        self.found.get(self.selected).and_then(|index| usize::try_from(*index).ok())
    }

    /// Selects a choice by its number, if it matches.
    pub fn select(&mut self, choice: usize) {
        let place = self.found.iter().position(|index| usize::try_from(*index) == Ok(choice));
        self.selected = place.unwrap_or(self.selected);
    }

    /// At the ends, single steps go round.
    pub fn go(&mut self, step: PickerMove) {
        let last = self.found.len().saturating_sub(1);
        let page = self.rows.max(1);
        self.selected = match step {
            PickerMove::Up => self.selected.checked_sub(1).unwrap_or(last),
            PickerMove::Down if self.selected >= last => 0,
            PickerMove::Down => self.selected + 1,
            PickerMove::PageUp => self.selected.saturating_sub(page),
            PickerMove::PageDown => (self.selected + page).min(last),
            PickerMove::First => 0,
            PickerMove::Last => last,
        };
    }

    /// How many rows it would use, at most `most`.
    pub fn height(&self, most: u16) -> u16 {
        let rows = u16::try_from(self.found.len().max(1)).unwrap_or(u16::MAX);
        let extra = u16::from(self.prompt.is_some()).saturating_add(1).saturating_add(self.preview);
        rows.saturating_add(extra).min(most)
    }

    pub fn draw(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) -> PickerPlacement {
        let mut drawn = PickerPlacement::default();
        let mut rest = area;
        if self.prompt.is_some() && rest.height > 1 {
            drawn.cursor = self.draw_prompt(cut_top(&mut rest, 1), buffer, theme);
        }
        if self.preview > 0 && rest.height >= self.preview.saturating_add(MIN_ROWS_FOR_DETAILS) {
            drawn.preview = cut_bottom(&mut rest, self.preview);
        }
        if rest.height >= MIN_ROWS_FOR_DETAILS {
            let count = format!("{} of {}", grouped(self.found.len()), grouped(self.choices.len()));
            put_fitting(buffer, cut_bottom(&mut rest, 1), &Line::styled(count, theme.muted));
        }
        self.draw_rows(rest, buffer, theme);
        drawn
    }

    fn draw_prompt(&self, area: Rect, buffer: &mut Buffer, theme: &Theme) -> Option<Position> {
        let prompt = self.prompt.as_deref().unwrap_or_default();
        let spans = vec![Span::styled(prompt, theme.accent), Span::styled(self.filter.as_str(), theme.text)];
        let used = put_line(buffer, area.as_position(), area.width.saturating_sub(1), &Line::from(spans));
        (area.width > 0).then(|| Position::new(area.x + used, area.y))
    }

    fn draw_rows(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        self.rows = area.height.into();
        self.top = self.top.min(self.selected).max((self.selected + 1).saturating_sub(self.rows));
        self.top = self.top.min(self.found.len().saturating_sub(self.rows));
        if self.found.is_empty() && area.height > 0 {
            put_fitting(buffer, area, &Line::styled("  nothing matches", theme.muted));
        }
        let shown = self.found.iter().enumerate().skip(self.top).take(self.rows);
        for (y, (place, index)) in (area.y..).zip(shown) {
            let Some(choice) = usize::try_from(*index).ok().and_then(|index| self.choices.get(index)) else {
                continue;
            };
            let is_selected = place == self.selected;
            let row = Rect { y, height: 1, ..area };
            if is_selected {
                buffer.set_style(row.intersection(buffer.area), theme.selected);
            }
            let base = if is_selected { theme.selected } else { Style::new() };
            put_fitting(buffer, row, &self.row(choice, is_selected, base, theme));
        }
    }

    fn row(&self, choice: &PickerChoice, is_selected: bool, base: Style, theme: &Theme) -> Line<'static> {
        let mut spans = vec![Span::styled(if is_selected { "› " } else { "  " }, base.patch(theme.accent))];
        let places = self.pattern.places(&choice.title);
        let mut places = places.iter().peekable();
        for (at, c) in choice.title.char_indices() {
            let mut is_found = false;
            while places.next_if(|place| **place < at + c.len_utf8()).is_some() {
                is_found = true;
            }
            let style = if is_found { theme.found } else { theme.text };
            push_styled(&mut spans, c.encode_utf8(&mut [0; 4]), base.patch(style));
        }
        if !choice.detail.is_empty() {
            push_styled(&mut spans, "  ", base);
            push_styled(&mut spans, &choice.detail, base.patch(theme.muted));
        }
        Line::from(spans)
    }
}

fn put_fitting(buffer: &mut Buffer, area: Rect, line: &Line<'_>) {
    let fits = line_width(line) <= area.width.into();
    let cut;
    let line = if fits {
        line
    } else {
        cut = truncate(line, area.width.into());
        &cut
    };
    put_line(buffer, area.as_position(), area.width, line);
}

fn cut_top(area: &mut Rect, rows: u16) -> Rect {
    let top = Rect { height: rows.min(area.height), ..*area };
    area.y += top.height;
    area.height -= top.height;
    top
}

fn cut_bottom(area: &mut Rect, rows: u16) -> Rect {
    let height = rows.min(area.height);
    area.height -= height;
    Rect { y: area.bottom(), height, ..*area }
}
