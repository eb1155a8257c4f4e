//! What commands and jobs leave behind in a project: nothing that runs something later, and nothing that a rule denies.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::home::Home;

/// Settings that run a program of the project's at the next `git status`.
const TRAP: &str = "[core]\n\tfsmonitor = ./x\n";

/// A project with one commit, in a machine that confines commands fully; none if this one can't.
fn project() -> Option<Home> {
    let home = Home::new();
    fs::remove_dir_all(home.project()).unwrap();
    home.write("project/a.txt", "a\n");
    begin(&home, "project");
    let is_full = home.run(&["doctor"]).out.contains("full: commands write only");
    if !is_full {
        helve_testkit::skip("left_behind", "commands can't be fully confined here");
    }
    is_full.then_some(home)
}

fn begin(home: &Home, folder: &str) {
    git(home, folder, &["init", "-q", "-b", "main", "."]);
    git(home, folder, &["config", "user.name", "a"]);
    git(home, folder, &["config", "user.email", "a@b"]);
    git(home, folder, &["add", "-A"]);
    git(home, folder, &["commit", "-qm", "begin", "--allow-empty"]);
}

fn git(home: &Home, folder: &str, words: &[&str]) -> String {
    let folder = home.project().parent().unwrap().join(folder);
    fs::create_dir_all(&folder).unwrap();
    let mut command = Command::new("git");
    command
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"])
        .args(words);
    let output = command.current_dir(folder).env("HOME", home.path()).output().unwrap();
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn shell(command: &str) -> Value {
    json!(["shell", { "command": command }])
}

/// Runs calls in a folder beside the project; gives what the model was told.
fn run_in(home: &Home, folder: &str, calls: &[Value], flags: &[&str]) -> String {
    let step =
        |call: &Value| format!("[[step]]\ncalls = [{{ tool = {}, input = {} }}]\n", call[0], toml(&call[1]));
    let steps: String = calls.iter().map(step).collect();
    home.write("calls.toml", &format!("{steps}[[step]]\ntext = 'done'\n"));
    let model = format!("script:{}", home.project().with_file_name("calls.toml").display());
    let words = ["run", "--model", &model, "go", "--permission-mode", "accept-edits"];
    let mut command = home.helve(&[&words, flags].concat());
    command.current_dir(home.project().with_file_name(folder)).stdin(Stdio::null());
    let ran = home.run_command(command);
    assert!(ran.code == 0 || ran.code == 13, "{}{}", ran.out, ran.err);
    let mut command = home.helve(&["sessions", "show", "last", "--json"]);
    command.current_dir(home.project().with_file_name(folder));
    let session: Value = serde_json::from_str(&home.run_command(command).out).unwrap();
    let mut told = String::new();
    results_in(&session, &mut told);
    assert!(!told.is_empty(), "{}", ran.err);
    told
}

/// What came of the calls of a session.
fn results_in(value: &Value, told: &mut String) {
    match value {
        Value::Object(fields) => {
            if fields.get("type") == Some(&json!("tool")) {
                let state = &fields["state"];
                let texts = [&state["output"]["text"], &state["message"], &state["reason"]];
                texts
                    .iter()
                    .filter_map(|text| text.as_str())
                    .for_each(|text| told.push_str(&format!("{text}\n")));
            }
            fields.values().for_each(|value| results_in(value, told));
        }
        Value::Array(values) => values.iter().for_each(|value| results_in(value, told)),
        _ => {}
    }
}

fn run(home: &Home, calls: &[Value]) -> String {
    run_in(home, "project", calls, &[])
}

/// The arguments of a call, as scripts have them.
fn toml(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name} = {}", toml(value))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        other => other.to_string(),
    }
}

