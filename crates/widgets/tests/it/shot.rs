//! What is drawn, as text.

use helve_widgets::{Background, ColorDepth, Theme};
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::text::Line;

pub(crate) fn plain() -> Theme {
    Theme::new(ColorDepth::None, Background::Dark)
}

/// Lines without their styles, and without blanks at their ends.
pub(crate) fn text(lines: &[Line<'_>]) -> String {
    lines.iter().map(|line| format!("{}\n", line.to_string().trim_end())).collect()
}

/// What `draw` leaves in a window.
pub(crate) fn shot(width: u16, height: u16, draw: impl FnOnce(Rect, &mut Buffer)) -> String {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    draw(area, &mut buffer);
    rows(&buffer)
}

fn rows(buffer: &Buffer) -> String {
    let mut told = String::new();
    for row in buffer.content.chunks(buffer.area.width.into()) {
        let mut x = 0;
        let mut line = String::new();
        while let Some(cell) = row.get(x) {
            line.push_str(cell.symbol());
            x += width(cell);
        }
        told.push_str(line.trim_end());
        told.push('\n');
    }
    told
}

fn width(cell: &Cell) -> usize {
    helve_widgets::width::width(cell.symbol()).max(1)
}
