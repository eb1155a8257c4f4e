//! What the program does unasked, what it asks, and what it never does: from outside, with scripted models.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::home::{Home, Ran};

/// A home whose model makes these calls, one after the other, and then is done.
fn home(calls: &[Value]) -> Home {
    let home = Home::new();
    home.write("project/a.txt", "old\n");
    write_calls(&home, calls);
    home
}

/// What the model does from now on.
fn write_calls(home: &Home, calls: &[Value]) {
    let step = |call: &Value| {
        let (tool, input) = (call[0].as_str().unwrap(), toml(&call[1]));
        format!("[[step]]\ncalls = [{{ tool = \"{tool}\", input = {input} }}]\n")
    };
    let steps: String = calls.iter().map(step).collect();
    home.write("project/calls.toml", &(steps + "[[step]]\ntext = 'Done.'\n"));
}

/// An inline table.
fn toml(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name} = {}", toml(value))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

fn shell(command: &str) -> Value {
    json!(["shell", { "command": command }])
}

fn run(home: &Home, flags: &[&str]) -> Ran {
    let mut command = home.helve(&[&["run", "--model", "script:calls.toml", "go"], flags].concat());
    command.stdin(Stdio::null());
    home.run_command(command)
}

/// Everything that the model was told.
fn told(home: &Home) -> String {
    home.run(&["sessions", "show", "last", "--json"]).out
}

/// Whether commands can be fully confined on this machine; if not, the test has nothing to say.
fn is_confined(home: &Home) -> bool {
    let is_full = home.run(&["doctor"]).out.contains("full: commands write only");
    if !is_full {
        helve_testkit::skip("permissions", "commands can't be fully confined here");
    }
    is_full
}

