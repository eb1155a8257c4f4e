//! The terminal. Lines that are finished go into its own scrollback, once; below them is a live area, of which only what
//! changes is written.

use std::io;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};
use ratatui::text::Line;

use crate::draw::put_line;
use crate::frame::TerminalFrame;
use crate::modes::{
    BEGIN_FRAME, CLEAR_ALTERNATE_SCREEN, DISABLE_LINE_WRAP, ENABLE_LINE_WRAP, END_FRAME,
    ENTER_ALTERNATE_SCREEN, ENTER_SCREEN, KeyboardProtocol, LEAVE_ALTERNATE_SCREEN, LEAVE_SCREEN,
    POP_KEY_PROTOCOL, PUSH_KEY_PROTOCOL, RESET_KEY_PROTOCOL, SET_KEY_PROTOCOL,
};
use crate::scrolled_off::{LiveAreaTop, ScrolledOffRows};
use crate::width::sanitize_text;
use crate::wrap::wrap;

/// Larger windows are used in part: a terminal that lies can't make us ask for gigabytes.
const MAX_SCREEN_SIZE: Size = Size::new(1_000, 500);

/// So many finished lines wait for the full screen to be left; then they are written behind it.
const MAX_WAITING_LINES: usize = 10_000;

/// What a terminal does with long rows when its window becomes narrower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReflowMode {
    /// It wraps them anew, as nearly all do.
    #[default]
    Wraps,
    /// It cuts them, as xterm, urxvt, st and screen do.
    Cuts,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScreenOptions {
    pub keys: KeyboardProtocol,
    pub narrowing: ReflowMode,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CursorShape {
    /// As the user has set it.
    #[default]
    UserDefault,
    Block,
    Underline,
    Bar,
}

/// Where the cursor stands in what was drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScreenCursor {
    pub position: Position,
    pub shape: CursorShape,
}

impl ScreenCursor {
    pub fn at(position: Position) -> ScreenCursor {
        ScreenCursor { position, shape: CursorShape::default() }
    }
}

/// What the terminal shows of us: the live area, or the full screen.
#[derive(Debug, Default)]
struct ScreenArea {
    window: Size,
    buffer: Buffer,
    /// Where the cursor was left, seen from the first row.
    at: Position,
    cursor: Option<ScreenCursor>,
    lost: ScrolledOffRows,
    /// The window changed while it was drawn: nobody knows at which width.
    is_torn: bool,
    /// The window was resized since it was drawn, perhaps there and back.
    was_resized: bool,
}

/// A terminal: `W` takes the bytes, `S` says how large the window is.
#[derive(Debug)]
pub struct TerminalScreen<W, S> {
    out: W,
    size: S,
    options: ScreenOptions,
    waiting: Vec<Line<'static>>,
    live: ScreenArea,
    full: Option<ScreenArea>,
}

impl<W: io::Write, S: FnMut() -> Size> TerminalScreen<W, S> {
    /// Nothing is written yet. The cursor should stand at the beginning of an empty line.
    pub fn new(out: W, size: S, options: ScreenOptions) -> TerminalScreen<W, S> {
        TerminalScreen { out, size, options, waiting: Vec::new(), live: ScreenArea::default(), full: None }
    }

    /// Asks for marked pastes, focus, and keys. Raw mode is the caller's to set.
    pub fn enter(&mut self) -> io::Result<()> {
        self.live = ScreenArea::default();
        let keys = if self.options.keys == KeyboardProtocol::Enhanced { PUSH_KEY_PROTOCOL } else { "" };
        self.send(&[ENTER_SCREEN.as_bytes(), keys.as_bytes(), b"\r"])
    }

    /// Prints what waits, takes the live area away, and puts back what [`TerminalScreen::enter`] changed.
    pub fn leave(&mut self) -> io::Result<()> {
        self.close_full()?;
        self.draw(0, |_| None)?;
        let keys = if self.options.keys == KeyboardProtocol::Enhanced { POP_KEY_PROTOCOL } else { "" };
        self.send(&[keys.as_bytes(), LEAVE_SCREEN.as_bytes()])
    }

    /// How large the window is now: at least 1×1.
    pub fn size(&mut self) -> Size {
        let Size { width, height } = (self.size)();
        Size::new(width.clamp(1, MAX_SCREEN_SIZE.width), height.clamp(1, MAX_SCREEN_SIZE.height))
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
    pub fn draw(
        &mut self,
        height: u16,
        fill: impl FnOnce(&mut Buffer) -> Option<ScreenCursor>,
    ) -> io::Result<()> {
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
            Some(_) if self.waiting.len() > MAX_WAITING_LINES => {
                self.print_behind(window)?;
                self.end_full(window, buffer, cursor)
            }
            Some(_) => self.end_full(window, buffer, cursor),
        }
    }

    /// Until [`TerminalScreen::close_full`], frames fill the window, and what is printed waits.
    pub fn open_full(&mut self) -> io::Result<()> {
        if self.full.is_some() {
            return Ok(());
        }
        self.full = Some(ScreenArea::default());
        let keys = if self.options.keys == KeyboardProtocol::Enhanced { SET_KEY_PROTOCOL } else { "" };
        self.send(&[ENTER_ALTERNATE_SCREEN.as_bytes(), keys.as_bytes()])
    }

