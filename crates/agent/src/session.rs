//! A conversation that goes on.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use helve_journal::Journal;
use helve_models::{Dialogue, ModelPrompt, ModelTarget};
use helve_protocol::{
    Clock, Cost, EventBody, IdKind, IdSource, MessageId, MessagePart, ModeSwitched, ModelName,
    ModelSwitchReason, NoteAdded, NoteTopic, PermissionMode, QueueChanged, ReasoningEffort, SessionCreated,
    SessionId, SessionOpened, SessionState, TurnEnded, TurnLimits, TurnOutcome, TurnStarted, UserMessage,
};
use helve_tools::Tool;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::change_tracker::{ChangeTracker, WatchConfig};
use crate::gate::PermissionGate;
use crate::recorder::{Feed, Recorder, SessionError};
use crate::recovery;
use crate::toolbox::Toolbox;
use crate::turn::{TurnContext, TurnRunner, dialogue_began};

/// What a session needs from the house it lives in.
pub struct Services {
    pub journal: Arc<dyn Journal>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdSource>,
    pub tools: Vec<Arc<dyn Tool>>,
    pub gate: PermissionGate,
    /// How freely it may act when it begins.
    pub mode: PermissionMode,
    pub limits: TurnBudget,
    /// Finds the model that a name means, or says why there is none.
    pub models: ModelFinder,
    /// The project, absolute.
    pub root: PathBuf,
    /// Folders besides the project in which files may be changed, absolute.
    pub added: Vec<PathBuf>,
    /// The files that are watched.
    pub watched: Option<WatchConfig>,
    /// The version of the program.
    pub version: String,
}

pub type ModelFinder = Arc<dyn Fn(&ModelName) -> Result<ModelTarget, String> + Send + Sync>;

/// Where a turn stops by itself.
#[derive(Clone, Copy, Debug)]
pub struct TurnBudget {
    pub steps: u32,
    pub cost: Option<Cost>,
    pub time: Option<Duration>,
}

impl Default for TurnBudget {
    fn default() -> TurnBudget {
        TurnBudget { steps: 50, cost: None, time: None }
    }
}

impl TurnBudget {
    fn told(self) -> TurnLimits {
        let time_ms = self.time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        TurnLimits { steps: Some(self.steps), cost: self.cost, time_ms }
    }
}

/// A session that this process owns.
pub struct Session {
    pub(crate) record: Recorder,
    pub(crate) dialogue: Dialogue,
    pub(crate) house: Services,
    pub(crate) watching: ChangeTracker,
    toolbox: Toolbox,
    /// Told when a person does not want to wait for what runs.
    pub(crate) background: Arc<Notify>,
}

/// What a turn is about.
pub(crate) enum TurnTask {
    /// What a person said.
    UserMessage { message: MessageId, parts: Vec<MessagePart> },
    /// To go on where the last turn stopped.
    ContinueTurn,
}

impl Session {
    /// Begins a session.
    pub fn create(house: Services, dialogue: Dialogue) -> Result<Session, SessionError> {
        let id: SessionId = house.ids.draw(IdKind::Session).into();
        let log = house.journal.create(id)?;
        let record = Recorder::new(log, SessionState::default(), house.clock.clone(), house.ids.clone());
        let created = SessionCreated {
            workspace: house.root.display().to_string(),
            model: Some(dialogue.target().name.clone()),
            helve: house.version.clone(),
            parent: None,
        };
        record.emit_all(vec![created.into(), dialogue_began(&dialogue).into()])?;
        let session = Session::with(record, dialogue, house);
        session.set_mode(session.house.mode)?;
        Ok(session)
    }

    /// Takes a session up again, and puts in order what a crash left.
    pub fn open(house: Services, dialogue: Dialogue, id: SessionId) -> Result<Session, SessionError> {
        let mut state = SessionState::default();
        let log = house.journal.open(id, &mut |event| state.apply(&event))?;
        // Before anything is written: a build that can't read all of it could only go on with a part.
        if !state.unreadable.is_empty() {
            return Err(SessionError::Unreadable(state.unreadable));
        }
        let record = Recorder::new(log, state, house.clock.clone(), house.ids.clone());
        let opened = SessionOpened { helve: house.version.clone() };
        record.emit_all(vec![opened.into(), dialogue_began(&dialogue).into()])?;
        let session = Session::with(record, dialogue, house);
        recovery::end_broken_turn(&session.record, &session.watching)?;
        session.set_mode(session.house.mode)?;
        let has_acted = |state: &SessionState| {
            let parts = state.history.messages().flat_map(|message| &message.parts);
            parts.into_iter().any(|part| matches!(part, MessagePart::Tool(_)))
        };
        if session.record.state(has_acted) {
            session.watching.resume();
        }
        Ok(session)
    }

