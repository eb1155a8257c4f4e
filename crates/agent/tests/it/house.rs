//! A house for one session.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use helve_agent::{
    ModelSource, PermissionGate, ReplayBuild, ReplayReport, Services, Session, SessionModel, SessionSpec,
    replay_session,
};
use helve_journal::{Journal, MemoryJournal};
use helve_models::script::ModelScript;
use helve_models::{ModelClient, ModelTarget, RequestTimeouts, RetryStrategy};
use helve_protocol::{
    Clock, IdKind, IdSource, MessagePart, MessageRole, ModelName, Seq, SessionEvent, SessionId, TextPart,
    Timestamp, ToolState,
};
use helve_tools::{ReadTool, SessionFiles, Tool, WriteTool};
use uuid::Uuid;

/// A clock that ticks when it is read, so that every run is the same.
#[derive(Default)]
pub(crate) struct Ticks(AtomicU64);

impl Ticks {
    /// Those of another process.
    pub(crate) fn from(first: u64) -> Ticks {
        Ticks(AtomicU64::new(first))
    }
}

impl Clock for Ticks {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000 + self.0.fetch_add(1, Ordering::SeqCst))
    }
}

impl IdSource for Ticks {
    fn draw(&self, _: IdKind) -> Uuid {
        Uuid::from_u128(
            0x0190_0000_0000_7000_8000_0000_0000_0000 + u128::from(self.0.fetch_add(1, Ordering::SeqCst)),
        )
    }
}

pub(crate) fn tools() -> Vec<Arc<dyn Tool>> {
    let files = Arc::new(SessionFiles::default());
    vec![Arc::new(ReadTool { files: files.clone() }), Arc::new(WriteTool { files })]
}

/// What a session of these tests is made of.
pub(crate) struct TestHouse {
    pub(crate) services: Services,
    pub(crate) spec: SessionSpec,
}

/// Finds models by a function.
pub(crate) struct NamedModels(pub(crate) fn(&ModelName) -> Result<ModelTarget, String>);

impl ModelSource for NamedModels {
    fn by_name(&self, name: &ModelName) -> Result<ModelTarget, String> {
        (self.0)(name)
    }
}

pub(crate) fn house(journal: &Arc<MemoryJournal>, root: &Path, tools: Vec<Arc<dyn Tool>>) -> TestHouse {
    TestHouse {
        services: Services {
            journal: journal.clone(),
            clock: Arc::new(Ticks::default()),
            ids: Arc::new(Ticks::default()),
            models: Arc::new(NamedModels(|name| Err(format!("there is no model {name}")))),
            tools: Arc::new(move |_: &SessionSpec| tools.clone()),
            gate: PermissionGate::answering_yes(None),
            workspaces: Arc::default(),
            hooks: Services::no_hooks(),
            version: "test".to_owned(),
        },
        spec: SessionSpec { root: root.to_owned(), ..SessionSpec::default() },
    }
}

pub(crate) fn model(script: &str, house: &TestHouse) -> SessionModel {
    model_of(vec![ModelTarget::script("script:test", ModelScript::parse(script).unwrap())], house)
}

pub(crate) fn model_of(mut targets: Vec<ModelTarget>, house: &TestHouse) -> SessionModel {
    let jitter = Box::new(|| Duration::ZERO);
    let clock = house.services.clock.clone();
    let client = ModelClient::new(clock, jitter, RetryStrategy::Short, RequestTimeouts::default());
    let target = targets.remove(0);
    SessionModel { client: Arc::new(client), target, fallbacks: targets, effort: None, cache_key: None }
}

/// Plays a session again, with the tools of this build.
pub(crate) fn replayed(
    session: SessionId,
    journal: &Arc<MemoryJournal>,
    tools: &[Arc<dyn Tool>],
) -> ReplayReport {
    run(replay_session(journal.clone(), session, ReplayBuild::current(tools.to_vec()))).unwrap()
}

pub(crate) fn session(script: &str, house: TestHouse) -> Session {
    let model = model(script, &house);
    Session::create(house.services, house.spec, model).unwrap()
}

pub(crate) fn said(text: &str) -> Vec<MessagePart> {
    vec![MessagePart::Text(TextPart::said(text))]
}

/// Runs on a clock that does not really pass.
pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(work)
}

pub(crate) fn events(journal: &MemoryJournal, session: SessionId) -> Vec<SessionEvent> {
    let mut events = Vec::new();
    let mut each = |event: SessionEvent| {
        events.push(event);
        std::ops::ControlFlow::Continue(())
    };
    journal.read(session, Seq::START, &mut each).unwrap();
    events
}

/// What every session must look like after a turn, however it ended: the kinds begin and end as they should, every call
/// has its one result, the view of the model begins with the user, and it can be played again to the byte.
pub(crate) fn assert_well_formed(session: &Session, journal: &Arc<MemoryJournal>, tools: &[Arc<dyn Tool>]) {
    let kinds: Vec<String> =
        events(journal, session.id()).iter().map(|event| event.body.kind().to_owned()).collect();
    assert_eq!(kinds.first().map(String::as_str), Some("session_created"));
    let last_of_turn = kinds.iter().rfind(|kind| kind.starts_with("turn_"));
    assert_eq!(last_of_turn.map(String::as_str), Some("turn_ended"), "{kinds:?}");
    for message in session.state(|state| state.history.messages().cloned().collect::<Vec<_>>()) {
        for part in &message.parts {
            if let MessagePart::Tool(tool) = part {
                assert!(tool.state.is_ended(), "{} is {}: {kinds:?}", tool.name, tool.state.name());
            }
        }
    }
    let first = session.state(|state| state.history.for_model().first().map(|message| message.role));
    assert_eq!(first, Some(MessageRole::User));
    let report = replayed(session.id(), journal, tools);
    assert_eq!((&report.differences, report.unkept), (&Vec::new(), 0));
    let asked = kinds.iter().filter(|kind| *kind == "step_started").count();
    assert_eq!(report.requests, asked, "{report:?}");
}

/// The states of all calls, in their order.
pub(crate) fn states(session: &Session) -> Vec<(String, ToolState)> {
    session.state(|state| {
        let parts = state.history.messages().flat_map(|message| &message.parts);
        parts
            .filter_map(|part| match part {
                MessagePart::Tool(tool) => Some((tool.name.clone(), tool.state.clone())),
                _ => None,
            })
            .collect()
    })
}
