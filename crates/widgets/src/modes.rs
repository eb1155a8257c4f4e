//! The states of a terminal that we change, and how each is put back.

/// Whether the terminal tells keys apart that look the same in the old encoding (Shift-Enter, Ctrl-I, a lone Esc).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyboardProtocol {
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
pub const RESTORE_TERMINAL: &[u8] = concat!(
    "\x1b\\\x1b[?2026l\x1b[0m\x1b[=0u\x1b7\x1b[?1049l\x1b[<u",
    "\x1b[?2004l\x1b[?1004l\x1b[?7h\x1b[0 q\x1b[?25h\r\n\x1b[J"
)
.as_bytes();

/// Pastes are marked, and it is told whether somebody looks.
pub(crate) const ENTER_SCREEN: &str = "\x1b[?2004h\x1b[?1004h";
pub(crate) const LEAVE_SCREEN: &str = "\x1b[0m\x1b[?2004l\x1b[?1004l\x1b[?7h\x1b[0 q\x1b[?25h";

pub(crate) const PUSH_KEY_PROTOCOL: &str = "\x1b[>1u";
pub(crate) const POP_KEY_PROTOCOL: &str = "\x1b[<u";

/// The full screen keeps keys of its own: they are set there and not pushed, so that [`RESTORE_TERMINAL`] need not know where it is.
pub(crate) const SET_KEY_PROTOCOL: &str = "\x1b[=1u";
pub(crate) const RESET_KEY_PROTOCOL: &str = "\x1b[=0u";

pub(crate) const ENTER_ALTERNATE_SCREEN: &str = "\x1b[?1049h";
pub(crate) const LEAVE_ALTERNATE_SCREEN: &str = "\x1b[?1049l";

/// Erases backwards from the last corner: what is erased from the first one on, some terminals keep in their scrollback.
pub(crate) const CLEAR_ALTERNATE_SCREEN: &str = "\x1b[9999;9999H\x1b[1J\x1b[H";

/// All of a frame appears at once; no row wraps even if the window has become smaller meanwhile; no cursor runs about.
pub(crate) const BEGIN_FRAME: &str = "\x1b[?2026h\x1b[?7l\x1b[?25l";

/// Finished lines may wrap in that case: what is cut would be lost.
pub(crate) const ENABLE_LINE_WRAP: &str = "\x1b[?7h";
pub(crate) const DISABLE_LINE_WRAP: &str = "\x1b[?7l";
pub(crate) const END_FRAME: &str = "\x1b[?7h\x1b[?2026l";
