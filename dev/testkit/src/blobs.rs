//! Blobs for conversations without files.

use helve_protocol::{BlobError, BlobId, Blobs};

/// Keeps nothing and has nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoBlobs;

impl Blobs for NoBlobs {
    fn put(&self, _: &[u8]) -> Result<BlobId, BlobError> {
        Err(BlobError("nothing is kept here".into()))
    }

    fn get(&self, _: BlobId) -> Result<Vec<u8>, BlobError> {
        Err(BlobError("nothing is kept here".into()))
    }
}
