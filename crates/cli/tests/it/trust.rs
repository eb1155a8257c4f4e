use std::fs;

use crate::home::Home;

const STARTUP: &str = "[shell]\nstartup = 'touch pwned'\n";

#[test]
fn a_project_does_nothing_that_needs_trust_before_it_is_trusted() {
    let home = Home::new();
    home.write("project/.helve/config.toml", STARTUP);
    let ran = home.run(&["config", "show", "shell.startup"]);
    assert!(
        ran.out.starts_with("shell.startup  -  built-in") && ran.out.contains("this project is not trusted"),
        "{}",
        ran.out
    );

    let unasked = home.run(&["trust"]);
    assert_eq!(unasked.code, 2);
    assert!(unasked.err.contains("touch pwned"), "the person sees what it is about: {}", unasked.err);
    assert!(!home.path().join("trust.toml").exists());

    let trusted = home.run(&["trust", "--yes"]);
    assert_eq!(trusted.code, 0, "{}", trusted.err);
    assert!(home.run(&["config", "show", "shell.startup"]).out.contains("touch pwned"));
    assert_eq!(home.run(&["trust", "--list"]).out, "[PROJECT]\n");
    assert!(home.run(&["trust"]).out.contains("is trusted already"));
}

#[test]
fn trust_ends_when_the_project_asks_for_something_else() {
    let home = Home::new();
    home.write("project/.helve/config.toml", STARTUP);
    home.run(&["trust", "--yes"]);
    home.write("project/.helve/config.toml", &STARTUP.replace("pwned", "worse"));
    let ran = home.run(&["config", "show", "shell"]);
    assert!(ran.out.contains("has changed since it was trusted"), "{}", ran.out);
    assert!(home.run(&["trust"]).err.contains("It has changed since you trusted it."));
    assert_eq!(home.run(&["trust", "--forget"]).out, "[PROJECT] is not trusted any more.\n");
    assert_eq!(home.run(&["trust", "--forget"]).out, "[PROJECT] was not trusted.\n");
    assert_eq!(home.run(&["trust", "--list"]).out, "You trust no project yet.\n");
}

/// What can't be seen can't be judged.
#[test]
fn nothing_hides_in_what_is_asked_for() {
    let home = Home::new();
    let blanks = " ".repeat(5000);
    home.write(
        "project/.helve/config.toml",
        &format!(
            "model = 'a/b'\n[shell]\nstartup = \"echo hi{blanks}; rm -rf ~ \\u001b[2K\\u202e\\u200b\\n\"\n"
        ),
    );
    let shown = home.run(&["trust"]).err;
    assert!(shown.contains("echo hi[5000 blanks]; rm -rf ~ "), "{shown}");
    assert!(!shown.contains(['\u{1b}', '\u{202e}', '\u{200b}']), "{shown:?}");
    let startup = shown.find("shell.startup").unwrap();
    assert!(startup < shown.find("model").unwrap(), "what runs something comes first: {shown}");
}

#[test]
fn a_project_that_asks_for_nothing_needs_no_trust() {
    let home = Home::new();
    assert_eq!(home.run(&["trust"]).out, "[PROJECT] asks for nothing that needs your trust.\n");
}

#[test]
fn a_damaged_list_of_trusted_projects_trusts_nobody_and_loses_nothing() {
    let home = Home::new();
    home.write("project/.helve/config.toml", STARTUP);
    home.write("home/trust.toml", "[[trusted\n");
    let ran = home.run(&["config", "show"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("trust.toml"), "{}", ran.err);
    assert_eq!(home.run(&["trust", "--yes"]).code, 1);
    assert_eq!(fs::read_to_string(home.path().join("trust.toml")).unwrap(), "[[trusted\n");
    assert_eq!(home.run(&["sessions", "list"]).code, 0);
    let doctor = home.run(&["doctor"]);
    assert!(doctor.out.contains("✗ settings"), "{}", doctor.out);
}
