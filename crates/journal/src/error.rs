//! What can go wrong, each with what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use helve_protocol::{BlobId, Seq, SessionId};

pub type JournalResult<T, E = JournalError> = Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("there is no session {0}")]
    NotFound(SessionId),
    #[error("session {0} exists already")]
    Exists(SessionId),
    #[error("session {session} is open in another process{}", owner.map(|pid| format!(" ({pid})")).unwrap_or_default())]
    InUse { session: SessionId, owner: Option<u32> },
    #[error("session {session} has no event {seq}; its last is {last}")]
    NoSuchEvent { session: SessionId, seq: Seq, last: Seq },
    #[error("session {session} has {} that live on its events", match forks.len() { 1 => "a fork".to_owned(), n => format!("{n} forks") })]
    HasForks { session: SessionId, forks: Vec<SessionId> },
    #[error("the log of session {session} is damaged: {damage}")]
    Damaged { session: SessionId, damage: LogDamage },
    #[error(
        "the log of session {session} has format {found}; this version of Helve reads up to {}",
        crate::log_line::LOG_VERSION
    )]
    ForeignVersion { session: SessionId, found: u64 },
    #[error("the disk is full: {}", path.display())]
    NoSpace { path: PathBuf },
    #[error("the folder is read-only: {}", path.display())]
    ReadOnly { path: PathBuf },
    #[error("no permission: {}", path.display())]
    PermissionDenied { path: PathBuf },
    #[error("it was removed while in use: {}", path.display())]
    Gone { path: PathBuf },
    #[error("an earlier failure left the log of session {session} in doubt: {cause}")]
    InDoubt { session: SessionId, cause: String },
    #[error("event {found} can't follow event {last} of session {session}")]
    OutOfOrder { session: SessionId, last: Seq, found: Seq },
    #[error("a {kind} event is not one to store in session {session}")]
    NotStorable { session: SessionId, kind: String },
    #[error("{what} of {bytes} bytes is above the limit of {limit}")]
    TooLarge { what: &'static str, bytes: usize, limit: usize },
    #[error("{what} is nested deeper than {limit}")]
    TooDeep { what: &'static str, limit: usize },
    #[error("blob {0} is missing")]
    BlobMissing(BlobId),
    #[error("blob {0} is damaged")]
    BlobDamaged(BlobId),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl JournalError {
    /// What a person can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            JournalError::NotFound(_) => "`helve sessions list` shows those that exist.",
            JournalError::Exists(_) => "Choose another id.",
            JournalError::InUse { .. } => "Close it there first, or work on a fork of it.",
            JournalError::NoSuchEvent { .. } => "`helve sessions show ID` shows its events.",
            JournalError::HasForks { .. } => "Delete the forks too: `helve sessions delete --forks ID`.",
            JournalError::Damaged { damage, .. } if damage.flaw == LogFlaw::Header => {
                "Nothing of it can be trusted. Take the log from a backup, or delete the session: `helve sessions delete ID`."
            }
            JournalError::Damaged { damage, .. } if damage.flaw == LogFlaw::Parent => {
                "`helve sessions show ID` shows what can be read. Going on needs the session that it was forked from."
            }
            JournalError::Damaged { .. } => {
                "`helve sessions show ID` shows what can be read; `helve doctor --repair` sets the damaged file aside and \
                 keeps that part."
            }
            JournalError::ForeignVersion { .. } => "Use the newer version of Helve that wrote it.",
            JournalError::NoSpace { .. } => "Free some space; nothing that was acknowledged is lost.",
            JournalError::ReadOnly { .. } => "Mount it writable, or set HELVE_HOME to a folder that is.",
            JournalError::PermissionDenied { .. } => {
                "Give yourself access to it, or set HELVE_HOME to a folder of yours."
            }
            JournalError::Gone { .. } => {
                "Check the path. If a folder was removed while Helve ran, what was in it is gone: start a new session."
            }
            JournalError::InDoubt { .. } => {
                "Open the session again. What was said since the last sync may not survive a power cut."
            }
            JournalError::OutOfOrder { .. } | JournalError::NotStorable { .. } => {
                "This is a mistake in Helve; please report it."
            }
            JournalError::TooLarge { .. } | JournalError::TooDeep { .. } => "Keep a part of it.",
            JournalError::BlobMissing(_) | JournalError::BlobDamaged(_) => {
                "The events can be read; this payload can't."
            }
            JournalError::Io { .. } => "Check the disk and the folder.",
        }
    }

    /// Sorts what the system said about a path into what a person can act on.
    pub(crate) fn io(path: &Path, source: io::Error) -> JournalError {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => JournalError::NoSpace { path },
            io::ErrorKind::ReadOnlyFilesystem => JournalError::ReadOnly { path },
            io::ErrorKind::PermissionDenied => JournalError::PermissionDenied { path },
            io::ErrorKind::NotFound => JournalError::Gone { path },
            _ => JournalError::Io { path, source },
        }
    }
}

/// Adds the path to what the system said.
pub(crate) trait JournalIoExt<T> {
    fn at(self, path: &Path) -> JournalResult<T>;
}

impl<T> JournalIoExt<T> for io::Result<T> {
    fn at(self, path: &Path) -> JournalResult<T> {
        self.map_err(|source| JournalError::io(path, source))
    }
}

/// Where a log stops making sense, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{flaw} at byte {offset} of {} (after event {after})", path.display())]
pub struct LogDamage {
    pub path: PathBuf,
    /// Where the first bad line begins.
    pub offset: u64,
    /// The last event that can be trusted.
    pub after: Seq,
    pub flaw: LogFlaw,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogFlaw {
    #[error("a first line that is not one of a session's log")]
    Header,
    #[error("a line that is not one of ours")]
    Form,
    #[error("a line that was changed after it was written")]
    Hash,
    #[error("an event that can't be read")]
    Event,
    #[error("an event out of its order")]
    Order,
    #[error("an event of another session")]
    Session,
    #[error("a line without an end")]
    Length,
    #[error("history that is not its parent's")]
    Parent,
}
