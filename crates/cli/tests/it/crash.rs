//! Whatever moment the program is killed at: what it had told is there, nothing runs twice by itself, and the session goes on
//! with requests that a real server takes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use helve_journal::Journal;
use helve_models::script::ModelScript;
use helve_protocol::{
    EventBody, MessagePart, Persistence, SessionCreated, SessionEvent, SessionId, ToolState,
};
use helve_testkit::{SampleSession, ScriptedServer, sample_id, skip};

use crate::home::Home;

/// The first turn looks, runs a command that must not run twice, and writes a file. The second does one thing more.
const SCRIPT: &str = r#"
    [[step]]
    when = { result = "second-is-done" }
    text = "Finished."
    repeat = true

    [[step]]
    when = { asked = "go on" }
    thinking = "What was I doing?"
    calls = [{ tool = "shell", input = { command = "echo second >> count; echo second-is-done" } }]
    repeat = true

    [[step]]
    when = { tool = "write" }
    text = "All done."
    repeat = true

    [[step]]
    when = { tool = "shell" }
    calls = [{ tool = "write", input = { path = "out.txt", content = "CONTENT" } }]
    piece = 10000
    repeat = true

    [[step]]
    when = { tool = "read" }
    thinking = "Now the command."
    text = "I run it."
    calls = [{ tool = "shell", input = { command = "echo first >> count" } }]
    repeat = true

    [[step]]
    when = { asked = "begin" }
    thinking = "I look first."
    calls = [{ tool = "read", input = { path = "a.txt" } }]
    repeat = true
"#;

/// Enough to be seen if half of it were there.
fn content() -> String {
    "all or nothing\n".repeat(1_000)
}

/// The moments at which a process may be killed: just before it makes one of these calls.
const CALLS: [&str; 7] = ["write", "sendto", "fdatasync", "fsync", "rename", "execve", "openat"];

/// Where a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// With a new session.
    Anew,
    /// With a session that is there already, so that the path of its log is known.
    Later,
}

/// Whose calls count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// All of them. strace counts for each thread, so that it is the first thread that comes so far.
    Anything,
    /// Those that are about the session's log.
    Log,
    /// Those that name the program itself: the start of a command's keeper.
    Keeper,
    /// Those that name the shell.
    Shell,
}

/// One way to be killed.
#[derive(Clone, Copy, Debug)]
struct Case {
    wire: &'static str,
    start: Start,
    of: Of,
    call: &'static str,
    number: usize,
}

/// What a case brought to light.
#[derive(Debug)]
struct Crash {
    /// Whether the program itself was killed, and not only something that it had started.
    was_killed: bool,
    /// The kind of the last event that was there.
    last: String,
    /// How many events it had told.
    told: usize,
    /// How often the command had run.
    ran: usize,
}

struct Machine {
    home: Home,
    server: ScriptedServer,
}

impl Machine {
    fn new(wire: &str, start: Start) -> Machine {
        let home = Home::new();
        let script = SCRIPT.replace("CONTENT", &content().replace('\n', "\\n"));
        let server = ScriptedServer::play(ModelScript::parse(&script).unwrap()).unwrap();
        server.be_strict();
        let settings = format!(
            "model = 'mine/model'\neffort = 'low'\n\
             [providers.mine]\nwire = '{wire}'\nbase_url = '{}'\nauth = 'none'\n\
             [catalogue.'mine/model']\nthinking = true\n\
             [limits]\nmax_retry_time = '2s'\n",
            server.url("/v1")
        );
        home.write("home/config.toml", &settings);
        home.write("project/a.txt", "hello\n");
        let machine = Machine { home, server };
        if start == Start::Later {
            machine.store();
        }
        machine
    }

    /// A session of this project, in which something was said before.
    fn store(&self) {
        let mut session = SampleSession::new(sample_id(1));
        let workspace = self.home.project().display().to_string();
        let created = SessionCreated { workspace, model: None, helve: "0.1.0".to_owned(), parent: None };
        let mut events = vec![session.event(created), session.user_message("hello")];
        events.extend(session.step("I look.", &[("read", "fn main() {}\n")]));
        events.extend(session.step("It does nothing.", &[]));
        self.home.journal().create(session.id).unwrap().append(&events).unwrap();
    }

