//! The list of sessions can be lost at any time.

use std::fs;

use helve_journal::{Error, FileJournal, Journal};
use helve_protocol::{SessionRenamed, SessionSummary};
use helve_testkit::{Session, id};

use crate::support::{file_journal, store_session};

fn sorted(mut list: Vec<SessionSummary>) -> Vec<SessionSummary> {
    list.sort_by_key(|summary| summary.session);
    list
}

#[test]
fn a_missing_old_or_damaged_catalogue_is_made_anew() {
    let (root, journal) = file_journal();
    (0..20).for_each(|n| drop(store_session(&journal, n, 2)));
    let before = journal.list().unwrap();
    let path = journal.catalogue_path();
    let good = fs::read(&path).unwrap();
    let old = |path: &std::path::Path| {
        let db = rusqlite::Connection::open(path).unwrap();
        db.execute_batch("PRAGMA user_version = 77; DROP TABLE sessions; CREATE TABLE sessions (other)")
            .unwrap();
    };
    let damages: [(&str, &dyn Fn()); 6] = [
        ("missing", &|| fs::remove_file(&path).unwrap()),
        ("old", &|| old(&path)),
        ("not a database", &|| fs::write(&path, b"hello").unwrap()),
        ("empty", &|| fs::write(&path, b"").unwrap()),
        ("cut", &|| fs::write(&path, &good[..good.len() / 2]).unwrap()),
        ("garbled", &|| fs::write(&path, [&good[..4096], &vec![0x5a; good.len() - 4096]].concat()).unwrap()),
    ];
    for (what, damage) in damages {
        damage();
        let journal = FileJournal::new(root.path());
        assert!(journal.check_catalogue().is_err(), "{what}");
        assert_eq!(journal.list().unwrap(), before, "{what}");
        assert!(journal.check_catalogue().is_ok(), "{what}");
    }
}

#[test]
fn a_flip_anywhere_in_the_catalogue_never_stops_the_list() {
    let (root, journal) = file_journal();
    (0..20).for_each(|n| drop(store_session(&journal, n, 1)));
    let count = journal.list().unwrap().len();
    let path = journal.catalogue_path();
    let good = fs::read(&path).unwrap();
    for offset in (0..good.len()).step_by(97) {
        let mut bytes = good.clone();
        bytes[offset] ^= 0x81;
        fs::write(&path, bytes).unwrap();
        let list = FileJournal::new(root.path()).list();
        assert!(list.is_ok(), "flip at {offset}: {list:?}");
        // A flipped letter of a title can't be noticed; a lost session can.
        assert_eq!(list.unwrap().len(), count, "flip at {offset}");
    }
}

#[test]
fn the_list_follows_the_logs() {
    let (root, journal) = file_journal();
    store_session(&journal, 1, 1);
    assert_eq!(journal.list().unwrap().len(), 1);

    // Another process creates, renames and deletes.
    let other = FileJournal::new(root.path());
    let mut session = Session::new(id(5));
    let mut log = other.create(session.id).unwrap();
    log.append(&[session.created(), session.says("first")]).unwrap();
    assert_eq!(sorted(journal.list().unwrap())[0].title, "first");
    log.append(&[session.event(SessionRenamed { title: "better".to_owned() })]).unwrap();
    assert_eq!(sorted(journal.list().unwrap())[0].title, "better");
    drop(log);
    other.delete(session.id).unwrap();
    assert_eq!(journal.list().unwrap().len(), 1);
}

#[test]
fn what_was_read_bit_by_bit_equals_what_was_read_at_once() {
    let (root, journal) = file_journal();
    let mut session = Session::new(id(5));
    let mut log = journal.create(session.id).unwrap();
    for turn in 0..20 {
        log.append(&[session.says(&format!("turn {turn}"))]).unwrap();
        journal.list().unwrap();
        log.append(&session.step("answer", &[("read", "text")])).unwrap();
    }
    let bit_by_bit = journal.list().unwrap();
    fs::remove_file(journal.catalogue_path()).unwrap();
    assert_eq!(FileJournal::new(root.path()).list().unwrap(), bit_by_bit);
}

#[test]
fn many_processes_may_list_at_once() {
    let (root, journal) = file_journal();
    (0..10).for_each(|n| drop(store_session(&journal, n, 1)));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let list = FileJournal::new(root.path()).list();
                    assert_eq!(list.map_err(|error: Error| error.to_string()).map(|list| list.len()), Ok(10));
                }
            });
        }
    });
}
