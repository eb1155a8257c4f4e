//! Small payloads share one file. Whatever happens to it, what is read from it is right.

use std::fs;
use std::path::{Path, PathBuf};

use helve_journal::{FileJournal, Journal, JournalError, JournalFinding, SessionLog};
use helve_protocol::{BlobId, Seq, SessionId};
use helve_testkit::{SampleSession, sample_id};

use crate::child_data::step;
use crate::support::{file_journal, log_path, noise, read_whole, store_session};

fn pack_path(root: &Path, session: SessionId) -> PathBuf {
    log_path(root, session).with_file_name("segments.pack")
}

fn blobs_folder(root: &Path, session: SessionId) -> PathBuf {
    log_path(root, session).with_file_name("blobs")
}

/// Of every size that is stored in another way: empty, tiny, compressed, and not worth it.
fn contents() -> Vec<Vec<u8>> {
    vec![
        b"a tiny one".to_vec(),
        "{\"role\":\"user\",\"content\":\"fix it\"} ".repeat(20).into_bytes(),
        Vec::new(),
        noise(1, 400),
        "the last one, ".repeat(30).into_bytes(),
    ]
}

fn put_all(log: &dyn SessionLog, contents: &[Vec<u8>]) -> Vec<BlobId> {
    contents.iter().map(|content| log.blobs().put_unsynced(content).unwrap()).collect()
}

/// A session with one request of some segments. Gives their names.
fn store(journal: &FileJournal, session: &mut SampleSession, contents: &[Vec<u8>]) -> Vec<BlobId> {
    let mut log = journal.create(session.id).unwrap();
    let blobs = put_all(&*log, contents);
    log.append(&[session.created(), step(session, blobs.clone())]).unwrap();
    blobs
}

fn assert_all(journal: &FileJournal, session: SessionId, blobs: &[BlobId], contents: &[Vec<u8>]) {
    for (blob, content) in blobs.iter().zip(contents) {
        assert_eq!(journal.blob(session, *blob).unwrap(), *content);
    }
}

/// How many of the payloads can't be read. What can be is right.
fn unreadable(journal: &FileJournal, session: SessionId, blobs: &[BlobId], contents: &[Vec<u8>]) -> usize {
    let wrong = |(blob, content): &(&BlobId, &Vec<u8>)| match journal.blob(session, **blob) {
        Ok(read) => {
            assert_eq!(read, **content);
            false
        }
        Err(error) => {
            assert!(matches!(error, JournalError::BlobDamaged(_) | JournalError::BlobMissing(_)), "{error}");
            true
        }
    };
    blobs.iter().zip(contents).filter(wrong).count()
}

#[test]
fn segments_share_one_file_and_each_is_stored_once() {
    let (root, journal) = file_journal();
    let mut session = SampleSession::new(sample_id(1));
    let contents = contents();
    let blobs = store(&journal, &mut session, &contents);
    assert!(!blobs_folder(root.path(), session.id).exists());
    assert_all(&journal, session.id, &blobs, &contents);
    let length = || fs::metadata(pack_path(root.path(), session.id)).unwrap().len();
    let before = length();
    for _ in 0..2 {
        let log = journal.open(session.id, &mut |_| {}).unwrap();
        assert_eq!(put_all(&*log, &contents), blobs);
        assert_eq!(put_all(&*log, &contents), blobs);
        assert_eq!(length(), before, "after reopening too");
        assert_eq!(log.blobs().put(&contents[1]).unwrap(), blobs[1]);
        assert!(!blobs_folder(root.path(), session.id).exists(), "what is in the pack needs no file");
    }
    let log = journal.open(session.id, &mut |_| {}).unwrap();
    let file = log.blobs().put(b"first in a file").unwrap();
    drop(log);
    let log = journal.open(session.id, &mut |_| {}).unwrap();
    assert_eq!(log.blobs().put_unsynced(b"first in a file").unwrap(), file);
    assert_eq!(length(), before, "what is in a file needs no frame");
    drop(log);
    assert!(journal.examine(session.id).is_empty());
    journal.delete(session.id).unwrap();
    assert!(!pack_path(root.path(), session.id).exists());
}

/// A kill in the middle of an append leaves any beginning of what was to be written.
#[test]
fn a_pack_cut_anywhere_keeps_what_is_whole_and_goes_on() {
    let (root, journal) = file_journal();
    let mut session = SampleSession::new(sample_id(1));
    let contents = contents();
    let blobs = store(&journal, &mut session, &contents);
    let path = pack_path(root.path(), session.id);
    let bytes = fs::read(&path).unwrap();
    let mut lost_before = contents.len();
    for length in 0..=bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        let lost = unreadable(&journal, session.id, &blobs, &contents);
        assert!(lost <= lost_before, "cut at {length}: a longer one has no less");
        lost_before = lost;
        // The missing payloads are no damage of the session: it goes on, and they can be put again.
        let log = journal.open(session.id, &mut |_| {}).unwrap();
        let other = log.blobs().put_unsynced(b"something else, of another length").unwrap();
        assert_eq!(put_all(&*log, &contents), blobs);
        drop(log);
        assert_all(&journal, session.id, &blobs, &contents);
        assert_eq!(journal.blob(session.id, other).unwrap(), b"something else, of another length");
        assert!(fs::metadata(&path).unwrap().len() <= bytes.len() as u64 + 81, "cut at {length}: no debris");
    }
    assert_eq!(lost_before, 0);
}

