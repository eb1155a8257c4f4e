//! A conversation that goes on.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use helve_journal::Journal;
use helve_models::{Dialogue, ToolSpec};
use helve_protocol::{
    Clock, Cost, History, Ids, Outcome, Part, SessionCreated, SessionId, SessionOpened, TurnEnded,
    TurnStarted, UserMessage,
};
use helve_tools::{Context, Tool};
use tokio_util::sync::CancellationToken;

use crate::gate::Gate;
use crate::record::{Error, Feed, Recorder};
use crate::recovery;
use crate::turn::Turn;

/// What a session needs from the house it lives in.
pub struct House {
    pub journal: Arc<dyn Journal>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub tools: Vec<Arc<dyn Tool>>,
    pub gate: Gate,
    pub limits: Limits,
    /// The project, absolute.
    pub root: PathBuf,
    /// The version of the program.
    pub version: String,
}

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

/// A session that this process owns.
pub struct Session {
    pub(crate) record: Recorder,
    pub(crate) dialogue: Dialogue,
    pub(crate) house: House,
}

impl House {
    /// What the model is told of the tools.
    pub fn specs(&self) -> Vec<ToolSpec> {
        let spec = |tool: &Arc<dyn Tool>| ToolSpec {
            name: tool.name().to_owned(),
            description: tool.description().to_owned(),
            schema: tool.schema(),
        };
        self.tools.iter().map(spec).collect()
    }
}

impl Session {
    /// Begins a session.
    pub fn create(house: House, dialogue: Dialogue) -> Result<Session, Error> {
        let id: SessionId = house.ids.draw().into();
        let log = house.journal.create(id)?;
        let mut record = Recorder::new(log, History::default(), house.clock.clone(), house.ids.clone());
        record.tell(SessionCreated {
            workspace: house.root.display().to_string(),
            model: Some(dialogue.target().name.clone()),
            helve: house.version.clone(),
            parent: None,
        })?;
        Ok(Session { record, dialogue, house })
    }

    /// Takes a session up again, and puts in order what a crash left.
    pub fn open(house: House, dialogue: Dialogue, id: SessionId) -> Result<Session, Error> {
        let mut history = History::default();
        let mut open_turn = None;
        let log = house.journal.open(id, &mut |event| {
            history.apply(&event);
            recovery::follow(&mut open_turn, &event);
        })?;
        let mut record = Recorder::new(log, history, house.clock.clone(), house.ids.clone());
        record.tell(SessionOpened { helve: house.version.clone() })?;
        recovery::put_in_order(&mut record, open_turn)?;
        Ok(Session { record, dialogue, house })
    }

    pub fn id(&self) -> SessionId {
        self.record.session()
    }

    pub fn history(&self) -> &History {
        &self.record.history
    }

    /// Everything that happens from here on.
    pub fn feed(&self) -> Feed {
        self.record.feed(self.house.journal.clone())
    }

    /// Hands a person's message to the model, and works until there is an outcome.
    pub async fn submit(&mut self, parts: Vec<Part>, stop: &CancellationToken) -> Result<Outcome, Error> {
        self.record.turn = Some(self.record.draw());
        self.record.tell(TurnStarted {})?;
        let message = self.record.draw();
        self.record.tell(UserMessage { message, parts })?;
        let context = Context { root: self.house.root.clone(), stop: stop.child_token() };
        let turn = Turn::new(&mut self.record, &mut self.dialogue, &self.house, &context);
        let (outcome, metrics) = turn.run().await?;
        self.record.tell(TurnEnded { outcome, metrics })?;
        self.record.turn = None;
        Ok(outcome)
    }
}
