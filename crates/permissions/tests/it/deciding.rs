//! The table: mode × what the rules say × level → decision.

use helve_permissions::{Layer, Level, Places, Policy, Rule, Rules, Verdict, decide};
use helve_protocol::{Action, Mode};

const MODES: [Mode; 5] = [Mode::Plan, Mode::Ask, Mode::AcceptEdits, Mode::Auto, Mode::Bypass];
const LEVELS: [Level; 3] = [Level::None, Level::Partly, Level::Fully];

fn places() -> Places {
    Places { home: Some("/home/me".into()), ..Places::of("/p") }
}

fn decided(
    rules: &[(Layer, &str, Verdict)],
    mode: Mode,
    level: Level,
    tool: &str,
    action: &Action,
) -> Verdict {
    let mut all = Rules::default();
    for (layer, text, verdict) in rules {
        all.add(*layer, "settings", Rule::parse(text, *verdict).unwrap());
    }
    let places = places();
    decide(tool, std::slice::from_ref(action), Policy { rules: &all, places: &places, mode, level }).verdict
}

fn run(command: &str) -> Action {
    Action::Run { command: command.to_owned(), folder: "/p".into(), network: false, credentials: false }
}

#[test]
fn every_mode_with_every_verdict_at_every_level() {
    let command = run("make all");
    for mode in MODES {
        for level in LEVELS {
            for verdict in [None, Some(Verdict::Allow), Some(Verdict::Ask), Some(Verdict::Deny)] {
                for layer in [Layer::Administrator, Layer::User] {
                    let rule = verdict.map(|verdict| (layer, "shell(make:*)", verdict));
                    let rules: Vec<_> = rule.into_iter().collect();
                    let expected = match (mode, verdict) {
                        (Mode::Bypass, Some(Verdict::Deny)) if layer == Layer::Administrator => Verdict::Deny,
                        (Mode::Bypass, _) => Verdict::Allow,
                        (_, Some(Verdict::Deny)) | (Mode::Plan, _) => Verdict::Deny,
                        // Where nothing confines it, a rule that does not say all of it is no answer.
                        (_, Some(Verdict::Allow)) if level == Level::None => Verdict::Ask,
                        (_, Some(Verdict::Allow)) => Verdict::Allow,
                        (_, Some(Verdict::Ask)) => Verdict::Ask,
                        (Mode::Ask, None) => Verdict::Ask,
                        (Mode::Auto, None) if level == Level::None => Verdict::Ask,
                        // Where less confines it, more is asked.
                        (Mode::AcceptEdits, None) if level < Level::Fully => Verdict::Ask,
                        (Mode::AcceptEdits | Mode::Auto, None) => Verdict::Allow,
                    };
                    let came = decided(&rules, mode, level, "shell", &command);
                    assert_eq!(came, expected, "{mode:?} {level:?} {layer:?} {verdict:?}");
                }
            }
        }
    }
}

#[test]
fn files() {
    let read = |path: &str| Action::Read(path.into());
    let write = |path: &str| Action::Write(path.into());
    let (allow, ask, deny) = (Verdict::Allow, Verdict::Ask, Verdict::Deny);
    for (mode, tool, action, expected) in [
        (Mode::Ask, "read", read("/p/src/a.rs"), allow),
        (Mode::Plan, "read", read("/p/src/a.rs"), allow),
        (Mode::Ask, "read", read("/etc/passwd"), ask),
        (Mode::Auto, "read", read("/p/.env"), ask),
        (Mode::Auto, "read", read("/p/.env.example"), allow),
        (Mode::Auto, "read", read("/home/me/.ssh/id_rsa"), ask),
        (Mode::Ask, "edit", write("/p/src/a.rs"), ask),
        (Mode::AcceptEdits, "edit", write("/p/src/a.rs"), allow),
        (Mode::Auto, "write", write("/p/src/a.rs"), allow),
        (Mode::Auto, "write", write("/p/.git/hooks/pre-commit"), ask),
        (Mode::Auto, "write", write("/p/.helve/config.toml"), ask),
        (Mode::Auto, "write", write("/etc/x"), ask),
        (Mode::Plan, "write", write("/p/src/a.rs"), deny),
        (Mode::Bypass, "write", write("/etc/x"), allow),
    ] {
        assert_eq!(decided(&[], mode, Level::Fully, tool, &action), expected, "{mode:?} {tool} {action:?}");
    }
    // What decides about rules is asked even if a rule allows it.
    let free = [(Layer::User, "write", allow)];
    assert_eq!(decided(&free, Mode::Auto, Level::Fully, "write", &write("/p/.git/hooks/x")), ask);
    assert_eq!(decided(&free, Mode::Ask, Level::Fully, "write", &write("/p/a")), allow);
}

