//! A house for one session.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use helve_agent::{Gate, House, Limits, Session};
use helve_journal::{Journal, MemoryJournal};
use helve_models::script::Script;
use helve_models::{Client, Dialogue, Patience, Prompt, Target, Timeouts};
use helve_protocol::{Clock, Event, Ids, Part, Role, Seq, SessionId, TextPart, Timestamp, ToolState};
use helve_tools::{Read, Tool, Write};
use uuid::Uuid;

/// A clock that ticks when it is read, so that every run is the same.
#[derive(Default)]
pub(crate) struct Ticks(AtomicU64);

impl Clock for Ticks {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000 + self.0.fetch_add(1, Ordering::SeqCst))
    }
}

impl Ids for Ticks {
    fn draw(&self) -> Uuid {
        Uuid::from_u128(
            0x0190_0000_0000_7000_8000_0000_0000_0000 + u128::from(self.0.fetch_add(1, Ordering::SeqCst)),
        )
    }
}

pub(crate) fn tools() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(Read), Arc::new(Write)]
}

pub(crate) fn house(journal: &Arc<MemoryJournal>, root: &Path, tools: Vec<Arc<dyn Tool>>) -> House {
    House {
        journal: journal.clone(),
        clock: Arc::new(Ticks::default()),
        ids: Arc::new(Ticks::default()),
        tools,
        gate: Gate::Yes,
        limits: Limits::default(),
        root: root.to_owned(),
        version: "test".to_owned(),
    }
}

pub(crate) fn dialogue(script: &str, house: &House) -> Dialogue {
    dialogue_of(vec![Target::script("script:test", Script::parse(script).unwrap())], house)
}

pub(crate) fn dialogue_of(mut targets: Vec<Target>, house: &House) -> Dialogue {
    let jitter = Box::new(|| Duration::ZERO);
    let client = Client::new(house.clock.clone(), jitter, Patience::Short, Timeouts::default());
    let prompt = Prompt { system: "You are Helve.".to_owned(), tools: house.specs(), ..Prompt::default() };
    let main = targets.remove(0);
    Dialogue::new(Arc::new(client), main, targets, prompt)
}

pub(crate) fn session(script: &str, house: House) -> Session {
    let dialogue = dialogue(script, &house);
    Session::create(house, dialogue).unwrap()
}

pub(crate) fn said(text: &str) -> Vec<Part> {
    vec![Part::Text(TextPart::said(text))]
}

/// Runs on a clock that does not really pass.
pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(work)
}

pub(crate) fn events(journal: &MemoryJournal, session: SessionId) -> Vec<Event> {
    let mut events = Vec::new();
    let mut each = |event: Event| {
        events.push(event);
        std::ops::ControlFlow::Continue(())
    };
    journal.read(session, Seq::START, &mut each).unwrap();
    events
}

/// What every session must look like after a turn, however it ended: the kinds begin and end as they should, every call
/// has its one result, and the view of the model begins with the user.
pub(crate) fn assert_well_formed(session: &Session, journal: &MemoryJournal) {
    let kinds: Vec<String> =
        events(journal, session.id()).iter().map(|event| event.body.kind().to_owned()).collect();
    assert_eq!(kinds.first().map(String::as_str), Some("session_created"));
    assert_eq!(kinds.last().map(String::as_str), Some("turn_ended"), "{kinds:?}");
    for message in session.history().messages() {
        for part in &message.parts {
            if let Part::Tool(tool) = part {
                assert!(tool.state.is_ended(), "{} is {}: {kinds:?}", tool.name, tool.state.name());
            }
        }
    }
    let view = session.history().for_model();
    assert_eq!(view.first().map(|message| message.role), Some(Role::User));
}

/// The states of all calls, in their order.
pub(crate) fn states(session: &Session) -> Vec<(String, ToolState)> {
    let parts = session.history().messages().flat_map(|message| &message.parts);
    parts
        .filter_map(|part| match part {
            Part::Tool(tool) => Some((tool.name.clone(), tool.state.clone())),
            _ => None,
        })
        .collect()
}
