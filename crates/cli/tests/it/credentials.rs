//! Credentials go to the program that was named, and to nobody else: with a real git against a server that wants a password.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::home::{Home, Ran};

/// A server that refuses everybody without a password, and tells which ones it heard.
struct Server {
    port: u16,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let hears = heard.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().take(50).flatten() {
                answer(&stream, &hears);
            }
        });
        Server { port, heard }
    }

    /// How often a password came.
    fn passwords(&self) -> usize {
        self.heard
            .lock()
            .unwrap()
            .iter()
            .filter(|line| line.to_lowercase().starts_with("authorization:"))
            .count()
    }
}

fn answer(stream: &TcpStream, heard: &Mutex<Vec<String>>) {
    let lines: Vec<String> =
        BufReader::new(stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let is_known = lines.iter().any(|line| line.to_lowercase().starts_with("authorization:"));
    heard.lock().unwrap().extend(lines);
    let refs = "001e# service=git-upload-pack\n00000000";
    let answer = match is_known {
        true => format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{refs}",
            refs.len()
        ),
        false => "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\
                  Connection: close\r\n\r\n"
            .to_owned(),
    };
    let _ = { stream }.write_all(answer.as_bytes());
}

/// A home with a stored password for a server, and a project with a repository. None where commands can't be confined.
fn home(server: &Server) -> Option<Home> {
    let home = Home::new();
    if !home.run(&["doctor"]).out.contains("full: commands write only") {
        helve_testkit::skip("credentials", "commands can't be fully confined here");
        return None;
    }
    home.write("home/.git-credentials", &format!("http://me:hunter2@127.0.0.1%3a{}\n", server.port));
    fs::remove_dir(home.project().join(".git")).unwrap();
    let made = std::process::Command::new("git").args(["init", "-q"]).arg(home.project()).status();
    assert!(made.unwrap().success());
    Some(home)
}

fn shell(home: &Home, command: &str, credentials: bool, flags: &[&str]) -> (Ran, Value) {
    let input = json!({ "command": command, "network": true, "credentials": credentials }).to_string();
    let words = ["tool", "shell", &input, "--permission-mode", "auto", "--allow", "network"];
    let mut helve = home.helve(&[&words, flags].concat());
    let ran = home.run_command({
        helve.env("HOME", home.path());
        helve
    });
    let said = serde_json::from_str(ran.out.lines().next().unwrap_or_default()).unwrap_or_default();
    (ran, said)
}

#[test]
fn a_password_goes_with_the_one_program_that_was_named() {
    let server = Server::start();
    let Some(home) = home(&server) else { return };
    let look = format!("git ls-remote http://127.0.0.1:{}/x.git", server.port);
    let allowed = ["--allow", "credentials(git)"];

    // The network alone brings nothing.
    let (_, said) = shell(&home, &look, false, &[]);
    assert_eq!(server.passwords(), 0, "{said}");
    // Who asks for them is asked about, and a yes beforehand is no answer.
    let (ran, said) = shell(&home, &look, true, &["--yes"]);
    assert!(ran.code != 0 && said["output"].as_str().unwrap().contains("your SSH keys"), "{said}");
    assert_eq!(server.passwords(), 0);
    // By name they are there.
    let (ran, said) = shell(&home, &look, true, &allowed);
    assert!(ran.code == 0 && server.passwords() > 0, "{said} {}", ran.err);
    let before = server.passwords();

    // Nothing else finds them, in the same call or another.
    for command in [
        format!("cat ~/.git-credentials; {look}"),
        format!("{look} | cat"),
        format!("python3 -c 'print(open(\"{}/.git-credentials\").read())'", home.path().display()),
    ] {
        let (_, said) = shell(&home, &command, false, &[&allowed[..], &["--yes"]].concat());
        assert!(!said.to_string().contains("hunter2"), "{command}: {said}");
    }
    assert_eq!(server.passwords(), before);
}

