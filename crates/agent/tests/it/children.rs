//! Sessions that a session starts: they share its files, have no more rights than it has, and end with its turn.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use helve_agent::{
    PermissionGate, Services, Session, SessionHandle, SessionModel, SessionSpec, SessionWorker, WatchConfig,
};
use helve_journal::MemoryJournal;
use helve_models::script::ModelScript;
use helve_models::{ModelClient, ModelTarget, RequestTimeouts, RetryStrategy};
use helve_permissions::{LayeredRules, PermissionVerdict, Rule, RuleLayer};
use helve_protocol::{
    Clock, EventBody, PermissionMode, SessionId, Timestamp, ToolAction, ToolClass, ToolOutput, ToolState,
    TurnOutcome,
};
use helve_tools::{ReadTool, SessionFiles, Tool, ToolContext, ToolFailure, ToolFuture, WriteTool};
use helve_workspace::{WorkspaceLimits, WorkspaceRoot};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::house::{TestHouse, Ticks, events, house, said};

/// Starts a child that plays a script, and waits for the end of its turn.
struct StartChild {
    services: Arc<OnceLock<Services>>,
    parent: Arc<OnceLock<SessionHandle>>,
    spec: SessionSpec,
    script: String,
    /// Where the child runs: beside its parent, or on a thread of its own.
    on_thread: bool,
    child: Arc<Mutex<Option<SessionId>>>,
}

impl StartChild {
    async fn start(&self, context: &ToolContext) -> Result<ToolOutput, ToolFailure> {
        let failed = |error: &dyn std::fmt::Display| ToolFailure(error.to_string());
        let services = self.services.get().unwrap().clone();
        let parent = self.parent.get().unwrap().as_parent(context.call);
        let spec = SessionSpec { parent: Some(parent), ..self.spec.clone() };
        let model = scripted(&self.script, &services);
        let mut session = Session::create(services, spec, model).map_err(|error| failed(&error))?;
        *self.child.lock().unwrap() = Some(session.id());
        let outcome = if self.on_thread {
            let (handle, actor) = session.listen();
            let mut feed = handle.feed();
            let worker = SessionWorker::start(actor);
            let prompt = helve_protocol::UserPrompt {
                parts: said("work"),
                delivery: helve_protocol::PromptDelivery::Queue,
            };
            handle.send(helve_protocol::SessionCommand::Submit(prompt)).await;
            let mut outcome = None;
            while let Some(event) = feed.next().await {
                if let EventBody::TurnEnded(ended) = &event.body {
                    outcome = Some(ended.outcome);
                    break;
                }
            }
            handle.send(helve_protocol::SessionCommand::ShutDown).await;
            worker.end().await.map_err(|error| failed(&error))?;
            outcome.unwrap()
        } else {
            // The parent's token reaches the child by itself.
            session.submit(said("work"), &CancellationToken::new()).await.map_err(|error| failed(&error))?
        };
        Ok(ToolOutput { text: format!("the child ended: {outcome:?}"), ..ToolOutput::default() })
    }
}

impl Tool for StartChild {
    fn name(&self) -> &'static str {
        "start_child"
    }
    fn description(&self) -> &'static str {
        "Starts a child."
    }
    fn schema(&self) -> Value {
        json!({ "type": "object" })
    }
    fn class(&self) -> ToolClass {
        ToolClass::Subagent
    }
    fn intent(&self, _: &Value) -> String {
        "start a child".to_owned()
    }
    fn actions(&self, _: &Value, _: &Path) -> Vec<ToolAction> {
        Vec::new()
    }
    fn run<'a>(&'a self, _: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(self.start(context))
    }
}

fn scripted(script: &str, services: &Services) -> SessionModel {
    let jitter = Box::new(|| Duration::ZERO);
    let client =
        ModelClient::new(services.clock.clone(), jitter, RetryStrategy::Short, RequestTimeouts::default());
    let target = ModelTarget::script("script:test", ModelScript::parse(script).unwrap());
    let client = Arc::new(client);
    SessionModel { client, target, fallbacks: Vec::new(), effort: None, cache_key: None }
}

/// A clock on which minutes pass between two looks, so that files are always scanned again.
#[derive(Default)]
struct FastClock(AtomicU64);

impl Clock for FastClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000 + self.0.fetch_add(60_000, Ordering::SeqCst))
    }
}

