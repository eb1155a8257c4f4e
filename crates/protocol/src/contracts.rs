//! The few contracts that cross crates. Only the program knows the real clock and the real source of ids;
//! everything below it takes these, so that tests are hermetic and every run can be replayed.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{BlobId, IdKind};

/// A moment, in milliseconds since 1970-01-01 UTC.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    pub const fn from_millis(millis: u64) -> Timestamp {
        Timestamp(millis)
    }

    pub const fn millis(self) -> u64 {
        self.0
    }

    /// How many milliseconds later this is than `earlier`; zero if it is not later.
    pub fn millis_since(self, earlier: Timestamp) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Tells the time.
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
}

/// Draws ids. Each is new, and later ones sort after earlier ones.
pub trait IdSource: Send + Sync {
    fn draw(&self, what: IdKind) -> Uuid;
}

/// Keeps payloads that are too large for an event, by the hash of their content.
pub trait BlobStore: Send + Sync {
    /// On return the content is safe on disk, so that an event may name it.
    fn put(&self, content: &[u8]) -> Result<BlobId, BlobError>;
    /// On return an event may name the content. It survives the end of the process, and the end of the machine as soon as an
    /// event that needs a sync is acknowledged. Where nothing is cheaper, it is safe at once.
    fn put_unsynced(&self, content: &[u8]) -> Result<BlobId, BlobError> {
        self.put(content)
    }
    /// On return all that was put soon is safe on disk.
    fn sync(&self) -> Result<(), BlobError> {
        Ok(())
    }
    /// The content, checked against its hash.
    fn get(&self, id: BlobId) -> Result<Vec<u8>, BlobError>;
}

/// Why a blob could not be kept or had. The text is for people; the cause says the rest.
#[derive(Debug)]
pub struct BlobError(pub Box<dyn std::error::Error + Send + Sync>);

impl fmt::Display for BlobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for BlobError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}
