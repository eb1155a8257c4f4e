//! What git has is not kept twice, and is not lost when git forgets it.

use std::fs;
use std::path::Path;

use helve_workspace::WorkspaceLimits;

use crate::support::{Place, Time, git, init, lost, open, settle_index, short, try_git};

/// A repository whose files git is sure of.
fn committed(files: &[(&str, &str)]) -> Place {
    let place = Place::new(Time::Late, WorkspaceLimits::default(), init);
    files.iter().for_each(|(path, content)| place.write(path, content));
    place.commit_all();
    place
}

#[test]
fn clean_files_stay_in_git_and_dirty_ones_are_kept() {
    let mut place = committed(&[("clean", "1"), ("dirty", "1"), ("staged", "1")]);
    place.write("dirty", "22");
    place.write("staged", "22");
    place.git(&["add", "staged"]);
    place.write("untracked", "1");
    settle_index(&place.root());
    let watch = place.workspace.begin().unwrap();
    assert_eq!(place.blobs.puts(), 2, "the dirty one and the untracked one");
    for path in ["clean", "dirty", "staged", "untracked"] {
        place.write(path, "3");
    }
    let effects = place.workspace.end(watch).unwrap();
    assert_eq!(short(&effects), ["~clean", "~dirty", "~staged", "~untracked"]);
    let before: Vec<_> = effects.changes.iter().map(|effect| place.content(effect.before).unwrap()).collect();
    assert_eq!(before, [b"1".to_vec(), b"22".to_vec(), b"22".to_vec(), b"1".to_vec()]);
}

#[test]
fn what_a_call_makes_git_forget_can_be_brought_back() {
    let mut place = committed(&[("file", "precious"), ("other", "1")]);
    let before = place.tree();
    let effects = place.during(|place| {
        // As tools that rewrite history do: nothing refers to the old objects any more, and they are removed.
        place.git(&["rm", "-q", "file"]);
        place.git(&["commit", "-q", "--amend", "-m", "without"]);
        place.git(&["reflog", "expire", "--expire=now", "--all"]);
        place.git(&["gc", "-q", "--prune=now"]);
    });
    assert_eq!(short(&effects), ["-file"]);
    assert_eq!(lost(&effects), [""; 0]);
    place.undo(&effects);
    assert_eq!(place.tree(), before);
}

#[test]
fn what_git_forgets_between_calls_is_kept_by_content() {
    let mut place = committed(&[("file", "precious"), ("other", "1")]);
    place.during(|place| {
        place.git(&["rm", "-q", "--cached", "file"]);
        place.git(&["commit", "-q", "--amend", "-m", "without"]);
    });
    place.during(|place| {
        place.git(&["reflog", "expire", "--expire=now", "--all"]);
        place.git(&["gc", "-q", "--prune=now"]);
    });
    let effects = place.during(|place| place.remove("file"));
    assert_eq!(lost(&effects), [""; 0]);
    assert_eq!(place.content(effects.changes[0].before).unwrap(), b"precious");
}

#[test]
fn without_its_objects_it_is_said_that_a_file_is_lost() {
    let mut place = committed(&[("file", "precious")]);
    let effects = place.during(|place| {
        fs::remove_dir_all(place.path(".git")).unwrap();
        place.write("file", "2");
    });
    assert_eq!(short(&effects), ["~file"]);
    assert_eq!(lost(&effects), [".git/: it is git's own", "file: git does not have its content any more"]);
}

#[test]
fn nothing_of_ours_stays_in_the_repository() {
    let mut place = committed(&[("file", "1")]);
    place.during(|place| place.write("file", "2"));
    let root = place.root();
    assert!(git(&root, &["for-each-ref"]).contains("refs/worktree/helve"));
    assert_eq!(git(&root, &["status", "--porcelain"]), " M file\n");
    let other = open(&root, Time::Late, WorkspaceLimits::default(), &place.blobs);
    drop(std::mem::replace(&mut place.workspace, other));
    assert!(!git(&root, &["for-each-ref"]).contains("helve"));
    assert!(!root.join(".git/helve-index").exists());
}