    /// The command that begins the turn under strace, which is told what to do.
    fn traced(&self, start: Start, of: Of, what: &[&str]) -> Command {
        let words: &[&str] = match start {
            Start::Anew => &["run", "--yes", "--output", "stream-json", "begin"],
            Start::Later => &["run", "--yes", "--output", "stream-json", "--continue", "begin"],
        };
        let helve = self.home.helve(words);
        // By another name, so that the path of the program means its second start.
        let link = self.home.path().with_file_name("helve");
        symlink(helve.get_program(), &link).unwrap();
        let mut strace = Command::new("strace");
        strace.arg("-f").arg("-o").arg(self.trace()).args(what);
        if let Some(path) = self.path(of) {
            strace.arg("-P").arg(path);
        }
        strace.arg(link).args(helve.get_args()).current_dir(self.home.project()).env_clear();
        strace.envs(helve.get_envs().filter_map(|(name, value)| Some((name, value?))));
        strace.stdin(Stdio::null());
        strace
    }

    /// Runs the turn, and gives what strace saw of it.
    fn begin(&self, start: Start, of: Of, what: &[&str]) -> (Output, String) {
        let output = self.traced(start, of, what).output().unwrap();
        (output, fs::read_to_string(self.trace()).unwrap_or_default())
    }

    fn trace(&self) -> PathBuf {
        self.home.path().with_file_name("trace")
    }

    fn path(&self, of: Of) -> Option<PathBuf> {
        match of {
            Of::Anything => None,
            Of::Log => Some(self.home.log_of(1)),
            // As the program names itself, so that an update does no harm.
            Of::Keeper => Some(PathBuf::from("/proc/self/exe")),
            Of::Shell => ["/usr/bin/bash", "/bin/bash", "/usr/bin/sh", "/bin/sh"]
                .map(PathBuf::from)
                .into_iter()
                .find(|path| path.exists()),
        }
    }

    /// The one session in which something is written, if it came to that, and what the program shows of it. A kill may
    /// leave one behind in which nothing is, and which nobody has ever heard of.
    fn events(&self) -> Vec<SessionEvent> {
        let sessions = self.home.journal().sessions().unwrap();
        let shown = sessions.iter().map(|session| self.shown(*session));
        let mut begun: Vec<Vec<SessionEvent>> = shown.filter(|events| !events.is_empty()).collect();
        assert!(begun.len() <= 1, "{begun:?}");
        begun.pop().unwrap_or_default()
    }

    fn shown(&self, session: SessionId) -> Vec<SessionEvent> {
        let shown = self.home.run(&["sessions", "show", &session.to_string(), "--events"]);
        assert_eq!(shown.code, 0, "{}", shown.err);
        shown.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// How often a command has left its word.
    fn count(&self, word: &str) -> usize {
        let lines = fs::read_to_string(self.home.project().join("count")).unwrap_or_default();
        lines.lines().filter(|line| *line == word).count()
    }

    fn file(&self) -> Option<String> {
        fs::read_to_string(self.home.project().join("out.txt")).ok()
    }

    /// Durable events that the program had told before it was killed. The last line may be cut off.
    fn told(&self, stdout: &[u8]) -> Vec<SessionEvent> {
        let text = self.home.masked(&String::from_utf8_lossy(stdout));
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.filter_map(durable).collect()
    }
}

/// The event of a line of output, if it is one that may not be lost.
fn durable(line: &str) -> Option<SessionEvent> {
    if line.starts_with(r#"{"type":"result""#) {
        return None;
    }
    let event: SessionEvent = serde_json::from_str(line).unwrap();
    (event.body.persistence() == Persistence::Durable).then_some(event)
}

/// How far a call came, as the log has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    /// It was not begun, as far as the log knows.
    Nowhere,
    Begun,
    /// It has a result, and what it did was done.
    Done,
    /// It has a result that says that something else became of it.
    Broken,
}

/// What became of the calls of a tool, one after the other.
fn calls(events: &[SessionEvent], tool: &str) -> Vec<Came> {
    let mut calls = Vec::new();
    for event in events {
        match &event.body {
            EventBody::ResponseEnded(ended) => {
                calls.extend(ended.parts.iter().filter_map(|part| match part {
                    MessagePart::Tool(part) if part.name == tool => Some((part.call, Came::Nowhere)),
                    _ => None,
                }))
            }
            EventBody::ToolStarted(started) => change(&mut calls, started.call, Came::Begun),
            EventBody::ToolEnded(ended) => {
                let is_done = match &ended.end {
                    ToolState::Completed { output } => {
                        tool != "shell" || output.text.contains("[exit code 0]")
                    }
                    _ => false,
                };
                change(&mut calls, ended.call, if is_done { Came::Done } else { Came::Broken });
            }
            _ => {}
        }
    }
    calls.into_iter().map(|(_, came)| came).collect()
}

fn change<Id: PartialEq>(calls: &mut [(Id, Came)], call: Id, to: Came) {
    if let Some((_, came)) = calls.iter_mut().find(|(of, _)| *of == call) {
        *came = to;
    }
}

