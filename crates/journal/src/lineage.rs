//! A session together with those it was forked from.

use std::ops::ControlFlow;

use helve_protocol::{Seq, SessionEvent, SessionId};

use crate::blobs::FileBlobStore;
use crate::log::LogEnd;
use crate::log_line::{ForkPoint, LogHeader};
use crate::reader::{LogReader, LogReaderItem};
use crate::session_folder::SessionFolder;
use crate::session_store::SessionStore;
use crate::{END_OF_LOG, EventVisitor, JournalError, JournalResult, LogDamage, LogFlaw, LogReadEnd};

/// A fork of a fork of a fork … is followed this far.
pub(crate) const MAX_GENERATIONS: usize = 1000;

/// A session and its ancestors, the oldest first. Only headers are read until the events are told, one log at a time.
pub(crate) struct SessionLineage {
    ancestors: Vec<SessionGeneration>,
    own: SessionGeneration,
    /// Why the line of ancestors ends before its beginning, if it does.
    broken: Option<LogDamage>,
}

pub(crate) struct SessionGeneration {
    pub(crate) folder: SessionFolder,
    pub(crate) header: LogHeader,
    /// Where the events of the next generation begin.
    until: Option<ForkPoint>,
}

/// How the telling of a session's events ended.
pub(crate) struct LogReadResult {
    pub(crate) ending: LogReadEnd,
    /// How far the session's own log was proved.
    pub(crate) end: LogEnd,
    pub(crate) last_line: LastLine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastLine {
    Finished,
    /// Whole but for its newline.
    LacksNewline,
}

impl SessionLineage {
    pub(crate) fn of(sessions: &SessionStore, session: SessionId) -> JournalResult<SessionLineage> {
        let own = SessionGeneration::new(sessions, session, None)?;
        let mut lineage = SessionLineage { ancestors: Vec::new(), own, broken: None };
        while let Some(point) = lineage.oldest().header.forked_from {
            let parent = SessionGeneration::new(sessions, point.session, Some(point));
            match parent {
                Ok(parent) if lineage.ancestors.len() < MAX_GENERATIONS => lineage.ancestors.push(parent),
                Ok(_)
                | Err(
                    JournalError::NotFound(_)
                    | JournalError::Damaged { .. }
                    | JournalError::ForeignVersion { .. },
                ) => {
                    let path = lineage.oldest().folder.log();
                    lineage.broken =
                        Some(LogDamage { path, offset: 0, after: point.seq, flaw: LogFlaw::Parent });
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        lineage.ancestors.reverse();
        Ok(lineage)
    }

    fn oldest(&self) -> &SessionGeneration {
        self.ancestors.last().unwrap_or(&self.own)
    }

    pub(crate) fn generations(&self) -> usize {
        self.ancestors.len() + 1
    }

    /// The session and its ancestors, the youngest first.
    pub(crate) fn youngest_first(&self) -> impl Iterator<Item = &SessionGeneration> {
        std::iter::once(&self.own).chain(self.ancestors.iter().rev())
    }

    pub(crate) fn forked_from(&self) -> Option<ForkPoint> {
        self.own.header.forked_from
    }

    pub(crate) fn blobs(&self) -> FileBlobStore {
        let ancestors: Vec<_> = self.ancestors.iter().rev().map(|generation| &generation.folder).collect();
        FileBlobStore::new(&self.own.folder, &ancestors)
    }

    /// Tells all events in order. What is damaged in one log does not keep the others from being told, but the ending
    /// says so.
    pub(crate) fn tell(&self, each: EventVisitor<'_>) -> JournalResult<LogReadResult> {
        self.read_events_after(Seq::START, each)
    }

    /// The same without the logs, and the beginning of the last one, that have only events up to `after`.
    pub(crate) fn read_events_after(
        &self,
        after: Seq,
        each: EventVisitor<'_>,
    ) -> JournalResult<LogReadResult> {
        let is_wanted = |point: Option<ForkPoint>| point.is_none_or(|point| point.seq > after);
        let mut damage = self.broken.clone().filter(|damage| damage.after > after);
        for generation in self.ancestors.iter().filter(|generation| is_wanted(generation.until)) {
            match generation.tell(each)? {
                LogReadEnd::Whole => {}
                LogReadEnd::Damaged(found) => drop(damage.get_or_insert(found)),
                stopped => {
                    let end = LogEnd::before(&self.own.header);
                    return Ok(LogReadResult { ending: stopped, end, last_line: LastLine::Finished });
                }
            }
        }
        let told = read_rest(&mut self.own.folder.reader_after(after)?, each)?;
        Ok(LogReadResult { ending: damage.map_or(told.ending, LogReadEnd::Damaged), ..told })
    }
}

impl SessionLineage {
    /// The last events before one, of the youngest that has any.
    pub(crate) fn look_back(&self, before: Seq, bytes: u64) -> JournalResult<Vec<SessionEvent>> {
        for generation in self.youngest_first() {
            let inherited = generation.header.forked_from.map_or(Seq::START, |point| point.seq);
            let end = generation.until.map_or(END_OF_LOG, |until| until.seq.next());
            if before > inherited.next() {
                let events = generation.folder.look_back(before.min(end), bytes)?;
                if !events.is_empty() {
                    return Ok(events);
                }
            }
        }
        Ok(Vec::new())
    }
}

impl SessionGeneration {
    fn new(
        sessions: &SessionStore,
        session: SessionId,
        until: Option<ForkPoint>,
    ) -> JournalResult<SessionGeneration> {
        let folder = sessions.folder(session);
        let header = folder.reader()?.header;
        Ok(SessionGeneration { folder, header, until })
    }

    /// Tells the events of an ancestor up to where the next generation goes on.
    fn tell(&self, each: EventVisitor<'_>) -> JournalResult<LogReadEnd> {
        let mut reader = self.folder.reader()?;
        while self.until.is_some_and(|until| reader.last < until.seq) {
            match reader.next()? {
                LogReaderItem::Event(event) | LogReaderItem::Unfinished(event) => {
                    if each(event).is_break() {
                        return Ok(LogReadEnd::Stopped);
                    }
                }
                LogReaderItem::End(LogReadEnd::Damaged(damage)) => return Ok(LogReadEnd::Damaged(damage)),
                LogReaderItem::End(_) => return Ok(LogReadEnd::Damaged(reader.damage(LogFlaw::Parent))),
            }
        }
        let is_the_same = self.until.is_none_or(|until| until.tip == reader.tip);
        Ok(if is_the_same { LogReadEnd::Whole } else { LogReadEnd::Damaged(reader.damage(LogFlaw::Parent)) })
    }
}

/// Tells the events of a log from where its reader stands to the end.
pub(crate) fn read_rest(reader: &mut LogReader, each: EventVisitor<'_>) -> JournalResult<LogReadResult> {
    let (ending, last_line) = loop {
        match reader.next()? {
            LogReaderItem::End(ending) => break (ending, LastLine::Finished),
            LogReaderItem::Unfinished(event) => {
                let flow = each(event);
                let ending = if flow.is_break() { LogReadEnd::Stopped } else { LogReadEnd::Whole };
                break (ending, LastLine::LacksNewline);
            }
            LogReaderItem::Event(event) => {
                if each(event) == ControlFlow::Break(()) {
                    break (LogReadEnd::Stopped, LastLine::Finished);
                }
            }
        }
    };
    Ok(LogReadResult {
        ending,
        end: LogEnd { length: reader.offset, tip: reader.tip, last: reader.last },
        last_line,
    })
}

/// Hears everything to the end.
pub(crate) fn visit_all(mut each: impl FnMut(SessionEvent)) -> impl FnMut(SessionEvent) -> ControlFlow<()> {
    move |event| {
        each(event);
        ControlFlow::Continue(())
    }
}
