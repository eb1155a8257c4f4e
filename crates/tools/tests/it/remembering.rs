//! `remember` on real files.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::thread;

use helve_tools::RememberTool;
use serde_json::json;

use crate::world::{World, run};

fn tool(world: &World) -> RememberTool {
    RememberTool { project: world.path(".helve/memory.md"), user: world.outside("config/memory.md") }
}

fn remember(world: &World, text: &str) -> Result<String, String> {
    Ok(run(&tool(world), json!({ "text": text }), &world.context)?.text)
}

#[test]
fn memories_are_bullets_of_a_file() {
    let world = World::new();
    assert!(remember(&world, "Tests need a\nlocal server.").unwrap().starts_with("Added to "));
    remember(&world, "- Use tabs.").unwrap();
    assert_eq!(world.text(".helve/memory.md"), "# Memory\n\n- Tests need a local server.\n- Use tabs.\n");
    assert!(remember(&world, " use  tabs. ").unwrap().contains("already"));
    assert_eq!(world.text(".helve/memory.md").lines().count(), 4);
    run(&tool(&world), json!({ "text": "Likes short answers.", "scope": "user" }), &world.context).unwrap();
    let user = fs::read_to_string(world.outside("config/memory.md")).unwrap();
    assert_eq!(user, "# Memory\n\n- Likes short answers.\n");
    assert_eq!(world.all().len(), 1, "nothing is left beside it");
}

#[test]
fn what_a_person_wrote_stays() {
    let world = World::new();
    let mine = "Mine\r\n\r\n* one\r\n    code\r\nno end";
    world.put(".helve/memory.md", format!("\u{feff}{mine}"));
    remember(&world, "two").unwrap();
    assert_eq!(world.text(".helve/memory.md"), format!("\u{feff}{mine}\r\n- two\r\n"));
    assert!(remember(&world, "ONE").unwrap().contains("already"));
}

#[test]
fn what_does_not_fit_is_told_with_what_to_do() {
    let world = World::new();
    assert!(remember(&world, "\n").unwrap_err().contains("nothing to remember"));
    assert!(remember(&world, &"x".repeat(2_001)).unwrap_err().contains("at most 2000"));
    assert!(world.all().is_empty());
    world.put(".helve/memory.md", "- much\n".repeat(4_681));
    let full = remember(&world, "more").unwrap_err();
    assert!(full.contains("is full: 31 KiB of 32") && full.contains("with edit"), "{full}");
    world.put(".helve/memory.md", b"\xff\xfe\x00");
    assert!(remember(&world, "more").unwrap_err().contains("was not changed"));
    fs::remove_file(world.path(".helve/memory.md")).unwrap();
    fs::create_dir(world.path(".helve/memory.md")).unwrap();
    assert!(remember(&world, "more").unwrap_err().contains("no ordinary file"));
}

#[test]
fn a_project_does_not_choose_another_place() {
    let world = World::new();
    let victim = world.outside("victim");
    fs::write(&victim, "precious\n").unwrap();
    fs::create_dir(world.path(".helve")).unwrap();
    symlink(&victim, world.path(".helve/memory.md")).unwrap();
    assert!(remember(&world, "x").unwrap_err().contains("leads out of the project"));
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious\n");
}

#[test]
fn nothing_is_lost_when_many_write_at_once() {
    let world = World::new();
    thread::scope(|scope| {
        for writer in 0..8 {
            let world = &world;
            scope.spawn(move || {
                for note in 0..5 {
                    remember(world, &format!("note {note} of {writer}")).unwrap();
                }
            });
        }
    });
    assert_eq!(world.text(".helve/memory.md").lines().filter(|line| line.starts_with("- note")).count(), 40);
}

#[test]
fn who_waits_for_the_lock_can_be_interrupted() {
    let world = World::new();
    world.put(".helve/memory.md", "");
    let folder = File::open(world.path(".helve")).unwrap();
    folder.lock().unwrap();
    world.context.stop.cancel();
    assert!(remember(&world, "x").unwrap_err().contains("interrupted"));
    assert_eq!(world.text(".helve/memory.md"), "");
}
