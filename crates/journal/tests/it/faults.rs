//! Real faults: each gives a typed error that says what to do, everything before the damage can be read, and no other
//! session is touched.

use std::fs;
use std::path::Path;
use std::process::Command;

use helve_journal::{FileJournal, Journal, JournalError, JournalFinding, LogFlaw, LogReadEnd};
use helve_protocol::{Seq, SessionEvent, SessionId};
use helve_testkit::{SampleSession, sample_id, skip};

use crate::child;
use crate::support::{file_journal, log_path, read, read_whole, store_session};

/// Runs a child with its home on a file system of its own, in a mount namespace that dies with it.
fn with_mount(test: &str, role: &str, session: SessionId, root: &Path, script: &str) -> Option<Vec<String>> {
    let works = Command::new("unshare").args(["-rm", "true"]).status().is_ok_and(|status| status.success());
    if !works {
        skip(test, "mount namespaces can't be made here");
        return None;
    }
    let home = root.join("home");
    fs::create_dir_all(&home).unwrap();
    let script = format!("{} && exec \"$@\"", script.replace("HOME", home.to_str().unwrap()));
    let wrapper = ["unshare", "-rm", "sh", "-c", &script, "sh"];
    let mut child = child::role(&wrapper, role, root, session).spawn().unwrap();
    let said = child::lines(&mut child).collect();
    assert!(child.wait().unwrap().success(), "{said:?}");
    Some(said)
}

#[test]
fn a_full_disk_is_told_and_nothing_is_lost() {
    let root = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=256k tmpfs HOME";
    let Some(said) = with_mount("a_full_disk", "fill", sample_id(1), root.path(), script) else { return };
    let [full, blob, on, read] = said.as_slice() else { panic!("{said:?}") };
    assert!(full.ends_with(": no space"), "{said:?}");
    assert_eq!(blob, "blob: no space");
    let last: u64 = full.split([' ', ':']).nth(2).unwrap().parse().unwrap();
    assert!(last > 10);
    assert_eq!(*on, format!("went on to {}", last + 2));
    assert_eq!(*read, format!("read {}: Whole", last + 2));
}

#[test]
fn a_disk_full_of_segments_is_told_and_none_is_lost() {
    let root = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=256k tmpfs HOME";
    let Some(said) = with_mount("a_disk_full_of_segments", "fill-pack", sample_id(1), root.path(), script)
    else {
        return;
    };
    let [full, read] = said.as_slice() else { panic!("{said:?}") };
    assert!(full.ends_with(": no space"), "{said:?}");
    let put: u64 = full.split([' ', ':']).nth(2).unwrap().parse().unwrap();
    assert!(put > 10);
    assert_eq!(*read, format!("put {0}, read {0}, wrong 0", put + 3));
}

#[test]
fn a_read_only_folder_is_told_and_can_be_read() {
    let root = tempfile::tempdir().unwrap();
    let journal = FileJournal::new(root.path().join("home"));
    let session = store_session(&journal, 1, 1)[0].session;
    let script = "mount --bind HOME HOME && mount -o remount,ro,bind HOME";
    let Some(said) = with_mount("a_read_only_folder", "touch", session, root.path(), script) else { return };
    let expected = [
        "create: read-only",
        "open: read-only",
        "fork: read-only",
        "delete: read-only",
        "read: fine",
        "list: fine",
    ];
    assert_eq!(said, expected);
}

#[test]
fn a_folder_of_somebody_else_is_told() {
    let root = tempfile::tempdir().unwrap();
    let journal = FileJournal::new(root.path().join("home"));
    let session = store_session(&journal, 1, 1)[0].session;
    let is_root = rustix::process::getuid().is_root();
    if !is_root {
        let mut closed = fs::metadata(root.path().join("home/sessions")).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut closed, 0o000);
        fs::set_permissions(root.path().join("home/sessions"), closed).unwrap();
    }
    let mut child = child::role(&[], "touch-as-nobody", root.path(), session).spawn().unwrap();
    let said: Vec<String> = child::lines(&mut child).collect();
    assert!(child.wait().unwrap().success());
    assert_eq!(said.len(), 6);
    for line in &said {
        assert!(line.ends_with(": no permission"), "{said:?}");
    }
}

