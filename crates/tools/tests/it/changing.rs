//! What `write`, `edit` and `apply_patch` do to real files.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use helve_tools::SessionFiles;
use helve_workspace::{TextEncoding, TextFile};
use proptest::prelude::*;
use serde_json::json;

use crate::world::World;

/// A project with `f`, which was read.
fn known(content: impl AsRef<[u8]>) -> World {
    let world = World::new();
    world.put("f", content);
    world.read("f").unwrap();
    world
}

fn enveloped(body: &str) -> String {
    format!("*** Begin Patch\n{body}*** End Patch\n")
}

#[test]
fn a_new_file_is_made_with_its_folders() {
    let world = World::new();
    let output = world.write("a/b/c.txt", "one\ntwo\n").unwrap();
    assert_eq!(output.text, "a/b/c.txt was made: 2 lines.");
    assert!(output.display.unwrap().starts_with("a/b/c.txt: +2 -0\n--- /dev/null\n"));
    assert_eq!(world.text("a/b/c.txt"), "one\ntwo\n");
    // What was written is known.
    assert!(world.write("a/b/c.txt", "three\n").unwrap().text.contains("was replaced: 1 line."));
    assert_eq!(world.all().len(), 1, "nothing else is left");
}

#[test]
fn what_was_not_read_is_not_replaced() {
    let world = World::new();
    world.put("f", "mine\n");
    let refused = world.write("f", "yours\n").unwrap_err();
    assert!(refused.contains("Read it first"), "{refused}");
    assert_eq!(world.text("f"), "mine\n");
    world.read("f").unwrap();
    world.write("f", "yours\n").unwrap();
    assert_eq!(world.text("f"), "yours\n");
}

#[test]
fn what_was_read_in_part_is_not_replaced() {
    let world = World::new();
    world.put("f", "1\n2\n3\n4\n");
    world.look(json!({ "path": "f", "limit": 2 })).unwrap();
    let refused = world.write("f", "new\n").unwrap_err();
    assert!(refused.contains("offset 3"), "{refused}");
    world.look(json!({ "path": "f", "offset": 3 })).unwrap();
    world.write("f", "new\n").unwrap();
}

#[test]
fn a_person_replaces_what_they_like() {
    let world = World::with(SessionFiles::for_person());
    world.put("f", "mine\n");
    world.write("f", "yours\n").unwrap();
    assert_eq!(world.text("f"), "yours\n");
}

#[test]
fn what_the_user_did_meanwhile_is_kept_and_told() {
    let world = known("a\nb\nc\nd\ne\n");
    world.put("f", "a\nb\nc\nd\nE\nf\n");
    let output = world.write("f", "A\nb\nc\nd\ne\n").unwrap();
    assert_eq!(world.text("f"), "A\nb\nc\nd\nE\nf\n");
    assert!(output.text.contains("was replaced") && output.text.contains("somebody else"), "{}", output.text);
    assert!(output.text.contains("lines 5-6:\n-e\n+E\n+f"), "{}", output.text);
    // Now it knows, and means it.
    world.write("f", "only this\n").unwrap();
    assert_eq!(world.text("f"), "only this\n");
}

#[test]
fn a_conflict_is_refused_with_what_is_there() {
    let world = known("a\nb\nc\n");
    world.put("f", "a\nuser\nc\n");
    for refused in [world.write("f", "a\nagent\nc\n"), world.edit("f", "b", "agent")] {
        let refused = refused.unwrap_err();
        assert!(refused.contains("There is now:\n     2\tuser"), "{refused}");
        assert!(refused.contains("You want:\n     2\tagent"), "{refused}");
        assert_eq!(world.text("f"), "a\nuser\nc\n");
    }
    let patch = enveloped("*** Update File: f\n@@\n a\n-b\n+agent\n c\n");
    assert!(world.patch(&patch).unwrap_err().contains("There is now:"));
    world.read("f").unwrap();
    world.edit("f", "user", "agent").unwrap();
    assert_eq!(world.text("f"), "a\nagent\nc\n");
}

#[test]
fn a_change_that_somebody_made_already_is_not_claimed() {
    let world = known("a\nb\nc\n");
    world.put("f", "a\nB\nc\n");
    let output = world.edit("f", "b", "B").unwrap();
    assert!(output.text.starts_with("f says so already"), "{}", output.text);
    assert_eq!(world.text("f"), "a\nB\nc\n");
}

#[test]
fn changes_that_were_not_all_told_must_be_read() {
    let many: String = (0..500).map(|line| format!("{line}\n")).collect();
    let world = known("first\nlast\n");
    world.put("f", format!("first\nlast\n\n{many}"));
    let output = world.edit("f", "first", "FIRST").unwrap();
    assert!(output.text.contains("there is more: read the file again"), "{}", output.text);
    assert!(world.write("f", "gone\n").unwrap_err().contains("Only a part"));
}

#[test]
fn a_file_that_was_deleted_meanwhile_is_made_again() {
    let world = known("a\n");
    fs::remove_file(world.path("f")).unwrap();
    assert!(world.write("f", "b\n").unwrap().text.contains("was made"));
}

