//! How fast the journal is, each figure beside a baseline of the same run. `cargo xtask bench` runs it.
#![expect(clippy::unwrap_used, reason = "a benchmark that can't run has nothing to say")]
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures time and prints it")]

use std::fs::{self, File, OpenOptions};
use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use helve_journal::{FileJournal, Journal, SessionLog};
use helve_protocol::{ConversationHistory, ModelName, Seq, SessionEvent, SessionId, StepStarted};
use helve_testkit::{SampleSession, sample_id};

type Group = fn(&Path);

fn main() {
    let root = tempfile::tempdir().unwrap();
    // `cargo bench --bench journal -- listing` runs one of them.
    let wanted = std::env::args().find(|word| !word.starts_with('-') && !word.contains('/'));
    let groups: [(&str, Group); 5] = [
        ("appending", appending),
        ("segments", segments),
        ("opening", opening),
        ("listing", listing),
        ("forking", forking),
    ];
    for (name, group) in groups {
        if wanted.as_deref().is_none_or(|wanted| wanted == name) {
            let folder = root.path().join(name);
            fs::create_dir(&folder).unwrap();
            group(&folder);
        }
    }
}

fn time<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    black_box(work());
    start.elapsed()
}

/// The best of some runs: what the machine can do when nobody disturbs it.
fn best<T>(runs: usize, mut work: impl FnMut() -> T) -> Duration {
    (0..runs).map(|_| time(&mut work)).min().unwrap_or_default()
}

fn row(what: &str, ours: Duration, baseline_is: &str, baseline: Duration, target: &str) {
    let ratio = ours.as_secs_f64() / baseline.as_secs_f64().max(1e-9);
    println!("{what}\t{ours:.2?}\t{baseline_is}\t{baseline:.2?}\t{ratio:.1}\t{target}");
}

/// An ordinary session: turns of a question, a step with two calls, and an answer. 1 + 10 events a turn.
fn events(session: SessionId, count: usize) -> Vec<SessionEvent> {
    let mut session = SampleSession::new(session);
    let mut events = vec![session.created()];
    let output = "    let answer = question.ask(&context)?;\n".repeat(10);
    while events.len() < count {
        events.push(session.user_message("Why does the parser fail on an empty line?"));
        events.extend(
            session.step("I look at the parser.", &[("read", &output), ("grep", "src/parse.rs:12: fn line")]),
        );
        events.extend(session.step("The loop ends before the last line. I will change its condition.", &[]));
    }
    events.truncate(count);
    events
}

fn appending(root: &Path) {
    let count = 10_000;
    let all = events(sample_id(1), count);
    let lines: Vec<String> = all.iter().map(|event| event.to_json().unwrap() + "\n").collect();
    let raw = |name: &str, batch: usize, sync: bool| {
        let mut file = OpenOptions::new().append(true).create_new(true).open(root.join(name)).unwrap();
        time(|| {
            for lines in lines.chunks(batch) {
                file.write_all(lines.concat().as_bytes()).unwrap();
                if sync {
                    file.sync_data().unwrap();
                }
            }
        })
    };
    let ours = |n: u64, batch: usize, sync: bool| {
        let journal = FileJournal::new(root);
        let events = events(sample_id(n), count);
        let mut log = journal.create(sample_id(n)).unwrap();
        time(|| {
            for events in events.chunks(batch) {
                log.append(events).unwrap();
                if sync {
                    log.sync().unwrap();
                }
            }
        })
    };
    row("append 10,000 events, one by one", ours(1, 1, false), "write", raw("a", 1, false), "");
    row("append 10,000 events, in batches of 10", ours(2, 10, false), "write", raw("b", 10, false), "");
    row("append 10,000 events, each synced", ours(3, 1, true), "write + fdatasync", raw("c", 1, true), "");
}

