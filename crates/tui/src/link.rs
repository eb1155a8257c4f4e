//! What the interface needs of the session and of the machine. Both are handed in.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use helve_protocol::{
    AgentName, BlobId, Cost, FilePart, Message, ModelName, PermissionMode, PlanTask, QueryReply,
    QueuedMessage, Seq, SessionCommand, SessionEvent, SessionId, SessionQuery, StatusBarItem,
};
use helve_widgets::Theme;
use tokio::sync::mpsc;

use crate::keymap::KeyMap;

/// The way to a session and back.
#[derive(Debug)]
pub struct SessionLink {
    pub orders: mpsc::Sender<UiRequest>,
    /// Closed when the session has ended.
    pub told: mpsc::Receiver<SessionMessage>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum UiRequest {
    Command(SessionCommand),
    Query(SessionQuery),
}

#[derive(Clone, Debug)]
pub enum SessionMessage {
    Event(Arc<SessionEvent>),
    Reply(QueryReply),
    /// All of the session is known now; what is shown already was only its end.
    Overview(Box<SessionOverview>),
}

/// What the session is like when it is opened.
#[derive(Clone, Debug, Default)]
pub struct SessionOverview {
    pub model: Option<ModelName>,
    pub agent: Option<AgentName>,
    pub mode: PermissionMode,
    pub cost: Cost,
    pub queue: Vec<QueuedMessage>,
    pub plan: Vec<PlanTask>,
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
pub struct AppContext {
    pub version: String,
    /// The project, as people write it.
    pub project: String,
    /// Where what was written is kept, and what was not sent yet.
    pub history: Option<PathBuf>,
    pub draft: Option<PathBuf>,
}

/// How the interface looks and which keys it has.
#[derive(Clone, Debug)]
pub struct AppOptions {
    pub theme: Theme,
    pub keys: KeyMap,
    /// What the status line tells, in this order.
    pub status: Vec<StatusBarItem>,
}

impl Default for AppOptions {
    fn default() -> AppOptions {
        AppOptions { theme: Theme::default(), keys: KeyMap::default(), status: StatusBarItem::ALL.to_vec() }
    }
}

/// What a command of the user's gave.
#[derive(Clone, Debug, Default)]
pub struct UserCommandResult {
    pub output: String,
    pub is_well: bool,
}

/// A session that can be gone on with.
#[derive(Clone, Debug)]
pub struct SessionRow {
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
pub struct SessionPreview {
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
pub struct SessionFileChange {
    pub path: String,
    pub added: u64,
    pub removed: u64,
    pub diff: String,
}

/// Tells a command that it is to stop.
#[derive(Clone, Debug, Default)]
pub struct CommandStopFlag(Arc<AtomicBool>);

impl CommandStopFlag {
    pub fn stop(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl PartialEq for CommandStopFlag {
    fn eq(&self, other: &CommandStopFlag) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Runs a command until it ends or is stopped, and tells the last of its output now and then.
pub type UserCommandRunner =
    Arc<dyn Fn(&str, &CommandStopFlag, &dyn Fn(String)) -> UserCommandResult + Send + Sync>;
pub type SessionPreviewReader = Arc<dyn Fn(SessionId) -> SessionPreview + Send + Sync>;
pub type FileAttacher = Arc<dyn Fn(&Path) -> Result<FilePart, String> + Send + Sync>;
pub type ContextSizeLookup = Arc<dyn Fn(&ModelName) -> Option<u64> + Send + Sync>;
/// The last of the session's events before one, some bytes of them.
pub type EventHistoryReader = Arc<dyn Fn(Seq, u64) -> Result<Vec<SessionEvent>, String> + Send + Sync>;
pub type EventPayloadReader = Arc<dyn Fn(BlobId) -> Result<Vec<u8>, String> + Send + Sync>;
pub type MachineCall<T> = Arc<dyn Fn() -> T + Send + Sync>;
pub type MachineTextCall<T> = Arc<dyn Fn(&str) -> T + Send + Sync>;

/// What the interface asks of the machine. Everything but `now` may take its time: it is called on a thread of its own.
#[derive(Clone)]
pub struct MachineAccess {
    pub now: MachineCall<Instant>,
    /// The files of the project.
    pub files: MachineCall<Vec<String>>,
    /// The branch that is worked on, with a mark if something is not committed.
    pub branch: MachineCall<Option<String>>,
    /// How commands are confined.
    pub sandbox: MachineCall<String>,
    /// The models that are known, those that can be used first.
    pub models: MachineCall<Vec<ModelChoice>>,
    /// The sessions that can be gone on with, the last one first.
    pub sessions: MachineCall<Result<Vec<SessionRow>, String>>,
    pub glimpse: SessionPreviewReader,
    /// What this session changed, since it began.
    pub changes: MachineCall<Result<Vec<SessionFileChange>, String>>,
    /// Runs a command of the user's.
    pub shell: UserCommandRunner,
    /// Keeps a sentence for later sessions, and tells where.
    pub remember: MachineTextCall<Result<String, String>>,
    /// Lets the user write in an editor of theirs. The terminal is free meanwhile.
    pub edit: MachineTextCall<Result<String, String>>,
    /// Keeps a picture for the session.
    pub attach: FileAttacher,
    /// What was said and done, from its end.
    pub look_back: EventHistoryReader,
    /// What an event only names.
    pub payload: EventPayloadReader,
    /// What works here, as `helve doctor` tells it.
    pub doctor: MachineCall<String>,
    /// The rules as they are now.
    pub permissions: MachineCall<String>,
    /// How many tokens a model takes.
    pub context: ContextSizeLookup,
}

/// How the interface was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppExitReason {
    Quit,
    /// Somebody wants us to end: a signal, or the terminal is gone.
    Terminated,
    /// The session is over, though nobody wanted that.
    SessionEnded,
    /// Another session is wanted.
    NewSession,
    ResumeSession(SessionId),
}
