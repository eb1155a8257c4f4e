//! The only way to the journal.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use helve_journal::{Journal, SessionLog};
use helve_protocol::{
    BlobError, BlobStore, Clock, EventBody, GeneratedId, IdSource, Persistence, Seq, SessionEvent, SessionId,
    SessionState, StatusChanged, StepId, Timestamp, TurnId, UnreadableEvents,
};
use tokio::sync::broadcast;

/// Why a session can't go on.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(transparent)]
    Journal(#[from] helve_journal::JournalError),
    #[error("a payload can't be kept: {0}")]
    Blob(#[from] BlobError),
    #[error("a newer version of Helve wrote events that this one does not know")]
    Unreadable(UnreadableEvents),
}

/// So many events wait for a slow listener. One that falls behind loses live ones, and reads the others from the journal.
const FEED_CAPACITY: usize = 1_024;

/// Stores events, folds them into the session's state, and tells them, in that order. Ids and times are drawn here alone.
/// Its copies write to the same log: the turn does, and whoever takes commands while it runs.
#[derive(Clone)]
pub(crate) struct Recorder {
    book: Arc<Mutex<LogState>>,
    listeners: broadcast::Sender<Arc<SessionEvent>>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    session: SessionId,
}

struct LogState {
    log: Box<dyn SessionLog>,
    state: SessionState,
    turn: Option<TurnId>,
    step: Option<StepId>,
    /// What was told before this process came.
    began: Seq,
}

impl Recorder {
    pub(crate) fn new(
        log: Box<dyn SessionLog>,
        state: SessionState,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
    ) -> Recorder {
        let (listeners, _) = broadcast::channel(FEED_CAPACITY);
        let session = log.session();
        let began = log.last();
        let book = Arc::new(Mutex::new(LogState { log, state, turn: None, step: None, began }));
        Recorder { book, listeners, clock, ids, session }
    }

    fn book(&self) -> MutexGuard<'_, LogState> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn session(&self) -> SessionId {
        self.session
    }

    pub(crate) fn blobs(&self) -> Arc<dyn BlobStore> {
        self.book().log.blobs()
    }

    pub(crate) fn draw<T: GeneratedId>(&self) -> T {
        self.ids.draw(T::KIND).into()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Looks at the state. Nothing is told meanwhile.
    pub(crate) fn state<T>(&self, look: impl FnOnce(&SessionState) -> T) -> T {
        look(&self.book().state)
    }

    /// From here on events belong to this turn.
    pub(crate) fn set_turn(&self, turn: Option<TurnId>) {
        let mut book = self.book();
        (book.turn, book.step) = (turn, None);
    }

    /// From here on events belong to this step.
    pub(crate) fn set_step(&self, step: Option<StepId>) {
        self.book().step = step;
    }

    /// Records an event. A durable one is stored before anybody sees it (law 1).
    pub(crate) fn emit(&self, body: impl Into<EventBody>) -> Result<(), SessionError> {
        self.emit_all(vec![body.into()])
    }

    /// Records events that belong together. A crash may leave the first of them.
    pub(crate) fn emit_all(&self, bodies: Vec<EventBody>) -> Result<(), SessionError> {
        let mut book = self.book();
        let status = book.state.status();
        let mut events = Vec::with_capacity(bodies.len());
        let mut last = book.log.last();
        for body in bodies {
            if body.persistence() == Persistence::Durable {
                last = last.next();
            }
            events.push(self.event(&book, last, body));
        }
        let durable: Vec<SessionEvent> = events.iter().filter(|event| is_durable(event)).cloned().collect();
        if !durable.is_empty() {
            book.log.append(&durable)?;
            durable.iter().for_each(|event| book.state.apply(event));
        }
        if book.state.status() != status {
            events.push(self.event(&book, last, StatusChanged { status: book.state.status() }.into()));
        }
        for event in events {
            // Nobody may be listening.
            let _ = self.listeners.send(Arc::new(event));
        }
        Ok(())
    }

    fn event(&self, book: &LogState, seq: Seq, body: EventBody) -> SessionEvent {
        SessionEvent {
            session: self.session,
            seq,
            turn: book.turn,
            step: book.step,
            agent: book.state.agent.clone(),
            time: self.clock.now(),
            body,
        }
    }

    /// Everything that this process told, and tells from here on.
    pub(crate) fn feed(&self, journal: Arc<dyn Journal>) -> Feed {
        let (events, heard) = {
            let book = self.book();
            (self.listeners.subscribe(), book.began)
        };
        let missed = Vec::new().into_iter();
        let mut feed = Feed { session: self.session, heard, events, journal, missed };
        feed.catch_up();
        feed
    }
}

fn is_durable(event: &SessionEvent) -> bool {
    event.body.persistence() == Persistence::Durable
}

/// What happens in a session, for a front. A front that is slow or stuck never stops the loop: it misses live events, and
/// gets the durable ones from the journal.
pub struct Feed {
    session: SessionId,
    heard: Seq,
    events: broadcast::Receiver<Arc<SessionEvent>>,
    journal: Arc<dyn Journal>,
    missed: std::vec::IntoIter<Arc<SessionEvent>>,
}

impl Feed {
    /// The next event; none when the session is over.
    pub async fn next(&mut self) -> Option<Arc<SessionEvent>> {
        loop {
            if let Some(event) = self.missed.next() {
                self.heard = event.seq;
                return Some(event);
            }
            match self.events.recv().await {
                // What was read from the journal is not told again, nor what was live before that.
                Ok(event) if event.seq < self.heard => {}
                Ok(event) if is_durable(&event) && event.seq == self.heard => {}
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
