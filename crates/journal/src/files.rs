//! The journal on disk: a folder per session, in one folder for all.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use helve_protocol::{BlobId, Event, Seq, SessionId, SessionSummary};

use crate::blobs::FileBlobs;
use crate::catalogue::Catalogue;
use crate::error::At;
use crate::line::{self, ForkPoint, Header, Tip};
use crate::log::{self, FileLog, LogEnd, SessionFolder};
use crate::reader::{LogReader, Next};
use crate::{Ending, Error, Flaw, Journal, Result, SessionLog, disk};

/// Names that begin like this are not sessions: one that is being made, and one that is being removed.
pub(crate) const UNBORN: &str = ".new-";
pub(crate) const DYING: &str = ".deleted-";

/// A fork of a fork of a fork … is followed this far.
const MAX_GENERATIONS: usize = 1000;

/// Keeps sessions below one folder: `sessions/ID/log.jsonl`, the blobs beside it, and `catalogue.db`.
pub struct FileJournal {
    root: PathBuf,
    catalogue: Mutex<Option<Catalogue>>,
}

/// A session or one of its ancestors, and how far it counts.
pub(crate) struct Generation {
    pub(crate) reader: LogReader,
    folder: SessionFolder,
    until: Option<ForkPoint>,
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

    /// The sessions that are there, with the sizes of their logs. Thousands of them are looked at for every list, so the
    /// way to the folder is walked once.
    pub(crate) fn sizes(&self) -> Result<Vec<(SessionId, u64)>> {
        let path = self.sessions_folder();
        let Some(folder) = disk::if_exists(fs::File::open(&path), &path)? else { return Ok(Vec::new()) };
        let size = |session: &SessionId| {
            let log =
                rustix::fs::statat(&folder, format!("{session}/log.jsonl"), rustix::fs::AtFlags::empty())
                    .ok()?;
            u64::try_from(log.st_size).ok()
        };
        Ok(self.sessions()?.into_iter().filter_map(|session| Some((session, size(&session)?))).collect())
    }

    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let folder = self.sessions_folder();
        let Some(entries) = disk::if_exists(fs::read_dir(&folder), &folder)? else { return Ok(Vec::new()) };
        let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
        names.collect::<io::Result<_>>().at(&folder)
    }

    /// Those who live on a session's events.
    pub fn forks(&self, session: SessionId) -> Result<Vec<SessionId>> {
        let is_fork = |other: &SessionId| {
            let reader = self.folder(*other).reader();
            reader.is_ok_and(|reader| reader.header.forked_from.is_some_and(|point| point.session == session))
        };
        Ok(self.sessions()?.into_iter().filter(is_fork).collect())
    }

    fn check_no_forks(&self, session: SessionId) -> Result<()> {
        let forks = self.forks(session)?;
        if forks.is_empty() { Ok(()) } else { Err(Error::HasForks { session, forks }) }
    }

    /// Removes a session that nobody can see any more, or brings it back if a fork was made in the meantime.
    pub(crate) fn bury(&self, session: SessionId, dying: &Path) -> Result<()> {
        if let Err(error) = self.check_no_forks(session) {
            let folder = self.folder(session).path;
            fs::rename(dying, &folder).at(&folder)?;
            return Err(error);
        }
        disk::sync_folder(&self.sessions_folder())?;
        fs::remove_dir_all(dying).at(dying)
    }

    /// A session and its ancestors, the oldest first.
    pub(crate) fn lineage(&self, session: SessionId) -> Result<Vec<Generation>> {
        let mut generations: Vec<Generation> = Vec::new();
        let mut next = Some((session, None));
        while let Some((id, until)) = next {
            let folder = self.folder(id);
            let reader = match (folder.reader(), generations.last()) {
                (Err(Error::NotFound(_)), Some(child)) => return Err(orphan(session, &child.reader)),
                (reader, _) => reader?,
            };
            let point = reader.header.forked_from;
            generations.push(Generation { reader, folder, until });
            if let Some(cut) = generations.last().filter(|_| generations.len() > MAX_GENERATIONS) {
                return Err(orphan(session, &cut.reader));
            }
            next = point.map(|point| (point.session, Some(point)));
        }
        generations.reverse();
        Ok(generations)
    }

    fn blobs_of(&self, lineage: &[Generation]) -> FileBlobs {
        let mut folders = lineage.iter().rev().map(|generation| generation.folder.blobs());
        let own = folders.next().unwrap_or_default();
        FileBlobs::new(own, folders.collect())
    }

    /// Makes a session's folder under another name first, so that it is there as a whole or not at all.
    fn create_with(&self, header: &Header) -> Result<FileLog> {
        let session = header.session;
        let sessions = self.sessions_folder();
        let unborn = sessions.join(format!("{UNBORN}{}-{session}", std::process::id()));
        // Whoever left it had our process id, so it is dead.
        disk::if_exists(fs::remove_dir_all(&unborn), &unborn)?;
        let unborn = SessionFolder { path: unborn, session };
        disk::create_folder(&unborn.path)?;
        let (file, end) = log::create(&unborn, header).inspect_err(|_| {
            let _ = fs::remove_dir_all(&unborn.path);
        })?;
        disk::sync_folder(&unborn.path)?;
        let folder = self.folder(session);
        if let Err(error) = fs::rename(&unborn.path, &folder.path) {
            let _ = fs::remove_dir_all(&unborn.path);
            let taken =
                matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists);
            return Err(if taken { Error::Exists(session) } else { Error::io(&folder.path, error) });
        }
        disk::sync_folder(&sessions)?;
        disk::sync_folder(&self.root)?;
        folder.sign();
        let lineage = self.lineage(session)?;
        Ok(FileLog::new(&folder, file, end, Arc::new(self.blobs_of(&lineage))))
    }

    /// The fork point at an event: in the session itself, or in the ancestor that it has it from.
    fn fork_point(&self, session: SessionId, at: Seq) -> Result<ForkPoint> {
        for generation in self.lineage(session)?.into_iter().rev() {
            let inherited = generation.reader.header.forked_from;
            if let Some(point) = inherited.filter(|point| at <= point.seq) {
                if point.seq == at {
                    return Ok(point);
                }
                continue;
            }
            let path = generation.folder.log();
            let found = find_event(&path, generation.reader.offset, at)?;
            let tip = found.map_err(|last| Error::NoSuchEvent { session, seq: at, last })?;
            return Ok(ForkPoint { session: generation.folder.session, seq: at, tip });
        }
        Err(Error::NoSuchEvent { session, seq: at, last: Seq::START })
    }

    /// Runs `work` on the catalogue, on a new one if the old one turns out to be useless.
    fn with_catalogue<T>(&self, mut work: impl FnMut(&mut Catalogue) -> Result<T>) -> Result<T> {
        let mut slot = self.catalogue.lock().unwrap_or_else(PoisonError::into_inner);
        let mut catalogue = match slot.take() {
            Some(catalogue) => catalogue,
            None => Catalogue::open(&self.catalogue_path())?,
        };
        let result = match work(&mut catalogue) {
            Err(Error::Catalogue(cause)) => {
                tracing::warn!(name: "catalogue.remade", %cause);
                drop(catalogue);
                catalogue = Catalogue::anew(&self.catalogue_path())?;
                work(&mut catalogue)
            }
            result => result,
        };
        *slot = Some(catalogue);
        result
    }

    /// Makes the catalogue anew from the logs.
    pub fn rebuild_catalogue(&self) -> Result<usize> {
        *self.catalogue.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Catalogue::anew(&self.catalogue_path())?);
        self.list().map(|sessions| sessions.len())
    }

    /// Whether the list of sessions can be used as it is; only for telling people.
    pub fn check_catalogue(&self) -> Result<()> {
        Catalogue::check(&self.catalogue_path())
    }

    fn end_of(
        &self,
        folder: &SessionFolder,
        mut file: &fs::File,
        reader: LogReader,
        ending: Told,
    ) -> Result<LogEnd> {
        let path = folder.log();
        match ending {
            Told::Ended(Ending::Whole) => {}
            Told::Ended(Ending::Torn { bytes }) => {
                tracing::warn!(name: "log.torn", session = %folder.session, bytes);
                set_tail_aside(&path, reader.offset)?;
                file.set_len(reader.offset).and_then(|()| file.sync_all()).at(&path)?;
            }
            Told::Unfinished => file.write_all(b"\n").at(&path)?,
            Told::Ended(Ending::Damaged(damage)) => {
                return Err(Error::Damaged { session: folder.session, damage });
            }
        }
        Ok(LogEnd { length: reader.offset, tip: reader.tip, last: reader.last })
    }
}

