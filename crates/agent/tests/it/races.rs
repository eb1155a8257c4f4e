//! A job swaps a path for a link and back, without pause, while file tools work on it: through the gate, the watch and the
//! tools as a session has them. Whatever moment it hits, nothing outside the project is read or changed, and nothing that
//! git obeys.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::{self, JoinHandle};

use helve_agent::{PermissionGate, Services, SessionSpec, WatchConfig, run_tool_once};
use helve_journal::{Journal, MemoryJournal};
use helve_protocol::{PermissionMode, ToolState};
use helve_tools::{
    ApplyPatchTool, EditTool, GlobTool, GrepTool, ListTool, NotebookEditTool, ReadTool, SessionFiles, Tool,
    WriteTool,
};
use helve_workspace::{WorkspaceLimits, WorkspaceRoot};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::house::{TestHouse, events, house};

/// So many calls of each tool, over all that is swapped.
const CALLS: usize = 3_000;
/// After so many calls a new journal begins: what the old one keeps is of no interest.
const CALLS_PER_JOURNAL: usize = 250;
const NOBODY: u32 = 65_534;

const SECRET: &str = "the-key-that-nobody-may-see";
const SECRET_NAME: &str = "name-that-nobody-may-see.txt";
const CONFIG: &str = "[core]\n\tbare = false\n";
const NOTEBOOK: &str =
    r#"{"cells":[{"cell_type":"code","metadata":{},"outputs":[],"source":["a"]}],"nbformat":4}"#;

/// What changes places with a link, and where the link leads.
#[derive(Clone, Copy, Debug)]
enum Swap {
    /// `d/FILE`, with a file outside.
    File,
    /// `d`, with a folder outside.
    Folder,
    /// The folder above `e/d`, with a folder outside.
    FolderAbove,
    /// `d`, with `.git/hooks`.
    Hooks,
    /// `d`, with `.git`.
    Git,
}

/// For whoever only reads: what is in `.git` is no secret.
const OUTSIDE: [Swap; 3] = [Swap::File, Swap::Folder, Swap::FolderAbove];
const SWAPS: [Swap; 5] = [Swap::File, Swap::Folder, Swap::FolderAbove, Swap::Hooks, Swap::Git];

/// A project, what is around it, and a job that swaps.
struct Arena {
    folder: TempDir,
    swap: Swap,
    /// The file that is swapped, if it is one.
    file: &'static str,
}

impl Arena {
    fn new(swap: Swap, file: &'static str) -> Arena {
        // In memory, so that thousands of syncs take no time.
        let memory = Path::new("/dev/shm");
        let folder = tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()).unwrap();
        let arena = Arena { folder, swap, file };
        let secret = |folder: &Path| {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join("doc.txt"), format!("word {SECRET}\n")).unwrap();
            fs::write(folder.join("config"), CONFIG.replace("bare", SECRET)).unwrap();
            fs::write(folder.join("n.ipynb"), NOTEBOOK.replace("\"a\"", &format!("\"{SECRET}\""))).unwrap();
            fs::write(folder.join(SECRET_NAME), "word").unwrap();
        };
        secret(&arena.path("outside"));
        secret(&arena.path("outside/d"));
        fs::create_dir_all(arena.path("project/.git/hooks")).unwrap();
        fs::write(arena.path("project/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        for folder in ["", "hooks/"] {
            fs::write(arena.path(&format!("project/.git/{folder}config")), CONFIG).unwrap();
            fs::write(arena.path(&format!("project/.git/{folder}n.ipynb")), NOTEBOOK).unwrap();
            fs::write(arena.path(&format!("project/.git/{folder}doc.txt")), "word\n").unwrap();
        }
        arena.reset();
        arena
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// What stands beside, and changes places with the path itself.
    fn swapped(&self) -> (PathBuf, PathBuf, PathBuf) {
        let at = |name: &str| self.path(&format!("project/{name}"));
        let (path, target) = match self.swap {
            Swap::File => (at(&format!("d/{}", self.file)), self.path(&format!("outside/{}", self.file))),
            Swap::Folder => (at("d"), self.path("outside")),
            Swap::FolderAbove => (at("e"), self.path("outside")),
            Swap::Hooks => (at("d"), at(".git/hooks")),
            Swap::Git => (at("d"), at(".git")),
        };
        (path, at("other"), target)
    }

    /// The file as the model names it.
    fn name(&self, file: &str) -> String {
        match self.swap {
            Swap::FolderAbove => format!("e/d/{file}"),
            _ => format!("d/{file}"),
        }
    }

    /// Everything in the project as it was.
    fn reset(&self) {
        let (_, other, target) = self.swapped();
        for name in ["d", "e", "other"] {
            let path = self.path(&format!("project/{name}"));
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        }
        for folder in ["d", "e/d"] {
            let at = |name: &str| self.path(&format!("project/{folder}/{name}"));
            fs::create_dir_all(at("")).unwrap();
            fs::write(at("doc.txt"), "word\n").unwrap();
            fs::write(at("config"), CONFIG).unwrap();
            fs::write(at("n.ipynb"), NOTEBOOK).unwrap();
        }
        symlink(target, other).unwrap();
    }

    /// What was changed and may not be, as it was.
    fn reset_all(&self, before: &[(PathBuf, Vec<u8>)]) {
        for (path, _) in self.forbidden() {
            fs::remove_file(path).unwrap();
        }
        before.iter().for_each(|(path, content)| fs::write(path, content).unwrap());
    }

    fn job(&self) -> Job {
        let (path, other, _) = self.swapped();
        let state = Arc::new(AtomicU8::new(SWAPPING));
        let thread = thread::spawn({
            let state = state.clone();
            move || {
                let mut swaps = 0_u64;
                loop {
                    match state.load(Ordering::SeqCst) {
                        SWAPPING => {
                            let swapped = renameat_with(CWD, &path, CWD, &other, RenameFlags::EXCHANGE);
                            swaps += u64::from(swapped.is_ok());
                        }
                        PAUSING => state.store(PAUSED, Ordering::SeqCst),
                        PAUSED => thread::yield_now(),
                        _ => return swaps,
                    }
                }
            }
        });
        Job { state, thread: Some(thread) }
    }

    /// Everything that no tool may change, as it is now: outside, and all that git keeps.
    fn forbidden(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut all = Vec::new();
        let mut folders = vec![self.path("outside"), self.path("project/.git")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let content = fs::read(&path).unwrap();
                    all.push((path, content));
                }
            }
        }
        all.sort();
        all
    }

    fn house(&self, tool: &Arc<dyn Tool>, journal: &Arc<MemoryJournal>) -> TestHouse {
        let root = self.path("project");
        let watched = WatchConfig {
            root: WorkspaceRoot::named(&root).unwrap(),
            added: Vec::new(),
            git: None,
            limits: WorkspaceLimits::default(),
            notes: None,
        };
        let TestHouse { services, spec } = house(journal, &root, vec![tool.clone()]);
        TestHouse {
            services: Services { gate: PermissionGate::answering_no(None), ..services },
            spec: SessionSpec { mode: PermissionMode::AcceptEdits, watch: Some(watched), ..spec },
        }
    }
}

