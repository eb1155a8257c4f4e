//! The list of sessions can be lost at any time.

use std::fs;
use std::os::unix::fs::MetadataExt;

use helve_journal::{FileJournal, Journal};
use helve_protocol::{SessionRenamed, SessionSummary};
use helve_testkit::{SampleSession, sample_id};

use crate::child;
use crate::support::{file_journal, log_path, store_session};

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
    let mut session = SampleSession::new(sample_id(5));
    let mut log = other.create(session.id).unwrap();
    log.append(&[session.created(), session.user_message("first")]).unwrap();
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
    let mut session = SampleSession::new(sample_id(5));
    let mut log = journal.create(session.id).unwrap();
    for turn in 0..20 {
        log.append(&[session.user_message(&format!("turn {turn}"))]).unwrap();
        journal.list().unwrap();
        log.append(&session.step("answer", &[("read", "text")])).unwrap();
    }
    let bit_by_bit = journal.list().unwrap();
    fs::remove_file(journal.catalogue_path()).unwrap();
    assert_eq!(FileJournal::new(root.path()).list().unwrap(), bit_by_bit);
}

#[test]
fn many_processes_may_list_while_sessions_grow() {
    let root = tempfile::tempdir().unwrap();
    let journal = FileJournal::new(root.path().join("home"));
    (0..100).for_each(|n| drop(store_session(&journal, n, 1)));
    let mut listers: Vec<_> =
        (0..3).map(|_| child::role(&[], "list", root.path(), sample_id(1)).spawn().unwrap()).collect();
    let mut session = SampleSession::new(sample_id(5));
    let mut log = journal.create(session.id).unwrap();
    let mut answers = Vec::new();
    for lister in &mut listers {
        for answer in child::lines(lister) {
            answers.push(answer);
            log.append(&[session.user_message("more")]).unwrap();
        }
    }
    listers.into_iter().for_each(|mut lister| assert!(lister.wait().unwrap().success()));
    assert_eq!(answers.len(), 120);
    assert!(answers.iter().all(|answer| answer == "101" || answer == "100"), "{answers:?}");
    assert!(journal.check_catalogue().is_ok());
}

#[test]
fn a_busy_catalogue_is_done_without() {
    let (_root, journal) = file_journal();
    (0..5).for_each(|n| drop(store_session(&journal, n, 1)));
    journal.list().unwrap();
    let before = fs::metadata(journal.catalogue_path()).unwrap();
    let other = rusqlite::Connection::open(journal.catalogue_path()).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    store_session(&journal, 6, 1);
    assert_eq!(journal.list().unwrap().len(), 6);
    let after = fs::metadata(journal.catalogue_path()).unwrap();
    assert_eq!(before.ino(), after.ino(), "what others use is not taken away");
    other.execute_batch("COMMIT").unwrap();
}

#[test]
fn damage_shows_up_in_the_list_by_itself_and_goes_when_it_is_mended() {
    let (root, journal) = file_journal();
    let events = store_session(&journal, 1, 2);
    let session = events[0].session;
    journal.fork(session, events[1].seq, sample_id(2)).unwrap();
    journal.list().unwrap();
    let path = log_path(root.path(), session);
    let good = fs::read(&path).unwrap();
    let mut bad = good.clone();
    bad[300] ^= 1;
    fs::write(&path, bad).unwrap();
    // Clocks of file systems may tick slowly; people do not flip bits within a tick.
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(1);
    fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
    let damaged =
        |list: Vec<SessionSummary>| list.into_iter().filter(|summary| summary.damage.is_some()).count();
    assert!(damaged(journal.list().unwrap()) >= 1);
    fs::write(&path, good).unwrap();
    assert_eq!(damaged(journal.list().unwrap()), 0);
}
