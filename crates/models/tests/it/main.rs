//! Responses as servers send them, whole and in pieces; what is known of models.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod catalogue;
mod recorded;
mod repair;
mod requests;
mod schema;
mod script;
mod speaking;
mod spoken;
mod streams;

use helve_models::{ModelAnswer, ResponseDecoder, StreamError, WireProtocol};

/// What a body says that comes in pieces.
fn decode<'a>(
    wire: WireProtocol,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<ModelAnswer, StreamError> {
    let mut decoder = ResponseDecoder::new(wire);
    let mut answer = ModelAnswer::default();
    for piece in pieces {
        decoder.push(piece)?.into_iter().for_each(|event| answer.apply(event));
    }
    decoder.finish()?.into_iter().for_each(|event| answer.apply(event));
    Ok(answer)
}
