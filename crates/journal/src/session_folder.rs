//! The files of one session: where they are, and how its log is read and locked.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom};
use std::path::PathBuf;

use helve_protocol::{Seq, SessionEvent, SessionId};

use crate::disk::{self, LockedFile};
use crate::error::JournalIoExt;
use crate::log_line::{ChainHash, ForkPoint, LogHeader};
use crate::log_search::{claimed_before, find_event, find_line_start, line_start};
use crate::owner;
use crate::pack::BlobPack;
use crate::reader::{LogReader, LogReaderItem};
use crate::{END_OF_LOG, JournalError, JournalResult, LogDamage, LogFlaw, LogReadEnd};

/// A log is exchanged for another by a repair, which is rare.
const MAX_LOG_LOCK_TRIES: usize = 10;

/// The files of one session.
#[derive(Clone, Debug)]
pub(crate) struct SessionFolder {
    pub(crate) path: PathBuf,
    pub(crate) session: SessionId,
}

impl SessionFolder {
    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("log.jsonl")
    }

    pub(crate) fn blobs(&self) -> PathBuf {
        self.path.join("blobs")
    }

    fn open(&self) -> JournalResult<File> {
        let path = self.log();
        let opened = disk::open_file(&path, OpenOptions::new().read(true));
        disk::if_exists(opened, &path)?.ok_or(JournalError::NotFound(self.session))
    }

    /// Begins to read the log.
    pub(crate) fn reader(&self) -> JournalResult<LogReader> {
        LogReader::new(self.open()?, &self.log(), self.session)
    }

    /// Begins to read the log after one of its events, without a look at those before. If it is not found, at the beginning.
    pub(crate) fn reader_after(&self, after: Seq) -> JournalResult<LogReader> {
        let (reader, file, path) = (self.reader()?, self.open()?, self.log());
        if after <= reader.last {
            return Ok(reader);
        }
        let place = find_line_start(&file, reader.offset, after.next()).at(&path)?;
        match claimed_before(&file, place, reader.offset).at(&path)? {
            Some((tip, seq)) if seq == after => reader.resume(place, tip, seq),
            _ => Ok(reader),
        }
    }

    /// The last of the log's own events before one: some bytes of them, and at least one. Each must follow from the line before
    /// it.
    pub(crate) fn look_back(&self, before: Seq, bytes: u64) -> JournalResult<Vec<SessionEvent>> {
        let (file, path) = (self.open()?, self.log());
        let first_line = self.reader()?.offset;
        let mut end = match before {
            END_OF_LOG => file.metadata().at(&path)?.len(),
            before => find_line_start(&file, first_line, before).at(&path)?,
        };
        loop {
            let start = line_start(&file, end.saturating_sub(bytes.max(1)), first_line).at(&path)?;
            let before_that = claimed_before(&file, start, first_line).at(&path)?;
            if start > first_line && before_that.is_none() {
                let damage = LogDamage { path, offset: start, after: Seq::START, flaw: LogFlaw::Form };
                return Err(JournalError::Damaged { session: self.session, damage });
            }
            let events = self.part(start, end, before_that)?;
            // Where there was nothing but a line that was never finished, what counts is before it.
            if !events.is_empty() || start == first_line {
                return Ok(events);
            }
            end = start;
        }
    }

    /// The events of the lines between two places.
    fn part(
        &self,
        start: u64,
        end: u64,
        before: Option<(ChainHash, Seq)>,
    ) -> JournalResult<Vec<SessionEvent>> {
        let mut reader = self.reader()?;
        if let Some((tip, seq)) = before {
            reader = reader.resume(start, tip, seq)?;
        }
        let mut events = Vec::new();
        while reader.offset < end {
            match reader.next()? {
                LogReaderItem::Event(event) | LogReaderItem::Unfinished(event) => events.push(event),
                LogReaderItem::End(LogReadEnd::Damaged(damage)) => {
                    return Err(JournalError::Damaged { session: self.session, damage });
                }
                LogReaderItem::End(_) => break,
            }
        }
        Ok(events)
    }

    /// Only the first line, of whatever version the log is.
    pub(crate) fn header(&self) -> JournalResult<LogHeader> {
        Ok(LogReader::of_any_version(self.open()?, &self.log(), self.session)?.header)
    }

    /// One of the log's own events as the place of a fork. It is on disk then, with what it names: a fork must not outlive
    /// what it lives on.
    pub(crate) fn fork_point(&self, asked: SessionId, seq: Seq) -> JournalResult<ForkPoint> {
        let path = self.log();
        let first_line = self.reader()?.offset;
        let file = self.open()?;
        BlobPack::new(self.path.clone(), self.session).sync()?;
        file.sync_data().at(&path)?;
        let found = find_event(&file, first_line, seq).at(&path)?;
        let tip = found.map_err(|last| JournalError::NoSuchEvent { session: asked, seq, last })?;
        Ok(ForkPoint { session: self.session, seq, tip })
    }

    /// Keeps what follows `offset` in a file of its own. It was never acknowledged, but nobody knows who cut the log.
    pub(crate) fn set_tail_aside(&self, offset: u64) -> JournalResult<()> {
        let path = self.log();
        let mut log = self.open()?;
        log.seek(SeekFrom::Start(offset)).at(&path)?;
        let aside = disk::unused_name(&self.path, &format!("torn-{offset}-"));
        let mut kept = disk::create_file(&aside)?;
        io::copy(&mut log, &mut kept).and_then(|_| kept.sync_all()).at(&aside)?;
        disk::sync_folder(&self.path)
    }

    /// Takes the lock of the log, which ends with this process at the latest.
    pub(crate) fn lock(&self) -> JournalResult<LockedFile> {
        // Whoever deletes or repairs a session does so with its lock, so what we locked may no longer be what is there.
        for _ in 0..MAX_LOG_LOCK_TRIES {
            let file = self.try_lock()?;
            if disk::is_same_file(&file, &self.log()) {
                return Ok(file);
            }
        }
        Err(JournalError::InUse { session: self.session, owner: owner::owner_pid(&self.owner_file()) })
    }

    fn try_lock(&self) -> JournalResult<LockedFile> {
        let path = self.log();
        let opened = disk::open_file(&path, OpenOptions::new().append(true).read(true));
        let file = disk::if_exists(opened, &path)?.ok_or(JournalError::NotFound(self.session))?;
        match LockedFile::try_lock_exclusive(file) {
            Ok(locked) => Ok(locked),
            Err(TryLockError::WouldBlock) => Err(JournalError::InUse {
                session: self.session,
                owner: owner::owner_pid(&self.owner_file()),
            }),
            Err(TryLockError::Error(error)) => Err(JournalError::io(&path, error)),
        }
    }

    /// Where the owner signs.
    pub(crate) fn owner_file(&self) -> PathBuf {
        owner::owner_file_path(self.path.parent().unwrap_or(&self.path), self.session)
    }
}