#[test]
fn files_that_git_converts_are_kept_by_content() {
    let attributes = "*.crlf text eol=crlf\n*.id ident\n*.rot filter=rot\n*.txt text\n";
    let mut place = committed(&[(".gitattributes", attributes)]);
    place.git(&["config", "filter.rot.clean", "tr a-z n-za-m"]);
    place.git(&["config", "filter.rot.smudge", "tr a-z n-za-m"]);
    place.write("a.crlf", "one\r\ntwo\r\n");
    place.write("a.id", "$Id$\n");
    place.write("a.rot", "abc");
    place.write("a.txt", "one\n");
    place.write("mixed.txt", "one\r\ntwo\n");
    place.commit_all();
    for path in ["a.crlf", "a.id", "a.rot"] {
        place.remove(path);
    }
    place.git(&["checkout", "-q", "."]);
    settle_index(&place.root());
    assert_eq!(place.git(&["status", "--porcelain"]), "");
    let before = place.tree();
    let effects = place.during(|place| {
        for path in ["a.crlf", "a.id", "a.rot", "a.txt", "mixed.txt"] {
            place.write(path, "2");
        }
    });
    assert_eq!(effects.changes.len(), 5);
    assert_eq!(lost(&effects), [""; 0]);
    place.undo(&effects);
    assert_eq!(place.tree(), before);
}

#[test]
fn wherever_git_is_told_to_convert_it_is_heeded() {
    type Tell = fn(&Place);
    const CRLF: &str = "* text eol=crlf\n";
    let ways: [(&str, Tell); 6] = [
        ("tracked", |place| {
            place.write("deep/.gitattributes", CRLF);
            place.commit_all();
        }),
        ("untracked", |place| place.write("deep/.gitattributes", CRLF)),
        ("ignored", |place| {
            place.write("deep/.gitattributes", CRLF);
            place.write(".git/info/exclude", ".gitattributes\n");
        }),
        ("in the repository", |place| place.write(".git/info/attributes", CRLF)),
        ("by the settings", |place| {
            place.write("mine", CRLF);
            let mine = place.path("mine");
            drop(place.git(&["config", "core.attributesFile", mine.to_str().unwrap()]));
        }),
        ("everywhere", |place| drop(place.git(&["config", "core.autocrlf", "true"]))),
    ];
    for (way, tell) in ways {
        let mut place = committed(&[("deep/file", "one\ntwo\n")]);
        tell(&place);
        place.remove("deep/file");
        let setting = if way == "everywhere" { "core.autocrlf=true" } else { "core.autocrlf=false" };
        place.git(&["-c", setting, "checkout", "-q", "deep/file"]);
        settle_index(&place.root());
        let before = place.tree();
        assert_eq!(fs::read(place.path("deep/file")).unwrap(), b"one\r\ntwo\r\n", "{way}");
        let effects = place.during(|place| place.write("deep/file", "2"));
        assert_eq!(lost(&effects), [""; 0], "{way}");
        place.undo(&effects);
        assert_eq!(place.tree(), before, "{way}");
    }
}

#[test]
fn the_loss_of_a_repository_is_told() {
    let mut place = committed(&[("file", "1")]);
    for name in ["one", "two", "three"] {
        place.write(&format!("{name}/file"), "1");
        init(&place.path(name));
    }
    place.write("worktree/.git", "gitdir: ../.git/worktrees/worktree\n");
    let effects = place.during(|place| {
        fs::remove_dir_all(place.path("one/.git")).unwrap();
        fs::remove_dir_all(place.path("two")).unwrap();
        fs::remove_dir_all(place.path("three/.git/objects")).unwrap();
        place.remove("three/.git/HEAD");
        place.write("worktree/.git", "gitdir: elsewhere\n");
        // What is new is no loss.
        place.write("four/file", "1");
        init(&place.path("four"));
    });
    assert_eq!(short(&effects), ["+four/file", "-two/file"]);
    let told = ["one/.git/", "three/.git/HEAD", "three/.git/objects", "two/.git/", "worktree/.git"];
    assert_eq!(lost(&effects), told.map(|path| format!("{path}: it is git's own")));
    let effects = place.during(|place| {
        fs::remove_dir_all(place.path(".git/refs")).unwrap();
        place.remove(".git/HEAD");
    });
    assert_eq!(lost(&effects), [".git/HEAD", ".git/refs"].map(|path| format!("{path}: it is git's own")));
}

#[test]
fn what_git_tracks_is_seen_even_if_it_is_ignored() {
    let mut place = committed(&[(".gitignore", "*.log\nbuild/\n")]);
    place.write("kept.log", "1");
    place.write("build/deep/kept", "1");
    place.write("build/other", "1");
    place.git(&["add", "-f", "kept.log", "build/deep/kept"]);
    place.commit_all();
    let effects = place.during(|place| {
        place.write("kept.log", "22");
        place.remove("build/deep/kept");
        place.write("build/other", "22");
    });
    assert_eq!(short(&effects), ["-build/deep/kept", "~kept.log"]);
    assert_eq!(lost(&effects), [""; 0]);
    place.undo(&effects);
    assert_eq!(place.tree()["build/deep/kept"].1, b"1");
}

