//! Where scripts really run: in an empty folder, with a PATH that holds nothing but programs that write down how they were
//! called, and a few real ones that run others.

use std::fs;
use std::io::{PipeReader, Read};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use tempfile::TempDir;

/// Programs that write down how they were called. `bb` and `vv` print something that would be bad to run, `xx` fails.
pub(crate) const STUBS: [&str; 7] = ["aa", "bb", "cc", "dd", "vv", "xx", "-v"];
/// Programs that run others and are as they are, if they are there.
const REAL: [&str; 12] =
    ["env", "xargs", "timeout", "nice", "nohup", "find", "sh", "bash", "dash", "setsid", "stdbuf", "cat"];
/// Nobody: whoever runs tests as root must not run random scripts as root.
const NOBODY: u32 = 65534;
/// Scripts that take longer are ended, and what they ran until then is looked at.
const LIMIT: Duration = Duration::from_secs(5);
/// More of what scripts print is not read.
const MAX_OUTPUT: u64 = 1 << 16;

/// Which shell runs a script.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shell {
    Bash,
    /// The one that the system calls so.
    Sh,
    /// Bash, when it is called so.
    BashAsSh,
}

pub(crate) struct Arena {
    folder: TempDir,
    is_root: bool,
}

impl Arena {
    /// `None` if there is no bash here.
    pub(crate) fn new(more_stubs: &[String]) -> Option<Arena> {
        Arena::with(more_stubs, &REAL)
    }

    /// The same with these programs as they are.
    pub(crate) fn with(more_stubs: &[String], real: &[&str]) -> Option<Arena> {
        Command::new("bash").arg("--version").stdout(Stdio::null()).status().ok()?;
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let is_root =
            fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
        let arena = Arena { folder, is_root };
        fs::create_dir(arena.path("bin")).unwrap();
        arena.install_stubs(more_stubs);
        for name in real {
            let found = ["/usr/bin", "/bin"]
                .iter()
                .map(|folder| Path::new(folder).join(name))
                .find(|path| path.exists());
            if let Some(real) = found {
                symlink(real, arena.path("bin").join(name)).unwrap();
            }
        }
        Some(arena)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn install_stubs(&self, more: &[String]) {
        let stub = "#!/bin/sh\n\
             printf '%s\\0' \"$#\" \"${0##*/}\" \"$@\" >> \"${0%/bin/*}/log\"\n\
             case ${0##*/} in bb) echo 'aa z';; vv) echo 'q[$(aa evil)]';; xx) exit 1;; esac\n";
        let file = self.path("stub");
        fs::write(&file, stub).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let more = more.iter().map(String::as_str).filter(|name| !REAL.contains(name));
        for name in STUBS.into_iter().chain(more) {
            let _ = symlink(&file, self.path("bin").join(name));
        }
    }

    /// What a script really runs. Each has its own folder, so that what one leaves behind is not taken for the next one's.
    pub(crate) fn run(&self, shell: Shell, script: &str) -> Vec<Vec<String>> {
        let place = tempfile::tempdir_in(self.folder.path()).unwrap();
        let (home, log) = (place.path().join("home"), place.path().join("log"));
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        symlink(self.path("bin"), place.path().join("bin")).unwrap();
        fs::create_dir(&home).unwrap();
        fs::write(&log, "").unwrap();
        let mut bash = Command::new("bash");
        // Nobody has few processes, so they can be counted; anybody else may have many already.
        let limit = if self.is_root { "ulimit -u 400; " } else { "" };
        let program = match shell {
            Shell::Bash => "bash --noprofile --norc",
            Shell::Sh => "sh",
            Shell::BashAsSh => "-a sh bash",
        };
        // Scripts must not be saved by what the tests happen to have open: the first descriptor that bash gives is 10.
        let run = format!("{limit}exec 10<&- 11<&- 12<&-; exec {program} -c \"$1\"");
        bash.args(["--noprofile", "--norc", "-c", &run, "bash", script])
            .env_clear()
            .env("PATH", place.path().join("bin"))
            .env("HOME", &home);
        let (output, end) = std::io::pipe().unwrap();
        bash.current_dir(&home)
            .stdin(Stdio::null())
            .stdout(end.try_clone().unwrap())
            .stderr(end)
            .process_group(0);
        if self.is_root {
            for path in [&home, &log] {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
            bash.uid(NOBODY).gid(NOBODY);
        }
        // A script with a zero byte can't be handed over.
        let Ok(child) = bash.spawn() else { return Vec::new() };
        drop(bash);
        wait_for_all(child, output);
        calls(&fs::read(&log).unwrap())
    }
}

/// Waits until nothing of it is left, but not forever. Whatever it started holds its output open.
fn wait_for_all(mut child: Child, output: PipeReader) {
    let (sender, ended) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let _ = output.take(MAX_OUTPUT).read_to_end(&mut Vec::new());
        let _ = sender.send(());
    });
    if ended.recv_timeout(LIMIT).is_err() {
        let group = rustix::process::Pid::from_child(&child);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
    reader.join().unwrap();
}

/// Each call is the number of its arguments, its name, and its arguments.
fn calls(log: &[u8]) -> Vec<Vec<String>> {
    let mut words = log.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    let mut calls = Vec::new();
    while let Some(count) = words.next().and_then(|count| count.parse::<usize>().ok()) {
        calls.push(words.by_ref().take(count + 1).collect());
    }
    calls
}