#[test]
fn a_rule_for_one_command_is_none_for_its_neighbour() {
    let rules =
        [(Layer::User, "Bash(npm run test:*)", Verdict::Allow), (Layer::User, "Bash(git:*)", Verdict::Allow)];
    for (command, expected) in [
        ("npm run test", Verdict::Allow),
        ("npm run test -- -u && git add .", Verdict::Allow),
        ("npm run test; rm -rf x", Verdict::Ask),
        ("npm run test $(rm x)", Verdict::Ask),
        ("npm run test > /etc/x", Verdict::Ask),
        ("npm run test | sh", Verdict::Ask),
        ("npm run tests", Verdict::Ask),
        ("git commit -m \"$(echo now)\"", Verdict::Allow),
        ("git commit -m \"$(date)\"", Verdict::Ask),
        ("git -c core.pager=./x log", Verdict::Ask),
    ] {
        assert_eq!(decided(&rules, Mode::Ask, Level::Fully, "shell", &run(command)), expected, "{command}");
    }
}

#[test]
fn variables_by_which_programs_run_others_are_asked_about() {
    let allow = |rule| (Layer::User, rule, Verdict::Allow);
    let rules = [allow("Bash(git:*)"), allow("Bash(make:*)"), allow("Bash(tar:*)"), allow("Bash(cargo:*)")];
    for (command, expected) in [
        ("CARGO_TARGET_DIR=x cargo build", Verdict::Allow),
        ("V=1 make", Verdict::Allow),
        ("GIT_SSH_COMMAND=./x git fetch", Verdict::Ask),
        ("HOME=. git status", Verdict::Ask),
        ("MAKEFLAGS=--eval=x make", Verdict::Ask),
        ("env TAR_OPTIONS=-I./x tar cf a b", Verdict::Ask),
        ("export RUSTC_WRAPPER=./x; cargo build", Verdict::Ask),
        ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=./x cargo test", Verdict::Ask),
    ] {
        assert_eq!(decided(&rules, Mode::Ask, Level::Fully, "shell", &run(command)), expected, "{command}");
    }
}

#[test]
fn what_is_suggested_would_have_been_enough() {
    let places = places();
    for (tool, action) in [
        ("shell", run("npm run build")),
        ("shell", run("make")),
        ("write", Action::Write("/p/src/a.rs".into())),
        ("read", Action::Read("/etc/hosts".into())),
        ("web_fetch", Action::Fetch("https://docs.rs/x".to_owned())),
    ] {
        let rules = Rules::default();
        let policy = Policy { rules: &rules, places: &places, mode: Mode::Ask, level: Level::Fully };
        let decision = decide(tool, std::slice::from_ref(&action), policy);
        assert_eq!(decision.verdict, Verdict::Ask, "{action:?}");
        let mut rules = Rules::default();
        for rule in decision.suggestions {
            // As it is written down and read again.
            rules.add(Layer::Session, "asked", Rule::parse(&rule.to_string(), Verdict::Allow).unwrap());
        }
        assert_eq!(
            decide(tool, std::slice::from_ref(&action), Policy { rules: &rules, ..policy }).verdict,
            Verdict::Allow,
            "{action:?}"
        );
    }
}

