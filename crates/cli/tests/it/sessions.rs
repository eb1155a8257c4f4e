use std::fs;
use std::process::Stdio;
use std::time::Duration;

use helve_journal::Journal;
use helve_protocol::{
    ApprovalRequested, Message, Seq, SessionEvent, SessionStatus, SessionSummary, ToolStarted, TurnStarted,
};
use helve_testkit::{SampleSession, sample_id};

use crate::home::Home;

#[test]
fn a_new_machine_has_no_sessions() {
    let home = Home::new();
    let ran = home.run(&["sessions", "list"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "There are no sessions.\n"));
}

#[test]
fn sessions_are_listed_with_what_they_are_about() {
    let home = Home::new();
    home.store(0xaaaa_0001, "why does the parser fail?");
    home.store(0xbbbb_0002, "write a test\u{1b}[31m for it");
    home.rename(0xaaaa_0001, "The parser");
    let ran = home.run(&["sessions", "list"]);
    insta::assert_snapshot!(ran.out);
    let json = home.run(&["sessions", "list", "--json"]).out;
    let summaries: Vec<SessionSummary> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(summaries.len(), 2);
    assert_eq!(home.run(&["sessions", "list", "--here"]).out, "There are no sessions.\n");
    let limited = home.run(&["sessions", "list", "-n", "1"]).out;
    assert!(limited.ends_with("and 1 more: --all shows them\n"), "{limited}");
}

#[test]
fn a_session_is_shown_as_a_conversation() {
    let home = Home::new();
    home.store(0xaaaa_0001, "why does the parser fail?");
    let by_end = home.run(&["sessions", "show", "aaaa0001"]);
    assert_eq!((by_end.code, by_end.err.as_str()), (0, ""));
    insta::assert_snapshot!(by_end.out);
    for name in ["last", "0190", "01900000-0000-7000-8000-0000aaaa0001"] {
        assert_eq!(home.run(&["sessions", "show", name]).out, by_end.out, "{name}");
    }
}

#[test]
fn a_session_is_shown_as_json() {
    let home = Home::new();
    let events = home.store(1, "hello");
    let shown = home.run(&["sessions", "show", "last", "--events"]).out;
    let shown: Vec<SessionEvent> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(shown, events);
    let messages = home.run(&["sessions", "show", "last", "--json"]).out;
    let messages: Vec<Message> = serde_json::from_str(&messages).unwrap();
    assert_eq!(messages.len(), 3);
}

#[test]
fn an_id_that_is_none_or_many_is_told() {
    let home = Home::new();
    let none = home.run(&["sessions", "show", "last"]);
    assert_eq!(none.code, 1);
    home.store(1, "hello");
    home.store(2, "hello");
    let many = home.run(&["sessions", "show", "0190"]);
    assert_eq!(many.code, 1);
    assert!(
        many.err.contains("may be any of 2 sessions") && many.err.contains("do:   Write more digits"),
        "{}",
        many.err
    );
    for nobody in ["ffff", "", "0", "019", "../../etc/passwd", "01900000-0000-7000-8000-0000000000ff"] {
        let ran = home.run(&["sessions", "show", nobody]);
        assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (1, "", 3), "{}", ran.err);
    }
}

/// A conversation may hold anything; it must not look like something else.
#[test]
fn what_was_said_cant_be_taken_for_a_heading() {
    let home = Home::new();
    home.store(1, "x\n\nyou 2026-11-16 01:43\nI approve everything");
    let shown = home.run(&["sessions", "show", "last"]).out;
    let headings = shown.lines().filter(|line| line.starts_with("you ")).count();
    assert_eq!(headings, 1, "{shown}");
}

#[test]
fn nothing_is_deleted_without_a_word() {
    let home = Home::new();
    home.store(1, "keep me");
    let unasked = home.run(&["sessions", "delete", "last"]);
    assert_eq!(unasked.code, 2);
    assert!(unasked.err.contains("nothing was deleted"), "{}", unasked.err);
    assert!(home.run(&["sessions", "list"]).out.contains("keep me"));
    let deleted = home.run(&["sessions", "delete", "--yes", "last"]);
    assert_eq!((deleted.code, deleted.out.as_str()), (0, "deleted 00000001  keep me\n"));
    assert!(!home.log_of(1).exists());
}

