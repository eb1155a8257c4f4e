//! What calls do to the files of the project, and what others do meanwhile.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use helve_agent::{Services, Session, SessionSpec, WatchConfig};
use helve_journal::{Journal, MemoryJournal};
use helve_protocol::{Clock, EventBody, FileChangeKind, FilesChanged, SessionEvent, Timestamp, ToolClass};
use helve_tools::{Tool, ToolContext, ToolFuture};
use helve_workspace::{WorkspaceLimits, WorkspaceRoot};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::house::{TestHouse, Ticks, assert_well_formed, events, house, run, said, session, tools};

/// A tool that writes into a file without telling anybody. What it is called decides whose doing that is.
struct Scribble(&'static str, ToolClass);

impl Tool for Scribble {
    fn name(&self) -> &'static str {
        self.0
    }

    fn description(&self) -> &'static str {
        "Writes."
    }

    fn schema(&self) -> Value {
        json!({ "type": "object", "properties": { "path": { "type": "string" }, "content": { "type": "string" } } })
    }

    fn class(&self) -> ToolClass {
        self.1
    }

    fn intent(&self, _: &Value) -> String {
        "write".to_owned()
    }

    fn run<'a>(&'a self, input: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let text = |field: &str| input.get(field).and_then(Value::as_str);
            let path = context.root.join(text("path").unwrap());
            match text("content") {
                Some(content) => fs::write(path, content).unwrap(),
                None => fs::remove_file(path).unwrap(),
            }
            Ok(helve_protocol::ToolOutput { text: "Done.".to_owned(), ..Default::default() })
        })
    }
}

/// A clock by which minutes pass between any two looks at it.
#[derive(Default)]
struct Minutes(AtomicU64);

impl Clock for Minutes {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_900_000_000_000 + 60_000 * self.0.fetch_add(1, Ordering::SeqCst))
    }
}

fn all_tools() -> Vec<Arc<dyn Tool>> {
    let mut tools = tools();
    tools.push(Arc::new(Scribble("shell", ToolClass::Changes)));
    tools.push(Arc::new(Scribble("somebody", ToolClass::Reads)));
    tools
}

fn watched(journal: &Arc<MemoryJournal>, root: &Path, notes: &Path) -> TestHouse {
    watched_with(journal, root, notes, all_tools())
}

fn watched_with(
    journal: &Arc<MemoryJournal>,
    root: &Path,
    notes: &Path,
    tools: Vec<Arc<dyn Tool>>,
) -> TestHouse {
    let root = root.canonicalize().unwrap();
    let watched = WatchConfig {
        root: WorkspaceRoot::named(&root).unwrap(),
        added: Vec::new(),
        git: None,
        limits: WorkspaceLimits::default(),
        notes: Some(notes.to_owned()),
    };
    let TestHouse { services, spec } = house(journal, &root, tools);
    TestHouse {
        services: Services { clock: Arc::new(Minutes::default()), ..services },
        spec: SessionSpec { watch: Some(watched), ..spec },
    }
}

struct Ran {
    events: Vec<SessionEvent>,
    session: Session,
    journal: Arc<MemoryJournal>,
    place: TempDir,
    notes: TempDir,
}

/// A turn in a folder with two files.
fn ran(script: &str) -> Ran {
    let (place, notes, journal) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Arc::new(MemoryJournal::default()));
    fs::write(place.path().join("a"), "one\n").unwrap();
    fs::write(place.path().join("b"), "two\n").unwrap();
    let mut session = session(script, watched(&journal, place.path(), notes.path()));
    run(session.submit(said("go"), &CancellationToken::new())).unwrap();
    assert_well_formed(&session, &journal, &all_tools());
    Ran { events: events(&journal, session.id()), session, journal, place, notes }
}

fn changes(events: &[SessionEvent]) -> Vec<&FilesChanged> {
    events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::FilesChanged(files) => Some(files),
            _ => None,
        })
        .collect()
}

fn paths(files: &FilesChanged) -> Vec<(&str, &FileChangeKind)> {
    files.changes.iter().map(|change| (change.path.as_str(), &change.change)).collect()
}

