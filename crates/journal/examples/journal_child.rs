//! The other process of the journal's tests: it does what its role says, in the folder and the session that it is given, and
//! tells how that went. `tests/it/child.rs` starts it.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of tests fails by panicking"
)]

#[path = "../tests/it/child_data.rs"]
mod child_data;

use std::io::Write;
use std::path::Path;

use child_data::{blob_of, log_path, noise, read, segments_of, step, text_of};
use helve_journal::{FileJournal, Journal, JournalError};
use helve_protocol::*;
use helve_testkit::{SampleSession, sample_id};

fn main() {
    let mut words = std::env::args().skip(1);
    let (role, root, session) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
    let (root, session) = (Path::new(&root), session.parse::<SessionId>().unwrap());
    let journal = FileJournal::new(root.join("home"));
    match role.as_str() {
        "append" => append_for_ever(&journal, session),
        "store" => store_one_turn(&journal, session),
        "mend" => mend(&journal, session, root),
        "fail-to-sync" => fail_to_sync(&journal, session),
        "fail-to-sync-pack" => fail_to_sync_pack(&journal, session),
        "fill-pack" => fill_the_disk_with_segments(&journal, session, root),
        "own" => own(&journal, session),
        "act" => act(&journal, session),
        "race" => race(&journal),
        "list" => list_often(&journal),
        "fill" => fill_the_disk(&journal, session, root),
        "touch" => touch(&journal, session),
        "touch-as-nobody" => {
            become_nobody();
            touch(&journal, session);
        }
        other => panic!("no role {other}"),
    }
}

fn say(text: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "CHILD {text}").unwrap();
    out.flush().unwrap();
}

/// Appends until it is killed, and says what was acknowledged.
fn append_for_ever(journal: &FileJournal, id: SessionId) {
    let mut session = SampleSession::new(id);
    let opened = journal.open(id, &mut |event| session.last = event.seq);
    let mut log = match opened {
        Err(JournalError::NotFound(_)) => journal.create(id).unwrap(),
        opened => opened.unwrap(),
    };
    say("ready");
    for round in 0.. {
        let events: Vec<SessionEvent> =
            (0..=round % 4).map(|_| numbered(&mut session, &*log, round)).collect();
        log.append(&events).unwrap();
        say(format_args!("acknowledged {}", log.last()));
    }
}

/// An event that can be told from its number alone; some need a sync, some name a blob, some are long.
fn numbered(session: &mut SampleSession, log: &dyn helve_journal::SessionLog, round: u64) -> SessionEvent {
    let seq = session.last.0 + 1;
    match seq % 7 {
        0 => session.turn_ended(),
        3 if round.is_multiple_of(3) => {
            let content = log.blobs().put(blob_of(seq).as_bytes()).unwrap();
            let file = FilePart { name: seq.to_string(), media_type: "text/plain".to_owned(), content };
            session.event(UserMessage { message: sample_id(seq), parts: vec![MessagePart::File(file)] })
        }
        1 | 5 => {
            let segments = segments_of(seq).map(|segment| log.blobs().put_unsynced(&segment).unwrap());
            step(session, segments.to_vec())
        }
        _ => session.user_message(&text_of(seq)),
    }
}

/// A turn with a blob and a changing tool, for a look at the order of system calls.
fn store_one_turn(journal: &FileJournal, id: SessionId) {
    let mut session = SampleSession::new(id);
    let mut log = journal.create(id).unwrap();
    say("created");
    log.append(&[session.created(), session.user_message("hello")]).unwrap();
    say("said");
    let content = log.blobs().put(b"the whole output").unwrap();
    let file = FilePart { name: "out".to_owned(), media_type: "text/plain".to_owned(), content };
    log.append(
        &[session.event(UserMessage { message: sample_id(77), parts: vec![MessagePart::File(file)] })],
    )
    .unwrap();
    say("named-blob");
    log.append(&[session.event(ToolStarted { call: sample_id(78), class: ToolClass::Reads })]).unwrap();
    say("started-reading");
    log.append(&[session.event(ToolStarted { call: sample_id(79), class: ToolClass::Changes })]).unwrap();
    say("started-changing");
    let segments = vec![log.blobs().put_unsynced(b"a segment").unwrap()];
    log.append(&[step(&mut session, segments)]).unwrap();
    say("asked");
    log.append(&[session.turn_ended()]).unwrap();
    say("ended");
    let segments = vec![log.blobs().put_unsynced(b"a second segment").unwrap()];
    log.append(&[step(&mut session, segments)]).unwrap();
    log.sync().unwrap();
    say("synced");
    log.append(&[session.turn_ended()]).unwrap();
    say("ended-again");
    log.blobs().put_unsynced(b"one for the fork").unwrap();
    log.append(&[session.user_message("not synced")]).unwrap();
    journal.fork(id, log.last(), sample_id(99)).unwrap();
    say("forked");
}