/// How the telling of a session's events ended.
pub(crate) enum Told {
    Ended(Ending),
    /// Everything was told, but the last line lacks its newline.
    Unfinished,
}

impl Told {
    pub(crate) fn ending(self) -> Ending {
        match self {
            Told::Ended(ending) => ending,
            Told::Unfinished => Ending::Whole,
        }
    }
}

impl Generation {
    /// A session's own events only.
    pub(crate) fn own(reader: LogReader, folder: SessionFolder) -> Generation {
        Generation { reader, folder, until: None }
    }

    /// Tells the events up to where this generation stops to count.
    pub(crate) fn tell(&mut self, each: &mut dyn FnMut(Event)) -> Result<Told> {
        let reader = &mut self.reader;
        while self.until.is_none_or(|until| reader.last < until.seq) {
            match (reader.next()?, self.until) {
                (Next::Event(event), _) => each(event),
                (Next::Unfinished(event), None) => {
                    each(event);
                    return Ok(Told::Unfinished);
                }
                (Next::End(ending), None) => return Ok(Told::Ended(ending)),
                (Next::End(Ending::Damaged(damage)), Some(_)) => {
                    return Ok(Told::Ended(Ending::Damaged(damage)));
                }
                (Next::Unfinished(event), Some(until)) if event.seq == until.seq => each(event),
                _ => return Ok(Told::Ended(Ending::Damaged(reader.damage(Flaw::Parent)))),
            }
        }
        let is_the_same = self.until.is_none_or(|until| until.tip == reader.tip);
        let ending = if is_the_same { Ending::Whole } else { Ending::Damaged(reader.damage(Flaw::Parent)) };
        Ok(Told::Ended(ending))
    }
}

