//! A session together with those it was forked from.

use std::ops::ControlFlow;

use helve_protocol::{Event, Seq, SessionId};

use crate::blobs::FileBlobs;
use crate::files::FileJournal;
use crate::line::{ForkPoint, Header};
use crate::log::{LogEnd, SessionFolder};
use crate::reader::{LogReader, Next};
use crate::{Damage, END, Each, Ending, Error, Flaw, Result};

/// A fork of a fork of a fork … is followed this far.
pub(crate) const MAX_GENERATIONS: usize = 1000;

/// A session and its ancestors, the oldest first. Only headers are read until the events are told, one log at a time.
pub(crate) struct Lineage {
    ancestors: Vec<Generation>,
    own: Generation,
    /// Why the line of ancestors ends before its beginning, if it does.
    broken: Option<Damage>,
}

pub(crate) struct Generation {
    pub(crate) folder: SessionFolder,
    pub(crate) header: Header,
    /// Where the events of the next generation begin.
    until: Option<ForkPoint>,
}

/// How the telling of a session's events ended.
pub(crate) struct Told {
    pub(crate) ending: Ending,
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

impl Lineage {
    pub(crate) fn of(journal: &FileJournal, session: SessionId) -> Result<Lineage> {
        let own = Generation::new(journal, session, None)?;
        let mut lineage = Lineage { ancestors: Vec::new(), own, broken: None };
        while let Some(point) = lineage.oldest().header.forked_from {
            let parent = Generation::new(journal, point.session, Some(point));
            match parent {
                Ok(parent) if lineage.ancestors.len() < MAX_GENERATIONS => lineage.ancestors.push(parent),
                Ok(_) | Err(Error::NotFound(_) | Error::Damaged { .. } | Error::ForeignVersion { .. }) => {
                    let path = lineage.oldest().folder.log();
                    lineage.broken = Some(Damage { path, offset: 0, after: point.seq, flaw: Flaw::Parent });
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        lineage.ancestors.reverse();
        Ok(lineage)
    }

    fn oldest(&self) -> &Generation {
        self.ancestors.last().unwrap_or(&self.own)
    }

    pub(crate) fn generations(&self) -> usize {
        self.ancestors.len() + 1
    }

    /// The session and its ancestors, the youngest first.
    pub(crate) fn youngest_first(&self) -> impl Iterator<Item = &Generation> {
        std::iter::once(&self.own).chain(self.ancestors.iter().rev())
    }

    pub(crate) fn forked_from(&self) -> Option<ForkPoint> {
        self.own.header.forked_from
    }

    pub(crate) fn blobs(&self) -> FileBlobs {
        let ancestors: Vec<_> = self.ancestors.iter().rev().map(|generation| &generation.folder).collect();
        FileBlobs::new(&self.own.folder, &ancestors)
    }

    /// Tells all events in order. What is damaged in one log does not keep the others from being told, but the ending
    /// says so.
    pub(crate) fn tell(&self, each: Each<'_>) -> Result<Told> {
        self.tell_after(Seq::START, each)
    }

    /// The same without the logs, and the beginning of the last one, that have only events up to `after`.
    pub(crate) fn tell_after(&self, after: Seq, each: Each<'_>) -> Result<Told> {
        let is_wanted = |point: Option<ForkPoint>| point.is_none_or(|point| point.seq > after);
        let mut damage = self.broken.clone().filter(|damage| damage.after > after);
        for generation in self.ancestors.iter().filter(|generation| is_wanted(generation.until)) {
            match generation.tell(each)? {
                Ending::Whole => {}
                Ending::Damaged(found) => drop(damage.get_or_insert(found)),
                stopped => {
                    let end = LogEnd::before(&self.own.header);
                    return Ok(Told { ending: stopped, end, last_line: LastLine::Finished });
                }
            }
        }
        let told = tell_rest(&mut self.own.folder.reader_after(after)?, each)?;
        Ok(Told { ending: damage.map_or(told.ending, Ending::Damaged), ..told })
    }
}

impl Lineage {
    /// The last events before one, of the youngest that has any.
    pub(crate) fn look_back(&self, before: Seq, bytes: u64) -> Result<Vec<Event>> {
        for generation in self.youngest_first() {
            let inherited = generation.header.forked_from.map_or(Seq::START, |point| point.seq);
            let end = generation.until.map_or(END, |until| until.seq.next());
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

impl Generation {
    fn new(journal: &FileJournal, session: SessionId, until: Option<ForkPoint>) -> Result<Generation> {
        let folder = journal.folder(session);
        let header = folder.reader()?.header;
        Ok(Generation { folder, header, until })
    }

    /// Tells the events of an ancestor up to where the next generation goes on.
    fn tell(&self, each: Each<'_>) -> Result<Ending> {
        let mut reader = self.folder.reader()?;
        while self.until.is_some_and(|until| reader.last < until.seq) {
            match reader.next()? {
                Next::Event(event) | Next::Unfinished(event) => {
                    if each(event).is_break() {
                        return Ok(Ending::Stopped);
                    }
                }
                Next::End(Ending::Damaged(damage)) => return Ok(Ending::Damaged(damage)),
                Next::End(_) => return Ok(Ending::Damaged(reader.damage(Flaw::Parent))),
            }
        }
        let is_the_same = self.until.is_none_or(|until| until.tip == reader.tip);
        Ok(if is_the_same { Ending::Whole } else { Ending::Damaged(reader.damage(Flaw::Parent)) })
    }
}

/// Tells the events of a log from where its reader stands to the end.
pub(crate) fn tell_rest(reader: &mut LogReader, each: Each<'_>) -> Result<Told> {
    let (ending, last_line) = loop {
        match reader.next()? {
            Next::End(ending) => break (ending, LastLine::Finished),
            Next::Unfinished(event) => {
                let flow = each(event);
                let ending = if flow.is_break() { Ending::Stopped } else { Ending::Whole };
                break (ending, LastLine::LacksNewline);
            }
            Next::Event(event) => {
                if each(event) == ControlFlow::Break(()) {
                    break (Ending::Stopped, LastLine::Finished);
                }
            }
        }
    };
    Ok(Told { ending, end: LogEnd { length: reader.offset, tip: reader.tip, last: reader.last }, last_line })
}

/// Hears everything to the end.
pub(crate) fn to_the_end(mut each: impl FnMut(Event)) -> impl FnMut(Event) -> ControlFlow<()> {
    move |event| {
        each(event);
        ControlFlow::Continue(())
    }
}
