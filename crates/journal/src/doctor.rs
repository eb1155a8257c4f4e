//! Looking a journal over, and mending what can be mended.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::PathBuf;

use helve_protocol::{BlobId, EventBody, Seq, SessionId};

use crate::error::JournalIoExt;
use crate::file_journal::{DELETED_SESSION_PREFIX, FileJournal, NEW_SESSION_PREFIX};
use crate::lineage::{read_rest, visit_all};
use crate::{Journal, JournalError, JournalResult, LogDamage, LogFlaw, LogReadEnd, disk};

/// Something about a session that a person should know.
#[derive(Debug)]
pub enum JournalFinding {
    /// The log can be read up to here.
    Damaged(LogDamage),
    /// The session's own events are whole, but some that it has from its parent can't be read.
    ParentDamaged(LogDamage),
    /// The last line is not complete. Harmless: it was never acknowledged.
    Torn {
        /// How many bytes of it there are.
        bytes: u64,
    },
    /// Events of another version, which this one keeps but can't show.
    UnknownEvents {
        /// How many there are.
        count: u64,
    },
    /// A payload is missing or damaged.
    Blob(JournalError),
    /// Nothing can be read at all.
    Unreadable(JournalError),
}

/// What was done to a damaged session.
#[derive(Debug)]
pub struct LogRepair {
    /// Where the file as it was is kept.
    pub kept_as: PathBuf,
    /// How many bytes of the log are no longer part of the session.
    pub lost_bytes: u64,
}

impl FileJournal {
    /// Reads all of a session, payloads included, and tells what is wrong with it.
    pub fn examine(&self, session: SessionId) -> Vec<JournalFinding> {
        let mut blobs = Vec::new();
        let mut unknown = 0;
        let read = self.read(
            session,
            Seq::START,
            &mut visit_all(|event| {
                unknown += u64::from(matches!(event.body, EventBody::Unknown(_)));
                blobs.extend(event.body.blobs());
            }),
        );
        let own_log = self.sessions.folder(session).log();
        let mut findings = Vec::new();
        match read {
            Ok(LogReadEnd::Whole | LogReadEnd::Stopped) => {}
            Ok(LogReadEnd::Torn { bytes }) => findings.push(JournalFinding::Torn { bytes }),
            Ok(LogReadEnd::Damaged(damage)) if damage.path == own_log && damage.flaw != LogFlaw::Parent => {
                findings.push(JournalFinding::Damaged(damage));
            }
            Ok(LogReadEnd::Damaged(damage)) => findings.push(JournalFinding::ParentDamaged(damage)),
            Err(error) => findings.push(JournalFinding::Unreadable(error)),
        }
        if unknown > 0 {
            findings.push(JournalFinding::UnknownEvents { count: unknown });
        }
        blobs.sort_unstable();
        blobs.dedup();
        findings.extend(self.unreadable(session, &blobs).map(JournalFinding::Blob));
        findings
    }

    /// What is wrong with each of a session's payloads that can't be had.
    fn unreadable(&self, session: SessionId, blobs: &[BlobId]) -> impl Iterator<Item = JournalError> {
        let kept = self.lineage(session).map(|lineage| lineage.blobs());
        blobs.iter().filter_map(move |blob| kept.as_ref().ok()?.load(*blob).err())
    }

    /// Sets a damaged log aside, whole, and goes on with the part of it that can be trusted. `None` if there is nothing to
    /// mend here: the log is fine, or what is wrong is its header, its parent, or an event that is just not ours.
    pub fn repair(&self, session: SessionId) -> JournalResult<Option<LogRepair>> {
        let folder = self.sessions.folder(session);
        let path = folder.log();
        let log = folder.lock()?;
        let told = read_rest(&mut folder.reader()?, &mut visit_all(|_| {}))?;
        let LogReadEnd::Damaged(damage) = told.ending else { return Ok(None) };
        if !matches!(damage.flaw, LogFlaw::Form | LogFlaw::Hash | LogFlaw::Length) {
            return Ok(None);
        }
        let length = log.metadata().at(&path)?.len();
        let mended = path.with_file_name("log.jsonl.mended");
        disk::remove_file_if_exists(&mended)?;
        let mut copy = disk::create_file(&mended)?;
        let mut trusted = File::open(&path).at(&path)?.take(told.end.length);
        io::copy(&mut trusted, &mut copy).and_then(|_| copy.sync_all()).at(&mended)?;
        let kept_as = disk::unused_name(&folder.path, "log.jsonl.damaged-");
        fs::hard_link(&path, &kept_as).at(&kept_as)?;
        fs::rename(&mended, &path).at(&path)?;
        disk::sync_folder(&folder.path)?;
        Ok(Some(LogRepair { kept_as, lost_bytes: length.saturating_sub(told.end.length) }))
    }

    /// Removes what was left by processes that were killed while they created or deleted a session. Gives how many. While
    /// sessions come and go, nothing is swept.
    pub fn sweep(&self) -> JournalResult<usize> {
        let left =
            |name: &String| name.starts_with(NEW_SESSION_PREFIX) || name.starts_with(DELETED_SESSION_PREFIX);
        if !self.sessions.names()?.iter().any(left) {
            return Ok(0);
        }
        let (lock, _) = self.open_sweep_lock()?;
        if lock.try_lock().is_err() {
            return Ok(0);
        }
        let mut swept = 0;
        for name in self.sessions.names()?.iter().filter(|name| left(name)) {
            let path = self.sessions.path().join(name);
            match name.strip_prefix(DELETED_SESSION_PREFIX).map(str::parse) {
                // One with forks comes back instead.
                Some(Ok(session)) => swept += usize::from(self.finish_deletion(session, &path).is_ok()),
                _ => {
                    fs::remove_dir_all(&path).at(&path)?;
                    swept += 1;
                }
            }
        }
        Ok(swept)
    }
}
