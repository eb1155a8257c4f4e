//! What a script says, once it is read.

use std::time::Duration;

use helve_protocol::{StopReason, TokenUsage};
use serde::Deserialize;

/// What a model will answer, step by step.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelScript {
    /// In the order in which they are tried.
    pub steps: Vec<ScriptStep>,
}

/// The answer to one request.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptStep {
    /// Which requests it answers.
    pub when: StepCondition,
    /// Before anything comes.
    pub delay: Duration,
    /// It may be played any number of times.
    pub repeat: bool,
    /// What comes.
    pub reply: ScriptedReply,
}

/// Which requests a step answers: those for which everything holds that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepCondition {
    /// In what the user said last.
    pub asked: Option<String>,
    /// In one of the newest results.
    pub result: Option<String>,
    /// The tool that this result is of.
    pub tool: Option<String>,
    /// In the model's name.
    pub model: Option<String>,
}

/// What a step replies to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum ScriptedReply {
    /// An answer of the model.
    Answer(ScriptedAnswer),
    /// An HTTP failure instead of an answer.
    Fail(ScriptedFailure),
}

/// An answer as a script describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptedAnswer {
    /// What the model says, and when.
    pub says: Vec<ScriptedPart>,
    /// What it is said to have cost; else it is counted.
    pub usage: Option<TokenUsage>,
    /// Why it is said to stop; else it follows from the content.
    pub stop: Option<StopReason>,
    /// Characters in a streamed piece.
    pub piece: usize,
    /// How its stream ends.
    pub end: StreamEnding,
}

/// One part of a scripted answer.
#[derive(Clone, Debug, PartialEq)]
pub enum ScriptedPart {
    /// What the model thinks.
    Thinking(String),
    /// What the model says to the user.
    Text(String),
    /// A tool that the model calls.
    Call(ScriptedCall),
    /// Nothing, for this long.
    Wait(Duration),
}

/// A call in a scripted answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptedCall {
    /// The name of the tool.
    pub tool: String,
    /// As the model writes them: JSON, unless the script wants them broken.
    pub arguments: String,
}

/// How a stream ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEnding {
    /// As it should.
    Complete,
    /// Without its end.
    CutOff,
    /// With an error in its place.
    Error {
        /// In the provider's words.
        kind: String,
        /// What the error says.
        message: String,
    },
}

/// An HTTP failure as a script describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptedFailure {
    /// The HTTP status.
    pub status: u16,
    /// In the provider's words; else what the status means on the wire.
    pub kind: Option<String>,
    /// What the error says; else a text that fits.
    pub message: Option<String>,
    /// Names and values of headers that come with it.
    pub headers: Vec<(String, String)>,
}

impl ScriptStep {
    /// Whether a client has an answer after this step.
    pub(super) fn gives_answer(&self) -> bool {
        matches!(&self.reply, ScriptedReply::Answer(answer) if answer.end == StreamEnding::Complete)
    }
}

impl ScriptedAnswer {
    pub(super) fn stop(&self) -> StopReason {
        let calls = self.says.iter().any(|say| matches!(say, ScriptedPart::Call(_)));
        self.stop.unwrap_or(if calls { StopReason::ToolUse } else { StopReason::EndTurn })
    }
}