/// Opens a log with a torn end, then mends one that is damaged, for a look at the order of system calls.
fn mend(journal: &FileJournal, session: SessionId, root: &Path) {
    drop(journal.open(session, &mut |_| {}).unwrap());
    say("opened");
    let log = log_path(&root.join("home"), session);
    let mut bytes = std::fs::read(&log).unwrap();
    bytes[500] ^= 1;
    std::fs::write(&log, bytes).unwrap();
    say("damaged");
    journal.repair(session).unwrap().unwrap();
    say("mended");
}

/// Runs where every sync of data fails.
fn fail_to_sync(journal: &FileJournal, id: SessionId) {
    let mut session = SampleSession::new(id);
    let mut log = journal.create(id).unwrap();
    let failed = log.append(&[session.created()]).unwrap_err();
    say(format_args!("append: {}", matches!(failed, JournalError::Io { .. })));
    let refused = log.append(&[session.user_message("hello")]).unwrap_err();
    say(format_args!("in doubt: {}", matches!(refused, JournalError::InDoubt { .. })));
    let refused = log.sync().unwrap_err();
    say(format_args!("in doubt: {}", matches!(refused, JournalError::InDoubt { .. })));
    let failed = log.blobs().put(b"content").unwrap_err();
    say(format_args!("blob: {}", matches!(failed.0.downcast_ref(), Some(JournalError::Io { .. }))));
}

/// The same, when it is the pack that can't be synced.
fn fail_to_sync_pack(journal: &FileJournal, id: SessionId) {
    let mut session = SampleSession::new(id);
    let mut log = journal.create(id).unwrap();
    let segment = log.blobs().put_unsynced(b"segment").unwrap();
    log.append(&[step(&mut session, vec![segment])]).unwrap();
    let failed = log.append(&[session.clone().turn_ended()]).unwrap_err();
    say(format_args!("append: {}", matches!(failed, JournalError::Io { .. })));
    let refused = log.append(&[session.user_message("hello")]).unwrap_err();
    say(format_args!("in doubt: {}", matches!(refused, JournalError::InDoubt { .. })));
    let refused = log.blobs().put_unsynced(b"another").unwrap_err();
    say(format_args!("segment: {}", matches!(refused.0.downcast_ref(), Some(JournalError::InDoubt { .. }))));
    drop(log);
    let (events, ending) = read(journal, id).unwrap();
    say(format_args!("read {}: {ending:?}", events.len()));
}

/// Owns a session until it is killed or its input ends.
fn own(journal: &FileJournal, session: SessionId) {
    let log = journal.open(session, &mut |_| {}).unwrap();
    say("owns");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    drop(log);
}

/// Owns a session and does in it what it is told, until its input ends.
fn act(journal: &FileJournal, id: SessionId) {
    let mut session = SampleSession::new(id);
    let mut log = journal.open(id, &mut |event| session.last = event.seq).unwrap();
    say("owns");
    for what in std::io::stdin().lines().map_while(Result::ok) {
        let call = sample_id(4);
        let event = match what.as_str() {
            "turn" => session.event(TurnStarted::default()),
            "call" => {
                let answer = session.clone().step("I look.", &[("read", "text")]).remove(1);
                session.event(answer.body)
            }
            "ask" => {
                let (approval, effects, reason) = (sample_id(5), Vec::new(), String::new());
                session.event(ApprovalRequested {
                    approval,
                    call,
                    effects,
                    reason,
                    diff: None,
                    rules: Vec::new(),
                })
            }
            "answer" => {
                session.event(ApprovalResolved { approval: sample_id(5), answer: ApprovalAnswer::Once })
            }
            "tool" => session.event(ToolStarted { call, class: ToolClass::Changes }),
            "step" => step(&mut session, Vec::new()),
            "end" => session.turn_ended(),
            other => panic!("no act {other}"),
        };
        log.append(&[event]).unwrap();
        say("done");
    }
}

