//! Ordinary work with real toolchains and real dependencies, by confined commands: the home folder is hidden from them, and
//! what they write into its caches stays with the project. What works without confinement works with it.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "builds need the toolchains and registries of this machine, and tell how long they take"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::home::{Home, Ran};

/// Settings that say where packages come from, as paths in a home folder.
const SETTINGS: [&str; 6] = [
    ".cargo/config.toml",
    ".cargo/config",
    ".npmrc",
    ".config/pip/pip.conf",
    ".pip/pip.conf",
    ".config/uv/uv.toml",
];

/// The beginnings of variables that say where packages come from, and how the network is reached.
const VARIABLES: [&str; 15] = [
    "ALL_PROXY",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "SSL_CERT_",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "CARGO_HTTP_",
    "CARGO_NET_",
    "CARGO_SOURCE_",
    "CARGO_REGISTRIES_",
    "NPM_CONFIG_",
    "PIP_",
    "UV_",
];

/// Variables that name folders of the machine's own, among those.
const PLACES: [&str; 6] = [
    "PIP_CACHE_DIR",
    "UV_CACHE_DIR",
    "UV_PYTHON_INSTALL_DIR",
    "UV_TOOL_DIR",
    "NPM_CONFIG_CACHE",
    "NPM_CONFIG_PREFIX",
];

/// A build may take long on a busy machine.
const TIMEOUT_SECONDS: u32 = 900;

/// One command of a build.
#[derive(Clone, Copy, Debug)]
struct Step {
    name: &'static str,
    network: bool,
    script: &'static str,
}

fn step(name: &'static str, script: &'static str) -> Step {
    Step { name, network: false, script }
}

fn fetch(name: &'static str, script: &'static str) -> Step {
    Step { name, network: true, script }
}

/// Something to build: the files of a project, and the commands.
struct Build<'a> {
    /// The test's name.
    test: &'static str,
    /// The programs that it needs.
    programs: &'a [&'a str],
    files: &'a [(&'a str, &'a str)],
    /// What fills the home folder beforehand.
    prepare: &'static str,
    steps: Vec<Step>,
    /// Without network, after somebody else's build has filled the caches of the home folder. None where a tool needs its
    /// registry even then.
    from_caches: Vec<Step>,
}

/// How a command ended, and what it said.
struct Outcome {
    ok: bool,
    said: String,
    took: Duration,
}

