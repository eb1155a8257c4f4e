//! A session as the interface gets it. A short one is opened first; of a long one the end is shown while the rest is still being
//! read and checked.

use std::sync::Arc;

use helve_agent::{PermissionGate, Session, SessionHandle, SessionWorker};
use helve_journal::{END_OF_LOG, Journal};
use helve_protocol::{
    ConversationHistory, PermissionMode, SessionEvent, SessionId, SessionState, TurnOutcome,
};
use helve_tui::SessionOverview;
use tokio::sync::watch;

use super::run::{SessionSelector, open_session, resumed_session, session_target};
use crate::failure::CliFailure;
use crate::setup::CliSetup;
use crate::user_models::UserModels;
use crate::wiring::{SessionWiring, session_model, wire_session};

/// A session whose log is longer than this is long. So much of its end is shown.
const LONG_SESSION_BYTES: u64 = 256 << 10;
/// So many messages of it.
const RECENT_MESSAGES: usize = 20;

/// A session on a thread of its own.
pub(super) struct SessionOpening {
    pub(super) session: SessionId,
    /// What is known of it at once.
    pub(super) opened: SessionOverview,
    /// Whether that is only its end.
    pub(super) is_glance: bool,
    pub(super) door: PendingSessionHandle,
    pub(super) worker: SessionWorker,
}

/// Leads to a session as soon as it is open.
#[derive(Clone)]
pub(super) struct PendingSessionHandle(watch::Receiver<Option<SessionHandle>>);

impl PendingSessionHandle {
    /// The way to the session; none if it could not be opened.
    pub(super) async fn handle(&self) -> Option<SessionHandle> {
        let mut door = self.0.clone();
        door.wait_for(Option::is_some).await.ok()?.clone()
    }
}

pub(super) async fn begin_session(
    which: SessionSelector<'_>,
    setup: &CliSetup,
    models: &Arc<UserModels>,
) -> Result<SessionOpening, CliFailure> {
    let id = resumed_session(which, setup)?;
    let resume = id.map(|id| id.to_string());
    let which = SessionSelector { resume: resume.as_deref(), ..SessionSelector::default() };
    let target = session_target(which, setup, models).await?;
    let fallbacks = models.router.fallbacks().map_err(|error| CliFailure::route(&error))?;
    let wiring = wire_session(setup, PermissionGate::asking_person, models)?;
    let model = session_model(models, target, fallbacks, &wiring.spec);
    if let Some((id, end)) = id.and_then(|id| Some((id, long_end(id, setup)?))) {
        let opened =
            SessionOverview { model: Some(model.target.name.clone()), ..glance(&end, wiring.spec.mode) };
        let (tell, door) = watch::channel(None);
        let SessionWiring { services, spec } = wiring;
        let open = move || Session::open(services, spec, model, id);
        let worker = SessionWorker::open(open, move |handle| drop(tell.send_replace(Some(handle))));
        return Ok(SessionOpening {
            session: id,
            opened,
            is_glance: true,
            door: PendingSessionHandle(door),
            worker,
        });
    }
    let session = open_session(which, setup, wiring, model)?;
    let (session_id, opened) = (session.id(), session.state(session_overview));
    let (handle, actor) = session.listen();
    let door = PendingSessionHandle(watch::channel(Some(handle)).1);
    Ok(SessionOpening {
        session: session_id,
        opened,
        is_glance: false,
        door,
        worker: SessionWorker::start(actor),
    })
}

/// The end of a session that is too long to be waited for. Whatever is wrong with it is told when it is opened.
fn long_end(id: SessionId, setup: &CliSetup) -> Option<Vec<SessionEvent>> {
    let end = setup.journal().look_back(id, END_OF_LOG, LONG_SESSION_BYTES).ok()?;
    let begins_here = end.first().is_none_or(|first| first.seq.0 <= 1);
    (!begins_here).then_some(end)
}

/// What the end of a session tells of it.
fn glance(end: &[SessionEvent], mode: PermissionMode) -> SessionOverview {
    SessionOverview { mode, has_earlier: true, ..recent(&ConversationHistory::of(end)) }
}

fn recent(history: &ConversationHistory) -> SessionOverview {
    let earlier = history.messages().count().saturating_sub(RECENT_MESSAGES);
    let recent = history.messages().skip(earlier).cloned().collect();
    SessionOverview { recent, has_earlier: earlier > 0, ..SessionOverview::default() }
}

/// How a session stands.
pub(super) fn session_overview(state: &SessionState) -> SessionOverview {
    let has_messages = state.history.messages().next().is_some();
    SessionOverview {
        model: state.model.clone(),
        agent: Some(state.agent.clone()),
        mode: state.mode,
        cost: state.cost,
        queue: state.queue.clone(),
        plan: state.plan.clone(),
        is_unfinished: has_messages && state.outcome != Some(TurnOutcome::EndTurn),
        ..recent(&state.history)
    }
}
