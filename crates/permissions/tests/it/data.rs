//! Commands from other projects and torture lists, with what bash really ran, where they are at hand.

use std::collections::BTreeMap;
use std::path::Path;

use helve_permissions::shell::read;
use helve_testkit::skip;
use serde::Deserialize;

use crate::matching::foresees;

#[derive(Deserialize)]
pub(crate) struct Case {
    pub(crate) command: String,
    parses: bool,
    pub(crate) execs: Vec<Vec<String>>,
}

pub(crate) fn cases(test: &str) -> Vec<Case> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/shell/commands.jsonl");
    let Ok(lines) = std::fs::read_to_string(&file) else {
        skip(test, "the recorded commands are not at hand");
        return Vec::new();
    };
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn whatever_bash_ran_was_foreseen() {
    let mut missed = Vec::new();
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let cases = cases("whatever_bash_ran_was_foreseen");
    for case in &cases {
        let reading = read(&case.command);
        if !case.parses && reading.unknown.is_empty() {
            missed.push(format!("{:?} is no command", case.command));
        }
        for argv in &case.execs {
            if !foresees(&reading, argv) {
                missed.push(format!("{:?} ran {argv:?}", case.command));
            }
        }
        for unknown in reading.unknown.iter().take(1).filter(|_| case.parses) {
            reasons.entry(unknown.reason.clone()).or_default().push(case.command.clone());
        }
    }
    for (reason, commands) in &reasons {
        eprintln!("{} × {reason}: {commands:?}", commands.len());
    }
    let parsable = cases.iter().filter(|case| case.parses).count();
    let unknown: usize = reasons.values().map(Vec::len).sum();
    eprintln!("{unknown} of {parsable} commands that bash reads are not known for sure");
    assert_eq!(missed, Vec::<String>::new());
    assert!(unknown * 8 <= parsable, "too much is unknown");
}
