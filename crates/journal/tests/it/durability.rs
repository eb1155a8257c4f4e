//! What a kill can't show: that data is asked onto the disk before anybody is told that it is safe.

use std::path::Path;
use std::process::Command;

use helve_journal::{FileJournal, Journal};
use helve_protocol::SessionEvent;
use helve_testkit::{SampleSession, sample_id, skip};

use crate::child;
use crate::support::log_path;

/// The system calls that a child makes in a role, as strace tells them.
fn traced_calls(role: &str, root: &Path) -> Option<Vec<String>> {
    if Command::new("strace").arg("-V").output().is_err() {
        skip("durability", "strace is not installed");
        return None;
    }
    let trace = root.join("trace");
    let path = trace.to_str().unwrap();
    let calls = "trace=write,pwrite64,writev,copy_file_range,sendfile,ftruncate,fsync,fdatasync,link,linkat,rename,renameat,renameat2";
    let strace = ["strace", "-f", "-y", "-s", "100000", "-e", calls, "-o", path];
    let output = child::role(&strace, role, root, sample_id(1)).output().unwrap();
    let Ok(text) = std::fs::read_to_string(&trace) else {
        skip("durability", "strace may not trace here");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(text.lines().map(str::to_owned).collect())
}

/// Where the first call after `from` is whose text has all of `words`.
fn find(calls: &[String], from: usize, words: &[&str]) -> usize {
    let found = calls.iter().skip(from).position(|call| words.iter().all(|word| call.contains(word)));
    from + found.unwrap_or_else(|| panic!("no call with {words:?} after {from} in\n{}", calls.join("\n")))
}

fn count(calls: &[String], words: &[&str]) -> usize {
    calls.iter().filter(|call| words.iter().all(|word| call.contains(word))).count()
}

#[test]
fn what_must_be_safe_is_synced_before_it_is_acknowledged() {
    let root = tempfile::tempdir().unwrap();
    let Some(calls) = traced_calls("store", root.path()) else { return };
    let told = |word: &str| find(&calls, 0, &["write(1", &format!("CHILD {word}")]);

    // A new session: the file, its folder, and the folder of all sessions.
    let created = &calls[..told("created")];
    let header = find(created, 0, &["write(", "log.jsonl", r#"\"helve\":\"session\""#]);
    let file = find(created, header, &["sync(", "log.jsonl"]);
    let folder = find(created, file, &["fsync(", "sessions/.new-"]);
    let renamed = find(created, folder, &["rename", "sessions/.new-"]);
    find(created, renamed, &["fsync(", "home/sessions>"]);
    find(created, 0, &["fsync(", "/home>"]);

    // A blob: its content, its name, and only then the event that names it.
    let blob = &calls[told("said")..told("named-blob")];
    let session = find(blob, 0, &["fsync(", "sessions/0190"]);
    let written = find(blob, session, &["write(", ".unfinished-"]);
    let synced = find(blob, written, &["fdatasync(", ".unfinished-"]);
    let renamed = find(blob, synced, &["rename", ".unfinished-", ".zst"]);
    let folder = find(blob, renamed, &["fsync(", "/blobs>"]);
    find(blob, folder, &["write(", "log.jsonl", "user_message"]);

    // A fork: what it lives on comes first.
    let forked = &calls[told("ended-again")..told("forked")];
    let pack = find(forked, 0, &["fdatasync(", "segments.pack"]);
    let parent = find(forked, pack, &["fdatasync(", "log.jsonl"]);
    let header = find(forked, parent, &["write(", ".new-", "forked_from"]);
    find(forked, header, &["sync(", ".new-", "log.jsonl"]);

    // Reading needs no sync.
    let reading = &calls[told("named-blob")..told("started-reading")];
    assert_eq!((count(reading, &["write(", "log.jsonl"]), count(reading, &["sync("])), (1, 0));

    // A change, and the end of a turn.
    for (before, after, kind) in
        [("started-reading", "started-changing", "tool_started"), ("asked", "ended", "turn_ended")]
    {
        let calls = &calls[told(before)..told(after)];
        let written = find(calls, 0, &["write(", "log.jsonl", kind]);
        find(calls, written, &["fdatasync(", "log.jsonl", "= 0"]);
    }

    // A segment costs a write, and is on disk with its name before the next event that must be.
    let asked = &calls[told("started-changing")..told("asked")];
    assert_eq!((count(asked, &["write(", "segments.pack"]), count(asked, &["sync("])), (1, 0));
    let ended = &calls[told("asked")..told("ended")];
    let pack = find(ended, 0, &["fdatasync(", "segments.pack", "= 0"]);
    let name = find(ended, pack, &["fsync(", "sessions/0190", "= 0"]);
    let event = find(ended, name, &["write(", "log.jsonl", "turn_ended"]);
    find(ended, event, &["fdatasync(", "log.jsonl", "= 0"]);

    // Only what is new is synced: the name was, and at the end of the next turn so is the content.
    let synced = &calls[told("ended")..told("synced")];
    let pack = find(synced, 0, &["fdatasync(", "segments.pack", "= 0"]);
    find(synced, pack, &["fdatasync(", "log.jsonl", "= 0"]);
    assert_eq!(count(synced, &["sync("]), 2);
    assert_eq!(count(&calls[told("synced")..told("ended-again")], &["sync("]), 1);
}

#[test]
fn what_is_mended_is_safe_before_it_takes_its_place() {
    let root = tempfile::tempdir().unwrap();
    let journal = FileJournal::new(root.path().join("home"));
    let mut session = SampleSession::new(sample_id(1));
    let events: Vec<SessionEvent> =
        std::iter::once(session.created()).chain((0..9).map(|_| session.user_message("hello"))).collect();
    journal.create(sample_id(1)).unwrap().append(&events).unwrap();
    let log = log_path(&root.path().join("home"), sample_id(1));
    let mut torn = std::fs::read(&log).unwrap();
    torn.extend(b"{\"seq\":");
    std::fs::write(&log, torn).unwrap();
    let Some(calls) = traced_calls("mend", root.path()) else { return };
    let told = |word: &str| find(&calls, 0, &["write(1", &format!("CHILD {word}")]);

    let opened = &calls[..told("opened")];
    let aside = find(opened, 0, &["fsync(", "/torn-"]);
    let cut = find(opened, aside, &["ftruncate(", "log.jsonl"]);
    find(opened, cut, &["fsync(", "log.jsonl"]);

    let mended = &calls[told("damaged")..told("mended")];
    let copied = find(mended, 0, &["fsync(", "log.jsonl.mended"]);
    let kept = find(mended, copied, &["link", "log.jsonl.damaged-1"]);
    let renamed = find(mended, kept, &["rename", "log.jsonl.mended"]);
    find(mended, renamed, &["fsync(", "sessions/0190"]);
}

/// What a child says in a role where every sync of data fails.
fn said_without_syncs(role: &str) -> Option<Vec<String>> {
    let works =
        Command::new("strace").args(["-e", "inject=fdatasync:error=EIO", "-o", "/dev/null", "true"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        skip("a_failed_sync", "strace can't make system calls fail here");
        return None;
    }
    let root = tempfile::tempdir().unwrap();
    let strace =
        ["strace", "-f", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO"];
    let mut child = child::role(&strace, role, root.path(), sample_id(1)).spawn().unwrap();
    let said: Vec<String> = child::lines(&mut child).collect();
    assert!(child.wait().unwrap().success(), "{said:?}");
    Some(said)
}

/// After a failed sync nobody knows what is on disk, so nothing more is promised.
#[test]
fn a_failed_sync_puts_the_log_in_doubt() {
    let Some(said) = said_without_syncs("fail-to-sync") else { return };
    assert_eq!(said, ["append: true", "in doubt: true", "in doubt: true", "blob: true"]);
}

#[test]
fn a_failed_sync_of_the_pack_does_so_too_and_nothing_is_written() {
    let Some(said) = said_without_syncs("fail-to-sync-pack") else { return };
    assert_eq!(said, ["append: true", "in doubt: true", "segment: true", "read 1: Whole"]);
}

#[test]
fn what_a_killed_process_left_of_a_payload_is_removed() {
    let root = tempfile::tempdir().unwrap();
    let journal = FileJournal::new(root.path().join("home"));
    journal.create(sample_id(1)).unwrap().blobs().put(b"content").unwrap();
    let blobs = log_path(&root.path().join("home"), sample_id(1)).with_file_name("blobs");
    std::fs::write(blobs.join(".unfinished-x"), b"half").unwrap();
    journal.open(sample_id(1), &mut |_| {}).unwrap();
    assert_eq!(std::fs::read_dir(blobs).unwrap().count(), 1);
}
