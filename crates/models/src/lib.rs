//! How models are spoken to.
//!
//! A wire is a protocol that servers speak; there are four ([`WireProtocol`]). Reading and writing one is pure. [`ResponseDecoder`] takes
//! bytes, in whatever pieces the network gives them, and gives [`ModelEvent`]s; [`ModelAnswer`] collects the events of a whole
//! response, in the provider's order. [`Conversation`] turns messages into requests, each message once.
//!
//! A vendor is data ([`VENDORS`]); with this user's key and address it is a [`ModelProvider`]. [`ModelRouter`] finds the [`ModelTarget`]
//! that a name means. [`ModelClient`] sends a request to a target until it is answered, and [`Dialogue`] keeps a conversation
//! going, with the next model if one fails. [`ModelCatalogue`] tells what is known of each model, and what its answers cost.

mod answer;
mod catalogue;
mod client;
mod conversation;
mod decode;
mod dialogue;
mod failure;
mod prefix;
mod profile;
mod prompt;
mod provider;
mod quirks;
pub mod repair;
mod retry;
mod router;
pub mod schema;
pub mod script;
mod scripted;
mod secret;
mod sse;
mod surrogates;
mod target;
pub mod text_calls;
mod transport;
mod vendor;
mod wire;

pub use helve_protocol::{KeyPlacement, WireProtocol};

pub use answer::{AnswerBlock, AnswerCall, ModelAnswer};
pub use catalogue::{
    DEFAULT_CONTEXT_TOKENS, DEFAULT_OUTPUT_TOKENS, ModelAbilities, ModelCatalogue, ModelFacts,
    ModelFactsOrigin, ModelOverrides, ModelPrices, PriceTier, TokenRates, per_token,
};
pub use client::{JitterSource, ModelClient, OnStream, StreamEvent};
pub use conversation::{Conversation, ModelRequest, PrefixChange};
pub use decode::{ModelEvent, ResponseDecoder, StreamError, parse_error_body};
pub use dialogue::{ConversationView, Dialogue};
pub use failure::{FailureKind, RequestFailure};
pub use prefix::{PrefixBreak, RequestDifference, first_difference};
pub use profile::EncodingProfile;
pub use prompt::{
    MediaSupport, ModelDialect, ModelPrompt, OutputSchema, ThinkingSupport, ToolChoice, ToolSpec,
};
pub use provider::{KeyOrigin, ModelProvider, ProviderKey};
pub use quirks::{
    AfterToolResults, CacheKeyField, CallIdFormat, EffortField, ForcedChoice, MaxTokensField, OutputOption,
    Quirks, ReturnedThinking, UsageOption,
};
pub use retry::{MAX_JITTER, MAX_REQUEST_TIME, RETRY_BUDGET, RetryDecision, RetryState, RetryStrategy};
pub use router::{
    ModelPreferences, ModelPurpose, ModelRouter, ProviderOverrides, RouteError, StoredKeyLookup,
    VariableLookup,
};
pub use scripted::ScriptedModel;
pub use secret::Secret;
pub use target::{ModelTarget, RecordedAnswers, RecordedModel, TargetRoute};
pub use transport::RequestTimeouts;
pub use vendor::{BaseUrlVariable, ServerLocation, VENDORS, Vendor, VendorModels};