const SWAPPING: u8 = 0;
const PAUSING: u8 = 1;
const PAUSED: u8 = 2;
const OVER: u8 = 3;

/// Somebody who swaps, until it is dropped.
struct Job {
    state: Arc<AtomicU8>,
    thread: Option<JoinHandle<u64>>,
}

impl Job {
    fn pause(&self) {
        self.state.store(PAUSING, Ordering::SeqCst);
        while self.state.load(Ordering::SeqCst) != PAUSED {
            thread::yield_now();
        }
    }

    fn go_on(&self) {
        self.state.store(SWAPPING, Ordering::SeqCst);
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.state.store(OVER, Ordering::SeqCst);
        let swaps = self.thread.take().unwrap().join().unwrap();
        assert!(swaps > 0, "nothing was swapped");
    }
}

/// What came of many calls.
#[derive(Debug, Default)]
struct Tally {
    calls: usize,
    done: usize,
    hits: usize,
}

/// Calls a tool while a job swaps, and counts how often it reached what it may not.
fn race(
    tool: Arc<dyn Tool>,
    file: &'static str,
    swaps: &[Swap],
    input: impl Fn(&Arena, usize) -> Value,
) -> Tally {
    let mut tally = Tally::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for swap in swaps {
        let arena = Arena::new(*swap, file);
        let before = arena.forbidden();
        let mut journal = Arc::new(MemoryJournal::default());
        let mut house = arena.house(&tool, &journal);
        let job = arena.job();
        for call in 1..=CALLS / swaps.len() {
            let input = input(&arena, call);
            let end = runtime
                .block_on(run_tool_once(
                    &house.services,
                    &house.spec,
                    tool.name(),
                    input,
                    &CancellationToken::new(),
                ))
                .unwrap()
                .end;
            job.pause();
            tally.calls += 1;
            tally.done += usize::from(matches!(end, ToolState::Completed { .. }));
            let has_told = is_secret(&serde_json::to_string(&end).unwrap());
            let has_changed = arena.forbidden() != before;
            tally.hits += usize::from(has_told || has_changed);
            if has_changed {
                arena.reset_all(&before);
            }
            arena.reset();
            if call % CALLS_PER_JOURNAL == 0 {
                tally.hits += usize::from(has_recorded(&journal));
                journal = Arc::new(MemoryJournal::default());
                house = arena.house(&tool, &journal);
            }
            job.go_on();
        }
    }
    tally
}

fn is_secret(told: &str) -> bool {
    told.contains(SECRET) || told.contains(SECRET_NAME)
}

/// Whether something of the secret is on record, such as in a diff.
fn has_recorded(journal: &MemoryJournal) -> bool {
    let sessions = journal.list().unwrap();
    let mut all = sessions.iter().flat_map(|session| events(journal, session.session));
    all.any(|event| is_secret(&serde_json::to_string(&event).unwrap()))
}

