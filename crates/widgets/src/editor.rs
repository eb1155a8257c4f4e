//! The text input: lines, a cursor between clusters, words, kills and yanks, undo. Long pastes stand in it as chips.

use std::collections::VecDeque;
use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use crate::chips::{Chip, Content, Part};
use crate::draw::put;
use crate::edit::{Edit, Effect};
use crate::motion::{after, before, is_of_word, snapped, word_after, word_before};
use crate::rows::{Laid, column_of, lay, line_at, place_at, row_pieces};
use crate::theme::Theme;
use crate::undo::{Change, History};
use crate::width::grouped;

/// A paste of more is a chip.
const MOST_PASTED_CHARS: usize = 1_000;
const MOST_PASTED_LINES: usize = 10;
const MOST_KILLS: usize = 32;
/// The width of rows before the first time it is drawn.
const WIDTH: usize = 80;

/// What the last edit was, as far as the next one cares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Last {
    #[default]
    Other,
    Typed,
    Killed,
    /// Where the yanked text stands, and which of the kills it is, counted from the last.
    Yanked(Range<usize>, usize),
}

#[derive(Clone, Debug)]
pub struct Editor {
    content: Content,
    /// Between clusters, always.
    cursor: usize,
    history: History,
    kills: VecDeque<Content>,
    last: Last,
    /// The column that moving up and down keeps to.
    goal: Option<usize>,
    width: usize,
    /// Where the first row begins that was drawn last.
    top: usize,
}

impl Default for Editor {
    fn default() -> Editor {
        Editor {
            content: Content::default(),
            cursor: 0,
            history: History::default(),
            kills: VecDeque::new(),
            last: Last::default(),
            goal: None,
            width: WIDTH,
            top: 0,
        }
    }
}

impl Editor {
    pub fn is_empty(&self) -> bool {
        self.content.is_empty()
    }

    /// What was written, with the payloads of chips in their places.
    pub fn text(&self) -> String {
        self.content.expanded()
    }

