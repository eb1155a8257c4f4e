//! `helve run`, the shipped program, with scripted models.

use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use helve_journal::Journal;
use helve_protocol::{EventBody, Seq, SessionEvent, ToolState};
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
    repeat = true
    [[step]]
    when = { tool = "write", result = "Read it first" }
    calls = [{ tool = "read", input = { path = "a.txt" } }]
    [[step]]
    when = { tool = "write", result = "replaced" }
    text = "Fixed."
    [[step]]
    when = { asked = "thanks" }
    text = "You are welcome."
    repeat = true
    [[step]]
    text = "I could not."
    repeat = true
"#;

/// One black point.
const PNG: &[u8] = b"\x89\x50\x4e\x47\x0d\x0a\x1a\x0a\x00\x00\x00\x0d\x49\x48\x44\x52\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00\x3a\x7e\x9b\x55\x00\x00\x00\x0a\x49\x44\x41\x54\x78\xda\x63\x60\x00\x00\x00\x02\x00\x01\xe5\x27\xde\xfc\x00\x00\x00\x00\x49\x45\x4e\x44\xae\x42\x60\x82";

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
            "[[step]]\ntext = {text:?}\ncalls = [{{ tool = 'read', input = {{ path = 'a.txt' }} }}, {{ tool = 'write', input = {{ path = 'a.txt', content = 'new' }} }}]\n\
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

/// Runs a script of calls of the shell tools, and gives what the model was told.
fn shells(home: &Home, calls: &[&str], flags: &[&str]) -> String {
    let steps = calls.iter().map(|call| format!("[[step]]\ncalls = [{call}]\n"));
    home.write("project/shells.toml", &(steps.collect::<String>() + "[[step]]\ntext = 'Done.'"));
    let words = ["run", "--yes", "--model", "script:shells.toml", "go"];
    let mut command = home.helve(&[words.as_slice(), flags].concat());
    command.stdin(Stdio::null());
    let ran = home.run_command(command);
    assert_eq!(ran.code, 0, "{}", ran.err);
    home.run(&["sessions", "show", "last", "--json"]).out
}

#[test]
fn the_shell_goes_where_it_is_told_and_jobs_end_with_the_session() {
    let home = home();
    let seconds = odd_seconds(9);
    let job = format!(
        "{{ tool = 'shell', input = {{ command = 'echo up; exec sleep {seconds}', background = true }} }}"
    );
    let shown = shells(
        &home,
        &[
            "{ tool = 'shell', input = { command = 'mkdir sub; cd sub' } }",
            "{ tool = 'shell', input = { command = 'pwd; echo ${BASH_VERSION:+bash}' } }",
            &job,
            "{ tool = 'shell_output', input = { job = 1 } }",
        ],
        &[],
    );
    assert!(shown.contains("[PROJECT]/sub\\nbash\\n[exit code 0]"), "{shown}");
    assert!(shown.contains("up\\n[job 1: running]"), "{shown}");
    let is_gone = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        !is_alive(&format!("sleep {seconds}"))
    });
    assert!(is_gone, "the job outlives the session");
}

#[test]
fn the_shell_and_its_startup_script_can_be_chosen() {
    let home = home();
    home.write("project/start.sh", "echo welcome; GREETING=hi");
    let call = "{ tool = 'shell', input = { command = 'echo $GREETING-${BASH_VERSION:-sh}' } }";
    let shown = shells(&home, &[call, call], &["--shell", "sh", "--startup-script", "start.sh"]);
    assert_eq!(shown.matches("welcome").count(), 1, "{shown}");
    assert_eq!(shown.matches("hi-sh\\n[exit code 0]").count(), 2, "{shown}");
    for (flag, value) in [("--shell", "no-such-shell"), ("--startup-script", "no-such-file")] {
        let ran = home.run(&["run", "--model", "script:shells.toml", "go", flag, value]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains(value) && ran.err.contains(flag), "{}", ran.err);
    }
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
    // What the user's own projects may do has nothing to do with it.
    home.write("home/config.toml", "[permissions]\nmode = 'plan'\n");
    let mut command = home.helve(&["demo"]);
    command.env("TMPDIR", home.project()).env("HOME", home.project()).current_dir(home.project());
    let ran = home.run_command(command);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    // Without `write` nothing can be mended, whatever the model would like to say.
    let mut command = home.helve(&["demo", "--set", "tools.remove=['write']"]);
    command.env("TMPDIR", home.project());
    let ran = home.run_command(command);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(
        !ran.out.contains("both tests pass now") && ran.err.contains("the test still fails"),
        "{}",
        ran.err
    );
    // Without a shell the commands can't be run, and the model must not say that all is well.
    let ran = demo("/nowhere");
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(!ran.out.contains("both tests pass now"), "{}", ran.out);
}

