//! A workspace, and around it what a command must not get at: files, secrets, sockets, servers, a process.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use helve_testkit::skip;
use tempfile::TempDir;

use crate::{Mark, custody};

/// An ordinary user, whom every system knows.
const NOBODY: u32 = 65534;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// Whoever runs the tests.
    Oneself,
    /// An ordinary user: for tests that root runs.
    Nobody,
}

/// Those that the tests can be.
pub(crate) fn users() -> Vec<User> {
    if rustix::process::getuid().is_root() { vec![User::Oneself, User::Nobody] } else { vec![User::Oneself] }
}

pub(crate) struct Ground {
    folder: TempDir,
    user: User,
    victim: Child,
    port: u16,
    abstract_name: String,
    /// Stand-ins for an agent with keys and a daemon that does everything, where those usually are.
    agent: Door,
    docker: Option<Door>,
    _listeners: (UnixListener, UnixDatagram, UnixListener, TcpListener),
    is_over: Arc<AtomicBool>,
}

/// A socket in a folder of its own, open to everybody.
struct Door {
    folder: TempDir,
    _listener: UnixListener,
}

impl Door {
    fn within(folder: &str) -> Option<Door> {
        let folder = tempfile::Builder::new().prefix("helve-escape-").tempdir_in(folder).ok()?;
        let listener = UnixListener::bind(folder.path().join("socket")).ok()?;
        for path in [folder.path(), &folder.path().join("socket")] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o777)).ok()?;
        }
        Some(Door { folder, _listener: listener })
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("socket")
    }
}

/// How a run ended, and what it said.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) said: String,
}

impl Ground {
    fn new(user: User) -> Ground {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // Not in `/tmp`: that is covered as a whole, so nothing there would be put to the test.
        let built = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let is_covered = ["/tmp", "/var/tmp"].iter().any(|place| built.starts_with(place));
        let place = if is_covered { Path::new(env!("CARGO_MANIFEST_DIR")) } else { built };
        let folder = tempfile::Builder::new().prefix(".escape-").tempdir_in(place).unwrap();
        let path = folder.path();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        for name in [
            "bin",
            "outside",
            "secret",
            "sockets",
            "work/private",
            "work/.git/hooks",
            "home",
            "mounted",
            "around",
        ] {
            fs::create_dir_all(path.join(name)).unwrap();
        }
        fs::write(path.join("outside/victim"), "old").unwrap();
        fs::write(path.join("secret/key"), "secret").unwrap();
        fs::write(path.join("work/private/key"), "secret").unwrap();
        fs::write(path.join("work/.git/config"), "[core]\n").unwrap();
        let agent = UnixListener::bind(path.join("sockets/agent")).unwrap();
        let log = UnixDatagram::bind(path.join("sockets/log")).unwrap();
        give(path, user);
        let examples = custody().parent().unwrap().to_owned();
        for (name, to) in [("custody", "custody"), ("escape", "escape"), ("escape", "setuid")] {
            fs::copy(examples.join(name), path.join("bin").join(to)).unwrap();
        }
        if user == User::Nobody {
            fs::set_permissions(path.join("bin/setuid"), fs::Permissions::from_mode(0o4755)).unwrap();
        }
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let abstract_name = format!("helve-escape-{}-{count}", std::process::id());
        let name = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let abstract_socket = UnixListener::bind_addr(&name).unwrap();
        let (server, port, is_over) = serve();
        let mut sleeper = as_user(user, Path::new("sleep"));
        let victim =
            sleeper.arg("120").current_dir(path.join("outside")).stdin(Stdio::null()).spawn().unwrap();
        Ground {
            folder,
            user,
            victim,
            port,
            abstract_name,
            agent: Door::within("/tmp").unwrap(),
            docker: Door::within("/run"),
            _listeners: (agent, log, abstract_socket, server),
            is_over,
        }
    }

    /// `None`, told as a skip, where this user can't be: the folders above may be closed to others.
    pub(crate) fn reachable(user: User) -> Option<Ground> {
        let ground = Ground::new(user);
        let seen = as_user(user, Path::new("cat")).arg(ground.path("outside/victim")).output();
        let is_reachable = seen.is_ok_and(|seen| seen.stdout == b"old");
        if !is_reachable {
            skip("escape", &format!("{user:?} does not reach {}", ground.folder.path().display()));
        }
        is_reachable.then_some(ground)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = as_user(self.user, program);
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("GROUND", self.folder.path())
            .env("VICTIM", self.victim.id().to_string())
            .env("PORT", self.port.to_string())
            .env("ABSTRACT", &self.abstract_name)
            .env("AGENT", self.agent.path())
            .env("DOCKER", self.docker.as_ref().map(Door::path).unwrap_or_default())
            .current_dir("/")
            .stdin(Stdio::null());
        command
    }

    /// Runs a command as Helve does, at a level.
    pub(crate) fn run(&self, settings: &[String], command: &[&str]) -> Outcome {
        let cwd = format!("cwd={}", self.path("work").display());
        let mut helve = self.command(&self.path("bin/custody"));
        Outcome::of(helve.arg("helve").arg(cwd).args(settings).args(command))
    }

    pub(crate) fn attack(&self, settings: &[String], attack: &str) -> Outcome {
        let program = self.path("bin/escape");
        self.run(settings, &[program.to_str().unwrap(), attack])
    }