/// What is in the world is what the log says.
fn assert_effects(machine: &Machine, events: &[SessionEvent]) {
    let first = machine.count("first");
    match calls(events, "shell").first() {
        None | Some(Came::Nowhere) => assert_eq!(first, 0, "it ran before that was written down"),
        Some(Came::Done) => assert_eq!(first, 1, "it ran, as the log says"),
        Some(Came::Begun | Came::Broken) => assert!(first <= 1, "it ran twice"),
    }
    let file = machine.file();
    assert!(file.is_none() || file == Some(content()), "half a file");
    match calls(events, "write").first() {
        None | Some(Came::Nowhere) => assert_eq!(file, None, "it was written before that was written down"),
        Some(Came::Done) => assert!(file.is_some(), "it was written, as the log says"),
        Some(Came::Begun | Came::Broken) => {}
    }
}

/// Kills, looks, and goes on. Nothing if nobody came so far as to be killed.
fn crash(case: Case) -> Option<Crash> {
    let machine = Machine::new(case.wire, case.start);
    let (calls, kill) =
        (format!("trace={}", case.call), format!("inject={}:signal=KILL:when={}", case.call, case.number));
    let (output, trace) = machine.begin(case.start, case.of, &["-e", &calls, "-e", &kill]);
    if !trace.contains("+++ killed by SIGKILL +++") {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    let before = machine.events();
    let told = machine.told(&output.stdout);
    let lost: Vec<&SessionEvent> = told.iter().filter(|event| !before.contains(event)).collect();
    assert!(lost.is_empty(), "told and lost: {lost:?}");
    assert_effects(&machine, &before);
    let ran = machine.count("first");
    go_on(&machine, &before);
    assert_eq!(machine.count("first"), ran, "it ran again by itself");
    let was_killed = output.status.code().is_none_or(|code| code > 128);
    assert!(was_killed || output.status.success(), "a child was killed, and the turn with it: {output:?}");
    let last = before.last().map_or("nothing", |event| event.body.kind()).to_owned();
    Some(Crash { was_killed, last, told: told.len(), ran })
}

/// The session goes on as if nothing had been.
fn go_on(machine: &Machine, before: &[SessionEvent]) {
    let mut words = vec!["run", "--yes", "--quiet"];
    words.extend(before.first().map(|_| "--continue"));
    words.push("go on");
    let mut command = machine.home.helve(&words);
    command.stdin(Stdio::null());
    let ran = machine.home.run_command(command);
    assert_eq!(machine.server.refused(), Vec::<String>::new(), "a real server would not go on with this");
    assert_eq!((ran.code, ran.out.as_str()), (0, "Finished.\n"), "{}", ran.err);
    assert_eq!(machine.count("second"), 1);
    let after = machine.events();
    assert!(after.starts_with(before), "what was written down is another");
    for tool in ["read", "shell", "write"] {
        let open = [Came::Nowhere, Came::Begun];
        assert!(!calls(&after, tool).iter().any(|came| open.contains(came)), "a call has no result");
    }
    let count = |kind: &str| after.iter().filter(|event| event.body.kind() == kind).count();
    assert_eq!(count("turn_started"), count("turn_ended"));
    let doctor = machine.home.run(&["doctor"]);
    assert_eq!(doctor.code, 0, "{}", doctor.out);
}

/// How many of each call the busiest thread makes, when nobody is killed.
fn numbers(wire: &str, start: Start, of: Of) -> BTreeMap<&'static str, usize> {
    let machine = Machine::new(wire, start);
    let (output, trace) = machine.begin(start, of, &["-e", &format!("trace={}", CALLS.join(","))]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut by_thread: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for line in trace.lines() {
        let Some((thread, rest)) = line.split_once(char::is_whitespace) else { continue };
        let Some((call, _)) = rest.trim_start().split_once('(') else { continue };
        *by_thread.entry((thread, call)).or_default() += 1;
    }
    let most =
        |call: &str| by_thread.iter().filter(|((_, of), _)| *of == call).map(|(_, count)| *count).max();
    CALLS.into_iter().filter_map(|call| Some((call, most(call)?))).collect()
}

/// Every so many-th of all moments.
fn cases(wire: &'static str, start: Start, of: Of, every: usize) -> Vec<Case> {
    let numbers = numbers(wire, start, of);
    let of_call = |(call, most): (&'static str, usize)| {
        (1..=most).step_by(every).map(move |number| Case { wire, start, of, call, number })
    };
    numbers.into_iter().flat_map(of_call).collect()
}

/// Does all of them, two at a time.
fn crash_all(cases: Vec<Case>) -> Vec<Crash> {
    let waiting = Mutex::new(cases.into_iter());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        let mut crashes = Vec::new();
        while let Some(case) = next() {
            let crash = std::panic::catch_unwind(|| crash(case));
            assert!(crash.is_ok(), "{case:?}");
            crashes.extend(crash.unwrap_or_default());
        }
        crashes
    };
    thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut crashes = work();
        crashes.extend(other.join().unwrap());
        crashes
    })
}

