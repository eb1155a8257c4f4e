//! What others changed is told once, within bounds.

use helve_workspace::NoDiffReason;

use crate::support::{Place, short};

fn told(place: &mut Place) -> Vec<(String, Result<(), NoDiffReason>)> {
    let outside = place.outside();
    let told = outside.changes.into_iter().map(|change| (change.effect.path, change.diff.map(|_| ())));
    told.collect()
}

#[test]
fn what_others_change_is_told_once_and_what_calls_change_is_not() {
    let mut place = Place::repository();
    place.write("ours", "1\n");
    place.write("theirs", "1\n");
    place.write("both", "1\n");
    assert_eq!(told(&mut place), []);
    let effects = place.during(|place| {
        place.write("ours", "2\n");
        place.write("both", "2\n");
    });
    assert_eq!(short(&effects), ["~both", "~ours"]);
    place.write("theirs", "2\n");
    place.write("both", "3\n");
    // A call in between must not take others' changes for its own.
    assert_eq!(short(&place.during(|place| place.write("both", "4\n"))), ["~both"]);
    place.write("theirs", "3\n");
    let outside = place.outside();
    let text = outside.to_string();
    assert_eq!(outside.changes.len(), 2, "{text}");
    assert!(text.contains("-2\n+3\n") && text.contains("-1\n+3\n"), "{text}");
    assert!(!text.contains("+4"), "{text}");
    assert_eq!(told(&mut place), []);
}

#[test]
fn what_is_put_back_needs_no_telling() {
    let mut place = Place::plain();
    place.write("file", "1\n");
    place.during(|_| {});
    place.write("file", "2\n");
    place.workspace.refresh().unwrap();
    place.write("file", "1\n");
    assert_eq!(told(&mut place), []);
}

#[test]
fn before_anything_is_kept_git_still_knows_what_was_there() {
    let mut place = Place::repository();
    place.write("tracked", "1\n");
    place.commit_all();
    place.write("untracked", "1\n");
    assert_eq!(told(&mut place), []);
    assert_eq!(place.blobs.puts(), 0, "looking keeps nothing");
    place.write("tracked", "2\n");
    place.write("untracked", "22\n");
    place.write("new", "1\n");
    let expected = [("new", Ok(())), ("tracked", Ok(())), ("untracked", Err(NoDiffReason::Unknown))];
    let expected: Vec<_> = expected.into_iter().map(|(path, diff)| (path.to_owned(), diff)).collect();
    assert_eq!(told(&mut place), expected);
}

#[test]
fn diffs_are_bounded_and_generated_files_have_none() {
    let mut place = Place::plain();
    place.during(|_| {});
    place.write("Cargo.lock", "1\n");
    place.write("app.min.js", "1\n");
    place.write("blob.bin", "1\0");
    place.write("one-line.js", "x".repeat(6_000));
    let line = "a line that somebody wrote\n";
    place.write("x1", line.repeat(3_000));
    place.write("x2", line.repeat(3_000));
    place.write("x3", line.repeat(3_000));
    let outside = place.outside();
    let diffs: Vec<_> = outside.changes.iter().map(|change| change.diff.as_ref().err().copied()).collect();
    let generated = Some(NoDiffReason::Generated);
    assert_eq!(diffs[..4], [generated, generated, Some(NoDiffReason::Binary), generated]);
    assert_eq!((diffs[4], diffs[6]), (None, Some(NoDiffReason::NoRoom)));
    let text = outside.to_string();
    assert!(text.len() < 102 * 1024, "{}", text.len());
    assert!(text.contains("Cargo.lock was created (generated)"), "{text}");
}

#[test]
fn of_very_many_changes_some_are_named_and_the_others_counted() {
    let mut place = Place::plain();
    place.during(|_| {});
    for number in 0..250 {
        place.write(&format!("f{number}"), "1\n");
    }
    let outside = place.outside();
    assert_eq!((outside.changes.len(), outside.left_out), (200, 50));
    assert!(outside.to_string().ends_with("… and 50 more files\n"));
}

#[test]
fn of_what_may_hold_secrets_only_the_name_is_told() {
    let mut place = Place::plain();
    place.write(".env", "KEY=old\n");
    place.write("plain", "1\n");
    place.during(|_| {});
    place.write(".env", "KEY=new\n");
    place.write("plain", "2\n");
    place.workspace.refresh().unwrap();
    let told = place.workspace.take_outside_report(&|path| path.ends_with(".env")).to_string();
    assert!(told.contains(".env was changed (it may hold secrets)") && told.contains("+2"), "{told}");
    assert!(!told.contains("KEY"), "{told}");
}

#[test]
fn of_very_many_changes_all_are_counted_and_written_down() {
    const MANY: usize = 12_000;
    let mut place = Place::plain();
    place.during(|_| {});
    for number in 0..MANY {
        place.write(&format!("d{}/f{number}", number % 100), "x");
    }
    let outside = place.outside();
    assert_eq!(outside.changes.len() + outside.left_out, MANY);
    assert_eq!(place.workspace.take_outside_effects().len(), MANY);
}

/// The disk of the blobs is full when it is to be told what git had.
#[test]
fn what_could_not_be_told_is_found_again() {
    let mut place = Place::repository();
    place.write("tracked", "1\n");
    place.commit_all();
    place.during(|_| {});
    place.remove("tracked");
    place.blobs.set_full(true);
    assert!(place.workspace.refresh().is_err());
    place.blobs.set_full(false);
    let told = place.outside();
    assert_eq!(told.changes.len(), 1, "{told:?}");
    assert!(told.to_string().contains("-1"), "{told}");
}