#[test]
fn edits_are_made_all_or_none() {
    let world = known("a\nb\nc\n");
    let refused =
        world.edits("f", json!([{ "old": "a", "new": "A" }, { "old": "nope", "new": "x" }])).unwrap_err();
    assert!(refused.contains("edit 2"), "{refused}");
    assert_eq!(world.text("f"), "a\nb\nc\n");
    let output =
        world.edits("f", json!([{ "old": "a", "new": "A" }, { "old": "c", "new": "C\nD" }])).unwrap();
    assert_eq!(world.text("f"), "A\nb\nC\nD\n");
    assert_eq!(output.text, "f was edited.\n     1\tA\n     2\tb\n     3\tC\n     4\tD");
    assert!(output.display.unwrap().starts_with("f: +3 -2\n--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n"));
    assert!(world.edits("f", json!([])).is_err());
    assert!(world.edit("missing", "a", "b").unwrap_err().contains("Use write"));
}

#[test]
fn an_edit_tells_how_it_matched() {
    let world = World::new();
    world.put("f", "    if a {\n        b();\n    }\n");
    let output = world.edit("f", "if a {\n    b();\n}\n", "if a {\n    c();\n}\n").unwrap();
    assert!(output.text.contains("Edit 1 matched at the file's indentation."), "{}", output.text);
    let output = world.edits("f", json!([{ "old": " ", "new": "\t", "all": true }])).unwrap();
    assert!(output.text.contains("places."), "{}", output.text);
}

#[test]
fn an_edit_keeps_what_the_user_did_meanwhile() {
    let world = known("a\nb\nc\nd\n");
    world.put("f", "a\nb\nc\nd\nuser\n");
    let output = world.edit("f", "a\n", "A\n").unwrap();
    assert_eq!(world.text("f"), "A\nb\nc\nd\nuser\n");
    assert!(output.text.contains("+user"), "{}", output.text);
    // What the model never read but knows from elsewhere is edited as it stands.
    world.put("f", "other\nlines\n");
    world.edit("f", "other", "OTHER").unwrap();
    assert_eq!(world.text("f"), "OTHER\nlines\n");
}

#[test]
fn a_place_that_moved_is_not_mistaken_for_another() {
    let world = known("target\nx\ny\nz\n");
    // The user changed the line that is meant, and there is one like it elsewhere.
    world.put("f", "changed\nx\ny\nz\ntarget\n");
    assert!(world.edit("f", "target", "agent").unwrap_err().contains("same places"));
    assert_eq!(world.text("f"), "changed\nx\ny\nz\ntarget\n");
}

#[test]
fn a_patch_changes_all_files() {
    let world = World::new();
    world.put("up", "a\nb\n");
    world.put("old/name", "x\ny\n");
    world.put("gone", "z\n");
    fs::set_permissions(world.path("old/name"), fs::Permissions::from_mode(0o755)).unwrap();
    let patch = enveloped(
        "*** Update File: up\n@@\n-a\n+A\n*** Update File: old/name\n*** Move to: new/name\n@@\n-x\n+X\n\
         *** Delete File: gone\n*** Add File: deep/er\n+made\n",
    );
    let output = world.patch(&patch).unwrap();
    assert_eq!(
        output.text,
        "up was changed.\n     1\tA\n     2\tb\nold/name was moved to new/name.\n     1\tX\n     2\ty\ngone was deleted.\ndeep/er was made: 1 line."
    );
    let display = output.display.unwrap();
    assert!(display.contains("+++ b/up\n") && display.contains("+++ b/new/name\n"), "{display}");
    assert!(display.contains("--- a/gone\n+++ /dev/null\n"), "{display}");
    let all = [("deep/er", "made\n"), ("new/name", "X\ny\n"), ("up", "A\nb\n")];
    assert_eq!(world.all(), all.map(|(name, text)| (name.to_owned(), text.to_owned())).into());
    assert_eq!(fs::metadata(world.path("new/name")).unwrap().mode() & 0o777, 0o755);
}

#[test]
fn a_patch_that_fails_in_one_file_changes_none() {
    let world = World::new();
    world.put("one", "a\n");
    world.put("file", "b\n");
    let before = world.all();
    for last in [
        "*** Update File: file\n@@\n-nope\n+x\n",
        "*** Add File: file/below\n+x\n",
        "*** Delete File: missing\n",
        "*** Add File: ../outside\n+x\n",
        "*** Add File: file\n+not read\n",
        "*** Update File: sub/../file\n@@\n-b\n+c\n*** Update File: file\n@@\n-b\n+d\n",
    ] {
        let patch = enveloped(&format!("*** Update File: one\n@@\n-a\n+A\n*** Add File: new/x\n+x\n{last}"));
        world.patch(&patch).unwrap_err();
        assert_eq!(world.all(), before, "{last}");
        assert!(!world.path("new").exists(), "{last}");
    }
}

