//! What can go wrong, each with what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use helve_protocol::{BlobId, Seq, SessionId};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
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
    Damaged { session: SessionId, damage: Damage },
    #[error(
        "the log of session {session} has format {found}; this version of Helve reads up to {}",
        crate::line::VERSION
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

impl Error {
    /// What a person can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Error::NotFound(_) => "`helve sessions list` shows those that exist.",
            Error::Exists(_) => "Choose another id.",
            Error::InUse { .. } => "Close it there first, or work on a fork of it.",
            Error::NoSuchEvent { .. } => "`helve sessions show ID` shows its events.",
            Error::HasForks { .. } => "Delete the forks too: `helve sessions delete --forks ID`.",
            Error::Damaged { damage, .. } if damage.flaw == Flaw::Header => {
                "Nothing of it can be trusted. Take the log from a backup, or delete the session: `helve sessions delete ID`."
            }
            Error::Damaged { damage, .. } if damage.flaw == Flaw::Parent => {
                "`helve sessions show ID` shows what can be read. Going on needs the session that it was forked from."
            }
            Error::Damaged { .. } => {
                "`helve sessions show ID` shows what can be read; `helve doctor --repair` sets the damaged file aside and \
                 keeps that part."
            }
            Error::ForeignVersion { .. } => "Use the newer version of Helve that wrote it.",
            Error::NoSpace { .. } => "Free some space; nothing that was acknowledged is lost.",
            Error::ReadOnly { .. } => "Mount it writable, or set HELVE_HOME to a folder that is.",
            Error::PermissionDenied { .. } => {
                "Give yourself access to it, or set HELVE_HOME to a folder of yours."
            }
            Error::Gone { .. } => {
                "Check the path. If a folder was removed while Helve ran, what was in it is gone: start a new session."
            }
            Error::InDoubt { .. } => {
                "Open the session again. What was said since the last sync may not survive a power cut."
            }
            Error::OutOfOrder { .. } | Error::NotStorable { .. } => {
                "This is a mistake in Helve; please report it."
            }
            Error::TooLarge { .. } | Error::TooDeep { .. } => "Keep a part of it.",
            Error::BlobMissing(_) | Error::BlobDamaged(_) => "The events can be read; this payload can't.",
            Error::Io { .. } => "Check the disk and the folder.",
        }
    }

    /// Sorts what the system said about a path into what a person can act on.
    pub(crate) fn io(path: &Path, source: io::Error) -> Error {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::NoSpace { path },
            io::ErrorKind::ReadOnlyFilesystem => Error::ReadOnly { path },
            io::ErrorKind::PermissionDenied => Error::PermissionDenied { path },
            io::ErrorKind::NotFound => Error::Gone { path },
            _ => Error::Io { path, source },
        }
    }
}

/// Adds the path to what the system said.
pub(crate) trait At<T> {
    fn at(self, path: &Path) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|source| Error::io(path, source))
    }
}

/// Where a log stops making sense, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{flaw} at byte {offset} of {} (after event {after})", path.display())]
pub struct Damage {
    pub path: PathBuf,
    /// Where the first bad line begins.
    pub offset: u64,
    /// The last event that can be trusted.
    pub after: Seq,
    pub flaw: Flaw,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
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
