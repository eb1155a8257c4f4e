//! How models are spoken to.
//!
//! A wire is a protocol that servers speak; there are four ([`Wire`]). Reading and writing one is pure. [`Decoder`] takes
//! bytes, in whatever pieces the network gives them, and gives [`ModelEvent`]s; [`Answer`] collects the events of a whole
//! response, in the provider's order. [`Conversation`] turns messages into requests, each message once.

mod answer;
mod conversation;
mod decode;
mod prefix;
mod quirks;
mod request;
mod sse;
mod wire;

pub use answer::{Answer, Block, Call};
pub use conversation::{Conversation, Request};
pub use decode::{Decoder, ModelEvent, StreamError, error_in};
pub use prefix::Break;
pub use quirks::{
    AfterResults, CacheKey, CallIds, EffortField, ForcedChoice, MaxTokensField, Quirks, ThinkingBack,
};
pub use request::{Dialect, Effort, OutputSchema, Prompt, Sees, Thinks, ToolChoice, ToolSpec};
pub use wire::Wire;