/// Tells the events of a session and its ancestors, in order.
pub(crate) fn tell(lineage: &mut [Generation], each: &mut dyn FnMut(Event)) -> Result<Told> {
    let mut told = Told::Ended(Ending::Whole);
    for generation in lineage {
        told = generation.tell(each)?;
        if matches!(told, Told::Ended(Ending::Damaged(_))) {
            break;
        }
    }
    Ok(told)
}

fn orphan(session: SessionId, reader: &LogReader) -> Error {
    Error::Damaged { session, damage: reader.damage(Flaw::Parent) }
}

/// Keeps what follows `offset` in a file of its own. It was never acknowledged, but nobody knows who cut the log.
fn set_tail_aside(log: &Path, offset: u64) -> Result<()> {
    let file = fs::File::open(log).at(log)?;
    let length = file.metadata().at(log)?.len().saturating_sub(offset);
    let mut tail = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(&mut tail, offset).at(log)?;
    let aside = log.with_file_name(format!("torn-{offset}"));
    disk::remove_file_if_exists(&aside)?;
    disk::create_file(&aside)?.write_all(&tail).at(&aside)
}

/// The hash of a log at an event, or the last event there is. Looks at few lines: their numbers rise by one, so the
/// place can be bracketed.
fn find_event(path: &Path, first_line: u64, at: Seq) -> Result<std::result::Result<Tip, Seq>> {
    let file = fs::File::open(path).at(path)?;
    let mut low = first_line;
    let mut high = file.metadata().at(path)?.len();
    let mut last = Seq::START;
    while low < high {
        let middle = low + (high - low) / 2;
        let start = if middle == low { low } else { line_start(&file, middle, low).at(path)? };
        let Some(text) = read_line(&file, start, high).at(path)? else {
            // The last line is not complete, so it does not count.
            high = start;
            continue;
        };
        let after = start + text.len() as u64 + 1;
        match (line::seq_of(&text), line::unseal(&text, Tip::NONE)) {
            (Some(seq), Some((tip, _))) if seq == at => return Ok(Ok(tip)),
            (Some(seq), Some(_)) if seq < at => {
                last = last.max(seq);
                low = after;
            }
            // Later, or damaged: what counts is before it.
            _ => high = start,
        }
    }
    Ok(Err(last))
}