struct Family {
    journal: Arc<MemoryJournal>,
    parent: SessionId,
    child: SessionId,
    outcome: TurnOutcome,
}

/// What a parent and its child are told to do, and how.
struct Plan<'a> {
    parent: &'a str,
    child: &'a str,
    child_mode: PermissionMode,
    child_rules: LayeredRules,
    parent_mode: PermissionMode,
    gate: PermissionGate,
    on_thread: bool,
}

impl Plan<'_> {
    /// A parent that starts a child and then looks around.
    fn new<'a>(child: &'a str) -> Plan<'a> {
        Plan {
            parent: "[[step]]\ncalls = [{ tool = 'start_child', input = {} }]\n[[step]]\ntext = 'Done.'\nrepeat = true",
            child,
            child_mode: PermissionMode::Bypass,
            child_rules: LayeredRules::default(),
            parent_mode: PermissionMode::AcceptEdits,
            gate: PermissionGate::answering_no(None),
            on_thread: false,
        }
    }

    /// Plays it in a folder; `stop` interrupts the parent.
    async fn play(
        self,
        root: &Path,
        stop: impl AsyncFn(&SessionHandle, &Mutex<Option<SessionId>>),
    ) -> Family {
        let root = root.canonicalize().unwrap();
        let journal = Arc::new(MemoryJournal::default());
        let services: Arc<OnceLock<Services>> = Arc::default();
        let parent: Arc<OnceLock<SessionHandle>> = Arc::default();
        let child = Arc::new(Mutex::new(None));
        let watch = WatchConfig {
            root: WorkspaceRoot::named(&root).unwrap(),
            added: Vec::new(),
            git: None,
            limits: WorkspaceLimits::default(),
            notes: None,
        };
        let spec = SessionSpec { watch: Some(watch), ..house(&journal, &root, Vec::new()).spec };
        let start: Arc<dyn Tool> = Arc::new(StartChild {
            services: services.clone(),
            parent: parent.clone(),
            spec: SessionSpec { mode: self.child_mode, rules: self.child_rules, ..spec.clone() },
            script: self.child.to_owned(),
            on_thread: self.on_thread,
            child: child.clone(),
        });
        let TestHouse { services: shared, .. } = house(&journal, &root, Vec::new());
        let tools = move |_: &SessionSpec| -> Vec<Arc<dyn Tool>> {
            let files = Arc::new(SessionFiles::default());
            vec![Arc::new(ReadTool { files: files.clone() }), Arc::new(WriteTool { files }), start.clone()]
        };
        let shared = Services {
            tools: Arc::new(tools),
            gate: self.gate,
            ids: Arc::new(Ticks::default()),
            clock: Arc::new(FastClock::default()),
            ..shared
        };
        assert!(services.set(shared.clone()).is_ok());
        let model = scripted(self.parent, &shared);
        let session = Session::create(shared, SessionSpec { mode: self.parent_mode, ..spec }, model).unwrap();
        let id = session.id();
        let (handle, actor) = session.listen();
        assert!(parent.set(handle.clone()).is_ok());
        let mut feed = handle.feed();
        let worker = SessionWorker::start(actor);
        let prompt =
            helve_protocol::UserPrompt { parts: said("go"), delivery: helve_protocol::PromptDelivery::Queue };
        handle.send(helve_protocol::SessionCommand::Submit(prompt)).await;
        stop(&handle, &child).await;
        let outcome = loop {
            if let EventBody::TurnEnded(ended) = &feed.next().await.unwrap().body {
                break ended.outcome;
            }
        };
        handle.send(helve_protocol::SessionCommand::ShutDown).await;
        drop((handle, feed));
        worker.end().await.unwrap();
        let child = child.lock().unwrap().unwrap();
        Family { journal, parent: id, child, outcome }
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// How each call of a session ended.
fn ends(family: &Family, session: SessionId) -> Vec<ToolState> {
    let ended = events(&family.journal, session).into_iter().filter_map(|event| match event.body {
        EventBody::ToolEnded(ended) => Some(ended.end),
        _ => None,
    });
    ended.collect()
}

const WRITE: &str = "[[step]]\ncalls = [{ tool = 'write', input = { path = 'new.txt', content = 'by the child' } }]\n\
                     [[step]]\ntext = 'Written.'\nrepeat = true";

#[test]
fn what_a_child_changes_is_no_change_from_outside() {
    for on_thread in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.txt"), "a\n").unwrap();
        // After the child, the parent waits until the files are scanned again, while somebody else saves a file.
        let parent = "[[step]]\ncalls = [{ tool = 'start_child', input = {} }]\n[[step]]\ndelay = '1500ms'\n\
                      calls = [{ tool = 'read', input = { path = 'a.txt' } }]\n[[step]]\ntext = 'Done.'\nrepeat = true";
        let plan = Plan { parent, on_thread, ..Plan::new(WRITE) };
        let by_others = folder.path().join("by-others.txt");
        let family = block_on(plan.play(folder.path(), async |handle, _| {
            let mut feed = handle.feed();
            while let Some(event) = feed.next().await {
                if matches!(event.body, EventBody::ToolEnded(_)) {
                    break;
                }
            }
            fs::write(&by_others, "by somebody else\n").unwrap();
        }));
        assert_eq!(family.outcome, TurnOutcome::EndTurn);
        assert_eq!(fs::read_to_string(folder.path().join("new.txt")).unwrap(), "by the child");
        let told: Vec<String> = events(&family.journal, family.parent)
            .into_iter()
            .filter_map(|event| match event.body {
                EventBody::NoteAdded(note) => Some(note.text),
                EventBody::FilesChanged(files) if files.call.is_none() => {
                    Some(format!("{:?}", files.changes))
                }
                _ => None,
            })
            .collect();
        assert!(told.iter().any(|text| text.contains("by-others.txt")), "{told:?}");
        assert!(told.iter().all(|text| !text.contains("new.txt")), "{told:?}");
        // The child's own journal says that its call made the file, and whom it works for.
        let of_child = events(&family.journal, family.child);
        assert!(of_child.iter().any(|event| matches!(&event.body,
            EventBody::FilesChanged(files) if files.call.is_some() && files.changes[0].path == "new.txt")));
        let parent = of_child.iter().find_map(|event| match &event.body {
            EventBody::SessionCreated(created) => created.parent.clone(),
            _ => None,
        });
        assert_eq!(parent.unwrap().session, family.parent);
    }
}

