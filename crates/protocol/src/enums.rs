//! Small closed sets that several parts speak of.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    /// The model had nothing more to do.
    EndTurn,
    /// A person stopped it.
    Cancelled,
    /// The limit of steps was reached.
    MaxTurns,
    /// The limit of time was reached.
    Timeout,
    /// The limit of money was reached.
    Budget,
    /// It could not go on.
    Error,
    /// Something had to be asked and nobody could answer.
    Denied,
}

/// What a session is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    #[default]
    Idle,
    /// The model is at work.
    Thinking,
    RunningTools,
    /// A question is open.
    WaitingForPerson,
    Ended,
}

/// Why a model's response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    EndTurn,
    /// It wants tools to run.
    ToolUse,
    /// The output limit was reached.
    MaxTokens,
    StopSequence,
    /// The provider or the model refused.
    Refusal,
    /// The provider paused and wants the conversation sent again as it is.
    Pause,
    Other,
}

/// What kind of work a tool does. It decides what may run side by side and what must be on disk first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolClass {
    /// Looks and changes nothing.
    Reads,
    /// May change something.
    Changes,
    /// Hands work to another agent.
    Subagent,
    /// Speaks with a person.
    Interactive,
}

/// How freely the agent may act where no rule decides, from strict to loose.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    /// nothing is changed, only planned
    Plan,
    /// a person is asked
    #[default]
    Ask,
    /// edits of files in the workspace are allowed, the rest is asked
    AcceptEdits,
    /// what the sandbox contains is allowed, the rest is asked
    Auto,
    /// everything is allowed
    Bypass,
}

/// How much a model thinks, from little to much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReasoningEffort {
    /// not at all
    Off,
    /// hardly
    Minimal,
    /// a little
    Low,
    /// some
    Medium,
    /// much
    High,
    /// as much as it can
    Max,
}

/// What a turn may not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    Steps,
    Time,
    Cost,
}

/// What happens to an action, from free to strict: a rule's word, and the decision over all rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PermissionVerdict {
    /// it is done
    Allow,
    /// a person is asked
    Ask,
    /// it is refused
    Deny,
}

impl fmt::Display for PermissionVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PermissionVerdict::Allow => "allow",
            PermissionVerdict::Ask => "ask",
            PermissionVerdict::Deny => "deny",
        })
    }
}

/// How well commands can be confined here, from not at all to completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConfinementLevel {
    /// Not at all.
    None,
    /// By Landlock and a filter of system calls. The command sees all processes, and may change the permissions and
    /// times of the user's files anywhere, but not their contents. It makes no Unix sockets, since those of other
    /// programs could not be told apart.
    Landlock,
    /// Also in namespaces of its own: users, mounts, processes, IPC and, without network, that.
    Full,
}

/// A protocol between Helve and a model's server. A vendor is data; a wire is code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WireProtocol {
    /// Anthropic Messages
    Messages,
    /// OpenAI Chat Completions, and the many servers compatible with it
    Chat,
    /// OpenAI Responses
    Responses,
    /// Gemini
    Gemini,
}

impl WireProtocol {
    /// Every protocol.
    pub const ALL: [WireProtocol; 4] =
        [WireProtocol::Messages, WireProtocol::Chat, WireProtocol::Responses, WireProtocol::Gemini];

    /// The name in settings and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            WireProtocol::Messages => "messages",
            WireProtocol::Chat => "chat",
            WireProtocol::Responses => "responses",
            WireProtocol::Gemini => "gemini",
        }
    }

    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            WireProtocol::Messages => "Anthropic Messages",
            WireProtocol::Chat => "OpenAI Chat Completions, and servers that are compatible with it",
            WireProtocol::Responses => "OpenAI Responses",
            WireProtocol::Gemini => "Gemini generateContent",
        }
    }
}

/// How a key is shown to a model's server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KeyPlacement {
    /// as Authorization: Bearer KEY
    Bearer,
    /// in the header x-api-key
    XApiKey,
    /// in the header api-key
    ApiKey,
    /// in the header x-goog-api-key
    XGoogApiKey,
    /// in the address, as ?key=KEY
    Query,
    /// not at all
    None,
}
