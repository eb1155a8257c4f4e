//! A journal that lives as long as its process. It keeps the same contract as the one on disk.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use helve_protocol::{
    BlobError, BlobId, BlobStore, Persistence, Seq, SessionEvent, SessionId, SessionSummary,
};

use crate::log_line::nesting_depth;
use crate::owner::OwnerStatus;
use crate::summary::SummaryBuilder;
use crate::{
    EventVisitor, Journal, JournalBlobLoader, JournalError, JournalResult, LogReadEnd, MAX_BLOB_BYTES,
    MAX_EVENT_BYTES, MAX_EVENT_DEPTH, SessionLog,
};

/// Keeps sessions in memory. Its clones share them.
#[derive(Clone, Default)]
pub struct MemoryJournal {
    sessions: Arc<Mutex<HashMap<SessionId, MemorySession>>>,
}

#[derive(Default)]
struct MemorySession {
    forked_from: Option<(SessionId, Seq)>,
    events: Vec<SessionEvent>,
    blobs: HashMap<BlobId, Vec<u8>>,
    ownership: SessionOwnership,
}

#[derive(Default, PartialEq)]
enum SessionOwnership {
    #[default]
    Free,
    Owned,
}

impl MemorySession {
    fn last(&self) -> Seq {
        let inherited = self.forked_from.map_or(Seq::START, |(_, seq)| seq);
        self.events.last().map_or(inherited, |event| event.seq)
    }
}

impl MemoryJournal {
    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, MemorySession>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn owned(&self, session: SessionId) -> Box<dyn SessionLog> {
        Box::new(MemorySessionLog { journal: self.clone(), session })
    }
}

/// A session and its ancestors with how far each counts, the oldest first.
fn lineage(
    sessions: &HashMap<SessionId, MemorySession>,
    session: SessionId,
) -> JournalResult<Vec<(SessionId, Seq)>> {
    let mut generations = Vec::new();
    let mut next = Some((session, Seq(u64::MAX)));
    while let Some((id, until)) = next {
        let kept = sessions.get(&id).ok_or(JournalError::NotFound(id))?;
        generations.push((id, until));
        next = kept.forked_from;
    }
    generations.reverse();
    Ok(generations)
}

fn events_of(
    sessions: &HashMap<SessionId, MemorySession>,
    session: SessionId,
) -> JournalResult<Vec<SessionEvent>> {
    let generations = lineage(sessions, session)?.into_iter();
    let told = generations.filter_map(|(id, until)| Some((sessions.get(&id)?, until)));
    Ok(told
        .flat_map(|(kept, until)| kept.events.iter().filter(move |event| event.seq <= until))
        .cloned()
        .collect())
}

fn blob_of(
    sessions: &HashMap<SessionId, MemorySession>,
    session: SessionId,
    blob: BlobId,
) -> JournalResult<Vec<u8>> {
    let mut generations = lineage(sessions, session)?.into_iter();
    let found = generations.find_map(|(id, _)| sessions.get(&id)?.blobs.get(&blob));
    found.cloned().ok_or(JournalError::BlobMissing(blob))
}

impl Journal for MemoryJournal {
    fn create(&self, session: SessionId) -> JournalResult<Box<dyn SessionLog>> {
        let mut sessions = self.sessions();
        if sessions.contains_key(&session) {
            return Err(JournalError::Exists(session));
        }
        sessions.insert(
            session,
            MemorySession { ownership: SessionOwnership::Owned, ..MemorySession::default() },
        );
        drop(sessions);
        Ok(self.owned(session))
    }

    fn open(
        &self,
        session: SessionId,
        each: &mut dyn FnMut(SessionEvent),
    ) -> JournalResult<Box<dyn SessionLog>> {
        let mut sessions = self.sessions();
        let kept = sessions.get_mut(&session).ok_or(JournalError::NotFound(session))?;
        if kept.ownership == SessionOwnership::Owned {
            return Err(JournalError::InUse { session, owner: Some(std::process::id()) });
        }
        kept.ownership = SessionOwnership::Owned;
        let events = events_of(&sessions, session)?;
        drop(sessions);
        events.into_iter().for_each(each);
        Ok(self.owned(session))
    }

    fn read(&self, session: SessionId, after: Seq, each: EventVisitor<'_>) -> JournalResult<LogReadEnd> {
        let events = events_of(&self.sessions(), session)?;
        let flow = events.into_iter().filter(|event| event.seq > after).try_for_each(each);
        Ok(if flow.is_break() { LogReadEnd::Stopped } else { LogReadEnd::Whole })
    }

    fn look_back(&self, session: SessionId, before: Seq, bytes: u64) -> JournalResult<Vec<SessionEvent>> {
        let mut events = events_of(&self.sessions(), session)?;
        events.retain(|event| event.seq < before);
        let mut left = bytes;
        let is_wanted = |event: &&SessionEvent| {
            let had = left;
            left = left.saturating_sub(event.to_json().unwrap_or_default().len() as u64);
            had > 0
        };
        let wanted = events.iter().rev().take_while(is_wanted).count().max(1);
        Ok(events.split_off(events.len().saturating_sub(wanted)))
    }

    fn list(&self) -> JournalResult<Vec<SessionSummary>> {
        let sessions = self.sessions();
        let mut summaries = Vec::new();
        for (session, kept) in &*sessions {
            let mut digest = SummaryBuilder::new(*session, kept.forked_from);
            events_of(&sessions, *session)?.iter().for_each(|event| digest.apply(event));
            let owner = if kept.ownership == SessionOwnership::Owned {
                OwnerStatus::Alive
            } else {
                OwnerStatus::Nobody
            };
            summaries.push(digest.summary_with(owner));
        }
        summaries.sort_by_key(|summary| std::cmp::Reverse((summary.updated, summary.session)));
        Ok(summaries)
    }