#[test]
fn a_patch_merges_with_what_the_user_did() {
    let world = known("a\nb\nc\nd\n");
    world.put("f", "a\nb\nc\nd\nuser\n");
    let output = world.patch(&enveloped("*** Update File: f\n*** Move to: g\n@@\n-a\n+A\n b\n")).unwrap();
    assert_eq!(world.text("g"), "A\nb\nc\nd\nuser\n");
    assert!(output.text.contains("+user") && !world.path("f").exists());
    world.put("g", "user\n");
    let refused = world.patch(&enveloped("*** Delete File: g\n")).unwrap_err();
    assert!(refused.contains("changed since you read it"), "{refused}");
    assert_eq!(world.text("g"), "user\n");
}

#[test]
fn nothing_outside_the_project_is_written() {
    let world = World::new();
    let outside = world.outside("f");
    fs::write(&outside, "mine\n").unwrap();
    fs::create_dir(world.outside("folder")).unwrap();
    symlink(&outside, world.path("link")).unwrap();
    symlink(world.outside("folder"), world.path("way")).unwrap();
    symlink(world.outside("not-yet"), world.path("dangling")).unwrap();
    let absolute = outside.to_str().unwrap().to_owned();
    for name in ["../f", &absolute, "link", "way/new", "dangling", "nope/../../f", "."] {
        world.read(name).ok();
        let refused = world.write(name, "yours\n").unwrap_err();
        assert!(refused.contains("not in the project") || refused.contains("does not exist"), "{refused}");
        assert!(world.edit(name, "mine", "yours").is_err());
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), "mine\n");
    assert_eq!(fs::read_dir(world.outside("folder")).unwrap().count(), 0);
    assert!(!world.outside("not-yet").exists());
}

#[test]
fn links_modes_and_owners_stay() {
    let world = World::new();
    world.put("real/file", "a\n");
    symlink("real/file", world.path("link")).unwrap();
    fs::set_permissions(world.path("real/file"), fs::Permissions::from_mode(0o4751)).unwrap();
    let owner = |facts: fs::Metadata| (facts.uid(), facts.gid());
    // Only root may give a file away; everybody else checks that it stays theirs.
    let _ = std::os::unix::fs::chown(world.path("real/file"), Some(1234), Some(1234));
    let before = owner(fs::metadata(world.path("real/file")).unwrap());
    let mode = fs::set_permissions(world.path("real/file"), fs::Permissions::from_mode(0o4751));
    mode.unwrap();
    world.edit("link", "a", "b").unwrap();
    world.read("link").unwrap();
    world.write("link", "c\n").unwrap();
    world.patch(&enveloped("*** Update File: link\n@@\n-c\n+d\n")).unwrap();
    let facts = fs::metadata(world.path("real/file")).unwrap();
    assert_eq!(world.text("real/file"), "d\n");
    assert_eq!((facts.mode() & 0o7777, owner(facts)), (0o4751, before));
    assert_eq!(fs::read_link(world.path("link")).unwrap().to_str(), Some("real/file"));
    assert!(world.patch(&enveloped("*** Delete File: link\n")).unwrap_err().contains("is a link"));
    symlink("real/later", world.path("dangling")).unwrap();
    world.write("dangling", "made\n").unwrap();
    assert_eq!(world.text("real/later"), "made\n");
    assert!(world.path("dangling").is_symlink());
    symlink("round", world.path("round")).unwrap();
    world.write("round", "x").unwrap_err();
}