#[test]
fn an_ignored_folder_is_lost_only_with_what_git_does_not_track_in_it() {
    let mut place = committed(&[(".gitignore", "")]);
    for path in ["all/a", "all/deep/b", "some/a", "some/b", "around/a", "around/deep/b"] {
        place.write(path, "1");
    }
    place.git(&["add", "-f", "all", "some/a", "around/a"]);
    place.write(".gitignore", "all/\nsome/\naround/\n");
    place.commit_all();
    let effects = place.during(|place| {
        ["all", "some", "around"].iter().for_each(|folder| fs::remove_dir_all(place.path(folder)).unwrap());
    });
    assert_eq!(short(&effects), ["-all/a", "-all/deep/b", "-around/a", "-some/a"]);
    assert_eq!(lost(&effects), ["around/: it is ignored", "some/: it is ignored"]);
}

#[test]
fn switching_branches_is_an_effect_like_any_other() {
    let mut place = committed(&[("both", "1"), ("old", "1")]);
    place.git(&["checkout", "-q", "-b", "other"]);
    place.write("both", "2");
    place.remove("old");
    place.write("new", "1");
    place.commit_all();
    place.git(&["checkout", "-q", "main"]);
    settle_index(&place.root());
    let before = place.tree();
    let effects = place.during(|place| drop(place.git(&["checkout", "-q", "other"])));
    assert_eq!(short(&effects), ["~both", "+new", "-old"]);
    assert!(effects.changes.iter().all(|effect| effect.after.is_none_or(|image| image.content.is_some())));
    place.undo(&effects);
    assert_eq!(place.tree(), before);
}

#[test]
fn submodules_and_clones_within_are_folders_like_others() {
    let inner = committed(&[("inner", "1")]);
    let mut place = committed(&[(".gitignore", "*.log\n")]);
    place.git(&["submodule", "-q", "add", inner.root().to_str().unwrap(), "sub"]);
    place.commit_all();
    git(&place.root(), &["clone", "-q", inner.root().to_str().unwrap(), "clone"]);
    let before = place.tree();
    let effects = place.during(|place| {
        place.write("sub/inner", "22");
        place.write("clone/inner", "22");
        // The rules outside do not hold in it.
        place.write("clone/new.log", "1");
    });
    assert_eq!(short(&effects), ["~clone/inner", "+clone/new.log", "~sub/inner"]);
    place.undo(&effects);
    assert_eq!(place.tree(), before);
}

#[test]
fn a_linked_worktree_and_a_folder_within_a_repository_use_gits_objects() {
    let place = committed(&[(".gitignore", "*.log\n"), ("sub/file", "1")]);
    let linked = place.root().parent().unwrap().join("linked");
    place.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    git(&linked, &["status"]);
    std::thread::sleep(std::time::Duration::from_millis(20));
    git(&linked, &["update-index", "-q", "--really-refresh", "--force-write-index"]);
    for folder in [linked.as_path(), &place.path("sub")] {
        let is_top = folder == linked;
        let prefix = if is_top { "sub/" } else { "" };
        let mut workspace = open(folder, Time::Late, WorkspaceLimits::default(), &place.blobs);
        let puts = place.blobs.puts();
        let watch = workspace.begin().unwrap();
        assert_eq!(place.blobs.puts(), puts, "{}", folder.display());
        assert_eq!(workspace.git_trouble(), None);
        let write = |path: &str, content: &str| fs::write(folder.join(prefix).join(path), content).unwrap();
        write("file", "22");
        write("ignored.log", "1");
        let effects = workspace.end(watch).unwrap();
        assert_eq!(short(&effects), [format!("~{prefix}file")]);
        assert_eq!(lost(&effects), [""; 0]);
    }
}

