//! What the interface needs of the session and of the machine. Both are handed in.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use helve_protocol::{
    AgentName, Command, Cost, Event, FilePart, Message, Mode, ModelName, Query, Queued, Reply, SessionId,
    Task,
};
use helve_widgets::Theme;
use tokio::sync::mpsc;

use crate::keymap::KeyMap;
use crate::status::StatusItem;

/// The way to a session and back.
#[derive(Debug)]
pub struct Link {
    pub orders: mpsc::Sender<Order>,
    /// Closed when the session has ended.
    pub told: mpsc::Receiver<Told>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    Do(Command),
    Ask(Query),
}

#[derive(Clone, Debug)]
pub enum Told {
    Event(Arc<Event>),
    Reply(Reply),
}

/// What the session is like when it is opened.
#[derive(Clone, Debug, Default)]
pub struct Opened {
    pub model: Option<ModelName>,
    pub agent: Option<AgentName>,
    pub mode: Mode,
    pub cost: Cost,
    pub queue: Vec<Queued>,
    pub plan: Vec<Task>,
    /// The last of what was said in it.
    pub recent: Vec<Message>,
    /// How many messages came before those.
    pub earlier: usize,
    /// The last turn was stopped, or broke off.
    pub is_unfinished: bool,
    /// What the person should know, such as mistakes in the settings.
    pub warnings: Vec<String>,
    /// What to send first.
    pub prompt: Option<String>,
}

/// Facts about where we are.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub version: String,
    /// The project, as people write it.
    pub project: String,
    /// Where what was written is kept, and what was not sent yet.
    pub history: Option<PathBuf>,
    pub draft: Option<PathBuf>,
}

/// How the interface looks and which keys it has.
#[derive(Clone, Debug)]
pub struct Look {
    pub theme: Theme,
    pub keys: KeyMap,
    /// What the status line tells, in this order.
    pub status: Vec<StatusItem>,
}

impl Default for Look {
    fn default() -> Look {
        Look { theme: Theme::default(), keys: KeyMap::default(), status: StatusItem::ALL.to_vec() }
    }
}

/// What a command of the user's gave.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    pub output: String,
    pub is_well: bool,
}

pub type Attach = Arc<dyn Fn(&Path) -> Result<FilePart, String> + Send + Sync>;
pub type Measure = Arc<dyn Fn(&ModelName) -> Option<u64> + Send + Sync>;
pub type Make<T> = Arc<dyn Fn() -> T + Send + Sync>;
pub type Take<T> = Arc<dyn Fn(&str) -> T + Send + Sync>;

/// What the interface asks of the machine. Everything but `now` may take its time: it is called on a thread of its own.
#[derive(Clone)]
pub struct World {
    pub now: Make<Instant>,
    /// The files of the project.
    pub files: Make<Vec<String>>,
    /// The branch that is worked on, with a mark if something is not committed.
    pub branch: Make<Option<String>>,
    /// How commands are confined.
    pub sandbox: Make<String>,
    /// The models that can be used, each with something about it.
    pub models: Make<Vec<(String, String)>>,
    /// Runs a command of the user's.
    pub shell: Take<Ran>,
    /// Keeps a sentence for later sessions, and tells where.
    pub remember: Take<Result<String, String>>,
    /// Lets the user write in an editor of theirs. The terminal is free meanwhile.
    pub edit: Take<Result<String, String>>,
    /// Keeps a picture for the session.
    pub attach: Attach,
    /// What works here, as `helve doctor` tells it.
    pub doctor: Make<String>,
    /// The rules as they are now.
    pub permissions: Make<String>,
    /// How many tokens a model takes.
    pub context: Measure,
}

/// How the interface was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    Quit,
    /// Somebody wants us to end: a signal, or the terminal is gone.
    Told,
    /// The session is over, though nobody wanted that.
    SessionEnded,
    /// Another session is wanted.
    New,
    Resume(SessionId),
}
