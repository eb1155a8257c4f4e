//! The journal on disk: a folder per session, in one folder for all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use helve_protocol::{Seq, SessionEvent, SessionId, SessionSummary};

use crate::blobs::FileBlobStore;
use crate::catalogue::SessionCatalogue;
use crate::disk::LockedFile;
use crate::error::JournalIoExt;
use crate::lineage::{LastLine, LogReadResult, MAX_GENERATIONS, SessionLineage, visit_all};
use crate::log::{self, FileSessionLog, LogEnd};
use crate::log_line::{ForkPoint, LogHeader};
use crate::session_folder::SessionFolder;
use crate::session_store::SessionStore;
use crate::{
    EventVisitor, Journal, JournalBlobLoader, JournalError, JournalResult, LogReadEnd, SessionLog, disk,
};

/// Names that begin like this are not sessions: one that is being made, and one that is being removed.
pub(crate) const NEW_SESSION_PREFIX: &str = ".new-";
pub(crate) const DELETED_SESSION_PREFIX: &str = ".deleted-";

/// Keeps sessions below one folder: `sessions/ID/log.jsonl`, the blobs beside it, and `catalogue.db`.
pub struct FileJournal {
    root: PathBuf,
    pub(crate) sessions: SessionStore,
    catalogue: Mutex<Option<SessionCatalogue>>,
}

impl FileJournal {
    /// Nothing is touched before it is needed.
    pub fn new(root: impl Into<PathBuf>) -> FileJournal {
        let root = root.into();
        let sessions = SessionStore::new(root.join("sessions"));
        FileJournal { root, sessions, catalogue: Mutex::new(None) }
    }

    /// The file with the list of sessions. It may be removed at any time.
    pub fn catalogue_path(&self) -> PathBuf {
        self.root.join("catalogue.db")
    }

    /// The sessions that are there, in no order.
    pub fn sessions(&self) -> JournalResult<Vec<SessionId>> {
        self.sessions.ids()
    }

    /// Those who live on a session's events. A fork whose header is damaged can't be read any more, with or without its
    /// parent; one that can't be looked at for another reason may well be one, so that is an error.
    pub fn forks(&self, session: SessionId) -> JournalResult<Vec<SessionId>> {
        self.sessions.forks(session)
    }

    fn check_no_forks(&self, session: SessionId) -> JournalResult<()> {
        let forks = self.forks(session)?;
        if forks.is_empty() { Ok(()) } else { Err(JournalError::HasForks { session, forks }) }
    }

    /// Held while sessions come and go, so that the sweeper does not take what is on its way for what was left.
    fn lock_against_sweep(&self) -> JournalResult<File> {
        let (file, path) = self.open_sweep_lock()?;
        file.lock_shared().at(&path)?;
        Ok(file)
    }

    pub(crate) fn open_sweep_lock(&self) -> JournalResult<(File, PathBuf)> {
        let path = self.sessions.path().join(".lock");
        let file = disk::open_or_create(&path)?;
        Ok((file, path))
    }

    /// Removes a session that nobody can see any more, or brings it back if a fork was made in the meantime.
    pub(crate) fn finish_deletion(&self, session: SessionId, dying: &Path) -> JournalResult<()> {
        let sessions = self.sessions.path();
        if let Err(error) = self.check_no_forks(session) {
            let folder = self.sessions.folder(session).path;
            fs::rename(dying, &folder).at(&folder)?;
            disk::sync_folder(sessions)?;
            return Err(error);
        }
        disk::sync_folder(sessions)?;
        fs::remove_dir_all(dying).at(dying)
    }

    pub(crate) fn lineage(&self, session: SessionId) -> JournalResult<SessionLineage> {
        SessionLineage::of(&self.sessions, session)
    }

    /// Makes a session's folder under another name first, so that it is there as a whole or not at all.
    fn create_with(&self, header: &LogHeader) -> JournalResult<(LockedFile, LogEnd)> {
        let session = header.session;
        let sessions = self.sessions.path();
        disk::create_folder(sessions)?;
        let _coming = self.lock_against_sweep()?;
        let unborn = sessions.join(format!("{NEW_SESSION_PREFIX}{}-{session}", std::process::id()));
        // Whoever left it had our process id, so it is dead.
        disk::if_exists(fs::remove_dir_all(&unborn), &unborn)?;
        let unborn = SessionFolder { path: unborn, session };
        let created = self.publish_session(&unborn, header);
        if created.is_err() {
            let _ = fs::remove_dir_all(&unborn.path);
        }
        created
    }

    fn publish_session(
        &self,
        unborn: &SessionFolder,
        header: &LogHeader,
    ) -> JournalResult<(LockedFile, LogEnd)> {
        disk::create_folder(&unborn.path)?;
        let created = log::create(unborn, header)?;
        disk::sync_folder(&unborn.path)?;
        let folder = self.sessions.folder(header.session);
        fs::rename(&unborn.path, &folder.path).map_err(|error| match error.kind() {
            io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists => {
                JournalError::Exists(header.session)
            }
            _ => JournalError::io(&folder.path, error),
        })?;
        disk::sync_folder(self.sessions.path())?;
        Ok(created)
    }

