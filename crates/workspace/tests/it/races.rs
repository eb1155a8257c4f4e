//! A job swaps a folder for a link that leads outside, and back, without pause: nothing outside is kept, told or changed.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use helve_protocol::BlobStore;
use helve_workspace::{FileMode, PathSnapshot, RestoreGuard};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::support::Place;

const ROUNDS: usize = 3_000;
const SECRET: &[u8] = b"the-key-that-nobody-may-see";

/// A project with `a/d/f`, a link `other` that leads to where `d/f` is too, and somebody who lets `a` and `other` change places.
fn swapped(work: impl FnOnce(&mut Place, usize)) -> (Place, usize) {
    let mut place = Place::plain();
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(outside.path().join("d")).unwrap();
    fs::write(outside.path().join("d/f"), SECRET).unwrap();
    place.write("a/d/f", "inside");
    let [path, other] = ["a", "other"].map(|name| place.root().join(name));
    symlink(outside.path(), &other).unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let job = thread::spawn({
        let is_over = is_over.clone();
        move || {
            let mut swaps = 0;
            while !is_over.load(Ordering::Relaxed) {
                swaps += usize::from(renameat_with(CWD, &path, CWD, &other, RenameFlags::EXCHANGE).is_ok());
            }
            swaps
        }
    });
    work(&mut place, ROUNDS);
    is_over.store(true, Ordering::Relaxed);
    let swaps = job.join().unwrap();
    assert!(swaps > ROUNDS, "{swaps}");
    assert_eq!(fs::read(outside.path().join("d/f")).unwrap(), SECRET);
    assert_eq!(fs::read_dir(outside.path().join("d")).unwrap().count(), 1, "something was made outside");
    (place, swaps)
}

fn assert_nothing_kept(place: &Place) {
    let hash = helve_protocol::BlobId::from_hash(*blake3::hash(SECRET).as_bytes());
    assert!(place.blobs.get(hash).is_err(), "what is outside was kept");
}

#[test]
fn looking_is_not_led_astray() {
    let (place, _) = swapped(|place, rounds| {
        for round in 0..rounds {
            if round % 10 == 0 {
                let watch = place.workspace.begin().unwrap();
                let _ = place.workspace.end(watch).unwrap();
            }
            let writing = place.workspace.about_to_write("a/d/f").unwrap();
            let _ = place.workspace.note_written(writing).unwrap();
        }
    });
    assert_nothing_kept(&place);
}

#[test]
fn restoring_is_not_led_astray() {
    let (place, _) = swapped(|place, rounds| {
        let content = place.blobs.put(b"restored").unwrap();
        let image = PathSnapshot { mode: FileMode::from_bits(0o100_644), content: Some(content) };
        let mut done = 0;
        for round in 0..rounds {
            let wanted = if round % 3 == 0 { None } else { Some(image) };
            done += usize::from(place.workspace.restore("a/d/f", wanted, RestoreGuard::Always).is_ok());
        }
        assert!(done > 0, "nothing was restored at all");
    });
    assert_nothing_kept(&place);
}
