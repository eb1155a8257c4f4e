//! The interface as a person meets it: typed keys in, a drawn screen out, with a scripted model.

use std::path::Path;

use helve_journal::Journal;
use helve_protocol::{EventBody, MessagePart, Seq, SessionEvent};
use helve_testkit::TerminalWindow;
use rustix::process::Signal;

use crate::home::Home;

const SCRIPT: &str = r#"
[[step]]
when = { asked = "greet" }
thinking = "A greeting."
text = "Hello, **you**.\n\n- first\n- second\n"

[[step]]
when = { tool = "write", result = "rather" }
text = "I see, rather not."

[[step]]
when = { tool = "write" }
text = "So it is."
repeat = true

[[step]]
when = { asked = "make" }
text = "I make it."
calls = [{ tool = "write", input = { path = "made.txt", content = "eins\nzwei\n" } }]
repeat = true

[[step]]
when = { asked = "wait" }
say = [{ text = "I begin." }, { wait = "20s" }, { text = " I end." }]

[[step]]
when = { asked = "slow" }
delay = "1500ms"
text = "That took long."

[[step]]
when = { asked = "work" }
calls = [{ tool = "shell", input = { command = "seq 1 30; sleep 1" } }]

[[step]]
when = { asked = "choose" }
calls = [{ tool = "ask_user", input = { question = "Red or blue?", options = ["red", "blue"] } }]

[[step]]
when = { tool = "ask_user", result = "blue" }
text = "Blue it is."

[[step]]
text = "Understood."
repeat = true
"#;

pub(crate) fn home() -> Home {
    let home = Home::new();
    home.write("project/script.toml", SCRIPT);
    home
}

pub(crate) fn open_with(home: &Home, words: &[&str], rows: u16, columns: u16) -> TerminalWindow {
    let words: Vec<&str> = ["-m", "script:script.toml"].into_iter().chain(words.iter().copied()).collect();
    TerminalWindow::start(&home.helve(&words), rows, columns)
}

pub(crate) fn open(home: &Home) -> TerminalWindow {
    let window = open_with(home, &[], 24, 80);
    window.wait_for("Ask Helve anything");
    window
}