/// Tries to own each session it is told, and lets it go when told.
fn race(journal: &FileJournal) {
    let mut lines = std::io::stdin().lines().map_while(Result::ok);
    say("ready");
    while let Some(session) = lines.next() {
        let opened = journal.open(session.parse().unwrap(), &mut |_| {});
        say(match &opened {
            Ok(_) => "won".to_owned(),
            Err(JournalError::InUse { .. }) => "lost".to_owned(),
            Err(error) => format!("failed: {error}"),
        });
        lines.next();
        drop(opened);
        say("let go");
    }
}

/// Lists again and again, while others change what there is to list.
fn list_often(journal: &FileJournal) {
    for _ in 0..40 {
        say(FileJournal::list(journal).map_or_else(|error| error.to_string(), |list| list.len().to_string()));
    }
}

/// Appends until the disk is full, makes room, and goes on.
fn fill_the_disk(journal: &FileJournal, id: SessionId, root: &Path) {
    let filler = root.join("home").join("filler");
    std::fs::create_dir_all(root.join("home")).unwrap();
    std::fs::write(&filler, vec![1; 64 << 10]).unwrap();
    let mut session = SampleSession::new(id);
    let mut log = journal.create(id).unwrap();
    log.append(&[session.created()]).unwrap();
    let blob_error = loop {
        let before = session.clone();
        let event = session.user_message(&"x".repeat(3000));
        if let Err(error) = log.append(&[event]) {
            say(format_args!("full after {}: {}", log.last(), kind(&error)));
            session = before;
            let random: Vec<u8> =
                (0u32..40_000).map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
            break log.blobs().put(&random).unwrap_err();
        }
    };
    say(format_args!("blob: {}", kind(blob_error.0.downcast_ref().unwrap())));
    std::fs::remove_file(filler).unwrap();
    log.append(&[session.user_message("there is room again"), session.turn_ended()]).unwrap();
    say(format_args!("went on to {}", log.last()));
    drop(log);
    let (events, ending) = read(journal, id).unwrap();
    say(format_args!("read {}: {ending:?}", events.len()));
}

/// Puts segments until the disk is full, makes room, and goes on.
fn fill_the_disk_with_segments(journal: &FileJournal, id: SessionId, root: &Path) {
    let filler = root.join("home").join("filler");
    std::fs::create_dir_all(root.join("home")).unwrap();
    std::fs::write(&filler, vec![1; 64 << 10]).unwrap();
    let mut session = SampleSession::new(id);
    let mut log = journal.create(id).unwrap();
    log.append(&[session.created()]).unwrap();
    let segment = |n: u64| noise(n, 3000);
    let mut put = Vec::new();
    let error = loop {
        match log.blobs().put_unsynced(&segment(put.len() as u64)) {
            Ok(blob) => put.push(blob),
            Err(error) => break error,
        }
    };
    say(format_args!("full after {}: {}", put.len(), kind(error.0.downcast_ref().unwrap())));
    std::fs::remove_file(filler).unwrap();
    for _ in 0..3 {
        put.push(log.blobs().put_unsynced(&segment(put.len() as u64)).unwrap());
    }
    log.append(&[step(&mut session, put.clone()), session.turn_ended()]).unwrap();
    drop(log);
    let is_whole = |(n, blob): (u64, &BlobId)| journal.blob(id, *blob).is_ok_and(|read| read == segment(n));
    let whole = (0..).zip(&put).filter(|pair| is_whole(*pair)).count();
    say(format_args!("put {}, read {whole}, wrong {}", put.len(), journal.examine(id).len()));
}

/// Gives up the rights of root, if it has them.
fn become_nobody() {
    if rustix::process::getuid().is_root() {
        let nobody = rustix::process::Uid::from_raw(65534);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
    }
}

/// Tries everything that writes, as somebody who may not.
fn touch(journal: &FileJournal, session: SessionId) {
    let told = |name: &str, result: Result<(), JournalError>| {
        say(format_args!(
            "{name}: {}",
            result.map_or_else(|error| kind(&error).to_owned(), |()| "fine".to_owned())
        ));
    };
    told("create", journal.create(sample_id(424_242)).map(|_| ()));
    told("open", journal.open(session, &mut |_| {}).map(|_| ()));
    told("fork", journal.fork(session, Seq(1), sample_id(424_243)));
    told("delete", journal.delete(session));
    told("read", read(journal, session).map(|_| ()));
    told("list", journal.list().map(|_| ()));
}

fn kind(error: &JournalError) -> &'static str {
    assert!(!error.to_string().is_empty() && !error.hint().is_empty());
    match error {
        JournalError::NoSpace { .. } => "no space",
        JournalError::ReadOnly { .. } => "read-only",
        JournalError::PermissionDenied { .. } => "no permission",
        _ => "something else",
    }
}