/// What is suggested covers what was shown, and not more.
#[test]
fn suggestions_are_small() {
    let suggested = |tool: &str, action: Action, mode: Mode| -> Vec<String> {
        let (rules, places) = (Rules::default(), places());
        let policy = Policy { rules: &rules, places: &places, mode, level: Level::Fully };
        decide(tool, &[action], policy).suggestions.iter().map(ToString::to_string).collect()
    };
    assert_eq!(suggested("write", Action::Write("/p/a.txt".into()), Mode::Ask), ["write(./a.txt)"]);
    assert_eq!(suggested("write", Action::Write("/p/src/a.rs".into()), Mode::Ask), ["write(./src/**)"]);
    assert_eq!(suggested("write", Action::Write("/home/me/x".into()), Mode::Ask), ["write(//home/me/x)"]);
    assert_eq!(suggested("read", Action::Read("/home/me".into()), Mode::Ask), ["read(//home/me)"]);
    assert_eq!(suggested("read", Action::Read("/p/**/.env".into()), Mode::Ask), [""; 0]);
    assert_eq!(suggested("shell", run("git -C . commit"), Mode::Ask), [""; 0]);
    assert_eq!(suggested("shell", run("git commit -m x"), Mode::Ask), ["shell(git commit:*)"]);
    assert_eq!(suggested("shell", run("curl x"), Mode::Auto), ["network"]);
}

#[test]
fn a_folder_that_may_be_read_shows_no_secrets() {
    let read = |rule: &str, path: &str| {
        decided(
            &[(Layer::Session, rule, Verdict::Allow)],
            Mode::Auto,
            Level::Fully,
            "read",
            &Action::Read(path.into()),
        )
    };
    assert_eq!(read("read(//home/me)", "/home/me/notes"), Verdict::Allow);
    assert_eq!(read("read(//home/me/**)", "/home/me/.ssh/id_rsa"), Verdict::Ask);
    assert_eq!(read("read", "/p/.env"), Verdict::Ask);
    assert_eq!(read("read(./.env)", "/p/.env"), Verdict::Allow);
    assert_eq!(read("read(*.pem)", "/p/a.pem"), Verdict::Allow);
}

#[test]
fn nobody_gets_around_a_deny_by_another_name() {
    let deny =
        [(Layer::User, "shell(rm:*)", Verdict::Deny), (Layer::User, "shell(git push:*)", Verdict::Deny)];
    for command in
        ["rm x", "/bin/rm x", "./rm x", "git push", "git -C . push", "/usr/bin/git --no-pager push -f"]
    {
        assert_eq!(
            decided(&deny, Mode::Auto, Level::Fully, "shell", &run(command)),
            Verdict::Deny,
            "{command}"
        );
    }
    let allow = [(Layer::User, "shell(make:*)", Verdict::Allow)];
    assert_eq!(decided(&allow, Mode::Ask, Level::Fully, "shell", &run("./make")), Verdict::Ask);
}

/// That the network may be used says nothing about keys.
#[test]
fn credentials_are_asked_for_by_name_and_go_with_one_plain_command() {
    let decided = |command: &str, wanted: bool, allowed: &[&str]| {
        let mut rules = Rules::default();
        for rule in ["network"].iter().chain(allowed) {
            rules.add(Layer::Session, "asked", Rule::parse(rule, Verdict::Allow).unwrap());
        }
        let places = Places { credentials: vec!["git", "npm", "ssh"], ..places() };
        let policy = Policy { rules: &rules, places: &places, mode: Mode::Auto, level: Level::Fully };
        let (command, folder) = (command.to_owned(), "/p".into());
        let action = Action::Run { command, folder, network: false, credentials: wanted };
        let decision = decide("shell", &[action], policy);
        (decision.verdict, decision.needs.credentials, decision.needs.alone.is_some())
    };
    let git = || Some("git".to_owned());
    let (allow, ask, deny) = (Verdict::Allow, Verdict::Ask, Verdict::Deny);
    assert_eq!(decided("git fetch", false, &[]), (allow, None, false));
    assert_eq!(decided("git fetch", true, &[]), (ask, git(), true));
    assert_eq!(decided("git fetch", false, &["credentials(git)"]), (allow, git(), true));
    assert_eq!(decided("git fetch", false, &["credentials(npm)"]), (allow, None, false));
    assert_eq!(decided("git push", false, &["shell(git push:*)"]), (ask, git(), true));
    assert_eq!(decided("git push", false, &["shell(git push:*)", "credentials(git)"]), (allow, git(), true));
    for command in [
        "git -C sub fetch",
        "git fetch; python3 x.py",
        "git fetch | cat",
        "cd sub && git fetch",
        "GIT_SSH_COMMAND=./x git fetch",
        "./git fetch",
        "git fetch $REMOTE",
        "git fetch > log",
        "git pull",
    ] {
        let all = ["credentials(git)", "credentials(npm)", "shell(git:*)", "shell(python3:*)"];
        assert_eq!(decided(command, false, &all).1, None, "{command}");
        let (verdict, credentials, _) = decided(command, true, &all);
        assert!(verdict == deny && credentials.is_none(), "{command}");
    }
    assert_eq!(
        decided("npm install", false, &["credentials(npm)", "shell(npm install:*)"]),
        (allow, None, false)
    );
    let npm = Some("npm".to_owned());
    assert_eq!(decided("npm ci --ignore-scripts", true, &["credentials(npm)"]), (allow, npm, true));
}