/// What the journal has of the only session.
pub(crate) fn events(home: &Home) -> Vec<SessionEvent> {
    let journal = home.journal();
    let session = journal.list().unwrap()[0].session;
    let mut events = Vec::new();
    journal
        .read(session, Seq::START, &mut |event| {
            events.push(event);
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    events
}

pub(crate) fn said(events: &[SessionEvent]) -> Vec<String> {
    let texts = events.iter().flat_map(|event| match &event.body {
        EventBody::UserMessage(message) => message.parts.clone(),
        _ => Vec::new(),
    });
    let text = |part: MessagePart| match part {
        MessagePart::Text(text) => Some(text.text),
        _ => None,
    };
    texts.filter_map(text).collect()
}

pub(crate) fn leave(window: &mut TerminalWindow) {
    window.wait_for("Ask Helve anything");
    window.type_in("\x04");
    assert!(window.wait().success());
    window.assert_restored();
}

#[test]
fn a_chat_is_drawn_and_can_be_gone_on_with() {
    let home = home();
    let mut window = open(&home);
    window.say("greet me");
    window.wait_for("• first");
    let text = window.text();
    assert!(
        text.contains("> greet me") && text.contains("• Hello, you.") && text.contains("thought for"),
        "{text}"
    );
    leave(&mut window);
    assert!(window.text().contains("`helve --continue` resumes"), "{}", window.text());

    let mut window = open_with(&home, &["--continue"], 24, 80);
    window.wait_for("Ask Helve anything");
    window.wait_for("• second");
    window.say("and on");
    window.wait_for("• Understood.");
    leave(&mut window);
    assert_eq!(said(&events(&home)), ["greet me", "and on"]);
}

#[test]
fn a_task_of_the_command_line_is_done_first() {
    let home = home();
    let mut window = open_with(&home, &["greet", "me"], 24, 80);
    window.wait_for("• second");
    leave(&mut window);
    let ran = home.run(&["sesions"]);
    assert!(ran.code == 2 && ran.err.contains("there is no command"), "{ran:?}");
    let ran = home.run(&["fix", "it"]);
    assert!(ran.code == 2 && ran.err.contains("helve run"), "{ran:?}");
}

#[test]
fn without_a_model_plain_lines_tell_what_to_do() {
    let home = Home::new();
    let mut window = TerminalWindow::start(&home.helve(&["--plain"]), 24, 80);
    window.wait_for("Enter to leave");
    assert!(window.text().contains("Welcome to Helve"), "{}", window.text());
    window.type_in("\r");
    assert_eq!(window.wait().code(), Some(3));
    window.assert_restored();
}

#[test]
fn every_answer_to_a_question_does_what_it_says() {
    let made = |home: &Home| home.project().join("made.txt").exists();
    for (key, is_made, shown) in [
        ("y", true, "✓ write made.txt"),
        ("a", true, "✓ write made.txt"),
        ("p", true, "✓ write made.txt"),
        ("n", false, "✗ write made.txt"),
        ("mrather not\r", false, "rather not"),
    ] {
        let home = home();
        let mut window = open(&home);
        window.say("make it");
        window.wait_for("Allow Helve to write made.txt");
        window.wait_for("y yes");
        assert!(window.text().contains("+ eins"), "the diff is shown:\n{}", window.text());
        window.answer(key);
        window.wait_for(shown);
        window.wait_for("Ask Helve anything");
        assert_eq!(made(&home), is_made, "{key}");
        let rules = std::fs::read_to_string(home.project().join(".helve/local.toml")).unwrap_or_default();
        assert_eq!(rules.contains("write"), key == "p", "{key}: {rules}");
        if key == "a" {
            window.say("make it again");
            window.wait_until("a second card", |text| text.matches("So it is.").count() == 2);
        }
        leave(&mut window);
    }
}

#[test]
fn a_key_that_comes_too_early_answers_nothing() {
    let home = home();
    let mut window = open(&home);
    // Whoever types on when the question appears has not read it.
    window.say("make it");
    for _ in 0..20 {
        window.type_in("y");
        if window.text().contains("Allow Helve to write") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    window.wait_for("Allow Helve to write made.txt");
    window.answer_after_typing("n");
    window.wait_for("✗ write made.txt");
    assert!(!home.project().join("made.txt").exists());
}

#[test]
fn a_question_of_the_model_is_answered_by_number() {
    let home = home();
    let mut window = open(&home);
    window.say("choose one");
    window.wait_for("Red or blue?");
    window.answer("2");
    window.wait_for("Blue it is.");
    leave(&mut window);
}

#[test]
fn a_running_command_shows_its_last_lines_and_the_pager_all() {
    let home = home();
    let mut window = open_with(&home, &["--permission-mode", "bypass"], 24, 80);
    window.wait_for("Ask Helve anything");
    window.say("work");
    window.wait_for("│ 30");
    window.wait_for("• Understood.");
    window.wait_for("more lines");
    window.wait_for("Ask Helve anything");
    window.type_in("\x0f");
    window.wait_for("closes");
    window.type_in("\x1b[D");
    window.wait_for("command: seq 1 30");
    assert!(window.text().contains("\n12"), "{}", window.text());
    window.type_in("/");
    window.type_in("29\r");
    window.wait_for("29");
    window.type_in("q");
    window.wait_for("• Understood.");
    leave(&mut window);
}

#[test]
fn escape_stops_the_agent() {
    let home = home();
    let mut window = open(&home);
    window.say("wait for it");
    window.wait_for("I begin.");
    window.type_in("\x1b");
    window.wait_for("stopped");
    window.say("greet me");
    window.wait_for("• second");
    leave(&mut window);
}

#[test]
fn what_is_sent_meanwhile_waits_can_be_taken_back_and_steers() {
    let home = home();
    let mut window = open(&home);
    window.say("slow please");
    window.wait_for("thinking");
    window.say("greet me");
    window.wait_for("queued: greet me");
    window.type_in("\x1b[A");
    window.wait_until("it was taken back", |text| {
        text.contains("> greet me") && !text.contains("queued: greet")
    });
    window.type_in(" now\r");
    window.wait_for("queued: greet me now");
    window.type_in("also this\x13");
    window.wait_for("steers: also this");
    window.wait_for("• second");
    leave(&mut window);
    let said = said(&events(&home));
    assert!(said.contains(&"greet me now".to_owned()) && said.contains(&"also this".to_owned()), "{said:?}");
}

#[test]
fn a_storm_of_sizes_breaks_nothing() {
    let home = home();
    let mut window = open(&home);
    window.say("slow please");
    for number in 0..40 {
        let (rows, columns) = [(24, 80), (10, 40), (1, 1), (50, 132), (3, 20)][number % 5];
        window.resize(rows, columns);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    window.resize(24, 80);
    window.wait_for("That took long.");
    window.say("greet me");
    window.wait_for("• second");
    leave(&mut window);
}

#[test]
fn a_small_window_has_room_for_what_matters() {
    let home = home();
    let mut window = open_with(&home, &[], 10, 40);
    window.wait_for("Ask Helve anything");
    window.say("make it");
    window.wait_for("Allow Helve to write made.txt");
    window.wait_for("y yes");
    window.answer("y");
    window.wait_for("So it is.");
    leave(&mut window);
    assert!(window.whole_text().contains("✓ write made.txt"), "{}", window.whole_text());
}

#[test]
fn a_large_paste_is_a_chip_and_is_sent_whole() {
    let home = home();
    let mut window = open(&home);
    let pasted = "0123456789 abcdefghijklmnop\n".repeat((1 << 20) / 28);
    window.type_in(&format!("\x1b[200~{pasted}\x1b[201~"));
    window.wait_for("pasted 37,449 lines");
    window.say(" look");
    window.wait_for("• Understood.");
    leave(&mut window);
    assert_eq!(said(&events(&home)), [format!("{pasted} look")]);
}

#[test]
fn wide_letters_are_written_and_sent() {
    let home = home();
    let mut window = open_with(&home, &[], 12, 40);
    window.wait_for("Ask Helve anything");
    window.type_in("日本語の入力 👩‍👩‍👧 é");
    window.wait_for("日本語の入力");
    window.type_in("\x7f\x7f\x7f文\r");
    window.wait_for("• Understood.");
    leave(&mut window);
    assert_eq!(said(&events(&home)), ["日本語の入力 文"]);
}

#[test]
fn it_can_be_suspended_and_goes_on() {
    let home = home();
    let mut window = open(&home);
    window.say("greet me");
    window.wait_for("• second");
    window.wait_for("Ask Helve anything");
    window.type_in("\x1a");
    window.wait_for_stop();
    window.assert_restored();
    window.signal(Signal::CONT);
    window.wait_until("raw again", |_| true);
    window.say("and on");
    window.wait_for("• Understood.");
    assert!(window.is_raw());
    leave(&mut window);
}

#[test]
fn whoever_ends_it_gets_the_terminal_back() {
    for signal in [Signal::TERM, Signal::HUP] {
        let home = home();
        let mut window = open(&home);
        window.say("wait for it");
        window.wait_for("I begin.");
        window.signal(signal);
        assert_eq!(window.wait().code(), Some(130));
        window.assert_restored();
        window.wait_for("`helve --continue` resumes this session.");
        let ended = events(&home).iter().any(|event| matches!(event.body, EventBody::TurnEnded(_)));
        assert!(ended, "the turn ends in order");
    }
}

/// Waits until what is not sent yet is on the disk.
pub(crate) fn wait_for_draft(home: &Home, text: &str) {
    let is_draft = |path: &Path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("draft-"))
            && std::fs::read_to_string(path).is_ok_and(|draft| draft.contains(text))
    };
    for _ in 0..3_000 {
        if std::fs::read_dir(home.path()).unwrap().flatten().any(|entry| is_draft(&entry.path())) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{text:?} was not saved");
}

#[test]
fn what_was_not_sent_survives_a_crash() {
    let home = home();
    let mut window = open(&home);
    window.type_in("half a sentence");
    window.wait_for("half a sentence");
    wait_for_draft(&home, "half a sentence");
    window.signal(Signal::KILL);
    window.wait();
    let mut window = open_with(&home, &[], 24, 80);
    window.wait_for("half a sentence");
    window.type_in("\x03");
    window.wait_for("Ask Helve anything");
    window.type_in("\x03");
    window.wait_for("press Ctrl-C again");
    window.type_in("\x03");
    assert!(window.wait().success());
    window.assert_restored();
}

#[test]
fn commands_with_a_slash_and_of_the_users_own() {
    let home = home();
    let mut window = open(&home);
    window.say("/mode plan");
    window.wait_for("· plan ·");
    window.type_in("\x1b[Z");
    window.wait_for("· ask ·");
    window.say("/fly");
    window.wait_for("there is no command /fly");
    window.type_in("\x03");
    window.say("!echo $((6 * 7))");
    window.wait_for("  42");
    window.say("#the build needs make");
    window.wait_for("Added to");
    window.say("/rename a good name");
    window.wait_for("the session is called a good name");
    window.type_in("look @scri");
    window.wait_for("› script.toml");
    window.type_in("\t\r");
    window.wait_for("• Understood.");
    window.say("/cost");
    window.wait_for("tokens read");
    window.say("/help");
    window.wait_for("Writing");
    window.type_in("q");
    window.say("/new");
    window.wait_for("/help for help");
    window.wait_for("Ask Helve anything");
    leave(&mut window);
    let all: Vec<String> = home.journal().list().unwrap().into_iter().map(|summary| summary.title).collect();
    assert!(all.contains(&"a good name".to_owned()), "{all:?}");
}

#[test]
fn plain_lines_do_without_drawing() {
    let home = home();
    let mut window = open_with(&home, &["--plain"], 24, 80);
    window.wait_for("/quit leaves");
    window.type_in("greet me\n");
    window.wait_for("• second");
    window.type_in("make it\n");
    window.wait_for("y = yes");
    window.answer("y\n");
    window.wait_for("So it is.");
    assert!(home.project().join("made.txt").exists());
    window.type_in("/quit\n");
    assert!(window.wait().success());
    window.assert_restored();
}