fn exists(home: &Home, path: &str) -> bool {
    home.project().join(path).symlink_metadata().is_ok()
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// A command as a script, so that the sandbox has to hold by itself.
fn script(home: &Home, text: &str) -> Value {
    home.write("project/script.sh", text);
    shell("bash script.sh")
}

/// A job as a script, likewise.
fn job_script(home: &Home, text: &str) -> Value {
    home.write("project/job.sh", text);
    json!(["shell", { "command": "bash job.sh", "background": true }])
}

const WAITING: &str = "while [ ! -e sub/.git/HEAD ] || [ -e sub/.git/config.lock ]; do sleep 0.02; done; sleep 0.5; \
                       printf '[core]\\n\\tfsmonitor = ./x\\n' >> sub/.git/config; touch done-it; sleep 100";

#[test]
fn a_job_can_not_change_a_repository_that_was_judged_before() {
    let Some(home) = project() else { return };
    let wait = "for i in $(seq 200); do [ -e done-it ] && break; sleep 0.05; done; cat sub/.git/config";
    let calls = [job_script(&home, WAITING), script(&home, "git init -q sub"), shell(wait), shell("true")];
    let told = run(&home, &calls);
    assert!(told.contains("put aside") && told.contains("sub/.git.put-aside"), "{told}");
    assert!(!exists(&home, "sub/.git") && exists(&home, "done-it"), "{told}");
}

#[test]
fn what_a_job_did_is_looked_at_when_it_ends_and_at_the_end_of_the_session() {
    let Some(home) = project() else { return };
    let wait = "while [ ! -e sub/.git/HEAD ]; do sleep 0.02; done; sleep 0.5; echo x > sub/.git/commondir";
    let output = |wait: u32| json!(["shell_output", { "job": 1, "wait": wait }]);
    let told = run(&home, &[job_script(&home, wait), script(&home, "git init -q sub"), output(20)]);
    assert!(told.contains("sub/.git.put-aside"), "{told}");
    assert!(!exists(&home, "sub/.git"), "{told}");
    let Some(home) = project() else { return };
    let told = run(&home, &[job_script(&home, WAITING), script(&home, "git init -q sub && sleep 2")]);
    assert!(!exists(&home, "sub/.git"), "{told}");
    // Nobody asks any more: the job goes on for as long as the session does.
    let Some(home) = project() else { return };
    let late = WAITING.replace("sleep 0.5", "sleep 2");
    let told = run(&home, &[job_script(&home, &late), script(&home, "git init -q sub"), output(5)]);
    assert!(exists(&home, "done-it") && !exists(&home, "sub/.git"), "{told}");
}

#[test]
fn the_repository_of_a_linked_work_tree_is_not_trapped() {
    let plants = [
        ("commondir", "echo ../x > $M/commondir"),
        ("config.worktree", "printf '[core]\\n\\tfsmonitor = ./x\\n' > $M/config.worktree"),
        ("hooks/pre-commit", "mkdir -p $M/hooks; echo x > $M/hooks/pre-commit; chmod +x $M/hooks/pre-commit"),
        (
            "worktrees/tree/config.worktree",
            "printf '[core]\\n\\tfsmonitor = ./x\\n' > $M/worktrees/tree/config.worktree",
        ),
        ("info/attributes", "mkdir -p $M/info; echo '* filter=x' > $M/info/attributes"),
        (
            "modules/new/config",
            "mkdir -p $M/modules/new; cd $M/modules/new; echo > HEAD; printf '[core]\\n\\tfsmonitor = ./x\\n' > config",
        ),
        (
            "worktrees/new/commondir",
            "mkdir -p $M/worktrees/new; cd $M/worktrees/new; echo > HEAD; echo ../../../x > commondir",
        ),
    ];
    for (name, plant) in plants {
        let Some(home) = project() else { return };
        // As some templates have it.
        fs::remove_dir_all(home.project().join(".git/hooks")).unwrap();
        fs::remove_dir_all(home.project().join(".git/info")).unwrap();
        git(&home, "project", &["worktree", "add", "-q", "../tree"]);
        let script = plant.replace("$M", "../project/.git");
        home.write("tree/script.sh", &script);
        let told = run_in(&home, "tree", &[shell("bash script.sh")], &[]);
        assert!(!exists(&home, &format!(".git/{name}")), "{name}: {told}");
        assert!(told.contains("put aside"), "{name}: {told}");
        assert_eq!(git(&home, "project", &["status", "--porcelain"]), "", "{name}");
    }
    let Some(home) = project() else { return };
    git(&home, "project", &["worktree", "add", "-q", "../tree"]);
    let plant = "mkdir ../project/.git/rebase-merge; echo 'exec ./x' > ../project/.git/rebase-merge/git-rebase-todo; \
                 echo b > b; git add b; git commit -qm second";
    home.write("tree/script.sh", plant);
    let told = run_in(&home, "tree", &[shell("bash script.sh")], &[]);
    assert!(told.contains("git is in the middle of something") && told.contains("rebase-merge"), "{told}");
    assert_eq!(git(&home, "tree", &["log", "-1", "--format=%s"]), "second\n", "{told}");
}

#[test]
fn a_submodule_as_project_is_committed_to_and_not_trapped() {
    let Some(home) = project() else { return };
    home.write("origin/lib.txt", "lib\n");
    begin(&home, "origin");
    git(&home, "project", &["submodule", "--quiet", "add", "../origin", "lib"]);
    git(&home, "project", &["commit", "-qam", "lib"]);
    git(&home, "project/lib", &["config", "user.name", "a"]);
    git(&home, "project/lib", &["config", "user.email", "a@b"]);
    let plant = "echo ../x > ../.git/modules/lib/commondir; printf '[core]\\n\\tfsmonitor=./x\\n' >> ../.git/modules/lib/config; \
                 echo x > ../.git/modules/lib/hooks/pre-commit; echo x > ../.git/hooks/pre-commit; true";
    home.write("project/lib/script.sh", plant);
    let calls = [shell("echo b > b && git add b && git commit -qm second"), shell("bash script.sh")];
    let told = run_in(&home, "project/lib", &calls, &[]);
    assert_eq!(git(&home, "project/lib", &["log", "-1", "--format=%s"]), "second\n", "{told}");
    let module = home.project().join(".git/modules/lib");
    assert!(!module.join("commondir").exists() && !module.join("hooks/pre-commit").exists(), "{told}");
    assert!(
        !text(&module.join("config")).contains("fsmonitor") && !exists(&home, ".git/hooks/pre-commit"),
        "{told}"
    );
}

#[test]
fn new_modules_and_repositories_with_traps_are_put_aside() {
    let plants = [
        (
            ".git/modules/new",
            "mkdir -p .git/modules/new; cd .git/modules/new; git init -q --bare .; \
             printf '[extensions]\\n\\tworktreeConfig = true\\n' >> config; printf '[core]\\n\\tfsmonitor = ./x\\n' > config.worktree",
        ),
        (
            ".git/modules/a/b",
            "mkdir -p .git/modules/a/b; cd .git/modules/a/b; git init -q --bare .; echo '* filter=x' > info/attributes",
        ),
        (
            "sub/.git",
            "git init -q sub; cd sub/.git/hooks; for i in $(seq 3000); do : > $i.sample; done; echo x > pre-commit; chmod +x pre-commit",
        ),
        ("sub/.git", "git init -q sub; printf '[gc]\\n\\trecentObjectsHook = ./x\\n' >> sub/.git/config"),
        (
            "sub/.git",
            "git init -q sub; printf '[branch \"main\"]\\n\\tmergeOptions = -s x\\n' >> sub/.git/config",
        ),
        (
            "sub/.git",
            "git init -q sub; printf '[remote \"o\"]\\n\\turl = ext:\":\"sh -c ./x\\n' >> sub/.git/config",
        ),
        ("sub/.git", "git init -q sub; rm -r sub/.git/hooks; ln -s ../../hooks sub/.git/hooks"),
        ("sub/.git", "git init -q sub; mv sub/.git lib; ln -s ../lib sub/.git"),
        (
            "docs/HEAD",
            "mkdir -p docs lib/objects lib/refs; echo ref: refs/heads/main > docs/HEAD; echo ../lib > docs/commondir; \
             printf '[core]\\n\\tpager = ./x\\n' > lib/config",
        ),
        (
            "docs/worktrees/w/HEAD",
            "mkdir -p docs/worktrees/w docs/objects docs/refs; cd docs; printf '[core]\\n\\tpager = ./x\\n' > config; \
             cd worktrees/w; echo ref: refs/heads/main > HEAD; echo ../.. > commondir",
        ),
        ("info/HEAD", "git init -q --bare info; printf '[core]\\n\\tpager = ./x\\n' >> info/config"),
        ("hooks/HEAD", "git init -q --bare hooks; printf '[core]\\n\\tpager = ./x\\n' >> hooks/config"),
    ];
    for (path, plant) in plants {
        let Some(home) = project() else { return };
        let call = script(&home, plant);
        let told = run(&home, &[call]);
        assert!(!exists(&home, path), "{plant}: {told}");
        assert!(told.contains("put aside"), "{plant}: {told}");
    }
    // What was a folder of the project's before is one afterwards.
    let Some(home) = project() else { return };
    home.write("project/docs/guide.md", "guide\n");
    let call = script(
        &home,
        "cd docs; echo ref: refs/heads/main > HEAD; mkdir objects refs; printf '[core]\\n\\tpager = ./x\\n' > config",
    );
    let told = run(&home, &[call]);
    assert!(
        exists(&home, "docs/guide.md") && !exists(&home, "docs/HEAD") && told.contains("put aside"),
        "{told}"
    );
}

#[test]
fn ordinary_repositories_stay() {
    let Some(home) = project() else { return };
    home.write("origin/lib.txt", "lib\n");
    begin(&home, "origin");
    let ordinary = "git init -q sub && git init -q --bare bare.git && git clone -q . copy && git clone -q --bare . mirror.git \
                    && cd sub && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git push -q ../bare.git HEAD:main";
    let told = run(&home, &[script(&home, ordinary), shell("cd copy && git log --oneline | cat")]);
    assert!(!told.contains("put aside"), "{told}");
    for path in ["sub/.git/HEAD", "bare.git/HEAD", "copy/.git/HEAD", "mirror.git/HEAD"] {
        assert!(exists(&home, path), "{path}: {told}");
    }
}

#[test]
fn file_tools_write_no_git_folder_by_any_name() {
    let Some(home) = project() else { return };
    git(&home, "project", &["init", "-q", "--bare", "fix.git"]);
    let write = |path: &str, text: &str| json!(["write", { "path": path, "content": text }]);
    let told = run(
        &home,
        &[
            write("foo/config", TRAP),
            write("foo/HEAD", "ref: refs/heads/main\n"),
            write("foo/refs/x", "x"),
            write("foo/objects/x", "x"),
            write("fix.git/hooks/post-update", "x"),
            write("split/commondir", "../foo\n"),
            write("split/HEAD", "ref: refs/heads/main\n"),
            write("src/HEAD", "an ordinary file\n"),
        ],
    );
    assert!(told.contains("decides what git runs"), "{told}");
    assert!(!exists(&home, "foo/objects/x") && !exists(&home, "fix.git/hooks/post-update"), "{told}");
    assert!(!exists(&home, "split/HEAD") && exists(&home, "src/HEAD"), "{told}");
    // All of it in one call.
    let patch = "*** Begin Patch\n*** Add File: new/HEAD\n+ref: refs/heads/main\n*** Add File: new/objects/x\n+x\n\
                 *** Add File: new/config\n+[core]\n*** End Patch\n";
    let told = run(&home, &[json!(["apply_patch", { "patch": patch }])]);
    assert!(!exists(&home, "new/HEAD"), "{told}");
}

#[test]
fn what_a_rule_denies_to_be_written_is_not_made_either() {
    let Some(home) = project() else { return };
    let call = script(
        &home,
        "mkdir -p newdeny/a; echo x > newdeny/a/x; echo x > later.txt; echo x > b.lock; echo x > free.txt",
    );
    let flags = ["--deny", "write(./newdeny/**)", "--deny", "write(./later.txt)", "--deny", "write(*.lock)"];
    let told = run_in(&home, "project", &[call, shell("true")], &flags);
    for path in ["newdeny", "later.txt", "b.lock"] {
        assert!(!exists(&home, path), "{path}: {told}");
    }
    assert!(exists(&home, "free.txt") && told.contains("later.txt.put-aside"), "{told}");
    assert!(told.contains("newdeny.put-aside") && !told.contains("put-aside.put-aside"), "{told}");
    // A job, too.
    let Some(home) = project() else { return };
    let late = job_script(&home, "sleep 0.5; echo x > later.txt; touch done-it; sleep 100");
    let wait = shell("for i in $(seq 200); do [ -e done-it ] && break; sleep 0.05; done");
    let told = run_in(&home, "project", &[late, wait, shell("true")], &flags);
    assert!(!exists(&home, "later.txt") && told.contains("put aside"), "{told}");
}

#[test]
fn other_names_of_a_file_are_no_way_around() {
    let Some(home) = project() else { return };
    home.write("project/secret.txt", "hunter2\n");
    home.write("project/.env", "PASSWORD=hunter3\n");
    for (from, to) in [("secret.txt", "hardsec"), (".env", "hardenv"), (".git/config", "notes.txt")] {
        fs::hard_link(home.project().join(from), home.project().join(to)).unwrap();
    }
    let read = |path: &str| json!(["read", { "path": path }]);
    let calls = [
        read("hardsec"),
        read("hardenv"),
        json!(["grep", { "pattern": "hunter" }]),
        script(&home, "cat hardsec hardenv; printf '[core]\\n\\tfsmonitor = ./x\\n' >> notes.txt"),
    ];
    let told = run_in(&home, "project", &calls, &["--deny", "read(./secret.txt)"]);
    assert!(!told.contains("hunter2") && !told.contains("hunter3"), "{told}");
    assert!(!text(&home.project().join(".git/config")).contains("fsmonitor"), "{told}");
}