/// Only one program leaves the sandbox, and nothing with it.
#[test]
fn nothing_leaves_the_sandbox_in_the_company_of_another() {
    let allow = |rule| (Layer::User, rule, Verdict::Allow);
    let rules = [
        allow("shell(systemctl status:*)"),
        allow("shell(docker ps:*)"),
        allow("shell(apt list:*)"),
        allow("shell(python3:*)"),
        allow("shell(sudo:*)"),
    ];
    let mut all = Rules::default();
    for (layer, text, verdict) in rules {
        all.add(layer, "settings", Rule::parse(text, verdict).unwrap());
    }
    let places = places();
    let policy = Policy { rules: &all, places: &places, mode: Mode::Auto, level: Level::Fully };
    let decided = |command: &str| {
        let decision = decide("shell", &[run(command)], policy);
        (decision.verdict, decision.needs.unconfined)
    };
    for command in ["systemctl status", "docker ps -a", "apt list"] {
        assert_eq!(decided(command), (Verdict::Allow, true), "{command}");
    }
    for command in [
        "systemctl status; python3 -c 'x'",
        "python3 x.py && docker ps",
        "docker ps | python3 -c x",
        "apt list $(python3 x)",
        "sudo sh -c 'python3 x; python3 y'",
        "X=1 docker ps",
        "docker ps & python3 x",
    ] {
        assert_eq!(decided(command), (Verdict::Ask, false), "{command}");
    }
}

/// Who says yes to everything beforehand means the work: not what decides, not the keys.
#[test]
fn a_yes_beforehand_does_not_reach_what_decides() {
    let places = Places { own: vec!["/home/me/.config/helve".into()], ..places() };
    let (rules, level) = (Rules::default(), Level::Fully);
    let grave = |mode: Mode, tool: &str, action: Action| {
        let decision = decide(tool, &[action], Policy { rules: &rules, places: &places, mode, level });
        (decision.verdict, decision.is_grave)
    };
    for path in [
        "/home/me/.ssh/authorized_keys",
        "/home/me/other/.env",
        "/home/me/.bashrc",
        "/home/me/.config/systemd/user/x.service",
        "/p/.git/hooks/pre-commit",
        "/p/sub/.git/config",
        "/p/.git/modules/sub/commondir",
        "/p/.helve/config.toml",
        "/etc/cron.d/x",
    ] {
        assert_eq!(grave(Mode::Auto, "write", Action::Write(path.into())), (Verdict::Ask, true), "{path}");
        let command = format!("echo x > {path}");
        assert_eq!(grave(Mode::Auto, "shell", run(&command)), (Verdict::Ask, true), "{command}");
    }
    for path in ["/home/me/notes.txt", "/srv/data/x"] {
        assert_eq!(grave(Mode::Auto, "write", Action::Write(path.into())), (Verdict::Ask, false), "{path}");
    }
    assert_eq!(grave(Mode::Auto, "read", Action::Read("/home/me/.ssh/id_rsa".into())), (Verdict::Ask, true));
    let own = || Action::Write("/home/me/.config/helve/config.toml".into());
    assert_eq!(grave(Mode::Bypass, "write", own()), (Verdict::Ask, true));
    assert_eq!(
        grave(Mode::Bypass, "shell", run("echo x >> ~/.config/helve/config.toml")),
        (Verdict::Ask, true)
    );
    assert_eq!(
        grave(Mode::Bypass, "write", Action::Write("/home/me/.bashrc".into())),
        (Verdict::Allow, false)
    );
}

