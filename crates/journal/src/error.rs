//! What can go wrong, each with what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use helve_protocol::{BlobId, Seq, SessionId};

/// What a journal gives, or why it can't.
pub type JournalResult<T, E = JournalError> = Result<T, E>;

/// Why a journal could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// No session has this id.
    #[error("there is no session {0}")]
    NotFound(SessionId),
    /// A session can't be created twice.
    #[error("session {0} exists already")]
    Exists(SessionId),
    /// Another process owns the session.
    #[error("session {session} is open in another process{}", owner.map(|pid| format!(" ({pid})")).unwrap_or_default())]
    InUse {
        /// The session that was asked for.
        session: SessionId,
        /// The id of the process that owns it, if it said so.
        owner: Option<u32>,
    },
    /// A fork was asked for at an event that the session does not have.
    #[error("session {session} has no event {seq}; its last is {last}")]
    NoSuchEvent {
        /// The session that was to be forked.
        session: SessionId,
        /// The event that was asked for.
        seq: Seq,
        /// The last event that there is.
        last: Seq,
    },
    /// A session can't be deleted while forks read its events.
    #[error("session {session} has {} that live on its events", match forks.len() { 1 => "a fork".to_owned(), n => format!("{n} forks") })]
    HasForks {
        /// The session that was to be deleted.
        session: SessionId,
        /// The sessions that were forked from it.
        forks: Vec<SessionId>,
    },
    /// The log can't be trusted from some place on.
    #[error("the log of session {session} is damaged: {damage}")]
    Damaged {
        /// The session that was asked for.
        session: SessionId,
        /// Where and how it is damaged.
        damage: LogDamage,
    },
    /// Another version of Helve wrote the log.
    #[error(
        "the log of session {session} has format {found}; this version of Helve reads up to {}",
        crate::log_line::LOG_VERSION
    )]
    ForeignVersion {
        /// The session that was asked for.
        session: SessionId,
        /// The version of its format.
        found: u64,
    },
    /// Nothing more can be written to the disk.
    #[error("the disk is full: {}", path.display())]
    NoSpace {
        /// What was to be written.
        path: PathBuf,
    },
    /// The file system lets nobody write.
    #[error("the folder is read-only: {}", path.display())]
    ReadOnly {
        /// What was to be written.
        path: PathBuf,
    },
    /// The system does not let this user at the file.
    #[error("no permission: {}", path.display())]
    PermissionDenied {
        /// What was to be opened.
        path: PathBuf,
    },
    /// A file or folder that was there is there no longer.
    #[error("it was removed while in use: {}", path.display())]
    Gone {
        /// What was removed.
        path: PathBuf,
    },
    /// After a failure that left the file in an unknown state, nothing more is appended.
    #[error("an earlier failure left the log of session {session} in doubt: {cause}")]
    InDoubt {
        /// The session that is open.
        session: SessionId,
        /// What failed.
        cause: String,
    },
    /// An event that was to be appended is not the session's next one.
    #[error("event {found} can't follow event {last} of session {session}")]
    OutOfOrder {
        /// The session that is open.
        session: SessionId,
        /// The last event that it has.
        last: Seq,
        /// The event that was to be appended.
        found: Seq,
    },
    /// The event belongs to another session, or is only for those who listen now.
    #[error("a {kind} event is not one to store in session {session}")]
    NotStorable {
        /// The session that is open.
        session: SessionId,
        /// The kind of the event.
        kind: String,
    },
    /// An event or a payload is larger than what is kept.
    #[error("{what} of {bytes} bytes is above the limit of {limit}")]
    TooLarge {
        /// What it is, in words.
        what: &'static str,
        /// How large it is.
        bytes: usize,
        /// How large it may be.
        limit: usize,
    },
    /// An event, or a fork of forks, is nested deeper than can be read again.
    #[error("{what} is nested deeper than {limit}")]
    TooDeep {
        /// What it is, in words.
        what: &'static str,
        /// How deep it may be.
        limit: usize,
    },
    /// No session that was asked has this payload.
    #[error("blob {0} is missing")]
    BlobMissing(BlobId),
    /// The payload is not what its id says.
    #[error("blob {0} is damaged")]
    BlobDamaged(BlobId),
    /// Anything else that the system said.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder that it is about.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
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
    /// The file.
    pub path: PathBuf,
    /// Where the first bad line begins.
    pub offset: u64,
    /// The last event that can be trusted.
    pub after: Seq,
    /// What is wrong there.
    pub flaw: LogFlaw,
}

/// What is wrong with a line of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogFlaw {
    /// The header can't be read, so nothing of the log can be trusted.
    #[error("a first line that is not one of a session's log")]
    Header,
    /// The line does not have the form of a log line.
    #[error("a line that is not one of ours")]
    Form,
    /// The line does not follow from the one before it.
    #[error("a line that was changed after it was written")]
    Hash,
    /// The line is whole, but what it holds is no event.
    #[error("an event that can't be read")]
    Event,
    /// The event does not have the next number.
    #[error("an event out of its order")]
    Order,
    /// The event names another session.
    #[error("an event of another session")]
    Session,
    /// The line is longer than any event may be.
    #[error("a line without an end")]
    Length,
    /// What the session was forked from is missing, or is not what it was then.
    #[error("history that is not its parent's")]
    Parent,
}
