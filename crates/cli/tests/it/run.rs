//! `helve run`, the shipped program, with scripted models.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::home::Home;

const FIX: &str = r#"
    [[step]]
    when = { asked = "fix" }
    text = "I look."
    calls = [{ tool = "read", input = { path = "a.txt" } }]
    [[step]]
    when = { tool = "read", result = "old" }
    calls = [{ tool = "write", input = { path = "a.txt", content = "new\n" } }]
    [[step]]
    when = { tool = "write", result = "replaced" }
    text = "Fixed."
    [[step]]
    when = { asked = "thanks" }
    text = "You are welcome."
    [[step]]
    text = "I could not."
    repeat = true
"#;

fn home() -> Home {
    let home = Home::new();
    home.write("project/a.txt", "old\n");
    home.write("project/fix.toml", FIX);
    home
}

fn run(home: &Home, words: &[&str]) -> crate::home::Ran {
    let mut command = home.helve(&[&["run", "--model", "script:fix.toml"], words].concat());
    command.stdin(Stdio::null());
    home.run_command(command)
}

fn content(home: &Home) -> String {
    fs::read_to_string(home.project().join("a.txt")).unwrap()
}

#[test]
fn a_turn_is_told_as_it_happens() {
    let home = home();
    let ran = run(&home, &["--yes", "fix", "it"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "I look.\nFixed.\n"), "{}", ran.err);
    assert!(ran.err.contains("· read") && ran.err.contains("· write"), "{}", ran.err);
    assert_eq!(content(&home), "new\n");
    let quiet = run(&home, &["--continue", "--quiet", "thanks"]);
    assert_eq!((quiet.code, quiet.out.as_str(), quiet.err.as_str()), (0, "You are welcome.\n", ""));
    assert_eq!(home.run(&["sessions", "list", "--json"]).out.lines().count(), 1, "it is one session");
}

#[test]
fn without_yes_nothing_is_changed() {
    let home = home();
    let ran = run(&home, &["fix it"]);
    assert_eq!((ran.code, ran.out.as_str()), (13, "I look.\nI could not.\n"));
    assert_eq!(content(&home), "old\n");
}

#[test]
fn programs_get_json() {
    let home = home();
    let one = run(&home, &["--yes", "--output", "json", "fix it"]);
    let result: Value = serde_json::from_str(&one.out).unwrap();
    assert_eq!((&result["outcome"], &result["answer"]), (&Value::from("end_turn"), &Value::from("Fixed.")));
    home.write("project/a.txt", "old\n");
    let stream = run(&home, &["--yes", "--output", "stream-json", "fix it"]);
    let lines: Vec<Value> = stream.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.last().unwrap()["type"], "result");
    let kinds = lines.iter().filter_map(|line| line["kind"].as_str());
    let kinds: Vec<&str> = kinds.filter(|kind| *kind != "status_changed").collect();
    assert!(kinds.contains(&"text_delta") && kinds.ends_with(&["step_ended", "turn_ended"]), "{kinds:?}");
}