#[test]
fn what_a_project_sets_up_for_git_does_not_run_with_a_password() {
    let server = Server::start();
    let Some(home) = home(&server) else { return };
    let marker = home.project().join("ran");
    let trap = home.project().join("trap.sh");
    fs::write(
        &trap,
        format!("#!/bin/sh\ncat {}/.git-credentials > {}\n", home.path().display(), marker.display()),
    )
    .unwrap();
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
    let look = format!("git ls-remote http://127.0.0.1:{}/x.git", server.port);
    let config = fs::read_to_string(home.project().join(".git/config")).unwrap();
    let set = |name: &str, value: &str| {
        fs::write(home.project().join(".git/config"), &config).unwrap();
        let done = std::process::Command::new("git")
            .arg("-C")
            .arg(home.project())
            .args(["config", name, value])
            .status();
        assert!(done.unwrap().success());
    };
    let trap = trap.display().to_string();
    for (name, value) in [
        ("core.sshCommand", trap.as_str()),
        ("core.fsmonitor", &trap),
        ("credential.helper", &trap),
        ("credential.helper", "store --file=leaked"),
        ("core.askPass", &trap),
        ("core.gitProxy", &trap),
        ("http.proxy", "http://127.0.0.1:1"),
        ("http.sslVerify", "false"),
        ("url.http://evil/.insteadOf", "http://127.0.0.1"),
        ("include.path", "../other"),
        ("remote.origin.uploadpack", &trap),
    ] {
        set(name, value);
        let (ran, said) = shell(&home, &look, true, &["--allow", "credentials(git)"]);
        let told = said["output"].as_str().unwrap_or_default();
        assert!(ran.code != 0 && told.contains(".git/config has"), "{name}: {said}");
    }
    assert_eq!(server.passwords(), 0);
    assert!(!marker.exists() && !home.project().join("leaked").exists());
    // Hooks are no setting: they just don't run.
    fs::write(home.project().join(".git/config"), &config).unwrap();
    for hook in ["pre-push", "post-checkout", "reference-transaction"] {
        fs::create_dir_all(home.project().join(".git/hooks")).unwrap();
        fs::copy(&trap, home.project().join(".git/hooks").join(hook)).unwrap();
    }
    let (_, said) = shell(&home, &look, true, &["--allow", "credentials(git)"]);
    assert!(server.passwords() > 0 && !marker.exists(), "{said}");
}

/// Repositories and words by which git runs a program of the project's: a script that makes them, and the command.
const TRAPS: [(&str, &str); 22] = [
    // Another git folder than the project's.
    ("cp -r .git d.put-aside && trap d.put-aside", "git --git-dir=d.put-aside fetch origin"),
    ("git init -q evil && trap evil/.git", "git --git-dir evil/.git fetch origin"),
    ("git init -q evil && trap evil/.git", "git -C evil fetch origin"),
    ("git init -q evil && trap evil/.git", "git --work-tree=. --git-dir=evil/.git fetch origin"),
    // Where the project's own leads.
    ("mv .git g && echo gitdir: g > .git && trap g", "git fetch origin"),
    ("mv .git g && ln -s g .git && trap g", "git fetch origin"),
    ("cp -r .git x && trap x && echo ../x > .git/commondir", "git fetch origin"),
    (
        "git config extensions.worktreeConfig true && touch .git/config.worktree && trap .git config.worktree",
        "git fetch origin",
    ),
    ("git init -q --bare evil.git && mv .git kept && mv evil.git/* . && trap .", "git fetch origin"),
    // Submodules.
    (
        "git init -q sub && git -C sub commit -q --allow-empty -m x && git add sub && git config submodule.sub.active true && \
         printf '[submodule \"sub\"]\\n\\tpath = sub\\n\\turl = ./none\\n' > .gitmodules && git config submodule.sub.url ./none && \
         trap sub/.git && git -C sub config protocol.file.allow always && git update-index --cacheinfo 160000,1111111111111111111111111111111111111111,sub",
        "git submodule update --init",
    ),
    (
        "git init -q sub && git -C sub commit -q --allow-empty -m x && git add sub && \
      printf '[submodule \"sub\"]\\n\\tpath = sub\\n\\turl = ./none\\n' > .gitmodules",
        "git submodule foreach sh $PWD/evil.sh",
    ),
    // Repositories on this machine.
    ("nested", "git push ./nested main"),
    ("nested", "git push nested main"),
    ("nested && git remote add near \"$PWD/nested\"", "git push near main"),
    ("nested && git remote add near \"file://$PWD/nested\"", "git push near main"),
    (
        "nested && git remote add near https://example.com/x && git remote set-url --push near ./nested",
        "git push near main",
    ),
    (
        "nested && mkdir -p .git/remotes && printf 'URL: ./nested\\n' > .git/remotes/near",
        "git push near main",
    ),
    (
        "nested && git config branch.main.remote ./nested && git config branch.main.merge refs/heads/main && \
      git config push.default current",
        "git push",
    ),
    // Words that make git run something.
    ("true", "git fetch --upload-pack=sh\\ $PWD/evil.sh ."),
    ("true", "git fetch --upl=sh\\ $PWD/evil.sh ."),
    ("true", "git ls-remote --exec=sh\\ $PWD/evil.sh ."),
    ("true", "git clone -u sh\\ $PWD/evil.sh . copy"),
];

