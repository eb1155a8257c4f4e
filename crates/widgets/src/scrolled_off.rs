//! Rows of the live area that left the window at its top, when it became too small for them.
//!
//! They can't be erased there, and nobody needs to know where they are: they stand right above the live area until
//! something is printed. When the window grows they come back, or the cursor is at the top already and can't go past it.

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Position;

use crate::frame::{content_width, starts_when_wrapped};

/// As many as the highest window has.
const MAX_SCROLLED_OFF_ROWS: usize = 500;

#[derive(Debug, Default)]
pub(crate) struct ScrolledOffRows {
    rows: Vec<Vec<Cell>>,
    /// Only the beginning of the last one left. Terminals take what is drawn after it for its end.
    is_cut: bool,
}

/// Where the live area begins anew, seen from the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LiveAreaTop {
    RowsAbove(u16),
    NextRow,
}

impl ScrolledOffRows {
    /// Where the live area begins in a window of another width, in which the cursor can go up by at most `most` rows. What
    /// is above is lost. Terminals don't agree what becomes of a row that left in part, so it is given up as a whole where
    /// its end is known.
    pub(crate) fn resize(&mut self, shown: &Buffer, cursor: Position, width: u16, most: u16) -> LiveAreaTop {
        let column = self.take_in(shown, cursor);
        let last = self.rows.len().saturating_sub(1);
        let mut starts: Vec<(usize, usize)> = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            starts.extend(starts_when_wrapped(row, width).into_iter().map(|start| (index, start)));
        }
        let above = starts.iter().rposition(|(index, start)| *index < last || *start <= column).unwrap_or(0);
        let reached = above.saturating_sub(most.into());
        let (index, start) = starts.get(reached).copied().unwrap_or_default();
        let is_end_known = index < last || above + 1 == starts.len();
        if start == 0 || !is_end_known {
            self.keep_before(index, start);
            return LiveAreaTop::RowsAbove(u16::try_from(above - reached).unwrap_or(most));
        }
        self.keep_before(index + 1, 0);
        let next = starts.iter().position(|(other, _)| *other > index);
        next.map_or(LiveAreaTop::NextRow, |next| {
            LiveAreaTop::RowsAbove(u16::try_from(above - next).unwrap_or(most))
        })
    }

    /// Adds the rows down to the cursor, and says at which column it stands in the last one. Behind the text of its row it
    /// is taken along with the last character.
    fn take_in(&mut self, shown: &Buffer, cursor: Position) -> usize {
        let width = usize::from(shown.area.width).max(1);
        let mut shown = shown.content.chunks(width);
        let mut column = usize::from(cursor.x);
        for _ in 0..=cursor.y {
            let row = shown.next().unwrap_or_default();
            let row = row.get(..content_width(row)).unwrap_or(row);
            column = usize::from(cursor.x).min(row.len().saturating_sub(1));
            match self.rows.last_mut().filter(|_| self.is_cut) {
                Some(cut) => {
                    column += cut.len();
                    cut.extend_from_slice(row);
                }
                None => self.rows.push(row.to_vec()),
            }
            self.is_cut = false;
        }
        column
    }

    /// Keeps what is before a column of a row.
    fn keep_before(&mut self, index: usize, column: usize) {
        self.is_cut = column > 0;
        self.rows.truncate(index + usize::from(self.is_cut));
        if let Some(last) = self.rows.last_mut().filter(|_| self.is_cut) {
            last.truncate(column);
        }
        let too_many = self.rows.len().saturating_sub(MAX_SCROLLED_OFF_ROWS);
        self.rows.drain(..too_many);
    }
}