#[test]
fn a_child_has_no_more_rights_than_its_parent() {
    // Its own mode allows everything; its parent's asks, and nobody is there.
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan { parent_mode: PermissionMode::Ask, ..Plan::new(WRITE) };
    let family = block_on(plan.play(folder.path(), async |_, _| {}));
    assert!(
        matches!(ends(&family, family.child)[..], [ToolState::Denied { .. }]),
        "{:?}",
        ends(&family, family.child)
    );
    assert!(!folder.path().join("new.txt").exists());

    // Its parent could, but its own rules deny it.
    let mut child_rules = LayeredRules::default();
    let rule = Rule::parse("write(./new.txt)", PermissionVerdict::Deny).unwrap();
    child_rules.add(RuleLayer::Session, "the child's own", rule);
    let plan = Plan { child_rules, child_mode: PermissionMode::AcceptEdits, ..Plan::new(WRITE) };
    let family = block_on(plan.play(folder.path(), async |_, _| {}));
    assert!(
        matches!(ends(&family, family.child)[..], [ToolState::Denied { .. }]),
        "{:?}",
        ends(&family, family.child)
    );

    // Both may.
    let family = block_on(Plan::new(WRITE).play(folder.path(), async |_, _| {}));
    assert!(matches!(ends(&family, family.child)[..], [ToolState::Completed { .. }]));
}

#[test]
fn the_interrupt_of_the_parent_ends_the_child() {
    for on_thread in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let plan = Plan { on_thread, ..Plan::new("[[step]]\ntext = 'Never.'\ndelay = '10m'") };
        let family = block_on(plan.play(folder.path(), async |handle, child| {
            while child.lock().unwrap().is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            handle.send(helve_protocol::SessionCommand::Interrupt).await;
        }));
        assert_eq!(family.outcome, TurnOutcome::Cancelled);
        if on_thread {
            // The call was given up; the child ends by itself a moment later.
            let is_over = || {
                events(&family.journal, family.child).iter().any(|event| {
                    matches!(&event.body, EventBody::TurnEnded(ended) if ended.outcome == TurnOutcome::Cancelled)
                })
            };
            for _ in 0..1_000 {
                if is_over() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            assert!(is_over());
        }
    }
}