#[test]
fn a_session_removed_underneath_is_told_at_once() {
    let (root, journal) = file_journal();
    let mut session = SampleSession::new(sample_id(1));
    let mut log = journal.create(session.id).unwrap();
    log.append(&[session.created()]).unwrap();
    fs::remove_dir_all(root.path().join("sessions")).unwrap();
    let blob = log.blobs().put(b"content").unwrap_err();
    assert!(matches!(blob.0.downcast_ref(), Some(JournalError::Gone { .. })), "{blob}");
    let segment = log.blobs().put_unsynced(b"segment").unwrap_err();
    assert!(matches!(segment.0.downcast_ref(), Some(JournalError::Gone { .. })), "{segment}");
    let refused = log.append(&[session.user_message("hello")]);
    assert!(matches!(refused, Err(JournalError::Gone { .. })), "{refused:?}");
    let again = log.append(&[session.user_message("hello")]);
    assert!(matches!(again, Err(JournalError::InDoubt { .. })), "{again:?}");
}

/// Checks what must hold for one damaged session among healthy ones.
fn assert_contained(
    journal: &FileJournal,
    damaged: SessionId,
    original: &[SessionEvent],
    healthy: &[SessionEvent],
) -> String {
    let what = match read(journal, damaged) {
        Ok((events, ending)) => {
            assert_eq!(events, original[..events.len()], "what is told is what was written");
            match ending {
                LogReadEnd::Damaged(damage) => {
                    assert_eq!(damage.after.0, events.len() as u64);
                    let refused = journal.open(damaged, &mut |_| {}).err().unwrap();
                    assert!(matches!(refused, JournalError::Damaged { .. }), "{refused}");
                    damage.to_string()
                }
                other => format!("{other:?}"),
            }
        }
        Err(error) => {
            assert!(matches!(error, JournalError::Damaged { .. }), "{error}");
            error.to_string()
        }
    };
    assert_eq!(read_whole(journal, healthy[0].session), healthy, "no other session is touched");
    what
}

#[test]
fn a_flipped_bit_anywhere_is_noticed_and_harms_one_session() {
    let (root, journal) = file_journal();
    let original = store_session(&journal, 1, 8);
    let healthy = store_session(&journal, 2, 2);
    let session = original[0].session;
    let path = log_path(root.path(), session);
    let bytes = fs::read(&path).unwrap();
    let newline_of_line = |offset: usize| bytes[..offset].iter().filter(|byte| **byte == b'\n').count();
    // Every 97th byte, and each byte of the last line's end.
    let places = (0..bytes.len()).step_by(97).chain(bytes.len() - 3..bytes.len());
    let mut flips = 0;
    for offset in places {
        let mut damaged = bytes.clone();
        damaged[offset] ^= 1 << (offset % 8);
        fs::write(&path, &damaged).unwrap();
        let journal = FileJournal::new(root.path());
        assert_contained(&journal, session, &original, &healthy);
        let readable = read(&journal, session).map_or(0, |(events, _)| events.len());
        let expected = newline_of_line(offset).saturating_sub(1);
        assert_eq!(readable, expected, "everything before byte {offset} can be read");
        journal.rebuild_catalogue().unwrap();
        let list = journal.list().unwrap();
        assert_eq!(list.len(), 2);
        for summary in list {
            assert_eq!(summary.damage.is_some(), summary.session == session, "flip at {offset}: {summary:?}");
        }
        flips += 1;
    }
    assert!(flips > 100, "{flips} flips");
    fs::write(&path, &bytes).unwrap();
    assert_eq!(read_whole(&journal, session), original);
}

#[test]
fn a_log_cut_anywhere_is_read_up_to_there_and_goes_on() {
    let (root, journal) = file_journal();
    let original = store_session(&journal, 1, 2);
    let session = original[0].session;
    let path = log_path(root.path(), session);
    let bytes = fs::read(&path).unwrap();
    let header = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for length in 0..bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        if length < header {
            let error = read(&journal, session).unwrap_err();
            assert!(
                matches!(&error, JournalError::Damaged { damage, .. } if damage.flaw == LogFlaw::Header),
                "{error}"
            );
            continue;
        }
        let (events, ending) = read(&journal, session).unwrap();
        let newlines = bytes[..length].iter().filter(|byte| **byte == b'\n').count();
        let lacks_only_newline = bytes[length] == b'\n';
        assert_eq!(events.len(), newlines - 1 + usize::from(lacks_only_newline), "cut at {length}");
        let at_line_end = bytes[length - 1] == b'\n';
        assert_eq!(
            ending == LogReadEnd::Whole,
            at_line_end || lacks_only_newline,
            "cut at {length}: {ending:?}"
        );

        // Opening is slow for syncing, so it is tried at some places within a line and at all around its end.
        if length % 17 != 0 && !at_line_end && !lacks_only_newline {
            continue;
        }
        let mut session = SampleSession::new(session);
        session.last = Seq(events.len() as u64);
        let mut log = journal.open(session.id, &mut |_| {}).unwrap();
        log.append(&[session.user_message("it goes on")]).unwrap();
        drop(log);
        assert_eq!(read_whole(&journal, session.id).len(), events.len() + 1);
    }
}