fn can_kill(test: &str) -> bool {
    let tried = Command::new("strace")
        .args(["-f", "-o", "/dev/null", "-e", "trace=execve", "-e", "inject=execve:signal=KILL:when=2"])
        .arg("true")
        .output();
    let can = tried.is_ok_and(|output| output.status.success());
    if !can {
        skip(test, "strace is not installed, or may not trace here");
    }
    can
}

fn killed(crashes: &[Crash]) -> usize {
    crashes.iter().filter(|crash| crash.was_killed).count()
}

/// After a turn was killed at all those moments, they must have been different ones.
fn assert_moments(crashes: &[Crash], kinds: &[&str]) {
    let seen: BTreeSet<&str> = crashes.iter().map(|crash| crash.last.as_str()).collect();
    let missing: Vec<&&str> = kinds.iter().filter(|kind| !seen.contains(**kind)).collect();
    assert!(missing.is_empty(), "no crash after {missing:?}, only after {seen:?}");
    let ran: BTreeSet<usize> = crashes.iter().map(|crash| crash.ran).collect();
    assert_eq!(ran, BTreeSet::from([0, 1]), "before the command and after it");
    assert!(
        crashes.iter().map(|crash| crash.told).sum::<usize>() > crashes.len(),
        "hardly anything was told"
    );
}

#[test]
fn nothing_is_lost_wherever_a_new_session_is_killed() {
    if !can_kill("nothing_is_lost_wherever_a_new_session_is_killed") {
        return;
    }
    for (wire, every, least) in
        [("messages", 1, 60), ("chat", 5, 10), ("responses", 5, 10), ("gemini", 5, 10)]
    {
        let crashes = crash_all(cases(wire, Start::Anew, Of::Anything, every));
        assert!(killed(&crashes) >= least, "{wire}: only {} were killed", killed(&crashes));
        if every == 1 {
            let kinds = ["nothing", "step_started", "tool_started", "tool_ended"];
            assert_moments(&crashes, &kinds);
        }
    }
}

#[test]
fn nothing_is_lost_at_whatever_line_of_the_log_a_session_is_killed_on_any_wire() {
    if !can_kill("nothing_is_lost_at_whatever_line_of_the_log_a_session_is_killed_on_any_wire") {
        return;
    }
    for (wire, every) in [("messages", 1), ("chat", 2), ("responses", 2), ("gemini", 2)] {
        let crashes = crash_all(cases(wire, Start::Later, Of::Log, every));
        assert!(killed(&crashes) >= 8, "{wire}: only {} were killed", killed(&crashes));
        if every == 1 {
            let kinds = ["user_message", "step_started", "response_ended", "tool_started"];
            assert_moments(&crashes, &kinds);
        }
    }
}

/// Every line of the log is held back for a moment: whoever tells it before it is stored would be seen.
#[test]
fn what_is_told_is_stored_by_then() {
    if !can_kill("what_is_told_is_stored_by_then") {
        return;
    }
    let machine = Machine::new("messages", Start::Later);
    let slowly = ["-e", "trace=write", "-e", "inject=write:delay_enter=10000"];
    let mut strace = machine.traced(Start::Later, Of::Log, &slowly);
    let mut child = strace.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut told = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let Some(event) = durable(&line.unwrap()) else { continue };
        let log = fs::read_to_string(machine.home.log_of(1)).unwrap();
        assert!(
            log.contains(&format!("\n{{\"seq\":{},", event.seq.0)),
            "told before it is stored: {event:?}"
        );
        told += 1;
    }
    assert!(child.wait().unwrap().success());
    assert!(told > 15, "only {told} events were told");
}

#[test]
fn a_turn_goes_on_when_only_what_it_started_is_killed() {
    if !can_kill("a_turn_goes_on_when_only_what_it_started_is_killed") {
        return;
    }
    let case = |of, call, number| Case { wire: "chat", start: Start::Anew, of, call, number };
    let crashes = crash_all(vec![case(Of::Keeper, "execve", 1), case(Of::Shell, "execve", 1)]);
    assert_eq!((crashes.len(), killed(&crashes)), (2, 0), "{crashes:?}");
    assert!(crashes.iter().all(|crash| crash.ran == 0 && crash.last == "turn_ended"), "{crashes:?}");
}
