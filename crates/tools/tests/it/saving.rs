//! An editor saves into a file, in place, while a tool replaces it: whatever moment it hits, what the user saved is there.

use std::fs::{self, File};
use std::io::Write;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use helve_tools::SessionFiles;

use crate::world::World;

const ROUNDS: usize = 300;

/// Opens the file, empties it a moment later and writes it, as editors do that keep the inode.
fn save(path: &std::path::Path, text: &str) {
    let mut file = File::options().write(true).open(path).unwrap();
    thread::sleep(Duration::from_millis(1));
    file.set_len(0).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn what_is_saved_in_place_at_the_moment_of_the_exchange_is_not_lost() {
    let text = |user: usize| format!("saved {user}.\n{}word\n", "a line in between\n".repeat(200));
    let (mut lost, mut edited) = (0, 0);
    for round in 1..=ROUNDS {
        let world = World::with(SessionFiles::for_person());
        world.put("f", text(0));
        let start = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                // At another moment each time.
                thread::sleep(Duration::from_micros((round as u64 * 53) % 6_000));
                save(&world.path("f"), &text(round));
            });
            start.wait();
            edited += usize::from(world.edit("f", "word", "our word").is_ok());
        });
        lost += usize::from(!world.text("f").contains(&format!("saved {round}.")));
        assert_eq!(fs::read_dir(world.path("")).unwrap().count(), 1, "something is left beside it");
    }
    eprintln!("{ROUNDS} saves during {edited} edits: {lost} lost");
    assert_eq!(lost, 0);
    assert!(edited > 0);
}

/// A program that keeps a file open and goes on writing would write into what nobody sees any more.
#[test]
fn a_file_that_somebody_keeps_open_to_write_is_not_replaced() {
    let world = World::with(SessionFiles::for_person());
    world.put("log", "one\nword\n");
    let mut log = File::options().append(true).open(world.path("log")).unwrap();
    let error = world.edit("log", "word", "our word").unwrap_err();
    assert!(error.contains("Nothing was changed"), "{error}");
    log.write_all(b"two\n").unwrap();
    assert_eq!(world.text("log"), "one\nword\ntwo\n");
    drop(log);
    world.edit("log", "word", "our word").unwrap();
    assert_eq!(world.text("log"), "one\nour word\ntwo\n");
}
