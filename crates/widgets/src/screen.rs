//! The terminal. Lines that are finished go into its own scrollback, once; below them is a live area, of which only what
//! changes is written.

use std::io;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};
use ratatui::text::Line;

use crate::draw::put;
use crate::frame::Frame;
use crate::lost::{Lost, Top};
use crate::modes::{
    BEGIN_FRAME, CLEAR_FULL, CLOSE_FULL, DONT_WRAP, END_FRAME, ENTER, Keys, LEAVE, OPEN_FULL, POP_KEYS,
    PUSH_KEYS, RESET_KEYS, SET_KEYS, WRAP,
};
use crate::width::harmless;
use crate::wrap::wrap;

/// Larger windows are used in part: a terminal that lies can't make us ask for gigabytes.
const MOST: Size = Size::new(1_000, 500);

/// So many finished lines wait for the full screen to be left; then they are written behind it.
const MOST_WAITING: usize = 10_000;

/// What a terminal does with long rows when its window becomes narrower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Narrowing {
    /// It wraps them anew, as nearly all do.
    #[default]
    Wraps,
    /// It cuts them, as xterm, urxvt, st and screen do.
    Cuts,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub keys: Keys,
    pub narrowing: Narrowing,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// As the user has set it.
    #[default]
    Usual,
    Block,
    Underline,
    Bar,
}

/// Where the cursor stands in what was drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    pub position: Position,
    pub shape: Shape,
}

impl Cursor {
    pub fn at(position: Position) -> Cursor {
        Cursor { position, shape: Shape::default() }
    }
}

/// What the terminal shows of us: the live area, or the full screen.
#[derive(Debug, Default)]
struct Shown {
    window: Size,
    buffer: Buffer,
    /// Where the cursor was left, seen from the first row.
    at: Position,
    cursor: Option<Cursor>,
    lost: Lost,
    /// The window changed while it was drawn: nobody knows at which width.
    is_torn: bool,
    /// The window was resized since it was drawn, perhaps there and back.
    was_resized: bool,
}

/// A terminal: `W` takes the bytes, `S` says how large the window is.
#[derive(Debug)]
pub struct Screen<W, S> {
    out: W,
    size: S,
    options: Options,
    waiting: Vec<Line<'static>>,
    live: Shown,
    full: Option<Shown>,
}

impl<W: io::Write, S: FnMut() -> Size> Screen<W, S> {
    /// Nothing is written yet. The cursor should stand at the beginning of an empty line.
    pub fn new(out: W, size: S, options: Options) -> Screen<W, S> {
        Screen { out, size, options, waiting: Vec::new(), live: Shown::default(), full: None }
    }

    /// Asks for marked pastes, focus, and keys. Raw mode is the caller's to set.
    pub fn enter(&mut self) -> io::Result<()> {
        self.live = Shown::default();
        let keys = if self.options.keys == Keys::Enhanced { PUSH_KEYS } else { "" };
        self.send(&[ENTER.as_bytes(), keys.as_bytes(), b"\r"])
    }

    /// Prints what waits, takes the live area away, and puts back what [`Screen::enter`] changed.
    pub fn leave(&mut self) -> io::Result<()> {
        self.close_full()?;
        self.draw(0, |_| None)?;
        let keys = if self.options.keys == Keys::Enhanced { POP_KEYS } else { "" };
        self.send(&[keys.as_bytes(), LEAVE.as_bytes()])
    }

    /// How large the window is now: at least 1×1.
    pub fn size(&mut self) -> Size {
        let Size { width, height } = (self.size)();
        Size::new(width.clamp(1, MOST.width), height.clamp(1, MOST.height))
    }

    /// To be called when the terminal says that its window was resized, though it may have the old size again: rows at the
    /// bottom may be gone, and the others elsewhere.
    pub fn resized(&mut self) {
        self.live.was_resized = true;
        if let Some(full) = &mut self.full {
            full.was_resized = true;
        }
    }

    /// Finished lines. They appear above the live area with the next frame, wrapped to the window, and are never touched
    /// again.
    pub fn print(&mut self, lines: Vec<Line<'static>>) {
        self.waiting.extend(lines);
    }

