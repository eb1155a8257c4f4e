//! Questions that nobody may answer by accident, nor without having seen what they are about.

use std::time::Duration;

use helve_testkit::TerminalWindow;

use crate::home::Home;
use crate::interactive::leave;

/// A model that makes files, one call after the other.
fn home(commands: &[&str]) -> Home {
    let home = Home::new();
    let call = |command: &&str| {
        let command = serde_json::Value::from(*command);
        format!("{{ call = {{ tool = 'shell', input = {{ command = {command} }} }} }}")
    };
    let calls: Vec<String> = commands.iter().map(call).collect();
    home.write(
        "project/script.toml",
        &format!(
            "[[step]]\nsay = [{{ text = 'I begin.' }}, {{ wait = '1s' }}, {}]\n[[step]]\ntext = 'Over.'\n",
            calls.join(", ")
        ),
    );
    home
}

fn open(home: &Home, words: &[&str], rows: u16) -> TerminalWindow {
    let words: Vec<&str> = ["-m", "script:script.toml"].into_iter().chain(words.iter().copied()).collect();
    TerminalWindow::start(&home.helve(&words), rows, 80)
}

fn type_slowly(window: &mut TerminalWindow, text: &str, pause: u64) {
    for letter in text.chars() {
        window.type_in(&letter.to_string());
        std::thread::sleep(Duration::from_millis(pause));
    }
}

#[test]
fn whoever_writes_a_message_meanwhile_allows_nothing() {
    let home = home(&["touch made"]);
    let mut window = open(&home, &[], 24);
    window.wait_for("Ask Helve anything");
    window.say("go");
    window.wait_for("I begin.");
    type_slowly(&mut window, "please try again and say why not a pony", 60);
    window.wait_for("Allow Helve to run touch made?");
    assert!(!home.project().join("made").exists());
    window.answer_after_typing("n");
    window.wait_for("Over.");
    window.wait_for("please try again and say why not a pony");
    assert!(!home.project().join("made").exists());
    window.type_in("\x03");
    leave(&mut window);
}

#[test]
fn what_is_not_seen_is_not_allowed() {
    let hidden = format!("echo {}; touch made", "safe ".repeat(800));
    let home = home(&[&hidden]);
    let mut window = open(&home, &[], 24);
    window.wait_for("Ask Helve anything");
    window.say("go");
    window.wait_for("read all of it first");
    window.wait_for("rows more");
    assert!(window.text().contains("touch made?"), "its end is seen: {}", window.text());
    window.answer("y");
    window.answer("a");
    // Keys are taken in their order: when the next one has done something, those before it have done nothing.
    window.type_in("\x0f");
    window.wait_for("closes");
    assert!(!home.project().join("made").exists());
    window.type_in("q");
    window.wait_for("y yes");
    assert!(window.text().contains("touch made?"), "it is still asked: {}", window.text());
    window.answer("y");
    window.wait_for("Over.");
    assert!(home.project().join("made").exists());
    leave(&mut window);
}

#[test]
fn a_question_behind_something_else_is_told_and_waits_to_be_seen() {
    let home = home(&["touch made"]);
    let mut window = open(&home, &[], 24);
    window.wait_for("Ask Helve anything");
    window.say("go");
    window.wait_for("I begin.");
    window.type_in("?");
    window.wait_for("keys and commands");
    window.wait_for("a question waits: close this");
    window.wait_for_guard();
    window.type_in("q");
    window.type_in("y");
    window.wait_for("Allow Helve to run touch made?");
    window.answer("n");
    window.wait_for("Over.");
    assert!(!home.project().join("made").exists(), "the no counted, so the yes did not");
    leave(&mut window);
}

#[test]
fn plain_lines_hide_nothing_and_take_no_answer_in_advance() {
    let home = home(&["echo \x1b[2J\x1b]0;T\x07\u{202e}; touch one", "touch two", "touch three"]);
    let mut window = open(&home, &["--plain"], 24);
    window.wait_for("write a line and press Enter");
    window.type_in("go\n");
    window.wait_for("y = yes");
    let text = window.text();
    assert!(!text.contains(['\u{202e}', '\x1b']) && text.contains("go"), "{text}");
    window.answer("y\ny\n");
    window.wait_for("writes two");
    window.answer("n\n");
    window.wait_for("writes three");
    window.answer("y\n");
    window.wait_for("Over.");
    assert!(!home.project().join("two").exists(), "the no counted, so the second yes did not");
    assert!(home.project().join("one").exists() && home.project().join("three").exists());
    window.type_in("/quit\n");
    assert!(window.wait().success());
}

#[test]
fn no_questions_means_no_walls_and_that_is_said() {
    let home = home(&["true"]);
    let mut window = open(&home, &["--permission-mode", "bypass"], 24);
    window.wait_for("bypass");
    window.wait_for("not confined");
    leave(&mut window);
}
