//! Killed in the middle of writing: the file is the old one or the new one, never a mixture.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use helve_tools::{SessionFiles, WriteTool};
use serde_json::json;

use crate::world::{World, run};
use crate::written_files::{FILES, LINES, content, line};

/// Starts `examples/file_writer.rs`, which writes in a project until it is killed.
fn start_writer(role: &str, root: &Path) -> Child {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().unwrap().parent().unwrap().join("examples/file_writer");
    assert!(program.exists(), "{} is built by `cargo test -p helve-tools`", program.display());
    Command::new(program).arg(role).arg(root).stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_killed_writer_leaves_the_old_file_or_the_new_one() {
    let world = World::new();
    world.put("f", content(0));
    let new = world.path(".f.helve-new");
    let mut leftovers = 0;
    for round in 0..25 {
        let mut child = start_writer("write", &world.context.root);
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
        let mut child = start_writer("patch", &world.context.root);
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