fn last_result(ran: &crate::home::Ran) -> Value {
    serde_json::from_str(ran.out.lines().last().unwrap()).unwrap()
}

#[test]
fn a_program_may_talk_with_it() {
    let home = home();
    let words = ["run", "--model", "script:fix.toml", "--input", "stream-json", "--output", "stream-json"];
    let mut child = home
        .helve(&words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = child.stdin.take().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let mut next = |is_it: &dyn Fn(&Value) -> bool| loop {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        if is_it(&line) {
            return line;
        }
    };
    writeln!(to, r#"{{"type":"user","message":{{"role":"user","content":"fix it"}}}}"#).unwrap();
    // It may change nothing unasked, and whoever sends commands can answer.
    let asked = next(&|line| line["kind"] == "approval_requested");
    assert_eq!(asked["data"]["effects"][0], "write a.txt (1 line)");
    let approval = asked["data"]["approval"].as_str().unwrap();
    writeln!(to, r#"{{"query":"state"}}"#).unwrap();
    assert_eq!(next(&|line| line["reply"].is_string())["status"], "waiting_for_person");
    writeln!(to, r#"{{"command":"submit","parts":[{{"type":"text","text":"thanks"}}]}}"#).unwrap();
    writeln!(to, "what?").unwrap();
    assert_eq!(next(&|line| line["reply"].is_string())["reply"], "failed");
    writeln!(to, r#"{{"command":"decide","approval":"{approval}","answer":{{"type":"once"}}}}"#).unwrap();
    drop(to);
    let result = next(&|line| line["type"] == "result");
    assert_eq!(
        (&result["answer"], &result["exit_code"]),
        (&Value::from("You are welcome."), &Value::from(0))
    );
    assert!(child.wait().unwrap().success());
    assert_eq!(content(&home), "new\n");
}

#[test]
fn instructions_come_from_files_words_and_pictures() {
    let home = home();
    home.write("project/task.md", "Please fix\n");
    let ran = run(&home, &["--yes", "--instruction-file", "task.md", "it", "now"]);
    assert!(ran.out.ends_with("Fixed.\n"), "{}{}", ran.out, ran.err);
    fs::write(home.project().join("shot"), PNG).unwrap();
    let seen = run(&home, &["--continue", "--image", "shot", "thanks"]);
    assert_eq!(seen.out, "You are welcome.\n", "{}", seen.err);
    let shown = home.run(&["sessions", "show", "last", "--json"]).out;
    let messages: Vec<Value> = serde_json::from_str(&shown).unwrap();
    assert_eq!(messages[0]["parts"][0]["text"], "Please fix\n\nit now");
    assert!(shown.contains("image/png"), "{shown}");
    let wrong = run(&home, &["--image", "a.txt", "look"]);
    assert!(wrong.code == 2 && wrong.err.contains("a.txt can't be shown"), "{}", wrong.err);
    assert_eq!(run(&home, &["--instruction-file", "nowhere", "look"]).code, 2);
}

#[test]
fn a_session_goes_on_without_a_word_and_from_any_turn() {
    let home = home();
    let stopped = run(&home, &["--yes", "--max-steps", "1", "fix it"]);
    assert_eq!(stopped.code, 10);
    assert!(
        stopped.err.contains("One step was made") && stopped.err.contains("--continue"),
        "{}",
        stopped.err
    );
    let ran = run(&home, &["--yes", "--continue"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Fixed.\n"), "{}", ran.err);
    assert_eq!(run(&home, &["--continue", "thanks"]).out, "You are welcome.\n");
    let list = home.run(&["sessions", "list", "--json"]).out;
    let id = serde_json::from_str::<Value>(&list).unwrap()["session"].as_str().unwrap().to_owned();
    let forked = run(&home, &["--fork", &format!("{id}@2"), "thanks"]);
    assert_eq!(forked.out, "You are welcome.\n", "{}", forked.err);
    assert_eq!(home.run(&["sessions", "list", "--json"]).out.lines().count(), 2);
    let nowhere = run(&home, &["--fork", &format!("{id}@9"), "thanks"]);
    assert!(nowhere.code == 2 && nowhere.err.contains("3 turns"), "{}", nowhere.err);
}

#[test]
fn with_json_the_last_line_is_a_result_whatever_happened() {
    let home = home();
    home.write("project/broken.toml", "[[step]]\nfail = { status = 400, message = 'no' }");
    for (words, code) in [
        (&["--model", "script:nowhere.toml", "go"][..], 2),
        (&["--model", "script:broken.toml", "go"], 1),
        (&["--model", "script:fix.toml", "--resume", "nobody", "go"], 1),
        (&["--model", "script:fix.toml", "--remove-tool", "fly", "go"], 2),
        (&["--model", "script:fix.toml"], 2),
    ] {
        let mut command = home.helve(&[&["run", "--output", "json"], words].concat());
        command.stdin(Stdio::null());
        let ran = home.run_command(command);
        let result = last_result(&ran);
        assert_eq!((ran.code, &result["exit_code"]), (code, &Value::from(code)), "{words:?}: {}", ran.err);
        assert!(result["error"]["what"].is_string(), "{words:?}: {result}");
    }
}

#[test]
fn a_tool_that_was_removed_is_not_offered() {
    let home = home();
    let ran = run(&home, &["--yes", "--remove-tool", "write", "fix it"]);
    assert!(ran.err.contains("There is no tool") && ran.err.contains("There are: read, list"), "{}", ran.err);
    assert_eq!(content(&home), "old\n");
}

#[test]
fn a_changed_record_is_noticed() {
    let home = home();
    assert_eq!(run(&home, &["--yes", "fix it"]).code, 0);
    let good = home.run(&["replay", "last"]);
    assert_eq!(good.code, 0, "{}", good.out);
    assert!(good.out.ends_with("3 requests in 1 turn, the same to the byte\n"), "{}", good.out);
    assert_eq!(home.run(&["replay", "nobody"]).code, 1);
    // The same session elsewhere, with one byte of one result changed.
    let there = Home::new();
    let session = home.journal().list().unwrap()[0].session;
    let mut log = there.journal().create(session).unwrap();
    let copy = &mut |mut event: SessionEvent| {
        for blob in event.body.blobs() {
            log.blobs().put(&home.journal().blob(session, blob).unwrap()).unwrap();
        }
        if let EventBody::ToolEnded(ended) = &mut event.body
            && let ToolState::Completed { output } = &mut ended.end
        {
            output.text = output.text.replace("old", "odd");
        }
        log.append(&[event]).unwrap();
        std::ops::ControlFlow::Continue(())
    };
    home.journal().read(session, Seq::START, copy).unwrap();
    drop(log);
    let bad = there.run(&["replay", "last"]);
    assert_eq!(bad.code, 1, "{}", bad.out);
    assert!(
        bad.out.contains("turn 1, step 2: the request differs at /messages/2/content/0/content/0/text"),
        "{}",
        bad.out
    );
    assert!(bad.out.contains("- ") && bad.out.contains("old") && bad.out.contains("odd"), "{}", bad.out);
}

#[test]
fn an_answer_that_is_sent_again_comes_once() {
    let home = home();
    home.write(
        "project/torn.toml",
        "[[step]]\ntext = 'I will list the files, one by one'\ncut = true\n[[step]]\ntext = 'Fine.'",
    );
    let mut command = home.helve(&["run", "--model", "script:torn.toml", "go"]);
    command.stdin(Stdio::null());
    let ran = home.run_command(command);
    assert_eq!(ran.out, "Fine.\n", "{}", ran.err);
    assert!(ran.err.contains("trying again in"), "{}", ran.err);
}

#[test]
fn a_reader_that_leaves_does_not_stop_the_work() {
    let home = home();
    let mut command =
        home.helve(&["run", "--yes", "--model", "script:fix.toml", "--output", "stream-json", "fix it"]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(content(&home), "new\n");
}

#[test]
fn a_session_keeps_its_model_and_what_is_done_is_done() {
    let home = home();
    assert_eq!(run(&home, &["--yes", "fix it"]).code, 0);
    let again = |words: &[&str]| {
        let mut command = home.helve(&[&["run", "--continue"], words].concat());
        command.stdin(Stdio::null());
        home.run_command(command)
    };
    let ran = again(&["thanks"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "You are welcome.\n"), "{}", ran.err);
    let nothing = again(&[]);
    assert!(nothing.code == 2 && nothing.err.contains("ended by itself"), "{}", nothing.err);
}

#[test]
fn a_plan_changes_nothing_whatever_was_allowed() {
    let home = home();
    let ran = run(&home, &["--yes", "--set", "permissions.mode=plan", "fix it"]);
    assert_eq!((ran.code, content(&home).as_str()), (13, "old\n"), "{}", ran.err);
}

#[test]
fn a_wrong_key_has_a_code_of_its_own() {
    let home = home();
    home.write("project/key.toml", "[[step]]\nfail = { status = 401, message = 'bad key' }");
    let mut command = home.helve(&["run", "--model", "script:key.toml", "go"]);
    command.stdin(Stdio::null());
    assert_eq!(home.run_command(command).code, 3);
}

/// With a terminal, a person is asked.
#[test]
fn somebody_at_the_terminal_is_asked() {
    for (typed, expected) in [("y\n", "new\n"), ("n\n", "old\n"), ("rather not\n", "old\n")] {
        let home = home();
        let mut terminal = crate::terminal::Terminal::open();
        let command = home.helve(&["run", "--model", "script:fix.toml", "fix it"]);
        let mut child = terminal.start(command);
        terminal.wait_for("Allow Helve to write a.txt");
        terminal.type_in(typed);
        child.wait().unwrap();
        assert_eq!(content(&home), expected, "{typed:?}: {}", terminal.seen());
    }
}

/// How it ended; none if it did not end by itself.
fn end_of(mut child: Child) -> Option<i32> {
    for _ in 0..2_000 {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

/// Says some lines to it, and no more.
fn told(home: &Home, script: &str, lines: &str) -> Option<i32> {
    home.write("project/lines", lines);
    let model = format!("script:{script}");
    let mut command = home.helve(&["run", "--model", &model, "--input", "stream-json", "--output", "json"]);
    command.stdin(fs::File::open(home.project().join("lines")).unwrap());
    end_of(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

#[test]
fn a_question_that_nobody_can_answer_any_more_is_answered_with_no() {
    let home = home();
    let line = r#"{"type":"user","message":{"content":"fix it"}}"#;
    assert_eq!(told(&home, "fix.toml", line), Some(13));
    assert_eq!(content(&home), "old\n");
}

#[test]
fn a_session_in_which_nothing_was_said_cant_go_on() {
    let home = home();
    assert_eq!(told(&home, "fix.toml", ""), Some(0));
    let mut command = home.helve(&["run", "--model", "script:fix.toml", "--continue"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    assert_eq!(end_of(command.spawn().unwrap()), Some(2));
    assert!(run(&home, &["--continue"]).err.contains("nothing was said yet"));
}

#[test]
fn another_effort_is_proved_too() {
    let home = home();
    home.write("project/two.toml", "[[step]]\ntext = 'One.'\n[[step]]\ntext = 'Two.'\n");
    let said = |text: &str| format!("{{\"type\":\"user\",\"message\":{{\"content\":\"{text}\"}}}}\n");
    let effort = "{\"command\":\"set_effort\",\"effort\":\"high\"}\n";
    assert_eq!(told(&home, "two.toml", &[said("one"), effort.to_owned(), said("two")].concat()), Some(0));
    let replayed = home.run(&["replay", "last"]);
    assert_eq!(replayed.code, 0, "{}{}", replayed.out, replayed.err);
}

#[test]
fn one_signal_is_enough_where_nothing_runs() {
    let home = home();
    let mut command = home.helve(&["run", "--model", "script:fix.toml", "--input", "stream-json"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    writeln!(to, r#"{{"query":"state"}}"#).unwrap();
    let mut reply = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut reply)
        .unwrap();
    assert!(reply.contains("idle"), "{reply}");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(end_of(child), Some(0));
    drop(to);
}

#[test]
fn what_waited_comes_first_and_what_is_said_now_comes_too() {
    let home = home();
    home.write(
        "project/wait.toml",
        "[[step]]\nwhen = { asked = 'one' }\ndelay = '10m'\ntext = 'One.'\n\
         [[step]]\nwhen = { asked = 'two' }\ntext = 'Two.'\n\
         [[step]]\nwhen = { asked = 'three' }\ndelay = '300ms'\ntext = 'Three.'",
    );
    let said = |text: &str| format!("{{\"type\":\"user\",\"message\":{{\"content\":\"{text}\"}}}}\n");
    let lines = [said("one"), said("two"), r#"{"command":"interrupt"}"#.to_owned()].concat();
    assert_eq!(told(&home, "wait.toml", &lines), Some(130));
    let mut command = home.helve(&["run", "--model", "script:wait.toml", "--continue", "three"]);
    command.stdin(Stdio::null());
    let ran = home.run_command(command);
    assert_eq!((ran.code, ran.out.as_str()), (0, "Two.\nThree.\n"), "{}", ran.err);
}

#[test]
fn only_whole_answers_are_piped_on_and_quiet_runs_say_why_they_fail() {
    let home = home();
    home.write(
        "project/cut.toml",
        "[[step]]\ntext = 'Hello wor'\ncut = true\n[[step]]\ntext = 'Hello world.'\n\
         [[step]]\nfail = { status = 400, message = 'no' }",
    );
    let go = |words: &[&str]| {
        let mut command = home.helve(&[&["run", "--model", "script:cut.toml"], words].concat());
        command.stdin(Stdio::null());
        home.run_command(command)
    };
    assert_eq!(go(&["go"]).out, "Hello world.\n");
    let failed = go(&["--continue", "--quiet", "again"]);
    assert_eq!((failed.code, failed.out.as_str()), (1, ""));
    assert!(failed.err.contains("did not answer"), "{}", failed.err);
}

#[test]
fn a_slow_reader_gets_the_whole_answer() {
    let home = home();
    let text = "word ".repeat(40_000);
    home.write(
        "project/long.toml",
        &format!(
            "[[step]]\ntext = {text:?}\ncalls = [{{ tool = 'read', input = {{ path = 'a.txt' }} }}, {{ tool = 'write', input = {{ path = 'a.txt', content = 'new' }} }}]\n\
             [[step]]\ntext = 'done'"
        ),
    );
    let mut command = home.helve(&["run", "--yes", "--model", "script:long.toml", "go"]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    until("the work is done", || content(&home) == "new");
    let output = child.wait_with_output().unwrap();
    assert!(output.stdout == format!("{text}\ndone\n").as_bytes(), "{} bytes", output.stdout.len());
}