/// The rights of a file as the kernel keeps them: its user and this one may read, nobody else.
fn rights_of(user: u32) -> Vec<u8> {
    let entries =
        [(1_u16, 6_u16, u32::MAX), (2, 4, user), (4, 0, u32::MAX), (16, 4, u32::MAX), (32, 0, u32::MAX)];
    let entry = |(tag, may, id): (u16, u16, u32)| {
        [tag.to_le_bytes().as_slice(), &may.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    [2_u32.to_le_bytes().to_vec()].into_iter().chain(entries.map(entry)).flatten().collect()
}

#[test]
fn extended_attributes_and_rights_stay() {
    let world = known("a\n");
    let set = |file: &str, name: &str, value: &[u8]| {
        rustix::fs::setxattr(world.path(file), name, value, rustix::fs::XattrFlags::empty())
    };
    let get = |file: &str, name: &str| {
        let mut value = vec![0; 1_000];
        let size = rustix::fs::getxattr(world.path(file), name, value.as_mut_slice()).ok()?;
        value.truncate(size);
        Some(value)
    };
    if set("f", "user.origin", b"x\0y").is_err() {
        return helve_testkit::skip(
            "extended_attributes_and_rights_stay",
            "the file system of temporary files has no extended attributes",
        );
    }
    set("f", "user.empty", b"").unwrap();
    let has_rights = set("f", "system.posix_acl_access", &rights_of(1234)).is_ok();
    let mode = fs::metadata(world.path("f")).unwrap().mode();
    let must_be_there = |file: &str| {
        assert_eq!(get(file, "user.origin").as_deref(), Some(b"x\0y".as_slice()), "{file}");
        assert_eq!(get(file, "user.empty").as_deref(), Some(b"".as_slice()));
        let rights = get(file, "system.posix_acl_access");
        assert_eq!(rights, has_rights.then(|| rights_of(1234)), "{file}");
        assert_eq!(fs::metadata(world.path(file)).unwrap().mode(), mode);
    };
    world.edit("f", "a", "b").unwrap();
    must_be_there("f");
    world.write("f", "c\n").unwrap();
    must_be_there("f");
    world.patch(&enveloped("*** Update File: f\n*** Move to: g\n@@\n-c\n+d\n")).unwrap();
    must_be_there("g");
    // What a folder gives to new files, an old one has not.
    world.put("plain", "a\n");
    if has_rights {
        set("", "system.posix_acl_default", &rights_of(1235)).unwrap();
    }
    world.edit("plain", "a", "b").unwrap();
    assert_eq!(get("plain", "system.posix_acl_access"), None);
}

#[test]
fn other_names_of_a_file_are_told_that_they_keep_the_old_text() {
    let world = known("a\n");
    let link = |to: &str| fs::hard_link(world.path("f"), world.path(to)).unwrap();
    let note = "f has 2 names (hard links); the others keep the old text.";
    link("by-edit");
    let told = world.edit("f", "a", "b").unwrap().text;
    assert!(told.starts_with(&format!("f was edited.\n{note}\n")), "{told}");
    assert!(!world.edit("f", "b", "c").unwrap().text.contains("hard links"), "it has one name now");
    link("by-write");
    assert_eq!(world.write("f", "d\n").unwrap().text, format!("f was replaced: 1 line.\n{note}"));
    link("by-patch");
    let told = world.patch(&enveloped("*** Update File: f\n@@\n-d\n+e\n")).unwrap().text;
    assert_eq!(told, format!("f was changed.\n     1\te\n{note}"));
    assert_eq!(
        (world.text("by-edit"), world.text("by-write"), world.text("by-patch")),
        ("a\n".into(), "c\n".into(), "d\n".into())
    );
}

#[test]
fn what_is_no_text_or_read_only_is_left_alone() {
    let world = known(b"caf\xe9\n");
    assert!(world.write("f", "x").unwrap_err().contains("UTF-8"));
    assert!(world.edit("f", "caf", "tea").unwrap_err().contains("UTF-8"));
    assert_eq!(world.bytes("f"), b"caf\xe9\n");
    let world = known("a\n");
    fs::set_permissions(world.path("f"), fs::Permissions::from_mode(0o444)).unwrap();
    assert!(world.edit("f", "a", "b").unwrap_err().contains("read-only"));
    fs::create_dir(world.path("folder")).unwrap();
    assert!(world.write("folder", "x").unwrap_err().contains("is a folder"));
}

#[test]
fn the_whole_file_may_be_another_and_its_form_stays() {
    let utf16 = |text: &str| TextFile { text: text.to_owned(), encoding: TextEncoding::Utf16Be }.to_bytes();
    let world = known(utf16("é\r\nb\r\n"));
    world.write("f", "é\nnew\nb\n").unwrap();
    assert_eq!(world.bytes("f"), utf16("é\r\nnew\r\nb\r\n"));
    let world = known("\u{feff}a\n");
    world.write("f", "\u{feff}b\n").unwrap();
    assert_eq!(world.text("f"), "\u{feff}b\n");
    let patch = enveloped("*** Add File: f\n+c\n+d\n");
    let world = known("\u{feff}a\r\n");
    world.patch(&patch).unwrap();
    assert_eq!(world.text("f"), "\u{feff}c\r\nd\r\n");
}

fn encodings() -> impl Strategy<Value = TextEncoding> {
    prop_oneof![
        Just(TextEncoding::Utf8),
        Just(TextEncoding::Utf8WithBom),
        Just(TextEncoding::Utf16Le),
        Just(TextEncoding::Utf16Be)
    ]
}

/// Lines that are all different, and their endings.
fn file() -> impl Strategy<Value = Vec<(String, &'static str)>> {
    let ending = prop_oneof![Just("\n"), Just("\r\n")];
    let lines = prop::collection::vec(("[a-zé€😀 ]{0,5}", ending), 1..10);
    (lines, any::<bool>()).prop_map(|(lines, is_ended)| {
        let last = lines.len() - 1;
        let numbered = |(n, (line, ending)): (usize, (String, &'static str))| {
            (format!("{line}#{n}#"), if n == last && !is_ended { "" } else { ending })
        };
        lines.into_iter().enumerate().map(numbered).collect()
    })
}

fn joined(lines: &[(String, &'static str)]) -> String {
    lines.iter().flat_map(|(line, ending)| [line.as_str(), ending]).collect()
}

/// What somebody does to a line of a file.
fn touch(lines: &mut Vec<(String, &'static str)>, at: usize, how: u8, by: &str) {
    let at = at % lines.len().max(1);
    match how {
        0 => lines.insert(at, (format!("{by} came"), "\n")),
        1 if lines.len() > 1 => drop(lines.remove(at)),
        _ => lines[at].0.push_str(by),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn an_edit_changes_only_what_it_says(lines in file(), encoding in encodings(), at: prop::sample::Index, new in "[a-z]{1,5}") {
        let world = World::new();
        let at = at.index(lines.len());
        world.put("f", TextFile { text: joined(&lines), encoding }.to_bytes());
        world.edit("f", &lines[at].0, &new).unwrap();
        let mut expected = lines.clone();
        expected[at].0 = new;
        prop_assert_eq!(world.bytes("f"), TextFile { text: joined(&expected), encoding }.to_bytes());
    }

    /// Whatever both do, a line of the user's is there afterwards, or nothing was written.
    #[test]
    fn no_line_of_the_users_is_lost(
        lines in file(), encoding in encodings(), agent in any::<prop::sample::Index>(), how_agent in 0..3_u8,
        users in prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8), 0..3), whole: bool,
    ) {
        let world = known(TextFile { text: joined(&lines), encoding }.to_bytes());
        let (mut user, mut wanted) = (lines.clone(), lines.clone());
        for (at, how) in users {
            touch(&mut user, at.index(100), how, " user");
        }
        let there = TextFile { text: joined(&user), encoding }.to_bytes();
        world.put("f", &there);
        touch(&mut wanted, agent.index(100), how_agent, " agent");
        let outcome = if whole {
            world.write("f", &joined(&wanted))
        } else {
            let first = lines[0].0.clone();
            world.edit("f", &first, &format!("{first} agent"))
        };
        if outcome.is_err() {
            prop_assert_eq!(world.bytes("f"), there);
            return Ok(());
        }
        let after = TextFile::read(&world.bytes("f")).unwrap();
        prop_assert_eq!(after.encoding, encoding);
        for (line, _) in user.iter().filter(|(line, _)| line.contains("user")) {
            prop_assert!(after.text.contains(line.as_str()), "{line:?} is lost in {:?}", after.text);
        }
    }
}

/// A line of which only the beginning was shown may hold anything.
#[test]
fn what_has_a_line_that_was_not_shown_whole_is_not_replaced() {
    let world = World::new();
    let long = format!("first\n{}\nlast\n", "x".repeat(5_000));
    world.put("f", &long);
    assert!(world.read("f").unwrap().contains("[cut: 3000 letters more]"));
    let refused = world.write("f", "new\n").unwrap_err();
    assert!(refused.contains("Line 2 of f is too long") && refused.contains("edit"), "{refused}");
    assert_eq!(world.text("f"), long);
    world.edit("f", "first", "1st").unwrap();
    assert!(world.write("f", "new\n").is_err());
    assert_eq!(world.text("f"), long.replace("first", "1st"));
}

/// An edit that fits only what somebody else made of the file says what that is.
#[test]
fn what_somebody_did_is_not_lost_after_an_edit_of_it() {
    let lines = |change: &[(usize, &str)]| -> String {
        let line = |at: usize| {
            let changed = change.iter().find(|(number, _)| *number == at);
            changed.map_or_else(|| format!("line {at}\n"), |(_, text)| format!("{text}\n"))
        };
        (1..=20).map(line).collect()
    };
    for by_patch in [false, true] {
        let world = known(lines(&[]));
        world.put("f", lines(&[(3, "USER-A"), (15, "USER-B")]));
        let told = match by_patch {
            false => world.edit("f", "USER-A", "agent-A"),
            true => world.patch(&enveloped("*** Update File: f\n@@\n-USER-A\n+agent-A\n")),
        };
        let told = told.unwrap().text;
        assert!(told.contains("USER-B"), "{told}");
        // Whoever replaces the file now has been told of it, or keeps it.
        let after = world.write("f", &lines(&[(3, "agent-A"), (15, "USER-B"), (20, "end")])).unwrap().text;
        assert!(world.text("f").contains("USER-B") && world.text("f").ends_with("end\n"), "{after}");
    }
    // What was there twice when it was read is not one place because somebody changed the other.
    let world = known("same\nx\nsame\n");
    world.put("f", "same\nx\nother\n");
    assert!(world.edit("f", "same", "mine").unwrap_err().contains("more than once"));
}

#[test]
fn a_few_edits_do_not_make_a_file_without_end() {
    let world = known("a");
    let edits: Vec<_> = (0..40).map(|_| json!({ "old": "a", "new": "aa", "all": true })).collect();
    let refused = world.edits("f", edits.into()).unwrap_err();
    assert!(refused.contains("MiB"), "{refused}");
    let edits: Vec<_> = (0..25).map(|_| json!({ "old": "a", "new": "aa", "all": true })).collect();
    assert!(world.edits("f", edits.into()).unwrap_err().contains("16 MiB"));
    assert_eq!(world.text("f"), "a");
}

#[test]
fn many_torn_line_ends_take_no_time() {
    let world = known("\r\n".repeat(500_000));
    let refused = world.edit("f", &"\n\r".repeat(10_000), "x").unwrap_err();
    assert!(refused.contains("f was not edited"), "{}", &refused[..200]);
}

#[test]
fn what_is_read_only_stays_whatever_a_patch_says() {
    let world = known("a\n");
    world.put("g", "b\n");
    fs::set_permissions(world.path("f"), fs::Permissions::from_mode(0o444)).unwrap();
    world.read("g").unwrap();
    for patch in ["*** Delete File: f\n", "*** Update File: g\n*** Move to: f\n@@\n-b\n+c\n"] {
        assert!(world.patch(&enveloped(patch)).unwrap_err().contains("read-only"), "{patch}");
    }
    assert_eq!((world.text("f"), world.text("g")), ("a\n".into(), "b\n".into()));
}

#[test]
fn deep_folders_are_made_and_no_strange_names() {
    let world = World::new();
    let deep = format!("{}f", "d/".repeat(60));
    world.write(&deep, "x").unwrap();
    assert_eq!(world.text(&deep), "x");
    for name in ["", "~/x", "~", "b/"] {
        assert!(world.write(name, "x").unwrap_err().contains("no name of a file"), "{name}");
    }
}

/// What a file was is on the disk before the file is touched.
#[test]
fn what_was_there_is_synced_before_it_is_changed() {
    struct Witness {
        file: std::path::PathBuf,
        kept: std::sync::Mutex<Vec<Vec<u8>>>,
        /// What the file said when everything was synced.
        seen: std::sync::Mutex<Vec<String>>,
    }
    impl helve_protocol::BlobStore for Witness {
        fn put(&self, content: &[u8]) -> Result<helve_protocol::BlobId, helve_protocol::BlobError> {
            self.kept.lock().unwrap().push(content.to_vec());
            Ok(helve_protocol::BlobId::from_hash(*blake3::hash(content).as_bytes()))
        }
        fn get(&self, _: helve_protocol::BlobId) -> Result<Vec<u8>, helve_protocol::BlobError> {
            Err(helve_protocol::BlobError("nothing is read again".into()))
        }
        fn sync(&self) -> Result<(), helve_protocol::BlobError> {
            assert!(self.kept.lock().unwrap().contains(&b"before".to_vec()));
            self.seen.lock().unwrap().push(fs::read_to_string(&self.file).unwrap());
            Ok(())
        }
    }
    let mut world = World::with(SessionFiles::for_person());
    world.put("f", "before");
    let blobs = std::sync::Arc::new(Witness {
        file: world.path("f"),
        kept: Default::default(),
        seen: Default::default(),
    });
    let workspace = helve_workspace::Workspace::new(helve_workspace::WorkspaceSetup {
        root: helve_workspace::WorkspaceRoot::named(&world.context.root).unwrap(),
        blobs: blobs.clone(),
        clock: std::sync::Arc::new(Noon),
        git: None,
        limits: helve_workspace::WorkspaceLimits::default(),
        notes: None,
    });
    world.context.ground =
        helve_tools::WorkspaceGuard::new(vec![std::sync::Arc::new(std::sync::Mutex::new(workspace))]);
    world.write("f", "after").unwrap();
    assert_eq!(
        (world.text("f").as_str(), blobs.seen.lock().unwrap().as_slice()),
        ("after", &["before".to_owned()][..])
    );
}

struct Noon;

impl helve_protocol::Clock for Noon {
    fn now(&self) -> helve_protocol::Timestamp {
        helve_protocol::Timestamp::from_millis(1_000_000)
    }
}

#[test]
fn what_is_called_off_changes_nothing_and_what_has_begun_ends() {
    let mut world = known("a");
    assert!(world.context.ground.call_off());
    assert!(world.write("f", "b").unwrap_err().contains("stopped"));
    assert_eq!(world.text("f"), "a");
    world.context.ground = helve_tools::WorkspaceGuard::default();
    world.write("f", "b").unwrap();
    assert!(!world.context.ground.call_off());
}

/// What one of the two hands does next.
#[derive(Clone, Copy, Debug)]
enum Hand {
    Reads,
    /// The agent writes all that it knows of, with a line more.
    Writes(usize),
    /// It replaces a line that is not the user's, or one that is.
    Edits(usize),
    EditsUsers(usize),
    UserInserts(usize),
    UserChanges(usize),
    UserDeletes(usize),
}

fn hand() -> impl Strategy<Value = Hand> {
    let at = || 0..12_usize;
    prop_oneof![
        1 => Just(Hand::Reads),
        2 => at().prop_map(Hand::Writes),
        2 => at().prop_map(Hand::Edits),
        1 => at().prop_map(Hand::EditsUsers),
        2 => at().prop_map(Hand::UserInserts),
        2 => at().prop_map(Hand::UserChanges),
        1 => at().prop_map(Hand::UserDeletes),
    ]
}

/// A file that an agent and a user change by turns. The agent knows what it read, what it wrote, and what it was told.
struct Shared {
    world: World,
    view: Option<Vec<String>>,
    /// The user's lines that nobody took away on purpose.
    of_user: Vec<String>,
    count: usize,
}

impl Shared {
    fn lines(&self) -> Vec<String> {
        self.world.text("f").lines().map(str::to_owned).collect()
    }

    fn put(&self, lines: &[String]) {
        self.world.put("f", lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    }

    fn next(&mut self, who: &str) -> String {
        self.count += 1;
        format!("{who} {}", self.count)
    }

    /// The agent did something, or was refused. What it was told of the user's lines it knows from then on.
    fn after(
        &mut self,
        done: Result<helve_protocol::ToolOutput, String>,
        before: &[String],
        own: Vec<String>,
    ) {
        match done {
            Err(_) => assert_eq!(self.lines(), before, "refused, and changed all the same"),
            Ok(output) => {
                let there = self.lines();
                let unknown = self.of_user.iter().filter(|line| there.contains(line) && !own.contains(line));
                let is_told = unknown.into_iter().all(|line| output.text.contains(line.as_str()));
                self.view = Some(if is_told { there } else { own });
            }
        }
    }

    fn act(&mut self, hand: Hand) {
        let mut lines = self.lines();
        let at = |at: usize, lines: &[String]| at.min(lines.len().saturating_sub(1));
        match hand {
            Hand::Reads => {
                self.world.read("f").unwrap();
                self.view = Some(lines);
            }
            Hand::Writes(place) => {
                let Some(mut own) = self.view.clone() else { return };
                own.insert(place.min(own.len()), self.next("agent"));
                let text: String = own.iter().map(|line| format!("{line}\n")).collect();
                let done = self.world.write("f", &text);
                self.after(done, &lines, own);
            }
            Hand::Edits(place) => {
                let Some(mut own) = self.view.clone() else { return };
                let others: Vec<usize> = (0..own.len()).filter(|at| !own[*at].starts_with("user")).collect();
                let Some(place) = others.get(place % others.len().max(1)) else { return };
                let (old, new) = (own[*place].clone(), self.next("agent"));
                let done = self.world.edit("f", &format!("{old}\n"), &format!("{new}\n"));
                own[*place] = new;
                self.after(done, &lines, own);
            }
            Hand::EditsUsers(place) => {
                let there: Vec<String> = self.of_user.clone();
                let Some(old) = there.get(place % there.len().max(1)) else { return };
                let (new, own) = (self.next("agent"), self.view.clone());
                let done = self.world.edit("f", &format!("{old}\n"), &format!("{new}\n"));
                if done.is_ok() {
                    self.of_user.retain(|line| line != old);
                }
                let mut own = own.unwrap_or_default();
                own.iter_mut().filter(|line| *line == old).for_each(|line| line.clone_from(&new));
                self.after(done, &lines, own);
            }
            Hand::UserInserts(place) => {
                let new = self.next("user");
                lines.insert(place.min(lines.len()), new.clone());
                self.of_user.push(new);
                self.put(&lines);
            }
            Hand::UserChanges(place) if !lines.is_empty() => {
                let (new, place) = (self.next("user"), at(place, &lines));
                self.of_user.retain(|line| *line != lines[place]);
                self.of_user.push(new.clone());
                lines[place] = new;
                self.put(&lines);
            }
            Hand::UserDeletes(place) if !lines.is_empty() => {
                let gone = lines.remove(at(place, &lines));
                self.of_user.retain(|line| *line != gone);
                self.put(&lines);
            }
            Hand::UserChanges(_) | Hand::UserDeletes(_) => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// However an agent and a user come between each other, none of the user's lines goes away unless somebody who was told
    /// of it takes it away.
    #[test]
    fn by_turns_no_line_of_the_users_is_lost(hands in prop::collection::vec(hand(), 1..16)) {
        let world = World::new();
        world.put("f", (1..=8).map(|line| format!("base {line}\n")).collect::<String>());
        let mut shared = Shared { world, view: None, of_user: Vec::new(), count: 0 };
        for hand in hands {
            shared.act(hand);
            let there = shared.lines();
            for line in &shared.of_user {
                prop_assert!(there.contains(line), "{line} is lost after {hand:?}: {there:?}");
            }
        }
    }
}

#[test]
fn it_is_not_told_that_something_changed_where_nothing_did() {
    let world = known("one\ntwo\n");
    let told = world.write("f", "one\ntwo\n").unwrap().text;
    assert!(told.contains("nothing was changed") && !told.contains("replaced"), "{told}");
    // What the patch takes away it puts back.
    let told = world.patch(&enveloped("*** Update File: f\n@@\n-two\n+two\n")).unwrap().text;
    assert!(told.contains("nothing was changed") && !told.contains("f was changed"), "{told}");
    let told = world.patch(&enveloped("*** Add File: f\n+one\n+two\n")).unwrap().text;
    assert!(told.contains("nothing was changed") && !told.contains("f was changed"), "{told}");
    assert_eq!(world.text("f"), "one\ntwo\n");
}

#[test]
fn a_move_onto_a_file_says_that_it_replaced_it() {
    let world = known("one\n");
    world.put("g", "precious\n");
    let patch = enveloped("*** Update File: f\n*** Move to: g\n");
    let refused = world.patch(&patch).unwrap_err();
    assert!(refused.contains("Read it first"), "{refused}");
    assert_eq!((world.text("f"), world.text("g")), ("one\n".to_owned(), "precious\n".to_owned()));
    world.read("g").unwrap();
    let told = world.patch(&patch).unwrap().text;
    assert!(told.contains("f was moved to g, and replaced the file that was there."), "{told}");
    assert_eq!(world.text("g"), "one\n");
}

/// With a NUL in it a file counts as binary, and no tool would edit it any more.
#[test]
fn a_zero_byte_is_not_written() {
    let world = known("one\ntwo\n");
    for refused in [
        world.edit("f", "one", "o\0ne").unwrap_err(),
        world.write("f", "o\0ne\n").unwrap_err(),
        world.write("new", "\0").unwrap_err(),
        world.patch(&enveloped("*** Update File: f\n@@\n-two\n+t\0wo\n")).unwrap_err(),
        world.patch(&enveloped("*** Add File: new\n+\0\n")).unwrap_err(),
    ] {
        assert!(refused.contains("byte") && refused.contains("Nothing was changed"), "{refused}");
    }
    assert_eq!(world.all().into_iter().collect::<Vec<_>>(), [("f".to_owned(), "one\ntwo\n".to_owned())]);
    world.edit("f", "one", "1").unwrap();
}

#[test]
fn line_endings_do_not_become_mixed() {
    for (before, old, new, after) in [
        ("a\nb\nc\n", "b", "x\r\ny", "a\nx\ny\nc\n"),
        ("a\nb\nc\n", "b\n", "x\r\ny\r\n", "a\nx\ny\nc\n"),
        ("a\r\nb\r\nc\r\n", "b", "x\r\ny\nz", "a\r\nx\r\ny\r\nz\r\nc\r\n"),
        ("a\r\nb\r\nc\r\n", "b\r\n", "x\ny\n", "a\r\nx\r\ny\r\nc\r\n"),
        // Where they are mixed already, nobody knows better than the model.
        ("a\nb\r\nc\n", "a\n", "x\r\n", "x\r\nb\r\nc\n"),
    ] {
        let world = known(before);
        world.edit("f", old, new).unwrap();
        assert_eq!(world.text("f"), after, "{before:?} {old:?} {new:?}");
    }
    let world = known("a\nb\n");
    world.write("f", "a\r\nb\nc\r\n").unwrap();
    assert_eq!(world.text("f"), "a\nb\nc\n");
    world.patch("*** Begin Patch\n*** Update File: f\n@@\n-b\n+x\r\n+y\n*** End Patch\n").unwrap();
    assert_eq!(world.text("f"), "a\nx\ny\nc\n");
    world.write("f", "a\r\nb\r\n").unwrap();
    assert_eq!(world.text("f"), "a\r\nb\r\n", "who writes them everywhere means it");
}

/// Both look the same: é as one character, and as e with an accent of its own.
#[test]
fn another_unicode_form_is_named() {
    const ONE: &str = "caf\u{e9}";
    const TWO: &str = "cafe\u{301}";
    for (there, said) in [(ONE, TWO), (TWO, ONE)] {
        let world = known(format!("first\n{there} = 1\n"));
        let patch = format!("*** Update File: f\n@@\n-{said} = 1\n+{said} = 2\n");
        for refused in [
            world.edit("f", &format!("{said} = 1"), "x").unwrap_err(),
            world.patch(&enveloped(&patch)).unwrap_err(),
        ] {
            assert!(refused.contains("at line 2") && refused.contains("Unicode form"), "{refused}");
        }
        world.put(&format!("{there}/x"), "1\n");
        let name = format!("{said}/x");
        for refused in [
            world.read(&name).unwrap_err(),
            world.edit(&name, "1", "2").unwrap_err(),
            world.patch(&enveloped(&format!("*** Update File: {name}\n@@\n-1\n+2\n"))).unwrap_err(),
            world.cell(json!({ "path": name, "cell": 1, "action": "delete" })).unwrap_err(),
        ] {
            assert!(refused.contains("Unicode form"), "{refused}");
        }
    }
}

#[test]
fn ends_of_patches_that_look_right_are_taken_or_explained() {
    for end in ["*** End Patch\u{200b}", "\u{feff}*** End Patch ", "*** End Patch\u{a0}", " *** End Patch\t"]
    {
        let world = known("one\n");
        world.patch(&format!("*** Begin Patch\n*** Update File: f\n@@\n-one\n+1\n{end}\n")).unwrap();
        assert_eq!(world.text("f"), "1\n", "{end:?}");
    }
    let world = known("one\n");
    let twice = enveloped("*** Update File: f\n@@\n-one\n+1\n") + &enveloped("*** Add File: g\n+x\n");
    let refused = world.patch(&twice).unwrap_err();
    assert!(refused.contains("goes on after `*** End Patch`"), "{refused}");
    let refused = world.patch(&enveloped("*** Update\u{a0}File: f\n@@\n-one\n+1\n")).unwrap_err();
    assert!(refused.contains("found `*** Update\\u{a0}File: f`"), "{refused}");
}
