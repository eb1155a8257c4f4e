//! The table: mode × what the rules say × level → decision.

use helve_permissions::{
    ConfinementLevel, LayeredRules, PermissionPolicy, PermissionVerdict, ProjectContext, Rule, RuleLayer,
    decide,
};
use helve_protocol::{PermissionMode, ToolAction};

const MODES: [PermissionMode; 5] = [
    PermissionMode::Plan,
    PermissionMode::Ask,
    PermissionMode::AcceptEdits,
    PermissionMode::Auto,
    PermissionMode::Bypass,
];
const LEVELS: [ConfinementLevel; 3] =
    [ConfinementLevel::None, ConfinementLevel::Landlock, ConfinementLevel::Full];

fn places() -> ProjectContext {
    ProjectContext { home: Some("/home/me".into()), ..ProjectContext::of("/p") }
}

fn decided(
    rules: &[(RuleLayer, &str, PermissionVerdict)],
    mode: PermissionMode,
    level: ConfinementLevel,
    tool: &str,
    action: &ToolAction,
) -> PermissionVerdict {
    let mut all = LayeredRules::default();
    for (layer, text, verdict) in rules {
        all.add(*layer, "settings", Rule::parse(text, *verdict).unwrap());
    }
    let places = places();
    decide(tool, std::slice::from_ref(action), PermissionPolicy { rules: &all, places: &places, mode, level })
        .verdict
}

fn run(command: &str) -> ToolAction {
    ToolAction::Run { command: command.to_owned(), folder: "/p".into(), network: false, credentials: false }
}

