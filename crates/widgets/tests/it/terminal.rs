//! A terminal that is resized as real ones are: it wraps long rows anew or cuts them, pushes rows out at the top, and takes
//! its cursor along.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use helve_widgets::{ReflowMode, ScreenOptions, TerminalScreen};
use ratatui::layout::Size;
use vt100::Parser;

const SCROLLBACK: usize = 100_000;

pub(crate) struct Terminal {
    pub(crate) parser: Parser,
    /// Everything that was written.
    pub(crate) bytes: Vec<u8>,
    narrowing: ReflowMode,
}

/// A symbol and its width.
type Glyph = (String, usize);

struct Row {
    glyphs: Vec<Glyph>,
    goes_on: bool,
}

pub(crate) type Shared = Rc<RefCell<Terminal>>;

/// A terminal and a screen on it.
pub(crate) fn terminal(
    width: u16,
    height: u16,
    options: ScreenOptions,
) -> (Shared, TerminalScreen<Tap, impl FnMut() -> Size>) {
    let parser = Parser::new(height, width, SCROLLBACK);
    let shared = Rc::new(RefCell::new(Terminal { parser, bytes: Vec::new(), narrowing: options.narrowing }));
    let looked_at = shared.clone();
    let size = move || {
        let (rows, columns) = looked_at.borrow().parser.screen().size();
        Size::new(columns, rows)
    };
    (shared.clone(), TerminalScreen::new(Tap(shared), size, options))
}

pub(crate) struct Tap(pub(crate) Shared);

impl io::Write for Tap {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut terminal = self.0.borrow_mut();
        terminal.parser.process(bytes);
        terminal.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Terminal {
    /// Scrollback and screen, without the blank rows at the end.
    pub(crate) fn rows(&mut self) -> Vec<String> {
        let rows = self.all_rows();
        let mut rows: Vec<String> = rows
            .iter()
            .map(|row| {
                row.glyphs.iter().map(|(text, _)| text.as_str()).collect::<String>().trim_end().to_owned()
            })
            .collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    pub(crate) fn take_bytes(&mut self) -> String {
        String::from_utf8(std::mem::take(&mut self.bytes)).unwrap()
    }

    pub(crate) fn resize(&mut self, width: u16, height: u16) {
        let (cursor_row, cursor_column) = self.parser.screen().cursor_position();
        let rows = self.all_rows();
        let screen_rows = self.parser.screen().size().0;
        let cursor_row = rows.len() - usize::from(screen_rows) + usize::from(cursor_row);
        let (rows, cursor) = match self.narrowing {
            ReflowMode::Wraps => wrapped(&rows, (cursor_row, cursor_column.into()), width.into()),
            ReflowMode::Cuts => (cut(rows, width.into()), (cursor_row, cursor_column.into())),
        };
        self.parser = Parser::new(height, width, SCROLLBACK);
        // Rows below the cursor are given up before those above it.
        let top = (cursor.0 + 1).saturating_sub(height.into());
        let used = (top + usize::from(height)).min(rows.len());
        for (index, row) in rows[..used].iter().enumerate() {
            for (text, _) in &row.glyphs {
                self.parser.process(text.as_bytes());
            }
            // Rows are not joined with what has left the window: terminals differ there.
            let is_joined = row.goes_on && index + 1 != top;
            if !is_joined && index + 1 < used {
                self.parser.process(b"\r\n");
            }
        }
        let shown_from = used.saturating_sub(height.into());
        let column = cursor.1.min(usize::from(width) - 1);
        let sequence = format!("\x1b[{};{}H", cursor.0 - shown_from + 1, column + 1);
        self.parser.process(sequence.as_bytes());
    }

    fn all_rows(&mut self) -> Vec<Row> {
        let screen = self.parser.screen_mut();
        screen.set_scrollback(usize::MAX);
        let above = screen.scrollback();
        let (rows, columns) = screen.size();
        let mut all = Vec::new();
        for index in 0..above + usize::from(rows) {
            screen.set_scrollback(above.saturating_sub(index));
            let y = index.saturating_sub(above) as u16;
            let mut glyphs = Vec::new();
            for x in 0..columns {
                let cell = screen.cell(y, x).unwrap();
                if !cell.is_wide_continuation() {
                    let text = if cell.has_contents() { cell.contents() } else { " " };
                    glyphs.push((text.to_owned(), if cell.is_wide() { 2 } else { 1 }));
                }
            }
            while glyphs.last().is_some_and(|(text, _): &Glyph| text == " ") {
                glyphs.pop();
            }
            all.push(Row { glyphs, goes_on: screen.row_wrapped(y) });
        }
        screen.set_scrollback(0);
        all
    }
}

fn cut(mut rows: Vec<Row>, width: usize) -> Vec<Row> {
    for row in &mut rows {
        let mut used = 0;
        row.glyphs.retain(|(_, glyph)| {
            used += glyph;
            used <= width
        });
    }
    rows
}

/// The rows at another width, and where the cursor is then.
fn wrapped(rows: &[Row], cursor: (usize, usize), width: usize) -> (Vec<Row>, (usize, usize)) {
    let mut new: Vec<Row> = vec![Row { glyphs: Vec::new(), goes_on: false }];
    let mut new_cursor = (0, 0);
    let mut used = 0;
    for (y, row) in rows.iter().enumerate() {
        let mut x = 0;
        let mut row_of_cursor = None;
        for glyph in &row.glyphs {
            if used + glyph.1 > width {
                new.last_mut().unwrap().goes_on = true;
                new.push(Row { glyphs: Vec::new(), goes_on: false });
                used = 0;
            }
            if y == cursor.0 && x <= cursor.1 {
                row_of_cursor = Some((new.len() - 1, used + cursor.1 - x));
            }
            used += glyph.1;
            x += glyph.1;
            new.last_mut().unwrap().glyphs.push(glyph.clone());
        }
        if y == cursor.0 {
            new_cursor = row_of_cursor.unwrap_or((new.len() - 1, cursor.1));
        }
        if !row.goes_on {
            new.push(Row { glyphs: Vec::new(), goes_on: false });
            used = 0;
        }
    }
    new.pop();
    (new, new_cursor)
}