/// A segment of a request: 2 KB of JSON with some code in it, another for each number.
fn segment(n: usize) -> Vec<u8> {
    let line = |k: usize| format!("    let value_{} = lookup(table, {})?;\\n", n * 31 + k, n * 17 + k * k);
    let text: String = (0..)
        .map(line)
        .scan(0, |bytes, line| (*bytes < 1950).then(|| (*bytes += line.len(), line).1))
        .collect();
    format!(r#"{{"role":"tool","tool_call_id":"call_{n}","content":"{text}"}}"#).into_bytes()
}

fn segments(root: &Path) {
    let count = 1_000;
    let all: Vec<Vec<u8>> = (0..count).map(segment).collect();
    let mut file = OpenOptions::new().append(true).create_new(true).open(root.join("plain")).unwrap();
    let plain = time(|| all.iter().for_each(|segment| file.write_all(segment).unwrap()));
    let journal = FileJournal::new(root);
    let log = journal.create(sample_id(1)).unwrap();
    let put_all = |log: &dyn SessionLog| {
        let blobs = log.blobs();
        all.iter().map(|segment| blobs.put_unsynced(segment).unwrap()).collect::<Vec<_>>()
    };
    let new = time(|| put_all(&*log));
    drop(log);
    row("put 1,000 segments of 2 KB", new, "write", plain, "≤ 200 ms");
    let log = journal.open(sample_id(1), &mut |_| {}).unwrap();
    row("put them again after reopening", time(|| put_all(&*log)), "write", plain, "");
    row("put them once more", time(|| put_all(&*log)), "write", plain, "");
    let blobs = put_all(&*log);
    drop(log);
    let log = journal.open(sample_id(1), &mut |_| {}).unwrap();
    let first = time(|| log.blobs().get(*blobs.last().unwrap()).unwrap());
    row("find one of 1,000 after opening", first, "write", plain, "");

    let steps = |n: u64, segments_a_step: usize| {
        let mut session = SampleSession::new(sample_id(n));
        let mut log = journal.create(sample_id(n)).unwrap();
        time(|| {
            for segments in all.chunks(2) {
                let segments = segments.iter().take(segments_a_step);
                let segments = segments.map(|segment| log.blobs().put_unsynced(segment).unwrap()).collect();
                let (message, request) = (session.draw(), session.draw());
                let model = ModelName::new("test/model");
                let step =
                    StepStarted { message, request, model, number: 1, kept: 0, segments, marks: Vec::new() };
                log.append(&[session.event(step)]).unwrap();
            }
        })
    };
    row(
        "record 500 requests, two new segments each",
        steps(2, 2),
        "the same without",
        steps(3, 0),
        "≤ 100 ms",
    );
}

fn opening(root: &Path) {
    let journal = FileJournal::new(root);
    journal.create(sample_id(1)).unwrap().append(&events(sample_id(1), 10_000)).unwrap();
    let log = root.join("sessions").join(sample_id::<SessionId>(1).to_string()).join("log.jsonl");
    let open_and_fold = || {
        let mut history = ConversationHistory::default();
        let log = journal.open(sample_id(1), &mut |event| history.apply(&event)).unwrap();
        (log.last(), history.for_model().len())
    };
    let ours = best(10, open_and_fold);
    let baseline = best(10, || blake3::hash(&fs::read(&log).unwrap()));
    row("open and fold a session of 10,000 events", ours, "read and hash the file", baseline, "≤ 50 ms");
}

fn listing(root: &Path) {
    let home = root.join("many");
    let journal = FileJournal::new(&home);
    for n in 0..5_000 {
        let events = events(sample_id(10_000 + n), 12);
        journal.create(sample_id(10_000 + n)).unwrap().append(&events).unwrap();
    }
    let first = time(|| journal.list().unwrap());
    let ours = best(10, || FileJournal::new(&home).list().unwrap().len());
    let baseline = best(10, || {
        let sessions = fs::read_dir(home.join("sessions")).unwrap();
        let sizes = sessions.map(|entry| fs::metadata(entry.unwrap().path().join("log.jsonl")));
        sizes.flatten().map(|log| log.len()).sum::<u64>()
    });
    row("list 5,000 sessions", ours, "stat 5,000 files", baseline, "≤ 20 ms");
    row("list 5,000 sessions, catalogue lost", first, "stat 5,000 files", baseline, "");
}

fn forking(root: &Path) {
    let journal = FileJournal::new(root);
    let events = events(sample_id(4), 100_000);
    journal.create(sample_id(4)).unwrap().append(&events).unwrap();
    let mut child = 20_000;
    let mut fork_at = |seq: u64| {
        child += 1;
        journal.fork(sample_id(4), Seq(seq), sample_id(child)).unwrap();
    };
    let last = best(10, || fork_at(100_000));
    let middle = best(10, || fork_at(31_415));
    let folder = root.join("syncs");
    fs::create_dir(&folder).unwrap();
    let mut n = 0;
    let baseline = best(10, || {
        n += 1;
        let mut file = File::create(folder.join(n.to_string())).unwrap();
        file.write_all(&[b'x'; 300]).unwrap();
        file.sync_all().unwrap();
        for _ in 0..3 {
            File::open(&folder).unwrap().sync_all().unwrap();
        }
    });
    row(
        "fork a session of 100,000 events at its end",
        last,
        "a new file, synced, and its folders",
        baseline,
        "≤ 5 ms",
    );
    row(
        "fork a session of 100,000 events within",
        middle,
        "a new file, synced, and its folders",
        baseline,
        "≤ 5 ms",
    );
}