#[test]
fn an_automatic_command_reaches_nothing_but_the_project() {
    let outside = tempfile::tempdir().unwrap();
    let script = outside.path().join("script.sh");
    let attack = format!(
        "echo in > made; echo out > {0}/out && echo ESCAPED; echo x > $HELVE_HOME/x && echo ESCAPED; cat .env; \
         ls $HELVE_HOME/config.toml && echo ESCAPED; echo x > .git/hooks/pre-commit && echo ESCAPED; \
         (exec 3<>/dev/tcp/192.0.2.1/80) 2>&1 && echo ESCAPED; echo kept > /tmp/t; exit 0\n",
        outside.path().display()
    );
    fs::write(&script, attack).unwrap();
    let home = home(&[shell("bash ./script.sh"), shell("cat /tmp/t")]);
    if !is_confined(&home) {
        return;
    }
    fs::copy(&script, home.project().join("script.sh")).unwrap();
    fs::create_dir(home.project().join(".git/hooks")).unwrap();
    home.write("project/.env", "PASSWORD=hunter2\n");
    home.write("home/config.toml", "");
    let ran = run(&home, &["--permission-mode", "auto"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let told = told(&home);
    assert!(!told.contains("ESCAPED") && !told.contains("hunter2"), "{told}");
    assert!(told.contains("kept"), "one command finds what another left: {told}");
    assert_eq!(fs::read_to_string(home.project().join("made")).unwrap(), "in\n");
    assert!(!outside.path().join("out").exists());
}

#[test]
fn an_ordinary_command_needs_no_answer_and_its_files_are_told() {
    let home = home(&[shell("make -s all"), json!(["write", { "path": "b.txt", "content": "b\n" }])]);
    if !is_confined(&home) {
        return;
    }
    home.write("project/Makefile", "all:\n\techo made > out.txt\n");
    let ran = run(&home, &["--permission-mode", "auto"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(fs::read_to_string(home.project().join("out.txt")).unwrap(), "made\n");
    assert_eq!(fs::read_to_string(home.project().join("b.txt")).unwrap(), "b\n");
}

#[test]
fn with_nobody_to_ask_the_rule_is_named_and_the_code_is_13() {
    let home = home(&[shell("make -s all")]);
    home.write("project/Makefile", "all:\n\techo made > out.txt\n");
    let ran = run(&home, &[]);
    assert_eq!(ran.code, 13, "{}", ran.err);
    assert!(told(&home).contains("--allow 'shell(make:*)'"), "{}", told(&home));
    assert_eq!(run(&home, &["--allow", "shell(make:*)"]).code, 0);
    assert!(home.project().join("out.txt").exists());
    let ran = run(&home, &["--yes", "--deny", "Bash(make:*)"]);
    assert_eq!(ran.code, 13, "{}", ran.err);
    let ran = run(&home, &["--allow", "shell("]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("is no rule"), "{}", ran.err);
}

#[test]
fn too_much_is_never_deleted_by_itself() {
    let home = home(&[shell("rm -rf many"), shell("rm -rf few"), shell("rm -rf .git")]);
    for number in 0..150 {
        home.write(&format!("project/many/{number}"), "x");
    }
    home.write("project/few/1", "x");
    let ran = run(&home, &["--yes"]);
    assert_eq!(ran.code, 13, "{}", ran.err);
    let told = told(&home);
    assert!(told.contains("it would delete more than 100 files") && told.contains("mode bypass"), "{told}");
    assert!(home.project().join("many/149").exists() && home.project().join(".git").exists());
    assert!(!home.project().join("few").exists());
    let ran = run(&home, &["--permission-mode", "bypass"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(!home.project().join("many").exists());
}

#[test]
fn secrets_are_not_found_by_accident_nor_through_links() {
    let home = home(&[
        json!(["grep", { "pattern": "hunter" }]),
        json!(["read", { "path": "link" }]),
        json!(["read", { "path": "etc/hostname" }]),
    ]);
    home.write("project/server.key", "hunter2\n");
    home.write("project/plain.txt", "a hunter\n");
    std::os::unix::fs::symlink("server.key", home.project().join("link")).unwrap();
    std::os::unix::fs::symlink("/etc", home.project().join("etc")).unwrap();
    let ran = run(&home, &["--permission-mode", "auto"]);
    let told = told(&home);
    assert_eq!(ran.code, 13, "{}", ran.err);
    assert!(told.contains("a hunter") && !told.contains("hunter2"), "{told}");
    assert!(told.contains("server.key: it may hold secrets; name it to search it"), "{told}");
    assert!(told.contains("/etc/hostname is outside the project"), "{told}");
}

/// Talks with a run as a program does.
struct Talk {
    child: std::process::Child,
    to: std::process::ChildStdin,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Talk {
    fn start(home: &Home, flags: &[&str]) -> Talk {
        let words =
            ["run", "--model", "script:calls.toml", "--input", "stream-json", "--output", "stream-json"];
        let mut command = home.helve(&[&words, flags].concat());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut to = child.stdin.take().unwrap();
        writeln!(to, r#"{{"command":"submit","parts":[{{"type":"text","text":"go"}}]}}"#).unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Talk { child, to, lines }
    }

    /// The next event of one of these kinds, or the result.
    fn next(&mut self, kinds: &[&str]) -> Value {
        loop {
            let line: Value = serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap();
            let is_it = line["kind"].as_str().is_some_and(|kind| kinds.contains(&kind));
            if is_it || line["type"] == "result" {
                return line;
            }
        }
    }

    fn answer(&mut self, asked: &Value, answer: &str) {
        let approval = &asked["data"]["approval"];
        writeln!(self.to, r#"{{"command":"decide","approval":{approval},"answer":{{"type":"{answer}"}}}}"#)
            .unwrap();
    }

    fn end(mut self) -> Value {
        drop(self.to);
        let mut last = Value::Null;
        for line in self.lines.by_ref() {
            last = serde_json::from_str(&line.unwrap()).unwrap();
        }
        self.child.wait().unwrap();
        last
    }
}

#[test]
fn a_yes_for_the_session_or_the_project_is_one_by_rule() {
    let calls = [shell("make one"), shell("make two"), shell("touch x")];
    let home = home(&calls);
    home.write("project/Makefile", "one two:\n\t@echo $@\n");
    let mut talk = Talk::start(&home, &[]);
    let asked = talk.next(&["approval_requested"]);
    assert_eq!(asked["data"]["rules"], json!(["shell(make one:*)"]), "{asked}");
    talk.answer(&asked, "session");
    let asked = talk.next(&["approval_requested"]);
    assert_eq!(asked["data"]["effects"][0], "run make two", "the other is not covered: {asked}");
    talk.answer(&asked, "project");
    let asked = talk.next(&["approval_requested"]);
    talk.answer(&asked, "once");
    assert_eq!(talk.end()["exit_code"], 0);
    let kept = fs::read_to_string(home.project().join(".helve/local.toml")).unwrap();
    assert_eq!(kept, "[[permission]]\ntool = \"shell\"\npattern = \"make two:*\"\naction = \"allow\"\n");

    // Another session of the project: only what was allowed for the project is.
    let mut talk = Talk::start(&home, &[]);
    let asked = talk.next(&["approval_requested"]);
    assert_eq!(asked["data"]["effects"][0], "run make one", "{asked}");
    talk.answer(&asked, "once");
    let asked = talk.next(&["approval_requested"]);
    assert_eq!(asked["data"]["effects"][0], "run touch x", "{asked}");
    talk.answer(&asked, "reject");
    talk.next(&["turn_ended"]);
    assert_eq!(talk.end()["exit_code"], 0, "who said no knows it");
}

#[test]
fn the_network_is_asked_about_once() {
    let fetch = "curl -s -m 1 http://192.0.2.1/ || wget -q -T 1 -t 1 http://192.0.2.1/ || true";
    let home = home(&[shell(fetch), shell(fetch)]);
    if !is_confined(&home) {
        return;
    }
    let mut talk = Talk::start(&home, &["--permission-mode", "auto"]);
    let asked = talk.next(&["approval_requested"]);
    assert_eq!(asked["data"]["rules"], json!(["network"]), "{asked}");
    talk.answer(&asked, "session");
    let next = talk.next(&["approval_requested", "turn_ended"]);
    assert_eq!(next["kind"], "turn_ended", "it is not asked again: {next}");
    talk.end();
}

#[test]
fn how_files_would_change_is_shown_and_what_cant_be_done_is_not_asked() {
    let edit = |old: &str| json!(["edit", { "path": "a.txt", "edits": [{ "old": old, "new": "new" }] }]);
    let read = json!(["read", { "path": "a.txt" }]);
    let home = home(&[read, edit("nowhere"), edit("old")]);
    let mut talk = Talk::start(&home, &[]);
    let asked = talk.next(&["approval_requested"]);
    let diff = asked["data"]["diff"].as_str().unwrap();
    assert!(diff.contains("-old\n+new"), "{asked}");
    assert_eq!(fs::read_to_string(home.project().join("a.txt")).unwrap(), "old\n", "nothing was done yet");
    talk.answer(&asked, "once");
    assert_eq!(talk.end()["exit_code"], 0);
    assert_eq!(fs::read_to_string(home.project().join("a.txt")).unwrap(), "new\n");
    assert!(told(&home).contains("a.txt was not edited"), "{}", told(&home));
}

#[test]
fn rules_are_read_again_at_each_message() {
    let home = home(&[shell("make one")]);
    home.write("project/Makefile", "one:\n\t@echo one\n");
    let script =
        "[[step]]\ncalls = [{ tool = 'shell', input = { command = 'make one' } }]\n[[step]]\ntext = 'Hm.'\n";
    home.write("project/calls.toml", &script.repeat(2));
    home.write("home/config.toml", "[[permission]]\ntool = 'shell'\npattern = 'make:*'\naction = 'allow'\n");
    let mut talk = Talk::start(&home, &[]);
    let ended = talk.next(&["turn_ended", "approval_requested", "tool_ended"]);
    assert_eq!(ended["data"]["end"]["type"], "completed", "{ended}");
    talk.next(&["turn_ended"]);
    home.write("home/config.toml", "[[permission]]\ntool = 'shell'\npattern = 'make:*'\naction = 'deny'\n");
    writeln!(talk.to, r#"{{"command":"submit","parts":[{{"type":"text","text":"again"}}]}}"#).unwrap();
    let ended = talk.next(&["approval_requested", "tool_ended"]);
    assert_eq!(ended["data"]["end"]["type"], "denied", "{ended}");
    talk.end();
}

/// Runs commands confined, unasked, in a project with a real repository. None where nothing can be confined.
fn confined(files: &[(&str, &str)], commands: &[&str], env: &[(&str, &str)]) -> Option<(Home, String)> {
    let home = home(&commands.iter().map(|command| shell(command)).collect::<Vec<_>>());
    if !is_confined(&home) {
        return None;
    }
    fs::remove_dir(home.project().join(".git")).unwrap();
    git(&home, &["init", "-q", "."]);
    for (name, text) in files {
        home.write(&format!("project/{name}"), text);
        git(&home, &["add", "-f", name]);
    }
    git(&home, &["commit", "-qm", "begin", "--allow-empty"]);
    let told = run_confined(&home, env);
    Some((home, told))
}

/// Runs the calls of the script; gives what the model was told.
fn run_confined(home: &Home, env: &[(&str, &str)]) -> String {
    let flags = [
        "run",
        "--model",
        "script:calls.toml",
        "go",
        "--permission-mode",
        "auto",
        "--allow",
        "shell(python3:*)",
    ];
    let mut command = home.helve(&flags);
    command.stdin(Stdio::null()).envs(env.iter().copied());
    let ran = home.run_command(command);
    assert!(ran.code == 0 || ran.code == 13, "{}", ran.err);
    told(home)
}

fn git(home: &Home, words: &[&str]) -> String {
    let mut command = std::process::Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "safe.directory=*"]).args(words);
    let output = command.current_dir(home.project()).env("HOME", home.path()).output().unwrap();
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_git_tracks_is_committed_as_it_is_and_what_it_does_not_is_hidden() {
    let commit = "echo x >> a.txt; git -c user.name=a -c user.email=a@b commit -qam work; cat .env other.pem";
    let files = [(".env", "TRACKED=1\n"), ("a.txt", "a\n")];
    let Some((home, told)) = confined(&files, &["printf HIDDEN > other.pem", commit], &[]) else { return };
    assert_eq!(git(&home, &["show", "HEAD:.env"]), "TRACKED=1\n", "{told}");
}

#[test]
fn what_leads_git_elsewhere_is_put_aside_or_asked() {
    let make = "python3 -c \"import os; open('.git/commondir','w').write('../ev'); os.makedirs('.helve'); open('.helve/config.toml','w')\"";
    let Some((home, told)) = confined(&[], &[make, "git remote add x /tmp/y", "git clean -fdx"], &[]) else {
        return;
    };
    assert!(told.contains("put aside"), "{told}");
    assert!(!home.project().join(".git/commondir").exists() && !home.project().join(".helve").exists());
    assert!(told.contains("changes the settings of the repository"), "{told}");
    assert!(told.contains("deletes files that git does not know"), "{told}");
}

#[test]
fn a_repository_that_nobody_wanted_is_put_aside() {
    let plant = "python3 -c \"import os; os.makedirs('.git.put-aside/x'); os.mkdir('.git'); \
                 open('.git/config','w').write('[core] fsmonitor=/tmp/evil')\"";
    let Some((home, _)) = confined(&[], &["true"], &[]) else { return };
    fs::rename(home.project().join(".git"), home.project().join("old")).unwrap();
    write_calls(&home, &[shell(plant)]);
    let told = run_confined(&home, &[]);
    assert!(told.contains("put aside") && told.contains(".git.put-aside2"), "{told}");
    assert!(!home.project().join(".git").exists());
}

#[test]
fn submodules_are_worked_in_and_their_settings_are_not_changed() {
    let Some((home, _)) = confined(&[("a.txt", "a\n")], &["true"], &[]) else { return };
    git(&home, &["init", "-q", "module"]);
    git(&home, &["-C", "module", "commit", "-q", "--allow-empty", "-m", "first"]);
    fs::rename(home.project().join("module"), home.path().join("origin")).unwrap();
    let origin = home.path().join("origin").display().to_string();
    git(&home, &["-c", "protocol.file.allow=always", "submodule", "add", "-q", &origin, "sub"]);
    let commit =
        "cd sub && echo x > x && git add x && git -c user.name=a -c user.email=a@b commit -qm second";
    let harm = "python3 -c \"open('../.git/modules/sub/config','a').write('[core] fsmonitor=x')\"";
    write_calls(&home, &[shell(commit), shell(harm)]);
    let told = run_confined(&home, &[]);
    assert_eq!(git(&home, &["-C", "sub", "log", "-1", "--format=%s"]), "second\n", "{told}");
    let config = fs::read_to_string(home.project().join(".git/modules/sub/config")).unwrap();
    assert!(!config.contains("fsmonitor") && told.contains("Read-only file system"), "{config}\n{told}");
}

#[test]
fn a_work_tree_that_nobody_knows_opens_nothing() {
    let outside = tempfile::tempdir_in("/var").or_else(|_| tempfile::tempdir()).unwrap();
    let target = outside.path().display().to_string();
    let link = format!(
        "python3 -c \"import os,shutil; shutil.rmtree('.git'); os.mkdir('.x'); open('.x/gitdir','w').write(os.path.abspath('.git')); \
         open('.x/commondir','w').write('{target}'); open('.git','w').write('gitdir: .x')\""
    );
    let escape = format!("python3 -c \"open('{target}/out','w').write('x')\"");
    let Some((_, told)) = confined(&[], &[&link, &escape], &[]) else { return };
    assert!(!outside.path().join("out").exists(), "{told}");
}

#[test]
fn a_server_in_the_background_is_reached_by_the_next_command() {
    let Some((home, _)) = confined(&[("page.txt", "served\n")], &["true"], &[]) else { return };
    let serve = "python3 -m http.server 8126 --bind 127.0.0.1";
    let serve = json!(["shell", { "command": serve, "background": true }]);
    let look = "for i in $(seq 50); do python3 -c \"import urllib.request as r; \
                print(r.urlopen('http://127.0.0.1:8126/page.txt').read())\" && break; sleep 0.1; done";
    write_calls(&home, &[serve, shell(look)]);
    let told = run_confined(&home, &[]);
    assert!(told.contains("b'served\\\\n'"), "{told}");
}

#[test]
fn secrets_in_the_environment_do_not_reach_commands() {
    let env = [("GITHUB_TOKEN", "hunter2"), ("AWS_SECRET_ACCESS_KEY", "hunter2"), ("EDITOR", "vi")];
    let Some((_, told)) = confined(&[], &["env"], &env) else { return };
    assert!(told.contains("EDITOR=vi") && !told.contains("hunter2"), "{told}");
}

/// What is read-protected from the model is not told to it because a person changed it.
#[test]
fn what_a_person_changes_in_a_file_with_secrets_is_told_by_name_only() {
    let home = home(&[json!(["read", { "path": "a.txt" }])]);
    home.write("project/.env", "KEY=first\n");
    assert_eq!(run(&home, &["--permission-mode", "auto"]).code, 0);
    home.write("project/.env", "KEY=hunter2\n");
    home.write("project/a.txt", "by a person\n");
    home.write("project/calls.toml", "[[step]]\ntext = 'I see.'\nrepeat = true\n");
    let ran = home.run(&["run", "--continue", "--model", "script:calls.toml", "again"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let conversation = home.run(&["sessions", "show", "last", "--messages", "--json"]);
    let told = format!("{}{}", conversation.out, told(&home));
    assert!(told.contains(".env was changed (it may hold secrets)"), "{told}");
    assert!(!conversation.out.contains("hunter2"), "{}", conversation.out);
}

/// The commands' own `/tmp` lies somewhere else, and is a folder like others to them.
#[test]
fn the_folder_holds_in_the_tmp_of_the_commands() {
    let make = "mkdir -p /tmp/build && cd /tmp/build && echo 'int main;' > work.c";
    let commands = [make, "echo second >> work.c; cat work.c; pwd"];
    let Some((home, told)) = confined(&[("work.c", "the project's\n")], &commands, &[]) else { return };
    assert!(told.contains("[now in /tmp/build, outside the project]"), "{told}");
    assert!(told.contains("int main;\\nsecond\\n/tmp/build\\n"), "{told}");
    assert_eq!(fs::read_to_string(home.project().join("work.c")).unwrap(), "the project's\n");
}

/// A file that a rule names is the one that everybody sees, also where commands have a folder of their own.
#[test]
fn what_is_allowed_below_tmp_is_given() {
    let elsewhere = tempfile::tempdir_in("/tmp").unwrap();
    let (file, rule) =
        (elsewhere.path().join("out.txt"), format!("write(/{})", elsewhere.path().join("out.txt").display()));
    let command = format!("echo given > {}; echo mine > /tmp/own-of-the-command", file.display());
    let home = home(&[shell(&command)]);
    if !is_confined(&home) {
        return;
    }
    let ran = run(&home, &["--permission-mode", "auto", "--allow", &rule]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(fs::read_to_string(&file).unwrap(), "given\n");
    assert!(!std::path::Path::new("/tmp/own-of-the-command").exists());
}

/// What leaves the sandbox is found where no project can write, and run without a shell and without secrets.
#[test]
fn no_program_of_the_projects_leaves_the_sandbox_under_the_name_of_another() {
    let plant = "mkdir -p .venv/bin && cp planted .venv/bin/systemctl && cp planted .venv/bin/timeout && chmod +x .venv/bin/*";
    let home = home(&[
        shell(plant),
        shell("systemctl status"),
        shell("timeout 5 systemctl status"),
        shell("unshare sh planted"),
        shell("chroot / sh planted"),
        shell("su -c 'sh planted'"),
        shell("runuser -u root -- sh planted"),
        shell("sudo sh planted"),
    ]);
    if !is_confined(&home) {
        return;
    }
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let marker = outside.path().join("ran");
    home.write("project/planted", &format!("#!/bin/sh\necho \"ran $MY_TOKEN\" >> {}\n", marker.display()));
    for flags in [&["--yes"][..], &["--allow", "shell(systemctl status:*)", "--allow", "shell(timeout:*)"]] {
        let words = ["run", "--model", "script:calls.toml", "go", "--permission-mode", "accept-edits"];
        let mut helve = home.helve(&[&words[..], flags].concat());
        let path = format!("{}:/usr/bin:/bin", home.project().join(".venv/bin").display());
        helve.env("PATH", path).env("MY_TOKEN", "hunter2").stdin(Stdio::null());
        home.run_command(helve);
        assert!(!marker.exists(), "{flags:?}: {}", fs::read_to_string(&marker).unwrap_or_default());
        assert!(!told(&home).contains("hunter2"));
    }
    // What the user has outside the project works, without what is withheld and with nothing of the project on its way.
    let docker = outside.path().join("docker");
    fs::write(&docker, "#!/bin/sh\necho \"outside $1 [$MY_TOKEN] $PATH\"; echo out > $(dirname $0)/ran\n")
        .unwrap();
    fs::set_permissions(&docker, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    write_calls(&home, &[shell("docker 'a b'")]);
    let words = [
        "run",
        "--model",
        "script:calls.toml",
        "go",
        "--permission-mode",
        "auto",
        "--allow",
        "shell(docker:*)",
    ];
    let mut helve = home.helve(&words);
    let path = [home.project().join(".venv/bin"), outside.path().into(), "/usr/bin".into(), "/bin".into()];
    helve.env("PATH", std::env::join_paths(path).unwrap()).env("MY_TOKEN", "hunter2").stdin(Stdio::null());
    home.run_command(helve);
    let told = told(&home);
    assert!(marker.exists() && told.contains("outside a b []") && !told.contains(".venv/bin:"), "{told}");
}
