//! Small closed sets that several parts speak of.

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
    /// The limit of money or tokens was reached.
    Budget,
    /// It could not go on.
    Error,
    /// Something had to be asked and nobody could answer.
    Denied,
    /// A sub-agent handed in its result.
    Goal,
    /// A sub-agent stopped without handing in a result.
    NoCompletion,
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
    Tokens,
}
