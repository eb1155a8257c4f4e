//! What is noticed, and what is not mistaken for a change.

use std::fs::{self, File, FileTimes};
use std::time::Duration;

use helve_protocol::FileChangeKind;
use helve_workspace::WorkspaceLimits;

use crate::support::{Place, Time, init, lost, short};

/// A rewrite in place that leaves size and modification time as they were.
fn rewrite_unnoticed(place: &Place, path: &str, content: &str) {
    let modified = fs::metadata(place.path(path)).unwrap().modified().unwrap();
    place.write(path, content);
    let file = File::options().write(true).open(place.path(path)).unwrap();
    file.set_times(FileTimes::new().set_modified(modified)).unwrap();
}

#[test]
fn every_kind_of_change_is_noticed() {
    for mut place in [Place::plain(), Place::repository()] {
        for path in ["rewritten", "restored", "replaced", "runs", "gone", "to-folder", "same"] {
            place.write(path, "one");
        }
        place.write("folder/inner", "one");
        place.write("other", "two");
        place.link("link", "one");
        let effects = place.during(|place| {
            place.write("rewritten", "two");
            rewrite_unnoticed(place, "restored", "two");
            fs::rename(place.path("other"), place.path("replaced")).unwrap();
            place.chmod("runs", 0o755);
            place.remove("gone");
            place.remove("to-folder");
            place.write("to-folder/inner", "one");
            fs::remove_dir_all(place.path("folder")).unwrap();
            place.write("folder", "one");
            place.remove("link");
            place.link("link", "two");
            place.write("new", "one");
        });
        let expected = [
            "+folder",
            "-folder/inner",
            "-gone",
            "~link",
            "+new",
            "-other",
            "~replaced",
            "~restored",
            "~rewritten",
            "~runs",
            "-to-folder",
            "+to-folder/inner",
        ];
        assert_eq!(short(&effects), expected);
        assert_eq!(lost(&effects), [""; 0]);
        assert!(effects.changes.iter().all(|effect| {
            effect.before.is_none_or(|image| image.content.is_some())
                && effect.after.is_none_or(|image| image.content.is_some())
        }));
    }
}

#[test]
fn what_only_looks_changed_is_no_effect() {
    for mut place in [Place::plain(), Place::repository()] {
        place.write("touched", "one");
        place.write("rewritten", "one");
        place.write("replaced", "one");
        place.chmod("touched", 0o600);
        let effects = place.during(|place| {
            let file = File::options().write(true).open(place.path("touched")).unwrap();
            let times = FileTimes::new().set_modified(std::time::UNIX_EPOCH + Duration::from_secs(5));
            file.set_times(times).unwrap();
            place.write("rewritten", "two");
            place.write("rewritten", "one");
            place.write("copy", "one");
            fs::rename(place.path("copy"), place.path("replaced")).unwrap();
            place.write("short-lived", "one");
            place.remove("short-lived");
            fs::create_dir(place.path("empty")).unwrap();
        });
        assert_eq!(short(&effects), [""; 0]);
    }
}

#[test]
fn a_same_size_rewrite_in_the_tick_of_the_look_is_noticed() {
    let mut place = Place::plain();
    place.write("file", "0");
    for round in 1..100 {
        let effects = place.during(|place| rewrite_unnoticed(place, "file", &(round % 10).to_string()));
        assert_eq!(short(&effects), ["~file"], "round {round}");
    }
}

#[test]
fn changes_have_contents_and_counted_lines() {
    let mut place = Place::plain();
    place.write("file", "a\nb\nc\n");
    let effects = place.during(|place| {
        place.write("file", "a\nx\ny\nc\n");
        place.write("new", "1\n2");
    });
    let [file, new] = &effects.changes[..] else { panic!("{effects:?}") };
    assert_eq!((file.added_lines, file.removed_lines), (2, 1));
    assert_eq!(place.content(file.before).unwrap(), b"a\nb\nc\n");
    assert_eq!(place.content(file.after).unwrap(), b"a\nx\ny\nc\n");
    assert_eq!((new.added_lines, new.removed_lines, new.before), (2, 0, None));
    let diff = place.workspace.diff(file, 10_000).unwrap();
    assert!(diff.contains("-b\n+x\n+y\n"), "{diff}");
    assert!(place.workspace.diff(file, 60).unwrap().contains("more lines"));
}

#[test]
fn ignored_files_are_left_alone_and_their_changes_are_said() {
    for mut place in [Place::plain(), Place::repository()] {
        place.write(".gitignore", ".env\n*.o\ntarget/\nmodules/\n");
        place.write(".env", "secret=1");
        place.write("a.o", "1");
        place.write("target/a", "1");
        place.write("modules/a", "1");
        let effects = place.during(|place| {
            place.write(".env", "secret=2");
            place.write("b.o", "1");
            place.remove("a.o");
            place.write("target/b", "1");
            fs::remove_dir_all(place.path("modules")).unwrap();
        });
        assert_eq!(short(&effects), [""; 0]);
        assert_eq!(lost(&effects), [".env: it is ignored", "a.o: it is ignored", "modules/: it is ignored"]);
        assert!(place.workspace.not_kept().iter().any(|not| not.path == ".env"));
    }
}

