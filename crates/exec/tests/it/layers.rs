//! Folders of the user that a command changes only for its project.

use std::fs;

use crate::Mark;
use crate::escape::{Ground, User, users};

/// What makes a command of a project see the user's caches.
fn settings(ground: &Ground, project: &str) -> Vec<String> {
    let home = ground.path("home").display().to_string();
    let mut settings = ground.settings("full");
    settings.retain(|setting| !setting.starts_with("scratch"));
    settings.extend([
        format!("layer={}", ground.path("private").join(project).display()),
        format!("base={home}"),
        format!("over={home}/.cache/tool"),
        format!("over={home}/.absent/deep"),
        format!("own={home}/.cache"),
        format!("hidden={home}"),
        format!("hidden={}", ground.path("private").display()),
    ]);
    settings
}

/// The grounds where it can be done, each with something in the user's cache.
fn grounds() -> impl Iterator<Item = (User, Ground)> {
    users().into_iter().filter_map(|user| {
        let ground = Ground::reachable(user)?;
        ground.make("home/.cache/tool/sub/old", "the user's");
        ground.make("home/.cache/secret", "a secret");
        fs::create_dir_all(ground.path("private")).unwrap();
        ground.give("private");
        let outcome = ground.run(&settings(&ground, "probe"), &["true"]);
        if outcome.code != Some(0) {
            helve_testkit::skip("layers", &format!("{user:?}: {}", outcome.said.trim_end()));
        }
        (outcome.code == Some(0)).then_some((user, ground))
    })
}

fn sh(ground: &Ground, settings: &[String], script: &str) -> String {
    ground.run(settings, &["sh", "-c", &format!("cd {}; {script}", ground.path("home").display())]).said
}

#[test]
fn what_a_project_changes_only_it_sees() {
    for (user, ground) in grounds() {
        let (one, other) = (settings(&ground, "one"), settings(&ground, "other"));
        let change = "echo poison > .cache/tool/sub/old && echo new > .cache/tool/new && rm -f .cache/tool/x && \
            mkdir .absent/deep/folder && echo mine > .cache/own && chmod 700 .cache/tool/sub && echo done";
        assert_eq!(sh(&ground, &one, change), "done\n", "{user:?}");
        let look = "cat .cache/tool/sub/old .cache/tool/new .cache/own; ls -A .absent/deep; ls -A .cache .";
        let said = sh(&ground, &one, look);
        assert_eq!(
            said, "poison\nnew\nmine\nfolder\n.:\n.absent\n.cache\n\n.cache:\nown\ntool\n",
            "{user:?}"
        );
        let said = sh(&ground, &other, look);
        assert!(
            said.starts_with("the user's") && !said.contains("poison") && !said.contains("mine"),
            "{said}"
        );
        assert!(!said.contains("folder") && !said.contains("secret"), "{user:?}: {said}");
        assert_eq!(fs::read_to_string(ground.path("home/.cache/tool/sub/old")).unwrap(), "the user's");
        for name in [".cache/tool/new", ".cache/own", ".absent"] {
            assert!(!ground.path("home").join(name).exists(), "{user:?} {name}");
        }
        // Removing is a change like any other.
        assert_eq!(sh(&ground, &one, "rm -r .cache/tool/*; ls .cache/tool"), "");
        assert_eq!(sh(&ground, &one, "ls .cache/tool; mkdir .cache/tool/sub; ls .cache/tool/sub"), "");
        assert_eq!(fs::read_to_string(ground.path("home/.cache/tool/sub/old")).unwrap(), "the user's");
    }
}

