//! The journal on disk: a folder per session, in one folder for all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use helve_protocol::{Event, Seq, SessionId, SessionSummary};

use crate::blobs::FileBlobs;
use crate::catalogue::Catalogue;
use crate::disk::Locked;
use crate::error::At;
use crate::line::{ForkPoint, Header};
use crate::lineage::{LastLine, Lineage, MAX_GENERATIONS, Told, to_the_end};
use crate::log::{self, FileLog, LogEnd, SessionFolder};
use crate::{Each, Ending, Error, Journal, Payloads, Result, SessionLog, disk};

/// Names that begin like this are not sessions: one that is being made, and one that is being removed.
pub(crate) const UNBORN: &str = ".new-";
pub(crate) const DYING: &str = ".deleted-";

/// Looking at a file means waiting for the system, so some look at once.
const LOOKERS: usize = 4;

/// Keeps sessions below one folder: `sessions/ID/log.jsonl`, the blobs beside it, and `catalogue.db`.
pub struct FileJournal {
    root: PathBuf,
    catalogue: Mutex<Option<Catalogue>>,
}

/// What tells whether a log has changed since somebody looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) size: u64,
    pub(crate) modified_ns: u64,
}

impl FileJournal {
    /// Nothing is touched before it is needed.
    pub fn new(root: impl Into<PathBuf>) -> FileJournal {
        FileJournal { root: root.into(), catalogue: Mutex::new(None) }
    }

    pub(crate) fn sessions_folder(&self) -> PathBuf {
        self.root.join("sessions")
    }

    /// The file with the list of sessions. It may be removed at any time.
    pub fn catalogue_path(&self) -> PathBuf {
        self.root.join("catalogue.db")
    }

    pub(crate) fn folder(&self, session: SessionId) -> SessionFolder {
        SessionFolder { path: self.sessions_folder().join(session.to_string()), session }
    }

