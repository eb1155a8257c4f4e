//! Agent and user at work on one text.

use std::collections::BTreeSet;

use helve_workspace::{MergeOutcome, merge};
use proptest::prelude::*;

fn clean(seen: &str, wanted: &str, there: &str) -> String {
    match merge(seen, wanted, there) {
        MergeOutcome::Clean { text, .. } => text,
        MergeOutcome::Conflict(conflicts) => panic!("{conflicts:?}"),
    }
}

#[test]
fn both_sides_are_in_the_text_and_the_users_hunks_are_told() {
    let seen = "a\nb\nc\nd\ne\n";
    let MergeOutcome::Clean { text, by_user } = merge(seen, "new\na\nb\nC\nd\ne\n", "a\nb\nc\nd\nE\nf\n")
    else {
        panic!("no conflict was expected")
    };
    assert_eq!(text, "new\na\nb\nC\nd\nE\nf\n");
    let [hunk] = by_user.as_slice() else { panic!("one hunk was expected, not {by_user:?}") };
    assert_eq!(hunk.before, ["e"]);
    assert_eq!((hunk.after.first, hunk.after.lines.join(" ")), (6, "E f".to_owned()));
}

#[test]
fn a_conflict_shows_all_three_sides_with_their_lines() {
    let MergeOutcome::Conflict(conflicts) = merge("a\nb\nc\nd\n", "0\na\nB\nc\nd\n", "a\nb!\nc\nd\n") else {
        panic!("a conflict was expected")
    };
    let [conflict] = conflicts.as_slice() else { panic!("one conflict was expected, not {conflicts:?}") };
    assert_eq!((conflict.seen.first, conflict.seen.lines.join(" ")), (2, "b".to_owned()));
    assert_eq!((conflict.wanted.first, conflict.wanted.lines.join(" ")), (3, "B".to_owned()));
    assert_eq!((conflict.there.first, conflict.there.lines.join(" ")), (2, "b!".to_owned()));
}

#[test]
fn a_line_that_the_agent_removes_and_the_user_changes_is_a_conflict() {
    assert!(matches!(merge("a\nb\nc\n", "a\nc\n", "a\nB\nc\n"), MergeOutcome::Conflict(_)));
    assert!(matches!(merge("a\nb\nc\n", "", "a\nb\nc\nd\n"), MergeOutcome::Conflict(_)));
}

#[test]
fn the_same_change_on_both_sides_is_made_once() {
    assert_eq!(clean("a\nb\nc\nd\n", "a\nB\nc\nD\n", "a\nB\nc\nd\n"), "a\nB\nc\nD\n");
}

#[test]
fn endings_that_the_user_turned_stay_turned() {
    assert_eq!(clean("a\nb\nc\n", "a\nB\nB\nc\n", "a\r\nb\r\nc\r\n"), "a\r\nB\r\nB\r\nc\r\n");
    assert_eq!(clean("a\r\nb\nc\r\n", "a\r\nb\nC\r\n", "A\r\nb\nc\r\n"), "A\r\nb\nC\r\n");
}

#[test]
fn a_last_line_without_an_ending_is_never_glued_to_what_follows() {
    assert_eq!(clean("a\nb\nc\n", "a\nb\nc", "a\nb\nc\nd\n"), "a\nb\nc\nd\n");
    assert_eq!(clean("a\r\nb\r\nc", "A\r\nb\r\nc", "a\r\nb\r\nc\r\nd"), "A\r\nb\r\nc\r\nd");
}

/// What a hand does at each line: nothing, removes it, writes something else, or writes something before it.
fn hand() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![8 => Just(0_u8), 1 => Just(1), 1 => Just(2), 1 => Just(3)], 24)
}

fn work(lines: &[String], deeds: &[u8], who: &str) -> Vec<String> {
    let mut done = Vec::new();
    for (number, (line, deed)) in lines.iter().zip(deeds).enumerate() {
        match deed {
            1 => {}
            2 => done.push(format!("{who} {number} instead")),
            3 => done.extend([format!("{who} {number} before"), line.clone()]),
            _ => done.push(line.clone()),
        }
    }
    done
}

fn text(lines: &[String], endings: &[&str], ends: bool) -> String {
    let mut text: String =
        lines.iter().zip(endings.iter().cycle()).flat_map(|(line, ending)| [line.as_str(), ending]).collect();
    if !ends {
        text.truncate(text.trim_end_matches(['\r', '\n']).len());
    }
    text
}

fn is_in_order(part: &[&str], whole: &[&str]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|line| rest.any(|other| other == line))
}

proptest! {
    #[test]
    fn no_line_of_anybody_is_lost(agent in hand(), user in hand(), size in 0..24_usize, style in 0..3_usize, ends: bool) {
        let endings: &[&str] = [&["\n"][..], &["\r\n"], &["\n", "\r\n", "\r\n"]][style];
        let base: Vec<String> = (0..size).map(|number| format!("line {number}")).collect();
        let sides = [base.clone(), work(&base, &agent, "agent"), work(&base, &user, "user")];
        let [seen, wanted, there] = sides.each_ref().map(|side| text(side, endings, ends));
        let [seen_set, wanted_set, there_set] = sides.each_ref().map(|side| side.iter().map(String::as_str).collect::<BTreeSet<_>>());
        match merge(&seen, &wanted, &there) {
            MergeOutcome::Clean { text, by_user } => {
                let merged: Vec<&str> = text.lines().collect();
                let kept = seen_set.iter().filter(|line| wanted_set.contains(*line) && there_set.contains(*line));
                let added = wanted_set.union(&there_set).filter(|line| !seen_set.contains(*line));
                let mut expected: Vec<&str> = kept.chain(added).copied().collect();
                expected.sort_unstable();
                let mut found = merged.clone();
                found.sort_unstable();
                prop_assert_eq!(found, expected);
                for side in [&sides[1], &sides[2]] {
                    let side: Vec<&str> = side.iter().map(String::as_str).filter(|line| merged.contains(line)).collect();
                    prop_assert!(is_in_order(&side, &merged));
                }
                for hunk in by_user {
                    let at = hunk.after.first - 1;
                    prop_assert_eq!(&merged[at..at + hunk.after.lines.len()], &hunk.after.lines);
                }
            }
            MergeOutcome::Conflict(conflicts) => {
                // A conflict is never invented: both sides changed each of its places, and not in the same way.
                prop_assert!(!conflicts.is_empty());
                for conflict in conflicts {
                    prop_assert_ne!(&conflict.wanted.lines, &conflict.seen.lines);
                    prop_assert_ne!(&conflict.there.lines, &conflict.seen.lines);
                    prop_assert_ne!(&conflict.wanted.lines, &conflict.there.lines);
                    let at = conflict.there.first - 1;
                    prop_assert_eq!(&sides[2][at..at + conflict.there.lines.len()], &conflict.there.lines);
                }
            }
        }
    }

    #[test]
    fn who_works_alone_gets_his_text(seen in r"([ab]?(\n|\r\n)){0,12}a?", other in r"([ab]?(\n|\r\n)){0,12}b?") {
        prop_assert_eq!(clean(&seen, &other, &seen), &*other);
        prop_assert_eq!(clean(&seen, &seen, &other), &*other);
    }

    #[test]
    fn who_agree_get_their_text(seen in r"([ab]?\n){0,12}a?", other in r"([ab]?\n){0,12}b?") {
        prop_assert_eq!(clean(&seen, &other, &other), &*other);
    }
}