    /// The levels that work here, for this user.
    pub(crate) fn levels(&self) -> Vec<&'static str> {
        let works = |level: &&str| {
            let Outcome { code, said } = self.run(&[format!("level={level}")], &["true"]);
            if code != Some(0) {
                skip("escape", &format!("level {level}: {}", said.trim_end()));
            }
            code == Some(0)
        };
        ["landlock", "full"].into_iter().filter(works).collect()
    }

    /// Runs a command that carries a mark, as Helve does.
    pub(crate) fn run_marked(&self, mark: &Mark, settings: &[String], command: &[&str]) -> Outcome {
        let mut helve = self.command(&self.path("bin/custody"));
        let (name, value) = mark.variable();
        Outcome::of(helve.env(name, value).arg("helve").args(settings).args(command))
    }

    /// Starts such a command, without waiting for it.
    pub(crate) fn start_marked(&self, mark: &Mark, settings: &[String], command: &[&str]) -> Child {
        let mut helve = self.command(&self.path("bin/custody"));
        let (name, value) = mark.variable();
        helve.env(name, value).arg("helve").args(settings).args(command);
        helve.stdout(Stdio::null()).spawn().unwrap()
    }

    /// Makes a file of the user's.
    pub(crate) fn make(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
        self.give(name.split('/').next().unwrap());
    }

    pub(crate) fn give(&self, name: &str) {
        give(&self.path(name), self.user);
    }

    /// The same, as anybody would.
    pub(crate) fn without_helve(&self, mark: &Mark, command: &[&str]) -> Outcome {
        let mut shell = self.command(Path::new("env"));
        let (name, value) = mark.variable();
        Outcome::of(shell.env(name, value).args(command))
    }

    /// Attacks where the secret, and all of this place, are mounted a second time. Only root can do that.
    pub(crate) fn attack_with_mounts(&self, settings: &[String], attack: &str) -> Outcome {
        let script = "mount --bind \"$GROUND/secret\" \"$GROUND/mounted\" && \
                      mount --bind \"$GROUND\" \"$GROUND/around\" && exec \"$@\"";
        let inner = self.command(&self.path("bin/custody"));
        let mut outer = Command::new("unshare");
        outer.args(["--mount", "sh", "-c", script, "sh"]).arg(inner.get_program()).args(inner.get_args());
        outer.env_clear().envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let program = self.path("bin/escape");
        Outcome::of(outer.current_dir("/").arg("helve").args(settings).arg(program).arg(attack))
    }

    /// Attacks through a file that whoever started Helve left open; without settings, without Helve.
    pub(crate) fn attack_by_descriptor(&self, settings: Option<&[String]>) -> Outcome {
        let script = "exec 9<>\"$1\"; shift; exec \"$@\"";
        let mut shell = self.command(Path::new("sh"));
        shell.args(["-c", script, "sh"]).arg(self.path("outside/victim"));
        if let Some(settings) = settings {
            shell.arg(self.path("bin/custody")).arg("helve").args(settings);
        }
        Outcome::of(shell.arg(self.path("bin/escape")).arg("descriptor"))
    }

    /// What confines to the workspace.
    pub(crate) fn settings(&self, level: &str) -> Vec<String> {
        let path = |name: &str, value: &str| format!("{name}={}", self.path(value).display());
        let mut settings = vec![format!("level={level}"), path("writable", "work"), path("hidden", "secret")];
        if level == "full" {
            settings.push(path("hidden", "work/private/key"));
            settings.push(path("protected", "work/.git/hooks"));
            settings.push(path("protected", "work/.git/config"));
            settings.push("scratch=1000000".to_owned());
        }
        if level != "bare" {
            settings.push("file_size=2000000".to_owned());
        }
        settings
    }
}

impl Outcome {
    fn of(command: &mut Command) -> Outcome {
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        Outcome { code: output.status.code(), said: String::from_utf8_lossy(&said).into_owned() }
    }
}

/// A program, started as this user.
fn as_user(user: User, program: &Path) -> Command {
    match user {
        User::Oneself => Command::new(program),
        User::Nobody => {
            let mut command = Command::new("setpriv");
            let id = NOBODY.to_string();
            command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"]).arg(program);
            command
        }
    }
}

/// Makes all of this the user's own.
fn give(path: &Path, user: User) {
    if user == User::Oneself {
        return;
    }
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| give(&entry.unwrap().path(), user));
    }
}

/// A server of both kinds at one port: it takes connections, and answers what it gets.
fn serve() -> (TcpListener, u16, Arc<AtomicBool>) {
    let (tcp, udp) = (0..50)
        .find_map(|_| {
            let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
            let udp = UdpSocket::bind(tcp.local_addr().unwrap()).ok()?;
            Some((tcp, udp))
        })
        .unwrap();
    let port = tcp.local_addr().unwrap().port();
    let is_over = Arc::new(AtomicBool::new(false));
    udp.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    thread::spawn({
        let is_over = is_over.clone();
        move || {
            while !is_over.load(Ordering::Relaxed) {
                if let Ok((_, from)) = udp.recv_from(&mut [0; 8]) {
                    let _ = udp.send_to(b"hello", from);
                }
            }
        }
    });
    (tcp, port, is_over)
}

impl Drop for Ground {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}