#[test]
fn a_flip_anywhere_harms_one_payload_which_can_be_put_again() {
    let (root, journal) = file_journal();
    let mut session = SampleSession::new(sample_id(1));
    let contents = contents();
    let blobs = store(&journal, &mut session, &contents);
    let path = pack_path(root.path(), session.id);
    let bytes = fs::read(&path).unwrap();
    let version = b"helve segments ".len();
    let mut harmed = 0;
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&path, &damaged).unwrap();
        let lost = unreadable(&journal, session.id, &blobs, &contents);
        if at != version {
            assert!(lost <= 1, "flip at {at}: {lost} lost");
        }
        harmed += usize::from(lost > 0);
        assert_eq!(journal.examine(session.id).len(), lost, "the doctor tells");
        let log = journal.open(session.id, &mut |_| {}).unwrap();
        assert_eq!(put_all(&*log, &contents), blobs);
        drop(log);
        assert_all(&journal, session.id, &blobs, &contents);
    }
    assert!(harmed > 500, "{harmed} flips were noticed");
}

/// What a power cut may leave: the file was made longer, but the data never came, for some of it or for all.
#[test]
fn zeros_in_a_pack_are_passed_over() {
    let (root, journal) = file_journal();
    let mut session = SampleSession::new(sample_id(1));
    let contents = contents();
    let blobs = store(&journal, &mut session, &contents);
    let path = pack_path(root.path(), session.id);
    let bytes = fs::read(&path).unwrap();
    let mut with_zeros = bytes.clone();
    with_zeros.extend([0; 9000]);
    fs::write(&path, with_zeros).unwrap();
    assert_all(&journal, session.id, &blobs, &contents);
    let log = journal.open(session.id, &mut |_| {}).unwrap();
    let after = log.blobs().put_unsynced(b"after the zeros").unwrap();
    drop(log);
    assert_all(&journal, session.id, &blobs, &contents);
    assert_eq!(journal.blob(session.id, after).unwrap(), b"after the zeros");

    fs::write(&path, vec![0; bytes.len()]).unwrap();
    assert_eq!(unreadable(&journal, session.id, &blobs, &contents), contents.len());
}

/// An event that was not synced may survive a power cut that its segments did not.
#[test]
fn a_lost_segment_is_told_and_keeps_nobody_from_going_on() {
    let (root, journal) = file_journal();
    let mut session = SampleSession::new(sample_id(1));
    let contents = contents();
    let blobs = store(&journal, &mut session, &contents);
    fs::remove_file(pack_path(root.path(), session.id)).unwrap();
    let findings = journal.examine(session.id);
    assert_eq!(findings.len(), contents.len());
    assert!(
        findings.iter().all(|finding| matches!(finding, JournalFinding::Blob(JournalError::BlobMissing(_))))
    );
    assert_eq!(journal.list().unwrap()[0].damage, None);
    let mut log = journal.open(session.id, &mut |_| {}).unwrap();
    let refused = log.append(&[step(&mut session.clone(), blobs.clone())]);
    assert!(matches!(refused, Err(JournalError::BlobMissing(_))), "{refused:?}");
    log.append(&[session.user_message("it goes on"), session.turn_ended()]).unwrap();
    put_all(&*log, &contents);
    log.append(&[step(&mut session, blobs)]).unwrap();
    drop(log);
    assert!(journal.examine(session.id).is_empty());
}

#[test]
fn a_fork_reads_its_ancestors_segments_and_does_not_store_them_again() {
    let (root, journal) = file_journal();
    let mut session = SampleSession::new(sample_id(1));
    let contents = contents();
    let blobs = store(&journal, &mut session, &contents);
    journal.fork(sample_id(1), Seq(2), sample_id(2)).unwrap();
    journal.fork(sample_id(2), Seq(2), sample_id(3)).unwrap();
    let mut child = SampleSession::new(sample_id(3));
    child.last = Seq(2);
    let mut log = journal.open(sample_id(3), &mut |_| {}).unwrap();
    assert_eq!(put_all(&*log, &contents), blobs);
    assert!(!pack_path(root.path(), sample_id(3)).exists());
    let own = log.blobs().put_unsynced(b"only in the fork").unwrap();
    log.append(&[step(&mut child, [blobs.clone(), vec![own]].concat()), child.turn_ended()]).unwrap();
    drop(log);
    assert_all(&journal, sample_id(3), &blobs, &contents);
    assert_eq!(journal.blob(sample_id(3), own).unwrap(), b"only in the fork");
    assert!(matches!(journal.blob(sample_id(1), own), Err(JournalError::BlobMissing(_))));
    assert!(journal.examine(sample_id(3)).is_empty());

    // What its ancestor lost, it keeps itself from then on.
    fs::write(pack_path(root.path(), sample_id(1)), b"").unwrap();
    let log = journal.open(sample_id(3), &mut |_| {}).unwrap();
    assert_eq!(put_all(&*log, &contents), blobs);
    drop(log);
    assert_all(&journal, sample_id(3), &blobs, &contents);
}

