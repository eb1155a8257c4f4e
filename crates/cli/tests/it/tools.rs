//! `helve tool`, and what tools do in a session that is seen from outside.

use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use helve_journal::Journal;
use helve_protocol::{EventBody, Seq, SessionEvent, ToolState};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::home::{Home, Ran};

/// A session may have so much before anything is said.
const MAX_FIRST_REQUEST: usize = 16 << 10;

fn called(home: &Home, words: &[&str]) -> (i32, Value) {
    let mut command = home.helve(&[&["tool"], words].concat());
    command.stdin(Stdio::null());
    let Ran { code, out, err } = home.run_command(command);
    assert!(out.starts_with('{'), "{out}{err}");
    (code, serde_json::from_str(&out).unwrap())
}

fn home() -> Home {
    let home = Home::new();
    home.write("project/a.txt", "one\ntwo\n");
    home
}

fn read(home: &Home, name: &str) -> String {
    fs::read_to_string(home.project().join(name)).unwrap()
}

#[test]
fn a_tool_is_run_by_hand() {
    let home = home();
    let (code, said) = called(&home, &["read", r#"{"path":"a.txt"}"#]);
    assert_eq!((code, &said["ok"], &said["changed"]), (0, &json!(true), &json!([])));
    assert!(said["output"].as_str().unwrap().contains("two"), "{said}");

    let edit = r#"{"path":"a.txt","edits":[{"old":"two","new":"three"}]}"#;
    let (code, said) = called(&home, &["edit", edit, "--yes"]);
    assert_eq!((code, &said["ok"], &said["changed"]), (0, &json!(true), &json!(["a.txt"])), "{said}");
    assert_eq!(read(&home, "a.txt"), "one\nthree\n");

    let patch = "*** Begin Patch\n*** Add File: b.txt\n+new\n*** Delete File: a.txt\n*** End Patch";
    let (code, said) = called(&home, &["apply_patch", &json!({ "patch": patch }).to_string(), "-y"]);
    assert_eq!((code, &said["changed"]), (0, &json!(["b.txt", "a.txt"])), "{said}");

    let (code, said) = called(&home, &["shell", r#"{"command":"mv b.txt c.txt; exit 0"}"#, "--yes"]);
    assert_eq!((code, &said["changed"]), (0, &json!(["b.txt", "c.txt"])), "{said}");
}

#[test]
fn what_is_refused_ends_with_1_and_changes_nothing() {
    let home = home();
    let edit = r#"{"path":"a.txt","edits":[{"old":"four","new":"three"}]}"#;
    let unasked = r#"{"path":"a.txt","content":"x"}"#;
    let escape =
        json!({ "patch": "*** Begin Patch\n*** Add File: ../.git/hooks/x\n+x\n*** End Patch" }).to_string();
    let cases: [(&[&str], &str); 7] = [
        (&["edit", edit, "--yes"], "a.txt"),
        (&["write", unasked], "nobody is there to be asked"),
        (&["read", r#"{"file":"a.txt"}"#], "path"),
        (&["reed", "{}"], "There is no tool"),
        (&["write", r#"{"path":"../x","content":"x"}"#], "outside the project"),
        (&["write", r#"{"path":".git/hooks/x","content":"x"}"#, "--yes"], "takes a person to say yes"),
        (&["apply_patch", &escape, "--yes"], "decides what git runs"),
    ];
    for (words, why) in cases {
        let (code, said) = called(&home, words);
        assert_eq!(
            (code, &said["ok"], &said["changed"]),
            (1, &json!(false), &json!([])),
            "{words:?}: {said}"
        );
        assert!(said["output"].as_str().unwrap().contains(why), "{words:?}: {said}");
    }
    assert_eq!(read(&home, "a.txt"), "one\ntwo\n");
    assert!(!home.project().with_file_name("x").exists());
    let ran = home.run(&["tool", "read", "{path}"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("is not JSON"), "{}", ran.err);
}

#[test]
fn the_input_may_be_piped_and_the_tools_listed() {
    let home = home();
    let mut command = home.helve(&["tool", "read"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(br#"{"path":"a.txt"}"#).unwrap();
    let out = child.wait_with_output().unwrap().stdout;
    assert!(String::from_utf8(out).unwrap().contains("two"));

    let listed = home.run(&["tool"]).out;
    for name in ["read", "write", "edit", "apply_patch", "list", "glob", "grep", "shell", "todo", "ask_user"]
    {
        assert!(listed.lines().any(|line| line.split_whitespace().next() == Some(name)), "{name}: {listed}");
    }
    let schemas = home.run(&["tool", "--json"]).out;
    assert_eq!(schemas.lines().count(), listed.lines().count());
    for line in schemas.lines() {
        let tool: Value = serde_json::from_str(line).unwrap();
        assert_eq!(tool["input"]["type"], "object", "{line}");
    }
}

#[test]
fn what_can_not_be_undone_is_said() {
    let home = home();
    let output = |command: &str| {
        let input = json!({ "command": command }).to_string();
        let (_, said) = called(&home, &["shell", &input, "--permission-mode", "bypass"]);
        said["output"].as_str().unwrap().to_owned()
    };
    let said = output("mkdir .git/hooks; echo x > .git/hooks/pre-commit");
    assert!(said.contains("can't be undone: .git/hooks/pre-commit"), "{said}");
    let said = output("rm -rf .git");
    assert!(said.contains("can't be undone: .git/ ("), "{said}");
    // A name is no more than a name.
    let said = output(r#"printf x > "$(printf 'q]\n[exit code 1')""#);
    assert!(said.contains(r"q]\n[exit code 1 (new)]"), "{said}");
}

#[test]
fn files_of_added_folders_may_be_changed_and_are_watched() {
    let home = home();
    home.write("other/b.txt", "b\n");
    let other = home.project().with_file_name("other");
    let path = other.join("b.txt").display().to_string();
    let edit = json!({ "path": path, "edits": [{ "old": "b", "new": "c" }] }).to_string();
    let (code, said) = called(&home, &["edit", &edit]);
    assert_eq!(code, 1);
    assert!(said["output"].as_str().unwrap().contains("outside the project"), "{said}");
    let folder = other.display().to_string();
    let (code, said) = called(&home, &["--add-dir", &folder, "edit", &edit, "--yes"]);
    assert_eq!((code, &said["changed"]), (0, &json!([path])), "{said}");
    let command = json!({ "command": format!("echo d > {path}; echo e > e.txt") }).to_string();
    let (code, said) = called(&home, &["--add-dir", &folder, "shell", &command, "--yes"]);
    assert_eq!((code, &said["changed"]), (0, &json!(["e.txt", path])), "{said}");
    assert!(
        said["output"].as_str().unwrap().contains(&format!("{path} (")),
        "the model is told where: {said}"
    );
    // What is named twice, or lies in the project, is looked after once.
    let inside = home.project().display().to_string();
    let command = json!({ "command": format!("echo f > {path}; echo g > e.txt") }).to_string();
    let twice =
        ["--add-dir", &folder, "--add-dir", &folder, "--add-dir", &inside, "shell", &command, "--yes"];
    assert_eq!(called(&home, &twice).1["changed"], json!(["e.txt", path]));
    let around = home.run(&["tool", "--add-dir", "..", "read", "{}"]);
    assert!(around.code == 2 && around.err.contains("the project is in it"), "{}", around.err);
    let missing = home.run(&["tool", "--add-dir", "nowhere", "read", "{}"]);
    assert_eq!(missing.code, 2, "{}", missing.err);

    home.write("project/script.toml", "[[step]]\ntext = 'Fine.'");
    let ran = home.run(&["run", "--add-dir", &folder, "--model", "script:script.toml", "go"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let told = events(&home).iter().any(|event| match &event.body {
        EventBody::NoteAdded(note) => note.text.contains(&folder),
        _ => false,
    });
    assert!(told, "the model is told of the folder");
}

#[test]
fn everything_of_the_machine_or_the_user_is_not_worked_on_unasked() {
    let home = home();
    home.write("project/script.toml", "[[step]]\ntext = 'Fine.'\nrepeat = true");
    let script = format!("script:{}", home.project().join("script.toml").display());
    let in_folder = |folder: &std::path::Path, words: &[&str]| {
        let mut command = home.helve(&[&["run", "--model", &script], words].concat());
        command.stdin(Stdio::null()).env("HOME", home.path()).current_dir(folder);
        home.run_command(command)
    };
    for folder in [&home.path(), std::path::Path::new("/")] {
        let ran = in_folder(folder, &["go"]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains("--cwd"), "{}", ran.err);
    }
    assert_eq!(in_folder(&home.path(), &["-C", ".", "go"]).code, 0);
    assert_eq!(in_folder(&home.project(), &["go"]).code, 0);
}

fn events(home: &Home) -> Vec<SessionEvent> {
    let journal = home.journal();
    let session = journal.list().unwrap().first().unwrap().session;
    let mut events = Vec::new();
    journal
        .read(session, Seq::START, &mut |event| {
            events.push(event);
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    events
}

#[test]
fn what_a_killed_call_did_is_found_out_when_the_session_goes_on() {
    let home = home();
    home.write(
        "project/script.toml",
        "[[step]]\ncalls = [{ tool = 'shell', input = { command = 'echo x > made.txt; rm a.txt; sleep 60' } }]\n\
         [[step]]\nwhen = { tool = 'shell', result = 'Changed since it began' }\ntext = 'I see.'\n\
         [[step]]\ntext = 'I know nothing.'\nrepeat = true",
    );
    let mut command = home.helve(&["run", "--yes", "--model", "script:script.toml", "go"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while home.project().join("a.txt").exists() {
        std::thread::sleep(Duration::from_millis(10));
        assert!(child.try_wait().unwrap().is_none(), "it ended before its time");
    }
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    let ran = home.run(&["run", "--yes", "--continue", "--model", "script:script.toml"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "I see.\n"), "{}", ran.err);
    let changed = events(&home).into_iter().find_map(|event| match event.body {
        EventBody::ToolEnded(ended) => match ended.end {
            ToolState::Interrupted { changed, .. } => Some(changed),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(changed.unwrap(), ["a.txt", "made.txt"]);
}

#[test]
fn the_first_request_is_small_with_everything_on() {
    let home = home();
    home.write("project/script.toml", "[[step]]\ntext = 'Fine.'");
    // Whoever sends commands can be asked, so that there are all tools.
    let mut command = home.helve(&["run", "--model", "script:script.toml", "--input", "stream-json", "hi"]);
    command.stdin(Stdio::null());
    assert_eq!(home.run_command(command).code, 0);
    let events = events(&home);
    let session = events[0].session;
    let segments = events.iter().find_map(|event| match &event.body {
        EventBody::StepStarted(step) => Some(step.segments.clone()),
        _ => None,
    });
    let payloads = home.journal().blob_loader(session).unwrap();
    let sizes: Vec<usize> = segments.unwrap().into_iter().map(|blob| payloads(blob).unwrap().len()).collect();
    let all: usize = sizes.iter().sum();
    assert!(all > 4_000 && all <= MAX_FIRST_REQUEST, "{all} bytes: {sizes:?}");
}

#[test]
fn the_model_asks_and_whoever_sends_commands_answers() {
    let home = home();
    home.write(
        "project/script.toml",
        "[[step]]\ncalls = [{ tool = 'ask_user', input = { question = 'Which?', options = ['this', 'that'] } }]\n\
         [[step]]\nwhen = { tool = 'ask_user', result = 'answered: that' }\ntext = 'That it is.'\n\
         [[step]]\nwhen = { tool = 'ask_user', result = 'Nobody is there' }\ntext = 'I choose this.'",
    );
    let words =
        ["run", "--model", "script:script.toml", "--input", "stream-json", "--output", "stream-json", "go"];
    let mut command = home.helve(&words);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let lines = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut answer = String::new();
    for line in std::io::BufRead::lines(lines) {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if line["kind"] == "question_asked" {
            assert_eq!(line["data"]["options"], json!(["this", "that"]));
            let reply = json!({ "command": "answer", "call": line["data"]["call"], "text": "that" });
            writeln!(input, "{reply}").unwrap();
        }
        if line["kind"] == "turn_ended" {
            writeln!(input, "{}", json!({ "command": "shut_down" })).unwrap();
        }
        if line["type"] == "result" {
            answer = line["answer"].as_str().unwrap().to_owned();
        }
    }
    assert!(child.wait().unwrap().success());
    assert_eq!(answer, "That it is.");

    // Whoever ends the input does not answer any more.
    let mut command = home.helve(&words);
    let ran = home.run_command({
        command.stdin(Stdio::null());
        command
    });
    assert!(ran.out.contains("I choose this."), "{}{}", ran.out, ran.err);
    // Without anybody the model is not offered to ask.
    let ran = home.run(&["run", "--model", "script:script.toml", "go"]);
    assert!(!ran.out.contains("That it is."), "{}", ran.out);
}

#[test]
fn a_command_is_explained() {
    let home = home();
    home.write(
        "home/config.toml",
        "[[permission]]\ntool = \"shell\"\npattern = \"npm test:*\"\naction = \"allow\"\n",
    );
    let explain = |command: &str| -> Value {
        let ran = home.run(&["permissions", "explain", "--json", command]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        serde_json::from_str(&ran.out).unwrap()
    };
    let said = explain("npm test -- -u");
    assert_eq!(said["decision"], "allow", "{said}");
    assert!(said["rule"].as_str().unwrap().contains("config.toml:1"), "{said}");
    let said = explain("npm test; r\"m\" -rf / > log");
    assert_eq!(said["decision"], "ask", "{said}");
    assert_eq!(said["commands"][1]["argv"], json!(["rm", "-rf", "/"]), "{said}");
    assert!(said["writes"].as_array().unwrap().contains(&json!("log")), "{said}");
    let said = explain("echo $x | $y");
    assert_eq!(
        (said["decision"].as_str(), &said["commands"][0]["argv"]),
        (Some("ask"), &json!(["echo", null])),
        "{said}"
    );
    assert!(!said["unknown"].as_array().unwrap().is_empty(), "{said}");
    home.write("project/list", "ls\n\ncat a.txt\n");
    assert_eq!(home.run(&["permissions", "explain", "--file", "list"]).out.lines().count(), 2);
    let read = home.run(&["permissions", "explain", "rm -rf x"]).out;
    assert!(read.starts_with("ask: ") && read.contains("deletes x"), "{read}");
}

/// A program that an update has replaced or removed still runs commands.
#[test]
fn commands_run_when_the_program_was_replaced() {
    let home = Home::new();
    let program = home.project().join("helve-old");
    fs::copy(env!("CARGO_BIN_EXE_helve"), &program).unwrap();
    let shell = |command: &str| {
        format!("[[step]]\ncalls = [{{ tool = 'shell', input = {{ command = '{command}' }} }}]\n")
    };
    let steps = [shell("rm helve-old"), shell("echo still here"), "[[step]]\ntext = 'Done.'\n".to_owned()];
    home.write("project/steps.toml", &steps.concat());
    let model = home.helve(&["run", "--model", "script:steps.toml", "--yes", "go"]);
    let mut command = std::process::Command::new(&program);
    command.args(model.get_args()).current_dir(home.project()).env_clear().stdin(Stdio::null());
    command.envs(model.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = home.run_command(command);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(!program.exists());
    let told = home.run(&["sessions", "show", "last", "--json"]).out;
    assert!(told.contains("still here\\n[exit code 0]"), "{told}");
}
