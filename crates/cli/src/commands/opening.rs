//! A session as the interface gets it. A short one is opened first; of a long one the end is shown while the rest is still being
//! read and checked.

use std::sync::Arc;

use helve_agent::{Gate, Handle, Session};
use helve_journal::{END, Journal};
use helve_protocol::{Event, History, Mode, Outcome, SessionId, SessionState};
use helve_tui::Opened;
use tokio::sync::watch;

use super::run::{Which, Worker, open, resumed, target};
use crate::failure::Failure;
use crate::models::Models;
use crate::setup::Setup;
use crate::wiring::{dialogue, house};

/// A session whose log is longer than this is long. So much of its end is shown.
const GLANCE: u64 = 256 << 10;
/// So many messages of it.
const RECENT: usize = 20;

/// A session on a thread of its own.
pub(super) struct Opening {
    pub(super) session: SessionId,
    /// What is known of it at once.
    pub(super) opened: Opened,
    /// Whether that is only its end.
    pub(super) is_glance: bool,
    pub(super) door: Door,
    pub(super) worker: Worker,
}

/// Leads to a session as soon as it is open.
#[derive(Clone)]
pub(super) struct Door(watch::Receiver<Option<Handle>>);

impl Door {
    /// The way to the session; none if it could not be opened.
    pub(super) async fn handle(&self) -> Option<Handle> {
        let mut door = self.0.clone();
        door.wait_for(Option::is_some).await.ok()?.clone()
    }
}

pub(super) async fn begin(which: Which<'_>, setup: &Setup, models: &Arc<Models>) -> Result<Opening, Failure> {
    let id = resumed(which, setup)?;
    let resume = id.map(|id| id.to_string());
    let which = Which { resume: resume.as_deref(), ..Which::default() };
    let target = target(which, setup, models).await?;
    let fallbacks = models.router.fallbacks().map_err(|error| Failure::route(&error))?;
    let house = house(setup, Gate::asking().with_person(), models)?;
    let dialogue = dialogue(models, target, fallbacks, &house);
    if let Some((id, end)) = id.and_then(|id| Some((id, long_end(id, setup)?))) {
        let opened = Opened { model: Some(dialogue.target().name.clone()), ..glance(&end, house.mode) };
        let (tell, door) = watch::channel(None);
        let worker = Worker::open(move || Session::open(house, dialogue, id), tell);
        return Ok(Opening { session: id, opened, is_glance: true, door: Door(door), worker });
    }
    let session = open(which, setup, house, dialogue)?;
    let (session_id, opened) = (session.id(), session.state(opened));
    let (handle, actor) = session.listen();
    let door = Door(watch::channel(Some(handle)).1);
    Ok(Opening { session: session_id, opened, is_glance: false, door, worker: Worker::start(actor) })
}

/// The end of a session that is too long to be waited for. Whatever is wrong with it is told when it is opened.
fn long_end(id: SessionId, setup: &Setup) -> Option<Vec<Event>> {
    let end = setup.journal().look_back(id, END, GLANCE).ok()?;
    let begins_here = end.first().is_none_or(|first| first.seq.0 <= 1);
    (!begins_here).then_some(end)
}

/// What the end of a session tells of it.
fn glance(end: &[Event], mode: Mode) -> Opened {
    Opened { mode, has_earlier: true, ..recent(&History::of(end)) }
}

fn recent(history: &History) -> Opened {
    let earlier = history.messages().count().saturating_sub(RECENT);
    let recent = history.messages().skip(earlier).cloned().collect();
    Opened { recent, has_earlier: earlier > 0, ..Opened::default() }
}

/// How a session stands.
pub(super) fn opened(state: &SessionState) -> Opened {
    let has_messages = state.history.messages().next().is_some();
    Opened {
        model: state.model.clone(),
        agent: Some(state.agent.clone()),
        mode: state.mode,
        cost: state.cost,
        queue: state.queue.clone(),
        plan: state.plan.clone(),
        is_unfinished: has_messages && state.outcome != Some(Outcome::EndTurn),
        ..recent(&state.history)
    }
}
