use std::fs;

use serde_json::Value;

use crate::home::Home;

fn about<'a>(report: &'a str, name: &str) -> &'a str {
    report.lines().find(|line| line.split_whitespace().nth(1) == Some(name)).unwrap_or_default()
}

#[test]
fn a_healthy_machine_is_called_healthy() {
    let home = Home::new();
    home.store(1, "hello");
    let doctor = |words: &[&str]| {
        let mut command = home.helve(words);
        command.env("OPENAI_API_KEY", "sk-test-0123456789");
        home.run_command(command)
    };
    let ran = doctor(&["doctor"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    assert!(about(&ran.out, "model").contains("openai/gpt-5.5"), "{}", ran.out);
    assert!(
        about(&ran.out, "sessions").contains("1 session, every event and payload checked"),
        "{}",
        ran.out
    );
    assert!(about(&ran.out, "logs").contains("[HOME]/logs"));
    assert!(about(&ran.out, "telemetry").contains("none"));
    let json: Value = serde_json::from_str(&doctor(&["doctor", "--json"]).out).unwrap();
    assert!(json.as_array().unwrap().iter().all(|check| check["verdict"] == "good"), "{json:#}");
}

#[test]
fn what_is_withheld_is_told_whatever_the_settings_say() {
    let home = Home::new();
    let doctor = || {
        let mut command = home.helve(&["doctor"]);
        command.env("DEPLOY_TOKEN", "hunter2").env("HARMLESS", "x");
        home.run_command(command).out
    };
    for settings in ["", "[permissions]\nmode = 3\n", "not = [toml"] {
        home.write("project/.helve/config.toml", settings);
        let report = doctor();
        assert!(about(&report, "withheld").contains("DEPLOY_TOKEN"), "{settings:?}: {report}");
        assert!(!report.contains("hunter2") && !report.contains("none of this environment"), "{report}");
    }
}

#[test]
fn damage_is_found_and_mended_and_nothing_is_thrown_away() {
    let home = Home::new();
    home.store(1, "first");
    home.store(2, "second");
    let healthy = fs::read(home.log_of(2)).unwrap();
    let mut bytes = fs::read(home.log_of(1)).unwrap();
    let at = bytes.len() * 3 / 4;
    bytes[at] ^= 4;
    fs::write(home.log_of(1), &bytes).unwrap();
    fs::write(home.path().join("catalogue.db"), "rubbish").unwrap();

    let sick = home.run(&["doctor"]);
    assert_eq!(sick.code, 1);
    assert!(about(&sick.out, "catalogue").starts_with('·'), "{}", sick.out);
    assert!(sick.out.contains("a line that was changed after it was written"), "{}", sick.out);

    let mended = home.run(&["doctor", "--repair"]);
    assert_eq!(mended.code, 0, "{}", mended.out);
    assert!(mended.out.contains("catalogue made anew from 2 sessions"), "{}", mended.out);
    assert_eq!(fs::read(home.log_of(1).with_file_name("log.jsonl.damaged-1")).unwrap(), bytes);
    assert_eq!(fs::read(home.log_of(2)).unwrap(), healthy);
    assert_eq!(home.run(&["sessions", "show", "00000001"]).code, 0);
    assert_eq!(home.run(&["doctor"]).code, 0);
}

#[test]
fn the_doctor_works_on_any_state() {
    let home = Home::new();
    home.write("home/config.toml", "\u{0}\u{1}[[[");
    home.write("home/trust.toml", "no");
    home.write("home/sessions/not-a-session", "file");
    home.write("home/sessions/01900000-0000-7000-8000-000000000001/log.jsonl", "garbage");
    fs::create_dir_all(home.path().join("sessions/01900000-0000-7000-8000-000000000002")).unwrap();
    fs::create_dir_all(home.path().join("catalogue.db")).unwrap();
    for words in [vec!["doctor"], vec!["doctor", "--repair"], vec!["doctor", "--json"]] {
        let ran = home.run(&words);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.out.contains("000000000001") && !ran.err.contains("panicked"), "{ran:?}");
    }
    assert_eq!(home.run(&["sessions", "list"]).code, 0);
    assert_eq!(home.run(&["sessions", "delete", "--yes", "00000001", "00000002"]).code, 0);
}