/// In plan mode nothing but looking, whatever wraps it and wherever it goes.
#[test]
fn plan_mode_sees_through_wrappers_and_folders() {
    for command in [
        "/usr/bin/time -o f ls",
        "time -o f ls",
        "script -c ls f",
        "script -qc ls",
        "strace -o f ls",
        "ltrace -o f ls",
        "flock new ls",
        "less -OP3 README",
        "less -o log README",
        "cd nested && git status",
        "cd nested; git diff",
        "git -C nested status",
        "pushd nested && git log",
        "env -C nested git status",
        "dbus-run-session --dbus-daemon=./x ls",
        "xargs -a ~/x echo",
        "env -C ~ ls",
        "CDPATH=/root cd x",
        "watch -x ls",
        "git foo",
        "parallel --joblog f ls ::: a",
    ] {
        let came = decided(&[], Mode::Plan, Level::Fully, "shell", &run(command));
        assert_ne!(came, Verdict::Allow, "{command}");
    }
    for command in
        ["timeout 5 ls", "git status", "git log -3 | head", "cd src && ls", "nice ls", "env LANG=C ls"]
    {
        let came = decided(&[], Mode::Plan, Level::Fully, "shell", &run(command));
        assert_eq!(came, Verdict::Allow, "{command}");
    }
}

/// Reads outside the project are asked about, however the path is written.
#[test]
fn what_is_read_outside_is_seen_through_variables_and_folders() {
    for command in [
        "cat $HOME/x",
        "cat \"$HOME/x\"",
        "cat ${HOME}/x",
        "d=/root; cat $d/x",
        "d=/root; f=x; cat \"$d/$f\"",
        "env -C ~ ls",
        "env -C /root ls",
        "cd /root && ls",
        "xargs -a ~/x echo",
        "xargs -a /etc/shadow echo",
        "CDPATH=/root cd x && ls",
        "echo ~/.*",
        "ls ~/*",
    ] {
        for mode in [Mode::Auto, Mode::Plan] {
            let came = decided(&[], mode, Level::Fully, "shell", &run(command));
            assert_ne!(came, Verdict::Allow, "{mode:?} {command}");
        }
    }
    for command in ["cat \"$PWD/x\"", "f=a.txt; cat $f", "for f in *.txt; do wc -l \"$f\"; done"] {
        assert_eq!(
            decided(&[], Mode::Auto, Level::Fully, "shell", &run(command)),
            Verdict::Allow,
            "{command}"
        );
    }
}

