//! Lines into cells.

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Position;
use ratatui::text::Line;

use crate::width::glyphs;

/// Writes a line into a row, at most `width` columns of it, and says how many it took. Outside of the buffer nothing happens.
pub fn put_line(buffer: &mut Buffer, at: Position, width: u16, line: &Line<'_>) -> u16 {
    let room = width.min(buffer.area.right().saturating_sub(at.x));
    let mut used: u16 = 0;
    for span in &line.spans {
        let style = line.style.patch(span.style);
        for glyph in glyphs(&span.content, used.into()) {
            let glyph_width = u16::try_from(glyph.width).unwrap_or(u16::MAX);
            if glyph_width > room - used {
                return used;
            }
            // A tab is several cells, a wide character one and what it covers.
            let is_tab = glyph.text.starts_with(' ');
            for offset in 0..glyph_width {
                let Some(cell) = buffer.cell_mut((at.x + used + offset, at.y)) else { return used };
                *cell = Cell::EMPTY;
                if offset == 0 || is_tab {
                    cell.set_symbol(if is_tab { " " } else { &glyph.text }).set_style(style);
                }
            }
            used += glyph_width;
        }
    }
    used
}
