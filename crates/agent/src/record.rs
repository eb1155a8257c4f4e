//! The only way to the journal.

use std::sync::Arc;

use helve_journal::{Journal, SessionLog};
use helve_protocol::{
    AgentName, Blobs, Body, Clock, Event, History, Ids, Persistence, Seq, SessionId, StepId, TurnId,
};
use tokio::sync::broadcast;
use uuid::Uuid;

/// Why a session can't go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Journal(#[from] helve_journal::Error),
}

/// So many events wait for a slow listener. One that falls behind loses live ones, and reads the others from the journal.
const WAITING: usize = 1_024;

/// Stores events, folds them into the history, and tells them, in that order. Ids and times are drawn here alone.
pub(crate) struct Recorder {
    log: Box<dyn SessionLog>,
    pub(crate) history: History,
    listeners: broadcast::Sender<Arc<Event>>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    pub(crate) turn: Option<TurnId>,
    pub(crate) step: Option<StepId>,
    agent: AgentName,
}

impl Recorder {
    pub(crate) fn new(
        log: Box<dyn SessionLog>,
        history: History,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Recorder {
        let (listeners, _) = broadcast::channel(WAITING);
        let agent = AgentName::new("build");
        Recorder { log, history, listeners, clock, ids, turn: None, step: None, agent }
    }

    pub(crate) fn session(&self) -> SessionId {
        self.log.session()
    }

    pub(crate) fn blobs(&self) -> Arc<dyn Blobs> {
        self.log.blobs()
    }

    pub(crate) fn draw<T: From<Uuid>>(&self) -> T {
        self.ids.draw().into()
    }

    pub(crate) fn now(&self) -> helve_protocol::Timestamp {
        self.clock.now()
    }

    /// Records an event. A durable one is stored before anybody sees it (law 1).
    pub(crate) fn tell(&mut self, body: impl Into<Body>) -> Result<(), Error> {
        let body = body.into();
        let is_durable = body.persistence() == Persistence::Durable;
        let last = self.log.last();
        let event = Event {
            session: self.log.session(),
            seq: if is_durable { last.next() } else { last },
            turn: self.turn,
            step: self.step,
            agent: self.agent.clone(),
            time: self.clock.now(),
            body,
        };
        if is_durable {
            self.log.append(std::slice::from_ref(&event))?;
            self.history.apply(&event);
        }
        // Nobody may be listening.
        let _ = self.listeners.send(Arc::new(event));
        Ok(())
    }

    pub(crate) fn feed(&self, journal: Arc<dyn Journal>) -> Feed {
        Feed {
            session: self.log.session(),
            heard: self.log.last(),
            events: self.listeners.subscribe(),
            journal,
            missed: Vec::new().into_iter(),
        }
    }
}

/// What happens in a session, for a front. A front that is slow or stuck never stops the loop: it misses live events, and
/// gets the durable ones from the journal.
pub struct Feed {
    session: SessionId,
    heard: Seq,
    events: broadcast::Receiver<Arc<Event>>,
    journal: Arc<dyn Journal>,
    missed: std::vec::IntoIter<Arc<Event>>,
}

impl Feed {
    /// The next event; none when the session is over.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        loop {
            if let Some(event) = self.missed.next() {
                self.heard = event.seq;
                return Some(event);
            }
            match self.events.recv().await {
                Ok(event) if event.body.persistence() == Persistence::Durable && event.seq <= self.heard => {}
                Ok(event) => {
                    self.heard = event.seq;
                    return Some(event);
                }
                Err(broadcast::error::RecvError::Lagged(_)) => self.catch_up(),
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    fn catch_up(&mut self) {
        let mut missed = Vec::new();
        let read = self.journal.read(self.session, self.heard, &mut |event| {
            missed.push(Arc::new(event));
            std::ops::ControlFlow::Continue(())
        });
        if let Err(error) = read {
            tracing::warn!(name: "feed.behind", %error);
        }
        self.missed = missed.into_iter();
    }
}
