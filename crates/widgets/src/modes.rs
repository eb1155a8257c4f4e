//! The states of a terminal that we change, and how each is put back.

/// Whether the terminal tells keys apart that look the same in the old encoding (Shift-Enter, Ctrl-I, a lone Esc).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keys {
    #[default]
    Plain,
    /// The protocol of kitty. Terminals that don't know it ignore the request.
    Enhanced,
}

/// Puts back all that a screen changes, whatever it was doing. One constant without state, for a panic hook or a signal
/// handler. What is printed next begins on a line of its own.
///
/// A string that was begun is ended first, then the frame. The place of the cursor is saved before the full screen is
/// left, because leaving it moves the cursor there, whether or not there was one. Keys are reset on the screen that is
/// shown, and popped on the main one.
pub const RESTORE: &[u8] = concat!(
    "\x1b\\\x1b[?2026l\x1b[0m\x1b[=0u\x1b7\x1b[?1049l\x1b[<u",
    "\x1b[?2004l\x1b[?1004l\x1b[?7h\x1b[0 q\x1b[?25h\r\n\x1b[J"
)
.as_bytes();

/// Pastes are marked, and it is told whether somebody looks.
pub(crate) const ENTER: &str = "\x1b[?2004h\x1b[?1004h";
pub(crate) const LEAVE: &str = "\x1b[0m\x1b[?2004l\x1b[?1004l\x1b[?7h\x1b[0 q\x1b[?25h";

pub(crate) const PUSH_KEYS: &str = "\x1b[>1u";
pub(crate) const POP_KEYS: &str = "\x1b[<u";

/// The full screen keeps keys of its own: they are set there and not pushed, so that [`RESTORE`] need not know where it is.
pub(crate) const SET_KEYS: &str = "\x1b[=1u";
pub(crate) const RESET_KEYS: &str = "\x1b[=0u";

pub(crate) const OPEN_FULL: &str = "\x1b[?1049h";
pub(crate) const CLOSE_FULL: &str = "\x1b[?1049l";

/// Erases backwards from the last corner: what is erased from the first one on, some terminals keep in their scrollback.
pub(crate) const CLEAR_FULL: &str = "\x1b[9999;9999H\x1b[1J\x1b[H";

/// All of a frame appears at once; no row wraps even if the window has become smaller meanwhile; no cursor runs about.
pub(crate) const BEGIN_FRAME: &str = "\x1b[?2026h\x1b[?7l\x1b[?25l";

/// Finished lines may wrap in that case: what is cut would be lost.
pub(crate) const WRAP: &str = "\x1b[?7h";
pub(crate) const DONT_WRAP: &str = "\x1b[?7l";
pub(crate) const END_FRAME: &str = "\x1b[?7h\x1b[?2026l";