#[test]
fn without_git_a_repository_is_kept_by_content() {
    let place = committed(&[("file", "1")]);
    let root = helve_workspace::WorkspaceRoot::named(&place.root()).unwrap();
    let mut workspace = helve_workspace::Workspace::new(helve_workspace::WorkspaceSetup {
        root,
        blobs: place.blobs.clone(),
        clock: std::sync::Arc::new(Time::Late),
        git: Some(helve_workspace::GitProgram {
            program: "/nonexistent/git".into(),
            leading: Vec::new(),
            environment: Vec::new(),
        }),
        limits: WorkspaceLimits::default(),
        notes: None,
    });
    let watch = workspace.begin().unwrap();
    assert!(workspace.git_trouble().is_some());
    place.write("file", "22");
    let effects = workspace.end(watch).unwrap();
    assert_eq!(place.content(effects.changes[0].before).unwrap(), b"1");
}

#[test]
fn nothing_that_a_repository_names_is_run() {
    let mut place = committed(&[(".gitattributes", "*.x filter=evil\n"), ("a.x", "1"), ("b", "1")]);
    let trap = place.root().parent().unwrap().join("trapped");
    let script = place.path(".git/trap");
    fs::write(&script, format!("#!/bin/sh\necho ran >> {}\ncat\n", trap.display())).unwrap();
    place.chmod(".git/trap", 0o755);
    let script = script.to_str().unwrap();
    for key in ["core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "core.pager"] {
        place.git(&["config", key, script]);
    }
    for hook in ["post-index-change", "reference-transaction"] {
        fs::copy(script, place.path(&format!(".git/hooks/{hook}"))).unwrap();
    }
    let effects = place.during(|place| {
        place.write("a.x", "22");
        place.write("b", "22");
    });
    assert_eq!(short(&effects), ["~a.x", "~b"]);
    assert!(!Path::new(&trap).exists(), "something ran");
}

#[test]
fn every_kind_of_index_is_read_or_left_alone() {
    let kinds: [(&[&str], &[&str], bool); 4] = [
        (&["init", "-q"], &["update-index", "--index-version", "2"], true),
        (&["init", "-q"], &["update-index", "--index-version", "4"], true),
        (&["init", "-q", "--object-format=sha256"], &["status"], true),
        (&["init", "-q"], &["update-index", "--split-index"], false),
    ];
    for (init, then, is_read) in kinds {
        let mut place = Place::new(Time::Late, WorkspaceLimits::default(), |root| drop(git(root, init)));
        for path in ["a", "deep/er/file", "deep/er/files", "deep/other", "z"] {
            place.write(path, path);
        }
        place.git(&["add", "-A"]);
        settle_index(&place.root());
        place.git(then);
        let watch = place.workspace.begin().unwrap();
        assert_eq!(place.workspace.git_trouble().is_none(), is_read, "{then:?}");
        assert_eq!(place.blobs.puts(), if is_read { 0 } else { 5 }, "{then:?}");
        place.write("deep/er/files", "2");
        let effects = place.workspace.end(watch).unwrap();
        assert_eq!(short(&effects), ["~deep/er/files"]);
        assert_eq!(place.content(effects.changes[0].before).unwrap(), b"deep/er/files");
    }
}

#[test]
fn an_index_that_can_no_longer_be_read_loses_nothing() {
    let mut place = committed(&[("file", "precious"), ("other", "1")]);
    let effects = place.during(|place| {
        place.git(&["update-index", "--split-index"]);
        place.write("file", "2");
    });
    assert!(place.workspace.git_trouble().is_some());
    assert_eq!(lost(&effects), [""; 0]);
    assert_eq!(place.content(effects.changes[0].before).unwrap(), b"precious");
    let effects = place.during(|place| place.remove("other"));
    assert_eq!(lost(&effects), [""; 0]);
}

#[test]
fn a_conflict_is_kept_by_content() {
    let mut place = committed(&[("file", "1\n")]);
    place.git(&["checkout", "-q", "-b", "other"]);
    place.write("file", "2\n");
    place.commit_all();
    place.git(&["checkout", "-q", "main"]);
    place.write("file", "3\n");
    place.commit_all();
    assert!(!try_git(&place.root(), &["merge", "other"]).status.success(), "there must be a conflict");
    let before = place.tree();
    let effects = place.during(|place| drop(place.git(&["checkout", "-q", "--ours", "file"])));
    assert_eq!(short(&effects), ["~file"]);
    place.undo(&effects);
    assert_eq!(place.tree(), before);
}

