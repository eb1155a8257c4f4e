//! How requests to one model are written.

use helve_protocol::ModelName;

use super::WireProtocol;
use crate::quirks::Quirks;

/// How one model is written to: its wire, its vendor's peculiarities, and what it can take.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelDialect {
    pub wire: WireProtocol,
    pub quirks: Quirks,
    /// As we call it: `provider/model`.
    pub name: ModelName,
    /// As its server calls it.
    pub model: String,
    pub images: MediaSupport,
    pub documents: MediaSupport,
    pub thinking: ThinkingSupport,
    /// The most tokens that it can answer with.
    pub output: Option<u64>,
}

/// Whether a model can look at something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaSupport {
    Yes,
    No,
}

/// Whether a model can think before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkingSupport {
    Yes,
    No,
}