/// What a crash of the machine may leave: the file was made longer, but the data never came.
#[test]
fn zeros_at_the_end_are_a_torn_line() {
    let (root, journal) = file_journal();
    let original = store_session(&journal, 1, 2);
    let path = log_path(root.path(), original[0].session);
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend([0; 300]);
    fs::write(&path, bytes).unwrap();
    let (events, ending) = read(&journal, original[0].session).unwrap();
    assert_eq!((events, ending), (original, LogReadEnd::Torn { bytes: 300 }));
}

#[test]
fn a_log_that_became_shorter_is_told_by_the_list() {
    let (root, journal) = file_journal();
    let events = store_session(&journal, 1, 3);
    assert_eq!(journal.list().unwrap()[0].damage, None);
    let path = log_path(root.path(), events[0].session);
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    fs::write(&path, lines[..5].concat()).unwrap();
    let list = journal.list().unwrap();
    assert!(list[0].damage.as_deref().unwrap().contains("shorter than it was"), "{list:?}");
}

#[test]
fn a_damaged_session_is_mended_and_the_damaged_file_is_kept() {
    let (root, journal) = file_journal();
    let original = store_session(&journal, 1, 4);
    let session = original[0].session;
    let path = log_path(root.path(), session);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let before = read(&journal, session).unwrap().0;
    assert!(matches!(journal.examine(session)[..], [JournalFinding::Damaged(_)]));

    let repair = journal.repair(session).unwrap().unwrap();
    assert_eq!(fs::read(&repair.kept_as).unwrap(), bytes);
    assert_eq!(read_whole(&journal, session), before);
    assert_eq!(fs::metadata(&path).unwrap().len() + repair.lost_bytes, bytes.len() as u64);
    assert!(journal.examine(session).is_empty());
    assert!(journal.repair(session).unwrap().is_none(), "there is nothing more to mend");
    journal.open(session, &mut |_| {}).unwrap();
}

#[test]
fn a_damaged_parent_is_told_by_the_fork() {
    let (root, journal) = file_journal();
    let original = store_session(&journal, 1, 4);
    let parent = original[0].session;
    journal.fork(parent, Seq(6), sample_id(2)).unwrap();
    let path = log_path(root.path(), parent);
    let bytes = fs::read(&path).unwrap();

    let end = bytes.len() - 200;
    let mut late = bytes.clone();
    late[end] ^= 1;
    fs::write(&path, late).unwrap();
    assert_eq!(
        read_whole(&journal, sample_id(2)),
        original[..6],
        "damage after the fork point is not the fork's"
    );

    let mut early = bytes.clone();
    let line_of_event_3 =
        bytes.split_inclusive(|byte| *byte == b'\n').take(3).map(<[u8]>::len).sum::<usize>();
    early[line_of_event_3 + 10] ^= 1;
    fs::write(&path, early).unwrap();
    let (events, ending) = read(&journal, sample_id(2)).unwrap();
    assert_eq!(events, original[..2]);
    assert!(matches!(ending, LogReadEnd::Damaged(_)), "{ending:?}");

    // Another history with the same numbers is not the parent's.
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    let mut impostor = SampleSession::new(parent);
    let mut log = journal.create(parent).unwrap();
    log.append(&[impostor.created()]).unwrap();
    (0..9).for_each(|_| log.append(&[impostor.user_message("something else")]).unwrap());
    let (_, ending) = read(&journal, sample_id(2)).unwrap();
    assert!(matches!(ending, LogReadEnd::Damaged(damage) if damage.flaw == LogFlaw::Parent));

    drop(log);
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    let (_, ending) = read(&journal, sample_id(2)).unwrap();
    assert!(matches!(ending, LogReadEnd::Damaged(damage) if damage.flaw == LogFlaw::Parent));
    let refused = journal.open(sample_id(2), &mut |_| {}).err().unwrap();
    assert!(matches!(refused, JournalError::Damaged { .. }), "{refused}");
}

