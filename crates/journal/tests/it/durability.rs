//! What a kill can't show: that data is asked onto the disk before anybody is told that it is safe.

use std::process::Command;

use helve_testkit::{id, skip};

use crate::child;

fn traced_calls() -> Option<Vec<String>> {
    if Command::new("strace").arg("-V").output().is_err() {
        skip("durability", "strace is not installed");
        return None;
    }
    let root = tempfile::tempdir().unwrap();
    let trace = root.path().join("trace");
    let path = trace.to_str().unwrap();
    let calls = "trace=write,pwrite64,writev,fsync,fdatasync,rename,renameat,renameat2";
    let strace = ["strace", "-f", "-y", "-s", "100000", "-e", calls, "-o", path];
    let output = child::role(&strace, "store", root.path(), id(1)).output().unwrap();
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
    let Some(calls) = traced_calls() else { return };
    let told = |word: &str| find(&calls, 0, &["write(1", &format!("CHILD {word}")]);

    // A new session: the file, its folder, and the folder of all sessions.
    let created = &calls[..told("created")];
    let header = find(created, 0, &["write(", "log.jsonl", r#"\"helve\":\"session\""#]);
    let file = find(created, header, &["sync(", "log.jsonl"]);
    let folder = find(created, file, &["fsync(", "sessions/.new-"]);
    let renamed = find(created, folder, &["rename", "sessions/.new-"]);
    find(created, renamed, &["fsync(", "home/sessions>"]);

    // A blob: its content, its name, and only then the event that names it.
    let blob = &calls[told("said")..told("named-blob")];
    let written = find(blob, 0, &["write(", ".unfinished-"]);
    let synced = find(blob, written, &["fdatasync(", ".unfinished-"]);
    let renamed = find(blob, synced, &["rename", ".unfinished-", ".zst"]);
    let folder = find(blob, renamed, &["fsync(", "/blobs>"]);
    find(blob, folder, &["write(", "log.jsonl", "user_message"]);

    // A fork: what it lives on comes first.
    let forked = &calls[told("ended")..told("forked")];
    let parent = find(forked, 0, &["fdatasync(", "log.jsonl"]);
    let header = find(forked, parent, &["write(", ".new-", "forked_from"]);
    find(forked, header, &["sync(", ".new-", "log.jsonl"]);

    // Reading needs no sync.
    let reading = &calls[told("named-blob")..told("started-reading")];
    assert_eq!((count(reading, &["write(", "log.jsonl"]), count(reading, &["sync("])), (1, 0));

    // A change, and the end of a turn.
    for (before, after, kind) in
        [("started-reading", "started-changing", "tool_started"), ("started-changing", "ended", "turn_ended")]
    {
        let calls = &calls[told(before)..told(after)];
        let written = find(calls, 0, &["write(", "log.jsonl", kind]);
        find(calls, written, &["fdatasync(", "log.jsonl", "= 0"]);
    }
}
