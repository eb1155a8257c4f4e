//! The standard output: coloured on a terminal, plain elsewhere.

use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use rustix::termios;

pub(crate) const HEADING: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();

const STDOUT_BUFFER_BYTES: usize = 1 << 16;

pub(crate) struct ConsoleOutput {
    out: AutoStream<io::StdoutLock<'static>>,
    buffer: Vec<u8>,
}

impl ConsoleOutput {
    pub(crate) fn new(color: ColorChoice) -> ConsoleOutput {
        color.write_global();
        ConsoleOutput { out: AutoStream::auto(io::stdout().lock()), buffer: Vec::new() }
    }

    /// How many columns a person sees; `None` if the output goes elsewhere and may be of any width.
    pub(crate) fn width(&self) -> Option<usize> {
        let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
        Some(usize::from(width.0))
    }

    /// Writes out what is held back.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.flush()
    }
}

impl Write for ConsoleOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() > STDOUT_BUFFER_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        self.out.flush()
    }
}

/// A line on the standard error. If even that fails there is nobody left to tell.
pub(crate) fn print_to_stderr(line: &str) {
    let _ = writeln!(AutoStream::auto(io::stderr().lock()), "{line}");
}

/// Tells how far a long work is, on one line that is written over, where a person looks.
pub(crate) struct ProgressLine {
    shown: bool,
}

impl ProgressLine {
    pub(crate) fn new() -> ProgressLine {
        ProgressLine { shown: false }
    }

    pub(crate) fn tell(&mut self, text: &str) {
        if io::stderr().is_terminal() {
            self.shown = true;
            let _ = write!(io::stderr().lock(), "\r\x1b[K{text}");
        }
    }
}

impl ProgressLine {
    /// Takes the line away, so that something else can be told.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Asks a person for something that must not be seen.
pub(crate) fn ask_secret(question: &str) -> io::Result<String> {
    let seen = termios::tcgetattr(io::stdin())?;
    let mut unseen = seen.clone();
    unseen.local_modes.remove(termios::LocalModes::ECHO);
    // Whoever suspended us here would see what they type afterwards.
    unseen.special_codes[termios::SpecialCodeIndex::VSUSP] = 0;
    termios::tcsetattr(io::stdin(), termios::OptionalActions::Flush, &unseen)?;
    let _ = write!(io::stderr().lock(), "{question}");
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    termios::tcsetattr(io::stdin(), termios::OptionalActions::Flush, &seen)?;
    let _ = writeln!(io::stderr().lock());
    read.map(|_| answer)
}

/// Asks a person for a line; nothing if they have none.
pub(crate) fn ask_once(question: &str) -> String {
    let _ = write!(io::stderr().lock(), "{question}");
    let mut answer = String::new();
    let _ = io::stdin().read_line(&mut answer);
    answer
}

/// Asks a person; `None` if there is none.
pub(crate) fn ask(question: &str) -> Option<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return None;
    }
    let mut answer = String::new();
    let _ = write!(io::stderr().lock(), "{question} [y/N] ");
    let read = io::stdin().read_line(&mut answer).ok()?;
    if read == 0 {
        let _ = writeln!(io::stderr().lock());
    }
    Some(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