fn assert_never_astray(what: &str, tally: &Tally) {
    eprintln!("{what}: {} calls, {} done, {} led astray", tally.calls, tally.done, tally.hits);
    assert_eq!(tally.hits, 0, "{what}: {tally:?}");
    assert!(tally.done > 0, "{what}: nothing was done at all: {tally:?}");
}

fn files() -> Arc<SessionFiles> {
    Arc::new(SessionFiles::for_person())
}

#[test]
fn read_is_not_led_astray() {
    let tool = Arc::new(ReadTool { files: files() });
    let tally = race(tool, "doc.txt", &OUTSIDE, |arena, call| {
        let name = if call % 4 == 0 { "" } else { ["doc.txt", "n.ipynb", "no-such"][call % 3] };
        json!({ "path": arena.name(name) })
    });
    assert_never_astray("read", &tally);
}

#[test]
fn grep_is_not_led_astray() {
    let tool = Arc::new(GrepTool::default());
    let tally = race(tool, "doc.txt", &OUTSIDE, |arena, call| match call % 3 {
        0 => json!({ "pattern": "word|key" }),
        1 => json!({ "pattern": "word|key", "path": arena.name("doc.txt") }),
        _ => json!({ "pattern": "word|key", "path": arena.name("") }),
    });
    assert_never_astray("grep", &tally);
}

#[test]
fn glob_is_not_led_astray() {
    let tally = race(Arc::new(GlobTool::default()), "doc.txt", &OUTSIDE, |arena, call| match call % 3 {
        0 => json!({ "pattern": "*.txt" }),
        1 => json!({ "pattern": "**/*", "path": arena.name("") }),
        _ => json!({ "pattern": "*nobody-may*" }),
    });
    assert_never_astray("glob", &tally);
}

#[test]
fn list_is_not_led_astray() {
    let tally = race(Arc::new(ListTool::default()), "doc.txt", &OUTSIDE, |arena, call| match call % 2 {
        0 => json!({}),
        _ => json!({ "path": arena.name("") }),
    });
    assert_never_astray("list", &tally);
}

#[test]
fn write_is_not_led_astray() {
    let tool = Arc::new(WriteTool { files: files() });
    let tally = race(tool, "config", &SWAPS, |arena, call| {
        let new = format!("new-{call}");
        let name = ["config", &new, "deep/er/new"][call % 3];
        json!({ "path": arena.name(name), "content": "ours" })
    });
    assert_never_astray("write", &tally);
}

#[test]
fn edit_is_not_led_astray() {
    let tool = Arc::new(EditTool { files: files() });
    let tally = race(
        tool,
        "config",
        &SWAPS,
        |arena, _| json!({ "path": arena.name("config"), "edits": [{ "old": "[core]", "new": "[core]\n\tfsmonitor = evil" }] }),
    );
    assert_never_astray("edit", &tally);
}

#[test]
fn apply_patch_is_not_led_astray() {
    let tool = Arc::new(ApplyPatchTool { files: files() });
    let tally = race(tool, "config", &SWAPS, |arena, call| {
        let [config, doc, new] = ["config", "doc.txt", "new"].map(|name| arena.name(name));
        let rest = match call % 3 {
            0 => format!("*** Add File: {new}\n+ours\n"),
            1 => format!("*** Delete File: {doc}\n"),
            _ => format!("*** Update File: {doc}\n*** Move to: {new}\n@@\n-word\n+ours\n"),
        };
        let patch = format!("*** Update File: {config}\n@@\n-[core]\n+[evil]\n{rest}");
        json!({ "patch": format!("*** Begin Patch\n{patch}*** End Patch\n") })
    });
    assert_never_astray("apply_patch", &tally);
}

#[test]
fn notebook_edit_is_not_led_astray() {
    let tool = Arc::new(NotebookEditTool { files: files() });
    let tally = race(
        tool,
        "n.ipynb",
        &SWAPS,
        |arena, _| json!({ "path": arena.name("n.ipynb"), "cell": 1, "action": "replace", "source": "evil" }),
    );
    assert_never_astray("notebook_edit", &tally);
}

/// As on kernels without `openat2`.
#[test]
fn without_openat2_nobody_is_led_astray_either() {
    helve_workspace::disable_openat2();
    write_is_not_led_astray();
    read_is_not_led_astray();
}

/// As root, all of the above once more as somebody who is not.
#[test]
fn an_ordinary_user_is_not_led_astray_either() {
    const NAME: &str = "races::an_ordinary_user_is_not_led_astray_either";
    if !rustix::process::geteuid().is_root() {
        return helve_testkit::skip(NAME, "this is an ordinary user already");
    }
    // Where anybody can run it.
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("races");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let id = NOBODY.to_string();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"]).arg(&program);
    // What does without openat2 would make the others do so too.
    let others = ["races::", "--skip", NAME, "--skip", "without_openat2", "--test-threads=2", "--nocapture"];
    let run = command.args(others).output();
    let Ok(run) = run else { return helve_testkit::skip(NAME, "there is no setpriv") };
    let said = String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned();
    eprintln!("{said}");
    assert!(run.status.success(), "{said}");
}