/// A home folder that is not in `/tmp`, which is covered as a whole.
struct Person {
    machine: Home,
    folder: tempfile::TempDir,
    /// What the person's environment has besides.
    variables: Vec<(&'static str, String)>,
}

impl Person {
    /// Somebody who has the settings of this machine's user, and nothing in any cache.
    fn new() -> Person {
        let folder =
            tempfile::Builder::new().prefix(".home-").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let person = Person { machine: Home::new(), folder, variables: Vec::new() };
        let Some(real) = std::env::home_dir() else { return person };
        for name in SETTINGS {
            if let Ok(text) = fs::read_to_string(real.join(name)) {
                person.write(name, &text);
            }
        }
        // Whatever is started as `cargo` finds its toolchains there.
        let _ = std::os::unix::fs::symlink(real.join(".rustup"), person.path(".rustup"));
        person
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn project(&self, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let project = format!("work/{name}");
        fs::create_dir_all(self.path(&project)).unwrap();
        files.iter().for_each(|(file, text)| self.write(&format!("{project}/{file}"), text));
        // Some tools ask git for the version of what they build.
        let mut git = Command::new("git");
        let _ = git.args(["init", "-q"]).env("HOME", self.path("")).current_dir(self.path(&project)).status();
        self.path(&project)
    }

    /// Without Helve.
    fn bare(&self, project: &Path, step: Step) -> Outcome {
        let mut command = Command::new("bash");
        command.arg("-c").arg(step.script).current_dir(project).env_clear();
        command.envs(variables(&self.path(""))).envs(self.variables.iter().cloned());
        let (output, took) = timed(|| command.stdin(Stdio::null()).output().unwrap());
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        Outcome { ok: output.status.success(), said: said.concat(), took }
    }

    fn confined(&self, project: &Path, step: Step) -> Outcome {
        self.confined_at_home(&self.path(""), project, step)
    }

    /// As a command of a model that nobody is asked about.
    fn confined_at_home(&self, home: &Path, project: &Path, step: Step) -> Outcome {
        let input = json!({ "command": step.script, "network": step.network, "timeout": TIMEOUT_SECONDS });
        let mut words = vec!["tool", "shell"];
        let input = input.to_string();
        words.extend([&input, "--yes", "--permission-mode", "auto"]);
        if step.network {
            words.extend(["--allow", "network"]);
        }
        let mut command = self.machine.helve(&words);
        command.current_dir(project).envs(variables(home)).envs(self.variables.iter().cloned());
        command.stdin(Stdio::null());
        let (Ran { out, err, .. }, took) = timed(|| self.machine.run_command(command));
        let result: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
        let said = result["output"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned();
        // A command that fails is no failure of the tool.
        Outcome { ok: result["ok"] == json!(true) && said.contains("[exit code 0]"), said, took }
    }

    fn is_confined(&self) -> bool {
        let project = self.project("probe", &[]);
        let filter = self.confined(&project, step("probe", "grep Seccomp: /proc/self/status"));
        filter.said.contains("Seccomp:\t2")
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begin = Instant::now();
    let done = work();
    (done, begin.elapsed())
}

/// What programs are told: where they are, and how they reach the network.
fn variables(home: &Path) -> Vec<(String, String)> {
    let is_told = |name: &str| {
        let name = name.to_ascii_uppercase();
        VARIABLES.iter().any(|begin| name.starts_with(begin)) && !PLACES.contains(&name.as_str())
    };
    let mut all: Vec<(String, String)> = std::env::vars().filter(|(name, _)| is_told(name)).collect();
    let path = std::env::var("PATH").unwrap_or_default();
    all.extend([("PATH".to_owned(), path), ("HOME".to_owned(), home.display().to_string())]);
    all
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Builds without confinement, which shows whether it can be done on this machine at all; then confined, with caches that
/// are as empty; then confined and offline, with the caches that the first build filled.
fn check(build: &Build<'_>) {
    check_with(&[], build);
}

/// The same with variables that name places in the home folder.
fn check_with(variables: &[(&'static str, &str)], build: &Build<'_>) {
    if let Some(missing) = build.programs.iter().find(|program| !is_installed(program)) {
        return helve_testkit::skip(build.test, &format!("{missing} is not installed"));
    }
    let [first, second] = [(); 2].map(|()| {
        let mut person = Person::new();
        let place = |path: &str| person.path(path).display().to_string();
        person.variables = variables.iter().map(|(name, path)| (*name, place(path))).collect();
        person
    });
    if !second.is_confined() {
        return helve_testkit::skip(build.test, "commands can't be confined here");
    }
    for person in [&first, &second] {
        let prepared = person.bare(&person.path(""), step("prepare", build.prepare));
        if !prepared.ok {
            return skip_because(build.test, "what it needs can't be prepared", &prepared.said);
        }
    }
    let (outside, inside) = (first.project("bare", build.files), second.project("confined", build.files));
    for step in &build.steps {
        let bare = first.bare(&outside, *step);
        if !bare.ok {
            let what = format!("`{}` fails without confinement too", step.name);
            return skip_because(build.test, &what, &bare.said);
        }
        let confined = second.confined(&inside, *step);
        assert!(confined.ok, "{}: {}", step.name, confined.said);
        tell(step.name, bare.took, confined.took);
    }
    let offline = first.project("offline", build.files);
    for step in &build.from_caches {
        let confined = first.confined(&offline, *step);
        assert!(confined.ok, "{} from the user's caches: {}", step.name, confined.said);
    }
}

fn skip_because(test: &str, what: &str, said: &str) {
    let lines: Vec<&str> = said.trim().lines().collect();
    let last = lines.get(lines.len().saturating_sub(3)..).unwrap_or_default().join(" / ");
    helve_testkit::skip(test, &format!("{what}: {last}"));
}

fn tell(name: &str, bare: Duration, confined: Duration) {
    println!("{name}: {:.1} s bare, {:.1} s confined", bare.as_secs_f64(), confined.as_secs_f64());
}

#[test]
fn cargo_fetches_builds_and_tests() {
    check(&Build {
        test: "cargo_fetches_builds_and_tests",
        programs: &["cargo", "cc"],
        files: &[
            (
                "Cargo.toml",
                "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n\
                 [dependencies]\nitoa = \"1\"\n",
            ),
            (
                "src/lib.rs",
                "pub fn shown(n: u64) -> String {\n    itoa::Buffer::new().format(n).to_owned()\n}\n\n\
                 #[test]\nfn numbers_are_shown() {\n    assert_eq!(shown(42), \"42\");\n}\n",
            ),
            ("src/main.rs", "fn main() {\n    println!(\"{}\", app::shown(42));\n}\n"),
        ],
        prepare: "",
        steps: vec![
            fetch("cargo fetch", "cargo fetch"),
            step("cargo build", "cargo build --offline"),
            step("cargo test", "cargo test --offline"),
            step("cargo run", "test \"$(cargo run --offline -q)\" = 42"),
        ],
        from_caches: vec![step("cargo test", "cargo test --offline")],
    });
}

#[test]
fn npm_installs_and_runs() {
    check(&Build {
        test: "npm_installs_and_runs",
        programs: &["npm", "node"],
        files: &[
            (
                "package.json",
                r#"{ "name": "app", "version": "1.0.0", "private": true,
                     "scripts": { "test": "node --test" }, "dependencies": { "is-number": "7.0.0" } }"#,
            ),
            (
                "numbers.test.js",
                "const isNumber = require('is-number');\nconst test = require('node:test');\n\
                 const assert = require('node:assert');\n\
                 test('numbers', () => { assert(isNumber('42')); assert(!isNumber('x')); });\n",
            ),
        ],
        prepare: "",
        steps: vec![
            fetch("npm install", "npm install --no-audit --no-fund"),
            fetch("npm ci", "npm ci --no-audit --no-fund"),
            step("npm test", "npm test"),
            fetch("npx", "npx --yes semver@7.6.0 1.2.3"),
            step("npm ci, offline", "npm ci --offline --no-audit --no-fund && npm test"),
        ],
        from_caches: vec![step("npm install", "npm install --offline --no-audit --no-fund && npm test")],
    });
}

#[test]
fn pip_installs_into_a_virtual_environment() {
    check(&Build {
        test: "pip_installs_into_a_virtual_environment",
        programs: &["python3"],
        files: &[(
            "test_six.py",
            "import six, unittest\n\nclass Case(unittest.TestCase):\n    def test_it(self):\n        self.assertTrue(six.PY3)\n",
        )],
        prepare: "",
        steps: vec![
            step("python3 -m venv", "python3 -m venv .venv"),
            fetch("pip install", ".venv/bin/pip install six"),
            step("python -m unittest", ".venv/bin/python -m unittest"),
        ],
        from_caches: vec![],
    });
}

/// It makes environments in the home folder, not in the project.
#[test]
fn pipenv_makes_an_environment() {
    check(&Build {
        test: "pipenv_makes_an_environment",
        programs: &["python3"],
        files: &[],
        prepare: "",
        steps: vec![
            fetch("pipenv, by pip", "python3 -m venv .tools && .tools/bin/pip install -q pipenv"),
            fetch("pipenv install", ".tools/bin/pipenv install six"),
            step("pipenv run", ".tools/bin/pipenv run python -c 'import six'"),
        ],
        from_caches: vec![],
    });
}

#[test]
fn uv_installs_from_its_cache() {
    check(&Build {
        test: "uv_installs_from_its_cache",
        programs: &["python3"],
        files: &[],
        prepare: "python3 -m venv .local/lib/tools && .local/lib/tools/bin/pip install -q uv && \
                  mkdir .local/bin && ln -s ../lib/tools/bin/uv ../lib/tools/bin/uvx .local/bin",
        steps: vec![
            fetch("uvx", "~/.local/bin/uvx --from six python -c 'import six'"),
            fetch("uv pip install", "~/.local/bin/uv venv && ~/.local/bin/uv pip install six"),
            step("uv run", "~/.local/bin/uv run --offline --no-project python -c 'import six'"),
            step(
                "uv pip install, offline",
                "rm -r .venv && ~/.local/bin/uv venv && ~/.local/bin/uv pip install --offline six && \
                 .venv/bin/python -c 'import six'",
            ),
        ],
        from_caches: vec![step(
            "uv pip install",
            "~/.local/bin/uv venv && ~/.local/bin/uv pip install --offline six",
        )],
    });
}

#[test]
fn make_builds_with_ccache() {
    check(&Build {
        test: "make_builds_with_ccache",
        programs: &["make", "gcc", "ccache"],
        files: &[
            (
                "Makefile",
                "app: app.o\n\tgcc -o $@ $^\n\napp.o: app.c\n\tccache gcc -c -o $@ $<\n\nclean:\n\trm -f app app.o\n",
            ),
            ("app.c", "#include <stdio.h>\n\nint main(void) { puts(\"it runs\"); return 0; }\n"),
        ],
        prepare: "",
        steps: vec![
            step("make", "make && ./app"),
            // The second time, what is compiled comes from the cache.
            step(
                "make, again",
                "make clean && make && ./app && ccache -s -v && ccache --print-stats | grep -P 'direct_cache_hit\\t1'",
            ),
        ],
        from_caches: vec![],
    });
}

#[test]
fn go_builds_tests_and_vets() {
    check(&Build {
        test: "go_builds_tests_and_vets",
        programs: &["go"],
        files: &[
            ("go.mod", "module example.org/app\n\ngo 1.18\n"),
            (
                "app.go",
                "package main\n\nimport \"fmt\"\n\nfunc double(n int) int { return 2 * n }\n\nfunc main() { fmt.Println(double(21)) }\n",
            ),
            (
                "app_test.go",
                "package main\n\nimport \"testing\"\n\nfunc TestDouble(t *testing.T) {\n\tif double(2) != 4 {\n\t\tt.Fatal(\"wrong\")\n\t}\n}\n",
            ),
        ],
        prepare: "",
        steps: vec![
            step("go build", "go build && test \"$(./app)\" = 42"),
            step("go test", "go test ./..."),
            step("go vet", "go vet ./..."),
        ],
        from_caches: vec![step("go build", "go build && ./app")],
    });
}

/// The distribution has a repository of its own, which stands for what was downloaded before.
#[test]
fn maven_compiles() {
    // Java asks the system for the home folder, not the environment.
    const MVN: &str = "MAVEN_OPTS=-Duser.home=$HOME mvn -B -o compile && java -cp target/classes App";
    check(&Build {
        test: "maven_compiles",
        programs: &["mvn", "javac"],
        files: &[
            (
                "pom.xml",
                "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n  <modelVersion>4.0.0</modelVersion>\n  \
                 <groupId>org.example</groupId>\n  <artifactId>app</artifactId>\n  <version>1</version>\n  <properties>\n    \
                 <maven.compiler.source>11</maven.compiler.source>\n    <maven.compiler.target>11</maven.compiler.target>\n    \
                 <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>\n  </properties>\n</project>\n",
            ),
            (
                "src/main/java/App.java",
                "public class App {\n  public static void main(String[] words) {\n    System.out.println(\"it runs\");\n  }\n}\n",
            ),
        ],
        prepare: "mkdir .m2 && cp -rL /usr/share/maven-repo .m2/repository",
        steps: vec![step("mvn compile", MVN)],
        from_caches: vec![step("mvn compile", MVN)],
    });
}

#[test]
fn git_commits_in_the_users_name() {
    check(&Build {
        test: "git_commits_in_the_users_name",
        programs: &["git"],
        files: &[("repository/a.txt", "one\n")],
        prepare: "git config --global user.name 'A Name' && git config --global user.email a@example.org",
        steps: vec![
            step("git init", "cd repository && git init -q && git add . && git commit -qm first"),
            step("git commit", "cd repository && echo two >> a.txt && git commit -qam second"),
            step(
                "git log",
                "cd repository && test \"$(git log -1 --format='%an %ae %s')\" = 'A Name a@example.org second'",
            ),
        ],
        from_caches: vec![],
    });
}

/// Toolchains are often in the home folder itself, and are seen there although the rest is hidden. Nothing is written into the
/// home folder of whoever runs this: what these commands keep is in their layer.
#[test]
fn toolchains_in_this_users_home_folder_work() {
    const TEST: &str = "toolchains_in_this_users_home_folder_work";
    let person = Person::new();
    let Some(home) = std::env::home_dir().filter(|_| person.is_confined()) else {
        return helve_testkit::skip(TEST, "commands can't be confined here");
    };
    let files = [
        ("Cargo.toml", "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        ("src/main.rs", "fn main() {}\n"),
        ("app.go", "package main\n\nfunc main() {}\n"),
    ];
    let project = person.project("toolchains", &files);
    let work = [
        ("cargo", "cargo run -q && rustc --version"),
        ("python3", "python3 -m venv .venv && .venv/bin/pip --version"),
        ("node", "node -e 'console.log(1)' && npm --version"),
        ("go", "go run app.go"),
    ];
    for (program, script) in work.into_iter().filter(|(program, _)| is_installed(program)) {
        let work = step(program, script);
        let bare = person.bare(&person.project("bare", &files), work);
        if !bare.ok {
            skip_because(TEST, &format!("`{script}` fails without confinement too"), &bare.said);
            continue;
        }
        let confined = person.confined_at_home(&home, &project, work);
        assert!(confined.ok, "{script}: {}", confined.said);
    }
}

/// Some people keep toolchains and caches in other places of their home folder, and say so by variables.
#[test]
fn tools_are_found_where_variables_say() {
    let moved = [
        ("VIRTUAL_ENV", "environments/one"),
        ("CARGO_HOME", "data/cargo"),
        ("RUSTUP_HOME", ".rustup"),
        ("GOCACHE", "data/go-build"),
        ("CCACHE_DIR", "data/ccache"),
    ];
    let files: &[(&str, &str)] = &[
        ("go.mod", "module example.org/app\n\ngo 1.18\n"),
        ("app.go", "package main\n\nfunc main() {}\n"),
        ("native/app.c", "int main(void) { return 0; }\n"),
        (
            "Cargo.toml",
            "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\nitoa = \"1\"\n",
        ),
        ("src/lib.rs", "pub use itoa::Buffer;\n"),
    ];
    let python = "python3 -m venv --without-pip environments/one && \
                  cd environments/one/lib/python3*/site-packages && echo 'print(42)' > answer.py";
    let builds: [(&[&str], &str, Step); 4] = [
        (&["python3"], python, step("python, elsewhere", "$VIRTUAL_ENV/bin/python -c 'import answer'")),
        (&["cargo"], "", fetch("cargo build, elsewhere", "cargo fetch && cargo build --offline")),
        (&["go"], "", step("go build, elsewhere", "go build")),
        (&["ccache", "gcc"], "", step("ccache, elsewhere", "ccache gcc -c native/app.c && ls $CCACHE_DIR/*")),
    ];
    for (programs, prepare, step) in builds {
        let test = "tools_are_found_where_variables_say";
        check_with(&moved, &Build { test, programs, files, prepare, steps: vec![step], from_caches: vec![] });
    }
}

/// They may be in the project itself, and are the project's files then.
#[test]
fn what_variables_name_in_the_project_can_be_changed() {
    const TEST: &str = "what_variables_name_in_the_project_can_be_changed";
    let mut person = Person::new();
    if !person.is_confined() {
        return helve_testkit::skip(TEST, "commands can't be confined here");
    }
    let files = [(".venv/bin/python", ""), (".venv/lib/old.py", ""), ("build/cache/old", "")];
    let project = person.project("active", &files);
    person.variables = vec![
        ("VIRTUAL_ENV", project.join(".venv").display().to_string()),
        ("GOCACHE", project.join("build/cache").display().to_string()),
        ("PATH", format!("{}:/usr/bin:/bin", project.join(".venv/bin").display())),
    ];
    let script = "echo new > .venv/lib/new.py && echo new > .venv/bin/tool && rm .venv/lib/old.py && \
                  echo new > build/cache/new";
    let confined = person.confined(&project, step("change", script));
    assert!(confined.ok, "{}", confined.said);
    assert!(project.join(".venv/bin/tool").exists() && !project.join(".venv/lib/old.py").exists());
    assert!(project.join("build/cache/new").exists());
}
