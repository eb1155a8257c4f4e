//! Sessions that are too long to be read before they are shown.

use std::fs;

use helve_journal::Journal;
use helve_protocol::{EventBody, SessionEvent, SessionId, ToolState};
use helve_testkit::{SampleSession, TerminalWindow, sample_id};

use crate::home::Home;

const SCRIPT: &str = r#"
[[step]]
text = "Understood."
repeat = true
"#;

/// Long enough that only its end is read at first.
const TURNS: usize = 120;
/// The turn with a large output, long before what is shown.
const DEEP: usize = 40;

/// A home with a long session.
fn home() -> (Home, SessionId) {
    let home = Home::new();
    home.write("project/script.toml", SCRIPT);
    let mut session = SampleSession::new(sample_id(1));
    let mut log = home.journal().create(session.id).unwrap();
    log.append(&[session.created()]).unwrap();
    let lines: Vec<String> = (0..5_000).map(|line| format!("line {line} of the dig")).collect();
    let whole = log.blobs().put(lines.join("\n").as_bytes()).unwrap();
    let mut events = Vec::new();
    for turn in 0..TURNS {
        session.turn = Some(session.draw());
        events.push(session.user_message(&format!("question {turn}")));
        let tool = if turn == DEEP { "dig" } else { "read" };
        let mut step = session.step("I look.", &[(tool, "the beginning of it\n")]);
        if turn == DEEP {
            step.iter_mut().for_each(|event| name_whole(event, whole));
        }
        events.extend(step);
        events.extend(session.step(&format!("answer {turn}: {}", "and so on ".repeat(100)), &[]));
        events.push(session.turn_ended());
    }
    log.append(&events).unwrap();
    (home, session.id)
}

fn name_whole(event: &mut SessionEvent, whole: helve_protocol::BlobId) {
    if let EventBody::ToolEnded(ended) = &mut event.body
        && let ToolState::Completed { output } = &mut ended.end
    {
        output.whole = Some(whole);
    }
}

fn resume(home: &Home, session: SessionId) -> TerminalWindow {
    let words = ["--resume", &session.to_string(), "-m", "script:script.toml"];
    TerminalWindow::start(&home.helve(&words), 24, 80)
}

fn leave(window: &mut TerminalWindow) {
    window.wait_for("Ask Helve anything");
    window.type_in("\x04");
    assert!(window.wait().success());
    window.assert_restored();
}

/// The title of what is read stands in the last row.
fn title(text: &str) -> String {
    text.trim_end().lines().last().unwrap_or_default().to_owned()
}

/// Goes on to other items until one has this title.
fn turn_to(window: &mut TerminalWindow, key: &str, wanted: &str) {
    for _ in 0..5 * TURNS {
        let seen = title(&window.text());
        if seen.starts_with(wanted) {
            return;
        }
        window.type_in(key);
        window.wait_until("another item", |text| title(text) != seen);
    }
    panic!("{wanted} did not come:\n{}", window.text());
}

#[test]
fn every_item_of_a_long_session_can_be_read_in_full() {
    let (home, session) = home();
    let mut window = resume(&home, session);
    window.wait_for("Ask Helve anything");
    let shown = window.whole_text();
    assert!(shown.contains("there is more before this") && shown.contains("answer 119"), "{shown}");
    assert!(!shown.contains("answer 90"), "only the end is shown: {shown}");

    window.type_in("\x0f");
    window.wait_for("answer 119");
    turn_to(&mut window, "\x1b[D", "dig src/main.rs");
    window.wait_for("line 2 of the dig");
    window.type_in("G");
    window.wait_for("line 4999 of the dig");
    window.type_in("/line 3210\r");
    window.wait_for("line 3210 of the dig");
    turn_to(&mut window, "\x1b[D", "> question 40");
    turn_to(&mut window, "\x1b[C", "answer 40");
    turn_to(&mut window, "\x1b[D", "> question 0");
    window.type_in("\x1b[D\x1b[D");
    turn_to(&mut window, "\x1b[C", "answer 119");
    window.type_in("q");
    leave(&mut window);
}

#[test]
fn a_message_can_be_sent_before_all_is_read() {
    let (home, session) = home();
    let mut window = resume(&home, session);
    window.wait_for("Ask Helve anything");
    window.say("and on");
    window.wait_for("• Understood.");
    // What the whole session cost is known by then.
    window.wait_for("$1.44");
    window.type_in("\x0f");
    window.wait_for("Understood. · ");
    window.type_in("q");
    leave(&mut window);
}

#[test]
fn a_damage_before_what_is_shown_is_found_and_nothing_is_written() {
    let (home, session) = home();
    let log = home.log_of(1);
    let mut bytes = fs::read(&log).unwrap();
    let place = bytes.len() / 3;
    bytes[place] ^= 1;
    fs::write(&log, &bytes).unwrap();
    let mut window = resume(&home, session);
    assert_eq!(window.wait().code(), Some(1));
    let text = window.whole_text();
    assert!(text.contains("the session can't go on") && text.contains("helve doctor"), "{text}");
    window.assert_restored();
    assert_eq!(fs::read(&log).unwrap(), bytes, "nothing follows what is damaged");
}

#[test]
fn a_long_session_that_is_open_elsewhere_is_refused() {
    let (home, session) = home();
    let owner = home.journal().open(session, &mut |_| {}).unwrap();
    let mut window = resume(&home, session);
    assert_eq!(window.wait().code(), Some(1));
    assert!(window.whole_text().contains("the session can't go on"), "{}", window.whole_text());
    drop(owner);
}
