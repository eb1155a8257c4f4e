//! What happens. One table lists every kind of event and says whether it is kept; below it stands what each
//! kind carries.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{
    AgentName, ApprovalId, BlobId, CallId, Cost, FileChange, IrreversibleChange, LimitKind, MessageId,
    MessagePart, ModelName, PermissionMode, PromptDelivery, ReasoningEffort, RequestId, RewindScope, Seq,
    SessionId, SessionStatus, StepId, StopReason, Timestamp, TokenUsage, ToolClass, ToolState, TurnId,
    TurnOutcome,
};

/// Something that happened in a session, with its envelope.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionEvent {
    pub session: SessionId,
    /// A durable event's own position in the journal; for a live event, the position of the last durable one.
    pub seq: Seq,
    pub turn: Option<TurnId>,
    pub step: Option<StepId>,
    pub agent: AgentName,
    pub time: Timestamp,
    pub body: EventBody,
}

/// Whether an event may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// Stored in the journal before anybody sees it; never dropped.
    Durable,
    /// Seen by whoever looks just then; a slow reader may lose or merge it.
    Live,
}

/// One row of the table of events.
#[derive(Clone, Copy, Debug)]
pub struct EventKind {
    pub name: &'static str,
    pub persistence: Persistence,
    pub about: &'static str,
    /// The schema of what it carries, for the reference.
    pub schema: fn(&mut schemars::SchemaGenerator) -> schemars::Schema,
}

