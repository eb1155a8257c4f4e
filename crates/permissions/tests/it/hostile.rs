//! What a hostile hand would write, run by the real bash.

use helve_permissions::shell::{analyze, analyze_posix};
use helve_testkit::skip;

use crate::fuzz::{Arena, Shell};
use crate::matching::foresees;

/// Programs that can be made to run others, as they are.
const RUNNERS: &str = "awk bash cat chmod chrt cp dash date echo ed env ex fakeroot find flock gawk gdb git gzip \
                       head install ionice less ln ls make man mawk mkdir mv nice nohup patch perl prlimit python3 \
                       rg rm run-parts script sed seq setarch setsid sh sort split ssh stdbuf strace tar taskset tee \
                       time timeout touch true uname unshare vim xargs";

/// The lines of a file. A mark stands for a line break in a script.
fn scripts(lines: &'static str, mark: char) -> impl Iterator<Item = String> {
    lines.lines().map(move |line| line.replace(mark, "\n"))
}

#[test]
fn tricks_run_only_what_was_foreseen() {
    let Some(arena) = Arena::new(&[]) else {
        return skip("tricks_run_only_what_was_foreseen", "there is no bash");
    };
    let scripts = scripts(include_str!("hostile.txt"), '%');
    let missed: Vec<String> = scripts.filter_map(|script| missed(&arena, &script)).collect();
    assert_eq!(missed, Vec::<String>::new());
}

#[test]
fn tricks_with_programs_run_only_what_was_foreseen() {
    let real: Vec<&str> = RUNNERS.split_whitespace().collect();
    let Some(arena) = Arena::with(&[], &real) else {
        return skip("tricks_with_programs_run_only_what_was_foreseen", "there is no bash");
    };
    let scripts = scripts(include_str!("tricks.txt"), '¶');
    let missed: Vec<String> = scripts.filter_map(|script| missed(&arena, &script)).collect();
    assert_eq!(missed, Vec::<String>::new());
}

/// The first thing that ran and was not foreseen.
fn missed(arena: &Arena, script: &str) -> Option<String> {
    let reading = analyze(script);
    let ran = arena.run(Shell::Bash, script);
    ran.iter().find(|argv| !foresees(&reading, argv)).map(|argv| format!("{argv:?} in {script:?}"))
}

#[test]
fn tricks_run_only_what_was_foreseen_in_any_shell() {
    let real: Vec<&str> = RUNNERS.split_whitespace().collect();
    let Some(arena) = Arena::with(&[], &real) else {
        return skip("tricks_run_only_what_was_foreseen_in_any_shell", "there is no bash");
    };
    let mut missed = Vec::new();
    let scripts = scripts(include_str!("hostile.txt"), '%').chain(scripts(include_str!("tricks.txt"), '¶'));
    for script in scripts {
        let reading = analyze_posix(&script);
        for shell in [Shell::Sh, Shell::BashAsSh].into_iter().filter(|_| reading.unknown.is_empty()) {
            let ran = arena.run(shell, &script);
            missed.extend(
                ran.into_iter()
                    .filter(|argv| !foresees(&reading, argv))
                    .map(|argv| format!("{argv:?} in {script:?} by {shell:?}")),
            );
        }
    }
    assert_eq!(missed, Vec::<String>::new());
}
