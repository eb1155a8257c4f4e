//! Reading a log line by line, trusting nothing.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use helve_protocol::{Seq, SessionEvent, SessionId};

use crate::error::JournalIoExt;
use crate::log_line::{self, ChainHash, LogHeader};
use crate::{JournalError, JournalResult, LogDamage, LogFlaw, LogReadEnd, MAX_EVENT_BYTES};

/// A line holds one event, its envelope and its seal.
pub(crate) const MAX_LOG_LINE_BYTES: usize = MAX_EVENT_BYTES + 4096;

const READ_BUFFER_BYTES: usize = 1 << 16;

/// A log that is being read: where it stands, and what it has proved so far.
pub(crate) struct LogReader {
    source: BufReader<File>,
    path: PathBuf,
    session: SessionId,
    line: Vec<u8>,
    pub(crate) header: LogHeader,
    /// Where the next line begins.
    pub(crate) offset: u64,
    pub(crate) tip: ChainHash,
    pub(crate) last: Seq,
}

/// What came next in a log.
pub(crate) enum LogReaderItem {
    Event(SessionEvent),
    End(LogReadEnd),
    /// The last line is whole but for its newline.
    Unfinished(SessionEvent),
}

impl LogReader {
    /// Begins to read a log, at its header.
    pub(crate) fn new(file: File, path: &Path, session: SessionId) -> JournalResult<LogReader> {
        let reader = LogReader::of_any_version(file, path, session)?;
        match reader.header.version {
            log_line::LOG_VERSION => Ok(reader),
            found => Err(JournalError::ForeignVersion { session, found }),
        }
    }

    /// The header's form is the same in all versions; what follows is not.
    pub(crate) fn of_any_version(file: File, path: &Path, session: SessionId) -> JournalResult<LogReader> {
        let mut reader = LogReader {
            source: BufReader::with_capacity(READ_BUFFER_BYTES, file),
            path: path.to_owned(),
            session,
            line: Vec::new(),
            header: LogHeader::new(session, None),
            offset: 0,
            tip: ChainHash::NONE,
            last: Seq::START,
        };
        reader.read_header()?;
        Ok(reader)
    }

    /// Goes on with a log from a place that was proved before.
    pub(crate) fn resume(mut self, offset: u64, tip: ChainHash, last: Seq) -> JournalResult<LogReader> {
        self.source.seek(SeekFrom::Start(offset)).at(&self.path)?;
        (self.offset, self.tip, self.last) = (offset, tip, last);
        Ok(self)
    }

    fn read_header(&mut self) -> JournalResult<()> {
        let damaged = |reader: &LogReader| JournalError::Damaged {
            session: reader.session,
            damage: reader.damage(LogFlaw::Header),
        };
        if self.read_line()? != RawLogLine::Whole {
            return Err(damaged(self));
        }
        let seal = log_line::unseal(&self.line, ChainHash::NONE);
        let Some((_, tip)) = seal.filter(|(claimed, real)| claimed == real) else {
            return Err(damaged(self));
        };
        let header: LogHeader = serde_json::from_slice(&self.line).map_err(|_| damaged(self))?;
        if header.helve != "session" || header.session != self.session {
            return Err(damaged(self));
        }
        self.last = header.forked_from.map_or(Seq::START, |point| point.seq);
        self.header = header;
        self.accept_line(tip);
        Ok(())
    }

    /// The next event. After an ending there is nothing more.
    pub(crate) fn next(&mut self) -> JournalResult<LogReaderItem> {
        match self.read_line()? {
            RawLogLine::None => Ok(LogReaderItem::End(LogReadEnd::Whole)),
            RawLogLine::TooLong => Ok(self.damaged(LogFlaw::Length)),
            RawLogLine::Whole => {
                Ok(self.check_line().map_or_else(|flaw| self.damaged(flaw), LogReaderItem::Event))
            }
            RawLogLine::NoNewline => Ok(self.check_last_line()),
        }
    }

    /// Tells a line that was never finished from one that was: if all but the last byte is whole, that byte was a newline
    /// once.
    fn check_last_line(&mut self) -> LogReaderItem {
        let bytes = self.line.len() as u64;
        if let Ok(event) = self.check_line() {
            return LogReaderItem::Unfinished(event);
        }
        self.line.pop();
        let was_finished =
            log_line::unseal(&self.line, self.tip).is_some_and(|(claimed, real)| claimed == real);
        if was_finished {
            self.damaged(LogFlaw::Form)
        } else {
            LogReaderItem::End(LogReadEnd::Torn { bytes })
        }
    }

    /// Checks the line just read against the chain, and takes it in.
    fn check_line(&mut self) -> JournalResult<SessionEvent, LogFlaw> {
        let (claimed, real) = log_line::unseal(&self.line, self.tip).ok_or(LogFlaw::Form)?;
        if claimed != real {
            return Err(LogFlaw::Hash);
        }
        let event = log_line::read_event(&self.line).ok_or(LogFlaw::Event)?;
        if event.seq != self.last.next() {
            return Err(LogFlaw::Order);
        }
        if event.session != self.session {
            return Err(LogFlaw::Session);
        }
        self.last = event.seq;
        self.accept_line(real);
        Ok(event)
    }

    fn accept_line(&mut self, tip: ChainHash) {
        self.tip = tip;
        self.offset += self.line.len() as u64 + 1;
    }

    fn damaged(&self, flaw: LogFlaw) -> LogReaderItem {
        LogReaderItem::End(LogReadEnd::Damaged(self.damage(flaw)))
    }

    pub(crate) fn damage(&self, flaw: LogFlaw) -> LogDamage {
        LogDamage { path: self.path.clone(), offset: self.offset, after: self.last, flaw }
    }

    /// Reads up to the next newline, or to the limit of a line.
    fn read_line(&mut self) -> JournalResult<RawLogLine> {
        self.line.clear();
        let limit = MAX_LOG_LINE_BYTES as u64 + 1;
        self.source.by_ref().take(limit).read_until(b'\n', &mut self.line).at(&self.path)?;
        Ok(match self.line.pop() {
            None => RawLogLine::None,
            Some(b'\n') => RawLogLine::Whole,
            Some(byte) => {
                self.line.push(byte);
                if self.line.len() > MAX_LOG_LINE_BYTES { RawLogLine::TooLong } else { RawLogLine::NoNewline }
            }
        })
    }
}

#[derive(PartialEq, Eq)]
enum RawLogLine {
    Whole,
    NoNewline,
    TooLong,
    None,
}
