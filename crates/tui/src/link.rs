//! What the interface needs of the session and of the machine. Both are handed in.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use helve_protocol::{
    AgentName, BlobId, Command, Cost, Event, FilePart, Message, Mode, ModelName, Query, Queued, Reply, Seq,
    SessionId, Task,
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
    /// All of the session is known now; what is shown already was only its end.
    Opened(Box<Opened>),
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
    /// Whether anything was said before that.
    pub has_earlier: bool,
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

/// A session that can be gone on with.
#[derive(Clone, Debug)]
pub struct Past {
    pub session: SessionId,
    pub title: String,
    /// When something last happened in it, in words.
    pub when: String,
    pub model: Option<String>,
    pub cost: String,
    pub turns: u64,
    /// The folder that it worked in, and whether that is this one.
    pub place: String,
    pub is_here: bool,
}

/// How a session began and ended.
#[derive(Clone, Debug, Default)]
pub struct Glimpse {
    pub first: String,
    pub last: String,
}

/// A model that can be chosen, or could be.
#[derive(Clone, Debug)]
pub struct ModelChoice {
    pub name: String,
    /// How many tokens it takes, in short.
    pub context: String,
    /// Dollars for a million tokens, read and written.
    pub prices: Option<(String, String)>,
    pub is_usable: bool,
    /// Why it can be used, or what is missing.
    pub why: String,
}

/// A file that the session changed.
#[derive(Clone, Debug, Default)]
pub struct Changed {
    pub path: String,
    pub added: u64,
    pub removed: u64,
    pub diff: String,
}

/// Tells a command that it is to stop.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn stop(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl PartialEq for Stop {
    fn eq(&self, other: &Stop) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Runs a command until it ends or is stopped, and tells the last of its output now and then.
pub type RunOwn = Arc<dyn Fn(&str, &Stop, &dyn Fn(String)) -> Ran + Send + Sync>;
pub type LookInto = Arc<dyn Fn(SessionId) -> Glimpse + Send + Sync>;
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
    /// The models that are known, those that can be used first.
    pub models: Make<Vec<ModelChoice>>,
    /// The sessions that can be gone on with, the last one first.
    pub sessions: Make<Result<Vec<Past>, String>>,
    pub glimpse: LookInto,
    /// What this session changed, since it began.
    pub changes: Make<Result<Vec<Changed>, String>>,
    /// Runs a command of the user's.
    pub shell: RunOwn,
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
