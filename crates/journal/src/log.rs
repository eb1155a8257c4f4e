//! A session's log that this process owns, and appends to.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use helve_protocol::{Blobs, Event, Persistence, Seq, SessionId};

use crate::blobs::FileBlobs;
use crate::error::At;
use crate::line::{self, Header, Tip};
use crate::reader::LogReader;
use crate::{Error, MAX_EVENT_BYTES, Result, SessionLog, disk};

/// A log is exchanged for another by a repair, which is rare.
const MAX_LOCK_TRIES: usize = 10;

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

    fn owner(&self) -> PathBuf {
        self.path.join("owner")
    }

    /// Begins to read the log.
    pub(crate) fn reader(&self) -> Result<LogReader> {
        let path = self.log();
        let file = disk::if_exists(File::open(&path), &path)?.ok_or(Error::NotFound(self.session))?;
        LogReader::new(file, &path, self.session)
    }

    /// Takes the lock of the log, which ends with this process at the latest.
    pub(crate) fn lock(&self) -> Result<File> {
        // Whoever deletes or repairs a session does so with its lock, so what we locked may no longer be what is there.
        for _ in 0..MAX_LOCK_TRIES {
            let file = self.try_lock()?;
            if is_at(&file, &self.log()) {
                return Ok(file);
            }
        }
        Err(Error::InUse { session: self.session, owner: self.owner_pid() })
    }

    fn try_lock(&self) -> Result<File> {
        let path = self.log();
        let opened = OpenOptions::new().append(true).read(true).open(&path);
        let file = disk::if_exists(opened, &path)?.ok_or(Error::NotFound(self.session))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => {
                Err(Error::InUse { session: self.session, owner: self.owner_pid() })
            }
            Err(TryLockError::Error(error)) => Err(Error::io(&path, error)),
        }
    }

    /// Says who owns the session. Only for messages to people: the lock is what counts.
    pub(crate) fn sign(&self) {
        let _ = fs::write(self.owner(), std::process::id().to_string());
    }

    fn owner_pid(&self) -> Option<u32> {
        fs::read_to_string(self.owner()).ok()?.trim().parse().ok()
    }
}

/// Whether the path still leads to this very file.
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let here = file.metadata().map(identity);
    let there = fs::metadata(path).map(identity);
    matches!((here, there), (Ok(here), Ok(there)) if here == there)
}

pub(crate) struct FileLog {
    session: SessionId,
    path: PathBuf,
    file: File,
    /// How much of the file is acknowledged.
    length: u64,
    tip: Tip,
    last: Seq,
    blobs: Arc<FileBlobs>,
    /// What failed, if the file may differ from what we know of it.
    doubt: Option<String>,
    buffer: Vec<u8>,
}

/// What is known of a log's end.
pub(crate) struct LogEnd {
    pub(crate) length: u64,
    pub(crate) tip: Tip,
    pub(crate) last: Seq,
}

impl FileLog {
    pub(crate) fn new(folder: &SessionFolder, file: File, end: LogEnd, blobs: Arc<FileBlobs>) -> FileLog {
        FileLog {
            session: folder.session,
            path: folder.log(),
            file,
            length: end.length,
            tip: end.tip,
            last: end.last,
            blobs,
            doubt: None,
            buffer: Vec::new(),
        }
    }

    /// Checks that the events are the session's next ones and seals them into the buffer.
    fn seal(&mut self, events: &[Event]) -> Result<LogEnd> {
        self.buffer.clear();
        let (mut tip, mut last) = (self.tip, self.last);
        for event in events {
            self.check(event, last)?;
            let before = self.buffer.len();
            let sealed = line::seal(event, tip, &mut self.buffer);
            tip = sealed.map_err(|error| Error::io(&self.path, error.into()))?;
            last = event.seq;
            let bytes = self.buffer.len() - before;
            if bytes > MAX_EVENT_BYTES {
                return Err(Error::TooLarge { what: "an event", bytes, limit: MAX_EVENT_BYTES });
            }
        }
        Ok(LogEnd { length: self.length + self.buffer.len() as u64, tip, last })
    }

    fn check(&self, event: &Event, last: Seq) -> Result<()> {
        if event.session != self.session || event.body.persistence() == Persistence::Live {
            return Err(Error::NotStorable { session: self.session, kind: event.body.kind().to_owned() });
        }
        if event.seq != last.next() {
            return Err(Error::OutOfOrder { session: self.session, last, found: event.seq });
        }
        match event.body.blobs().into_iter().find(|blob| !self.blobs.is_safe(*blob)) {
            Some(blob) => Err(Error::BlobMissing(blob)),
            None => Ok(()),
        }
    }

    /// Takes back what a failed write may have left, so that the next one finds the log as it was.
    fn undo_write(&mut self, cause: &Error) {
        if let Err(error) = self.file.set_len(self.length) {
            self.doubt = Some(format!("{cause}; and then: {error}"));
        }
    }

    /// After a failed sync nobody knows what is on disk, and asking again may lie. Only a new look can tell.
    fn sync_data(&mut self) -> Result<()> {
        let synced = self.file.sync_data().at(&self.path);
        if let Err(error) = &synced {
            self.doubt = Some(error.to_string());
        }
        synced
    }

    /// Writing to a removed file succeeds, and is lost.
    fn check_still_there(&mut self) -> Result<()> {
        let links = self.file.metadata().at(&self.path)?.nlink();
        if links > 0 {
            return Ok(());
        }
        let gone = Error::Gone { path: self.path.clone() };
        self.doubt = Some(gone.to_string());
        Err(gone)
    }

    fn check_no_doubt(&self) -> Result<()> {
        match &self.doubt {
            Some(cause) => Err(Error::InDoubt { session: self.session, cause: cause.clone() }),
            None => Ok(()),
        }
    }
}

impl SessionLog for FileLog {
    fn session(&self) -> SessionId {
        self.session
    }

    fn last(&self) -> Seq {
        self.last
    }

    fn append(&mut self, events: &[Event]) -> Result<()> {
        self.check_no_doubt()?;
        let end = self.seal(events)?;
        if let Err(error) = self.file.write_all(&self.buffer).at(&self.path) {
            self.undo_write(&error);
            return Err(error);
        }
        if events.iter().any(|event| event.body.needs_sync()) {
            self.sync_data()?;
        }
        self.check_still_there()?;
        (self.length, self.tip, self.last) = (end.length, end.tip, end.last);
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.check_no_doubt()?;
        self.sync_data()?;
        self.check_still_there()
    }

    fn blobs(&self) -> Arc<dyn Blobs> {
        self.blobs.clone()
    }
}

/// Writes a new log with nothing but its header, safe on disk, locked.
pub(crate) fn create(folder: &SessionFolder, header: &Header) -> Result<(File, LogEnd)> {
    let path = folder.log();
    let mut file = disk::create_file(&path)?;
    file.lock().at(&path)?;
    let mut buffer = Vec::new();
    let sealed = line::seal(header, Tip::NONE, &mut buffer);
    let tip = sealed.map_err(|error| Error::io(&path, error.into()))?;
    file.write_all(&buffer).and_then(|()| file.sync_all()).at(&path)?;
    let last = header.forked_from.map_or(Seq::START, |point| point.seq);
    Ok((file, LogEnd { length: buffer.len() as u64, tip, last }))
}
