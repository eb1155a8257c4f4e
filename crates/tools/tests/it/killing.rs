//! Killed in the middle of writing: the file is the old one or the new one, never a mixture.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use helve_tools::{ApplyPatchTool, SessionFiles, WriteTool};
use serde_json::json;

use crate::world::{World, context, run};

const ROLE: &str = "HELVE_TOOLS_CHILD";
/// Few lines and long ones, so that most of the time goes into writing.
const LINES: usize = 200;

fn content(number: usize) -> String {
    format!("version {number} {}\n", "x".repeat(20_000)).repeat(LINES)
}

/// Changes all of several files, again and again.
fn patch_on_and_on(context: &helve_tools::ToolContext) {
    let tool = ApplyPatchTool { files: SessionFiles::for_person().into() };
    for number in 0.. {
        let update = |name: &str| {
            let [old, new] = [line(number), line(number + 1)];
            format!("*** Update File: {name}\n@@\n-{old}\n+{new}\n")
        };
        let files: String = FILES.iter().map(|name| update(name)).collect();
        let patch = format!("*** Begin Patch\n{files}*** End Patch\n");
        run(&tool, json!({ "patch": patch }), context).unwrap();
    }
}

fn line(number: usize) -> String {
    format!("version {number} {}", "x".repeat(300_000))
}

const FILES: [&str; 3] = ["a", "b", "c"];
/// Says that the child is to patch.
const PATCHES: &str = "HELVE_TOOLS_PATCHES";

/// Not a test of its own: it does nothing unless another test gave it a project to write in.
#[test]
#[expect(clippy::disallowed_methods, reason = "that is how it is told what to be")]
fn child_process() {
    let Some(root) = std::env::var_os(ROLE) else { return };
    let context = context(root.as_ref());
    if std::env::var_os(PATCHES).is_some() {
        return patch_on_and_on(&context);
    }
    let tool = WriteTool { files: SessionFiles::for_person().into() };
    for number in 0.. {
        run(&tool, json!({ "path": "f", "content": content(number) }), &context).unwrap();
    }
}

#[test]
fn a_killed_writer_leaves_the_old_file_or_the_new_one() {
    let world = World::new();
    world.put("f", content(0));
    let new = world.path(".f.helve-new");
    let mut leftovers = 0;
    for round in 0..25 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["killing::child_process", "--exact", "--test-threads=1"])
            .env(ROLE, &world.context.root)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while !new.exists() && child.try_wait().unwrap().is_none() {
            std::hint::spin_loop();
        }
        // Somewhere in this write, or after it.
        sleep(Duration::from_micros(100 * round * round));
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9), "it wrote until it was killed");
        let text = world.text("f");
        let first = text.lines().next().unwrap();
        assert_eq!(text, format!("{first}\n").repeat(LINES), "a mixture, or a part");
        leftovers += usize::from(new.exists());
        // What one left the next clears away.
        let by_hand = WriteTool { files: SessionFiles::for_person().into() };
        run(&by_hand, json!({ "path": "f", "content": content(0) }), &world.context).unwrap();
        assert_eq!(world.all().into_keys().collect::<Vec<_>>(), ["f"]);
    }
    assert!(leftovers > 0, "none was killed while it wrote");
    eprintln!("25 writers were killed, {leftovers} of them with a new file half written beside the old one");
}

/// Of several files that are patched together each is old or new, whole, and all are of one patch or of two that follow each
/// other.
#[test]
fn a_killed_patch_leaves_each_file_old_or_new() {
    for round in 0..15 {
        let world = World::new();
        let whole = |number: usize| line(number) + "\n";
        FILES.iter().for_each(|name| world.put(name, whole(0)));
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["killing::child_process", "--exact", "--test-threads=1"])
            .env(ROLE, &world.context.root)
            .env(PATCHES, "yes")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while world.bytes("a") == whole(0).as_bytes() && child.try_wait().unwrap().is_none() {}
        sleep(Duration::from_micros(300 * round * round));
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9), "it wrote until it was killed");
        let number = |name: &str| -> usize {
            let text = world.text(name);
            let number = text.split(' ').nth(1).unwrap().parse().unwrap();
            assert_eq!(text, whole(number), "a mixture, or a part");
            number
        };
        let numbers = FILES.map(number);
        assert!(numbers.is_sorted_by(|a, b| a >= b) && numbers[0] - numbers[2] <= 1, "{numbers:?}");
    }
}