    pub(crate) fn with(record: Recorder, dialogue: Dialogue, house: Services) -> Session {
        let toolbox = Toolbox::new(&house.tools);
        let id = record.session().to_string();
        let watching = ChangeTracker::new(house.watched.as_ref(), &id, record.blobs(), &house.clock);
        Session { record, dialogue, house, watching, toolbox, background: Arc::default() }
    }

    /// From here on the agent may act more or less freely.
    pub(crate) fn set_mode(&self, to: PermissionMode) -> Result<(), SessionError> {
        let from = self.record.state(|state| state.mode);
        if from == to { Ok(()) } else { self.record.tell(ModeSwitched { from, to }) }
    }

    pub fn id(&self) -> SessionId {
        self.record.session()
    }

    /// Looks at where the session stands.
    pub fn state<T>(&self, look: impl FnOnce(&SessionState) -> T) -> T {
        self.record.state(look)
    }

    /// Everything that this process told of the session, and tells from here on.
    pub fn feed(&self) -> Feed {
        self.record.feed(self.house.journal.clone())
    }

    /// Keeps a payload for a message that will name it.
    pub fn keep(&self, content: &[u8]) -> Result<helve_protocol::BlobId, SessionError> {
        Ok(self.record.blobs().put(content)?)
    }

    /// Hands a person's message to the model, and works until there is an outcome.
    pub async fn submit(
        &mut self,
        parts: Vec<MessagePart>,
        stop: &CancellationToken,
    ) -> Result<TurnOutcome, SessionError> {
        let message = self.record.draw();
        self.work(TurnTask::UserMessage { message, parts }, stop).await
    }

    /// Goes on where the last turn stopped: at a limit, at an error, in a crash.
    pub async fn go_on(&mut self, stop: &CancellationToken) -> Result<TurnOutcome, SessionError> {
        self.work(TurnTask::ContinueTurn, stop).await
    }

    pub(crate) async fn work(
        &mut self,
        task: TurnTask,
        stop: &CancellationToken,
    ) -> Result<TurnOutcome, SessionError> {
        let record = &self.record;
        self.watching.start();
        if matches!(task, TurnTask::UserMessage { .. }) {
            recovery::settle_open_calls(record)?;
        }
        self.house.gate.refresh(record)?;
        record.set_turn(Some(record.draw()));
        let mut events: Vec<EventBody> = vec![TurnStarted { limits: self.house.limits.told() }.into()];
        match task {
            TurnTask::UserMessage { message, parts } => {
                events.push(UserMessage { message, parts }.into());
                let mut queue = record.state(|state| state.queue.clone());
                if let Some(place) = queue.iter().position(|queued| queued.message == message) {
                    queue.remove(place);
                    events.push(QueueChanged { queue }.into());
                }
            }
            // The model has had the last word, so that it can only go on if it is asked to.
            TurnTask::ContinueTurn if record.state(|state| state.history.is_answered()) => {
                let (topic, text) = (NoteTopic::GoOn, "Go on.".to_owned());
                events.push(NoteAdded { message: record.draw(), topic, text }.into());
            }
            TurnTask::ContinueTurn => {}
        }
        record.emit_all(events)?;
        let span = tracing::debug_span!(
            "invoke_agent",
            "gen_ai.operation.name" = "invoke_agent",
            "gen_ai.agent.name" = %record.state(|state| state.agent.clone()),
            "gen_ai.conversation.id" = %record.session(),
        );
        // When the time of the turn is up, only the turn is stopped.
        let stop = &stop.child_token();
        let (house, toolbox, watching) = (&self.house, &self.toolbox, &self.watching);
        let work = TurnContext { record, house, toolbox, watching, stop, background: &self.background };
        let (outcome, metrics) = TurnRunner::new(work, &mut self.dialogue).run().instrument(span).await?;
        record.tell(TurnEnded { outcome, metrics })?;
        record.set_turn(None);
        Ok(outcome)
    }

    /// From here on the model thinks more or less.
    pub(crate) fn set_effort(&mut self, effort: Option<ReasoningEffort>) -> Result<(), SessionError> {
        self.dialogue.set_prompt(ModelPrompt { effort, ..self.dialogue.prompt().clone() });
        self.record.tell(dialogue_began(&self.dialogue))
    }

    /// From here on another model answers.
    pub(crate) fn switch(&mut self, to: ModelTarget, reason: ModelSwitchReason) -> Result<(), SessionError> {
        let switched = self.dialogue.switch(to, reason);
        self.record.emit_all(vec![switched.into(), dialogue_began(&self.dialogue).into()])
    }
}
