//! Sessions that were recorded once, and sessions of versions to come. Whatever changes in Helve, the first stay readable, and of the
//! second nothing is lost.

use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use helve_journal::{Journal, LogReadEnd};
use helve_protocol::{
    EventBody, MessagePart, Seq, SessionEvent, SessionId, SessionOpened, SessionState, UnknownEvent,
};
use helve_testkit::SampleSession;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::home::Home;

/// What a failure of these tests means.
const PROMISE: &str = "stored formats must stay readable (docs/reference/journal.md): people have sessions like this one. \
                       Change the code, not the recording";

fn recorded_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recorded/sessions")
}

/// A machine with the recorded sessions.
fn home_with_recordings() -> (Home, Vec<SessionId>) {
    let home = Home::new();
    let mut ids = Vec::new();
    for entry in fs::read_dir(recorded_folder()).unwrap() {
        let entry = entry.unwrap();
        copy_folder(&entry.path(), &home.path().join("sessions").join(entry.file_name()));
        ids.push(entry.file_name().to_str().unwrap().parse().unwrap());
    }
    ids.sort();
    assert_eq!(ids.len(), 3);
    (home, ids)
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap().path();
        let to = to.join(entry.file_name().unwrap());
        if entry.is_dir() {
            copy_folder(&entry, &to);
        } else {
            fs::copy(&entry, &to).unwrap();
        }
    }
}

/// Whether everything that was stored is still there after reading and writing. New optional fields may be added.
fn keeps(stored: &Value, written: &Value) -> bool {
    match (stored, written) {
        (Value::Object(stored), Value::Object(written)) => {
            stored.iter().all(|(name, value)| written.get(name).is_some_and(|new| keeps(value, new)))
        }
        (Value::Array(stored), Value::Array(written)) => {
            stored.len() == written.len() && stored.iter().zip(written).all(|(old, new)| keeps(old, new))
        }
        (stored, written) => stored == written,
    }
}

/// What a session comes to, in lines, with the names that its stored form has.
fn folded(events: &[SessionEvent]) -> String {
    let mut state = SessionState::default();
    events.iter().for_each(|event| state.apply(event));
    assert!(state.unreadable.is_empty(), "{PROMISE}: {:?}", state.unreadable);
    let mut lines =
        vec![format!("model {}, mode {}, plan {}", json!(state.model), json!(state.mode), json!(state.plan))];
    for message in state.history.for_model() {
        for part in message.parts.iter().filter(|part| part.is_for_model()) {
            let said = match part {
                MessagePart::Text(text) => text.text.lines().next().unwrap_or_default().to_owned(),
                MessagePart::Tool(tool) => format!("{} {}", tool.name, tool.state.name()),
                other => json!(other)["type"].to_string(),
            };
            lines.push(format!("{}: {said}", json!(message.role)));
        }
    }
    lines.push(format!("ended {}", json!(state.outcome)));
    lines.join("\n")
}

