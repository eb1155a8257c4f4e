//! A conversation that goes on.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use helve_journal::Journal;
use helve_models::{Dialogue, Prompt, Target};
use helve_protocol::{
    Body, Clock, Cost, Effort, IdKind, Ids, MessageId, Mode, ModeSwitched, ModelName, ModelSwitched,
    NoteAdded, Outcome, Part, QueueChanged, SessionCreated, SessionId, SessionOpened, SessionState,
    TurnEnded, TurnLimits, TurnStarted, UserMessage,
};
use helve_tools::Tool;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::gate::Gate;
use crate::record::{Error, Feed, Recorder};
use crate::recovery;
use crate::toolbox::Toolbox;
use crate::turn::{Turn, Work, dialogue_began};
use crate::watching::{Watched, Watching};

/// What a session needs from the house it lives in.
pub struct House {
    pub journal: Arc<dyn Journal>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub tools: Vec<Arc<dyn Tool>>,
    pub gate: Gate,
    /// How freely it may act when it begins.
    pub mode: Mode,
    pub limits: Limits,
    /// Finds the model that a name means, or says why there is none.
    pub models: FindModel,
    /// The project, absolute.
    pub root: PathBuf,
    /// Folders besides the project in which files may be changed, absolute.
    pub added: Vec<PathBuf>,
    /// The files that are watched.
    pub watched: Option<Watched>,
    /// The version of the program.
    pub version: String,
}

pub type FindModel = Arc<dyn Fn(&ModelName) -> Result<Target, String> + Send + Sync>;

/// Where a turn stops by itself.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub steps: u32,
    pub cost: Option<Cost>,
    pub time: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { steps: 50, cost: None, time: None }
    }
}

impl Limits {
    fn told(self) -> TurnLimits {
        let time_ms = self.time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        TurnLimits { steps: Some(self.steps), cost: self.cost, time_ms }
    }
}

/// A session that this process owns.
pub struct Session {
    pub(crate) record: Recorder,
    pub(crate) dialogue: Dialogue,
    pub(crate) house: House,
    pub(crate) watching: Watching,
    toolbox: Toolbox,
    /// Told when a person does not want to wait for what runs.
    pub(crate) background: Arc<Notify>,
}

/// What a turn is about.
pub(crate) enum Task {
    /// What a person said.
    Said { message: MessageId, parts: Vec<Part> },
    /// To go on where the last turn stopped.
    GoOn,
}

impl Session {
    /// Begins a session.
    pub fn create(house: House, dialogue: Dialogue) -> Result<Session, Error> {
        let id: SessionId = house.ids.draw(IdKind::Session).into();
        let log = house.journal.create(id)?;
        let record = Recorder::new(log, SessionState::default(), house.clock.clone(), house.ids.clone());
        let created = SessionCreated {
            workspace: house.root.display().to_string(),
            model: Some(dialogue.target().name.clone()),
            helve: house.version.clone(),
            parent: None,
        };
        record.tell_all(vec![created.into(), dialogue_began(&dialogue).into()])?;
        let session = Session::with(record, dialogue, house);
        session.set_mode(session.house.mode)?;
        Ok(session)
    }

    /// Takes a session up again, and puts in order what a crash left.
    pub fn open(house: House, dialogue: Dialogue, id: SessionId) -> Result<Session, Error> {
        let mut state = SessionState::default();
        let log = house.journal.open(id, &mut |event| state.apply(&event))?;
        let record = Recorder::new(log, state, house.clock.clone(), house.ids.clone());
        let opened = SessionOpened { helve: house.version.clone() };
        record.tell_all(vec![opened.into(), dialogue_began(&dialogue).into()])?;
        let session = Session::with(record, dialogue, house);
        recovery::put_in_order(&session.record, &session.watching)?;
        session.set_mode(session.house.mode)?;
        let has_acted = |state: &SessionState| {
            let parts = state.history.messages().flat_map(|message| &message.parts);
            parts.into_iter().any(|part| matches!(part, Part::Tool(_)))
        };
        if session.record.state(has_acted) {
            session.watching.resume();
        }
        Ok(session)
    }

