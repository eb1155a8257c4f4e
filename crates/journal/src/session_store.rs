//! All sessions on disk: a folder per session, in one folder for all.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use helve_protocol::SessionId;

use crate::error::JournalIoExt;
use crate::session_folder::SessionFolder;
use crate::{JournalError, JournalResult, disk};

/// Looking at a file means waiting for the system, so some look at once.
const STAT_THREADS: usize = 4;

/// The folder that the folders of all sessions are in.
pub(crate) struct SessionStore {
    path: PathBuf,
}

/// What tells whether a log has changed since somebody looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogStamp {
    pub(crate) size: u64,
    pub(crate) modified_ns: u64,
}

impl SessionStore {
    /// Nothing is touched before it is needed.
    pub(crate) fn new(path: PathBuf) -> SessionStore {
        SessionStore { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the files of a session are, whether it exists or not.
    pub(crate) fn folder(&self, session: SessionId) -> SessionFolder {
        SessionFolder { path: self.path.join(session.to_string()), session }
    }

    /// The sessions that are there, in no order.
    pub(crate) fn ids(&self) -> JournalResult<Vec<SessionId>> {
        let names = self.names()?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }

    /// The names of everything in the folder of all sessions, sessions or not.
    pub(crate) fn names(&self) -> JournalResult<Vec<String>> {
        let folder = &self.path;
        let Some(entries) = disk::if_exists(fs::read_dir(folder), folder)? else { return Ok(Vec::new()) };
        let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
        names.collect::<io::Result<_>>().at(folder)
    }

    /// The sessions with the stamps of their logs. For every list thousands of them may be looked at, so the way to their
    /// folder is walked once.
    pub(crate) fn stamps(&self) -> JournalResult<Vec<(SessionId, LogStamp)>> {
        let path = &self.path;
        if disk::if_exists(fs::metadata(path), path)?.is_none() {
            return Ok(Vec::new());
        }
        let folder = File::options().read(true).custom_flags(directory()).open(path).at(path)?;
        let sessions = self.ids()?;
        let look = |part: &[SessionId]| -> Vec<(SessionId, LogStamp)> {
            part.iter().filter_map(|session| Some((*session, stat_log(&folder, *session)?))).collect()
        };
        let looked = std::thread::scope(|scope| {
            let parts = sessions.chunks(sessions.len().div_ceil(STAT_THREADS).max(1));
            let lookers: Vec<_> = parts.map(|part| scope.spawn(move || look(part))).collect();
            lookers.into_iter().flat_map(|looker| looker.join().unwrap_or_default()).collect()
        });
        Ok(looked)
    }

    /// Those who live on a session's events. A fork whose header is damaged can't be read any more, with or without its
    /// parent; one that can't be looked at for another reason may well be one, so that is an error.
    pub(crate) fn forks(&self, session: SessionId) -> JournalResult<Vec<SessionId>> {
        let mut forks = Vec::new();
        for other in self.ids()? {
            match self.folder(other).header() {
                Ok(header) if header.forked_from.is_some_and(|point| point.session == session) => {
                    forks.push(other)
                }
                Ok(_) | Err(JournalError::NotFound(_) | JournalError::Damaged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(forks)
    }
}

fn directory() -> i32 {
    i32::try_from(rustix::fs::OFlags::DIRECTORY.union(rustix::fs::OFlags::NONBLOCK).bits()).unwrap_or(0)
}

fn stat_log(sessions: &File, session: SessionId) -> Option<LogStamp> {
    let log =
        rustix::fs::statat(sessions, format!("{session}/log.jsonl"), rustix::fs::AtFlags::empty()).ok()?;
    // The two have other types on other platforms; these hold them all.
    let modified_ns = i128::from(log.st_mtime) * 1_000_000_000 + i128::from(log.st_mtime_nsec);
    let modified_ns = u64::try_from(modified_ns).ok()?;
    Some(LogStamp { size: u64::try_from(log.st_size).ok()?, modified_ns })
}
