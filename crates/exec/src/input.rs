//! What is written to a command while it runs. It waits here until the command takes it.

use std::collections::VecDeque;
use std::io;

use tokio::net::unix::pipe;

use crate::error::CommandInputError;

/// So much waits at most.
const MAX_PENDING_INPUT_BYTES: usize = 1 << 20;
/// Ctrl-D, which a terminal takes for the end of the input.
const CTRL_D: u8 = 4;

#[derive(Debug)]
pub(crate) enum InputTarget {
    Closed,
    Pipe(pipe::Sender),
    Terminal(pipe::Sender),
}

#[derive(Debug)]
pub(crate) struct InputWriter {
    way: InputTarget,
    waiting: VecDeque<u8>,
    is_ending: bool,
    /// Whether what was written so far ends a line: only there does Ctrl-D mean the end.
    at_line_start: bool,
}

impl InputWriter {
    pub(crate) fn new(way: InputTarget) -> InputWriter {
        InputWriter { way, waiting: VecDeque::new(), is_ending: false, at_line_start: true }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), CommandInputError> {
        if self.is_ending || matches!(self.way, InputTarget::Closed) {
            return Err(CommandInputError::Closed);
        }
        if self.waiting.len() + bytes.len() > MAX_PENDING_INPUT_BYTES {
            return Err(CommandInputError::Full);
        }
        self.waiting.extend(bytes);
        if let Some(last) = bytes.last() {
            self.at_line_start = matches!(last, b'\n' | b'\r' | &CTRL_D);
        }
        Ok(())
    }

    /// Says that this was all. On a terminal, more may be written after it.
    pub(crate) fn end(&mut self) {
        match self.way {
            InputTarget::Terminal(_) if self.at_line_start => self.waiting.push_back(CTRL_D),
            // The first one only sends off the unfinished line.
            InputTarget::Terminal(_) => self.waiting.extend([CTRL_D, CTRL_D]),
            InputTarget::Pipe(_) | InputTarget::Closed => self.is_ending = true,
        }
        self.at_line_start = true;
    }

    pub(crate) fn close(&mut self) {
        self.way = InputTarget::Closed;
        self.waiting.clear();
    }

    pub(crate) fn has_work(&self) -> bool {
        !matches!(self.way, InputTarget::Closed) && (self.is_ending || !self.waiting.is_empty())
    }

    /// Hands over some of what waits. May be cancelled: then nothing was handed over.
    pub(crate) async fn go_on(&mut self) {
        let (piece, _) = self.waiting.as_slices();
        if piece.is_empty() {
            return self.close();
        }
        let written = match &self.way {
            InputTarget::Closed => return,
            InputTarget::Pipe(way) | InputTarget::Terminal(way) => write(way, piece).await,
        };
        match written {
            Ok(count) => drop(self.waiting.drain(..count.min(self.waiting.len()))),
            // Nobody can read it any more.
            Err(_) => self.close(),
        }
    }
}

async fn write(way: &pipe::Sender, piece: &[u8]) -> io::Result<usize> {
    loop {
        way.writable().await?;
        match way.try_write(piece) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return done,
        }
    }
}
