//! The text input: lines, a cursor between clusters, words, kills and yanks, undo. Long pastes stand in it as chips.

use std::collections::VecDeque;
use std::ops::Range;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use crate::chips::{EditorChip, EditorContent, EditorPart};
use crate::draw::put_line;
use crate::edit::{EditorCommand, EditorOutcome};
use crate::editor_rows::{EditorLineLayout, column_of, lay_out_line, line_at, offset_at_column, row_pieces};
use crate::motion::{
    is_word_char, next_boundary, previous_boundary, snap_to_boundary, word_after, word_before,
};
use crate::theme::Theme;
use crate::undo::{EditorChange, UndoHistory};
use crate::width::grouped;

/// A paste of more is a chip.
const MAX_PASTED_CHARS: usize = 1_000;
const MAX_PASTED_LINES: usize = 10;
const MAX_KILL_RING_ENTRIES: usize = 32;
/// The width of rows before the first time it is drawn.
const DEFAULT_EDITOR_WIDTH: usize = 80;

/// What the last edit was, as far as the next one cares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum LastEdit {
    #[default]
    Other,
    Typed,
    Killed,
    /// Where the yanked text stands, and which of the kills it is, counted from the last.
    Yanked(Range<usize>, usize),
}

#[derive(Clone, Debug)]
pub struct Editor {
    content: EditorContent,
    /// Between clusters, always.
    cursor: usize,
    history: UndoHistory,
    kills: VecDeque<EditorContent>,
    last: LastEdit,
    /// The column that moving up and down keeps to.
    goal: Option<usize>,
    width: usize,
    /// Where the first row begins that was drawn last.
    top: usize,
}