    /// The sessions that are there, in no order.
    pub fn sessions(&self) -> Result<Vec<SessionId>> {
        let names = self.names()?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }

    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let folder = self.sessions_folder();
        let Some(entries) = disk::if_exists(fs::read_dir(&folder), &folder)? else { return Ok(Vec::new()) };
        let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
        names.collect::<io::Result<_>>().at(&folder)
    }

    /// The sessions with the stamps of their logs. For every list thousands of them may be looked at, so the way to their
    /// folder is walked once.
    pub(crate) fn stamps(&self) -> Result<Vec<(SessionId, Stamp)>> {
        let path = self.sessions_folder();
        if disk::if_exists(fs::metadata(&path), &path)?.is_none() {
            return Ok(Vec::new());
        }
        let folder = File::options().read(true).custom_flags(directory()).open(&path).at(&path)?;
        let sessions = self.sessions()?;
        let look = |part: &[SessionId]| -> Vec<(SessionId, Stamp)> {
            part.iter().filter_map(|session| Some((*session, stamp(&folder, *session)?))).collect()
        };
        let looked = std::thread::scope(|scope| {
            let parts = sessions.chunks(sessions.len().div_ceil(LOOKERS).max(1));
            let lookers: Vec<_> = parts.map(|part| scope.spawn(move || look(part))).collect();
            lookers.into_iter().flat_map(|looker| looker.join().unwrap_or_default()).collect()
        });
        Ok(looked)
    }

    /// Those who live on a session's events. A fork whose header is damaged can't be read any more, with or without its
    /// parent; one that can't be looked at for another reason may well be one, so that is an error.
    pub fn forks(&self, session: SessionId) -> Result<Vec<SessionId>> {
        let mut forks = Vec::new();
        for other in self.sessions()? {
            match self.folder(other).header() {
                Ok(header) if header.forked_from.is_some_and(|point| point.session == session) => {
                    forks.push(other)
                }
                Ok(_) | Err(Error::NotFound(_) | Error::Damaged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(forks)
    }

    fn check_no_forks(&self, session: SessionId) -> Result<()> {
        let forks = self.forks(session)?;
        if forks.is_empty() { Ok(()) } else { Err(Error::HasForks { session, forks }) }
    }

    /// Held while sessions come and go, so that the sweeper does not take what is on its way for what was left.
    fn coming_and_going(&self) -> Result<File> {
        let (file, path) = self.sweepers_lock()?;
        file.lock_shared().at(&path)?;
        Ok(file)
    }

    pub(crate) fn sweepers_lock(&self) -> Result<(File, PathBuf)> {
        let path = self.sessions_folder().join(".lock");
        let file = disk::open_or_create(&path)?;
        Ok((file, path))
    }

    /// Removes a session that nobody can see any more, or brings it back if a fork was made in the meantime.
    pub(crate) fn bury(&self, session: SessionId, dying: &Path) -> Result<()> {
        let sessions = self.sessions_folder();
        if let Err(error) = self.check_no_forks(session) {
            let folder = self.folder(session).path;
            fs::rename(dying, &folder).at(&folder)?;
            disk::sync_folder(&sessions)?;
            return Err(error);
        }
        disk::sync_folder(&sessions)?;
        fs::remove_dir_all(dying).at(dying)
    }

    pub(crate) fn lineage(&self, session: SessionId) -> Result<Lineage> {
        Lineage::of(self, session)
    }

    /// Makes a session's folder under another name first, so that it is there as a whole or not at all.
    fn create_with(&self, header: &Header) -> Result<(Locked, LogEnd)> {
        let session = header.session;
        let sessions = self.sessions_folder();
        disk::create_folder(&sessions)?;
        let _coming = self.coming_and_going()?;
        let unborn = sessions.join(format!("{UNBORN}{}-{session}", std::process::id()));
        // Whoever left it had our process id, so it is dead.
        disk::if_exists(fs::remove_dir_all(&unborn), &unborn)?;
        let unborn = SessionFolder { path: unborn, session };
        let created = self.give_birth(&unborn, header);
        if created.is_err() {
            let _ = fs::remove_dir_all(&unborn.path);
        }
        created
    }

    fn give_birth(&self, unborn: &SessionFolder, header: &Header) -> Result<(Locked, LogEnd)> {
        disk::create_folder(&unborn.path)?;
        let created = log::create(unborn, header)?;
        disk::sync_folder(&unborn.path)?;
        let folder = self.folder(header.session);
        fs::rename(&unborn.path, &folder.path).map_err(|error| match error.kind() {
            io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists => Error::Exists(header.session),
            _ => Error::io(&folder.path, error),
        })?;
        disk::sync_folder(&self.sessions_folder())?;
        Ok(created)
    }

    /// The fork point at an event: in the session itself, or in the ancestor that it has it from.
    fn fork_point(&self, session: SessionId, at: Seq) -> Result<ForkPoint> {
        let lineage = self.lineage(session)?;
        if lineage.generations() >= MAX_GENERATIONS {
            return Err(Error::TooDeep { what: "a fork of forks", limit: MAX_GENERATIONS });
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
        Err(Error::NoSuchEvent { session, seq: at, last: Seq::START })
    }

    fn with_catalogue<T>(&self, work: impl FnOnce(&mut Catalogue) -> T) -> T {
        let mut slot = self.catalogue.lock().unwrap_or_else(PoisonError::into_inner);
        work(slot.get_or_insert_with(|| Catalogue::open(&self.catalogue_path())))
    }

    /// Makes the catalogue anew from the logs. Gives the number of sessions.
    pub fn rebuild_catalogue(&self) -> Result<usize> {
        self.with_catalogue(|catalogue| {
            catalogue.replace();
            catalogue.list(self).map(|sessions| sessions.len())
        })
    }

    /// What is wrong with the catalogue, if anything. It is made anew when it is needed.
    pub fn check_catalogue(&self) -> std::result::Result<(), String> {
        Catalogue::check(&self.catalogue_path())
    }

    /// What was left at the end of a log that is opened again.
    fn tidy_end(folder: &SessionFolder, mut file: &File, told: Told) -> Result<LogEnd> {
        let path = folder.log();
        match (told.ending, told.last_line) {
            (Ending::Damaged(damage), _) => return Err(Error::Damaged { session: folder.session, damage }),
            (Ending::Torn { bytes }, _) => {
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

fn directory() -> i32 {
    i32::try_from(rustix::fs::OFlags::DIRECTORY.union(rustix::fs::OFlags::NONBLOCK).bits()).unwrap_or(0)
}

fn stamp(sessions: &File, session: SessionId) -> Option<Stamp> {
    let log =
        rustix::fs::statat(sessions, format!("{session}/log.jsonl"), rustix::fs::AtFlags::empty()).ok()?;
    // The two have other types on other platforms; these hold them all.
    let modified_ns = i128::from(log.st_mtime) * 1_000_000_000 + i128::from(log.st_mtime_nsec);
    let modified_ns = u64::try_from(modified_ns).ok()?;
    Some(Stamp { size: u64::try_from(log.st_size).ok()?, modified_ns })
}

impl Journal for FileJournal {
    fn create(&self, session: SessionId) -> Result<Box<dyn SessionLog>> {
        let (file, end) = self.create_with(&Header::new(session, None))?;
        let folder = self.folder(session);
        let blobs = FileBlobs::new(&folder, &[]);
        Ok(Box::new(FileLog::new(&folder, file, end, blobs)))
    }

    fn open(&self, session: SessionId, each: &mut dyn FnMut(Event)) -> Result<Box<dyn SessionLog>> {
        let folder = self.folder(session);
        let file = folder.lock()?;
        let lineage = self.lineage(session)?;
        let told = lineage.tell(&mut to_the_end(each))?;
        let end = FileJournal::tidy_end(&folder, &file, told)?;
        let blobs = lineage.blobs();
        blobs.tidy()?;
        Ok(Box::new(FileLog::new(&folder, file, end, blobs)))
    }

    fn read(&self, session: SessionId, after: Seq, each: Each<'_>) -> Result<Ending> {
        let told = self.lineage(session)?.tell_after(after, &mut |event| {
            if event.seq > after { each(event) } else { ControlFlow::Continue(()) }
        })?;
        Ok(told.ending)
    }

    fn look_back(&self, session: SessionId, before: Seq, bytes: u64) -> Result<Vec<Event>> {
        self.lineage(session)?.look_back(before, bytes)
    }

    fn list(&self) -> Result<Vec<SessionSummary>> {
        self.with_catalogue(|catalogue| catalogue.list(self))
    }

    fn fork(&self, parent: SessionId, at: Seq, child: SessionId) -> Result<()> {
        let point = self.fork_point(parent, at)?;
        self.create_with(&Header::new(child, Some(point)))?;
        // A deletion looks for forks after it has hidden the parent, and we look for the parent after the fork is there:
        // whoever comes second sees the other.
        if self.folder(point.session).log().exists() {
            return Ok(());
        }
        self.delete(child)?;
        Err(Error::NotFound(point.session))
    }

    fn delete(&self, session: SessionId) -> Result<()> {
        let folder = self.folder(session);
        if disk::if_exists(fs::metadata(&folder.path), &folder.path)?.is_none() {
            return Err(Error::NotFound(session));
        }
        // A folder without a log belongs to nobody.
        let _lock = if folder.log().is_file() { Some(folder.lock()?) } else { None };
        let _going = self.coming_and_going()?;
        self.check_no_forks(session)?;
        let dying = self.sessions_folder().join(format!("{DYING}{session}"));
        // An owner that was killed has left it.
        disk::remove_file_if_exists(&folder.signature())?;
        fs::rename(&folder.path, &dying).at(&folder.path)?;
        self.bury(session, &dying)
    }

    fn payloads(&self, session: SessionId) -> Result<Payloads> {
        let blobs = self.lineage(session)?.blobs();
        Ok(Box::new(move |blob| blobs.load(blob)))
    }
}
