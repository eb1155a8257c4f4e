use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::home::Home;

/// Runs a command on a real terminal, types into it, and gives all that it shows and its exit code.
fn on_terminal(command: Command, typed: &str) -> (String, i32) {
    on_terminal_at(command, "", typed)
}

/// The same, typing as soon as a prompt is seen.
pub(crate) fn on_terminal_at(mut command: Command, prompt: &str, typed: &str) -> (String, i32) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let open = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut child = command.stdin(open()).stdout(open()).stderr(open()).spawn().unwrap();
    // Our own ends are closed with the command, so that reading ends with the child.
    drop(command);
    let mut terminal = File::from(terminal);
    let mut shown = Vec::new();
    let mut chunk = [0; 4096];
    let mut untyped = Some(typed);
    loop {
        if String::from_utf8_lossy(&shown).contains(prompt)
            && let Some(typed) = untyped.take()
        {
            terminal.write_all(typed.as_bytes()).unwrap();
        }
        // The end of a terminal is an error on Linux.
        let Ok(count @ 1..) = terminal.read(&mut chunk) else { break };
        shown.extend_from_slice(&chunk[..count]);
    }
    (String::from_utf8_lossy(&shown).into_owned(), child.wait().unwrap().code().unwrap())
}

#[test]
fn a_terminal_gets_colours_and_a_pipe_does_not() {
    let home = Home::new();
    home.store(1, "hello");
    let (shown, code) = on_terminal(home.helve(&["sessions", "list"]), "");
    assert_eq!(code, 0);
    assert!(shown.contains("\x1b["), "{shown:?}");
    assert!(!home.run(&["sessions", "list"]).out.contains('\x1b'));
    assert!(home.run(&["sessions", "list", "--color", "always"]).out.contains('\x1b'));
    let with = |name: &str, words: &[&str]| {
        let mut command = home.helve(words);
        command.env(name, "1");
        command
    };
    let (shown, _) = on_terminal(with("NO_COLOR", &["sessions", "list"]), "");
    assert!(!shown.contains("\x1b["), "{shown:?}");
    assert!(home.run_command(with("CLICOLOR_FORCE", &["sessions", "list"])).out.contains('\x1b'));
    let (shown, _) = on_terminal(home.helve(&["sessions", "list", "--set", "ui.color=never"]), "");
    assert!(!shown.contains("\x1b["), "{shown:?}");
    home.write("project/.helve/config.toml", "[ui]\ncolor = 'always'\n");
    let ran = home.run_command(with("NO_COLOR", &["sessions", "list"]));
    assert!(!ran.out.contains('\x1b'), "a variable is stronger than a file: {}", ran.out);
    let (shown, code) = on_terminal(home.helve(&["sessions", "show", "nobody"]), "");
    assert!(code == 1 && shown.contains("\x1b["), "errors are coloured too: {shown:?}");
}

#[test]
fn a_person_is_asked_before_something_is_deleted() {
    let home = Home::new();
    home.store(1, "hello");
    let (shown, code) = on_terminal(home.helve(&["sessions", "delete", "last"]), "n\n");
    assert!(code == 1 && shown.contains("Delete 1 session for good? [y/N]"), "{shown}");
    assert!(home.log_of(1).exists());
    let (shown, code) = on_terminal(home.helve(&["sessions", "delete", "last"]), "y\n");
    assert_eq!(code, 0, "{shown}");
    assert!(!home.log_of(1).exists());
}

/// `helve … | head -1` ends quietly.
#[test]
fn a_closed_pipe_is_no_error() {
    let home = Home::new();
    for n in 1..3 {
        home.store(n, &"a long question ".repeat(20_000));
    }
    for words in [
        vec!["sessions", "show", "00000001"],
        vec!["sessions", "show", "00000001", "--events"],
        vec!["reference", "events"],
        vec!["config", "schema"],
        vec!["completions", "bash"],
        vec!["--help"],
    ] {
        let mut child = home.helve(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), complaints.as_str()), (Some(0), ""), "{words:?}");
    }
}

#[test]
fn a_full_disk_behind_the_output_is_an_error() {
    let home = Home::new();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let ran = home.helve(&["config", "schema"]).stdout(full).output().unwrap();
    assert_eq!(ran.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("the output can't be written"));
}

/// Opening a pipe waits for its other end, which may never come.
#[test]
fn a_pipe_in_the_place_of_a_file_is_told_and_not_waited_for() {
    for (place, words) in [
        ("sessions/01900000-0000-7000-8000-000000000001/log.jsonl", vec!["sessions", "list"]),
        ("sessions/01900000-0000-7000-8000-000000000001/log.jsonl", vec!["sessions", "show", "00000001"]),
        ("sessions/01900000-0000-7000-8000-000000000001/log.jsonl", vec!["doctor", "--repair"]),
        ("sessions", vec!["sessions", "list"]),
        ("config.toml", vec!["config", "show"]),
        ("trust.toml", vec!["config", "show"]),
        ("trust.toml.lock", vec!["trust", "--yes"]),
        ("catalogue.db", vec!["sessions", "list"]),
        ("logs/public.log", vec!["config", "show"]),
    ] {
        let home = Home::new();
        home.write("project/.helve/config.toml", "model = 'a/b'\n");
        let pipe = home.path().join(place);
        std::fs::create_dir_all(pipe.parent().unwrap()).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let mut command = Command::new("timeout");
        let helve = home.helve(&words);
        command.arg("10").arg(helve.get_program()).args(helve.get_args()).current_dir(home.project());
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HELVE_HOME", home.path());
        let ran = home.run_command(command);
        assert_ne!(ran.code, 124, "{place}: {words:?} waited");
        assert!(!ran.err.contains("panicked"), "{ran:?}");
    }
}

#[test]
fn wrong_words_are_told() {
    let home = Home::new();
    for words in
        [vec![], vec!["frobnicate"], vec!["config", "show", "--set", "nonsense"], vec!["sessions", "delete"]]
    {
        let ran = home.run(&words);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{words:?}");
        assert!(!ran.err.is_empty());
    }
    let ran = home.run(&["config", "show", "--set", "limits.max_step=3"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("--set limits.max_step") && ran.err.contains("max_steps"), "{}", ran.err);
    let mut relative = home.helve(&["doctor"]);
    relative.env("HELVE_HOME", "~/helve");
    let ran = home.run_command(relative);
    assert!(ran.code == 2 && ran.err.contains("begins with a slash"), "{}", ran.err);
    let ran = home.run(&["-C", "/no/such/folder", "doctor"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("/no/such/folder"), "{}", ran.err);
}

#[test]
fn every_command_has_help_and_every_shell_its_completions() {
    let home = Home::new();
    for words in
        ["config show", "config path", "sessions list", "sessions delete", "trust", "doctor", "reference"]
    {
        let ran = home.run(&words.split(' ').chain(["--help"]).collect::<Vec<_>>());
        assert!(ran.code == 0 && ran.out.contains("Usage: helve"), "{words}");
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(home.run(&["completions", shell]).out.contains("sessions"), "{shell}");
    }
    let version = home.run(&["--version"]).out;
    assert_eq!(version, format!("helve {}\n", env!("CARGO_PKG_VERSION")));
}

/// What needs only the program works without a home.
#[test]
fn a_machine_without_a_home_is_told_what_to_set() {
    let home = Home::new();
    let mut command = home.helve(&["reference", "settings"]);
    command.env_remove("HELVE_HOME");
    assert_eq!(home.run_command(command).code, 0);
}
