//! What a front may ask of a session, and what it gets. A query changes nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AgentName, Cost, FileChange, Message, ModelName, PermissionMode, QueuedMessage, Seq, SessionId,
    SessionStatus, Timestamp, TokenUsage, TurnOutcome,
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "query", rename_all = "snake_case")]
pub enum SessionQuery {
    /// What the session is doing, and with what.
    State,
    /// The messages that wait.
    Queue,
    /// The conversation as people see it.
    Messages,
    /// The sessions of this machine.
    Sessions,
    /// What changed in the workspace after `from`, up to `to`.
    Changes { from: Seq, to: Seq },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum QueryReply {
    State {
        status: SessionStatus,
        model: Option<ModelName>,
        agent: AgentName,
        mode: PermissionMode,
        usage: TokenUsage,
        cost: Cost,
        /// What there is to go on with, if the last turn did not end by itself.
        unfinished: Option<TurnOutcome>,
    },
    Queue {
        queue: Vec<QueuedMessage>,
    },
    Messages {
        messages: Vec<Message>,
    },
    Sessions {
        sessions: Vec<SessionSummary>,
    },
    Changes {
        changes: Vec<FileChange>,
    },
    /// The query can't be answered.
    Failed {
        why: String,
    },
}

/// One line of the list of sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionSummary {
    pub session: SessionId,
    /// Given by a person or by the model; else the beginning of the first message.
    pub title: String,
    pub workspace: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    pub created: Timestamp,
    pub updated: Timestamp,
    pub last: Seq,
    pub turns: u64,
    pub usage: TokenUsage,
    pub cost: Cost,
    /// The session that this one was forked from, and where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<(SessionId, Seq)>,
    /// For a sub-agent's session: the one that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// What is wrong with the session's log, if anything is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
    /// What the session is doing in the process that owns it; ended if none does. Not known if the log of a session that is
    /// owned can't be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<SessionStatus>,
    /// Nobody owns the session, and its last turn was not ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub broken_off: bool,
}
