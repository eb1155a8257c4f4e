//! Tables that fit: cells are wrapped, and where even that is too narrow, each row is told by its headings.

use pulldown_cmark::Alignment;
use ratatui::text::{Line, Span};

use crate::theme::Theme;
use crate::width::line_width;
use crate::wrap::{wrap, wrap_with_prefix};

/// Between two columns.
const COLUMN_SEPARATOR: &str = " │ ";
const COLUMN_SEPARATOR_WIDTH: usize = 3;
/// A table with narrower columns can't be read.
const MIN_COLUMN_WIDTH: usize = 6;

pub(crate) struct MarkdownTable {
    alignments: Vec<Alignment>,
    /// The first is the heading.
    rows: Vec<Vec<Line<'static>>>,
}

impl MarkdownTable {
    pub(crate) fn new(alignments: Vec<Alignment>) -> MarkdownTable {
        MarkdownTable { alignments, rows: Vec::new() }
    }

    pub(crate) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(crate) fn add(&mut self, cell: Line<'static>) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    pub(crate) fn lines(self, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        match self.widths(width) {
            Some(widths) => self.grid(&widths, theme),
            None => self.told(width, theme),
        }
    }

    /// How wide each column is, if all can be wide enough.
    fn widths(&self, width: usize) -> Option<Vec<usize>> {
        let natural: Vec<usize> = (0..self.alignments.len())
            .map(|column| self.column(column).map(line_width).max().unwrap_or(0).max(1))
            .collect();
        let room = width.checked_sub(COLUMN_SEPARATOR_WIDTH * natural.len().saturating_sub(1))?;
        let total = |most: usize| natural.iter().map(|width| *width.min(&most)).sum::<usize>();
        // The widest columns give way first.
        let most = (1..=width).rev().find(|most| total(*most) <= room)?;
        let is_readable = most >= MIN_COLUMN_WIDTH || natural.iter().all(|width| *width <= most);
        is_readable.then(|| natural.iter().map(|width| *width.min(&most)).collect())
    }

    fn column(&self, column: usize) -> impl Iterator<Item = &Line<'static>> {
        self.rows.iter().filter_map(move |row| row.get(column))
    }

    fn grid(&self, widths: &[usize], theme: &Theme) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            lines.extend(self.grid_row(row, widths, theme, number == 0));
            if number == 0 {
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(Line::styled(rules.join("─┼─"), theme.border));
            }
        }
        lines
    }

    fn grid_row(
        &self,
        row: &[Line<'static>],
        widths: &[usize],
        theme: &Theme,
        is_heading: bool,
    ) -> Vec<Line<'static>> {
        let empty = Line::default();
        let cells: Vec<Vec<Line<'static>>> = widths
            .iter()
            .enumerate()
            .map(|(column, width)| wrap(row.get(column).unwrap_or(&empty), *width))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let line = |y: usize| {
            let mut spans = Vec::new();
            for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                if column > 0 {
                    spans.push(Span::styled(COLUMN_SEPARATOR, theme.border));
                }
                let cell = cell.get(y).cloned().unwrap_or_default();
                let blank = width.saturating_sub(line_width(&cell));
                let left = match self.alignments.get(column) {
                    Some(Alignment::Right) => blank,
                    Some(Alignment::Center) => blank / 2,
                    _ => 0,
                };
                spans.push(Span::raw(" ".repeat(left)));
                let style =
                    |span: Span<'static>| if is_heading { span.patch_style(theme.strong) } else { span };
                spans.extend(cell.spans.into_iter().map(style));
                spans.push(Span::raw(" ".repeat(blank - left)));
            }
            trimmed(spans)
        };
        (0..height).map(line).collect()
    }

    /// Each row by itself: what its cells are, and what stands in them.
    fn told(&self, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let Some((headings, rows)) = self.rows.split_first() else { return lines };
        for (number, row) in rows.iter().enumerate() {
            if number > 0 {
                lines.push(Line::styled("─".repeat(width.min(8)), theme.border));
            }
            for (heading, cell) in headings.iter().zip(row) {
                let mut name = heading.clone().patch_style(theme.strong);
                name.push_span(Span::styled(": ", theme.muted));
                let mut line = Line::from(
                    name.spans.into_iter().map(|span| span.patch_style(name.style)).collect::<Vec<_>>(),
                );
                line.spans.extend(cell.spans.iter().cloned());
                lines.extend(wrap_with_prefix(&line, width, &Line::default(), &Line::from("  ")));
            }
        }
        if rows.is_empty() {
            lines.extend(headings.iter().flat_map(|heading| wrap(heading, width)));
        }
        lines
    }
}

/// Without blanks at the end.
fn trimmed(mut spans: Vec<Span<'static>>) -> Line<'static> {
    while let Some(last) = spans.last_mut() {
        let text = last.content.trim_end();
        if text.len() == last.content.len() && !text.is_empty() {
            break;
        }
        if text.is_empty() {
            spans.pop();
        } else {
            last.content = text.to_owned().into();
        }
    }
    Line::from(spans)
}
