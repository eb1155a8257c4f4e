//! What the tests and the child program (`examples/journal_child.rs`) agree on.

use std::ops::ControlFlow;
use std::path::Path;

use helve_journal::{Journal, JournalResult, LogReadEnd};
use helve_protocol::{BlobId, ModelName, Seq, SessionEvent, SessionId, StepStarted};
use helve_testkit::SampleSession;

pub(crate) fn read(
    journal: &dyn Journal,
    session: SessionId,
) -> JournalResult<(Vec<SessionEvent>, LogReadEnd)> {
    let mut events = Vec::new();
    let ending = journal.read(session, Seq::START, &mut |event| {
        events.push(event);
        ControlFlow::Continue(())
    })?;
    Ok((events, ending))
}

pub(crate) fn log_path(root: &Path, session: SessionId) -> std::path::PathBuf {
    root.join("sessions").join(session.to_string()).join("log.jsonl")
}

/// Bytes that can't be compressed, the same for the same number.
pub(crate) fn noise(n: u64, bytes: usize) -> Vec<u8> {
    let mut noise = vec![0; bytes];
    blake3::Hasher::new().update(&n.to_le_bytes()).finalize_xof().fill(&mut noise);
    noise
}

/// A request that is made of these segments.
pub(crate) fn step(session: &mut SampleSession, segments: Vec<BlobId>) -> SessionEvent {
    let (message, request) = (session.draw(), session.draw());
    session.event(StepStarted {
        message,
        request,
        model: ModelName::new("test/model"),
        number: 1,
        kept: 0,
        segments,
        marks: Vec::new(),
    })
}

pub(crate) fn text_of(seq: u64) -> String {
    format!("{seq} ").repeat(usize::try_from(seq % 300).unwrap())
}

pub(crate) fn blob_of(seq: u64) -> String {
    format!("blob {seq} ").repeat(500)
}

/// A new segment, and one that many steps share.
pub(crate) fn segments_of(seq: u64) -> [Vec<u8>; 2] {
    let size = usize::try_from(seq * 37 % 20_000).unwrap();
    [noise(seq, size), format!("the same for {} ", seq / 50).repeat(100).into_bytes()]
}