#[test]
fn every_mode_with_every_verdict_at_every_level() {
    let command = run("make all");
    for mode in MODES {
        for level in LEVELS {
            for verdict in [
                None,
                Some(PermissionVerdict::Allow),
                Some(PermissionVerdict::Ask),
                Some(PermissionVerdict::Deny),
            ] {
                for layer in [RuleLayer::Administrator, RuleLayer::User] {
                    let rule = verdict.map(|verdict| (layer, "shell(make:*)", verdict));
                    let rules: Vec<_> = rule.into_iter().collect();
                    let expected = match (mode, verdict) {
                        (PermissionMode::Bypass, Some(PermissionVerdict::Deny))
                            if layer == RuleLayer::Administrator =>
                        {
                            PermissionVerdict::Deny
                        }
                        (PermissionMode::Bypass, _) => PermissionVerdict::Allow,
                        (_, Some(PermissionVerdict::Deny)) | (PermissionMode::Plan, _) => {
                            PermissionVerdict::Deny
                        }
                        // Where nothing confines it, a rule that does not say all of it is no answer.
                        (_, Some(PermissionVerdict::Allow)) if level == ConfinementLevel::None => {
                            PermissionVerdict::Ask
                        }
                        (_, Some(PermissionVerdict::Allow)) => PermissionVerdict::Allow,
                        (_, Some(PermissionVerdict::Ask)) => PermissionVerdict::Ask,
                        (PermissionMode::Ask, None) => PermissionVerdict::Ask,
                        (PermissionMode::Auto, None) if level == ConfinementLevel::None => {
                            PermissionVerdict::Ask
                        }
                        // Where less confines it, more is asked.
                        (PermissionMode::AcceptEdits, None) if level < ConfinementLevel::Full => {
                            PermissionVerdict::Ask
                        }
                        (PermissionMode::AcceptEdits | PermissionMode::Auto, None) => {
                            PermissionVerdict::Allow
                        }
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
    let read = |path: &str| ToolAction::Read(path.into());
    let write = |path: &str| ToolAction::Write(path.into());
    let (allow, ask, deny) = (PermissionVerdict::Allow, PermissionVerdict::Ask, PermissionVerdict::Deny);
    for (mode, tool, action, expected) in [
        (PermissionMode::Ask, "read", read("/p/src/a.rs"), allow),
        (PermissionMode::Plan, "read", read("/p/src/a.rs"), allow),
        (PermissionMode::Ask, "read", read("/etc/passwd"), ask),
        (PermissionMode::Auto, "read", read("/p/.env"), ask),
        (PermissionMode::Auto, "read", read("/p/.env.example"), allow),
        (PermissionMode::Auto, "read", read("/home/me/.ssh/id_rsa"), ask),
        (PermissionMode::Ask, "edit", write("/p/src/a.rs"), ask),
        (PermissionMode::AcceptEdits, "edit", write("/p/src/a.rs"), allow),
        (PermissionMode::Auto, "write", write("/p/src/a.rs"), allow),
        (PermissionMode::Auto, "write", write("/p/.git/hooks/pre-commit"), ask),
        (PermissionMode::Auto, "write", write("/p/.helve/config.toml"), ask),
        (PermissionMode::Auto, "write", write("/etc/x"), ask),
        (PermissionMode::Plan, "write", write("/p/src/a.rs"), deny),
        (PermissionMode::Bypass, "write", write("/etc/x"), allow),
    ] {
        assert_eq!(
            decided(&[], mode, ConfinementLevel::Full, tool, &action),
            expected,
            "{mode:?} {tool} {action:?}"
        );
    }
    // What decides about rules is asked even if a rule allows it.
    let free = [(RuleLayer::User, "write", allow)];
    assert_eq!(
        decided(&free, PermissionMode::Auto, ConfinementLevel::Full, "write", &write("/p/.git/hooks/x")),
        ask
    );
    assert_eq!(decided(&free, PermissionMode::Ask, ConfinementLevel::Full, "write", &write("/p/a")), allow);
}

#[test]
fn a_rule_for_one_command_is_none_for_its_neighbour() {
    let rules = [
        (RuleLayer::User, "Bash(npm run test:*)", PermissionVerdict::Allow),
        (RuleLayer::User, "Bash(git:*)", PermissionVerdict::Allow),
    ];
    for (command, expected) in [
        ("npm run test", PermissionVerdict::Allow),
        ("npm run test -- -u && git add .", PermissionVerdict::Allow),
        ("npm run test; rm -rf x", PermissionVerdict::Ask),
        ("npm run test $(rm x)", PermissionVerdict::Ask),
        ("npm run test > /etc/x", PermissionVerdict::Ask),
        ("npm run test | sh", PermissionVerdict::Ask),
        ("npm run tests", PermissionVerdict::Ask),
        ("git commit -m \"$(echo now)\"", PermissionVerdict::Allow),
        ("git commit -m \"$(date)\"", PermissionVerdict::Ask),
        ("git -c core.pager=./x log", PermissionVerdict::Ask),
    ] {
        assert_eq!(
            decided(&rules, PermissionMode::Ask, ConfinementLevel::Full, "shell", &run(command)),
            expected,
            "{command}"
        );
    }
}

#[test]
fn variables_by_which_programs_run_others_are_asked_about() {
    let allow = |rule| (RuleLayer::User, rule, PermissionVerdict::Allow);
    let rules = [allow("Bash(git:*)"), allow("Bash(make:*)"), allow("Bash(tar:*)"), allow("Bash(cargo:*)")];
    for (command, expected) in [
        ("CARGO_TARGET_DIR=x cargo build", PermissionVerdict::Allow),
        ("V=1 make", PermissionVerdict::Allow),
        ("GIT_SSH_COMMAND=./x git fetch", PermissionVerdict::Ask),
        ("HOME=. git status", PermissionVerdict::Ask),
        ("MAKEFLAGS=--eval=x make", PermissionVerdict::Ask),
        ("env TAR_OPTIONS=-I./x tar cf a b", PermissionVerdict::Ask),
        ("export RUSTC_WRAPPER=./x; cargo build", PermissionVerdict::Ask),
        ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=./x cargo test", PermissionVerdict::Ask),
    ] {
        assert_eq!(
            decided(&rules, PermissionMode::Ask, ConfinementLevel::Full, "shell", &run(command)),
            expected,
            "{command}"
        );
    }
}

#[test]
fn what_is_suggested_would_have_been_enough() {
    let places = places();
    for (tool, action) in [
        ("shell", run("npm run build")),
        ("shell", run("make")),
        ("write", ToolAction::Write("/p/src/a.rs".into())),
        ("read", ToolAction::Read("/etc/hosts".into())),
        ("web_fetch", ToolAction::Fetch("https://docs.rs/x".to_owned())),
    ] {
        let rules = LayeredRules::default();
        let policy = PermissionPolicy {
            rules: &rules,
            places: &places,
            mode: PermissionMode::Ask,
            level: ConfinementLevel::Full,
        };
        let decision = decide(tool, std::slice::from_ref(&action), policy);
        assert_eq!(decision.verdict, PermissionVerdict::Ask, "{action:?}");
        let mut rules = LayeredRules::default();
        for rule in decision.suggestions {
            // As it is written down and read again.
            rules.add(
                RuleLayer::Session,
                "asked",
                Rule::parse(&rule.to_string(), PermissionVerdict::Allow).unwrap(),
            );
        }
        assert_eq!(
            decide(tool, std::slice::from_ref(&action), PermissionPolicy { rules: &rules, ..policy }).verdict,
            PermissionVerdict::Allow,
            "{action:?}"
        );
    }
}

/// What is suggested covers what was shown, and not more.
#[test]
fn suggestions_are_small() {
    let suggested = |tool: &str, action: ToolAction, mode: PermissionMode| -> Vec<String> {
        let (rules, places) = (LayeredRules::default(), places());
        let policy = PermissionPolicy { rules: &rules, places: &places, mode, level: ConfinementLevel::Full };
        decide(tool, &[action], policy).suggestions.iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        suggested("write", ToolAction::Write("/p/a.txt".into()), PermissionMode::Ask),
        ["write(./a.txt)"]
    );
    assert_eq!(
        suggested("write", ToolAction::Write("/p/src/a.rs".into()), PermissionMode::Ask),
        ["write(./src/**)"]
    );
    assert_eq!(
        suggested("write", ToolAction::Write("/home/me/x".into()), PermissionMode::Ask),
        ["write(//home/me/x)"]
    );
    assert_eq!(
        suggested("read", ToolAction::Read("/home/me".into()), PermissionMode::Ask),
        ["read(//home/me)"]
    );
    assert_eq!(suggested("read", ToolAction::Read("/p/**/.env".into()), PermissionMode::Ask), [""; 0]);
    assert_eq!(suggested("shell", run("git -C . commit"), PermissionMode::Ask), [""; 0]);
    assert_eq!(suggested("shell", run("git commit -m x"), PermissionMode::Ask), ["shell(git commit:*)"]);
    assert_eq!(suggested("shell", run("curl x"), PermissionMode::Auto), ["network"]);
}

#[test]
fn a_folder_that_may_be_read_shows_no_secrets() {
    let read = |rule: &str, path: &str| {
        decided(
            &[(RuleLayer::Session, rule, PermissionVerdict::Allow)],
            PermissionMode::Auto,
            ConfinementLevel::Full,
            "read",
            &ToolAction::Read(path.into()),
        )
    };
    assert_eq!(read("read(//home/me)", "/home/me/notes"), PermissionVerdict::Allow);
    assert_eq!(read("read(//home/me/**)", "/home/me/.ssh/id_rsa"), PermissionVerdict::Ask);
    assert_eq!(read("read", "/p/.env"), PermissionVerdict::Ask);
    assert_eq!(read("read(./.env)", "/p/.env"), PermissionVerdict::Allow);
    assert_eq!(read("read(*.pem)", "/p/a.pem"), PermissionVerdict::Allow);
}

#[test]
fn nobody_gets_around_a_deny_by_another_name() {
    let deny = [
        (RuleLayer::User, "shell(rm:*)", PermissionVerdict::Deny),
        (RuleLayer::User, "shell(git push:*)", PermissionVerdict::Deny),
    ];
    for command in
        ["rm x", "/bin/rm x", "./rm x", "git push", "git -C . push", "/usr/bin/git --no-pager push -f"]
    {
        assert_eq!(
            decided(&deny, PermissionMode::Auto, ConfinementLevel::Full, "shell", &run(command)),
            PermissionVerdict::Deny,
            "{command}"
        );
    }
    let allow = [(RuleLayer::User, "shell(make:*)", PermissionVerdict::Allow)];
    assert_eq!(
        decided(&allow, PermissionMode::Ask, ConfinementLevel::Full, "shell", &run("./make")),
        PermissionVerdict::Ask
    );
}

/// That the network may be used says nothing about keys.
#[test]
fn credentials_are_asked_for_by_name_and_go_with_one_plain_command() {
    let decided = |command: &str, wanted: bool, allowed: &[&str]| {
        let mut rules = LayeredRules::default();
        for rule in ["network"].iter().chain(allowed) {
            rules.add(RuleLayer::Session, "asked", Rule::parse(rule, PermissionVerdict::Allow).unwrap());
        }
        let places = ProjectContext { credentials: vec!["git", "npm", "ssh"], ..places() };
        let policy = PermissionPolicy {
            rules: &rules,
            places: &places,
            mode: PermissionMode::Auto,
            level: ConfinementLevel::Full,
        };
        let (command, folder) = (command.to_owned(), "/p".into());
        let action = ToolAction::Run { command, folder, network: false, credentials: wanted };
        let decision = decide("shell", &[action], policy);
        (decision.verdict, decision.needs.credentials, decision.needs.alone.is_some())
    };
    let git = || Some("git".to_owned());
    let (allow, ask, deny) = (PermissionVerdict::Allow, PermissionVerdict::Ask, PermissionVerdict::Deny);
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
        "git --git-dir=x fetch origin",
        "git --git-dir x fetch origin",
        "git --work-tree=x fetch",
        "git -c a.b=c fetch",
        "git fetch --upl=./x .",
        "git push ./nested main",
        "git fetch file:///srv/x",
        "git submodule foreach ./x",
        "git clone -u ./x https://example.com/a",
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

/// A folder where commands write whatever they like has settings of its own.
#[test]
fn credentials_are_given_in_the_project_only() {
    let mut rules = LayeredRules::default();
    for rule in ["network", "credentials(git)", "credentials(npm)", "credentials(cargo)"] {
        rules.add(RuleLayer::Session, "asked", Rule::parse(rule, PermissionVerdict::Allow).unwrap());
    }
    let places = ProjectContext { credentials: vec!["git", "npm", "cargo"], ..places() };
    let (mode, level) = (PermissionMode::Auto, ConfinementLevel::Full);
    let policy = PermissionPolicy { rules: &rules, places: &places, mode, level };
    for command in ["git fetch origin", "npm ci --ignore-scripts", "cargo fetch"] {
        for (folder, is_given) in
            [("/p", true), ("/p/sub", true), ("/tmp/x", false), ("/pp", false), ("/", false)]
        {
            for credentials in [true, false] {
                let (command, folder) = (command.to_owned(), folder.into());
                let action = ToolAction::Run { command, folder, network: false, credentials };
                let given = decide("shell", std::slice::from_ref(&action), policy).needs.credentials;
                assert_eq!(given.is_some(), is_given, "{action:?}");
            }
        }
    }
}

/// Only one program leaves the sandbox, and nothing with it.
#[test]
fn nothing_leaves_the_sandbox_in_the_company_of_another() {
    let allow = |rule| (RuleLayer::User, rule, PermissionVerdict::Allow);
    let rules = [
        allow("shell(systemctl status:*)"),
        allow("shell(docker ps:*)"),
        allow("shell(apt list:*)"),
        allow("shell(python3:*)"),
        allow("shell(sudo:*)"),
    ];
    let mut all = LayeredRules::default();
    for (layer, text, verdict) in rules {
        all.add(layer, "settings", Rule::parse(text, verdict).unwrap());
    }
    let places = places();
    let policy = PermissionPolicy {
        rules: &all,
        places: &places,
        mode: PermissionMode::Auto,
        level: ConfinementLevel::Full,
    };
    let decided = |command: &str| {
        let decision = decide("shell", &[run(command)], policy);
        (decision.verdict, decision.needs.unconfined)
    };
    for command in ["systemctl status", "docker ps -a", "apt list"] {
        assert_eq!(decided(command), (PermissionVerdict::Allow, true), "{command}");
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
        assert_eq!(decided(command), (PermissionVerdict::Ask, false), "{command}");
    }
}

/// What leaves the sandbox is one plain command, found by its name and run without a shell; a yes beforehand does not let it out.
#[test]
fn leaving_the_sandbox_takes_a_rule_or_a_person() {
    let (rules, places) = (LayeredRules::default(), places());
    for level in [ConfinementLevel::Landlock, ConfinementLevel::Full] {
        for mode in [PermissionMode::Ask, PermissionMode::AcceptEdits, PermissionMode::Auto] {
            let policy = PermissionPolicy { rules: &rules, places: &places, mode, level };
            for command in [
                "unshare sh evil.sh",
                "unshare -r sh evil.sh",
                "chroot / sh evil.sh",
                "su -c 'sh evil.sh'",
                "runuser -u root -- sh evil.sh",
                "sudo sh evil.sh",
                "doas sh evil.sh",
                "nsenter -t 1 sh evil.sh",
                "setpriv --reuid 0 sh evil.sh",
                "systemd-run sh evil.sh",
                "docker run -v /:/host alpine",
                "docker ps",
                "crontab -l",
                "apt install x",
                "systemctl status",
                "ssh host uptime",
            ] {
                let decision = decide("shell", &[run(command)], policy);
                let needs = &decision.needs;
                assert_eq!(decision.verdict, PermissionVerdict::Ask, "{command}");
                assert!(decision.is_grave || !needs.unconfined, "{command} {mode:?} {level:?}");
                assert_eq!(
                    needs.unconfined,
                    needs.alone.is_some() && needs.credentials.is_none(),
                    "{command}"
                );
            }
        }
    }
    let mut rules = LayeredRules::default();
    for rule in ["shell(docker:*)", "shell(systemctl status:*)"] {
        rules.add(RuleLayer::User, "settings", Rule::parse(rule, PermissionVerdict::Allow).unwrap());
    }
    let (mode, level) = (PermissionMode::Auto, ConfinementLevel::Full);
    let policy = PermissionPolicy { rules: &rules, places: &places, mode, level };
    let decided = |command: &str| {
        let decision = decide("shell", &[run(command)], policy);
        (decision.verdict, decision.needs.unconfined, decision.needs.alone)
    };
    let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    let format = "docker ps --format '{{.Names}} *'";
    assert_eq!(
        decided(format),
        (PermissionVerdict::Allow, true, words(&["docker", "ps", "--format", "{{.Names}} *"]))
    );
    assert_eq!(
        decided("systemctl status"),
        (PermissionVerdict::Allow, true, words(&["systemctl", "status"]))
    );
    for command in [
        "docker ps > out",
        "docker ps 2>&1",
        "docker run -v $PWD:/x y",
        "docker run -v \"$PWD:/x\" y",
        "docker ps &",
        "docker ps | cat",
        "(docker ps)",
        "./docker ps",
        "/p/bin/docker ps",
        "command docker ps",
        "exec docker ps",
        "PATH=. docker ps",
        "docker ps *",
    ] {
        let (_, is_out, alone) = decided(command);
        assert!(!is_out && alone.is_none(), "{command}");
    }
}

/// Who says yes to everything beforehand means the work: not what decides, not the keys.
#[test]
fn a_yes_beforehand_does_not_reach_what_decides() {
    let places = ProjectContext { own: vec!["/home/me/.config/helve".into()], ..places() };
    let (rules, level) = (LayeredRules::default(), ConfinementLevel::Full);
    let grave = |mode: PermissionMode, tool: &str, action: ToolAction| {
        let decision =
            decide(tool, &[action], PermissionPolicy { rules: &rules, places: &places, mode, level });
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
        assert_eq!(
            grave(PermissionMode::Auto, "write", ToolAction::Write(path.into())),
            (PermissionVerdict::Ask, true),
            "{path}"
        );
        let command = format!("echo x > {path}");
        assert_eq!(
            grave(PermissionMode::Auto, "shell", run(&command)),
            (PermissionVerdict::Ask, true),
            "{command}"
        );
    }
    for path in ["/home/me/notes.txt", "/srv/data/x"] {
        assert_eq!(
            grave(PermissionMode::Auto, "write", ToolAction::Write(path.into())),
            (PermissionVerdict::Ask, false),
            "{path}"
        );
    }
    assert_eq!(
        grave(PermissionMode::Auto, "read", ToolAction::Read("/home/me/.ssh/id_rsa".into())),
        (PermissionVerdict::Ask, true)
    );
    let own = || ToolAction::Write("/home/me/.config/helve/config.toml".into());
    assert_eq!(grave(PermissionMode::Bypass, "write", own()), (PermissionVerdict::Ask, true));
    assert_eq!(
        grave(PermissionMode::Bypass, "shell", run("echo x >> ~/.config/helve/config.toml")),
        (PermissionVerdict::Ask, true)
    );
    assert_eq!(
        grave(PermissionMode::Bypass, "write", ToolAction::Write("/home/me/.bashrc".into())),
        (PermissionVerdict::Allow, false)
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
        let came = decided(&[], PermissionMode::Plan, ConfinementLevel::Full, "shell", &run(command));
        assert_ne!(came, PermissionVerdict::Allow, "{command}");
    }
    for command in
        ["timeout 5 ls", "git status", "git log -3 | head", "cd src && ls", "nice ls", "env LANG=C ls"]
    {
        let came = decided(&[], PermissionMode::Plan, ConfinementLevel::Full, "shell", &run(command));
        assert_eq!(came, PermissionVerdict::Allow, "{command}");
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
        for mode in [PermissionMode::Auto, PermissionMode::Plan] {
            let came = decided(&[], mode, ConfinementLevel::Full, "shell", &run(command));
            assert_ne!(came, PermissionVerdict::Allow, "{mode:?} {command}");
        }
    }
    for command in ["cat \"$PWD/x\"", "f=a.txt; cat $f", "for f in *.txt; do wc -l \"$f\"; done"] {
        assert_eq!(
            decided(&[], PermissionMode::Auto, ConfinementLevel::Full, "shell", &run(command)),
            PermissionVerdict::Allow,
            "{command}"
        );
    }
}

/// A rule for a program is none for what its options, its variables or another folder make of it.
#[test]
fn a_rule_for_one_program_runs_no_other() {
    let allow = |rule| (RuleLayer::User, rule, PermissionVerdict::Allow);
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
            decided(&rules, PermissionMode::Ask, ConfinementLevel::Full, "shell", &run(command)),
            PermissionVerdict::Ask,
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
        let came = decided(&rules, PermissionMode::Ask, ConfinementLevel::Full, "shell", &run(command));
        assert_eq!(came, PermissionVerdict::Allow, "{command}");
    }
    let elsewhere = ToolAction::Run {
        command: "./test.sh".to_owned(),
        folder: "/p/evil".into(),
        network: false,
        credentials: false,
    };
    assert_eq!(
        decided(&rules, PermissionMode::Ask, ConfinementLevel::Full, "shell", &elsewhere),
        PermissionVerdict::Ask
    );
}

/// A deny on pushing or publishing holds for every name of it.
#[test]
fn what_is_denied_has_no_other_name() {
    let deny = |rule| (RuleLayer::User, rule, PermissionVerdict::Deny);
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
            decided(&rules, PermissionMode::Auto, ConfinementLevel::Full, "shell", &run(command)),
            PermissionVerdict::Deny,
            "{command}"
        );
    }
}

/// Where nothing confines commands, a rule for a program is none for the files that it is told to write.
#[test]
fn without_a_sandbox_what_is_not_known_to_only_look_is_asked() {
    let allow = |rule| (RuleLayer::User, rule, PermissionVerdict::Allow);
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
        for mode in [PermissionMode::Ask, PermissionMode::AcceptEdits, PermissionMode::Auto] {
            assert_eq!(
                decided(&rules, mode, ConfinementLevel::None, "shell", &run(command)),
                PermissionVerdict::Ask,
                "{mode:?} {command}"
            );
        }
    }
    for command in ["make test", "ls src", "git status", "sort a"] {
        assert_eq!(
            decided(&rules, PermissionMode::Auto, ConfinementLevel::None, "shell", &run(command)),
            PermissionVerdict::Allow,
            "{command}"
        );
    }
}

/// Where the sandbox can't mask a path, a command that could reach it is asked about; what git has kept of it, always.
#[test]
fn a_denied_path_is_asked_about_where_it_can_not_be_masked() {
    let rules = [
        (RuleLayer::User, "read(./secret.txt)", PermissionVerdict::Deny),
        (RuleLayer::User, "write(./keep/**)", PermissionVerdict::Deny),
        (RuleLayer::User, "shell", PermissionVerdict::Allow),
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
        for level in [ConfinementLevel::None, ConfinementLevel::Landlock] {
            let came = decided(&rules, PermissionMode::Auto, level, "shell", &run(command));
            assert_ne!(came, PermissionVerdict::Allow, "{level:?} {command}");
        }
    }
    for command in [
        "git show HEAD:secret.txt",
        "git log -p",
        "git log --dd",
        "git log --diff-m=on",
        "git --no-pager log -1 --cc",
        "git log -n1 --patc",
        "git reflog --dd",
        "git log -3p",
        "git diff HEAD~1",
        "git cat-file -p x",
        "git archive HEAD",
        "git checkout HEAD~1",
        "git grep x HEAD",
        "git stash show -p",
    ] {
        assert_ne!(
            decided(&rules, PermissionMode::Auto, ConfinementLevel::Full, "shell", &run(command)),
            PermissionVerdict::Allow,
            "{command}"
        );
    }
    for command in [
        "git status",
        "git log --oneline",
        "git log -5 --stat --format=%h -- src",
        "git log -n 3 --since=yesterday --author=me main..HEAD",
        "git reflog -5",
        "git add a",
        "git commit -m x",
        "python3 x.py",
        "cat a.txt",
    ] {
        assert_eq!(
            decided(&rules, PermissionMode::Auto, ConfinementLevel::Full, "shell", &run(command)),
            PermissionVerdict::Allow,
            "{command}"
        );
    }
    assert_eq!(
        decided(&rules, PermissionMode::Auto, ConfinementLevel::Landlock, "shell", &run("cat src/a.rs")),
        PermissionVerdict::Allow
    );
}

/// What is suggested for a program that runs anything is these very words.
#[test]
fn nobody_is_led_to_allow_an_interpreter() {
    let suggested = |command: &str| -> Vec<String> {
        let (rules, places) = (LayeredRules::default(), places());
        let policy = PermissionPolicy {
            rules: &rules,
            places: &places,
            mode: PermissionMode::Ask,
            level: ConfinementLevel::Full,
        };
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
        let came = decided(&[], PermissionMode::Plan, ConfinementLevel::Full, "shell", &run(command));
        assert_eq!(came, PermissionVerdict::Deny, "{command}");
    }
    for command in ["date --file=/etc/shadow", "grep -f/etc/passwd x", "diff --from-file=/etc/shadow a"] {
        let came = decided(&[], PermissionMode::Auto, ConfinementLevel::Full, "shell", &run(command));
        assert_eq!(came, PermissionVerdict::Ask, "{command}");
    }
}

/// What a file tool reads by a yes beforehand is what commands see: not the home folder, and nothing of this program's own.
#[test]
fn a_yes_beforehand_does_not_open_the_home_folder() {
    let places = ProjectContext {
        own: vec!["/home/me/.config/helve".into(), "/var/helve".into()],
        shown: vec!["/home/me/.cargo/registry".into(), "/home/me/.rustup".into()],
        ..places()
    };
    let decided = |rules: &LayeredRules, tool: &str, path: &str| {
        let (mode, level) = (PermissionMode::Auto, ConfinementLevel::Full);
        let policy = PermissionPolicy { rules, places: &places, mode, level };
        let decision = decide(tool, &[ToolAction::Read(path.into())], policy);
        (decision.verdict, decision.is_grave)
    };
    let none = LayeredRules::default();
    for path in [
        "/home/me/.config/helve/keys.toml",
        "/home/me/.config/helve",
        "/var/helve/sessions/x/log.jsonl",
        "/home/me/.bash_history",
        "/home/me/.cargo/credentials.toml",
        "/home/me/.pgpass",
        "/home/me/.local/share/keyrings/login.keyring",
        "/home/me/Documents/taxes.txt",
        "/home/me/.mozilla",
        "/home/me",
        "/home",
        "/",
        "/etc/shadow",
    ] {
        for tool in ["read", "list", "glob", "grep"] {
            assert_eq!(decided(&none, tool, path), (PermissionVerdict::Ask, true), "{tool} {path}");
        }
    }
    for path in [
        "/home/me/.cargo/registry/src/x/lib.rs",
        "/home/me/.rustup/toolchains",
        "/usr/include/stdio.h",
        "/srv/x",
    ] {
        assert_eq!(decided(&none, "read", path), (PermissionVerdict::Ask, false), "{path}");
    }
    // A rule opens what it names, and one for everything does not open the home folder.
    let with = |rule: &str| {
        let mut rules = LayeredRules::default();
        rules.add(RuleLayer::User, "settings", Rule::parse(rule, PermissionVerdict::Allow).unwrap());
        rules
    };
    let allowed = |rule: &str, path: &str| decided(&with(rule), "read", path).0 == PermissionVerdict::Allow;
    assert!(allowed("read(~/Documents/**)", "/home/me/Documents/taxes.txt"));
    assert!(allowed("read(//home/me/Documents/taxes.txt)", "/home/me/Documents/taxes.txt"));
    for rule in ["read", "read(*)", "read(//home/**)", "read(//**)", "read(.bash_history)"] {
        assert!(!allowed(rule, "/home/me/.bash_history"), "{rule}");
    }
    assert!(
        allowed("read(~/**)", "/home/me/Documents/x")
            && !allowed("read(~/**)", "/home/me/.config/helve/keys.toml")
    );
    assert!(allowed("read", "/srv/x"));
}

/// `cd` and back is no way out of the project.
#[test]
fn going_back_stays_in_the_project() {
    let verdict = |command: &str, folder: &str, level| {
        let (command, folder) = (command.to_owned(), folder.into());
        let action = ToolAction::Run { command, folder, network: false, credentials: false };
        decided(&[], PermissionMode::AcceptEdits, level, "shell", &action)
    };
    for (command, folder) in [
        ("cd ..", "/p/crate"),
        ("cd ../other && ls", "/p/crate"),
        ("cd .. && cat src/a.rs", "/p/crate"),
        ("cd crate && ls && cd ..", "/p"),
        ("cd a && cd b && cd ../.. && ls", "/p"),
        ("pushd .. && ls", "/p/crate"),
    ] {
        assert_eq!(verdict(command, folder, ConfinementLevel::Full), PermissionVerdict::Allow, "{command}");
    }
    for (command, folder) in [
        ("cd ..", "/p"),
        ("cd ../..", "/p/crate"),
        ("cd a && cd ../..", "/p"),
        ("cd .. && cat ../x", "/p/crate"),
    ] {
        assert_eq!(verdict(command, folder, ConfinementLevel::Full), PermissionVerdict::Ask, "{command}");
    }
    // Where less confines commands, a `cd` that fails must not lead out.
    assert_eq!(verdict("cd a; cd ..; ls", "/p", ConfinementLevel::Landlock), PermissionVerdict::Ask);
}

/// Ordinary looking around is not asked about where the sandbox shows it anyway.
#[test]
fn what_every_confined_program_sees_is_looked_at_unasked() {
    for mode in [PermissionMode::AcceptEdits, PermissionMode::Auto] {
        for command in [
            "cat /etc/os-release",
            "head -5 /usr/include/stdio.h",
            "ls /usr/lib",
            "grep -rn id_rsa .",
            "grep -rn 'use .env and server.key' src",
            "printf 'see id_rsa, .env and\\nserver.pem' > notes.txt",
            "echo .env >> .gitignore",
            "git config user.name",
            "git log --grep=id_rsa",
            "find . -name '*.pem'",
            "npm install --offline",
            "npm ci --offline",
            "pip install --no-index --find-links wheels x",
            "cargo update --offline",
            "git clone . copy",
        ] {
            let came = decided(&[], mode, ConfinementLevel::Full, "shell", &run(command));
            assert_eq!(came, PermissionVerdict::Allow, "{command}");
        }
        for command in [
            "cat /etc/shadow",
            "cat /etc/ssl/private/x",
            "cat /home/me/notes",
            "cat /srv/x",
            "grep x .env",
            "grep -f .env a",
            "cat ~/.bash_history",
            "git config user.name me",
        ] {
            let came = decided(&[], mode, ConfinementLevel::Full, "shell", &run(command));
            assert_eq!(came, PermissionVerdict::Ask, "{command}");
        }
    }
    let came = decided(
        &[],
        PermissionMode::Auto,
        ConfinementLevel::Full,
        "read",
        &ToolAction::Read("/etc/os-release".into()),
    );
    assert_eq!(came, PermissionVerdict::Ask);
}

fn suggestions(command: &str) -> Vec<String> {
    let (rules, places) = (LayeredRules::default(), places());
    let (mode, level) = (PermissionMode::Ask, ConfinementLevel::Full);
    let policy = PermissionPolicy { rules: &rules, places: &places, mode, level };
    decide("shell", &[run(command)], policy).suggestions.iter().map(ToString::to_string).collect()
}

/// What runs whatever it is told is suggested word for word, whatever it is called.
#[test]
fn suggested_rules_are_no_wider_than_what_was_meant() {
    for command in [
        "nodejs x.js",
        "node18 x.js",
        "pypy3 x.py",
        "python3.12 x.py",
        "php8.2 x.php",
        "ruby3.1 x.rb",
        "lua5.4 x.lua",
        "perl5.36.0 x.pl",
        "tclsh8.6 x.tcl",
        "pwsh x.ps1",
        "ipython x.py",
        "ash x.sh",
        "busybox sh x.sh",
        "gpg -d x",
        "openssl enc -d x",
        "uv run python x.py",
        "poetry run python x.py",
        "pdm run python3.11 x.py",
        "conda run python x.py",
        "bundle exec ruby x.rb",
        "mise exec node x.js",
        "mise x node18 x.js",
        "pipenv run bash x.sh",
        "npm exec node x.js",
        "/usr/bin/python3.12 x.py",
        "git push origin main",
    ] {
        let rules = suggestions(command);
        assert!(rules.iter().all(|rule| !rule.ends_with(":*)")), "{command}: {rules:?}");
    }
    assert_eq!(suggestions("npm run test"), ["shell(npm run test:*)"]);
    assert_eq!(suggestions("make all"), ["shell(make all:*)"]);
    assert_eq!(suggestions("uv run pytest"), ["shell(uv run pytest:*)"]);
    // The file that is meant, not one in a folder that is none.
    assert_eq!(suggestions("cp .env.example .env"), ["shell(cp:*)", "write(./.env)"]);
    // A text is no path.
    let long = format!("printf '{} id_rsa' > notes.txt", "word ".repeat(200));
    assert!(suggestions(&long).iter().all(|rule| rule.len() < 200), "{:?}", suggestions(&long));
}
