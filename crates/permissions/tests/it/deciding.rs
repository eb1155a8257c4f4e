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
    Action::Run { command: command.to_owned(), folder: "/p".into(), network: false }
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

#[test]
fn keys_go_with_one_program_only_unless_somebody_says_yes() {
    let mut rules = Rules::default();
    rules.add(Layer::Session, "asked", Rule::parse("network", Verdict::Allow).unwrap());
    let places = places();
    let policy = Policy { rules: &rules, places: &places, mode: Mode::Auto, level: Level::Fully };
    let needs = |command: &str| {
        let decision = decide("shell", &[run(command)], policy);
        (decision.verdict, decision.needs.reads.contains(&"/home/me/.ssh".into()))
    };
    assert_eq!(needs("git fetch"), (Verdict::Allow, true));
    assert_eq!(needs("git fetch; python3 x.py"), (Verdict::Allow, false));
    assert_eq!(needs("./git fetch"), (Verdict::Allow, false));
    assert_eq!(needs("git add . && git push"), (Verdict::Ask, true));
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
