//! Reading a log line by line, trusting nothing.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use helve_protocol::{Event, Seq, SessionId};

use crate::error::At;
use crate::line::{self, Header, Tip};
use crate::{Damage, Ending, Error, Flaw, MAX_EVENT_BYTES, Result};

/// A line holds one event, its envelope and its seal.
pub(crate) const MAX_LINE_BYTES: usize = MAX_EVENT_BYTES + 4096;

const BUFFERED: usize = 1 << 16;

/// A log that is being read: where it stands, and what it has proved so far.
pub(crate) struct LogReader {
    source: BufReader<File>,
    path: PathBuf,
    session: SessionId,
    line: Vec<u8>,
    pub(crate) header: Header,
    /// Where the next line begins.
    pub(crate) offset: u64,
    pub(crate) tip: Tip,
    pub(crate) last: Seq,
}

/// What came next in a log.
pub(crate) enum Next {
    Event(Event),
    End(Ending),
    /// The last line is whole but for its newline.
    Unfinished(Event),
}

impl LogReader {
    /// Begins to read a log, at its header.
    pub(crate) fn new(file: File, path: &Path, session: SessionId) -> Result<LogReader> {
        let reader = LogReader::of_any_version(file, path, session)?;
        match reader.header.version {
            line::VERSION => Ok(reader),
            found => Err(Error::ForeignVersion { session, found }),
        }
    }

    /// The header's form is the same in all versions; what follows is not.
    pub(crate) fn of_any_version(file: File, path: &Path, session: SessionId) -> Result<LogReader> {
        let mut reader = LogReader {
            source: BufReader::with_capacity(BUFFERED, file),
            path: path.to_owned(),
            session,
            line: Vec::new(),
            header: Header::new(session, None),
            offset: 0,
            tip: Tip::NONE,
            last: Seq::START,
        };
        reader.read_header()?;
        Ok(reader)
    }

    /// Goes on with a log from a place that was proved before.
    pub(crate) fn resume(mut self, offset: u64, tip: Tip, last: Seq) -> Result<LogReader> {
        self.source.seek(SeekFrom::Start(offset)).at(&self.path)?;
        (self.offset, self.tip, self.last) = (offset, tip, last);
        Ok(self)
    }

    fn read_header(&mut self) -> Result<()> {
        let damaged = |reader: &LogReader| Error::Damaged {
            session: reader.session,
            damage: reader.damage(Flaw::Header),
        };
        if self.read_line()? != Line::Whole {
            return Err(damaged(self));
        }
        let seal = line::unseal(&self.line, Tip::NONE);
        let Some((_, tip)) = seal.filter(|(claimed, real)| claimed == real) else {
            return Err(damaged(self));
        };
        let header: Header = serde_json::from_slice(&self.line).map_err(|_| damaged(self))?;
        if header.helve != "session" || header.session != self.session {
            return Err(damaged(self));
        }
        self.last = header.forked_from.map_or(Seq::START, |point| point.seq);
        self.header = header;
        self.accept_line(tip);
        Ok(())
    }

    /// The next event. After an ending there is nothing more.
    pub(crate) fn next(&mut self) -> Result<Next> {
        match self.read_line()? {
            Line::None => Ok(Next::End(Ending::Whole)),
            Line::TooLong => Ok(self.damaged(Flaw::Length)),
            Line::Whole => Ok(self.check_line().map_or_else(|flaw| self.damaged(flaw), Next::Event)),
            Line::NoNewline => Ok(self.check_last_line()),
        }
    }

    /// Tells a line that was never finished from one that was: if all but the last byte is whole, that byte was a newline
    /// once.
    fn check_last_line(&mut self) -> Next {
        let bytes = self.line.len() as u64;
        if let Ok(event) = self.check_line() {
            return Next::Unfinished(event);
        }
        self.line.pop();
        let was_finished = line::unseal(&self.line, self.tip).is_some_and(|(claimed, real)| claimed == real);
        if was_finished { self.damaged(Flaw::Form) } else { Next::End(Ending::Torn { bytes }) }
    }

    /// Checks the line just read against the chain, and takes it in.
    fn check_line(&mut self) -> Result<Event, Flaw> {
        let (claimed, real) = line::unseal(&self.line, self.tip).ok_or(Flaw::Form)?;
        if claimed != real {
            return Err(Flaw::Hash);
        }
        let event = line::read_event(&self.line).ok_or(Flaw::Event)?;
        if event.seq != self.last.next() {
            return Err(Flaw::Order);
        }
        if event.session != self.session {
            return Err(Flaw::Session);
        }
        self.last = event.seq;
        self.accept_line(real);
        Ok(event)
    }

    fn accept_line(&mut self, tip: Tip) {
        self.tip = tip;
        self.offset += self.line.len() as u64 + 1;
    }

    fn damaged(&self, flaw: Flaw) -> Next {
        Next::End(Ending::Damaged(self.damage(flaw)))
    }

    pub(crate) fn damage(&self, flaw: Flaw) -> Damage {
        Damage { path: self.path.clone(), offset: self.offset, after: self.last, flaw }
    }

    /// Reads up to the next newline, or to the limit of a line.
    fn read_line(&mut self) -> Result<Line> {
        self.line.clear();
        let limit = MAX_LINE_BYTES as u64 + 1;
        self.source.by_ref().take(limit).read_until(b'\n', &mut self.line).at(&self.path)?;
        Ok(match self.line.pop() {
            None => Line::None,
            Some(b'\n') => Line::Whole,
            Some(byte) => {
                self.line.push(byte);
                if self.line.len() > MAX_LINE_BYTES { Line::TooLong } else { Line::NoNewline }
            }
        })
    }
}

#[derive(PartialEq, Eq)]
enum Line {
    Whole,
    NoNewline,
    TooLong,
    None,
}
