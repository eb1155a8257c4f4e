//! The bytes of one frame: what must be written so that a terminal shows something else.
//!
//! All movement is relative to where the cursor stands. So nobody needs to know in which row of the window the live area
//! begins, and a window that scrolls or changes its height moves nothing.

use std::io::Write as _;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Position;
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr;

use crate::width::sanitize_text;

#[derive(Debug, Default)]
pub(crate) struct TerminalFrame {
    bytes: Vec<u8>,
    /// Seen from the first row of what is drawn. The column is unknown after what terminals don't agree about.
    row: u16,
    column: Option<u16>,
    look: CellStyle,
}

/// Everything about a cell but its symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CellStyle {
    fg: Color,
    bg: Color,
    underline: Color,
    modifier: Modifier,
}

impl CellStyle {
    fn of(cell: &Cell) -> CellStyle {
        CellStyle { fg: cell.fg, bg: cell.bg, underline: cell.underline_color, modifier: cell.modifier }
    }
}

impl TerminalFrame {
    pub(crate) fn at(position: Position) -> TerminalFrame {
        TerminalFrame { row: position.y, column: Some(position.x), ..TerminalFrame::default() }
    }

    /// A frame whose first row is the one below the cursor.
    pub(crate) fn after_row() -> TerminalFrame {
        let mut frame = TerminalFrame::default();
        frame.newline();
        frame.begin_here();
        frame
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        self.plain();
        self.bytes
    }

    pub(crate) fn raw(&mut self, sequence: &str) {
        self.bytes.extend_from_slice(sequence.as_bytes());
    }

    /// The first row begins here.
    pub(crate) fn begin_here(&mut self) {
        self.row = 0;
    }

    pub(crate) fn go(&mut self, column: u16, row: u16) {
        let distance = self.row.abs_diff(row);
        match row.cmp(&self.row) {
            std::cmp::Ordering::Less => self.sequence(distance, 'A'),
            // A line feed makes room at the bottom of the window, where the sequence that goes down would stop short and
            // everything after it would be drawn too high: over finished lines, if the window has moved unnoticed.
            std::cmp::Ordering::Greater => {
                self.plain();
                (0..distance).for_each(|_| self.raw("\n"));
                self.column = None;
            }
            std::cmp::Ordering::Equal => {}
        }
        if self.column != Some(column) {
            if column == 0 {
                self.raw("\r");
            } else {
                self.sequence(column + 1, 'G');
            }
        }
        (self.row, self.column) = (row, Some(column));
    }

    /// The next row, which the terminal makes room for if there is none.
    pub(crate) fn newline(&mut self) {
        self.plain();
        self.raw("\r\n");
        (self.row, self.column) = (self.row + 1, Some(0));
    }

    /// Erases the row in which the cursor stands at the beginning, and those below it in a window of some height. They are
    /// erased from the second one on: from the corner of the window on, tmux would keep them in its scrollback.
    pub(crate) fn erase_below(&mut self, height: u16) {
        self.plain();
        self.raw("\x1b[K");
        if height > 1 {
            self.raw("\x1b7\x1b[B\x1b[J\x1b8");
        }
    }

    /// Rows of the same width as they are to look, where some already stand.
    pub(crate) fn change(&mut self, old: &Buffer, new: &Buffer) {
        let width = usize::from(new.area.width).max(1);
        let mut old_rows = old.content.chunks(width);
        for (y, row) in (0..).zip(new.content.chunks(width)) {
            self.change_row(y, old_rows.next().unwrap_or_default(), row);
        }
        self.plain();
    }

    /// A row as it is to look, where another stands. A row that is not there yet is blank.
    pub(crate) fn change_row(&mut self, y: u16, old: &[Cell], new: &[Cell]) {
        let end = content_width(new);
        let mut was_touched_until = 0;
        let mut x = 0;
        while let Some(cell) = new.get(x).filter(|_| x < end) {
            let old_cell = old.get(x).unwrap_or(&Cell::EMPTY);
            let width = usize::from(cell_width(cell));
            let is_changed = (x..x + width).any(|x| old.get(x).unwrap_or(&Cell::EMPTY) != get(new, x));
            if is_changed {
                // Half of a wide character can't stay: what it covered is written anew.
                was_touched_until = was_touched_until.max(x + usize::from(cell_width(old_cell)));
            }
            if is_changed || x < was_touched_until {
                self.put(x, y, cell, new.len());
            }
            x += width;
        }
        if content_width(old) > end {
            self.go(column(end), y);
            self.plain();
            self.raw("\x1b[K");
        }
    }