#[test]
fn a_file_that_becomes_ignored_is_not_taken_for_deleted() {
    for mut place in [Place::plain(), Place::repository()] {
        place.write("build/same", "1");
        place.write("build/changed", "1");
        place.write("note.log", "1");
        let effects = place.during(|place| {
            place.write(".gitignore", "build/\n*.log\n");
            place.write("build/changed", "2");
        });
        assert_eq!(short(&effects), ["+.gitignore", "~build/changed"]);
        place.undo(&effects);
        assert_eq!(place.tree()["build/changed"].1, b"1");

        place.during(|place| place.write(".gitignore", "build/\n"));
        let effects = place.during(|place| place.write("build/same", "2"));
        assert_eq!(short(&effects), [""; 0], "nobody looks there any more");
    }
}

#[test]
fn what_comes_into_sight_is_not_taken_for_created() {
    for mut place in [Place::plain(), Place::repository()] {
        place.write(".gitignore", "build/\n*.log\n");
        place.write("build/old", "1");
        place.write("old.log", "1");
        // What is in an ignored folder is not known, so only its time tells whether it is new.
        std::thread::sleep(Duration::from_millis(2_100));
        let effects = place.during(|place| {
            place.write(".gitignore", "");
            place.write("build/new", "1");
            place.write("new.log", "1");
        });
        assert_eq!(short(&effects), ["~.gitignore", "+new.log"]);
        assert_eq!(lost(&effects), ["build/new: it is ignored"]);
        let effects = place.during(|place| place.write("build/old", "2"));
        assert_eq!(short(&effects), ["~build/old"]);
    }
}

#[test]
fn git_folders_are_not_part_of_the_workspace_and_hidden_files_are() {
    let mut place = Place::repository();
    let effects = place.during(|place| {
        place.write(".hidden/.file", "1");
        place.write(".git/hooks/new", "1");
        place.write("vendor/inner/.git/config", "1");
        place.write("vendor/inner/file", "1");
    });
    assert_eq!(short(&effects), ["+.hidden/.file", "+vendor/inner/file"]);
}

#[test]
fn what_is_unchanged_is_kept_once() {
    let mut place = Place::new(Time::Late, WorkspaceLimits::default(), |_| {});
    for number in 0..50 {
        place.write(&format!("file{number}"), number.to_string());
    }
    assert_eq!(short(&place.during(|_| {})), [""; 0]);
    assert_eq!(place.blobs.puts(), 50);
    let effects = place.during(|place| place.write("file7", "other"));
    assert_eq!(short(&effects), ["~file7"]);
    assert_eq!(place.blobs.puts(), 51);
}

#[test]
fn nothing_is_lost_when_the_blobs_are_full_for_a_while() {
    let mut place = Place::plain();
    place.write("file", "1");
    place.during(|_| {});
    place.write("file", "2");
    place.blobs.set_full(true);
    assert!(place.workspace.begin().is_err());
    place.blobs.set_full(false);
    let outside = place.outside();
    assert_eq!(outside.changes.len(), 1);
    assert_eq!(outside.changes[0].effect.to_file_change().change, FileChangeKind::Modified);
    let effects = place.during(|place| place.write("file", "3"));
    assert_eq!(place.content(effects.changes[0].before).unwrap(), b"2");
}

#[test]
fn a_tool_that_says_what_it_writes_needs_no_walk() {
    let mut place = Place::new(Time::Real, WorkspaceLimits::default(), init);
    place.write("file", "1\n");
    place.write(".gitignore", ".env\n");
    place.write(".env", "1");
    let writing = place.workspace.about_to_write("file").unwrap();
    place.write("file", "2\n");
    let effects = place.workspace.note_written(writing).unwrap();
    assert_eq!(short(&effects), ["~file"]);
    assert_eq!(place.content(effects.changes[0].before).unwrap(), b"1\n");

    // What a tool names is kept even if it is ignored.
    place.during(|_| {});
    let absolute = place.path(".env");
    let writing = place.workspace.about_to_write(absolute.to_str().unwrap()).unwrap();
    place.write(".env", "2");
    let effects = place.workspace.note_written(writing).unwrap();
    assert_eq!(short(&effects), ["~.env"]);
    assert_eq!(place.content(effects.changes[0].before).unwrap(), b"1");

    let writing = place.workspace.about_to_write("new/file").unwrap();
    place.write("new/file", "1");
    assert_eq!(short(&place.workspace.note_written(writing).unwrap()), ["+new/file"]);
    let writing = place.workspace.about_to_write("file").unwrap();
    assert_eq!(short(&place.workspace.note_written(writing).unwrap()), [""; 0]);

    // None of it is somebody else's, and none of it comes again.
    assert_eq!(place.outside().changes, []);
    assert_eq!(short(&place.during(|_| {})), [""; 0]);
}

#[test]
fn a_file_outside_of_the_root_is_known_by_its_absolute_path() {
    let mut place = Place::plain();
    let outside = place.root().parent().unwrap().join("outside");
    fs::write(&outside, "1").unwrap();
    let path = outside.canonicalize().unwrap().to_str().unwrap().to_owned();
    let writing = place.workspace.about_to_write(&path).unwrap();
    fs::write(&outside, "2").unwrap();
    let effects = place.workspace.note_written(writing).unwrap();
    assert_eq!(short(&effects), [format!("~{path}")]);
    assert_eq!(short(&place.during(|_| {})), [""; 0]);
    let effects = place.during(|_| fs::write(&outside, "3").unwrap());
    assert_eq!(short(&effects), [format!("~{path}")]);
    place.undo(&effects);
    assert_eq!(fs::read(&outside).unwrap(), b"2");
}
