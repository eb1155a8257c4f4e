//! Talks to models: wire protocols, vendors, transport, retry and fallback, facts and prices.
//!
//! A wire is a protocol that servers speak; there are four ([`WireProtocol`]). Reading and writing one is pure. [`ResponseDecoder`] takes
//! bytes, in whatever pieces the network gives them, and gives [`ModelEvent`]s; [`ModelAnswer`] collects the events of a whole
//! response, in the provider's order. [`Conversation`] turns messages into requests, each message once.
//!
//! A vendor is data ([`VENDORS`]); with this user's key and address it is a [`ModelProvider`]. [`ModelRouter`] finds the [`ModelTarget`]
//! that a name means. [`ModelClient`] sends a request to a target until it is answered, and [`Dialogue`] keeps a conversation
//! going, with the next model if one fails. [`ModelCatalogue`] tells what is known of each model, and what its answers cost.
//!
//! A name leads to a model, and the bytes of its response to an answer:
//!
//! ```
//! use helve_models::{ModelAnswer, ModelCatalogue, ModelPreferences, ModelRouter, ResponseDecoder};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Variables and stored keys are looked up by whoever is asked: nothing here reads the environment.
//! let variable = |name: &str| (name == "OPENROUTER_API_KEY").then(|| "sk-or-1234".to_owned());
//! let router =
//!     ModelRouter::new(ModelPreferences::default(), ModelCatalogue::built_in(), &variable, &|_| None);
//! let target = router.find("openrouter/any/model")?;
//! assert_eq!(target.model, "any/model");
//!
//! // As the network gives them: in pieces that end anywhere.
//! let pieces = [
//!     r#"data: {"choices":[{"delta":{"content":"Hel"#,
//!     "lo\"}}]}\n\n",
//!     "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
//! ];
//! let mut decoder = ResponseDecoder::new(target.wire());
//! let mut answer = ModelAnswer::default();
//! for piece in pieces {
//!     decoder.push(piece.as_bytes())?.into_iter().for_each(|event| answer.apply(event));
//! }
//! assert!(decoder.has_ended());
//! assert_eq!(answer.text(), "Hello");
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

mod answer;
mod catalogue;
mod client;
mod conversation;
mod decode;
mod dialogue;
mod failure;
mod model_event;
mod prefix;
mod profile;
mod prompt;
mod provider;
mod quirks;
pub mod repair;
mod retry;
mod route_error;
mod router;
pub mod schema;
pub mod script;
mod scripted;
mod secret;
mod sse;
mod stream_error;
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
pub use decode::{ResponseDecoder, parse_error_body};
pub use dialogue::{ConversationView, Dialogue};
pub use failure::{FailureKind, RequestFailure};
pub use model_event::ModelEvent;
pub use prefix::{PrefixBreak, RequestDifference, first_difference};
pub use profile::EncodingProfile;
pub use prompt::{ModelPrompt, OutputSchema, ToolChoice, ToolSpec};
pub use provider::{KeyOrigin, ModelProvider, ProviderKey};
pub use quirks::{
    AfterToolResults, CacheKeyField, CallIdFormat, EffortField, ForcedChoice, MaxTokensField, OutputOption,
    Quirks, ReturnedThinking, UsageOption,
};
pub use retry::{MAX_JITTER, MAX_REQUEST_TIME, RETRY_BUDGET, RetryDecision, RetryState, RetryStrategy};
pub use route_error::RouteError;
pub use router::{
    ModelPreferences, ModelPurpose, ModelRouter, ProviderOverrides, StoredKeyLookup, VariableLookup,
};
pub use scripted::ScriptedModel;
pub use secret::Secret;
pub use stream_error::StreamError;
pub use target::{ModelTarget, RecordedAnswers, RecordedModel, TargetRoute};
pub use transport::RequestTimeouts;
pub use vendor::{BaseUrlVariable, ServerLocation, VENDORS, Vendor, VendorModels};
pub use wire::dialect::{MediaSupport, ModelDialect, ThinkingSupport};