    fn fork(&self, parent: SessionId, at: Seq, child: SessionId) -> JournalResult<()> {
        let mut sessions = self.sessions();
        let last = sessions.get(&parent).ok_or(JournalError::NotFound(parent))?.last();
        if at == Seq::START || at > last {
            return Err(JournalError::NoSuchEvent { session: parent, seq: at, last });
        }
        if sessions.contains_key(&child) {
            return Err(JournalError::Exists(child));
        }
        // The nearest ancestor that has the event itself.
        let generations = lineage(&sessions, parent)?;
        let holder = generations.iter().rev().find(|(id, _)| {
            let inherited = sessions.get(id).and_then(|kept| kept.forked_from);
            inherited.is_none_or(|(_, seq)| at > seq)
        });
        let holder = holder.map_or(parent, |(id, _)| *id);
        sessions.insert(child, MemorySession { forked_from: Some((holder, at)), ..MemorySession::default() });
        Ok(())
    }

    fn delete(&self, session: SessionId) -> JournalResult<()> {
        let mut sessions = self.sessions();
        let kept = sessions.get(&session).ok_or(JournalError::NotFound(session))?;
        if kept.ownership == SessionOwnership::Owned {
            return Err(JournalError::InUse { session, owner: Some(std::process::id()) });
        }
        let is_fork = |kept: &MemorySession| kept.forked_from.is_some_and(|(parent, _)| parent == session);
        let forks: Vec<SessionId> =
            sessions.iter().filter(|(_, kept)| is_fork(kept)).map(|(id, _)| *id).collect();
        if !forks.is_empty() {
            return Err(JournalError::HasForks { session, forks });
        }
        sessions.remove(&session);
        Ok(())
    }

    fn blob_loader(&self, session: SessionId) -> JournalResult<JournalBlobLoader> {
        let journal = self.clone();
        Ok(Box::new(move |blob| blob_of(&journal.sessions(), session, blob)))
    }
}

struct MemorySessionLog {
    journal: MemoryJournal,
    session: SessionId,
}

impl SessionLog for MemorySessionLog {
    fn session(&self) -> SessionId {
        self.session
    }

    fn last(&self) -> Seq {
        self.journal.sessions().get(&self.session).map_or(Seq::START, MemorySession::last)
    }

    fn append(&mut self, events: &[SessionEvent]) -> JournalResult<()> {
        let session = self.session;
        let mut sessions = self.journal.sessions();
        let mut last = sessions.get(&session).ok_or(JournalError::NotFound(session))?.last();
        for event in events {
            if event.session != session || event.body.persistence() == Persistence::Live {
                return Err(JournalError::NotStorable { session, kind: event.body.kind().to_owned() });
            }
            if event.seq != last.next() {
                return Err(JournalError::OutOfOrder { session, last, found: event.seq });
            }
            last = event.seq;
            for blob in event.body.blobs() {
                blob_of(&sessions, session, blob)?;
            }
            let json = event.to_json().unwrap_or_default();
            if json.len() > MAX_EVENT_BYTES {
                return Err(JournalError::TooLarge {
                    what: "an event",
                    bytes: json.len(),
                    limit: MAX_EVENT_BYTES,
                });
            }
            if json.contains('\n') {
                return Err(JournalError::NotStorable { session, kind: event.body.kind().to_owned() });
            }
            if nesting_depth(json.as_bytes()) > MAX_EVENT_DEPTH {
                return Err(JournalError::TooDeep { what: "an event", limit: MAX_EVENT_DEPTH });
            }
        }
        if let Some(kept) = sessions.get_mut(&session) {
            kept.events.extend_from_slice(events);
        }
        Ok(())
    }

    fn sync(&mut self) -> JournalResult<()> {
        Ok(())
    }

    fn blobs(&self) -> Arc<dyn BlobStore> {
        Arc::new(MemoryBlobStore { journal: self.journal.clone(), session: self.session })
    }
}

impl Drop for MemorySessionLog {
    fn drop(&mut self) {
        if let Some(kept) = self.journal.sessions().get_mut(&self.session) {
            kept.ownership = SessionOwnership::Free;
        }
    }
}

struct MemoryBlobStore {
    journal: MemoryJournal,
    session: SessionId,
}

impl BlobStore for MemoryBlobStore {
    fn put(&self, content: &[u8]) -> JournalResult<BlobId, BlobError> {
        let failed = |error: JournalError| BlobError(Box::new(error));
        if content.len() > MAX_BLOB_BYTES {
            return Err(failed(JournalError::TooLarge {
                what: "a payload",
                bytes: content.len(),
                limit: MAX_BLOB_BYTES,
            }));
        }
        let blob = BlobId::from_hash(*blake3::hash(content).as_bytes());
        let mut sessions = self.journal.sessions();
        let kept =
            sessions.get_mut(&self.session).ok_or_else(|| failed(JournalError::NotFound(self.session)))?;
        kept.blobs.insert(blob, content.to_vec());
        Ok(blob)
    }

    fn get(&self, blob: BlobId) -> JournalResult<Vec<u8>, BlobError> {
        blob_of(&self.journal.sessions(), self.session, blob).map_err(|error| BlobError(Box::new(error)))
    }
}
