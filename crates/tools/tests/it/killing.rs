//! Killed in the middle of writing: the file is the old one or the new one, never a mixture.

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use helve_tools::{Files, Write};
use serde_json::json;

use crate::world::{World, context, run};

const ROLE: &str = "HELVE_TOOLS_CHILD";
const LINES: usize = 20_000;

fn content(number: usize) -> String {
    format!("version {number}\n").repeat(LINES)
}

/// Not a test of its own: it does nothing unless another test gave it a project to write in.
#[test]
#[expect(clippy::disallowed_methods, reason = "that is how it is told what to be")]
fn child_process() {
    let Some(root) = std::env::var_os(ROLE) else { return };
    let context = context(root.as_ref());
    let tool = Write { files: Files::by_hand().into() };
    for number in 0.. {
        run(&tool, json!({ "path": "f", "content": content(number) }), &context).unwrap();
    }
}

#[test]
fn a_killed_writer_leaves_the_old_file_or_the_new_one() {
    let world = World::new();
    let mut versions = std::collections::BTreeSet::new();
    let mut leftovers = 0;
    for round in 0..30 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["killing::child_process", "--exact", "--test-threads=1"])
            .env(ROLE, &world.context.root)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        sleep(Duration::from_millis(40 + 7 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let Ok(text) = fs::read_to_string(world.path("f")) else { continue };
        let first = text.lines().next().unwrap().to_owned();
        assert_eq!(text, format!("{first}\n").repeat(LINES), "a mixture, or a part");
        versions.insert(first);
        leftovers += usize::from(world.path(".f.helve-new").exists());
    }
    eprintln!(
        "{} versions were found, {leftovers} times with a new file half written beside it",
        versions.len()
    );
    assert!(!versions.is_empty(), "no child came so far as to write");
    // What one left the next clears away.
    run(&Write { files: Files::by_hand().into() }, json!({ "path": "f", "content": "" }), &world.context)
        .unwrap();
    assert_eq!(world.all().into_keys().collect::<Vec<_>>(), ["f"]);
}
