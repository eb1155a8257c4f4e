//! How models are spoken to.
//!
//! A wire is a protocol that servers speak; there are four ([`Wire`]). Reading one is pure: bytes go in, in whatever
//! pieces the network gives them, and [`ModelEvent`]s come out. [`Decoder`] does that for all four; [`Answer`] collects
//! the events of a whole response, in the provider's order.

mod answer;
mod decode;
mod request;
mod sse;
mod wire;

pub use answer::{Answer, Block, Call};
pub use decode::{Decoder, ModelEvent, StreamError, error_in};
pub use request::ToolSpec;
pub use wire::Wire;
