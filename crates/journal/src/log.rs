//! A session's log that this process owns, and appends to.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use helve_protocol::{BlobStore, Persistence, Seq, SessionEvent, SessionId};

use crate::blobs::FileBlobStore;
use crate::disk::{self, LockedFile};
use crate::error::JournalIoExt;
use crate::log_line::{self, ChainHash, LogHeader};
use crate::owner::OwnerLockFile;
use crate::session_folder::SessionFolder;
use crate::{JournalError, JournalResult, MAX_EVENT_BYTES, MAX_EVENT_DEPTH, SessionLog};

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
        if disk::is_same_file(&self.file, &self.path) {
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