macro_rules! events {
    ($($(#[doc = $about:literal])+ $persistence:ident $name:literal $variant:ident,)*) => {
        /// What an event says.
        #[derive(Clone, Debug, PartialEq)]
        pub enum EventBody {
            $($(#[doc = $about])+ $variant($variant),)*
            /// A kind that this version does not know, or knows in another form, kept as it is.
            Unknown(UnknownEvent),
        }

        impl EventBody {
            /// Every kind of event, in the order in which a turn meets them.
            pub const KINDS: &[EventKind] = &[$(EventKind {
                name: $name,
                persistence: Persistence::$persistence,
                about: concat!($($about),+),
                schema: |generator| generator.subschema_for::<$variant>(),
            },)*];

            pub fn kind(&self) -> &str {
                match self {
                    $(EventBody::$variant(_) => $name,)*
                    EventBody::Unknown(unknown) => &unknown.kind,
                }
            }

            /// An unknown event was durable when it was written: live ones are never stored.
            pub fn persistence(&self) -> Persistence {
                match self {
                    $(EventBody::$variant(_) => Persistence::$persistence,)*
                    EventBody::Unknown(_) => Persistence::Durable,
                }
            }

            fn read(kind: &str, data: &RawValue) -> Option<EventBody> {
                match kind {
                    $($name => serde_json::from_str(data.get()).ok().map(EventBody::$variant),)*
                    _ => None,
                }
            }

            fn write_data<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                match self {
                    $(EventBody::$variant(data) => map.serialize_entry("data", data),)*
                    EventBody::Unknown(unknown) => map.serialize_entry("data", &unknown.data),
                }
            }
        }

        $(impl From<$variant> for EventBody {
            fn from(data: $variant) -> EventBody {
                EventBody::$variant(data)
            }
        })*
    };
}

events! {
    /// The session exists. Always its first event.
    Durable "session_created" SessionCreated,
    /// A process took the session over: a new start, a resume, a takeover.
    Durable "session_opened" SessionOpened,
    /// The session got another title.
    Durable "session_renamed" SessionRenamed,
    /// The session is doing something else now. Sent again while it idles, as a heartbeat.
    Live "status_changed" StatusChanged,
    /// The queue of waiting messages is now this.
    Durable "queue_changed" QueueChanged,

    /// A turn began.
    Durable "turn_started" TurnStarted,
    /// A person's message was handed to the model.
    Durable "user_message" UserMessage,
    /// Helve told the model something: the date, a reminder, what changed outside.
    Durable "note_added" NoteAdded,

    /// A dialogue with a model begins: with a process, or with another model. From here on requests are written in this way.
    Durable "dialogue_began" DialogueBegan,
    /// A request leaves for the model.
    Durable "step_started" StepStarted,
    /// The model began to answer.
    Live "response_started" ResponseStarted,
    /// The model began to think.
    Live "thinking_started" ThinkingStarted,
    /// A piece of the model's thinking.
    Live "thinking_delta" ThinkingDelta,
    /// The model stopped thinking.
    Live "thinking_ended" ThinkingEnded,
    /// A piece of the model's text.
    Live "text_delta" TextDelta,
    /// A tool call was seen in the stream, before its arguments are complete.
    Live "call_announced" CallAnnounced,
    /// A piece of a tool call's arguments.
    Live "call_delta" CallDelta,
    /// A piece of an answer that is not complete. Kept for readers in case the rest never comes; the model never sees it.
    Durable "response_partial" ResponsePartial,
    /// The answer is complete.
    Durable "response_ended" ResponseEnded,
    /// The request failed; the next one follows after a wait.
    Durable "retry_scheduled" RetryScheduled,

    /// A person has to decide.
    Durable "approval_requested" ApprovalRequested,
    /// It was decided.
    Durable "approval_resolved" ApprovalResolved,
    /// The model asks a person something.
    Durable "question_asked" QuestionAsked,
    /// The person answered, or nobody will.
    Durable "question_answered" QuestionAnswered,
    /// A hook gave a call another input than the model did. The tool works with this one.
    Durable "tool_input_replaced" ToolInputReplaced,
    /// A tool begins its work. If it may change anything, this is on disk before it begins.
    Durable "tool_started" ToolStarted,
    /// A piece of a tool's output.
    Live "tool_output" ToolOutputDelta,
    /// A tool call has its result.
    Durable "tool_ended" ToolEnded,
    /// Files were changed.
    Durable "files_changed" FilesChanged,

    /// The task list is now this.
    Durable "plan_changed" PlanChanged,

    /// The request and its tools are done, with what they cost.
    Durable "step_ended" StepEnded,

    /// From here on another model answers.
    Durable "model_switched" ModelSwitched,
    /// From here on the agent may act more or less freely.
    Durable "mode_switched" ModeSwitched,
    /// The list of tools is another from here on.
    Durable "tools_refreshed" ToolsRefreshed,
    /// The conversation went back to an earlier point.
    Durable "rewound" Rewound,

    /// A limit was reached.
    Durable "limit_reached" LimitReached,
    /// Something went wrong.
    Durable "error_raised" ErrorRaised,
    /// A turn ended.
    Durable "turn_ended" TurnEnded,
    /// A command was not carried out.
    Live "command_refused" CommandRefused,
}

impl EventBody {
    /// Whether the event must be on disk before anything follows (law 4): before a tool that may change
    /// something, before a decision is acted upon, and at the end of a turn.
    pub fn needs_sync(&self) -> bool {
        match self {
            EventBody::ToolStarted(started) => started.class != ToolClass::Reads,
            EventBody::SessionCreated(_)
            | EventBody::ApprovalResolved(_)
            | EventBody::Rewound(_)
            | EventBody::TurnEnded(_) => true,
            _ => false,
        }
    }

    /// The blobs that the event names, which must be safe before it is.
    pub fn blobs(&self) -> Vec<BlobId> {
        let of_changes =
            |changes: &[FileChange]| changes.iter().flat_map(|c| [c.before, c.after]).flatten().collect();
        let of_state = |state: &ToolState| match state {
            ToolState::Completed { output } => {
                output.files.iter().map(|file| file.content).chain(output.whole).collect()
            }
            _ => Vec::new(),
        };
        let of_parts = |parts: &[MessagePart]| {
            let blobs = parts.iter().flat_map(|part| match part {
                MessagePart::File(file) => vec![file.content],
                MessagePart::Tool(tool) => of_state(&tool.state),
                MessagePart::Patch(patch) => of_changes(&patch.changes),
                _ => Vec::new(),
            });
            blobs.collect()
        };
        match self {
            EventBody::UserMessage(message) => of_parts(&message.parts),
            EventBody::ResponseEnded(response) => of_parts(&response.parts),
            EventBody::StepStarted(step) => step.segments.clone(),
            EventBody::ToolEnded(ended) => of_state(&ended.end),
            EventBody::FilesChanged(files) => of_changes(&files.changes),
            EventBody::QueueChanged(queue) => {
                queue.queue.iter().flat_map(|queued| of_parts(&queued.parts)).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// An event that this version can't read, word for word.
#[derive(Clone, Debug)]
pub struct UnknownEvent {
    pub kind: String,
    pub data: Box<RawValue>,
}

impl PartialEq for UnknownEvent {
    fn eq(&self, other: &UnknownEvent) -> bool {
        self.kind == other.kind && self.data.get() == other.data.get()
    }
}

/// A session begins here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionCreated {
    /// The folder that is worked on, absolute.
    pub workspace: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// The version of Helve.
    pub helve: String,
    /// For a sub-agent: the session and the call that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentCall>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParentCall {
    pub session: SessionId,
    pub call: CallId,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionOpened {
    /// The version of Helve.
    pub helve: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionRenamed {
    pub title: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusChanged {
    pub status: SessionStatus,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueueChanged {
    pub queue: Vec<QueuedMessage>,
}

/// A message that waits for its turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueuedMessage {
    pub message: MessageId,
    pub delivery: PromptDelivery,
    pub parts: Vec<MessagePart>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnStarted {
    /// Where the turn stops by itself.
    #[serde(default)]
    pub limits: TurnLimits,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TurnLimits {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserMessage {
    pub message: MessageId,
    pub parts: Vec<MessagePart>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoteAdded {
    pub message: MessageId,
    pub topic: NoteTopic,
    pub text: String,
}

/// What a note to the model is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoteTopic {
    /// The turn is continued although the model had the last word.
    GoOn,
    /// The model has only read for many steps.
    ReadLoop,
    /// Somebody else changed files.
    ChangedOutside,
    /// Which folders there are.
    Folders,
    /// The session goes on in a new process.
    Resumed,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DialogueBegan {
    pub model: ModelName,
    /// How much the model is to think, if that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<ReasoningEffort>,
    /// How the model is written to: what the same requests can be written with again, on any machine.
    pub manner: Value,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepStarted {
    /// The message that the answer will be.
    pub message: MessageId,
    pub request: RequestId,
    pub model: ModelName,
    /// Counted within the turn, from 1.
    pub number: u32,
    /// How many segments of the session's last request this one begins with.
    pub kept: u64,
    /// The segments after those (system, tools, each message), each stored once.
    pub segments: Vec<BlobId>,
    /// Where cache marks stand in the request, in bytes. With them and its segments the request can be written again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseStarted {}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThinkingStarted {
    /// The block's place in the answer.
    pub index: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThinkingDelta {
    pub index: u32,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThinkingEnded {
    pub index: u32,
    /// Where the provider gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TextDelta {
    /// The block's place in the answer.
    pub index: u32,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallAnnounced {
    /// The block's place in the answer.
    pub index: u32,
    pub call: CallId,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallDelta {
    pub call: CallId,
    /// A piece of JSON text.
    pub arguments: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponsePartial {
    /// What has come since the last such event of the step.
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseEnded {
    pub message: MessageId,
    /// Text, reasoning and pending tool calls, in the provider's order.
    pub parts: Vec<MessagePart>,
    pub stop: StopReason,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RetryScheduled {
    /// Which try failed, from 1.
    pub attempt: u32,
    pub delay_ms: u64,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalRequested {
    pub approval: ApprovalId,
    pub call: CallId,
    /// What would happen, in lines that a person can judge.
    pub effects: Vec<String>,
    /// Why it is asked.
    pub reason: String,
    /// How files would change, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The smallest general rules that would cover it together. Without any, only a yes to this once is a yes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalResolved {
    pub approval: ApprovalId,
    pub answer: ApprovalAnswer,
}

/// What a person decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ApprovalAnswer {
    /// This once.
    Once,
    /// For the rest of the session.
    Session,
    /// From now on in this project.
    Project,
    Reject {
        /// For the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionAsked {
    /// The call that asks; the answer names it too.
    pub call: CallId,
    pub text: String,
    /// Answers to choose from. Any other is as good.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionAnswered {
    pub call: CallId,
    /// None if nobody answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolInputReplaced {
    pub call: CallId,
    pub input: Value,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolStarted {
    pub call: CallId,
    pub class: ToolClass,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolOutputDelta {
    pub call: CallId,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolEnded {
    pub call: CallId,
    /// Completed, error, denied or interrupted.
    pub end: ToolState,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FilesChanged {
    /// The call that changed them; none if it was not the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    pub changes: Vec<FileChange>,
    /// What changed in them, as a unified diff; bounded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub diff: String,
    /// What changed and can't be brought back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_kept: Vec<IrreversibleChange>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanChanged {
    pub tasks: Vec<PlanTask>,
}

/// One line of the task list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanTask {
    pub text: String,
    pub state: PlanTaskState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanTaskState {
    Open,
    InProgress,
    Done,
    Dropped,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepEnded {
    pub usage: TokenUsage,
    pub cost: Cost,
    pub stop: StopReason,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelSwitched {
    pub from: ModelName,
    pub to: ModelName,
    pub reason: ModelSwitchReason,
}

/// Why another model answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ModelSwitchReason {
    /// A person chose it.
    Chosen,
    /// The one before could not be reached.
    Fallback {
        /// What its request failed with.
        failure: String,
    },
}

impl fmt::Display for ModelSwitchReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelSwitchReason::Chosen => f.write_str("chosen"),
            ModelSwitchReason::Fallback { failure } => f.write_str(failure),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModeSwitched {
    pub from: PermissionMode,
    pub to: PermissionMode,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolsRefreshed {
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rewound {
    /// Messages that began after this event do not count any more.
    pub to: Seq,
    pub scope: RewindScope,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitReached {
    pub limit: LimitKind,
    /// In plain words, with the figures.
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorRaised {
    /// What went wrong.
    pub what: String,
    /// Why.
    pub why: String,
    /// What to do about it.
    pub hint: String,
    /// Whether it is about a key that is missing or wrong.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_about_keys: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnEnded {
    pub outcome: TurnOutcome,
    pub metrics: TurnMetrics,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandRefused {
    /// The command's name.
    pub command: String,
    pub why: String,
}

/// Where the time of a turn went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TurnMetrics {
    pub steps: u32,
    pub calls: u32,
    pub snapshot_ms: u64,
    pub request_ms: u64,
    pub tools_ms: u64,
    pub changes_ms: u64,
}

impl Serialize for SessionEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("seq", &self.seq)?;
        map.serialize_entry("session", &self.session)?;
        if let Some(turn) = self.turn {
            map.serialize_entry("turn", &turn)?;
        }
        if let Some(step) = self.step {
            map.serialize_entry("step", &step)?;
        }
        map.serialize_entry("agent", &self.agent)?;
        map.serialize_entry("time", &self.time)?;
        map.serialize_entry("kind", self.body.kind())?;
        self.body.write_data(&mut map)?;
        map.end()
    }
}

/// An event as it stands in a line of JSON.
#[derive(Deserialize)]
struct EventLine<'a> {
    seq: Seq,
    session: SessionId,
    turn: Option<TurnId>,
    step: Option<StepId>,
    agent: AgentName,
    time: Timestamp,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    data: &'a RawValue,
}

/// Reads from text only (`serde_json::from_str` or `from_slice`), because an unknown event is kept word for word.
impl<'de> Deserialize<'de> for SessionEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SessionEvent, D::Error> {
        let line = EventLine::deserialize(deserializer)?;
        let unknown = || UnknownEvent { kind: line.kind.to_string(), data: line.data.to_owned() };
        Ok(SessionEvent {
            session: line.session,
            seq: line.seq,
            turn: line.turn,
            step: line.step,
            agent: line.agent,
            time: line.time,
            body: EventBody::read(&line.kind, line.data).unwrap_or_else(|| EventBody::Unknown(unknown())),
        })
    }
}

impl SessionEvent {
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }
}

/// For logs and errors: where the event stands and what it is, none of its content.
impl fmt::Display for SessionEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.seq, self.body.kind())
    }
}