/// A rule for a program is none for what its options, its variables or another folder make of it.
#[test]
fn a_rule_for_one_program_runs_no_other() {
    let allow = |rule| (Layer::User, rule, Verdict::Allow);
    let rules: Vec<_> = [
        "shell(awk:*)",
        "shell(sed:*)",
        "shell(git:*)",
        "shell(xargs:*)",
        "shell(npm test:*)",
        "shell(gcc:*)",
        "shell(make:*)",
        "shell(./test.sh)",
        "shell(cargo:*)",
        "shell(go:*)",
        "shell(mvn:*)",
        "shell(java:*)",
        "shell(pytest:*)",
        "shell(kubectl get:*)",
        "shell(sort:*)",
        "shell(cd:*)",
        "shell(less:*)",
    ]
    .map(allow)
    .into();
    for command in [
        "awk -f - <<< 'BEGIN{system(\"x\")}'",
        "sed -f - <<< '1e x'",
        "awk -f /dev/stdin <<< 'BEGIN{system(\"x\")}'",
        "git remote-ext origin 'sh -c x'",
        "git merge-index ./x -a",
        "git mergetool",
        "git myalias",
        "npm test --script-shell=./x",
        "npm test --node-options=--require=./x",
        "gcc -B. a.c",
        "gcc -fplugin=./x.so a.c",
        "CC=./x make",
        "make CC=./x",
        "make --eval='x:;./x'",
        "RUSTDOC=./x cargo doc",
        "GOFLAGS=-toolexec=./x go build",
        "JAVA_TOOL_OPTIONS=-javaagent:x java -version",
        "MAVEN_OPTS=-javaagent:x mvn -v",
        "PYTEST_ADDOPTS=-pevil pytest",
        "KUBECONFIG=./x kubectl get pods",
        "AWS_CONFIG_FILE=./x kubectl get pods",
        "DOCKER_HOST=tcp://x kubectl get pods",
        "SOME_VARIABLE_NOBODY_KNOWS=./x make",
        "cd evil && ./test.sh",
        "pushd evil; ./test.sh",
    ] {
        assert_eq!(
            decided(&rules, Mode::Ask, Level::Fully, "shell", &run(command)),
            Verdict::Ask,
            "{command}"
        );
    }
    for command in [
        "./test.sh",
        "npm test",
        "gcc -O2 a.c",
        "make",
        "git commit -m x",
        "awk '{print}' a",
        "RUST_LOG=x cargo test",
    ] {
        let came = decided(&rules, Mode::Ask, Level::Fully, "shell", &run(command));
        assert_eq!(came, Verdict::Allow, "{command}");
    }
    let elsewhere = Action::Run {
        command: "./test.sh".to_owned(),
        folder: "/p/evil".into(),
        network: false,
        credentials: false,
    };
    assert_eq!(decided(&rules, Mode::Ask, Level::Fully, "shell", &elsewhere), Verdict::Ask);
}

/// A deny on pushing or publishing holds for every name of it.
#[test]
fn what_is_denied_has_no_other_name() {
    let deny = |rule| (Layer::User, rule, Verdict::Deny);
    let rules = [deny("shell(git push:*)"), deny("shell(npm publish:*)")];
    for command in [
        "git-push",
        "/usr/lib/git-core/git-push origin",
        "git send-pack x",
        "git http-push x",
        "npm pub",
        "npm publ",
        "npm publish",
        "/usr/bin/npm pub --tag x",
    ] {
        assert_eq!(
            decided(&rules, Mode::Auto, Level::Fully, "shell", &run(command)),
            Verdict::Deny,
            "{command}"
        );
    }
}

/// Where nothing confines commands, a rule for a program is none for the files that it is told to write.
#[test]
fn without_a_sandbox_what_is_not_known_to_only_look_is_asked() {
    let allow = |rule| (Layer::User, rule, Verdict::Allow);
    let rules: Vec<_> = [
        "shell(sort:*)",
        "shell(uniq:*)",
        "shell(git:*)",
        "shell(shuf:*)",
        "shell(gcc:*)",
        "shell(patch:*)",
        "shell(curl:*)",
        "shell(unzip:*)",
        "shell(tar:*)",
        "network",
        "shell(make test)",
        "shell(ls:*)",
    ]
    .map(allow)
    .into();
    for command in [
        "sort -uo/home/me/.bashrc a",
        "uniq a /home/me/.bashrc",
        "git diff --output=/home/me/.bashrc",
        "shuf -o x a",
        "gcc -o .git/hooks/x a.c",
        "patch -o x a b",
        "curl -D /home/me/.bashrc x",
        "unzip -d /home/me x.zip",
        "tar x -f a",
    ] {
        for mode in [Mode::Ask, Mode::AcceptEdits, Mode::Auto] {
            assert_eq!(
                decided(&rules, mode, Level::None, "shell", &run(command)),
                Verdict::Ask,
                "{mode:?} {command}"
            );
        }
    }
    for command in ["make test", "ls src", "git status", "sort a"] {
        assert_eq!(
            decided(&rules, Mode::Auto, Level::None, "shell", &run(command)),
            Verdict::Allow,
            "{command}"
        );
    }
}

