use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::home::Home;

/// The public log is made to be attached to bug reports.
#[test]
fn the_public_log_says_nothing_of_anybodys_work() {
    let home = Home::new();
    home.store(1, "my s3cret plan");
    home.write("home/config.toml", "s3cret_key = 's3cret'\n");
    home.run(&["config", "show"]);
    home.run(&["sessions", "show", "s3cret-id"]);
    home.run(&["sessions", "show", "last"]);
    home.run(&["doctor", "--repair"]);
    home.run(&["sessions", "delete", "--yes", "last"]);
    let public = fs::read_to_string(home.path().join("logs/public.log")).unwrap();
    let restricted = fs::read_to_string(home.path().join("logs/restricted.log")).unwrap();
    assert!(!public.contains("s3cret") && !public.contains(home.path().to_str().unwrap()), "{public}");
    assert!(restricted.contains("s3cret_key"), "{restricted}");
    assert_eq!(public.lines().count(), restricted.lines().count());
    assert!(public.contains(r#"command.failed command="config.show" exit=2"#), "{public}");
    for log in ["public.log", "restricted.log"] {
        let mode = fs::metadata(home.path().join("logs").join(log)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{log}");
    }
}

#[test]
fn the_level_is_a_setting() {
    let home = Home::new();
    home.write("home/config.toml", "[log]\nlevel = 'error'\n");
    home.run(&["sessions", "list"]);
    assert!(!home.path().join("logs").exists());
    home.run(&["sessions", "list", "--debug"]);
    assert!(home.path().join("logs/public.log").exists());
}

/// The names are those of OpenTelemetry's conventions for generative AI.
#[test]
fn turns_requests_and_tools_are_spans() {
    let home = Home::new();
    home.write(
        "project/s.toml",
        "[[step]]\ncalls = [{ tool = 'read', input = { path = 's3cret' } }]\n[[step]]\ntext = 'ok'",
    );
    let mut command = home.helve(&["run", "--debug", "--model", "script:s.toml", "a s3cret question"]);
    command.stdin(std::process::Stdio::null());
    assert_eq!(home.run_command(command).code, 0);
    let public = fs::read_to_string(home.path().join("logs/public.log")).unwrap();
    let spans: Vec<&str> = public
        .lines()
        .filter(|line| line.contains(" ms="))
        .filter_map(|line| line.split_whitespace().nth(3))
        .collect();
    assert_eq!(spans, ["chat", "execute_tool", "chat", "invoke_agent"], "{public}");
    assert!(
        public.contains("gen_ai.usage.input_tokens=") && public.contains("error.type=\"error\""),
        "{public}"
    );
    assert!(!public.contains("s3cret"), "{public}");
}

#[test]
fn a_log_does_not_grow_for_ever() {
    let home = Home::new();
    home.write("home/logs/public.log", &"x".repeat(5 << 20));
    home.run(&["sessions", "list"]);
    assert!(fs::metadata(home.path().join("logs/public.log")).unwrap().len() < 1000);
    assert!(home.path().join("logs/public.old.log").exists());
}

#[test]
fn a_log_that_cant_be_written_is_no_reason_to_fail() {
    let home = Home::new();
    home.write("home/logs", "a file where the folder should be");
    assert_eq!(home.run(&["sessions", "list"]).code, 0);
}