#[test]
fn a_forks_own_events_are_told_whatever_its_parent_is() {
    let (root, journal) = file_journal();
    let original = store_session(&journal, 1, 4);
    let parent = original[0].session;
    journal.fork(parent, Seq(6), sample_id(2)).unwrap();
    let mut session = SampleSession::new(sample_id(2));
    session.last = Seq(6);
    let own = session.user_message("mine");
    journal.open(sample_id(2), &mut |_| {}).unwrap().append(std::slice::from_ref(&own)).unwrap();
    let path = log_path(root.path(), parent);
    let mut bytes = fs::read(&path).unwrap();
    bytes[600] ^= 1;
    fs::write(&path, bytes).unwrap();
    let (events, ending) = read(&journal, sample_id(2)).unwrap();
    assert_eq!(events.last(), Some(&own));
    assert!(
        matches!(ending, LogReadEnd::Damaged(damage) if damage.path == path),
        "it says which log is damaged"
    );
    assert!(matches!(journal.examine(sample_id(2))[..], [JournalFinding::ParentDamaged(_)]));
    assert!(journal.repair(sample_id(2)).unwrap().is_none());
    let list = journal.list().unwrap();
    assert!(list.iter().all(|summary| summary.damage.is_some()), "{list:?}");
}

#[test]
fn a_missing_or_damaged_blob_is_told() {
    let (root, journal) = file_journal();
    let mut session = SampleSession::new(sample_id(1));
    let mut log = journal.create(session.id).unwrap();
    let content = log.blobs().put(&b"some output ".repeat(1000)).unwrap();
    let file =
        helve_protocol::FilePart { name: "out".to_owned(), media_type: "text/plain".to_owned(), content };
    let part = helve_protocol::MessagePart::File(file);
    let named = session.event(helve_protocol::UserMessage { message: sample_id(5), parts: vec![part] });
    log.append(&[named]).unwrap();
    assert!(journal.examine(session.id).is_empty());

    let path = root
        .path()
        .join("sessions")
        .join(session.id.to_string())
        .join("blobs")
        .join(format!("{content}.zst"));
    let bytes = fs::read(&path).unwrap();
    for offset in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[offset] ^= 0x10;
        fs::write(&path, damaged).unwrap();
        // A few bits of a compressed file mean nothing; what is told is never wrong.
        match journal.blob(session.id, content) {
            Ok(told) => assert_eq!(told, b"some output ".repeat(1000)),
            Err(error) => assert!(matches!(error, JournalError::BlobDamaged(_)), "{error}"),
        }
    }
    fs::write(&path, b"").unwrap();
    assert!(matches!(journal.examine(session.id)[..], [JournalFinding::Blob(JournalError::BlobDamaged(_))]));
    fs::remove_file(&path).unwrap();
    assert!(matches!(journal.examine(session.id)[..], [JournalFinding::Blob(JournalError::BlobMissing(_))]));
}

#[test]
fn what_killed_processes_left_is_swept_and_a_forked_session_comes_back() {
    let (root, journal) = file_journal();
    let events = store_session(&journal, 1, 1);
    let parent = events[0].session;
    journal.fork(parent, Seq(2), sample_id(2)).unwrap();
    let sessions = root.path().join("sessions");
    fs::create_dir(sessions.join(format!(".new-{}", sample_id::<SessionId>(5)))).unwrap();
    fs::create_dir(sessions.join(format!(".deleted-{}", sample_id::<SessionId>(6)))).unwrap();
    fs::rename(sessions.join(parent.to_string()), sessions.join(format!(".deleted-{parent}"))).unwrap();
    assert_eq!(journal.sweep().unwrap(), 2);
    assert_eq!(read_whole(&journal, parent), events);
    let mut left: Vec<_> = fs::read_dir(sessions)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(
        left,
        [".lock".to_owned(), ".open".to_owned(), sample_id::<SessionId>(2).to_string(), parent.to_string()]
    );
}