/// Where the sandbox can't mask a path, a command that could reach it is asked about; what git has kept of it, always.
#[test]
fn a_denied_path_is_asked_about_where_it_can_not_be_masked() {
    let rules = [
        (Layer::User, "read(./secret.txt)", Verdict::Deny),
        (Layer::User, "write(./keep/**)", Verdict::Deny),
        (Layer::User, "shell", Verdict::Allow),
    ];
    for command in [
        "cat secret*",
        "cat \"$PWD/secret.txt\"",
        "f=secret.txt; cat $f",
        "cp secret.txt x",
        "sed p secret.txt",
        "dd if=secret.txt",
        "tar cf x .",
        "python3 -c 'x'",
        "grep -r x .",
        "grep -r x",
        "rg x",
        "rm -r keep",
        "mv keep z",
        "git rm keep/a",
        "find keep -delete",
        "tar x -C keep",
        "make",
        "head -c9 ./*.txt",
    ] {
        for level in [Level::None, Level::Partly] {
            let came = decided(&rules, Mode::Auto, level, "shell", &run(command));
            assert_ne!(came, Verdict::Allow, "{level:?} {command}");
        }
    }
    for command in [
        "git show HEAD:secret.txt",
        "git log -p",
        "git diff HEAD~1",
        "git cat-file -p x",
        "git archive HEAD",
        "git checkout HEAD~1",
        "git grep x HEAD",
        "git stash show -p",
    ] {
        assert_ne!(
            decided(&rules, Mode::Auto, Level::Fully, "shell", &run(command)),
            Verdict::Allow,
            "{command}"
        );
    }
    for command in
        ["git status", "git log --oneline", "git add a", "git commit -m x", "python3 x.py", "cat a.txt"]
    {
        assert_eq!(
            decided(&rules, Mode::Auto, Level::Fully, "shell", &run(command)),
            Verdict::Allow,
            "{command}"
        );
    }
    assert_eq!(decided(&rules, Mode::Auto, Level::Partly, "shell", &run("cat src/a.rs")), Verdict::Allow);
}

/// What is suggested for a program that runs anything is these very words.
#[test]
fn nobody_is_led_to_allow_an_interpreter() {
    let suggested = |command: &str| -> Vec<String> {
        let (rules, places) = (Rules::default(), places());
        let policy = Policy { rules: &rules, places: &places, mode: Mode::Ask, level: Level::Fully };
        decide("shell", &[run(command)], policy).suggestions.iter().map(ToString::to_string).collect()
    };
    assert_eq!(suggested("python3 build.py"), ["shell(python3 build.py)"]);
    assert_eq!(suggested("bash x"), ["shell(bash x)"]);
    assert_eq!(suggested("docker run alpine"), ["shell(docker run alpine)"]);
    assert_eq!(suggested("aws s3 ls"), ["shell(aws s3 ls)"]);
    assert_eq!(suggested("npm run build"), ["shell(npm run build:*)"]);
    assert_eq!(suggested("cargo test -q"), ["shell(cargo test:*)"]);
}

#[test]
fn looking_is_looking_only() {
    for command in [
        "cargo tree",
        "uniq a b",
        "git remote -v add x y",
        "hostname evil",
        "date 010100002030",
        "RIPGREP_CONFIG_PATH=./rc rg foo",
        "git branch -m x",
    ] {
        let came = decided(&[], Mode::Plan, Level::Fully, "shell", &run(command));
        assert_eq!(came, Verdict::Deny, "{command}");
    }
    for command in ["date --file=/etc/shadow", "grep -f/etc/passwd x", "diff --from-file=/etc/shadow a"] {
        let came = decided(&[], Mode::Auto, Level::Fully, "shell", &run(command));
        assert_eq!(came, Verdict::Ask, "{command}");
    }
}