#[test]
fn a_pack_of_another_version_is_left_alone() {
    let (root, journal) = file_journal();
    let session = store_session(&journal, 1, 1)[0].session;
    let path = pack_path(root.path(), session);
    let foreign = [b"helve segments 2\n".as_slice(), &noise(7, 500)].concat();
    fs::write(&path, &foreign).unwrap();
    let log = journal.open(session, &mut |_| {}).unwrap();
    let blob = log.blobs().put_unsynced(b"kept all the same").unwrap();
    drop(log);
    assert_eq!(journal.blob(session, blob).unwrap(), b"kept all the same");
    assert_eq!(fs::read(&path).unwrap(), foreign);
}

#[test]
fn who_no_longer_owns_the_session_does_not_write_to_its_pack() {
    let (root, journal) = file_journal();
    let mut session = SampleSession::new(sample_id(1));
    let blobs = store(&journal, &mut session, &contents());
    let path = pack_path(root.path(), session.id);
    let before = fs::read(&path).unwrap();
    let left = journal.open(session.id, &mut |_| {}).unwrap().blobs();
    let late = left.put_unsynced(b"put when the session was closed").unwrap();
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(left.get(blobs[0]).unwrap(), contents()[0]);
    assert_eq!(journal.blob(session.id, late).unwrap(), b"put when the session was closed");
}

#[test]
fn many_may_put_segments_at_once() {
    let (_root, journal) = file_journal();
    let log = journal.create(sample_id(1)).unwrap();
    let blobs = log.blobs();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let blobs = &blobs;
            scope.spawn(move || {
                for n in 0..200 {
                    let shared = format!("shared {n} ").repeat(30).into_bytes();
                    let own = noise(thread * 1000 + n, 300);
                    for content in [shared, own] {
                        let blob = blobs.put_unsynced(&content).unwrap();
                        assert_eq!(blobs.get(blob).unwrap(), content);
                    }
                }
            });
        }
    });
    drop(log);
    let log = journal.open(sample_id(1), &mut |_| {}).unwrap();
    let shared = log.blobs().put_unsynced("shared 7 ".repeat(30).as_bytes()).unwrap();
    assert_eq!(journal.blob(sample_id(1), shared).unwrap(), "shared 7 ".repeat(30).into_bytes());
}

#[test]
fn a_pack_removed_underneath_is_told() {
    let (root, journal) = file_journal();
    let log = journal.create(sample_id(1)).unwrap();
    log.blobs().put_unsynced(b"first").unwrap();
    fs::remove_file(pack_path(root.path(), sample_id(1))).unwrap();
    let gone = log.blobs().put_unsynced(b"second").unwrap_err();
    assert!(matches!(gone.0.downcast_ref(), Some(JournalError::Gone { .. })), "{gone}");
    let again = log.blobs().put_unsynced(b"second").unwrap();
    assert_eq!(log.blobs().get(again).unwrap(), b"second");
}

/// The written form, read by a second implementation of its description in `docs/reference/journal.md`.
#[test]
fn a_pack_is_what_its_description_says() {
    let (root, journal) = file_journal();
    let mut session = SampleSession::new(sample_id(1));
    let contents = contents();
    store(&journal, &mut session, &contents);
    let bytes = fs::read(pack_path(root.path(), session.id)).unwrap();
    let mut rest = bytes.strip_prefix(b"helve segments 1\n").unwrap();
    let mut read = Vec::new();
    while !rest.is_empty() {
        let offset = (bytes.len() - rest.len()) as u64;
        let (head, after) = rest.split_at(48);
        let number = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap()) as usize;
        let check = blake3::hash(&[&offset.to_le_bytes(), &head[..44]].concat());
        assert_eq!((&head[..4], &head[44..]), (b"\xf5seg".as_slice(), &check.as_bytes()[..4]));
        let (stored, next) = after.split_at(number(36));
        let content = match number(40) {
            length if length == stored.len() => stored.to_vec(),
            length => zstd::bulk::decompress(stored, length).unwrap(),
        };
        assert_eq!(blake3::hash(&content).as_bytes(), &head[4..36]);
        read.push(content);
        rest = next;
    }
    assert_eq!(read, contents);
    assert_eq!(read_whole(&journal, session.id).len(), 2);
}
