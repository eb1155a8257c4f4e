//! What is written to a command while it runs. It waits here until the command takes it.

use std::collections::VecDeque;
use std::io;

use tokio::net::unix::pipe;

use crate::error::InputError;

/// So much waits at most.
const ROOM: usize = 1 << 20;
/// Ctrl-D, which a terminal takes for the end of the input.
const END: u8 = 4;

#[derive(Debug)]
pub(crate) enum Way {
    Nowhere,
    Pipe(pipe::Sender),
    Terminal(pipe::Sender),
}

#[derive(Debug)]
pub(crate) struct Typing {
    way: Way,
    waiting: VecDeque<u8>,
    is_ending: bool,
    /// Whether what was written so far ends a line: only there does Ctrl-D mean the end.
    at_line_start: bool,
}

impl Typing {
    pub(crate) fn new(way: Way) -> Typing {
        Typing { way, waiting: VecDeque::new(), is_ending: false, at_line_start: true }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), InputError> {
        if self.is_ending || matches!(self.way, Way::Nowhere) {
            return Err(InputError::Closed);
        }
        if self.waiting.len() + bytes.len() > ROOM {
            return Err(InputError::Full);
        }
        self.waiting.extend(bytes);
        if let Some(last) = bytes.last() {
            self.at_line_start = matches!(last, b'\n' | b'\r' | &END);
        }
        Ok(())
    }

    /// Says that this was all. On a terminal, more may be written after it.
    pub(crate) fn end(&mut self) {
        match self.way {
            Way::Terminal(_) if self.at_line_start => self.waiting.push_back(END),
            // The first one only sends off the unfinished line.
            Way::Terminal(_) => self.waiting.extend([END, END]),
            Way::Pipe(_) | Way::Nowhere => self.is_ending = true,
        }
        self.at_line_start = true;
    }

    pub(crate) fn close(&mut self) {
        self.way = Way::Nowhere;
        self.waiting.clear();
    }

    pub(crate) fn has_work(&self) -> bool {
        !matches!(self.way, Way::Nowhere) && (self.is_ending || !self.waiting.is_empty())
    }

    /// Hands over some of what waits. May be cancelled: then nothing was handed over.
    pub(crate) async fn go_on(&mut self) {
        let (piece, _) = self.waiting.as_slices();
        if piece.is_empty() {
            return self.close();
        }
        let written = match &self.way {
            Way::Nowhere => return,
            Way::Pipe(way) | Way::Terminal(way) => write(way, piece).await,
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