/// What the user wants to be seen is seen also where the project has a folder of its own.
#[test]
fn what_is_shown_is_seen_in_a_folder_of_the_projects_own() {
    for (user, ground) in grounds() {
        ground.make("home/.cache/other/models/weights", "large");
        let mut settings = settings(&ground, "one");
        settings.push(format!("shown={}", ground.path("home/.cache/other/models").display()));
        let said = sh(
            &ground,
            &settings,
            "cat .cache/other/models/weights; echo; cat .cache/secret; \
            echo x > .cache/other/models/weights; echo mine > .cache/own; cat .cache/own",
        );
        assert!(said.starts_with("large\n") && said.contains("mine\n"), "{user:?}: {said}");
        assert!(!said.contains("a secret"), "{user:?}: {said}");
        assert_eq!(fs::read_to_string(ground.path("home/.cache/other/models/weights")).unwrap(), "large");
    }
}

/// Two mounts of one layer would destroy it.
#[test]
fn who_runs_beside_another_sees_what_was_kept_and_keeps_nothing() {
    for (user, ground) in grounds() {
        let settings = settings(&ground, "one");
        sh(&ground, &settings, "echo kept > .cache/tool/kept");
        let mark = Mark::new();
        let script =
            format!("cd {}; echo first > .cache/tool/first; sleep 60", ground.path("home").display());
        let mut first = ground.start_marked(&mark, &settings, &["sh", "-c", &script]);
        mark.wait_for(2);
        crate::until("the first to have written", || {
            sh(&ground, &settings, "cat .cache/tool/first").contains("first")
        });
        let said = sh(
            &ground,
            &settings,
            "cat .cache/tool/kept .cache/tool/sub/old; echo x > .cache/tool/second; cat .cache/tool/second; echo y > .absent/deep/y; cat .absent/deep/y",
        );
        assert_eq!(said, "kept\nthe user'sx\ny\n", "{user:?}");
        first.kill().unwrap();
        first.wait().unwrap();
        mark.wait_until_gone();
        crate::until("the layer to be free", || sh(&ground, &settings, "cat .cache/tool/first") == "first\n");
        assert_eq!(sh(&ground, &settings, "ls .cache/tool"), "first\nkept\nsub\n", "{user:?}");
        // Nothing of the others is left.
        crate::until("the spare layers to be gone", || {
            let names = fs::read_dir(ground.path("private/one")).unwrap().flatten();
            !names.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with("once-"))
        });
    }
}

/// A name may hold whatever it likes.
#[test]
fn a_folder_with_a_strange_name_is_layered_too() {
    for (user, ground) in grounds() {
        let name = format!("home/a,b:c\\d e/{}", "long-".repeat(45));
        ground.make(&format!("{name}/file"), "old");
        let at = ground.path(&name).display().to_string();
        let mut settings = settings(&ground, "one");
        settings.push(format!("over={at}"));
        let outcome = ground.run(&settings, &["sh", "-c", "cat \"$0/file\"; echo new > \"$0/file\"", &at]);
        assert_eq!(outcome.said, "old", "{user:?}");
        assert_eq!(ground.run(&settings, &["cat", &format!("{at}/file")]).said, "new\n");
        assert_eq!(fs::read_to_string(format!("{at}/file")).unwrap(), "old");
    }
}

#[test]
fn what_a_killed_command_left_can_be_mounted_again_and_removed() {
    for (user, ground) in grounds() {
        let settings = settings(&ground, "one");
        let mark = Mark::new();
        let script = format!(
            "cd {}/.cache/tool; rm -r sub; mkdir -m 0 closed; sleep 60",
            ground.path("home").display()
        );
        let mut first = ground.start_marked(&mark, &settings, &["sh", "-c", &script]);
        mark.wait_for(2);
        crate::until("the folder", || sh(&ground, &settings, "ls .cache/tool").contains("closed"));
        first.kill().unwrap();
        first.wait().unwrap();
        mark.wait_until_gone();
        assert_eq!(sh(&ground, &settings, "ls .cache/tool"), "closed\n", "{user:?}");
        if user == User::Oneself {
            helve_exec::remove_tree(&ground.path("private/one")).unwrap();
            assert!(!ground.path("private/one").exists());
        }
    }
}