    pub(crate) fn with(record: Recorder, dialogue: Dialogue, house: House) -> Session {
        let toolbox = Toolbox::new(&house.tools);
        let id = record.session().to_string();
        let watching = Watching::new(house.watched.as_ref(), &id, record.blobs(), &house.clock);
        Session { record, dialogue, house, watching, toolbox, background: Arc::default() }
    }

    /// From here on the agent may act more or less freely.
    pub(crate) fn set_mode(&self, to: Mode) -> Result<(), Error> {
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
    pub fn keep(&self, content: &[u8]) -> Result<helve_protocol::BlobId, Error> {
        Ok(self.record.blobs().put(content)?)
    }

    /// Hands a person's message to the model, and works until there is an outcome.
    pub async fn submit(&mut self, parts: Vec<Part>, stop: &CancellationToken) -> Result<Outcome, Error> {
        let message = self.record.draw();
        self.work(Task::Said { message, parts }, stop).await
    }

    /// Goes on where the last turn stopped: at a limit, at an error, in a crash.
    pub async fn go_on(&mut self, stop: &CancellationToken) -> Result<Outcome, Error> {
        self.work(Task::GoOn, stop).await
    }

    pub(crate) async fn work(&mut self, task: Task, stop: &CancellationToken) -> Result<Outcome, Error> {
        let record = &self.record;
        self.watching.start();
        if matches!(task, Task::Said { .. }) {
            recovery::settle(record)?;
        }
        self.house.gate.refresh(record)?;
        record.set_turn(Some(record.draw()));
        let mut events: Vec<Body> = vec![TurnStarted { limits: self.house.limits.told() }.into()];
        match task {
            Task::Said { message, parts } => {
                events.push(UserMessage { message, parts }.into());
                let mut queue = record.state(|state| state.queue.clone());
                if let Some(place) = queue.iter().position(|queued| queued.message == message) {
                    queue.remove(place);
                    events.push(QueueChanged { queue }.into());
                }
            }
            // The model has had the last word, so that it can only go on if it is asked to.
            Task::GoOn if record.state(|state| state.history.is_answered()) => {
                let (topic, text) = ("go_on".to_owned(), "Go on.".to_owned());
                events.push(NoteAdded { message: record.draw(), topic, text }.into());
            }
            Task::GoOn => {}
        }
        record.tell_all(events)?;
        let span = tracing::debug_span!(
            "invoke_agent",
            "gen_ai.operation.name" = "invoke_agent",
            "gen_ai.agent.name" = %record.state(|state| state.agent.clone()),
            "gen_ai.conversation.id" = %record.session(),
        );
        // When the time of the turn is up, only the turn is stopped.
        let stop = &stop.child_token();
        let (house, toolbox, watching) = (&self.house, &self.toolbox, &self.watching);
        let work = Work { record, house, toolbox, watching, stop, background: &self.background };
        let (outcome, metrics) = Turn::new(work, &mut self.dialogue).run().instrument(span).await?;
        record.tell(TurnEnded { outcome, metrics })?;
        record.set_turn(None);
        Ok(outcome)
    }

    /// From here on the model thinks more or less.
    pub(crate) fn set_effort(&mut self, effort: Option<Effort>) -> Result<(), Error> {
        self.dialogue.set_prompt(Prompt { effort, ..self.dialogue.prompt().clone() });
        self.record.tell(dialogue_began(&self.dialogue))
    }

    /// From here on another model answers.
    pub(crate) fn switch(&mut self, to: Target, reason: &str) -> Result<(), Error> {
        let switch = self.dialogue.switch(to, reason);
        let switched = ModelSwitched { from: switch.from, to: switch.to, reason: switch.reason };
        self.record.tell_all(vec![switched.into(), dialogue_began(&self.dialogue).into()])
    }
}
