//! How models are spoken to.
//!
//! A wire is a protocol that servers speak; there are four ([`Wire`]). Reading and writing one is pure. [`Decoder`] takes
//! bytes, in whatever pieces the network gives them, and gives [`ModelEvent`]s; [`Answer`] collects the events of a whole
//! response, in the provider's order. [`Conversation`] turns messages into requests, each message once.
//!
//! A vendor is data ([`VENDORS`]); with this user's key and address it is a [`Provider`]. [`Router`] finds the [`Target`]
//! that a name means. [`Client`] sends a request to a target until it is answered, and [`Dialogue`] keeps a conversation
//! going, with the next model if one fails. [`Catalogue`] tells what is known of each model, and what its answers cost.

mod answer;
mod catalogue;
mod client;
mod conversation;
mod decode;
mod dialogue;
mod failure;
mod manner;
mod played;
mod prefix;
mod provider;
mod quirks;
pub mod repair;
mod request;
mod retry;
mod router;
pub mod schema;
pub mod script;
mod secret;
pub mod spoken;
mod sse;
mod surrogates;
mod target;
mod transport;
mod vendor;
mod wire;

pub use answer::{Answer, Block, Call};
pub use catalogue::{
    Abilities, Catalogue, ModelFacts, Origin, Overrides, Prices, Rates, SAFE_CONTEXT, SAFE_OUTPUT, Tier,
    per_token,
};
pub use client::{Client, Ear, Heard, Jitter};
pub use conversation::{Change, Conversation, Request};
pub use decode::{Decoder, ModelEvent, StreamError, error_in};
pub use dialogue::{Dialogue, Switch, View};
pub use failure::{Failure, FailureKind};
pub use manner::Manner;
pub use played::Stage;
pub use prefix::{Break, Difference, first_difference};
pub use provider::{Key, KeyOrigin, Provider};
pub use quirks::{
    AfterResults, CacheKey, CallIds, EffortField, ForcedChoice, MaxTokensField, OutputOption, Quirks,
    ThinkingBack, UsageOption,
};
pub use request::{Dialect, OutputSchema, Prompt, Sees, Thinks, ToolChoice, ToolSpec};
pub use retry::{BUDGET, HARD_STOP, JITTER, Patience, Retry, Verdict};
pub use router::{ProviderWish, Purpose, RouteError, Router, StoredKeys, Variables, Wishes};
pub use secret::Secret;
pub use target::{Record, Recorded, Target, Via};
pub use transport::Timeouts;
pub use vendor::{Auth, BaseUrl, Favourites, Place, VENDORS, Vendor};
pub use wire::Wire;