fn result(events: &[SessionEvent], place: usize) -> String {
    let ends = events.iter().filter_map(|event| match &event.body {
        EventBody::ToolEnded(ended) => Some(ended.end.for_model().text.into_owned()),
        _ => None,
    });
    ends.into_iter().nth(place).unwrap()
}

#[test]
fn what_a_call_changed_is_known_with_what_was_there_before() {
    let ran = ran(r#"
        [[step]]
        calls = [{ tool = "shell", input = { path = "a", content = "one\nmore\n" } }]
        [[step]]
        calls = [{ tool = "shell", input = { path = "b" } }]
        [[step]]
        calls = [{ tool = "shell", input = { path = "c", content = "new\n" } }]
        [[step]]
        text = "Done."
    "#);
    let changes = changes(&ran.events);
    assert_eq!(paths(changes[0]), [("a", &FileChangeKind::Modified)]);
    assert_eq!(paths(changes[1]), [("b", &FileChangeKind::Deleted)]);
    assert_eq!(paths(changes[2]), [("c", &FileChangeKind::Added)]);
    assert!(changes[0].diff.contains("+more"), "{}", changes[0].diff);
    assert_eq!((changes[0].changes[0].added_lines, changes[0].changes[0].removed_lines), (1, 0));
    assert_eq!(changes[1].changes[0].mode_before, Some(0o100_644));
    let blobs = ran.journal.blob_loader(ran.session.id()).unwrap();
    assert_eq!(blobs(changes[1].changes[0].before.unwrap()).unwrap(), b"two\n");
    assert_eq!(result(&ran.events, 0), "Done.\n[files changed: a (+1 -0)]");
    assert_eq!(result(&ran.events, 1), "Done.\n[files changed: b (deleted)]");
    // What happened is known before the call counts as ended.
    let kinds: Vec<&str> = ran.events.iter().map(|event| event.body.kind()).collect();
    let at = kinds.iter().position(|kind| *kind == "files_changed").unwrap();
    assert_eq!(kinds[at + 1], "tool_ended");
}

#[test]
fn tools_that_write_files_tell_what_they_wrote() {
    let ran = ran(r#"
        [[step]]
        calls = [{ tool = "read", input = { path = "a" } }]
        [[step]]
        calls = [{ tool = "write", input = { path = "a", content = "three\n" } }]
        [[step]]
        calls = [{ tool = "write", input = { path = "b", content = "unread, so refused" } }]
        [[step]]
        text = "Done."
    "#);
    let changes = changes(&ran.events);
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!(paths(changes[0]), [("a", &FileChangeKind::Modified)]);
    assert!(changes[0].diff.contains("-one") && changes[0].diff.contains("+three"));
    assert!(!result(&ran.events, 1).contains("files changed"), "the tool says it itself");
}

#[test]
fn what_others_change_is_told_to_the_model_once() {
    let ran = ran(r#"
        [[step]]
        calls = [{ tool = "shell", input = { path = "c", content = "by the agent\n" } }]
        [[step]]
        calls = [{ tool = "somebody", input = { path = "a", content = "one\nby somebody\n" } }]
        [[step]]
        calls = [{ tool = "read", input = { path = "b" } }]
        [[step]]
        text = "Done."
    "#);
    let notes: Vec<&str> = ran
        .events
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::NoteAdded(note) => Some(note.text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("+by somebody") && !notes[0].contains("by the agent"), "{}", notes[0]);
    let of_others: Vec<_> = changes(&ran.events).into_iter().filter(|files| files.call.is_none()).collect();
    assert_eq!(of_others.len(), 1);
    assert_eq!(paths(of_others[0]), [("a", &FileChangeKind::Modified)]);
}

#[test]
fn what_others_did_before_a_call_is_written_down_before_it() {
    let ran = ran(r#"
        [[step]]
        calls = [{ tool = "shell", input = { path = "c", content = "by the agent\n" } }]
        [[step]]
        calls = [
            { tool = "somebody", input = { path = "a", content = "by somebody\n" } },
            { tool = "shell", input = { path = "a", content = "by the agent\n" } },
        ]
        [[step]]
        text = "Done."
    "#);
    let changes = changes(&ran.events);
    let all: Vec<_> = changes.iter().map(|files| (files.call.is_some(), paths(files)[0].0)).collect();
    assert_eq!(all, [(true, "c"), (false, "a"), (true, "a")]);
    assert_eq!(changes[1].changes[0].after, changes[2].changes[0].before);
    let told = ran.session.state(|state| format!("{:?}", state.history.for_model()));
    assert!(told.contains("+by somebody"), "{told}");
}

#[test]
fn what_changed_between_two_sessions_is_told_when_one_goes_on() {
    let Ran { session, journal, place, notes, .. } = ran(
        "[[step]]\ncalls = [{ tool = \"shell\", input = { path = \"c\", content = \"x\" } }]\n[[step]]\ntext = \"Done.\"",
    );
    let id = session.id();
    drop(session);
    fs::write(place.path().join("b"), "two\nwhile nobody looked\n").unwrap();
    let mut house = watched(&journal, place.path(), notes.path());
    house.services.ids = Arc::new(Ticks::from(1_000));
    let model = crate::house::model("[[step]]\ntext = 'I see.'\nrepeat = true", &house);
    let mut session = Session::open(house.services, house.spec, model, id).unwrap();
    run(session.submit(said("again"), &CancellationToken::new())).unwrap();
    let told = session.state(|state| format!("{:?}", state.history.for_model()));
    assert!(told.contains("+while nobody looked") && !told.contains("+x"), "{told}");
}

#[test]
fn what_a_call_did_before_the_program_ended_is_found_out() {
    let (place, notes, journal) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Arc::new(MemoryJournal::default()));
    fs::write(place.path().join("a"), "one\n").unwrap();
    let script =
        "[[step]]\ncalls = [{ tool = 'die', input = {} }]\n[[step]]\ntext = 'So be it.'\nrepeat = true";
    let mut tools = all_tools();
    tools.push(Arc::new(Die));
    let first = watched_with(&journal, place.path(), notes.path(), tools.clone());
    let mut session = session(script, first);
    let id = session.id();
    run(async {
        let stop = CancellationToken::new();
        let turn = session.submit(said("go"), &stop);
        let is_dead = async {
            while fs::read(place.path().join("a")).unwrap() != b"changed\n" {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            () = is_dead => {}
            _ = turn => panic!("it does not end"),
        }
    });
    // Nobody notes anything any more.
    let (notes_then, log) = (notes.path().join(id.to_string()), tempfile::tempdir().unwrap());
    fs::copy(&notes_then, log.path().join(id.to_string())).unwrap();
    drop(session);
    let mut next = watched_with(&journal, place.path(), log.path(), tools.clone());
    next.services.ids = Arc::new(Ticks::from(1_000));
    let model = crate::house::model(script, &next);
    let mut session = Session::open(next.services, next.spec, model, id).unwrap();
    let events = events(&journal, id);
    assert_eq!(paths(changes(&events).last().unwrap()), [("a", &FileChangeKind::Modified)]);
    assert!(result(&events, 0).ends_with("Changed since it began: a."), "{}", result(&events, 0));
    run(session.go_on(&CancellationToken::new())).unwrap();
    assert_well_formed(&session, &journal, &tools);
}

/// Changes a file and never comes back.
struct Die;

impl Tool for Die {
    fn name(&self) -> &'static str {
        "die"
    }

    fn description(&self) -> &'static str {
        "Dies."
    }

    fn schema(&self) -> Value {
        json!({ "type": "object" })
    }

    fn class(&self) -> ToolClass {
        ToolClass::Changes
    }

    fn intent(&self, _: &Value) -> String {
        "die".to_owned()
    }

    fn run<'a>(&'a self, _: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(async move {
            fs::write(context.root.join("a"), "changed\n").unwrap();
            std::future::pending().await
        })
    }
}
