//! A person's machine, made for one test.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use helve_journal::{FileJournal, Journal};
use helve_protocol::{SessionEvent, SessionRenamed};
use helve_testkit::{SampleSession, sample_id};

pub(crate) struct Home {
    folder: tempfile::TempDir,
    /// Whether a model did something here, so that it can be played again.
    has_worked: Cell<bool>,
}

/// Whatever a test let a model do can be played again, to the byte: in another home and folder, in another time zone,
/// without the settings, the scripts and the servers that were there.
impl Drop for Home {
    fn drop(&mut self) {
        if !self.has_worked.get() || std::thread::panicking() {
            return;
        }
        let there = Home::new();
        fs::rename(self.path().join("sessions"), there.path().join("sessions")).unwrap();
        let mut command = there.helve(&["replay", "--all"]);
        let Output { status, stdout, stderr } = command.env("TZ", "Pacific/Chatham").output().unwrap();
        let told = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert!(status.success(), "{told}");
        assert!(told.contains("the same to the byte") && !told.contains("not kept"), "{told}");
    }
}

/// What a run of the program gave.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    pub(crate) fn new() -> Home {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("home")).unwrap();
        fs::create_dir_all(folder.path().join("project/.git")).unwrap();
        Home { folder, has_worked: Cell::new(false) }
    }

    /// Leaves the check at the end out: another build recorded these sessions, and may have told models other words.
    pub(crate) fn skip_replay(&self) {
        self.has_worked.set(false);
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("home")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("project")
    }

    pub(crate) fn journal(&self) -> FileJournal {
        FileJournal::new(self.path())
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The program, in the project, with nothing of this machine's environment but the way to other programs.
    pub(crate) fn helve(&self, words: &[&str]) -> Command {
        let is_work = matches!(words.first(), Some(&("run" | "demo" | "-m")));
        self.has_worked.set(self.has_worked.get() || is_work);
        let mut command = Command::new(env!("CARGO_BIN_EXE_helve"));
        command.args(words).current_dir(self.project()).env_clear();
        command.env("PATH", "/usr/bin:/bin").env("HELVE_HOME", self.path()).env("TZ", "UTC");
        // A program that is killed leaves its temporary files: here they go with the test.
        command.env("TERM", "xterm-256color").env("TMPDIR", self.folder.path());
        // Whatever runs on this machine, nothing listens here.
        for server in ["OLLAMA", "LMSTUDIO", "LLAMACPP", "VLLM"] {
            command.env(format!("{server}_BASE_URL"), "http://127.0.0.1:1/v1");
        }
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Ran {
        self.run_command(self.helve(words))
    }

    pub(crate) fn run_command(&self, mut command: Command) -> Ran {
        let Output { status, stdout, stderr } = command.output().unwrap();
        let text = |bytes: Vec<u8>| self.masked(&String::from_utf8(bytes).unwrap());
        Ran { code: status.code().unwrap(), out: text(stdout), err: text(stderr) }
    }

    /// The same on every machine.
    pub(crate) fn masked(&self, text: &str) -> String {
        let path = |path: &Path| path.display().to_string();
        text.replace(&path(&self.path()), "[HOME]").replace(&path(&self.project()), "[PROJECT]")
    }

    /// Stores a session with a question, a look at a file and an answer.
    pub(crate) fn store(&self, n: u64, question: &str) -> Vec<SessionEvent> {
        let mut session = SampleSession::new(sample_id(n));
        let mut events = vec![session.created(), session.user_message(question)];
        events.extend(session.step("I look.", &[("read", "fn main() {}\n")]));
        events.extend(session.step("It does nothing.", &[]));
        events.push(session.turn_ended());
        self.journal().create(session.id).unwrap().append(&events).unwrap();
        events
    }

    pub(crate) fn rename(&self, n: u64, title: &str) {
        let mut session = SampleSession::new(sample_id(n));
        let mut log = self.journal().open(session.id, &mut |event| session.last = event.seq).unwrap();
        log.append(&[session.event(SessionRenamed { title: title.to_owned() })]).unwrap();
    }

    pub(crate) fn log_of(&self, n: u64) -> PathBuf {
        let session: helve_protocol::SessionId = sample_id(n);
        self.path().join("sessions").join(session.to_string()).join("log.jsonl")
    }
}
