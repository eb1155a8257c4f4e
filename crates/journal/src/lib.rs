//! What is remembered: one append-only log per session, the blobs beside it, and a catalogue that can always be made
//! anew from the logs.
//!
//! - [`Journal`] is the contract, [`FileJournal`] keeps it on disk, [`MemoryJournal`] keeps it in memory.
//! - [`SessionLog`] is a session that this process owns. What [`SessionLog::append`] acknowledged is never lost.
//! - The form of a log is in `log_line`; `docs/reference/journal.md` describes it for people.
//!
//! ```
//! use helve_journal::{FileJournal, Journal};
//! use helve_testkit::{SampleSession, sample_id};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let journal = FileJournal::new(folder.path());
//! let mut session = SampleSession::new(sample_id(1));
//! let mut log = journal.create(session.id)?;
//! log.append(&[session.created(), session.user_message("Rename the function.")])?;
//! // Whoever drops the log lets the session go, so that it can be opened again.
//! drop(log);
//!
//! let mut events = Vec::new();
//! let log = journal.open(session.id, &mut |event| events.push(event))?;
//! assert_eq!(events.last().map(|event| event.seq), Some(log.last()));
//! assert_eq!(journal.list()?.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! Everything here blocks; who must not wait calls it from a thread that may.

#![warn(missing_docs)]

mod blobs;
mod catalogue;
mod disk;
mod doctor;
mod error;
mod file_journal;
mod lineage;
mod log;
mod log_line;
mod log_search;
mod memory_journal;
mod owner;
mod pack;
mod reader;
mod session_folder;
mod session_store;
mod summary;

use std::ops::ControlFlow;
use std::sync::Arc;

use helve_protocol::{BlobId, BlobStore, Seq, SessionEvent, SessionId, SessionSummary};

pub use doctor::{JournalFinding, LogRepair};
pub use error::{JournalError, JournalResult, LogDamage, LogFlaw};
pub use file_journal::FileJournal;
pub use memory_journal::MemoryJournal;

/// Where sessions are remembered.
pub trait Journal: Send + Sync {
    /// Begins a session and owns it.
    fn create(&self, session: SessionId) -> JournalResult<Box<dyn SessionLog>>;

    /// Owns a session, after telling all its events, those of its ancestors first. Refused while another owns it, and
    /// if its log is damaged.
    fn open(
        &self,
        session: SessionId,
        each: &mut dyn FnMut(SessionEvent),
    ) -> JournalResult<Box<dyn SessionLog>>;

    /// Tells a session's events after `after` without owning it, as far as its log and those of its ancestors can be
    /// read, until it is told to stop. What is told is checked; what comes before is not looked at.
    fn read(&self, session: SessionId, after: Seq, each: EventVisitor<'_>) -> JournalResult<LogReadEnd>;

    /// The last of a session's events before `before`, in their order: some bytes of them, and none only if there is none. Each
    /// is checked against the one before it, and nothing else is read, so that it is had at once however long the log is.
    fn look_back(&self, session: SessionId, before: Seq, bytes: u64) -> JournalResult<Vec<SessionEvent>>;

    /// All sessions, the last changed first.
    fn list(&self) -> JournalResult<Vec<SessionSummary>>;

    /// Begins a session that goes on from another one's event. Nothing is copied.
    fn fork(&self, parent: SessionId, at: Seq, child: SessionId) -> JournalResult<()>;

    /// Removes a session with its blobs. Refused while somebody owns it and while forks live on its events.
    fn delete(&self, session: SessionId) -> JournalResult<()>;

    /// Finds the blobs that events of the session name.
    fn blob_loader(&self, session: SessionId) -> JournalResult<JournalBlobLoader>;

    /// One of them.
    fn blob(&self, session: SessionId, blob: BlobId) -> JournalResult<Vec<u8>> {
        self.blob_loader(session)?(blob)
    }
}

/// After all events: where a look back begins.
pub const END_OF_LOG: Seq = Seq(u64::MAX);

/// Gives a blob's content.
pub type JournalBlobLoader = Box<dyn Fn(BlobId) -> JournalResult<Vec<u8>> + Send + Sync>;

/// Hears events one by one, and may stop that.
pub type EventVisitor<'a> = &'a mut dyn FnMut(SessionEvent) -> ControlFlow<()>;

/// A session that this process owns, until it is dropped.
pub trait SessionLog: Send {
    /// The session that is owned.
    fn session(&self) -> SessionId;

    /// The last event that was acknowledged.
    fn last(&self) -> Seq;

    /// Stores the events; they must be the session's next ones. On return they survive the end of the process, and if one
    /// of them needs it ([`helve_protocol::EventBody::needs_sync`]) the end of the machine. After an error none of them is
    /// stored; a kill in the middle may leave the first of them.
    fn append(&mut self, events: &[SessionEvent]) -> JournalResult<()>;

    /// Makes everything that was acknowledged survive the end of the machine.
    fn sync(&mut self) -> JournalResult<()>;

    /// Where the session's payloads go. Those that were put soon are safe with the next event that needs a sync.
    fn blobs(&self) -> Arc<dyn BlobStore>;
}

/// How the reading of a log ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogReadEnd {
    /// Everything was read.
    Whole,
    /// Whoever listened had heard enough.
    Stopped,
    /// The last line is not complete: its writer is at work or was killed, or the file was cut.
    Torn {
        /// How many bytes of it there are.
        bytes: u64,
    },
    /// From here on nothing can be trusted.
    Damaged(LogDamage),
}

/// An event is no place for a payload of more than this.
pub const MAX_EVENT_BYTES: usize = 16 << 20;
/// JSON that is nested deeper than this can't be relied upon to be read again.
pub const MAX_EVENT_DEPTH: usize = 100;
/// The largest payload that is kept.
pub const MAX_BLOB_BYTES: usize = 1 << 30;
