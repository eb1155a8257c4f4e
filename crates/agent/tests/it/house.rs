//! A house for one session.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use helve_agent::{PermissionGate, ReplayReport, Services, Session, TurnBudget, replay_session, specs};
use helve_journal::{Journal, MemoryJournal};
use helve_models::script::ModelScript;
use helve_models::{Dialogue, ModelClient, ModelPrompt, ModelTarget, RequestTimeouts, RetryStrategy};
use helve_protocol::{
    Clock, IdKind, IdSource, MessagePart, MessageRole, PermissionMode, Seq, SessionEvent, SessionId,
    TextPart, Timestamp, ToolState,
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

pub(crate) fn house(journal: &Arc<MemoryJournal>, root: &Path, tools: Vec<Arc<dyn Tool>>) -> Services {
    Services {
        journal: journal.clone(),
        clock: Arc::new(Ticks::default()),
        ids: Arc::new(Ticks::default()),
        tools,
        gate: PermissionGate::open(),
        mode: PermissionMode::Ask,
        models: Arc::new(|name| Err(format!("there is no model {name}"))),
        limits: TurnBudget::default(),
        root: root.to_owned(),
        added: Vec::new(),
        watched: None,
        version: "test".to_owned(),
    }
}

pub(crate) fn dialogue(script: &str, house: &Services) -> Dialogue {
    dialogue_of(vec![ModelTarget::script("script:test", ModelScript::parse(script).unwrap())], house)
}

pub(crate) fn dialogue_of(mut targets: Vec<ModelTarget>, house: &Services) -> Dialogue {
    let jitter = Box::new(|| Duration::ZERO);
    let client =
        ModelClient::new(house.clock.clone(), jitter, RetryStrategy::Short, RequestTimeouts::default());
    let prompt = prompt(&house.tools);
    let main = targets.remove(0);
    Dialogue::new(Arc::new(client), main, targets, prompt)
}

pub(crate) fn prompt(tools: &[Arc<dyn Tool>]) -> ModelPrompt {
    ModelPrompt { system: "You are Helve.".to_owned(), tools: specs(tools), ..ModelPrompt::default() }
}

/// Plays a session again, with the tools of this build.
pub(crate) fn replayed(
    session: SessionId,
    journal: &Arc<MemoryJournal>,
    tools: &[Arc<dyn Tool>],
) -> ReplayReport {
    run(replay_session(journal.clone(), session, &prompt(tools), tools)).unwrap()
}

pub(crate) fn session(script: &str, house: Services) -> Session {
    let dialogue = dialogue(script, &house);
    Session::create(house, dialogue).unwrap()
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
