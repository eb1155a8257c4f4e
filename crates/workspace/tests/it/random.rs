//! Whatever is done to a tree, the effects are those that comparing every byte would find, and they can be undone.

use std::collections::BTreeSet;
use std::fs::{self, File, FileTimes};
use std::time::Duration;

use helve_workspace::{RestoreGuard, WorkspaceEffects, WorkspaceError, WorkspaceLimits};
use proptest::prelude::*;

use crate::support::{Place, Time, Tree, git, init, settle_index};

/// What a shell command may do.
#[derive(Clone, Debug)]
enum Op {
    Write(&'static str, u8),
    /// Another content of the same size with the old time, at once.
    Rewrite(&'static str),
    Rename(&'static str, &'static str),
    Remove(&'static str),
    Chmod(&'static str, u32),
    Link(&'static str, &'static str),
    Folder(&'static str),
    Rules(&'static str, &'static str),
    Add(&'static str),
    Commit,
    Unstage,
}

const PATHS: [&str; 12] =
    ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/f", "x.skip", "d/x.skip", "hid", "hid/a", "hid/deep/b"];
const RULE_FILES: [&str; 3] = [".gitignore", "d/.gitignore", "hid/.gitignore"];
const RULES: [&str; 6] = ["", "*.skip\n", "hid/\n", "*.skip\n!x.skip\nhid\n", "e\n", "/a\n"];
const TARGETS: [&str; 4] = ["a", "d", "..", "nowhere"];
const MODES: [u32; 4] = [0o644, 0o755, 0o600, 0o444];

fn op() -> impl Strategy<Value = Op> {
    let path = || prop::sample::select(&PATHS[..]);
    prop_oneof![
        5 => (path(), 0u8..4).prop_map(|(path, content)| Op::Write(path, content)),
        3 => path().prop_map(Op::Rewrite),
        2 => (path(), path()).prop_map(|(from, to)| Op::Rename(from, to)),
        2 => path().prop_map(Op::Remove),
        2 => (path(), prop::sample::select(&MODES[..])).prop_map(|(path, mode)| Op::Chmod(path, mode)),
        2 => (path(), prop::sample::select(&TARGETS[..])).prop_map(|(path, target)| Op::Link(path, target)),
        1 => path().prop_map(Op::Folder),
        2 => (prop::sample::select(&RULE_FILES[..]), prop::sample::select(&RULES[..]))
            .prop_map(|(file, rules)| Op::Rules(file, rules)),
        1 => path().prop_map(Op::Add),
        1 => Just(Op::Commit),
        1 => Just(Op::Unstage),
    ]
}

fn clear(place: &Place, path: &str) {
    let path = place.path(path);
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

/// Makes the folders of a path, in place of whatever else is there.
fn make_way(place: &Place, path: &str) {
    for (at, _) in path.match_indices('/') {
        let folder = place.path(&path[..at]);
        if !folder.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
            clear(place, &path[..at]);
            fs::create_dir(folder).unwrap();
        }
    }
}

fn is_file(place: &Place, path: &str) -> bool {
    // Nothing is done through a link, which may lead out of the tree.
    let through_link = path.match_indices('/').any(|(at, _)| place.path(&path[..at]).is_symlink());
    !through_link && place.path(path).symlink_metadata().is_ok_and(|metadata| metadata.is_file())
}

fn write(place: &Place, path: &str, content: &str) {
    make_way(place, path);
    if !is_file(place, path) {
        clear(place, path);
    }
    fs::write(place.path(path), content).unwrap();
}

fn rewrite(place: &Place, path: &str) {
    let modified = fs::metadata(place.path(path)).unwrap().modified().unwrap();
    let mut content = fs::read(place.path(path)).unwrap();
    content.iter_mut().for_each(|byte| *byte ^= 1);
    fs::write(place.path(path), content).unwrap();
    let file = File::open(place.path(path)).unwrap();
    file.set_times(FileTimes::new().set_modified(modified)).unwrap();
}

fn apply(place: &Place, op: &Op, has_git: bool) {
    match *op {
        Op::Write(path, content) => write(place, path, &format!("{content}\nline\n")),
        Op::Rewrite(path) if is_file(place, path) => rewrite(place, path),
        Op::Rename(from, to)
            if is_file(place, from) && !to.starts_with(&format!("{from}/")) && from != to =>
        {
            make_way(place, to);
            if is_file(place, from) {
                if place.path(to).is_dir() && !place.path(to).is_symlink() && !from.starts_with(to) {
                    clear(place, to);
                }
                let _ = fs::rename(place.path(from), place.path(to));
            }
        }
        Op::Remove(path) if !through_link(place, path) => clear(place, path),
        Op::Chmod(path, mode) if is_file(place, path) => place.chmod(path, mode),
        Op::Link(path, target) => {
            make_way(place, path);
            clear(place, path);
            place.link(path, target);
        }
        Op::Folder(path) => {
            make_way(place, path);
            clear(place, path);
            fs::create_dir(place.path(path)).unwrap();
        }
        Op::Rules(file, rules) => write(place, file, rules),
        Op::Add(path) if has_git && is_file(place, path) => drop(place.git(&["add", "-f", path])),
        Op::Commit if has_git => {
            place.git(&["add", "-A"]);
            place.git(&["commit", "-q", "--allow-empty", "-m", "step"]);
        }
        Op::Unstage if has_git => {
            drop(place.git(&["rm", "-r", "-q", "-f", "--cached", "--ignore-unmatch", "."]))
        }
        _ => {}
    }
}

fn through_link(place: &Place, path: &str) -> bool {
    path.match_indices('/').any(|(at, _)| place.path(&path[..at]).is_symlink())
}

/// The paths that git would see: what it tracks, and what it does not ignore.
fn visible(place: &Place, has_git: bool) -> BTreeSet<String> {
    let judge = place.root().parent().unwrap().join("judge");
    let root = place.root();
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let listed = if has_git {
        git(&root, &list)
    } else {
        if !judge.exists() {
            fs::create_dir(&judge).unwrap();
            init(&judge);
        }
        let git_dir = format!("--git-dir={}", judge.join(".git").display());
        let work_tree = format!("--work-tree={}", root.display());
        git(&root, &[&[git_dir.as_str(), work_tree.as_str()][..], &list].concat())
    };
    listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect()
}

/// The folders that there are, and in which of them nothing is in sight.
fn hidden_folders(place: &Place, seen: &BTreeSet<String>) -> BTreeSet<String> {
    let is_folder = |path: &str| place.path(path).symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    let is_hidden = |folder: &str| !seen.iter().any(|path| path.starts_with(&format!("{folder}/")));
    PATHS
        .iter()
        .flat_map(|path| path.match_indices('/').map(|(at, _)| &path[..at]).chain([*path]))
        .filter(|folder| is_folder(folder) && is_hidden(folder))
        .map(str::to_owned)
        .collect()
}

fn is_in_any(path: &str, folders: &BTreeSet<String>) -> bool {
    folders.iter().any(|folder| path.starts_with(&format!("{folder}/")))
}

/// What comparing every byte finds, as far as the paths were or are in sight.
fn expected(
    before: &Tree,
    after: &Tree,
    seen_before: &BTreeSet<String>,
    seen_after: &BTreeSet<String>,
) -> Vec<String> {
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut changes = Vec::new();
    for path in paths.into_iter().filter(|path| before.get(*path) != after.get(*path)) {
        // What git tracks need not be there.
        let was_seen = before.contains_key(path) && seen_before.contains(path);
        let is_new = !before.contains_key(path) && seen_after.contains(path);
        if was_seen || is_new {
            changes.push(path.clone());
        }
    }
    changes
}

fn changed(effects: &WorkspaceEffects) -> Vec<String> {
    effects.changes.iter().map(|effect| effect.path.clone()).collect()
}

/// Who sees what was done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Witness {
    Same,
    /// A process that knows only what the one before it noted.
    Next,
}

fn check(
    (before, during): (&[Op], &[Op]),
    has_git: bool,
    time: Time,
    witness: Witness,
) -> Result<(), TestCaseError> {
    let mut place = Place::new(time, WorkspaceLimits::default(), |root| {
        if has_git {
            init(root);
        }
    });
    let (first, second) = before.split_at(before.len() / 2);
    first.iter().for_each(|op| apply(&place, op, has_git));
    let watch = place.workspace.begin().unwrap();
    let _ = place.workspace.end(watch).unwrap();
    let seen_first = visible(&place, has_git);
    second.iter().for_each(|op| apply(&place, op, has_git));
    if has_git {
        settle_index(&place.root());
    }
    let watch = place.workspace.begin().unwrap();
    if matches!(time, Time::Late) {
        // Longer than the tick of any file system's clock that a test runs on.
        std::thread::sleep(Duration::from_millis(20));
    }
    let (old, seen_before) = (place.tree(), visible(&place, has_git));
    let hidden = hidden_folders(&place, &seen_before);
    during.iter().for_each(|op| apply(&place, op, has_git));
    let effects = match witness {
        Witness::Same => place.workspace.end(watch).unwrap(),
        Witness::Next => {
            place.crash(time);
            place.workspace.since_last_seen().unwrap().unwrap()
        }
    };
    let (new, seen_after) = (place.tree(), visible(&place, has_git));

    let unsure: Vec<String> = effects.not_recoverable.iter().map(|lost| lost.path.clone()).collect();
    let is_sure = |path: &String| match time {
        // In a folder that was ignored nobody looked: what is there now is said to be changed beyond recall.
        Time::Real => !unsure.contains(path),
        // By this clock everything there is old.
        Time::Late => !is_in_any(path, &hidden),
    };
    // What was in sight once and changed when it went out of sight may still be watched: then it is told, as it should be.
    let is_watched_still = |path: &String| seen_first.contains(path) && !seen_before.contains(path);
    for path in changed(&effects).iter().filter(|path| is_watched_still(path)) {
        prop_assert_ne!(old.get(path), new.get(path), "{} did not change", path);
    }
    let sure = |paths: Vec<String>| -> Vec<String> {
        let paths = paths.into_iter().filter(|path| !is_watched_still(path));
        paths.filter(|path| seen_before.contains(path) || is_sure(path)).collect()
    };
    let expected = expected(&old, &new, &seen_before, &seen_after);
    prop_assert_eq!(sure(changed(&effects)), sure(expected), "{:?}", effects);
    let was_out_of_sight = |path: &str| {
        let is_hidden = hidden.contains(path) || is_in_any(path, &hidden);
        is_hidden || old.contains_key(path) && !seen_before.contains(path)
    };
    for path in &unsure {
        // Of an ignored folder, what is not tracked: other things in it can be in sight.
        let is_inside = |other: &&String| path.ends_with('/') && other.starts_with(path);
        let inside = old.keys().chain(&hidden).filter(is_inside).map(String::as_str);
        let has_any = inside.chain([path.trim_end_matches('/')]).any(was_out_of_sight);
        prop_assert!(has_any, "{path} was in sight and is lost: {effects:?}");
    }
    for effect in &effects.changes {
        let side = |image: Option<helve_workspace::PathSnapshot>| {
            image.map(|image| (image.mode.bits(), place.content(Some(image)).unwrap()))
        };
        prop_assert_eq!(side(effect.before), old.get(&effect.path).cloned(), "before of {}", effect.path);
        prop_assert_eq!(side(effect.after), new.get(&effect.path).cloned(), "after of {}", effect.path);
    }

    // What is ignored was made where a file or its folder was: it is not removed, and nothing else is touched.
    let is_inside = |path: &str, folder: &str| path.starts_with(&format!("{folder}/"));
    let is_blocked = |path: &str| {
        let unkept = new.keys().filter(|other| !changed(&effects).contains(other));
        unkept.into_iter().any(|other| is_inside(other, path) || is_inside(path, other))
    };
    if effects.changes.iter().any(|effect| effect.before.is_some() && is_blocked(&effect.path)) {
        let wanted: Vec<_> =
            effects.changes.iter().map(|effect| (effect.path.clone(), effect.before)).collect();
        let refused = place.workspace.restore_all(&wanted, RestoreGuard::IfUnchanged);
        prop_assert!(matches!(refused, Err(WorkspaceError::InTheWay(_))), "{:?}", refused);
        prop_assert_eq!(place.tree(), new);
        return Ok(());
    }
    place.undo(&effects);
    let restored = place.tree();
    for path in seen_before.iter().filter(|path| old.contains_key(*path)) {
        prop_assert_eq!(restored.get(path), old.get(path), "{} is not restored", path);
    }
    for path in effects.changes.iter().filter(|effect| effect.before.is_none()).map(|effect| &effect.path) {
        prop_assert!(!restored.contains_key(path), "{path} is still there");
    }
    Ok(())
}

fn ops() -> impl Strategy<Value = (Vec<Op>, Vec<Op>)> {
    (prop::collection::vec(op(), 0..14), prop::collection::vec(op(), 1..10))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn effects_are_exact_and_can_be_undone((before, during) in ops()) {
        check((&before, &during), false, Time::Real, Witness::Same)?;
    }

    #[test]
    fn effects_are_exact_when_stats_are_trusted((before, during) in ops()) {
        check((&before, &during), false, Time::Late, Witness::Same)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn effects_are_exact_in_a_repository((before, during) in ops()) {
        check((&before, &during), true, Time::Real, Witness::Same)?;
    }

    #[test]
    fn effects_are_exact_in_a_repository_when_stats_are_trusted((before, during) in ops()) {
        check((&before, &during), true, Time::Late, Witness::Same)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_process_did_not_see_the_next_one_does((before, during) in ops()) {
        check((&before, &during), false, Time::Real, Witness::Next)?;
        check((&before, &during), true, Time::Real, Witness::Next)?;
        check((&before, &during), true, Time::Late, Witness::Next)?;
    }
}