    /// The fork point at an event: in the session itself, or in the ancestor that it has it from.
    fn fork_point(&self, session: SessionId, at: Seq) -> JournalResult<ForkPoint> {
        let lineage = self.lineage(session)?;
        if lineage.generations() >= MAX_GENERATIONS {
            return Err(JournalError::TooDeep { what: "a fork of forks", limit: MAX_GENERATIONS });
        }
        for generation in lineage.youngest_first() {
            let inherited = generation.header.forked_from;
            if let Some(point) = inherited.filter(|point| at <= point.seq) {
                if point.seq == at {
                    return Ok(point);
                }
                continue;
            }
            return generation.folder.fork_point(session, at);
        }
        Err(JournalError::NoSuchEvent { session, seq: at, last: Seq::START })
    }

    fn with_catalogue<T>(&self, work: impl FnOnce(&mut SessionCatalogue) -> T) -> T {
        let mut slot = self.catalogue.lock().unwrap_or_else(PoisonError::into_inner);
        work(slot.get_or_insert_with(|| SessionCatalogue::open(&self.catalogue_path())))
    }

    /// Makes the catalogue anew from the logs. Gives the number of sessions.
    pub fn rebuild_catalogue(&self) -> JournalResult<usize> {
        self.with_catalogue(|catalogue| {
            catalogue.replace();
            catalogue.list(&self.sessions).map(|sessions| sessions.len())
        })
    }

    /// What is wrong with the catalogue, if anything. It is made anew when it is needed.
    pub fn check_catalogue(&self) -> Result<(), String> {
        SessionCatalogue::check(&self.catalogue_path())
    }

    /// What was left at the end of a log that is opened again.
    fn fix_log_end(folder: &SessionFolder, mut file: &File, told: LogReadResult) -> JournalResult<LogEnd> {
        let path = folder.log();
        match (told.ending, told.last_line) {
            (LogReadEnd::Damaged(damage), _) => {
                return Err(JournalError::Damaged { session: folder.session, damage });
            }
            (LogReadEnd::Torn { bytes }, _) => {
                tracing::warn!(name: "log.torn", session = %folder.session, bytes);
                folder.set_tail_aside(told.end.length)?;
                file.set_len(told.end.length).and_then(|()| file.sync_all()).at(&path)?;
            }
            (_, LastLine::LacksNewline) => file.write_all(b"\n").and_then(|()| file.sync_data()).at(&path)?,
            _ => {}
        }
        Ok(told.end)
    }
}

impl Journal for FileJournal {
    fn create(&self, session: SessionId) -> JournalResult<Box<dyn SessionLog>> {
        let (file, end) = self.create_with(&LogHeader::new(session, None))?;
        let folder = self.sessions.folder(session);
        let blobs = FileBlobStore::new(&folder, &[]);
        Ok(Box::new(FileSessionLog::new(&folder, file, end, blobs)))
    }

    fn open(
        &self,
        session: SessionId,
        each: &mut dyn FnMut(SessionEvent),
    ) -> JournalResult<Box<dyn SessionLog>> {
        let folder = self.sessions.folder(session);
        let file = folder.lock()?;
        let lineage = self.lineage(session)?;
        let told = lineage.tell(&mut visit_all(each))?;
        let end = FileJournal::fix_log_end(&folder, &file, told)?;
        let blobs = lineage.blobs();
        blobs.tidy()?;
        Ok(Box::new(FileSessionLog::new(&folder, file, end, blobs)))
    }

    fn read(&self, session: SessionId, after: Seq, each: EventVisitor<'_>) -> JournalResult<LogReadEnd> {
        let told = self.lineage(session)?.read_events_after(after, &mut |event| {
            if event.seq > after { each(event) } else { ControlFlow::Continue(()) }
        })?;
        Ok(told.ending)
    }

    fn look_back(&self, session: SessionId, before: Seq, bytes: u64) -> JournalResult<Vec<SessionEvent>> {
        self.lineage(session)?.look_back(before, bytes)
    }

    fn list(&self) -> JournalResult<Vec<SessionSummary>> {
        self.with_catalogue(|catalogue| catalogue.list(&self.sessions))
    }

    fn fork(&self, parent: SessionId, at: Seq, child: SessionId) -> JournalResult<()> {
        let point = self.fork_point(parent, at)?;
        self.create_with(&LogHeader::new(child, Some(point)))?;
        // A deletion looks for forks after it has hidden the parent, and we look for the parent after the fork is there:
        // whoever comes second sees the other.
        if self.sessions.folder(point.session).log().exists() {
            return Ok(());
        }
        self.delete(child)?;
        Err(JournalError::NotFound(point.session))
    }

    fn delete(&self, session: SessionId) -> JournalResult<()> {
        let folder = self.sessions.folder(session);
        if disk::if_exists(fs::metadata(&folder.path), &folder.path)?.is_none() {
            return Err(JournalError::NotFound(session));
        }
        // A folder without a log belongs to nobody.
        let _lock = if folder.log().is_file() { Some(folder.lock()?) } else { None };
        let _going = self.lock_against_sweep()?;
        self.check_no_forks(session)?;
        let dying = self.sessions.path().join(format!("{DELETED_SESSION_PREFIX}{session}"));
        // An owner that was killed has left it.
        disk::remove_file_if_exists(&folder.owner_file())?;
        fs::rename(&folder.path, &dying).at(&folder.path)?;
        self.finish_deletion(session, &dying)
    }

    fn blob_loader(&self, session: SessionId) -> JournalResult<JournalBlobLoader> {
        let blobs = self.lineage(session)?.blobs();
        Ok(Box::new(move |blob| blobs.load(blob)))
    }
}