    pub fn parts(&self) -> Vec<Part<'_>> {
        self.content.parts()
    }

    /// The text as it lies there, with U+FFFC for each chip, and the place of the cursor in it, in bytes. For completions.
    pub fn raw(&self) -> (&str, usize) {
        (self.content.text(), self.cursor)
    }

    /// Replaces everything; can be undone.
    pub fn set_text(&mut self, text: &str) {
        self.replace(0..self.content.len(), Content::plain(text));
    }

    /// What was typed. Goes on with the same undo step within a word.
    pub fn insert(&mut self, text: &str) {
        let starts_word = !text.starts_with(is_of_word) || !self.content_before().ends_with(is_of_word);
        let goes_on = self.last == Last::Typed && !starts_word;
        let change = self.exchange(self.cursor..self.cursor, Content::plain(text));
        if goes_on {
            self.history.extend(change)
        } else {
            self.history.add(change)
        }
        self.last = Last::Typed;
    }

    /// What was pasted: a chip if it is long.
    pub fn paste(&mut self, text: &str) {
        let content = Content::plain(text);
        let lines = content.text().lines().count();
        let is_long = lines > MOST_PASTED_LINES || content.text().chars().nth(MOST_PASTED_CHARS).is_some();
        if !is_long {
            return self.replace(self.cursor..self.cursor, content);
        }
        let label = if lines > MOST_PASTED_LINES {
            format!("pasted {} lines", grouped(lines))
        } else {
            format!("pasted {} characters", grouped(content.text().chars().count()))
        };
        self.insert_chip(&label, content.text());
    }

    /// One thing that stands for another.
    pub fn insert_chip(&mut self, label: &str, payload: &str) {
        let chip = Chip { label: label.into(), payload: payload.into() };
        self.replace(self.cursor..self.cursor, Content::chip(chip));
    }

    /// Replaces a range of [`Editor::raw`], as a completion does. A range that tears a character changes nothing.
    pub fn complete(&mut self, range: Range<usize>, text: &str) {
        if self.content.text().get(range.clone()).is_some() {
            self.replace(range, Content::plain(text));
        }
    }

    pub fn apply(&mut self, edit: Edit) -> Effect {
        let last = std::mem::take(&mut self.last);
        let goal = self.goal.take();
        let (at, line) = (self.cursor, line_at(self.content.text(), self.cursor));
        match edit {
            Edit::Left => self.go(before(self.content.text(), at)),
            Edit::Right => self.go(after(self.content.text(), at)),
            Edit::Up => self.go_vertically(goal, Direction::Up),
            Edit::Down => self.go_vertically(goal, Direction::Down),
            Edit::WordLeft => self.go(word_before(self.content.text(), at)),
            Edit::WordRight => self.go(word_after(self.content.text(), at)),
            Edit::LineStart => self.go(line.start),
            Edit::LineEnd => self.go(line.end),
            Edit::TextStart => self.go(0),
            Edit::TextEnd => self.go(self.content.len()),
            Edit::NewLine => self.delete(at..at, "\n"),
            Edit::DeleteLeft => self.delete(before(self.content.text(), at)..at, ""),
            Edit::DeleteRight => self.delete(at..after(self.content.text(), at), ""),
            Edit::KillWordLeft => self.kill(word_before(self.content.text(), at)..at, &last),
            Edit::KillWordRight => self.kill(at..word_after(self.content.text(), at), &last),
            Edit::KillToStart => self.kill(line.start..at, &last),
            Edit::KillToEnd if at == line.end => self.kill(at..after(self.content.text(), at), &last),
            Edit::KillToEnd => self.kill(at..line.end, &last),
            Edit::KillAll => self.kill(0..self.content.len(), &last),
            Edit::Yank => self.yank(at..at, 0),
            Edit::YankOlder => match last {
                Last::Yanked(place, number) => self.yank(place, number + 1),
                _ => Effect::Nothing,
            },
            Edit::Transpose => self.transpose(),
            Edit::Undo => {
                let cursor = self.history.undo(&mut self.content);
                self.restore(cursor)
            }
            Edit::Redo => {
                let cursor = self.history.redo(&mut self.content);
                self.restore(cursor)
            }
        }
    }

    /// How many rows it takes at a width, at most `most`.
    pub fn height(&self, width: u16, most: u16) -> u16 {
        let most = usize::from(most.max(1));
        let mut rows = 0;
        let mut at = 0;
        while rows < most {
            let laid = lay(&self.content, at, width.into());
            rows += laid.rows.len();
            at = laid.line.end + 1;
            if at > self.content.len() {
                break;
            }
        }
        u16::try_from(rows.min(most)).unwrap_or(u16::MAX)
    }

    /// Draws as many rows as fit, among them that of the cursor, and says where the cursor stands.
    pub fn draw(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) -> Option<Position> {
        if area.is_empty() {
            return None;
        }
        self.width = area.width.into();
        let (laid, rows) = self.visible_rows(area.height.into());
        self.top = rows.first().map_or(0, |row| row.start);
        let mut cursor = None;
        for (y, row) in (area.y..).zip(&rows) {
            self.draw_row(row, Position::new(area.x, y), buffer, theme);
            if laid.rows.get(laid.row_of(self.cursor)) == Some(row) {
                let column = column_of(&self.content, row, self.cursor, self.width);
                let column = u16::try_from(column).unwrap_or(u16::MAX).min(area.width - 1);
                cursor = Some(Position::new(area.x + column, y));
            }
        }
        cursor
    }

    fn draw_row(&self, row: &Range<usize>, at: Position, buffer: &mut Buffer, theme: &Theme) {
        let style = |is_chip| if is_chip { theme.chip } else { theme.text };
        let pieces = row_pieces(&self.content, row, self.width);
        let spans = pieces.map(|piece| Span::styled(piece.text, style(piece.is_chip)));
        let width = u16::try_from(self.width).unwrap_or(u16::MAX);
        put(buffer, at, width, &Line::from_iter(spans));
    }

    /// The line of the cursor, and the rows to draw: those that were drawn last if the cursor is among them.
    fn visible_rows(&self, height: usize) -> (Laid, Vec<Range<usize>>) {
        let laid = lay(&self.content, self.cursor, self.width);
        let row = laid.row_of(self.cursor);
        let mut above: VecDeque<Range<usize>> = laid.rows.iter().take(row).cloned().collect();
        let mut start = laid.line.start;
        while above.len() < height && start > 0 {
            let earlier = lay(&self.content, start - 1, self.width);
            start = earlier.line.start;
            earlier.rows.into_iter().rev().for_each(|row| above.push_front(row));
        }
        let mut rows: Vec<Range<usize>> = above.into_iter().collect();
        let of_cursor = rows.len();
        rows.extend(laid.rows.iter().skip(row).cloned());
        let mut end = laid.line.end;
        while rows.len() < of_cursor + height && end < self.content.len() {
            let later = lay(&self.content, end + 1, self.width);
            end = later.line.end;
            rows.extend(later.rows);
        }
        let lowest = of_cursor.min(rows.len().saturating_sub(height));
        let highest = (of_cursor + 1).saturating_sub(height);
        let of_top = rows.iter().take(of_cursor + 1).rposition(|row| row.start <= self.top).unwrap_or(0);
        let first = of_top.max(highest).min(lowest);
        let rows = rows.into_iter().skip(first).take(height).collect();
        (laid, rows)
    }

    fn content_before(&self) -> &str {
        self.content.text().get(..self.cursor).unwrap_or_default()
    }

    fn go(&mut self, to: usize) -> Effect {
        if to == self.cursor {
            return Effect::Nothing;
        }
        self.cursor = to;
        Effect::Moved
    }

    fn go_vertically(&mut self, goal: Option<usize>, direction: Direction) -> Effect {
        let laid = lay(&self.content, self.cursor, self.width);
        let number = laid.row_of(self.cursor);
        let Some(row) = laid.rows.get(number) else { return Effect::Nothing };
        let goal = goal.unwrap_or_else(|| column_of(&self.content, row, self.cursor, self.width));
        self.goal = Some(goal);
        let target = match direction {
            Direction::Up if number > 0 => Some((laid, number - 1)),
            Direction::Down if number + 1 < laid.rows.len() => Some((laid, number + 1)),
            Direction::Up => laid.line.start.checked_sub(1).map(|end| {
                let above = lay(&self.content, end, self.width);
                let last = above.rows.len() - 1;
                (above, last)
            }),
            Direction::Down => Some(laid.line.end + 1)
                .filter(|start| *start <= self.content.len())
                .map(|start| (lay(&self.content, start, self.width), 0)),
        };
        let place = target.map(|(laid, number)| place_at(&self.content, &laid, number, goal, self.width));
        place.map_or(Effect::Nothing, |place| self.go(snapped(self.content.text(), place)))
    }

    /// Replaces a range and puts the cursor behind what is new.
    fn exchange(&mut self, range: Range<usize>, with: Content) -> Change {
        let cursor_before = self.cursor;
        let removed = self.content.cut(range.clone());
        self.content.replace(range.clone(), &with);
        self.cursor = snapped(self.content.text(), range.start + with.len());
        self.goal = None;
        Change { at: range.start, removed, inserted: with, cursor_before, cursor_after: self.cursor }
    }

    fn replace(&mut self, range: Range<usize>, with: Content) {
        let change = self.exchange(range, with);
        self.history.add(change);
        self.last = Last::Other;
    }

    fn delete(&mut self, range: Range<usize>, with: &str) -> Effect {
        if range.is_empty() && with.is_empty() {
            return Effect::Nothing;
        }
        self.replace(range, Content::plain(with));
        Effect::Changed
    }

    /// Kills that follow each other are one.
    fn kill(&mut self, range: Range<usize>, last: &Last) -> Effect {
        if range.is_empty() {
            return Effect::Nothing;
        }
        let is_before = range.end == self.cursor && range.start < self.cursor;
        let mut killed = self.content.cut(range.clone());
        if *last == Last::Killed
            && let Some(mut earlier) = self.kills.pop_back()
        {
            if is_before {
                killed.append(&earlier);
            } else {
                earlier.append(&killed);
                killed = earlier;
            }
        }
        self.kills.push_back(killed);
        if self.kills.len() > MOST_KILLS {
            self.kills.pop_front();
        }
        self.replace(range, Content::default());
        self.last = Last::Killed;
        Effect::Changed
    }

    fn yank(&mut self, place: Range<usize>, number: usize) -> Effect {
        let Some(number) = number.checked_rem(self.kills.len()) else { return Effect::Nothing };
        let Some(kill) = self.kills.iter().rev().nth(number).cloned() else { return Effect::Nothing };
        let start = place.start;
        let end = start + kill.len();
        self.replace(place, kill);
        self.last = Last::Yanked(start..end, number);
        Effect::Changed
    }

    fn transpose(&mut self) -> Effect {
        let line = line_at(self.content.text(), self.cursor);
        let middle =
            if self.cursor == line.end { before(self.content.text(), self.cursor) } else { self.cursor };
        if middle <= line.start {
            return Effect::Nothing;
        }
        let (start, end) = (before(self.content.text(), middle), after(self.content.text(), middle));
        let mut swapped = self.content.cut(middle..end);
        swapped.append(&self.content.cut(start..middle));
        self.replace(start..end, swapped);
        Effect::Changed
    }

    fn restore(&mut self, cursor: Option<usize>) -> Effect {
        let Some(cursor) = cursor else { return Effect::Nothing };
        self.cursor = cursor;
        Effect::Changed
    }
}

#[derive(Clone, Copy)]
enum Direction {
    Up,
    Down,
}