/// Where the line that covers `position` begins, not before `floor`.
fn line_start(file: &fs::File, position: u64, floor: u64) -> io::Result<u64> {
    let mut end = position;
    while end > floor {
        let start = end.saturating_sub(4096).max(floor);
        let mut chunk = vec![0; usize::try_from(end - start).unwrap_or(0)];
        file.read_exact_at(&mut chunk, start)?;
        if let Some(newline) = chunk.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + newline as u64 + 1);
        }
        end = start;
    }
    Ok(floor)
}

/// The line that begins at `start` without its newline; `None` if it has no end before `limit`.
fn read_line(file: &fs::File, start: u64, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    let mut position = start;
    while position < limit {
        let mut chunk = vec![0; usize::try_from((limit - position).min(4096)).unwrap_or(0)];
        file.read_exact_at(&mut chunk, position)?;
        if let Some(newline) = chunk.iter().position(|byte| *byte == b'\n') {
            text.extend(chunk.into_iter().take(newline));
            return Ok(Some(text));
        }
        position += chunk.len() as u64;
        text.extend(chunk);
    }
    Ok(None)
}

impl Journal for FileJournal {
    fn create(&self, session: SessionId) -> Result<Box<dyn SessionLog>> {
        disk::create_folder(&self.sessions_folder())?;
        Ok(Box::new(self.create_with(&Header::new(session, None))?))
    }

    fn open(&self, session: SessionId, each: &mut dyn FnMut(Event)) -> Result<Box<dyn SessionLog>> {
        let folder = self.folder(session);
        let file = folder.lock()?;
        let mut lineage = self.lineage(session)?;
        let blobs = self.blobs_of(&lineage);
        let told = tell(&mut lineage, each)?;
        let Some(own) = lineage.pop() else { return Err(Error::NotFound(session)) };
        let end = self.end_of(&folder, &file, own.reader, told)?;
        blobs.tidy()?;
        folder.sign();
        Ok(Box::new(FileLog::new(&folder, file, end, Arc::new(blobs))))
    }

    fn read(&self, session: SessionId, each: &mut dyn FnMut(Event)) -> Result<Ending> {
        let mut lineage = self.lineage(session)?;
        tell(&mut lineage, each).map(Told::ending)
    }

    fn list(&self) -> Result<Vec<SessionSummary>> {
        self.with_catalogue(|catalogue| {
            catalogue.refresh(self)?;
            catalogue.summaries()
        })
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
        if !folder.path.exists() {
            return Err(Error::NotFound(session));
        }
        // A folder without a log belongs to nobody.
        let _lock = if folder.log().exists() { Some(folder.lock()?) } else { None };
        self.check_no_forks(session)?;
        let dying = self.sessions_folder().join(format!("{DYING}{session}"));
        fs::rename(&folder.path, &dying).at(&folder.path)?;
        self.bury(session, &dying)
    }

    fn blob(&self, session: SessionId, blob: BlobId) -> Result<Vec<u8>> {
        let lineage = self.lineage(session)?;
        self.blobs_of(&lineage).load(blob)
    }
}