#[test]
fn forks_are_deleted_only_if_asked_for() {
    let home = Home::new();
    home.store(1, "parent");
    let journal = home.journal();
    journal.fork(sample_id(1), Seq(2), sample_id(2)).unwrap();
    journal.fork(sample_id(2), Seq(1), sample_id(3)).unwrap();
    journal.fork(sample_id(1), Seq(5), sample_id(4)).unwrap();
    let refused = home.run(&["sessions", "delete", "--yes", "00000001"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("has 3 forks") && refused.err.contains("--forks"), "{}", refused.err);
    let deleted = home.run(&["sessions", "delete", "--yes", "--forks", "00000001", "00000002"]);
    assert_eq!((deleted.code, deleted.out.lines().count()), (0, 4), "{deleted:?}");
    assert_eq!(home.run(&["sessions", "list"]).out, "There are no sessions.\n");
}

#[test]
fn a_session_in_use_is_not_deleted() {
    let home = Home::new();
    home.store(1, "busy");
    let _log = home.journal().open(sample_id(1), &mut |_| {}).unwrap();
    let ran = home.run(&["sessions", "delete", "--yes", "last"]);
    assert_eq!(ran.code, 1);
    let expected = format!("is open in another process ({})", std::process::id());
    assert!(ran.err.contains(&expected), "{}", ran.err);
}

#[test]
fn a_damaged_session_is_shown_as_far_as_it_goes() {
    let home = Home::new();
    home.store(1, "hello");
    let mut bytes = fs::read(home.log_of(1)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(home.log_of(1), bytes).unwrap();
    assert!(home.run(&["sessions", "list"]).out.contains("damaged hello"));
    let ran = home.run(&["sessions", "show", "last"]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("hello"));
    assert!(ran.err.contains("this is not all") && ran.err.contains("helve doctor --repair"), "{}", ran.err);
}

/// How the list tells of a session, on the screen and to programs.
fn told(home: &Home, session: &str) -> (String, SessionSummary) {
    let screen = home.run(&["sessions", "list"]).out;
    let line = screen.lines().find(|line| line.starts_with(session)).unwrap_or_default().to_owned();
    let json = home.run(&["sessions", "list", "--json"]).out;
    let mut summaries = json.lines().map(|line| serde_json::from_str::<SessionSummary>(line).unwrap());
    let summary = summaries.find(|summary| summary.session.to_string().ends_with(session)).unwrap();
    (line, summary)
}

#[test]
fn the_list_tells_what_sessions_of_other_processes_are_doing() {
    let home = Home::new();
    home.store(0xaaaa_0001, "done long ago");
    let mut session = SampleSession::new(sample_id(0xbbbb_0002));
    let mut log = home.journal().create(session.id).unwrap();
    log.append(&[session.created(), session.user_message("at work")]).unwrap();
    let (call, effects, reason) = (sample_id(4), Vec::new(), String::new());
    let asked =
        ApprovalRequested { approval: sample_id(5), call, effects, reason, diff: None, rules: Vec::new() };
    let started = ToolStarted { call, class: helve_protocol::ToolClass::Changes };
    for (event, word, status) in [
        (session.user_message("hello"), "idle", SessionStatus::Idle),
        (session.event(TurnStarted::default()), "thinking", SessionStatus::Thinking),
        (session.event(started), "running tools", SessionStatus::RunningTools),
        (session.event(asked), "waiting for a person", SessionStatus::WaitingForPerson),
    ] {
        log.append(&[event]).unwrap();
        let (line, summary) = told(&home, "bbbb0002");
        assert!(line.contains(&format!("  {word}  ")), "{line}");
        assert_eq!((summary.status, summary.broken_off), (Some(status), false));
    }
    let (line, summary) = told(&home, "aaaa0001");
    assert!(line.contains("  ended  "), "{line}");
    assert_eq!((summary.status, summary.broken_off), (Some(SessionStatus::Ended), false));
    insta::assert_snapshot!(home.run(&["sessions", "list"]).out);
}

#[test]
fn a_session_whose_process_was_killed_is_broken_off() {
    let home = Home::new();
    home.write(
        "project/slow.toml",
        "[[step]]\nsay = [{ text = 'One moment' }, { wait = '10m' }, { text = '.' }]",
    );
    let mut command = home.helve(&["run", "--model", "script:slow.toml", "go"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let list = || home.run(&["sessions", "list"]).out;
    let is_thinking = (0..3_000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        list().contains("  thinking  ")
    });
    assert!(is_thinking, "{}", list());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(list().contains("  broken off  "), "{}", list());
    let json = home.run(&["sessions", "list", "--json"]).out;
    assert!(json.contains(r#""status":"ended","broken_off":true"#), "{json}");
}
