//! The small ways in which servers of one wire differ. A vendor is data: these are its fields.

use serde::{Deserialize, Serialize};

/// What is peculiar about a server. Each field names one difference; the default is what the wire's inventor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quirks {
    /// How thinking of earlier steps goes back.
    pub thinking_back: ReturnedThinking,
    /// How it is told how much to think.
    pub effort: EffortField,
    /// How it is told how long an answer may be.
    pub max_tokens: MaxTokensField,
    /// How it is told that a tool must be called.
    pub forced_choice: ForcedChoice,
    /// What the id of a call may look like.
    pub call_ids: CallIdFormat,
    /// What may stand after the results of calls.
    pub after_results: AfterToolResults,
    /// How it is told which requests begin alike.
    pub cache_key: CacheKeyField,
    /// Whether it must be asked for the counts of tokens.
    pub usage: UsageOption,
    /// How it is told that the answer must be JSON.
    pub output: OutputOption,
}

impl Quirks {
    /// What most servers do that speak OpenAI Chat Completions.
    pub const PLAIN: Quirks = Quirks {
        thinking_back: ReturnedThinking::Never,
        effort: EffortField::None,
        max_tokens: MaxTokensField::MaxTokens,
        forced_choice: ForcedChoice::Required,
        call_ids: CallIdFormat::Any,
        after_results: AfterToolResults::Anything,
        cache_key: CacheKeyField::None,
        usage: UsageOption::Asked,
        output: OutputOption::JsonSchema,
    };
}

/// How thinking of earlier steps goes back on the chat wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReturnedThinking {
    /// It does not go back.
    Never,
    /// In `reasoning_content`, with messages that call tools: the model goes on with the thought.
    ReasoningContent,
    /// In `reasoning_details`, item by item.
    Details,
}

/// How a chat server is told how much to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffortField {
    /// It can't be told.
    None,
    /// `reasoning_effort: "low"`
    ReasoningEffort,
    /// `thinking: {type: "enabled"}`
    Thinking,
    /// `enable_thinking: true`
    EnableThinking,
    /// `reasoning: {effort: "low"}`
    Reasoning,
}

/// The field that says how many tokens an answer may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    /// `max_tokens`
    MaxTokens,
    /// `max_completion_tokens`
    MaxCompletionTokens,
}

/// The word that makes a model call some tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForcedChoice {
    /// `required`
    Required,
    /// `any`
    Any,
}

/// What a call's id may look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallIdFormat {
    /// It does not matter.
    Any,
    /// Nine letters and digits.
    NineAlphanumeric,
}

/// What may stand after the results of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterToolResults {
    /// A message of anybody.
    Anything,
    /// The model must speak before the user does.
    TheModel,
}

/// How a server is told which requests begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheKeyField {
    /// It finds out by itself.
    None,
    /// `prompt_cache_key`
    PromptCacheKey,
    /// `cache_control` for the whole request, with Anthropic's models.
    CacheControl,
}

/// Whether a chat server tells what an answer took only if it is asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageOption {
    /// `stream_options: {include_usage: true}`
    Asked,
    /// It tells it anyway, and refuses the option.
    Unasked,
}

/// How a chat server is told that the answer must be JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputOption {
    /// With its schema.
    JsonSchema,
    /// Without: the schema must stand in the prompt.
    JsonObject,
}