#[test]
fn piped_text_is_added_and_nothing_is_an_error() {
    let home = home();
    let mut command = home.helve(&["run", "--yes", "--model", "script:fix.toml"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"please fix it\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("Fixed."));
    assert_eq!(run(&home, &[]).code, 2);
    assert_eq!(run(&home, &["--resume", "nobody", "fix"]).code, 1);
}

#[test]
fn limits_and_failures_have_codes_of_their_own() {
    let home = home();
    home.write(
        "project/endless.toml",
        "[[step]]\ncalls = [{ tool = 'read', input = { path = 'a.txt' } }]\nrepeat = true",
    );
    home.write("project/broken.toml", "[[step]]\nfail = { status = 400, message = 'no' }");
    for (script, set, code) in
        [("endless.toml", "limits.max_steps=2", 10), ("broken.toml", "limits.max_steps=2", 1)]
    {
        let mut command = home.helve(&["run", "--set", set, "--model", &format!("script:{script}"), "go"]);
        command.stdin(Stdio::null());
        assert_eq!(home.run_command(command).code, code, "{script}");
    }
}

/// Waits until something holds; a test that waits longer than this has failed.
fn until(what: &str, holds: impl Fn() -> bool) {
    let held = (0..3_000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        holds()
    });
    assert!(held, "{what}: not in time");
}

#[test]
fn ctrl_c_ends_the_turn_in_order() {
    let home = home();
    home.write(
        "project/slow.toml",
        "[[step]]\nsay = [{ text = 'One moment' }, { wait = '10m' }, { text = '.' }]",
    );
    let mut command = home.helve(&["run", "--model", "script:slow.toml", "--output", "stream-json", "go"]);
    let out = home.project().join("out");
    command.stdin(Stdio::null()).stdout(fs::File::create(&out).unwrap()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    until("it answers", || fs::read_to_string(&out).unwrap_or_default().contains("One moment"));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let told = fs::read_to_string(&out).unwrap();
    assert!(told.lines().last().unwrap().contains("\"outcome\":\"cancelled\""), "{told}");
    let list = home.run(&["sessions", "list", "--json"]).out;
    assert!(list.contains("go"), "{list}");
}

#[test]
fn somebody_who_stops_reading_does_not_stop_the_work() {
    let home = home();
    let text = "word ".repeat(40_000);
    home.write(
        "project/long.toml",
        &format!(
            "[[step]]\ntext = {text:?}\ncalls = [{{ tool = 'write', input = {{ path = 'a.txt', content = 'new' }} }}]\n\
             [[step]]\ntext = 'done'"
        ),
    );
    let mut command: Command =
        home.helve(&["run", "--yes", "--model", "script:long.toml", "--output", "stream-json", "go"]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // Nobody reads the pipe, which soon is full.
    until("the work is done all the same", || content(&home) == "new");
    drop(child.stdout.take());
    child.wait().unwrap();
}

#[test]
fn a_session_that_was_killed_goes_on() {
    let home = home();
    home.write(
        "project/slow.toml",
        "[[step]]\nsay = [{ text = 'One moment' }, { wait = '10m' }, { text = '.' }]",
    );
    let mut command =
        home.helve(&["run", "--model", "script:slow.toml", "--output", "stream-json", "fix it"]);
    let out = home.project().join("out");
    command.stdin(Stdio::null()).stdout(fs::File::create(&out).unwrap()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    until("it answers", || fs::read_to_string(&out).unwrap_or_default().contains("One moment"));
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = run(&home, &["--yes", "--continue", "fix it now"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.ends_with("Fixed.\n"), "{}", ran.out);
    assert_eq!(home.run(&["doctor"]).code, 0);
}

/// Whether a process with these words on its command line is alive.
fn is_alive(words: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let mut lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.any(|line| {
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        // The keeper and the shell name it too; what counts is the process itself.
        line.trim_end() == words
    })
}

/// A number of seconds that nobody else sleeps.
fn odd_seconds(n: u32) -> String {
    format!("{}", 70_000_000 + u64::from(std::process::id()) * 10 + u64::from(n))
}

#[test]
fn commands_are_run_and_their_output_is_told() {
    let home = home();
    home.write(
        "project/shell.toml",
        r#"
        [[step]]
        calls = [{ tool = "shell", input = { command = "echo hello; pwd; echo $OPENAI_API_KEY-; exit 3" } }]
        [[step]]
        when = { tool = "shell", result = "[exit code 3]" }
        text = "It failed."
        "#,
    );
    let mut command = home.helve(&["run", "--yes", "--model", "script:shell.toml", "go"]);
    command.stdin(Stdio::null()).env("OPENAI_API_KEY", "sk-test-0123456789");
    let ran = home.run_command(command);
    assert_eq!((ran.code, ran.out.as_str()), (0, "It failed.\n"), "{}", ran.err);
    let shown = home.run(&["sessions", "show", "last", "--json"]).out;
    assert!(shown.contains("hello\\n[PROJECT]\\n-\\n[exit code 3]"), "no key reaches a command: {shown}");
}

#[test]
fn nothing_that_a_command_started_outlives_an_interrupt_or_a_kill() {
    for (n, signal, code) in [(1, Signal::INT, Some(130)), (2, Signal::KILL, None)] {
        let home = home();
        let sleep = format!("sleep {}", odd_seconds(n));
        let daemon = format!("sleep {}", odd_seconds(n + 5));
        home.write(
            "project/shell.toml",
            &format!("[[step]]\ncalls = [{{ tool = 'shell', input = {{ command = 'setsid {daemon} & trap \"\" TERM; {sleep}' }} }}]"),
        );
        let mut command = home.helve(&["run", "--yes", "--model", "script:shell.toml", "go"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        until("the command runs", || is_alive(&sleep) && is_alive(&daemon));
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), code);
        until("everything is gone", || !is_alive(&sleep) && !is_alive(&daemon));
    }
}

#[test]
fn the_demo_mends_its_project_and_notices_when_it_does_not() {
    let home = home();
    let demo = |path: &str| {
        let mut command = home.helve(&["demo"]);
        command.env("TMPDIR", home.project()).env("PATH", path);
        home.run_command(command)
    };
    let ran = demo("/usr/bin:/bin");
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("both tests pass now") && ran.out.contains("✓ The test passes."), "{}", ran.out);
    // Without a shell the commands can't be run, and the model must not say that all is well.
    let ran = demo("/nowhere");
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(!ran.out.contains("both tests pass now"), "{}", ran.out);
}
