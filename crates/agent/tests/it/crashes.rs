//! A program that ends anywhere loses nothing, does nothing twice, and can go on.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use helve_agent::{Session, SessionError};
use helve_journal::{EventVisitor, Journal, JournalBlobLoader, LogReadEnd, MemoryJournal, SessionLog};
use helve_protocol::*;
use helve_tools::{Tool, ToolContext, ToolFuture};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::house::*;

/// A journal whose process ends at some append: before it, or just after it.
struct Dying {
    journal: Arc<MemoryJournal>,
    left: Arc<AtomicI64>,
    when: When,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    Before,
    After,
}

struct DyingLog {
    log: Box<dyn SessionLog>,
    left: Arc<AtomicI64>,
    when: When,
}

fn dead() -> helve_journal::JournalError {
    helve_journal::JournalError::InDoubt { session: helve_testkit::sample_id(1), cause: "the end".to_owned() }
}

impl SessionLog for DyingLog {
    fn session(&self) -> SessionId {
        self.log.session()
    }
    fn last(&self) -> Seq {
        self.log.last()
    }
    fn append(&mut self, events: &[SessionEvent]) -> helve_journal::JournalResult<()> {
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        if left < 1 || (left == 1 && self.when == When::Before) {
            return Err(dead());
        }
        self.log.append(events)?;
        if left == 1 { Err(dead()) } else { Ok(()) }
    }
    fn sync(&mut self) -> helve_journal::JournalResult<()> {
        self.log.sync()
    }
    fn blobs(&self) -> Arc<dyn BlobStore> {
        self.log.blobs()
    }
}

impl Journal for Dying {
    fn create(&self, session: SessionId) -> helve_journal::JournalResult<Box<dyn SessionLog>> {
        let log = self.journal.create(session)?;
        Ok(Box::new(DyingLog { log, left: self.left.clone(), when: self.when }))
    }
    fn open(
        &self,
        session: SessionId,
        each: &mut dyn FnMut(SessionEvent),
    ) -> helve_journal::JournalResult<Box<dyn SessionLog>> {
        let log = self.journal.open(session, each)?;
        Ok(Box::new(DyingLog { log, left: self.left.clone(), when: self.when }))
    }
    fn read(
        &self,
        session: SessionId,
        after: Seq,
        each: EventVisitor<'_>,
    ) -> helve_journal::JournalResult<LogReadEnd> {
        self.journal.read(session, after, each)
    }
    fn look_back(
        &self,
        session: SessionId,
        before: Seq,
        bytes: u64,
    ) -> helve_journal::JournalResult<Vec<SessionEvent>> {
        self.journal.look_back(session, before, bytes)
    }
    fn list(&self) -> helve_journal::JournalResult<Vec<SessionSummary>> {
        self.journal.list()
    }
    fn fork(&self, parent: SessionId, at: Seq, child: SessionId) -> helve_journal::JournalResult<()> {
        self.journal.fork(parent, at, child)
    }
    fn delete(&self, session: SessionId) -> helve_journal::JournalResult<()> {
        self.journal.delete(session)
    }
    fn blob_loader(&self, session: SessionId) -> helve_journal::JournalResult<JournalBlobLoader> {
        self.journal.blob_loader(session)
    }
}

/// Counts how often it ran.
struct Count(Arc<AtomicU32>);

impl Tool for Count {
    fn name(&self) -> &'static str {
        "count"
    }
    fn description(&self) -> &'static str {
        "Counts."
    }
    fn schema(&self) -> Value {
        json!({"type": "object"})
    }
    fn class(&self) -> ToolClass {
        ToolClass::Changes
    }
    fn intent(&self, _: &Value) -> String {
        "count".to_owned()
    }
    fn run<'a>(&'a self, _: Value, _: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let count = self.0.fetch_add(1, Ordering::SeqCst) + 1;
            Ok(ToolOutput { text: format!("{count}"), ..ToolOutput::default() })
        })
    }
}

/// Whatever it is asked, the script goes on from what it sees.
const SCRIPT: &str = r#"
    [[step]]
    when = { tool = "count" }
    text = "Done."
    repeat = true
    [[step]]
    when = { tool = "read" }
    calls = [{ tool = "count", input = {} }]
    repeat = true
    [[step]]
    calls = [{ tool = "read", input = { path = "a.txt" } }, { tool = "read", input = { path = "." } }]
    repeat = true
"#;

struct Crashed {
    journal: Arc<MemoryJournal>,
    count: Arc<AtomicU32>,
    tools: Vec<Arc<dyn Tool>>,
    id: Option<SessionId>,
    /// Whether the turn was over before the end came.
    survived: bool,
}

