//! Commands from other projects and torture lists, with what bash really ran, where they are at hand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use helve_permissions::shell::analyze;
use helve_permissions::{
    ConfinementLevel, LayeredRules, PermissionPolicy, PermissionVerdict, ProjectContext, Rule, RuleLayer,
    decide,
};
use helve_protocol::{PermissionMode, ToolAction};
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
        let reading = analyze(&case.command);
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

/// Whoever allows half of the programs has not allowed the other half.
#[test]
fn with_half_of_the_programs_allowed_nothing_of_the_other_half_runs_unasked() {
    let cases = cases("with_half_of_the_programs_allowed_nothing_of_the_other_half_runs_unasked");
    let names: BTreeSet<&str> =
        cases.iter().flat_map(|case| &case.execs).map(|argv| argv[0].as_str()).collect();
    let (half, mut rules) = (names.len() / 2, LayeredRules::default());
    let allowed: BTreeSet<&str> = names.iter().take(half).copied().collect();
    for name in &allowed {
        let rule = Rule::new("shell", Some(&format!("{name}:*")), PermissionVerdict::Allow);
        rules.add(RuleLayer::User, "settings", rule);
    }
    let places = ProjectContext { home: Some("/home/me".into()), ..ProjectContext::of("/p") };
    let (mut run, mut wrong) = (0, Vec::new());
    for level in [ConfinementLevel::None, ConfinementLevel::Full] {
        let policy = PermissionPolicy { rules: &rules, places: &places, mode: PermissionMode::Ask, level };
        for case in &cases {
            let (command, folder) = (case.command.clone(), "/p".into());
            let action = ToolAction::Run { command, folder, network: false, credentials: false };
            if decide("shell", &[action], policy).verdict == PermissionVerdict::Allow {
                run += 1;
                let other = case.execs.iter().find(|argv| !allowed.contains(argv[0].as_str()));
                wrong.extend(other.map(|argv| format!("{:?} ran {argv:?}", case.command)));
            }
        }
    }
    eprintln!("{run} of {} run unasked", 2 * cases.len());
    assert_eq!(wrong, Vec::<String>::new());
    assert!(cases.is_empty() || run > 0, "a rule must allow something");
}
