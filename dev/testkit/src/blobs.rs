//! Blobs for conversations without files.

use helve_protocol::{BlobError, BlobId, BlobStore};

/// Keeps nothing and has nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoBlobs;

impl BlobStore for NoBlobs {
    fn put(&self, _: &[u8]) -> Result<BlobId, BlobError> {
        Err(BlobError("nothing is kept here".into()))
    }

    fn get(&self, _: BlobId) -> Result<Vec<u8>, BlobError> {
        Err(BlobError("nothing is kept here".into()))
    }
}
