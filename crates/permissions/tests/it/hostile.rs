//! What a hostile hand would write, run by the real bash. A `%` stands for a line break.

use helve_permissions::shell::{read, read_posix};
use helve_testkit::skip;

use crate::fuzz::{Arena, Shell};
use crate::matching::foresees;

#[test]
fn tricks_run_only_what_was_foreseen() {
    let Some(arena) = Arena::new(&[]) else {
        return skip("tricks_run_only_what_was_foreseen", "there is no bash");
    };
    let mut missed = Vec::new();
    for line in include_str!("hostile.txt").lines() {
        let script = line.replace('%', "\n");
        let reading = read(&script);
        let ran = arena.run(Shell::Bash, &script);
        missed.extend(
            ran.into_iter()
                .filter(|argv| !foresees(&reading, argv))
                .map(|argv| format!("{argv:?} in {line}")),
        );
    }
    assert_eq!(missed, Vec::<String>::new());
}

#[test]
fn tricks_run_only_what_was_foreseen_in_any_shell() {
    let Some(arena) = Arena::new(&[]) else {
        return skip("tricks_run_only_what_was_foreseen_in_any_shell", "there is no bash");
    };
    let mut missed = Vec::new();
    for line in include_str!("hostile.txt").lines() {
        let script = line.replace('%', "\n");
        let reading = read_posix(&script);
        for shell in [Shell::Sh, Shell::BashAsSh].into_iter().filter(|_| reading.unknown.is_empty()) {
            let ran = arena.run(shell, &script);
            missed.extend(
                ran.into_iter()
                    .filter(|argv| !foresees(&reading, argv))
                    .map(|argv| format!("{argv:?} in {line} by {shell:?}")),
            );
        }
    }
    assert_eq!(missed, Vec::<String>::new());
}