#[test]
fn nothing_is_swept_while_sessions_come_and_go() {
    let (root, journal) = file_journal();
    store_session(&journal, 1, 1);
    let unborn = root.path().join("sessions/.new-1-x");
    fs::create_dir(&unborn).unwrap();
    let coming = fs::File::open(root.path().join("sessions/.lock")).unwrap();
    coming.lock_shared().unwrap();
    assert_eq!(journal.sweep().unwrap(), 0);
    assert!(unborn.exists());
    drop(coming);
    assert_eq!(journal.sweep().unwrap(), 1);
}

#[test]
fn a_session_in_use_is_not_repaired() {
    let (root, journal) = file_journal();
    let session = store_session(&journal, 1, 3)[0].session;
    let _log = journal.open(session, &mut |_| {}).unwrap();
    let path = log_path(root.path(), session);
    let mut bytes = fs::read(&path).unwrap();
    bytes[900] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert!(matches!(journal.repair(session), Err(JournalError::InUse { .. })));
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_torn_line_is_set_aside_whole() {
    let (root, journal) = file_journal();
    let session = store_session(&journal, 1, 1)[0].session;
    let path = log_path(root.path(), session);
    let bytes = fs::read(&path).unwrap();
    for tail in ["{\"seq\":", "{\"seq\":9"] {
        fs::write(&path, [&bytes, tail.as_bytes()].concat()).unwrap();
        journal.open(session, &mut |_| {}).unwrap();
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
    let aside =
        |n: u32| fs::read_to_string(path.with_file_name(format!("torn-{}-{n}", bytes.len()))).unwrap();
    assert_eq!([aside(1), aside(2)], ["{\"seq\":", "{\"seq\":9"], "the second does not replace the first");
}

/// A backup by hard links keeps a removed file alive, and what is written to it is lost with the backup.
#[test]
fn a_log_that_lives_on_under_another_name_is_gone() {
    let (root, journal) = file_journal();
    let mut session = SampleSession::new(sample_id(1));
    let mut log = journal.create(session.id).unwrap();
    log.append(&[session.created()]).unwrap();
    let path = log_path(root.path(), session.id);
    fs::hard_link(&path, root.path().join("backup")).unwrap();
    fs::remove_file(&path).unwrap();
    let refused = log.append(&[session.turn_ended()]);
    assert!(matches!(refused, Err(JournalError::Gone { .. })), "{refused:?}");
}

#[test]
fn a_parent_is_not_deleted_while_a_fork_of_a_newer_version_lives_on_it() {
    let (root, journal) = file_journal();
    let parent = store_session(&journal, 1, 1)[0].session;
    journal.fork(parent, Seq(2), sample_id(2)).unwrap();
    let path = log_path(root.path(), sample_id(2));
    let header = fs::read_to_string(&path).unwrap();
    let (object, _) = header.split_once(",\"hash\"").unwrap();
    let object = format!("{}}}", object.replace("\"version\":1", "\"version\":7"));
    fs::write(&path, crate::format::sealed([0; 32], &object).0).unwrap();
    assert!(matches!(journal.delete(parent), Err(JournalError::HasForks { .. })));
}

#[test]
fn a_fork_and_a_deletion_at_once_leave_no_orphan() {
    let (_root, journal) = file_journal();
    let (mut forked, mut deleted) = (0, 0);
    for race in 0..200 {
        let parent = store_session(&journal, race, 1)[0].session;
        let child = sample_id(race + 1);
        let (fork, delete) = std::thread::scope(|scope| {
            let fork = scope.spawn(|| journal.fork(parent, Seq(2), child));
            let delete = scope.spawn(|| journal.delete(parent));
            (fork.join().unwrap(), delete.join().unwrap())
        });
        match (&fork, &delete) {
            (Ok(()), Err(JournalError::HasForks { .. })) => assert_eq!(read_whole(&journal, child).len(), 2),
            (Err(_), Ok(())) => assert!(matches!(read(&journal, child), Err(JournalError::NotFound(_)))),
            // Each saw the other and gave way.
            (Err(JournalError::NotFound(_)), Err(JournalError::HasForks { .. })) => {
                assert!(matches!(read(&journal, child), Err(JournalError::NotFound(_))));
            }
            both => panic!("race {race}: {both:?}"),
        }
        forked += u32::from(fork.is_ok());
        deleted += u32::from(delete.is_ok());
    }
    println!("{forked} forked, {deleted} deleted");
}
