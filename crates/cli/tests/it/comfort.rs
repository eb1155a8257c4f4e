//! The interface as a person makes it their own, and finds things in it.

use helve_protocol::{EventBody, MessagePart};

use crate::interactive::{events, home, leave, open, open_with, said, wait_for_draft};
use helve_testkit::TerminalWindow;

#[test]
fn keys_are_what_the_user_made_of_them() {
    let home = home();
    home.write(
        "home/config.toml",
        "[keys]\npager = 'ctrl-p'\nallow-once = 'j'\npagr = 'f3'\nhistory = 'enter'\n",
    );
    // A project must not be able to make a no mean yes.
    home.write("project/.helve/config.toml", "[keys]\nallow-once = 'n'\nreject = 'f8'\n");
    let mut window = open_with(&home, &[], 40, 120);
    window.wait_for("Ask Helve anything");
    let told = home.masked(&window.text());
    assert!(
        told.contains("[HOME]/config.toml:4:1: keys.pagr: there is no such action; did you mean `pager`?"),
        "{told}"
    );
    assert!(told.contains("config.toml:5:1: keys.history: enter is the only key of `send`"), "{told}");
    let flowing = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flowing.contains("keys.allow-once is ignored: it counts in your own settings only"), "{told}");
    window.say("make it");
    window.wait_for("j yes");
    window.answer("n");
    window.wait_for("✗ write made.txt");
    assert!(!home.project().join("made.txt").exists());
    window.wait_for("Ask Helve anything");
    window.say("make it");
    window.wait_for("j yes");
    window.answer("j");
    window.wait_for("✓ write made.txt");
    window.wait_for("Ask Helve anything");
    window.type_in("\x10");
    window.wait_for("closes");
    window.type_in("\x03");
    window.wait_for("Ask Helve anything");
    window.type_in("?");
    window.wait_for("keys and commands");
    let help = window.text();
    let has = |words: [&str; 2]| help.lines().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(has(["ctrl-p", "pager"]) && !has(["ctrl-o", "pager"]) && has(["ctrl-r", "history"]), "{help}");
    window.type_in("q");
    leave(&mut window);
}

#[test]
fn the_status_line_tells_what_the_user_wants_to_know() {
    let home = home();
    let mut window = open(&home);
    window.wait_for("script:script.toml · ask");
    leave(&mut window);
    home.write("home/config.toml", "interface.status = ['mode', 'sandbox', 'model']\n");
    let mut window = open(&home);
    window.wait_for("confined · script:script.toml");
    leave(&mut window);
    home.write("home/config.toml", "interface.status = ['mod']\n");
    let ran = home.run(&["config", "show"]);
    assert!(ran.code == 2 && ran.err.contains("did you mean \"mode\"?"), "{ran:?}");
}

#[test]
fn a_session_is_found_among_many_by_its_words() {
    let home = home();
    (1..=30).for_each(|number| drop(home.store(number, &format!("question number {number}"))));
    let mut window = open(&home);
    window.say("/resume");
    window.wait_for("30 of 30");
    window.wait_for("first: question number");
    window.type_in("number 17");
    window.wait_for("first: question number 17");
    window.wait_for("last:  It does nothing.");
    let text = window.text();
    assert!(text.contains("1 of 30") && text.contains("0 turns · test/model · $0.01"), "{text}");
    window.type_in("\r");
    window.wait_for("> question number 17");
    window.wait_for("Ask Helve anything");
    leave(&mut window);
}

#[test]
fn models_tell_what_they_cost_and_why_they_can_not_be_used() {
    let home = home();
    let mut window = open_with(&home, &[], 24, 140);
    window.wait_for("Ask Helve anything");
    window.say("/model");
    window.wait_for("model (price of a million tokens):");
    window.type_in("anthropic/claude-sonnet-4");
    window.wait_for("tokens): anthropic/claude-sonnet-4");
    window.wait_for("no key: set ANTHROPIC_API_KEY");
    let text = window.text();
    let row = text.lines().find(|line| line.contains("› anthropic/")).unwrap_or_default();
    assert!(row.contains("$3.00 in") && row.contains("$15.00 out") && row.contains("✗"), "{text}");
    window.type_in("\r");
    window.wait_for("can't be used yet: no key");
    leave(&mut window);
}

#[test]
fn what_a_session_changed_is_shown_after_a_restart_too() {
    let home = home();
    let mut window = open_with(&home, &["--permission-mode", "bypass"], 24, 80);
    window.wait_for("Ask Helve anything");
    window.say("/diff");
    window.wait_for("no files changed in this session");
    window.say("make it");
    window.wait_for("So it is.");
    leave(&mut window);

    let mut window = open_with(&home, &["--continue"], 24, 80);
    window.wait_for("Ask Helve anything");
    window.say("/diff");
    window.wait_for("made.txt  +2 -0");
    window.type_in("made\r");
    window.wait_for("+ zwei");
    // Closed, the list is there again.
    window.type_in("q");
    window.wait_for("changed in this session: made");
    window.type_in("\x1b");
    leave(&mut window);
}

#[test]
fn a_command_of_ones_own_is_watched_and_stopped() {
    let home = home();
    let mut window = open(&home);
    window.say("!echo one; echo two >&2; sleep 300 & echo $! > pid; wait");
    window.wait_for("│ two");
    window.wait_for("esc stops");
    window.say("!echo three");
    window.wait_for("a command of yours runs already");
    window.type_in("\x03");
    window.wait_for("[stopped]");
    window.wait_until("it is gone", |text| !text.contains("s · esc stops"));
    let pid = std::fs::read_to_string(home.project().join("pid")).unwrap();
    assert!(!std::path::Path::new(&format!("/proc/{}", pid.trim())).exists(), "what it left is ended too");
    window.wait_for("> !echo three");
    window.type_in("\r");
    window.wait_for("  three");
    window.say("!sleep 300");
    window.wait_for("s · esc stops");
    window.type_in("\x1b");
    window.wait_until("it was stopped", |text| text.matches("[stopped]").count() == 2);
    leave(&mut window);
}

