//! A session's log that this process owns, and appends to.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use helve_protocol::{BlobStore, Persistence, Seq, SessionEvent, SessionId};

use crate::blobs::FileBlobStore;
use crate::disk::LockedFile;
use crate::error::JournalIoExt;
use crate::log_line::{self, ChainHash, ForkPoint, LogHeader};
use crate::log_search::{claimed_before, find_event, find_line_start, line_start};
use crate::owner::{self, OwnerLockFile};
use crate::pack::BlobPack;
use crate::reader::{LogReader, LogReaderItem};
use crate::{
    JournalError, JournalResult, LogDamage, LogFlaw, LogReadEnd, MAX_EVENT_BYTES, MAX_EVENT_DEPTH,
    SessionLog, disk,
};

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
            crate::END_OF_LOG => file.metadata().at(&path)?.len(),
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
        let aside = unused_name(&self.path, &format!("torn-{offset}-"));
        let mut kept = disk::create_file(&aside)?;
        io::copy(&mut log, &mut kept).and_then(|_| kept.sync_all()).at(&aside)?;
        disk::sync_folder(&self.path)
    }

    /// Takes the lock of the log, which ends with this process at the latest.
    pub(crate) fn lock(&self) -> JournalResult<LockedFile> {
        // Whoever deletes or repairs a session does so with its lock, so what we locked may no longer be what is there.
        for _ in 0..MAX_LOG_LOCK_TRIES {
            let file = self.try_lock()?;
            if is_same_file(&file, &self.log()) {
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

/// A name that nothing in a folder has.
pub(crate) fn unused_name(folder: &Path, beginning: &str) -> PathBuf {
    let name = |n: u32| folder.join(format!("{beginning}{n}"));
    (1..).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(0))
}

/// Whether the path still leads to this very file.
pub(crate) fn is_same_file(file: &File, path: &Path) -> bool {
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let here = file.metadata().map(identity);
    let there = fs::metadata(path).map(identity);
    matches!((here, there), (Ok(here), Ok(there)) if here == there)
}

pub(crate) struct FileSessionLog {
    session: SessionId,
    path: PathBuf,
    /// Taken away before the lock of the file is.
    _signature: Option<OwnerLockFile>,
    file: LockedFile,
    /// What is acknowledged.
    end: LogEnd,
    blobs: Arc<FileBlobStore>,
    /// What failed, if the file may differ from what we know of it.
    doubt: Option<String>,
    buffer: Vec<u8>,
}

/// What is known of a log's end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogEnd {
    pub(crate) length: u64,
    pub(crate) tip: ChainHash,
    pub(crate) last: Seq,
}

impl LogEnd {
    /// Nothing of the log's own is known yet.
    pub(crate) fn before(header: &LogHeader) -> LogEnd {
        let last = header.forked_from.map_or(Seq::START, |point| point.seq);
        LogEnd { length: 0, tip: ChainHash::NONE, last }
    }
}

impl FileSessionLog {
    /// The file is locked: the session is ours, and so is its pack.
    pub(crate) fn new(
        folder: &SessionFolder,
        file: LockedFile,
        end: LogEnd,
        blobs: FileBlobStore,
    ) -> FileSessionLog {
        blobs.own_pack();
        FileSessionLog {
            session: folder.session,
            path: folder.log(),
            _signature: OwnerLockFile::new(folder.owner_file()),
            file,
            end,
            blobs: Arc::new(blobs),
            doubt: None,
            buffer: Vec::new(),
        }
    }

    /// Checks that the events are the session's next ones and seals them into the buffer.
    fn seal(&mut self, events: &[SessionEvent]) -> JournalResult<LogEnd> {
        self.buffer.clear();
        let LogEnd { mut tip, mut last, length } = self.end;
        for event in events {
            self.check(event, last)?;
            let before = self.buffer.len();
            let sealed = log_line::seal(event, tip, &mut self.buffer);
            tip = sealed.map_err(|error| JournalError::io(&self.path, error.into()))?;
            last = event.seq;
            self.check_form(event, before)?;
            let bytes = self.buffer.len() - before;
            if bytes > MAX_EVENT_BYTES {
                return Err(JournalError::TooLarge { what: "an event", bytes, limit: MAX_EVENT_BYTES });
            }
        }
        Ok(LogEnd { length: length + self.buffer.len() as u64, tip, last })
    }

    fn check(&self, event: &SessionEvent, last: Seq) -> JournalResult<()> {
        if event.session != self.session || event.body.persistence() == Persistence::Live {
            return Err(JournalError::NotStorable {
                session: self.session,
                kind: event.body.kind().to_owned(),
            });
        }
        if event.seq != last.next() {
            return Err(JournalError::OutOfOrder { session: self.session, last, found: event.seq });
        }
        for blob in event.body.blobs() {
            if !self.blobs.may_be_named(blob)? {
                return Err(JournalError::BlobMissing(blob));
            }
        }
        Ok(())
    }

    /// What is acknowledged must be readable again: one line, and not too deep.
    fn check_form(&self, event: &SessionEvent, start: usize) -> JournalResult<()> {
        let line = self.buffer.get(start..).and_then(|line| line.strip_suffix(b"\n")).unwrap_or_default();
        if line.contains(&b'\n') {
            return Err(JournalError::NotStorable {
                session: self.session,
                kind: event.body.kind().to_owned(),
            });
        }
        if log_line::nesting_depth(line) > MAX_EVENT_DEPTH {
            return Err(JournalError::TooDeep { what: "an event", limit: MAX_EVENT_DEPTH });
        }
        Ok(())
    }

    /// Takes back what a failed write may have left, so that the next one finds the log as it was.
    fn undo_write(&mut self, cause: &JournalError) {
        if let Err(error) = self.file.set_len(self.end.length) {
            self.doubt = Some(format!("{cause}; and then: {error}"));
        }
    }

    /// After a failed sync nobody knows what is on disk, and asking again may lie: nothing more is promised.
    fn sync_data(&mut self) -> JournalResult<()> {
        let synced = self.file.sync_data().at(&self.path);
        if let Err(error) = &synced {
            self.doubt = Some(error.to_string());
        }
        synced
    }

    /// What events name is on disk before they are.
    fn sync_blobs(&mut self) -> JournalResult<()> {
        let synced = self.blobs.sync();
        if let Err(error) = &synced {
            self.doubt = Some(error.to_string());
        }
        synced
    }

    /// Writing to a removed file succeeds, and is lost.
    fn check_still_there(&mut self) -> JournalResult<()> {
        if self.file.metadata().at(&self.path)?.nlink() > 0 {
            return Ok(());
        }
        self.gone()
    }

    /// The same, sure: a removed file may live on under another name, as in a backup.
    fn check_still_in_place(&mut self) -> JournalResult<()> {
        if is_same_file(&self.file, &self.path) {
            return Ok(());
        }
        self.gone()
    }

    fn gone(&mut self) -> JournalResult<()> {
        let gone = JournalError::Gone { path: self.path.clone() };
        self.doubt = Some(gone.to_string());
        Err(gone)
    }

    fn check_no_doubt(&self) -> JournalResult<()> {
        match &self.doubt {
            Some(cause) => Err(JournalError::InDoubt { session: self.session, cause: cause.clone() }),
            None => Ok(()),
        }
    }
}

impl SessionLog for FileSessionLog {
    fn session(&self) -> SessionId {
        self.session
    }

    fn last(&self) -> Seq {
        self.end.last
    }

    fn append(&mut self, events: &[SessionEvent]) -> JournalResult<()> {
        self.check_no_doubt()?;
        let end = self.seal(events)?;
        let needs_sync = events.iter().any(|event| event.body.needs_sync());
        if needs_sync {
            self.sync_blobs()?;
        }
        if let Err(error) = self.file.write_all(&self.buffer).at(&self.path) {
            self.undo_write(&error);
            return Err(error);
        }
        if needs_sync {
            self.sync_data()?;
            self.check_still_in_place()?;
        } else {
            self.check_still_there()?;
        }
        self.end = end;
        Ok(())
    }

    fn sync(&mut self) -> JournalResult<()> {
        self.check_no_doubt()?;
        self.sync_blobs()?;
        self.sync_data()?;
        self.check_still_in_place()
    }

    fn blobs(&self) -> Arc<dyn BlobStore> {
        self.blobs.clone()
    }
}

impl Drop for FileSessionLog {
    /// Blobs may be in use for longer; the pack belongs to who owns the session.
    fn drop(&mut self) {
        self.blobs.disown_pack();
    }
}

/// Writes a new log with nothing but its header, safe on disk, locked.
pub(crate) fn create(folder: &SessionFolder, header: &LogHeader) -> JournalResult<(LockedFile, LogEnd)> {
    let path = folder.log();
    let mut file = LockedFile::wait_for(disk::create_file(&path)?).at(&path)?;
    let mut buffer = Vec::new();
    let sealed = log_line::seal(header, ChainHash::NONE, &mut buffer);
    let tip = sealed.map_err(|error| JournalError::io(&path, error.into()))?;
    file.write_all(&buffer).and_then(|()| file.sync_all()).at(&path)?;
    let end = LogEnd { length: buffer.len() as u64, tip, ..LogEnd::before(header) };
    Ok((file, end))
}
