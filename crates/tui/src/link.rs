//! What the interface needs of the session and of the machine. Both are handed in.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use helve_protocol::{
    BlobId, Command, Cost, Event, FilePart, Message, Mode, ModelName, Query, Queued, Reply, Seq, SessionId,
    Task,
};
use helve_widgets::Theme;
use tokio::sync::mpsc;

use crate::keys::KeyMap;

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
    /// All of the session is known now; what is shown already was only its end.
    Opened(Box<Opened>),
}

/// What the session is like when it is opened.
#[derive(Clone, Debug, Default)]
pub struct Opened {
    pub model: Option<ModelName>,
    pub mode: Mode,
    pub cost: Cost,
    pub queue: Vec<Queued>,
    pub plan: Vec<Task>,
    /// The last of what was said in it.
    pub recent: Vec<Message>,
    /// Whether anything was said before that.
    pub has_earlier: bool,
    /// The last turn was stopped, or broke off.
    pub is_unfinished: bool,
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
#[derive(Clone, Debug, Default)]
pub struct Look {
    pub theme: Theme,
    pub keys: KeyMap,
}

/// What a command of the user's gave.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    pub output: String,
    pub is_well: bool,
}

pub type Attach = Arc<dyn Fn(&Path) -> Result<FilePart, String> + Send + Sync>;
pub type Measure = Arc<dyn Fn(&ModelName) -> Option<u64> + Send + Sync>;
/// The last of the session's events before one, some bytes of them.
pub type LookBack = Arc<dyn Fn(Seq, u64) -> Result<Vec<Event>, String> + Send + Sync>;
pub type Payload = Arc<dyn Fn(BlobId) -> Result<Vec<u8>, String> + Send + Sync>;
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
    /// What was said and done, from its end.
    pub look_back: LookBack,
    /// What an event only names.
    pub payload: Payload,
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