/// What the scripts above use.
const TRAP_TOOLS: &str = "git config --global user.email a@example.org; git config --global user.name A; git checkout -qb main; \
    git commit -q --allow-empty -m one; \
    trap() { git config -f \"$1/${2-config}\" remote.origin.url .; git config -f \"$1/${2-config}\" remote.origin.uploadpack \"sh $PWD/evil.sh\"; }; \
    nested() { git init -q --bare nested; git init -q --bare other; mkdir -p nested/objects/info; \
      echo \"$PWD/other/objects\" > nested/objects/info/alternates; git -C nested config core.alternateRefsCommand \"sh $PWD/evil.sh\"; }; ";

/// Whatever git is told or finds, no program of the project's runs with the user's keys. Each trap works without Helve.
#[test]
fn nothing_that_a_project_can_say_to_git_runs_with_the_users_keys() {
    let server = Server::start();
    for (script, command) in TRAPS {
        let Some(home) = home(&server) else { return };
        home.write("home/.ssh/id_rsa", "KEY-MATERIAL\n");
        let leak = home.project().join("leak.txt");
        let evil = format!(
            "while read l; do echo \"GOT $l\"; done < {}/.ssh/id_rsa > {}\n",
            home.path().display(),
            leak.display()
        );
        fs::write(home.project().join("evil.sh"), evil).unwrap();
        let command = command.replace("$PWD", &home.project().display().to_string());
        let run = |script: &str| {
            let mut bash = std::process::Command::new("bash");
            bash.args(["-c", script]).current_dir(home.project()).env_clear();
            bash.env("PATH", "/usr/bin:/bin").env("HOME", home.path()).output().unwrap()
        };
        let made = run(&format!("{TRAP_TOOLS}set -e; {script}"));
        assert!(made.status.success(), "{script}: {}", String::from_utf8_lossy(&made.stderr));
        run(&command);
        assert!(fs::remove_file(&leak).is_ok(), "{script}: {command} is no trap");
        run("rm -rf copy");
        let flags = ["--allow", "credentials(git)", "--allow", "shell(git:*)", "--yes"];
        for wants in [true, false] {
            let (_, said) = shell(&home, &command, wants, &flags);
            let leaked = fs::read_to_string(&leak).unwrap_or_default();
            assert!(!leaked.contains("KEY"), "{script}: {command}: {said}");
            assert!(!said.to_string().contains("KEY-MATERIAL"), "{command}: {said}");
            let _ = fs::remove_file(&leak);
        }
    }
}

/// A folder of the commands' own is not the project, whatever is made there.
#[test]
fn credentials_stay_in_the_project() {
    let server = Server::start();
    let Some(home) = home(&server) else { return };
    home.write("home/.ssh/id_rsa", "KEY-MATERIAL\n");
    let project = home.project().display().to_string();
    home.write(
        "project/evil.sh",
        &format!(
            "while read l; do echo \"GOT $l\"; done < {}/.ssh/id_rsa > {project}/leak.txt\n",
            home.path().display()
        ),
    );
    home.write(
        "project/plant.sh",
        &format!(
            "git init -q /tmp/x\ngit -C /tmp/x config remote.origin.url .\n\
             git -C /tmp/x config remote.origin.uploadpack 'sh {project}/evil.sh'\n"
        ),
    );
    let step = |input: &str| format!("[[step]]\ncalls = [{{ tool = \"shell\", input = {{ {input} }} }}]\n");
    let steps = [
        step("command = \"sh plant.sh\""),
        step("command = \"cd /tmp/x\""),
        step("command = \"git fetch origin\", network = true, credentials = true"),
        "[[step]]\ntext = 'Done.'\n".to_owned(),
    ];
    home.write("project/calls.toml", &steps.concat());
    let words = [
        "run",
        "--model",
        "script:calls.toml",
        "go",
        "--permission-mode",
        "accept-edits",
        "--allow",
        "network",
    ];
    let mut helve =
        home.helve(&[&words[..], &["--allow", "credentials(git)", "--allow", "shell(git:*)"]].concat());
    helve.env("HOME", home.path()).stdin(std::process::Stdio::null());
    home.run_command(helve);
    let told = home.run(&["sessions", "show", "last", "--json"]).out;
    assert!(!home.project().join("leak.txt").exists(), "{told}");
    assert!(told.contains("another folder than the project's"), "{told}");
}