    /// One frame. The live area gets the wanted height, or that of the window if it is smaller; a full screen is as
    /// large as the window.
    pub fn draw(&mut self, height: u16, fill: impl FnOnce(&mut Buffer) -> Option<Cursor>) -> io::Result<()> {
        let window = self.size();
        let height = if self.full.is_some() { window.height } else { height.min(window.height) };
        let mut buffer = blank(window, height);
        let cursor = fill(&mut buffer).filter(|cursor| buffer.area.contains(cursor.position));
        match &mut self.full {
            None => {
                let lines = std::mem::take(&mut self.waiting);
                let frame = self.live.below(&lines, window, buffer, self.options.narrowing);
                self.end_frame(frame, cursor)?;
                self.live.is_torn = self.size() != window;
                Ok(())
            }
            Some(_) if self.waiting.len() > MOST_WAITING => {
                self.print_behind(window)?;
                self.end_full(window, buffer, cursor)
            }
            Some(_) => self.end_full(window, buffer, cursor),
        }
    }

    /// Until [`Screen::close_full`], frames fill the window, and what is printed waits.
    pub fn open_full(&mut self) -> io::Result<()> {
        if self.full.is_some() {
            return Ok(());
        }
        self.full = Some(Shown::default());
        let keys = if self.options.keys == Keys::Enhanced { SET_KEYS } else { "" };
        self.send(&[OPEN_FULL.as_bytes(), keys.as_bytes()])
    }

    /// Back to the live area, which stands as it was left.
    pub fn close_full(&mut self) -> io::Result<()> {
        if self.full.take().is_none() {
            return Ok(());
        }
        self.live.cursor = None;
        let keys = if self.options.keys == Keys::Enhanced { RESET_KEYS } else { "" };
        self.send(&[keys.as_bytes(), CLOSE_FULL.as_bytes(), b"\x1b[0 q"])
    }

    /// A notification of the desktop, where the terminal knows how; a bell otherwise.
    pub fn notify(&mut self, text: &str) -> io::Result<()> {
        self.send(&[b"\x1b]9;", harmless(text).as_bytes(), b"\x07\x07"])
    }

    /// Puts something into the clipboard, where the terminal allows it. It must be in base64; nothing else goes out.
    pub fn copy(&mut self, base64: &str) -> io::Result<()> {
        let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
        let clean: Vec<u8> = base64.bytes().filter(is_base64).collect();
        self.send(&[b"\x1b]52;c;", &clean, b"\x07"])
    }

    fn end_full(&mut self, window: Size, buffer: Buffer, cursor: Option<Cursor>) -> io::Result<()> {
        let frame = self.full.get_or_insert_default().whole(window, buffer);
        self.end_frame(frame, cursor)
    }

    /// What waits is written to the main screen, and the full one is shown again.
    fn print_behind(&mut self, window: Size) -> io::Result<()> {
        self.close_full()?;
        let height = self.live.buffer.area.height.min(window.height);
        let is_same = self.live.window == window && !self.live.was_resized;
        let buffer = if is_same { self.live.buffer.clone() } else { blank(window, height) };
        let lines = std::mem::take(&mut self.waiting);
        let frame = self.live.below(&lines, window, buffer, self.options.narrowing);
        self.end_frame(frame, None)?;
        self.open_full()
    }

    /// Puts the cursor where it belongs, and sends the frame if anything changes by it.
    fn end_frame(&mut self, mut frame: Frame, cursor: Option<Cursor>) -> io::Result<()> {
        let shown = self.full.as_mut().unwrap_or(&mut self.live);
        if frame.is_empty() && shown.cursor == cursor {
            return Ok(());
        }
        let at = cursor.map_or_else(|| shown.resting_place(), |cursor| cursor.position);
        frame.go(at.x, at.y);
        if let Some(cursor) = cursor {
            if shown.cursor.map(|old| old.shape) != Some(cursor.shape) {
                frame.raw(shape(cursor.shape));
            }
            frame.raw("\x1b[?25h");
        }
        (shown.at, shown.cursor) = (at, cursor);
        self.send(&[BEGIN_FRAME.as_bytes(), &frame.into_bytes(), END_FRAME.as_bytes()])
    }

