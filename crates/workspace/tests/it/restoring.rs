//! What was changed can be put back, and nothing is overwritten unseen.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use helve_workspace::{FileMode, PathSnapshot, RestoreGuard, WorkspaceError};

use crate::support::{Place, short};

#[test]
fn restoring_gives_the_old_tree_back() {
    for mut place in [Place::plain(), Place::repository()] {
        place.write("changed", "1");
        place.write("deep/er/gone", "1");
        place.write("swap", "1");
        place.write("folder/inner", "1");
        place.write("way/file", "1");
        place.write("runs", "1");
        place.chmod("runs", 0o750);
        place.link("link", "changed");
        let before = place.tree();
        let effects = place.during(|place| {
            place.write("changed", "2");
            fs::remove_dir_all(place.path("deep")).unwrap();
            place.remove("swap");
            place.write("swap/in/side", "1");
            fs::remove_dir_all(place.path("folder")).unwrap();
            place.write("folder", "1");
            fs::remove_dir_all(place.path("way")).unwrap();
            place.link("way", "/tmp");
            place.remove("runs");
            place.remove("link");
            place.write("link", "changed");
            place.write("new/a/b", "1");
        });
        assert_ne!(place.tree(), before);
        place.undo(&effects);
        assert_eq!(place.tree(), before);
        assert!(!place.path("new").exists(), "folders that are left empty go, too");
        assert_eq!(short(&place.during(|_| {})), [""; 0]);
        assert_eq!(place.outside().changes, []);
    }
}

#[test]
fn restoring_can_be_taken_back_as_well() {
    let mut place = Place::plain();
    place.write("file", "1");
    let effects = place.during(|place| place.write("file", "2"));
    let undone =
        place.workspace.restore("file", effects.changes[0].before, RestoreGuard::IfUnchanged).unwrap();
    assert_eq!(short(&undone), ["~file"]);
    assert_eq!(place.tree()["file"].1, b"1");
    place.undo(&undone);
    assert_eq!(place.tree()["file"].1, b"2");
}

#[test]
fn what_somebody_changed_is_not_overwritten_unless_told() {
    let mut place = Place::plain();
    place.write("file", "1");
    place.write("gone", "1");
    let effects = place.during(|place| {
        place.write("file", "2");
        place.remove("gone");
    });
    place.write("file", "3");
    place.write("gone", "theirs");
    let [file, gone] = &effects.changes[..] else { panic!("{effects:?}") };
    for effect in [file, gone] {
        let refused = place.workspace.restore(&effect.path, effect.before, RestoreGuard::IfUnchanged);
        assert!(matches!(refused, Err(WorkspaceError::Changed(path)) if path == effect.path));
    }
    let wanted: Vec<_> = effects.changes.iter().map(|effect| (effect.path.clone(), effect.before)).collect();
    assert!(place.workspace.restore_all(&wanted, RestoreGuard::IfUnchanged).is_err());
    assert_eq!(place.tree()["file"].1, b"3");

    let forced = place.workspace.restore("file", file.before, RestoreGuard::Always).unwrap();
    assert_eq!(place.tree()["file"].1, b"1");
    assert_eq!(place.content(forced.changes[0].before).unwrap(), b"3", "what was there is kept");
}

#[test]
fn a_check_that_fails_touches_nothing() {
    let mut place = Place::plain();
    place.write("a", "1");
    place.write("b", "1");
    let effects = place.during(|place| {
        place.write("a", "2");
        place.write("b", "2");
    });
    place.write("b", "3");
    let wanted: Vec<_> = effects.changes.iter().map(|effect| (effect.path.clone(), effect.before)).collect();
    assert!(place.workspace.restore_all(&wanted, RestoreGuard::IfUnchanged).is_err());
    assert_eq!(place.tree()["a"].1, b"2");
}

#[test]
fn modes_are_exact_and_owners_stay() {
    let mut place = Place::plain();
    place.write("file", "1");
    place.chmod("file", 0o6754);
    let owner = if rustix::process::getuid().is_root() { 12_345 } else { rustix::process::getuid().as_raw() };
    std::os::unix::fs::chown(place.path("file"), Some(owner), None).unwrap();
    place.chmod("file", 0o6754);
    let effects = place.during(|place| {
        place.write("file", "2");
        place.chmod("file", 0o600);
    });
    place.undo(&effects);
    let metadata = fs::metadata(place.path("file")).unwrap();
    assert_eq!((metadata.permissions().mode() & 0o7777, metadata.uid()), (0o6754, owner));
    assert_eq!(place.tree()["file"].1, b"1");
}

#[test]
fn a_link_on_the_way_is_never_followed() {
    let mut place = Place::plain();
    place.write("folder/file", "1");
    place.write("elsewhere/file", "theirs");
    let effects = place.during(|place| place.write("folder/file", "2"));
    fs::rename(place.path("folder"), place.path("moved")).unwrap();
    place.link("folder", "elsewhere");
    let effect = &effects.changes[0];
    for guard in [RestoreGuard::IfUnchanged, RestoreGuard::Always] {
        assert!(place.workspace.restore("folder/file", effect.before, guard).is_err());
        let _ = place.workspace.restore("folder/file", None, guard);
    }
    assert_eq!(place.tree()["elsewhere/file"].1, b"theirs");
}

#[test]
fn a_folder_with_files_is_not_removed_to_make_way() {
    let mut place = Place::plain();
    place.write("file", "1");
    let effects = place.during(|place| place.remove("file"));
    place.write("file/theirs", "1");
    let refused = place.workspace.restore("file", effects.changes[0].before, RestoreGuard::Always);
    assert!(matches!(refused, Err(WorkspaceError::InTheWay(_))));
    place.remove("file/theirs");
    fs::create_dir(place.path("file/empty")).unwrap();
    place.workspace.restore("file", effects.changes[0].before, RestoreGuard::Always).unwrap();
    assert_eq!(place.tree()["file"].1, b"1");
}

#[test]
fn what_was_not_kept_and_what_is_no_path_is_refused() {
    let mut place = Place::plain();
    let image = PathSnapshot { mode: FileMode::from_bits(0o100_644), content: None };
    let refused = place.workspace.restore("file", Some(image), RestoreGuard::Always);
    assert!(matches!(refused, Err(WorkspaceError::NotKept(_))));
    assert!(matches!(
        place.workspace.restore("../x", None, RestoreGuard::Always),
        Err(WorkspaceError::BadPath(_))
    ));
    assert!(place.tree().is_empty());
}

#[test]
fn nothing_is_left_beside_the_file() {
    let mut place = Place::plain();
    place.write("file", "1");
    place.write(".file.helve-0", "somebody's own");
    let effects = place.during(|place| place.write("file", "2"));
    place.undo(&effects);
    let names: Vec<String> = place.tree().into_keys().collect();
    assert_eq!(names, [".file.helve-0", "file"]);
}