    fn put(&mut self, x: usize, y: u16, cell: &Cell, row_width: usize) {
        self.go(column(x), y);
        self.set_style(CellStyle::of(cell));
        let width = cell_width(cell);
        let is_cut = x + usize::from(width) > row_width;
        let symbol = if is_cut { " ".into() } else { sanitize_text(cell.symbol()) };
        self.raw(&symbol);
        let next = column(x) + if is_cut { 1 } else { width };
        // At the edge, and after clusters, terminals differ.
        let is_certain = symbol.chars().count() == 1 && usize::from(next) < row_width;
        self.column = Some(next).filter(|_| is_certain);
    }

    fn plain(&mut self) {
        self.set_style(CellStyle::default());
    }

    fn set_style(&mut self, look: CellStyle) {
        if self.look == look {
            return;
        }
        self.look = look;
        self.raw("\x1b[0");
        for (modifier, code) in MODIFIERS {
            if look.modifier.contains(modifier) {
                let _ = write!(self.bytes, ";{code}");
            }
        }
        self.colour(look.fg, 30);
        self.colour(look.bg, 40);
        self.colour(look.underline, 50);
        self.raw("m");
    }

    /// `base` is 30 for the foreground, 40 for the background, 50 for the underline.
    fn colour(&mut self, colour: Color, base: u8) {
        let _ = match (colour, named(colour)) {
            (Color::Reset, _) => Ok(()),
            (Color::Rgb(r, g, b), _) => write!(self.bytes, ";{};2;{r};{g};{b}", base + 8),
            // There are no short names for the colours of underlines.
            (Color::Indexed(n), _) | (_, Some(n)) if base == 50 || matches!(colour, Color::Indexed(_)) => {
                write!(self.bytes, ";{};5;{n}", base + 8)
            }
            (_, Some(n @ 0..8)) => write!(self.bytes, ";{}", base + n),
            (_, Some(n)) => write!(self.bytes, ";{}", base + 52 + n),
            (_, None) => Ok(()),
        };
    }

    fn sequence(&mut self, number: u16, end: char) {
        let _ = if number == 1 && end != 'G' {
            write!(self.bytes, "\x1b[{end}")
        } else {
            write!(self.bytes, "\x1b[{number}{end}")
        };
    }
}

const MODIFIERS: [(Modifier, u8); 9] = [
    (Modifier::BOLD, 1),
    (Modifier::DIM, 2),
    (Modifier::ITALIC, 3),
    (Modifier::UNDERLINED, 4),
    (Modifier::SLOW_BLINK, 5),
    (Modifier::RAPID_BLINK, 6),
    (Modifier::REVERSED, 7),
    (Modifier::HIDDEN, 8),
    (Modifier::CROSSED_OUT, 9),
];

/// The number of one of the sixteen colours.
fn named(colour: Color) -> Option<u8> {
    const NAMES: [Color; 16] = [
        Color::Black,
        Color::Red,
        Color::Green,
        Color::Yellow,
        Color::Blue,
        Color::Magenta,
        Color::Cyan,
        Color::Gray,
        Color::DarkGray,
        Color::LightRed,
        Color::LightGreen,
        Color::LightYellow,
        Color::LightBlue,
        Color::LightMagenta,
        Color::LightCyan,
        Color::White,
    ];
    (0..).zip(NAMES).find(|(_, name)| *name == colour).map(|(number, _)| number)
}

fn get(row: &[Cell], x: usize) -> &Cell {
    row.get(x).unwrap_or(&Cell::EMPTY)
}

fn column(x: usize) -> u16 {
    u16::try_from(x).unwrap_or(u16::MAX)
}

/// A control character is shown in one column, see [`harmless`].
pub(crate) fn cell_width(cell: &Cell) -> u16 {
    column(sanitize_text(cell.symbol()).width()).max(1)
}

/// How much of a row is more than blank.
pub(crate) fn content_width(row: &[Cell]) -> usize {
    let last = row.iter().rposition(|cell| *cell != Cell::EMPTY);
    last.map_or(0, |x| (x + usize::from(cell_width(get(row, x)))).min(row.len()))
}

/// Where the rows begin that a row becomes in a window of another width, if its terminal wraps it anew.
pub(crate) fn starts_when_wrapped(row: &[Cell], width: u16) -> Vec<usize> {
    let width = usize::from(width.max(1));
    let mut starts = vec![0];
    let (mut used, mut x) = (0, 0);
    let end = content_width(row);
    while x < end {
        let cell = usize::from(cell_width(get(row, x)));
        if used + cell > width {
            starts.push(x);
            used = 0;
        }
        used += cell;
        x += cell;
    }
    starts
}
