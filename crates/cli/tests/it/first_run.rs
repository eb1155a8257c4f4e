//! The first start: nothing is set up, and the interface helps.

use std::os::unix::fs::MetadataExt;

use helve_models::script::ModelScript;
use helve_testkit::ScriptedServer;

use crate::home::Home;
use helve_testkit::TerminalWindow;

const SCRIPT: &str = "[[step]]\ntext = \"Hello from the server.\"\nrepeat = true\n";

fn server() -> ScriptedServer {
    ScriptedServer::play(ModelScript::parse(SCRIPT).unwrap()).unwrap()
}

#[test]
fn whoever_skips_is_told_what_to_do_later() {
    let home = Home::new();
    let mut window = TerminalWindow::start(&home.helve(&[]), 24, 80);
    window.wait_for("Welcome to Helve");
    window.wait_for("appears here as soon as it runs");
    window.type_in("\x1b");
    assert_eq!(window.wait().code(), Some(3));
    window.assert_restored();
    window.wait_for("helve login");
}

#[test]
fn a_pasted_key_is_stored_unseen_and_used() {
    let home = Home::new();
    let server = server();
    let mut program = home.helve(&[]);
    program.env("ANTHROPIC_BASE_URL", server.url(""));
    let mut window = TerminalWindow::start(&program, 24, 80);
    window.wait_for("› paste a key");
    window.type_in("\r");
    window.wait_for("Paste the key");
    window.type_in("\x1b[200~sk-ant-secret-0123456789\n\x1b[201~");
    window.wait_for("•••••▏  anthropic");
    window.type_in("\r");
    window.wait_for("Ask Helve anything");
    window.say("who is there?");
    window.wait_for("Hello from the server.");
    window.type_in("\x04");
    assert!(window.wait().success());
    window.assert_restored();
    assert!(!window.whole_text().contains("secret"), "{}", window.whole_text());
    let file = home.path().join("keys.toml");
    assert!(std::fs::read_to_string(&file).unwrap().contains("sk-ant-secret-0123456789"));
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_key_that_looks_like_any_other_is_asked_about() {
    let home = Home::new();
    let mut window = TerminalWindow::start(&home.helve(&[]), 24, 80);
    window.wait_for("› paste a key");
    // Pasted at once, it is a key too.
    window.type_in("\x1b[200~sk-0123456789\x1b[201~");
    window.wait_for("key: •");
    window.type_in("\r");
    window.wait_for("whose key is it?");
    window.type_in("deepse");
    window.wait_for("› deepseek");
    window.type_in("\r");
    window.wait_for("Ask Helve anything");
    window.wait_for("deepseek/");
    window.type_in("\x04");
    assert!(window.wait().success());
    let keys = std::fs::read_to_string(home.path().join("keys.toml")).unwrap();
    assert!(keys.contains("deepseek = \"sk-0123456789\""), "{keys}");
}

#[test]
fn a_local_server_appears_when_it_has_a_model_and_answers() {
    let home = Home::new();
    let server = server();
    server.list_models(&[]);
    let mut program = home.helve(&[]);
    program.env("OLLAMA_BASE_URL", server.url("/v1"));
    let mut window = TerminalWindow::start(&program, 24, 80);
    window.wait_for("has no models");
    server.list_models(&["tiny", "small"]);
    window.wait_for("ollama/small");
    window.type_in("\x1b[B\x1b[B");
    window.wait_for("› ollama/small");
    window.type_in("\r");
    window.wait_for("Ask Helve anything");
    window.wait_for("ollama/small ·");
    window.say("who is there?");
    window.wait_for("Hello from the server.");
    window.type_in("\x04");
    assert!(window.wait().success());
    window.assert_restored();
}

#[test]
fn the_demo_can_be_watched_first() {
    let home = Home::new();
    let mut window = TerminalWindow::start(&home.helve(&[]), 40, 100);
    window.wait_for("› paste a key");
    window.type_in("\x1b[A");
    window.wait_for("› watch the demo");
    window.type_in("\r");
    window.wait_for("The test passes");
    assert!(window.wait().success());
    window.assert_restored();
}

#[test]
fn a_project_is_trusted_in_the_interface_or_not() {
    for (key, is_trusted) in [("y", true), ("n", false), ("\x1b", false)] {
        let home = Home::new();
        home.write("project/script.toml", SCRIPT);
        home.write("project/.helve/config.toml", "limits.max_steps = 77\n");
        let mut window = TerminalWindow::start(&home.helve(&["-m", "script:script.toml"]), 24, 100);
        window.wait_for("ask for 1 thing");
        window.wait_for("Shall they count?");
        assert!(window.text().contains("limits.max_steps  77"), "{}", window.text());
        window.answer(key);
        window.wait_for("Ask Helve anything");
        window.say("who is there?");
        window.wait_for("Hello from the server.");
        window.type_in("\x04");
        assert!(window.wait().success());
        window.assert_restored();
        let ran = home.run(&["config", "show", "limits.max_steps"]);
        assert_eq!(ran.out.contains("77"), is_trusted, "{key:?}: {ran:?}");
    }
}

#[test]
fn nobody_trusts_what_they_have_not_seen() {
    let home = Home::new();
    home.write("project/script.toml", SCRIPT);
    let rules: String =
        (0..40).map(|number| format!("[[permission]]\ntool = 'tool{number}'\naction = 'allow'\n")).collect();
    home.write("project/.helve/config.toml", &rules);
    let mut window = TerminalWindow::start(&home.helve(&["-m", "script:script.toml"]), 15, 100);
    window.wait_for("ask for 40 things");
    window.wait_for("pagedown shows more");
    window.answer("y");
    for _ in 0..10 {
        window.type_in("\x1b[6~");
    }
    window.wait_for("tool39");
    window.wait_for("y yes");
    assert!(!window.text().contains("Ask Helve anything"), "{}", window.text());
    window.type_in("y");
    window.wait_for("Ask Helve anything");
    window.type_in("\x04");
    assert!(window.wait().success());
    window.assert_restored();
}
