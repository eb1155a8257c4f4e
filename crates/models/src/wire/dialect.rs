//! How requests to one model are written.

use helve_protocol::ModelName;

use super::WireProtocol;
use crate::quirks::Quirks;

/// How one model is written to: its wire, its vendor's peculiarities, and what it can take.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelDialect {
    /// The protocol that its server speaks.
    pub wire: WireProtocol,
    /// What is peculiar about its server.
    pub quirks: Quirks,
    /// As we call it: `provider/model`.
    pub name: ModelName,
    /// As its server calls it.
    pub model: String,
    /// Whether it can look at images.
    pub images: MediaSupport,
    /// Whether it can read PDF documents.
    pub documents: MediaSupport,
    /// Whether it can think before it answers.
    pub thinking: ThinkingSupport,
    /// The most tokens that it can answer with.
    pub output: Option<u64>,
}

/// Whether a model can look at something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaSupport {
    /// It can.
    Yes,
    /// It can't: it is told that something is there.
    No,
}

/// Whether a model can think before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkingSupport {
    /// It can.
    Yes,
    /// It can't.
    No,
}
