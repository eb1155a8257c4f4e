//! The interface as a person makes it their own, and finds things in it.

use crate::interactive::{home, leave, open, open_with};

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
    window.wait_for("what shall be done?");
    let told = home.masked(&window.text());
    assert!(
        told.contains("[HOME]/config.toml:4:1: keys.pagr: there is no such action; did you mean `pager`?"),
        "{told}"
    );
    assert!(told.contains("config.toml:5:1: keys.history: enter is the only key of `send`"), "{told}");
    window.say("make it");
    window.wait_for("j yes");
    window.answer("n");
    window.wait_for("✗ write made.txt");
    assert!(!home.project().join("made.txt").exists());
    window.wait_for("what shall be done?");
    window.say("make it");
    window.wait_for("j yes");
    window.answer("j");
    window.wait_for("✓ write made.txt");
    window.wait_for("what shall be done?");
    window.type_in("\x10");
    window.wait_for("closes");
    window.type_in("\x03");
    window.wait_for("what shall be done?");
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
    window.wait_for("ask · confined");
    window.wait_for("· script:script.toml");
    leave(&mut window);
    home.write("home/config.toml", "interface.status = ['mod']\n");
    let ran = home.run(&["config", "show"]);
    assert!(ran.code == 2 && ran.err.contains("did you mean \"mode\"?"), "{ran:?}");
}