impl Default for Editor {
    fn default() -> Editor {
        Editor {
            content: EditorContent::default(),
            cursor: 0,
            history: UndoHistory::default(),
            kills: VecDeque::new(),
            last: LastEdit::default(),
            goal: None,
            width: DEFAULT_EDITOR_WIDTH,
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

    pub fn parts(&self) -> Vec<EditorPart<'_>> {
        self.content.parts()
    }

    /// The text as it lies there, with U+FFFC for each chip, and the place of the cursor in it, in bytes. For completions.
    pub fn raw(&self) -> (&str, usize) {
        (self.content.text(), self.cursor)
    }

    /// Replaces everything; can be undone.
    pub fn set_text(&mut self, text: &str) {
        self.replace(0..self.content.len(), EditorContent::plain(text));
    }

    /// What was typed. Goes on with the same undo step within a word.
    pub fn insert(&mut self, text: &str) {
        let starts_word = !text.starts_with(is_word_char) || !self.content_before().ends_with(is_word_char);
        let goes_on = self.last == LastEdit::Typed && !starts_word;
        let change = self.exchange(self.cursor..self.cursor, EditorContent::plain(text));
        if goes_on {
            self.history.extend(change)
        } else {
            self.history.add(change)
        }
        self.last = LastEdit::Typed;
    }

    /// What was pasted: a chip if it is long.
    pub fn paste(&mut self, text: &str) {
        let content = EditorContent::plain(text);
        let lines = content.text().lines().count();
        let is_long = lines > MAX_PASTED_LINES || content.text().chars().nth(MAX_PASTED_CHARS).is_some();
        if !is_long {
            return self.replace(self.cursor..self.cursor, content);
        }
        let label = if lines > MAX_PASTED_LINES {
            format!("pasted {} lines", grouped(lines))
        } else {
            format!("pasted {} characters", grouped(content.text().chars().count()))
        };
        self.insert_chip(&label, content.text());
    }

    /// One thing that stands for another.
    pub fn insert_chip(&mut self, label: &str, payload: &str) {
        let chip = EditorChip { label: label.into(), payload: payload.into() };
        self.replace(self.cursor..self.cursor, EditorContent::chip(chip));
    }

    /// Replaces a range of [`Editor::raw`], as a completion does. A range that tears a character changes nothing.
    pub fn complete(&mut self, range: Range<usize>, text: &str) {
        if self.content.text().get(range.clone()).is_some() {
            self.replace(range, EditorContent::plain(text));
        }
    }

    pub fn apply(&mut self, edit: EditorCommand) -> EditorOutcome {
        let last = std::mem::take(&mut self.last);
        let goal = self.goal.take();
        let (at, line) = (self.cursor, line_at(self.content.text(), self.cursor));
        match edit {
            EditorCommand::Left => self.go(previous_boundary(self.content.text(), at)),
            EditorCommand::Right => self.go(next_boundary(self.content.text(), at)),
            EditorCommand::Up => self.go_vertically(goal, VerticalDirection::Up),
            EditorCommand::Down => self.go_vertically(goal, VerticalDirection::Down),
            EditorCommand::WordLeft => self.go(word_before(self.content.text(), at)),
            EditorCommand::WordRight => self.go(word_after(self.content.text(), at)),
            EditorCommand::LineStart => self.go(line.start),
            EditorCommand::LineEnd => self.go(line.end),
            EditorCommand::TextStart => self.go(0),
            EditorCommand::TextEnd => self.go(self.content.len()),
            EditorCommand::NewLine => self.delete(at..at, "\n"),
            EditorCommand::DeleteLeft => self.delete(previous_boundary(self.content.text(), at)..at, ""),
            EditorCommand::DeleteRight => self.delete(at..next_boundary(self.content.text(), at), ""),
            EditorCommand::KillWordLeft => self.kill(word_before(self.content.text(), at)..at, &last),
            EditorCommand::KillWordRight => self.kill(at..word_after(self.content.text(), at), &last),
            EditorCommand::KillToStart => self.kill(line.start..at, &last),
            EditorCommand::KillToEnd if at == line.end => {
                self.kill(at..next_boundary(self.content.text(), at), &last)
            }
            EditorCommand::KillToEnd => self.kill(at..line.end, &last),
            EditorCommand::KillAll => self.kill(0..self.content.len(), &last),
            EditorCommand::Yank => self.yank(at..at, 0),
            EditorCommand::YankOlder => match last {
                LastEdit::Yanked(place, number) => self.yank(place, number + 1),
                _ => EditorOutcome::Nothing,
            },
            EditorCommand::Transpose => self.transpose(),
            EditorCommand::Undo => {
                let cursor = self.history.undo(&mut self.content);
                self.restore(cursor)
            }
            EditorCommand::Redo => {
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
            let laid = lay_out_line(&self.content, at, width.into());
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
        put_line(buffer, at, width, &Line::from_iter(spans));
    }

    /// The line of the cursor, and the rows to draw: those that were drawn last if the cursor is among them.
    fn visible_rows(&self, height: usize) -> (EditorLineLayout, Vec<Range<usize>>) {
        let laid = lay_out_line(&self.content, self.cursor, self.width);
        let row = laid.row_of(self.cursor);
        let mut above: VecDeque<Range<usize>> = laid.rows.iter().take(row).cloned().collect();
        let mut start = laid.line.start;
        while above.len() < height && start > 0 {
            let earlier = lay_out_line(&self.content, start - 1, self.width);
            start = earlier.line.start;
            earlier.rows.into_iter().rev().for_each(|row| above.push_front(row));
        }
        let mut rows: Vec<Range<usize>> = above.into_iter().collect();
        let of_cursor = rows.len();
        rows.extend(laid.rows.iter().skip(row).cloned());
        let mut end = laid.line.end;
        while rows.len() < of_cursor + height && end < self.content.len() {
            let later = lay_out_line(&self.content, end + 1, self.width);
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

    fn go(&mut self, to: usize) -> EditorOutcome {
        if to == self.cursor {
            return EditorOutcome::Nothing;
        }
        self.cursor = to;
        EditorOutcome::Moved
    }

    fn go_vertically(&mut self, goal: Option<usize>, direction: VerticalDirection) -> EditorOutcome {
        let laid = lay_out_line(&self.content, self.cursor, self.width);
        let number = laid.row_of(self.cursor);
        let Some(row) = laid.rows.get(number) else { return EditorOutcome::Nothing };
        let goal = goal.unwrap_or_else(|| column_of(&self.content, row, self.cursor, self.width));
        self.goal = Some(goal);
        let target = match direction {
            VerticalDirection::Up if number > 0 => Some((laid, number - 1)),
            VerticalDirection::Down if number + 1 < laid.rows.len() => Some((laid, number + 1)),
            VerticalDirection::Up => laid.line.start.checked_sub(1).map(|end| {
                let above = lay_out_line(&self.content, end, self.width);
                let last = above.rows.len() - 1;
                (above, last)
            }),
            VerticalDirection::Down => Some(laid.line.end + 1)
                .filter(|start| *start <= self.content.len())
                .map(|start| (lay_out_line(&self.content, start, self.width), 0)),
        };
        let place =
            target.map(|(laid, number)| offset_at_column(&self.content, &laid, number, goal, self.width));
        place.map_or(EditorOutcome::Nothing, |place| self.go(snap_to_boundary(self.content.text(), place)))
    }

    /// Replaces a range and puts the cursor behind what is new.
    fn exchange(&mut self, range: Range<usize>, with: EditorContent) -> EditorChange {
        let cursor_before = self.cursor;
        let removed = self.content.copy_range(range.clone());
        self.content.replace(range.clone(), &with);
        self.cursor = snap_to_boundary(self.content.text(), range.start + with.len());
        self.goal = None;
        EditorChange { at: range.start, removed, inserted: with, cursor_before, cursor_after: self.cursor }
    }

    fn replace(&mut self, range: Range<usize>, with: EditorContent) {
        let change = self.exchange(range, with);
        self.history.add(change);
        self.last = LastEdit::Other;
    }

    fn delete(&mut self, range: Range<usize>, with: &str) -> EditorOutcome {
        if range.is_empty() && with.is_empty() {
            return EditorOutcome::Nothing;
        }
        self.replace(range, EditorContent::plain(with));
        EditorOutcome::Changed
    }

    /// Kills that follow each other are one.
    fn kill(&mut self, range: Range<usize>, last: &LastEdit) -> EditorOutcome {
        if range.is_empty() {
            return EditorOutcome::Nothing;
        }
        let is_before = range.end == self.cursor && range.start < self.cursor;
        let mut killed = self.content.copy_range(range.clone());
        if *last == LastEdit::Killed
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
        if self.kills.len() > MAX_KILL_RING_ENTRIES {
            self.kills.pop_front();
        }
        self.replace(range, EditorContent::default());
        self.last = LastEdit::Killed;
        EditorOutcome::Changed
    }

    fn yank(&mut self, place: Range<usize>, number: usize) -> EditorOutcome {
        let Some(number) = number.checked_rem(self.kills.len()) else { return EditorOutcome::Nothing };
        let Some(kill) = self.kills.iter().rev().nth(number).cloned() else { return EditorOutcome::Nothing };
        let start = place.start;
        let end = start + kill.len();
        self.replace(place, kill);
        self.last = LastEdit::Yanked(start..end, number);
        EditorOutcome::Changed
    }

    fn transpose(&mut self) -> EditorOutcome {
        let line = line_at(self.content.text(), self.cursor);
        let middle = if self.cursor == line.end {
            previous_boundary(self.content.text(), self.cursor)
        } else {
            self.cursor
        };
        if middle <= line.start {
            return EditorOutcome::Nothing;
        }
        let (start, end) =
            (previous_boundary(self.content.text(), middle), next_boundary(self.content.text(), middle));
        let mut swapped = self.content.copy_range(middle..end);
        swapped.append(&self.content.copy_range(start..middle));
        self.replace(start..end, swapped);
        EditorOutcome::Changed
    }

    fn restore(&mut self, cursor: Option<usize>) -> EditorOutcome {
        let Some(cursor) = cursor else { return EditorOutcome::Nothing };
        self.cursor = cursor;
        EditorOutcome::Changed
    }
}

#[derive(Clone, Copy)]
enum VerticalDirection {
    Up,
    Down,
}
