//! The shell tools with real processes. That nothing is left of them is read from `/proc`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use helve_protocol::{CallId, ToolOutput};
use helve_testkit::sample_id;
use helve_tools::{
    BackgroundJobs, CommandSettings, LiveOutput, OutsidePrograms, ReadTool, ShellInputTool, ShellKillTool,
    ShellOutputTool, ShellTool, Tool, ToolContext,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::world::context;

/// How long a busy machine may take for what should take a moment.
const LONG: Duration = Duration::from_secs(120);

/// A project with a shell, and a mark that all its processes carry.
pub(crate) struct House {
    folder: tempfile::TempDir,
    mark: Mark,
    pub(crate) context: ToolContext,
    shell: ShellTool,
    pub(crate) jobs: Arc<BackgroundJobs>,
}

impl House {
    pub(crate) fn new() -> House {
        House::with(|_| {})
    }

    /// The shell as it is wanted.
    pub(crate) fn with(change: impl FnOnce(&mut CommandSettings)) -> House {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mark =
            format!("HELVE_SHELL_MARK={}-{}.", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("project");
        fs::create_dir_all(root.join("sub/deep")).unwrap();
        let temporary = folder.path().join("temporary");
        fs::create_dir(&temporary).unwrap();
        let (name, value) = mark.split_once('=').unwrap();
        let mut commands = CommandSettings {
            withheld: Vec::new(),
            keeper: keeper(),
            program: "bash".into(),
            startup: None,
            env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()), (name.into(), value.into())],
            processes: 500,
            temporary,
            memory: None,
            fence: None,
            outside: OutsidePrograms::default(),
        };
        change(&mut commands);
        let jobs = Arc::new(BackgroundJobs::default());
        House {
            context: context(&root),
            folder,
            shell: ShellTool::new(commands, jobs.clone()),
            jobs,
            mark: Mark(mark),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.context.root
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub(crate) async fn call(&self, tool: &dyn Tool, input: Value) -> Result<ToolOutput, String> {
        timeout(LONG, tool.run(input, &self.context)).await.unwrap().map_err(|failure| failure.0)
    }

    pub(crate) async fn shell(&self, input: Value) -> ToolOutput {
        self.call(&self.shell, input).await.unwrap()
    }

    /// What the model is told of a command.
    pub(crate) async fn run(&self, command: &str) -> String {
        self.shell(json!({ "command": command })).await.text
    }

    pub(crate) async fn on_terminal(&self, command: &str) -> String {
        self.shell(json!({ "command": command, "terminal": true })).await.text
    }

    pub(crate) async fn begin(&self, command: &str, terminal: bool) -> String {
        self.shell(json!({ "command": command, "background": true, "terminal": terminal })).await.text
    }

    pub(crate) async fn look(&self, input: Value) -> Result<String, String> {
        let tool = ShellOutputTool { jobs: self.jobs.clone() };
        self.call(&tool, input).await.map(|output| output.text)
    }

    pub(crate) async fn type_in(&self, input: Value) -> Result<String, String> {
        let tool = ShellInputTool { jobs: self.jobs.clone() };
        self.call(&tool, input).await.map(|output| output.text)
    }

    pub(crate) async fn kill(&self, job: u32) -> Result<String, String> {
        let tool = ShellKillTool { jobs: self.jobs.clone() };
        self.call(&tool, json!({ "job": job })).await.map(|output| output.text)
    }

    pub(crate) fn shell_tool(&self) -> &dyn Tool {
        &self.shell
    }

    /// Drops the tools and their jobs; the rest goes on.
    pub(crate) fn end_session(self) -> Mark {
        self.mark
    }

    pub(crate) fn processes(&self) -> usize {
        self.mark.processes()
    }

    pub(crate) async fn until_processes(&self, is_so: impl Fn(usize) -> bool) {
        self.mark.until_processes(is_so).await;
    }
}

/// What all processes of a house carry in their environment.
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) async fn until_gone(&self) {
        self.until_processes(|count| count == 0).await;
    }

    /// How many processes carry the mark.
    fn processes(&self) -> usize {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let environments = entries.filter_map(|entry| fs::read(entry.path().join("environ")).ok());
        let is_marked =
            |environment: &Vec<u8>| environment.windows(self.0.len()).any(|part| part == self.0.as_bytes());
        environments.filter(is_marked).count()
    }

    async fn until_processes(&self, is_so: impl Fn(usize) -> bool) {
        let waiting = async {
            while !is_so(self.processes()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(LONG, waiting).await.unwrap_or_else(|_| panic!("{} processes", self.processes()));
    }
}

fn keeper() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().unwrap().parent().unwrap().join("examples/keeper");
    assert!(path.exists(), "{} is built by `cargo test -p helve-tools`", path.display());
    path
}

#[tokio::test]
async fn output_and_exit_code_are_told() {
    let house = House::new();
    assert_eq!(house.run("echo out; echo err >&2").await, "out\nerr\n[exit code 0]");
    assert_eq!(house.run("printf no-end; exit 3").await, "no-end\n[exit code 3]");
    assert_eq!(house.run("kill -9 $$").await, "[ended by signal 9 (killed)]");
    assert!(house.run("no-such-thing").await.ends_with("[exit code 127: a command was not found]"));
    let failed = house.shell(json!({ "command": "echo why; exit 1" })).await;
    assert_eq!(failed.display.as_deref(), Some("why [exit code 1]"));
    assert_eq!(house.shell(json!({ "command": "true" })).await.display, None);
    assert_eq!(house.processes(), 0);
}

#[tokio::test]
async fn a_mistake_is_told_with_its_own_line() {
    let house = House::new();
    assert_eq!(
        house.run("true\nno-such-thing 2>&1 | sed 's/.*line/line/'").await,
        "line 2: no-such-thing: command not found\n[exit code 0]"
    );
    assert!(house.run("echo 'open").await.contains("line 1: unexpected EOF"));
}

#[tokio::test]
async fn the_folder_holds_for_the_next_call() {
    for program in ["bash", "sh"] {
        let house = House::with(|commands| commands.program = program.into());
        let sub = house.root().join("sub");
        let here = |folder: &Path| format!("{}\n[exit code 0]", folder.display());
        assert_eq!(house.run("cd sub").await, "[exit code 0]\n[now in sub]");
        assert_eq!(house.run("pwd").await, here(&sub));
        let ways = [
            "cd deep; exit 3",
            "cd deep && false",
            "set -e; cd deep; false; cd /",
            "set -euC; cd deep",
            "cd deep; exec true",
            "cd deep; kill -9 $$",
            "trap 'echo mine' EXIT; cd deep",
            "cd deep; trap - EXIT; exit",
            "cd nowhere; cd deep",
            "f() { cd deep; }; f",
            "unset -f cd; cd deep",
        ];
        for way in ways {
            let told = house.run(way).await;
            assert!(told.ends_with("[now in sub/deep]"), "{program}: {way}: {told}");
            assert_eq!(house.run("cd ..; pwd").await.lines().next(), sub.to_str(), "{program}: {way}");
            house.run(&format!("cd {}", sub.display())).await;
        }
        let stays = [
            "(cd deep)",
            "cd deep | cat",
            "cd deep & wait",
            "x=$(cd deep; pwd)",
            "bash -c 'cd deep'",
            "cd nowhere",
        ];
        for way in stays {
            house.run(way).await;
            assert_eq!(house.run("pwd").await, here(&sub), "{program}: {way}");
        }
    }
}

#[tokio::test]
async fn the_folder_survives_a_time_out_and_a_stop() {
    let house = House::new();
    let told = house.shell(json!({ "command": "cd sub; echo there; sleep 1000", "timeout": 1 })).await;
    assert!(told.text.starts_with("there\n[stopped after 1 s, with everything that it had started; "));
    assert!(told.text.ends_with("]\n[now in sub]"), "{}", told.text);
    {
        let shell = house.call(&house.shell, json!({ "command": "cd deep; touch here; exec sleep 1000" }));
        let is_there = async {
            while !house.root().join("sub/deep/here").exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! { told = shell => panic!("{told:?}"), () = is_there => {} }
    }
    house.until_processes(|count| count == 0).await;
    assert_eq!(house.run("pwd").await.lines().next(), house.root().join("sub/deep").to_str());
}

#[tokio::test]
async fn a_folder_outside_or_gone_is_told() {
    let house = House::new();
    let outside = house.outside();
    let note = format!("[now in {}, outside the project]", outside.display());
    assert_eq!(house.run(&format!("cd {}", outside.display())).await, format!("[exit code 0]\n{note}"));
    assert_eq!(house.run("true").await, format!("[exit code 0]\n{note}"), "each time");
    assert_eq!(house.run("cd project").await, "[exit code 0]\n[now in the project's folder]");
    house.run("mkdir gone; cd gone").await;
    fs::remove_dir(house.root().join("gone")).unwrap();
    let gone = format!("[{} is gone; back in the project]\n", house.root().join("gone").display());
    assert_eq!(house.run("pwd").await, format!("{gone}{}\n[exit code 0]", house.root().display()));
    assert_eq!(house.run("mkdir x; cd x; rmdir ../x").await, "[exit code 0]");
    assert_eq!(house.run("pwd").await.lines().last(), Some("[exit code 0]"));
}

#[tokio::test]
async fn a_folder_with_a_strange_name_is_followed() {
    let house = House::new();
    house.run("mkdir -p \"$(printf \"a'b \\\\n\\n\\$c\\351\")\"; cd a*; touch here").await;
    assert_eq!(house.run("ls").await, "here\n[exit code 0]");
}

/// A house whose shells read this script.
fn with_script(program: &str, script: &str) -> House {
    House::with(|commands| {
        let path = commands.temporary.with_file_name("startup");
        fs::write(&path, script).unwrap();
        commands.startup = Some(path);
        commands.program = program.into();
    })
}

#[tokio::test]
async fn a_startup_script_is_read_by_every_shell_and_heard_once() {
    let house = with_script("bash", "echo welcome; export ANSWER=42; greet() { echo hi; }");
    let first = house.run("greet $ANSWER").await;
    assert!(
        first.starts_with("[the startup script /") && first.ends_with("says:]\nwelcome\nhi\n[exit code 0]"),
        "{first}"
    );
    assert_eq!(house.run("greet; echo $ANSWER").await, "hi\n42\n[exit code 0]");
    assert!(house.begin("greet; echo $ANSWER", false).await.starts_with("hi\n42\n[job 1: "));
}

#[tokio::test]
async fn a_startup_script_that_fails_is_told_and_commands_run() {
    for program in ["bash", "sh"] {
        for (script, how) in [
            ("A=1\nfalse", "failed with exit code 1; commands run all the same]"),
            ("A=1\nexit 3", "ended its shell with exit code 3, so commands run without it]"),
            ("echo 'open", "failed with exit code"),
        ] {
            let house = with_script(program, script);
            let first = house.run("echo ${A-none}").await;
            let is_told =
                first.contains(how) || (program == "sh" && first.contains("its shell with exit code 2"));
            assert!(is_told && first.ends_with("\n[exit code 0]"), "{program}: {first}");
            assert!(!house.run("true").await.contains("startup"));
        }
    }
    let missing = House::with(|commands| commands.startup = Some("/no/such/script".into()));
    assert!(missing.run("echo on").await.ends_with("on\n[exit code 0]"));
}

#[tokio::test]
async fn people_see_it_as_it_is_and_the_model_cleaned() {
    let mut house = House::new();
    let (sender, mut shown) = mpsc::channel::<(CallId, String)>(64);
    house.context.live = LiveOutput::new(sample_id(1), sender);
    let told = house.run("printf '\\033[31m10%%\\r99%%\\033[0m\\ndone\\n'").await;
    assert_eq!(told, "99%\ndone\n[exit code 0]");
    let mut live = String::new();
    while let Ok((_, text)) = shown.try_recv() {
        live.push_str(&text);
    }
    assert_eq!(live, "\u{1b}[31m10%\r99%\u{1b}[0m\ndone\n");
}

#[tokio::test]
async fn long_output_is_cut_and_can_be_read_on() {
    let house = House::new();
    let output = house.shell(json!({ "command": "seq 1 100000" })).await;
    assert!(output.text.chars().count() < 30_500);
    let note = output.text.lines().find(|line| line.contains("left out")).unwrap();
    let path = note.split(' ').find(|word| word.starts_with("output:")).unwrap();
    let offset: u32 = note.trim_end_matches(']').rsplit(' ').next().unwrap().parse().unwrap();
    assert_eq!(path, format!("output:{}", output.whole.unwrap()));
    assert!(output.text.contains(&format!("\n{}\n[", offset - 1)), "the note says where to read on");
    assert!(output.text.ends_with("\n100000\n[exit code 0]"));
    let read = ReadTool::default();
    let part = house.call(&read, json!({ "path": path, "offset": offset, "limit": 2 })).await.unwrap().text;
    assert!(
        part.starts_with(&format!("{offset:>6}\t{offset}\n{:>6}\t{}\n[", offset + 1, offset + 1)),
        "{part}"
    );
    let unknown =
        house.call(&read, json!({ "path": format!("output:{}", "0".repeat(64)) })).await.unwrap_err();
    assert!(unknown.starts_with("There is no output 000"), "{unknown}");
    let wrong = house.call(&read, json!({ "path": "output:12ab" })).await.unwrap_err();
    assert!(wrong.contains("is no id of an output"), "{wrong}");
}

#[tokio::test]
async fn a_terminal_is_given_when_it_is_asked_for() {
    let house = House::new();
    assert_eq!(house.run("test -t 1; echo $?").await, "1\n[exit code 0]");
    assert_eq!(
        house.on_terminal("test -t 0 && test -t 1 && stty size && echo $TERM").await,
        "40 120\nxterm-256color\n[exit code 0]"
    );
    assert_eq!(house.on_terminal("cd sub; exit 4").await, "[exit code 4]\n[now in sub]");
    assert!(
        house.on_terminal("python3 -q -i || true").await.ends_with("[exit code 0]"),
        "its input is empty"
    );
    assert_eq!(house.processes(), 0);
}