    fn send(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        self.out.write_all(&parts.concat())?;
        self.out.flush()
    }
}

impl Shown {
    /// The last row, so that what others print comes below.
    fn resting_place(&self) -> Position {
        Position::new(0, self.buffer.area.height.saturating_sub(1))
    }

    /// A frame in which lines are printed, and the live area follows them.
    fn below(&mut self, lines: &[Line<'_>], window: Size, buffer: Buffer, narrowing: Narrowing) -> Frame {
        let is_resized = std::mem::take(&mut self.was_resized) || self.window != window;
        let top =
            if is_resized { self.top_after_resize(window, narrowing) } else { Top::RowsAbove(self.at.y) };
        let mut frame = match top {
            Top::RowsAbove(rows) => Frame::at(Position { y: rows, ..self.at }),
            Top::NextRow => Frame::after_row(),
        };
        if is_resized || !lines.is_empty() {
            frame.go(0, 0);
            frame.erase_below(window.height);
            print(&mut frame, lines, window.width);
            frame.begin_here();
            self.buffer = Buffer::empty(Rect::ZERO);
        }
        if !lines.is_empty() {
            self.lost = Lost::default();
        }
        self.fit(&mut frame, buffer.area.height, window);
        frame.change(&self.buffer, &buffer);
        (self.window, self.buffer) = (window, buffer);
        frame
    }

    /// A frame of a full screen.
    fn whole(&mut self, window: Size, buffer: Buffer) -> Frame {
        let mut frame = Frame::at(self.at);
        if std::mem::take(&mut self.was_resized) || self.window != window {
            frame = Frame::at(Position::ORIGIN);
            frame.raw(CLEAR_FULL);
            self.buffer = Buffer::empty(Rect::ZERO);
        }
        frame.change(&self.buffer, &buffer);
        (self.window, self.buffer) = (window, buffer);
        frame
    }

    /// Makes room for a higher live area, or takes away what a lower one does not cover.
    fn fit(&mut self, frame: &mut Frame, height: u16, window: Size) {
        let old = self.buffer.area.height;
        if height < old {
            frame.go(0, height);
            frame.erase_below(window.height);
            // Nothing stays, and the cursor must not stand below the first row.
            frame.go(0, height.saturating_sub(1));
        }
        // The row in which the cursor stands is there without an area too.
        if height > old.max(1) {
            frame.go(0, old.max(1) - 1);
            (old.max(1)..height).for_each(|_| frame.newline());
        }
    }

    /// Where the live area begins now; not above the window, for what left it can't be reached until it comes back.
    fn top_after_resize(&mut self, window: Size, narrowing: Narrowing) -> Top {
        let most = window.height - 1;
        if self.is_torn {
            // In doubt a ghost stays, rather than that a finished line goes.
            self.lost = Lost::default();
            return Top::RowsAbove(self.at.y.min(most));
        }
        let width = if narrowing == Narrowing::Wraps { window.width } else { u16::MAX };
        self.lost.resize(&self.buffer, self.at, width, most)
    }
}

fn blank(window: Size, height: u16) -> Buffer {
    Buffer::empty(Rect::new(0, 0, window.width, height))
}

fn print(frame: &mut Frame, lines: &[Line<'_>], width: u16) {
    if lines.is_empty() {
        return;
    }
    frame.raw(WRAP);
    for row in lines.iter().flat_map(|line| wrap(line, width.into())) {
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, 1));
        put(&mut buffer, Position::ORIGIN, width, &row);
        frame.begin_here();
        frame.change_row(0, &[], &buffer.content);
        frame.newline();
    }
    frame.raw(DONT_WRAP);
}

fn shape(shape: Shape) -> &'static str {
    match shape {
        Shape::Usual => "\x1b[0 q",
        Shape::Block => "\x1b[2 q",
        Shape::Underline => "\x1b[4 q",
        Shape::Bar => "\x1b[6 q",
    }
}
