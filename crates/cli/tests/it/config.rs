use std::os::unix::ffi::OsStringExt;
use std::process::Command;

use serde_json::Value;

use crate::home::Home;

#[test]
fn every_mistake_is_told_at_once_with_its_place() {
    let home = Home::new();
    home.write(
        "home/config.toml",
        "modle = 'a/b'\n[limits]\nmax_steps = 'many'\n[ui]\ncolor = 'alwyas'\n[log\nlevel = 'info'\n[permissions]\nmode = 7\n",
    );
    let ran = home.run(&["config", "show"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    insta::assert_snapshot!(ran.err);
}

#[test]
fn every_value_knows_where_it_comes_from() {
    let home = Home::new();
    home.write("home/config.toml", "model = 'a/b'\n[limits]\nmax_steps = 9\nmax_cost = 2.5\n");
    home.write("project/.helve/config.toml", "[limits]\nmax_steps = 8\n");
    home.write("project/.helve/local.toml", "[features]\nparallel_tools = false\n");
    let mut command = home.helve(&["config", "show", "--set", "limits.max_time=30m"]);
    command.env("HELVE_MODEL", "c/d");
    let ran = home.run_command(command);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let set: Vec<&str> = ran.out.lines().filter(|line| !line.ends_with("built-in")).collect();
    insta::assert_snapshot!(set.join("\n"));
}

#[test]
fn one_setting_or_a_section_can_be_asked_for() {
    let home = Home::new();
    assert_eq!(home.run(&["config", "show", "limits.max_steps"]).out, "limits.max_steps  50  built-in\n");
    assert_eq!(home.run(&["config", "show", "limits"]).out.lines().count(), 4);
    let ran = home.run(&["config", "show", "limit"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("there is no setting \"limit\""), "{}", ran.err);
}

#[test]
fn a_secret_is_not_shown_unasked() {
    let home = Home::new();
    home.write(
        "home/config.toml",
        "[providers.x]\nwire = 'chat'\nbase_url = 'http://x'\nheaders = { key = 'tops3cret' }\n",
    );
    for words in [vec!["config", "show"], vec!["config", "show", "--json"]] {
        let ran = home.run(&words);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(!ran.out.contains("tops3cret") && ran.out.contains("(hidden)"), "{}", ran.out);
    }
    assert!(home.run(&["config", "show", "--secrets"]).out.contains("tops3cret"));
}

#[test]
fn a_password_in_an_address_is_not_shown_unasked() {
    let home = Home::new();
    home.write("home/config.toml", "[providers.x]\nbase_url = 'https://user:tops3cret@host/'\n");
    assert!(!home.run(&["config", "show"]).out.contains("tops3cret"));
}

#[test]
fn every_set_counts_wherever_it_stands() {
    let home = Home::new();
    let words =
        ["--set", "limits.max_steps=3", "config", "show", "--set", "model=a/b", "--set=limits.max_time=5m"];
    let ran = home.run(&words);
    for expected in ["--set limits.max_steps", "--set model", "--set limits.max_time"] {
        assert!(ran.out.contains(expected), "{}", ran.out);
    }
}

#[test]
fn quotes_around_a_value_are_not_part_of_it() {
    let home = Home::new();
    for value in ["a/b", "\"a/b\"", "'a/b'"] {
        let shown = home.run(&["config", "show", "model", "--set", &format!("model={value}")]).out;
        assert_eq!(shown, "model  \"a/b\"  --set model\n", "{value}");
    }
}

#[test]
fn a_mistyped_variable_is_told_by_the_doctor() {
    let home = Home::new();
    let mut command = home.helve(&["doctor"]);
    command.env("HELVE_MAXSTEPS", "4");
    assert!(home.run_command(command).out.contains("HELVE_MAXSTEPS means nothing to Helve"));
}

#[test]
fn a_variable_that_is_not_text_is_a_mistake() {
    let home = Home::new();
    let mut command = home.helve(&["config", "show"]);
    command.env("HELVE_PERMISSION_MODE", std::ffi::OsString::from_vec(b"plan\xff".to_vec()));
    let ran = home.run_command(command);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("HELVE_PERMISSION_MODE"), "{}", ran.err);
}

#[test]
fn the_schema_and_the_paths_are_json_on_demand() {
    let home = Home::new();
    let schema: Value = serde_json::from_str(&home.run(&["config", "schema"]).out).unwrap();
    assert!(schema["properties"]["limits"].is_object());
    let paths: Value = serde_json::from_str(&home.run(&["config", "path", "--json"]).out).unwrap();
    assert_eq!(paths[0]["path"], "[HOME]/config.toml");
    let shown: Value = serde_json::from_str(&home.run(&["config", "show", "--json"]).out).unwrap();
    assert!(shown["settings"].as_array().unwrap().iter().any(|entry| entry["key"] == "limits.max_steps"));
}

#[test]
fn mistakes_in_the_settings_do_not_hide_the_sessions() {
    let home = Home::new();
    home.store(1, "hello");
    home.write("home/config.toml", "nonsense = 1\n");
    let ran = home.run(&["sessions", "list"]);
    assert_eq!(ran.code, 0);
    assert!(ran.out.contains("hello"));
    assert_eq!(ran.err, "helve: the settings have 1 mistake; `helve config show` lists them\n");
}

/// The administrator's file has one place, and nothing can point elsewhere; so the test makes that place its own.
#[test]
fn what_the_administrator_set_cant_be_loosened() {
    let home = Home::new();
    let works = Command::new("unshare").args(["-rm", "true"]).status().is_ok_and(|status| status.success());
    if !works || cfg!(target_os = "macos") {
        return helve_testkit::skip("what_the_administrator_set", "mount namespaces can't be made here");
    }
    let rules = "[limits]\nmax_steps = 10\n[permissions]\nmode = 'ask'\n[[permission]]\ntool = 'shell'\npattern = 'rm *'\naction = 'deny'\n";
    home.write("admin.toml", rules);
    home.write("home/config.toml", "[permissions]\nmode = 'bypass'\n");
    let run = |words: &[&str]| {
        let helve = home.helve(words);
        let mut command = Command::new("unshare");
        let admin = home.path().with_file_name("admin.toml");
        let script = "mount -t tmpfs tmpfs /etc && mkdir /etc/helve && cp \"$0\" /etc/helve/config.toml && exec \"$@\"";
        command.args(["-rm", "sh", "-c", script]).arg(admin).arg(helve.get_program()).args(helve.get_args());
        command.current_dir(home.project()).env("HELVE_HOME", home.path()).env("HELVE_MAX_STEPS", "500");
        home.run_command(command)
    };
    let shown = run(&["config", "show", "--set", "limits.max_steps=400"]);
    assert_eq!(shown.code, 0, "{}", shown.err);
    let line =
        |key: &str| shown.out.lines().find(|line| line.starts_with(key)).unwrap_or_default().to_owned();
    assert!(line("limits.max_steps").contains(" 10 "), "{}", shown.out);
    assert!(line("permissions.mode").contains("\"ask\""), "{}", shown.out);
    assert!(line("permission[0]").contains("/etc/helve/config.toml"), "{}", shown.out);
    assert!(run(&["config", "show", "--set", "limits.max_steps=4"]).out.contains("4 "), "lower is fine");

    home.write("admin.toml", "[limits\n");
    let refused = run(&["config", "show"]);
    assert!(refused.code == 2 && refused.err.contains("/etc/helve/config.toml"), "{refused:?}");
}

/// Whoever makes a project names its folder, and a terminal obeys what is in the name.
#[test]
fn a_folder_whose_name_steers_terminals_is_shown_and_not_obeyed() {
    let home = Home::new();
    let name = "x\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}\ny";
    let project = home.project().join(name);
    std::fs::create_dir_all(project.join(".git")).unwrap();
    std::fs::create_dir_all(project.join(".helve")).unwrap();
    let settings = project.join(".helve/config.toml");
    let commands: [&[&str]; 7] = [
        &["config", "show"],
        &["config", "path"],
        &["doctor"],
        &["trust"],
        &["trust", "--list"],
        &["sessions", "list"],
        &["models", "list"],
    ];
    // A mistake, something that needs trust, and both in a value.
    for text in [
        "modle = 'a'\n",
        "[providers.x]\nwire = 'chat'\nbase_url = 'http://x'\n",
        "[limits]\nmax_steps = \"\\u001b[2J\\u009b\\u202e\"\n",
    ] {
        std::fs::write(&settings, text).unwrap();
        for words in commands {
            let mut command = home.helve(words);
            command.current_dir(&project);
            let ran = home.run_command(command);
            let all = ran.out.clone() + &ran.err;
            assert!(!all.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']), "{words:?} {text:?}: {all:?}");
            assert!(!all.contains("\ny"), "{words:?} {text:?}: {all:?}");
        }
    }
}