    /// Back to the live area, which stands as it was left.
    pub fn close_full(&mut self) -> io::Result<()> {
        if self.full.take().is_none() {
            return Ok(());
        }
        self.live.cursor = None;
        let keys = if self.options.keys == KeyboardProtocol::Enhanced { RESET_KEY_PROTOCOL } else { "" };
        self.send(&[keys.as_bytes(), LEAVE_ALTERNATE_SCREEN.as_bytes(), b"\x1b[0 q"])
    }

    /// A notification of the desktop, where the terminal knows how; a bell otherwise.
    pub fn notify(&mut self, text: &str) -> io::Result<()> {
        self.send(&[b"\x1b]9;", sanitize_text(text).as_bytes(), b"\x07\x07"])
    }

    /// Puts something into the clipboard, where the terminal allows it. It must be in base64; nothing else goes out.
    pub fn copy(&mut self, base64: &str) -> io::Result<()> {
        let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
        let clean: Vec<u8> = base64.bytes().filter(is_base64).collect();
        self.send(&[b"\x1b]52;c;", &clean, b"\x07"])
    }

    fn end_full(&mut self, window: Size, buffer: Buffer, cursor: Option<ScreenCursor>) -> io::Result<()> {
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
    fn end_frame(&mut self, mut frame: TerminalFrame, cursor: Option<ScreenCursor>) -> io::Result<()> {
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

impl ScreenArea {
    /// The last row, so that what others print comes below.
    fn resting_place(&self) -> Position {
        Position::new(0, self.buffer.area.height.saturating_sub(1))
    }

    /// A frame in which lines are printed, and the live area follows them.
    fn below(
        &mut self,
        lines: &[Line<'_>],
        window: Size,
        buffer: Buffer,
        narrowing: ReflowMode,
    ) -> TerminalFrame {
        let is_resized = std::mem::take(&mut self.was_resized) || self.window != window;
        let top = if is_resized {
            self.top_after_resize(window, narrowing)
        } else {
            LiveAreaTop::RowsAbove(self.at.y)
        };
        let mut frame = match top {
            LiveAreaTop::RowsAbove(rows) => TerminalFrame::at(Position { y: rows, ..self.at }),
            LiveAreaTop::NextRow => TerminalFrame::after_row(),
        };
        if is_resized || !lines.is_empty() {
            frame.go(0, 0);
            frame.erase_below(window.height);
            print(&mut frame, lines, window.width);
            frame.begin_here();
            self.buffer = Buffer::empty(Rect::ZERO);
        }
        if !lines.is_empty() {
            self.lost = ScrolledOffRows::default();
        }
        self.fit(&mut frame, buffer.area.height, window);
        frame.change(&self.buffer, &buffer);
        (self.window, self.buffer) = (window, buffer);
        frame
    }

    /// A frame of a full screen.
    fn whole(&mut self, window: Size, buffer: Buffer) -> TerminalFrame {
        let mut frame = TerminalFrame::at(self.at);
        if std::mem::take(&mut self.was_resized) || self.window != window {
            frame = TerminalFrame::at(Position::ORIGIN);
            frame.raw(CLEAR_ALTERNATE_SCREEN);
            self.buffer = Buffer::empty(Rect::ZERO);
        }
        frame.change(&self.buffer, &buffer);
        (self.window, self.buffer) = (window, buffer);
        frame
    }

    /// Makes room for a higher live area, or takes away what a lower one does not cover.
    fn fit(&mut self, frame: &mut TerminalFrame, height: u16, window: Size) {
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
    fn top_after_resize(&mut self, window: Size, narrowing: ReflowMode) -> LiveAreaTop {
        let most = window.height - 1;
        if self.is_torn {
            // In doubt a ghost stays, rather than that a finished line goes.
            self.lost = ScrolledOffRows::default();
            return LiveAreaTop::RowsAbove(self.at.y.min(most));
        }
        let width = if narrowing == ReflowMode::Wraps { window.width } else { u16::MAX };
        self.lost.resize(&self.buffer, self.at, width, most)
    }
}

fn blank(window: Size, height: u16) -> Buffer {
    Buffer::empty(Rect::new(0, 0, window.width, height))
}

fn print(frame: &mut TerminalFrame, lines: &[Line<'_>], width: u16) {
    if lines.is_empty() {
        return;
    }
    frame.raw(ENABLE_LINE_WRAP);
    for row in lines.iter().flat_map(|line| wrap(line, width.into())) {
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, 1));
        put_line(&mut buffer, Position::ORIGIN, width, &row);
        frame.begin_here();
        frame.change_row(0, &[], &buffer.content);
        frame.newline();
    }
    frame.raw(DISABLE_LINE_WRAP);
}

fn shape(shape: CursorShape) -> &'static str {
    match shape {
        CursorShape::UserDefault => "\x1b[0 q",
        CursorShape::Block => "\x1b[2 q",
        CursorShape::Underline => "\x1b[4 q",
        CursorShape::Bar => "\x1b[6 q",
    }
}