#[test]
fn a_command_that_takes_long_goes_on_by_itself() {
    let home = home();
    home.write(
        "project/long.toml",
        "[[step]]\nwhen = { asked = 'work' }\n\
         calls = [{ tool = 'shell', input = { command = 'echo begun; sleep 60' } }]\n\
         [[step]]\ntext = 'I go on meanwhile.'\n",
    );
    let mut window =
        TerminalWindow::start(&home.helve(&["-m", "script:long.toml", "--allow", "shell"]), 24, 100);
    window.wait_for("Ask Helve anything");
    window.say("work");
    window.wait_for("begun");
    window.wait_for("ctrl-b lets it go on by itself");
    window.type_in("\x02");
    window.wait_for("I go on meanwhile.");
    let events = events(&home);
    let is_told = |event: &helve_protocol::SessionEvent| match &event.body {
        EventBody::ToolEnded(ended) => format!("{:?}", ended.end).contains("in the background: job 1"),
        _ => false,
    };
    assert!(events.iter().any(is_told), "{events:?}");
    // Where nothing runs, the key moves in the text.
    window.type_in("ac\x02b");
    window.wait_for("abc");
    window.type_in("\x03");
    leave(&mut window);
}

#[test]
fn how_much_the_model_thinks_is_chosen() {
    let home = home();
    let mut window = open(&home);
    window.say("/effort");
    window.wait_for("as much as its provider lets it");
    window.type_in("hig\r");
    window.wait_for("script:script.toml (high)");
    window.say("/effort lots");
    window.wait_for("the levels are default, off,");
    window.say("/effort default");
    window.wait_for("script:script.toml ·");
    leave(&mut window);
}

#[test]
fn two_windows_keep_their_drafts_apart() {
    let home = home();
    let mut first = open(&home);
    first.type_in("half a thought");
    first.wait_for("half a thought");
    wait_for_draft(&home, "half a thought");
    let mut second = open(&home);
    second.type_in("another");
    second.wait_for("another");
    assert!(!second.text().contains("half a thought"), "{}", second.text());
    second.type_in("\x03");
    leave(&mut second);
    first.signal(rustix::process::Signal::KILL);
    first.wait();
    let mut again = open_with(&home, &[], 24, 80);
    again.wait_for("half a thought");
    again.type_in("\x03");
    leave(&mut again);
}

#[test]
fn an_editor_of_ones_own_is_used_for_writing() {
    let home = home();
    home.write("project/editor", "#!/bin/sh\nprintf ' and so on\\nto the end' >> \"$1\"\n");
    let mut program = home.helve(&["-m", "script:script.toml"]);
    program.env("EDITOR", "sh editor");
    let mut window = TerminalWindow::start(&program, 24, 80);
    window.wait_for("Ask Helve anything");
    window.type_in("begun");
    window.type_in("\x07");
    window.wait_for("> begun and so on");
    window.wait_for("to the end");
    window.type_in("\r");
    window.wait_for("• Understood.");
    leave(&mut window);
    assert_eq!(said(&events(&home)), ["begun and so on\nto the end"]);
}

#[test]
fn the_pasted_path_of_a_picture_becomes_the_picture() {
    let home = home();
    // One pixel.
    let png = b"\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU\
        \x00\x00\x00\x0aIDATx\xdach\x00\x00\x00\x82\x00\x81\xdaE\x08;\x00\x00\x00\x00IEND\xaeB`\x82";
    let path = home.project().join("a dot.png");
    std::fs::write(&path, png).unwrap();
    let mut window = open(&home);
    window.type_in("see ");
    window.type_in(&format!("\x1b[200~{}\x1b[201~", path.display().to_string().replace(' ', "\\ ")));
    window.wait_for("picture a dot.png");
    window.type_in("\r");
    window.wait_for("• Understood.");
    leave(&mut window);
    let sent = events(&home).into_iter().any(|event| match event.body {
        EventBody::UserMessage(message) => message.parts.iter().any(
            |part| matches!(part, MessagePart::File(file) if file.name == "a dot.png" && file.media_type == "image/png"),
        ),
        _ => false,
    });
    assert!(sent, "{:?}", said(&events(&home)));
}

#[test]
fn a_terminal_that_is_gone_ends_the_turn_and_the_session_goes_on() {
    let home = home();
    let mut window = open(&home);
    window.say("wait for it");
    window.wait_for("I begin.");
    assert_eq!(window.tear_off().code(), Some(130));
    let ended = events(&home).iter().any(|event| matches!(event.body, EventBody::TurnEnded(_)));
    assert!(ended, "the turn ends in order");

    let mut window = open_with(&home, &["--continue"], 24, 80);
    window.wait_for("> wait for it");
    window.wait_for("Ask Helve anything");
    window.say("greet me");
    window.wait_for("• second");
    leave(&mut window);
}

#[test]
fn a_session_that_is_open_elsewhere_throws_nobody_out() {
    let home = home();
    let mut first = open(&home);
    first.say("greet me");
    first.wait_for("• second");
    let mut second = open(&home);
    second.say("here we are");
    second.wait_for("• Understood.");
    second.say("/resume");
    second.wait_for("first: greet me");
    second.type_in("\r");
    second.wait_for("another process");
    second.wait_for("> here we are");
    leave(&mut second);
    leave(&mut first);
}