/// In the middle of a merge nothing can be made a tree of, and what is staged is in no commit.
#[test]
fn what_is_staged_is_held_also_during_a_conflict() {
    let mut place = committed(&[("file", "base\n")]);
    place.git(&["checkout", "-q", "-b", "other"]);
    place.write("file", "theirs\n");
    place.commit_all();
    place.git(&["checkout", "-q", "-"]);
    place.write("file", "ours\n");
    place.commit_all();
    assert!(!try_git(&place.root(), &["merge", "-q", "other"]).status.success());
    place.write("work", "staged and nowhere else");
    place.git(&["add", "work"]);
    std::thread::sleep(std::time::Duration::from_millis(20));
    place.write("file", "half merged\n");
    let effects = place.during(|place| {
        place.git(&["reset", "-q", "--hard"]);
        place.git(&["gc", "-q", "--prune=now"]);
    });
    assert_eq!(lost(&effects), [""; 0]);
    let work = effects.changes.iter().find(|effect| effect.path == "work").unwrap();
    assert_eq!(place.content(work.before).unwrap(), b"staged and nowhere else");
}

#[test]
fn two_workspaces_of_one_repository_hold_for_themselves() {
    let mut place = committed(&[("file", "1")]);
    place.write("work", "staged and nowhere else");
    place.git(&["add", "work"]);
    settle_index(&place.root());
    let mut other = open(&place.root(), Time::Late, WorkspaceLimits::default(), &place.blobs);
    let watch = other.begin().unwrap();
    place.during(|_| {});
    let _ = other.end(watch).unwrap();
    drop(other);
    let effects = place.during(|place| {
        place.git(&["reset", "-q", "--hard"]);
        place.git(&["gc", "-q", "--prune=now"]);
    });
    assert_eq!(lost(&effects), [""; 0]);
}

#[test]
fn what_a_killed_process_held_is_let_go() {
    let mut place = committed(&[("file", "1")]);
    let tree = place.git(&["rev-parse", "HEAD^{tree}"]);
    // No process has this number.
    place.git(&["update-ref", "refs/worktree/helve/999999999-0", tree.trim()]);
    place.during(|place| place.write("file", "2"));
    let held = place.git(&["for-each-ref", "--format=%(refname)", "refs/worktree/helve"]);
    assert_eq!(held.lines().count(), 1, "{held}");
    assert!(!held.contains("999999999"), "{held}");
}

/// Git reads what has this name, and waits for a pipe for ever.
#[test]
fn a_pipe_in_the_place_of_gits_own_files_stops_nothing() {
    let mut place = committed(&[("file", "1")]);
    for path in [".gitignore", "info/exclude"] {
        let path = if path == ".gitignore" { place.path(path) } else { place.path(".git").join(path) };
        let _ = fs::remove_file(&path);
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, 0o600.into()).unwrap();
    }
    let effects = place.during(|place| place.write("file", "2"));
    assert_eq!(short(&effects), ["~file"]);
}

/// Git was given minutes for each of these, with every command anew, and was left behind.
#[test]
fn a_pipe_in_the_place_of_attributes_is_not_waited_for() {
    for path in [".gitattributes", "deep/.gitattributes"] {
        let mut place = committed(&[(".gitattributes", "*.x text\n"), ("deep/file", "1"), ("file", "1")]);
        let _ = fs::remove_file(place.path(path));
        rustix::fs::mkfifoat(rustix::fs::CWD, place.path(path), 0o600.into()).unwrap();
        let effects = place.during(|place| place.write("file", "2"));
        assert_eq!(short(&effects), ["~file"]);
        assert!(place.workspace.git_trouble().unwrap().contains("is not a file"), "{path}");
    }
}

#[test]
fn who_does_not_answer_is_not_asked_again() {
    let place = committed(&[("file", "1")]);
    let asked = place.root().with_file_name("asked");
    let script = format!("echo >> '{}'; exec sleep 60", asked.display());
    let mut workspace = helve_workspace::Workspace::new(helve_workspace::WorkspaceSetup {
        root: helve_workspace::WorkspaceRoot::named(&place.root()).unwrap(),
        blobs: place.blobs.clone(),
        clock: std::sync::Arc::new(Time::Late),
        git: Some(helve_workspace::GitProgram {
            program: "/bin/sh".into(),
            leading: vec!["-c".into(), script.into()],
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        }),
        limits: WorkspaceLimits::default(),
        notes: None,
    });
    for content in ["22", "333", "4444"] {
        let watch = workspace.begin().unwrap();
        place.write("file", content);
        settle_index(&place.root());
        assert_eq!(short(&workspace.end(watch).unwrap()), ["~file"]);
    }
    assert!(workspace.git_trouble().unwrap().contains("did not answer"));
    assert_eq!(fs::read_to_string(asked).unwrap().lines().count(), 1);
}