#[test]
fn recorded_sessions_are_read_folded_and_replayed() {
    let (home, ids) = home_with_recordings();
    let journal = home.journal();
    let listed = journal.list().unwrap();
    assert!(
        listed.len() == 3 && listed.iter().all(|summary| summary.damage.is_none()),
        "{PROMISE}: {listed:?}"
    );
    let mut kinds = BTreeSet::new();
    let mut all = Vec::new();
    for id in ids {
        let mut events = Vec::new();
        let end = journal.read(id, Seq::START, &mut |event| {
            events.push(event);
            ControlFlow::Continue(())
        });
        assert!(matches!(end, Ok(LogReadEnd::Whole)), "{PROMISE}: {end:?}");
        let log = fs::read_to_string(recorded_folder().join(id.to_string()).join("log.jsonl")).unwrap();
        for line in log.lines().skip(1) {
            let mut stored: Value = serde_json::from_str(line).unwrap();
            stored.as_object_mut().unwrap().remove("hash");
            let read = events.iter().find(|event| event.seq.0 == stored["seq"].as_u64().unwrap()).unwrap();
            assert!(!matches!(read.body, EventBody::Unknown(_)), "{PROMISE}: {line}");
            let written: Value = serde_json::from_str(&read.to_json().unwrap()).unwrap();
            assert!(keeps(&stored, &written), "{PROMISE}: {line}\nis written as {written}");
            kinds.insert(read.body.kind().to_owned());
        }
        all.push(folded(&events));
        let shown = home.run(&["sessions", "show", &id.to_string()]);
        assert_eq!((shown.code, shown.err.as_str()), (0, ""), "{PROMISE}");
    }
    let all = format!("{}\n\nkinds: {}\n", all.join("\n\n"), Vec::from_iter(kinds).join(", "));
    assert_eq!(all, include_str!("../data/recorded/folded.txt"), "{PROMISE}");
    // A build may tell models other words than the one that recorded it, so its requests may differ; their number, the outcomes and
    // what is known of them may not.
    let replayed = home.run(&["replay", "--all"]);
    assert_eq!(replayed.err, "", "{PROMISE}");
    for requests in ["5 requests in 2 turns", "3 requests in 2 turns"] {
        assert!(replayed.out.contains(requests), "{PROMISE}: {}", replayed.out);
    }
    for wrong in ["another form", "requests were made", "the outcome was", "not kept", "not known"] {
        assert!(!replayed.out.contains(wrong), "{PROMISE}: {}", replayed.out);
    }
}

#[test]
fn recorded_sessions_can_be_continued() {
    let (home, ids) = home_with_recordings();
    home.write(
        "project/next.toml",
        "[[step]]\nwhen = { asked = 'more' }\ntext = 'There is more.'\nrepeat = true",
    );
    for id in ids {
        let words = ["run", "--model", "script:next.toml", "--resume", &id.to_string(), "say more"];
        let ran = home.run(&words);
        assert_eq!((ran.code, ran.out.as_str()), (0, "There is more.\n"), "{PROMISE}: {}", ran.err);
    }
    home.skip_replay();
}

#[test]
fn a_session_with_unknown_events_is_shown_and_not_continued() {
    let home = Home::new();
    home.write("project/hi.toml", "[[step]]\ntext = 'Hello.'\nrepeat = true");
    assert_eq!(home.run(&["run", "--model", "script:hi.toml", "greet me"]).code, 0);
    let id = home.journal().list().unwrap()[0].session;
    let mut session = SampleSession::new(id);
    let mut log = home.journal().open(id, &mut |event| session.last = event.seq).unwrap();
    let data = RawValue::from_string("{\"to\":\"everybody\"}".to_owned()).unwrap();
    let unknown = EventBody::Unknown(UnknownEvent { kind: "telepathy_began".to_owned(), data });
    log.append(&[session.event(SessionOpened { helve: "9.9.9".to_owned() }), session.event(unknown)])
        .unwrap();
    drop(log);
    let path = home.path().join("sessions").join(id.to_string()).join("log.jsonl");
    let stored = fs::read(&path).unwrap();

    assert!(home.run(&["sessions", "list"]).out.contains("greet me"));
    assert!(home.run(&["sessions", "show", "last"]).out.contains("Hello."));
    assert!(home.run(&["sessions", "show", "last", "--events"]).out.contains("\"to\":\"everybody\""));

    let id = id.to_string();
    for how in [&["--continue"][..], &["--resume", &id], &["--fork", &id]] {
        let ran = home.run(&[&["run", "--model", "script:hi.toml", "again"], how].concat());
        assert_eq!(ran.code, 1, "{}", ran.err);
        for words in ["can't be continued", "telepathy_began", "Helve 9.9.9", "helve sessions show"] {
            assert!(ran.err.contains(words), "{words}: {}", ran.err);
        }
    }
    assert_eq!(fs::read(&path).unwrap(), stored, "nothing was added to it");
    assert_eq!(home.journal().list().unwrap().len(), 1, "nothing was forked from it");

    // What stands before the unknown event can be continued in a session of its own.
    let forked = home.run(&["run", "--model", "script:hi.toml", "--fork", &format!("{id}@1"), "again"]);
    assert_eq!((forked.code, forked.out.as_str()), (0, "Hello.\n"), "{}", forked.err);
}