/// Runs a turn in a process that ends at the n-th append.
fn crash(root: &Path, appends: i64, when: When) -> Crashed {
    let journal = Arc::new(MemoryJournal::default());
    let count = Arc::new(AtomicU32::new(0));
    let tools = [tools(), vec![Arc::new(Count(count.clone())) as Arc<dyn Tool>]].concat();
    let mut house = house(&journal, root, tools.clone());
    house.services.journal =
        Arc::new(Dying { journal: journal.clone(), left: Arc::new(AtomicI64::new(appends)), when });
    let model = model(SCRIPT, &house);
    let done = run(async {
        let mut session = Session::create(house.services, house.spec, model)?;
        session.submit(said("go"), &CancellationToken::new()).await
    });
    let survived = match done {
        Ok(outcome) => outcome == TurnOutcome::EndTurn,
        Err(SessionError::Journal(_)) => false,
        Err(other) => panic!("{other}"),
    };
    let id = journal.list().unwrap().first().map(|session| session.session);
    Crashed { journal, count, tools, id, survived }
}

/// What the next process does, after every possible end of the first.
fn after_every_crash(each: impl Fn(Crashed, &Path, String)) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "a").unwrap();
    for when in [When::Before, When::After] {
        for appends in 1.. {
            let crashed = crash(folder.path(), appends, when);
            if crashed.survived {
                assert!(appends > 15, "a turn has more appends than {appends}");
                break;
            }
            each(crashed, folder.path(), format!("{when:?} append {appends}"));
        }
    }
}

fn reopen(crashed: &Crashed, root: &Path, script: &str) -> Option<Session> {
    let mut house = house(&crashed.journal, root, crashed.tools.clone());
    house.services.ids = Arc::new(Ticks::from(1_000));
    let model = model(script, &house);
    // Before its first event a session does not exist.
    let session = crashed.id?;
    (!events(&crashed.journal, session).is_empty())
        .then(|| Session::open(house.services, house.spec, model, session).unwrap())
}

#[test]
fn the_turn_goes_on_where_it_broke_off() {
    after_every_crash(|crashed, root, place| {
        let Some(mut session) = reopen(&crashed, root, SCRIPT) else { return };
        let known = events(&crashed.journal, session.id());
        let is_asked = known.iter().any(|event| matches!(event.body, EventBody::UserMessage(_)));
        // The model may have had its last word already.
        if !is_asked || session.state(|state| state.outcome == Some(TurnOutcome::EndTurn)) {
            return;
        }
        let counted = crashed.count.load(Ordering::SeqCst);
        let outcome = run(session.go_on(&CancellationToken::new())).unwrap();
        assert_eq!(outcome, TurnOutcome::EndTurn, "{place}");
        assert_well_formed(&session, &crashed.journal, &crashed.tools);
        let states = states(&session);
        let of = |name: &str| {
            states.iter().filter(|(of, _)| of == name).map(|(_, state)| state).collect::<Vec<_>>()
        };
        // What only reads was run again, so that nothing of it is missing.
        assert!(
            of("read").iter().all(|state| matches!(state, ToolState::Completed { .. })),
            "{place}: {states:?}"
        );
        // What changes something never runs twice, and if it may have run, the model is told what is known.
        let counts = of("count");
        let now = crashed.count.load(Ordering::SeqCst);
        let is_unknown = counts == [&ToolState::interrupted(Interruption::Unknown)];
        assert!(now == 1 || (now == 0 && is_unknown), "{place}: it ran {now} times: {states:?}");
        assert!(is_unknown || known_result(&events(&crashed.journal, session.id())), "{place}: {states:?}");
        assert!(counted == 0 || is_unknown || known_result(&known), "{place}: it is run once: {states:?}");
    });
}

fn known_result(known: &[SessionEvent]) -> bool {
    known.iter().any(|event| matches!(&event.body, EventBody::ToolEnded(ended) if matches!(&ended.end, ToolState::Completed { output } if output.text == "1")))
}

#[test]
fn the_user_may_say_something_else_instead() {
    after_every_crash(|crashed, root, place| {
        let Some(mut session) = reopen(&crashed, root, "[[step]]\ntext = 'As you like.'\nrepeat = true")
        else {
            return;
        };
        let counted = crashed.count.load(Ordering::SeqCst);
        let outcome = run(session.submit(said("leave it"), &CancellationToken::new())).unwrap();
        assert_eq!(outcome, TurnOutcome::EndTurn, "{place}");
        assert_well_formed(&session, &crashed.journal, &crashed.tools);
        assert_eq!(
            crashed.count.load(Ordering::SeqCst),
            counted,
            "{place}: nothing is run that nobody asked for"
        );
    });
}

#[test]
fn what_broke_off_is_told() {
    let mut told = std::collections::BTreeSet::new();
    let collect = std::sync::Mutex::new(&mut told);
    after_every_crash(|crashed, root, _| {
        let Some(session) = reopen(&crashed, root, SCRIPT) else { return };
        let events = events(&crashed.journal, session.id());
        let raised = events.iter().filter_map(|event| match &event.body {
            EventBody::ErrorRaised(error) => Some(error.why.clone()),
            _ => None,
        });
        collect.lock().unwrap().extend(raised);
    });
    let whys = ["before the turn did", "while a tool ran", "while the model was asked"];
    assert_eq!(told.len(), whys.len(), "{told:?}");
    assert!(told.iter().zip(whys).all(|(told, why)| told.ends_with(why)), "{told:?}");
}
