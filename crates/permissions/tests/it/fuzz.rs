//! Random scripts, run by the real bash: whatever ran was foreseen, or the reading said that it does not know.

mod arena;
mod generate;
mod mutate;
mod random;
mod running;
mod words;

use std::collections::BTreeMap;

pub(crate) use arena::{Arena, Shell};
use generate::Generator;
use helve_permissions::shell::{CommandAnalysis, analyze, analyze_posix};
use helve_testkit::skip;
use mutate::{is_harmless, mutated};
use random::Random;

use crate::data::cases;
use crate::matching::foresees;

/// How many scripts, unless `HELVE_FUZZ` says so. `cargo xtask fuzz` does.
const SCRIPTS: u64 = 2000;

fn count() -> u64 {
    std::env::var("HELVE_FUZZ").ok().and_then(|count| count.parse().ok()).unwrap_or(SCRIPTS)
}

#[derive(Default)]
struct Tally {
    ran: usize,
    known: usize,
    missed: Vec<String>,
    /// How often which reason was why a script was not run.
    reasons: BTreeMap<String, usize>,
}

impl Tally {
    fn judge(&mut self, arena: &Arena, shell: Shell, script: &str) {
        let reading = read_for(shell, script);
        if let Some(unknown) = reading.unknown.first() {
            *self.reasons.entry(unknown.reason.clone()).or_default() += 1;
            return;
        }
        self.known += 1;
        let ran = arena.run(shell, script);
        self.ran += ran.len();
        if ran.iter().any(|argv| !foresees(&reading, argv)) && self.missed.len() < 10 {
            self.missed.push(shrink(arena, shell, script));
        }
    }
}

fn read_for(shell: Shell, script: &str) -> CommandAnalysis {
    match shell {
        Shell::Bash => analyze(script),
        Shell::Sh | Shell::BashAsSh => analyze_posix(script),
    }
}

impl Tally {
    fn conclude(self) {
        let mut reasons: Vec<(usize, String)> =
            self.reasons.into_iter().map(|(reason, count)| (count, reason)).collect();
        reasons.sort();
        reasons.iter().rev().take(15).for_each(|(count, reason)| eprintln!("{count} × not known: {reason}"));
        eprintln!("{} commands ran in {} scripts that were known for sure", self.ran, self.known);
        assert_eq!(self.missed, Vec::<String>::new());
        assert!(self.ran > 0, "nothing ran");
    }
}

/// What ran and was not foreseen.
fn missed(arena: &Arena, shell: Shell, script: &str) -> Option<Vec<String>> {
    let reading = read_for(shell, script);
    if !reading.unknown.is_empty() {
        return None;
    }
    arena.run(shell, script).into_iter().find(|argv| !foresees(&reading, argv))
}

/// A shorter script with the same trouble, for people to read.
fn shrink(arena: &Arena, shell: Shell, script: &str) -> String {
    let mut chars: Vec<char> = script.chars().collect();
    let mut piece = chars.len() / 2;
    while piece > 0 {
        let mut at = 0;
        while at < chars.len() {
            let end = (at + piece).min(chars.len());
            let shorter: String = chars[..at].iter().chain(&chars[end..]).collect();
            if missed(arena, shell, &shorter).is_some() {
                chars.drain(at..end);
            } else {
                at += piece;
            }
        }
        piece /= 2;
    }
    let script: String = chars.into_iter().collect();
    format!("{script:?} ran {:?} by {shell:?}", missed(arena, shell, &script))
}

#[test]
fn random_scripts_run_only_what_was_foreseen() {
    let Some(arena) = Arena::new(&[]) else {
        return skip("random_scripts_run_only_what_was_foreseen", "there is no bash");
    };
    let mut tally = Tally::default();
    for seed in 0..count() {
        let script = Generator::new(&mut Random::new(seed)).script();
        tally.judge(&arena, Shell::Bash, &script);
    }
    tally.conclude();
}

#[test]
fn random_scripts_run_only_what_was_foreseen_in_any_shell() {
    let Some(arena) = Arena::new(&[]) else {
        return skip("random_scripts_run_only_what_was_foreseen_in_any_shell", "there is no bash");
    };
    let mut tally = Tally::default();
    for seed in 0..count() / 2 {
        let script = Generator::plain(&mut Random::new(seed)).script();
        for shell in [Shell::Sh, Shell::BashAsSh] {
            tally.judge(&arena, shell, &script);
        }
    }
    tally.conclude();
}

/// The recorded commands with random changes: pieces of others in them, quotes and operators put in and taken away.
#[test]
fn changed_commands_run_only_what_was_foreseen() {
    let test = "changed_commands_run_only_what_was_foreseen";
    let cases = cases(test);
    let programs: Vec<String> =
        cases.iter().flat_map(|case| &case.execs).filter_map(|argv| argv.first().cloned()).collect();
    let (Some(arena), false) = (Arena::new(&programs), cases.is_empty()) else {
        return skip(test, "there is no bash, or nothing to change");
    };
    let commands: Vec<&str> = cases.iter().map(|case| case.command.as_str()).collect();
    let mut tally = Tally::default();
    for seed in 0..count() {
        let mut random = Random::new(seed);
        let script = mutated(&mut random, &commands);
        if is_harmless(&script) {
            tally.judge(&arena, Shell::Bash, &script);
        }
    }
    tally.conclude();
}
