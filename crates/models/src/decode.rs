//! From bytes to what the model says.

use std::collections::HashSet;

use crate::WireProtocol;
use crate::model_event::ModelEvent;
use crate::sse::{EventStreamParser, StreamRemainder};
use crate::stream_error::{MAX_ANSWER_BLOCKS, MAX_ANSWER_BYTES, StreamError};
use crate::surrogates::SurrogateJoiner;
use crate::wire::{AnswerProgress, WireDecoder, WireFormat, error_of};

/// Reads one response.
#[derive(Debug)]
pub struct ResponseDecoder {
    events: EventStreamParser,
    wire: WireDecoder,
    progress: AnswerProgress,
    /// What came before the first event: an error may come instead of a stream.
    opening: Vec<u8>,
    call_ids: HashSet<String>,
    /// The size of what was said, written as JSON.
    bytes: usize,
    joiner: SurrogateJoiner,
}

/// So much is kept of what may turn out to be no stream.
const MAX_OPENING_BYTES: usize = 64 << 10;

impl ResponseDecoder {
    /// A decoder for the next response of a server that speaks this wire.
    pub fn new(wire: WireProtocol) -> ResponseDecoder {
        let (events, wire) = (EventStreamParser::default(), wire.decoder());
        ResponseDecoder {
            events,
            wire,
            progress: AnswerProgress::Incomplete,
            opening: Vec::new(),
            call_ids: HashSet::new(),
            bytes: 0,
            joiner: SurrogateJoiner::default(),
        }
    }

    /// Takes the next bytes, and gives what they say.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<ModelEvent>, StreamError> {
        let mut said = Vec::new();
        let room = MAX_OPENING_BYTES.saturating_sub(self.opening.len());
        self.opening.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
        let ResponseDecoder { events, wire, progress, .. } = self;
        events.push(bytes, &mut |data| read(wire, progress, data, &mut said))?;
        self.checked(said)
    }

    /// What was said, unless no answer says that: too many parts, or one call twice.
    fn checked(&mut self, said: Vec<ModelEvent>) -> Result<Vec<ModelEvent>, StreamError> {
        for event in &said {
            self.bytes = self.bytes.saturating_add(event.json_bytes());
            if self.bytes > MAX_ANSWER_BYTES || event.block().is_some_and(|block| block >= MAX_ANSWER_BLOCKS)
            {
                return Err(StreamError::TooLarge);
            }
            if let ModelEvent::CallStarted { id: Some(id), .. } = event
                && !id.is_empty()
                && !self.call_ids.insert(id.clone())
            {
                return Err(StreamError::Restarted("two calls have the same id"));
            }
        }
        let mut said = self.joiner.join(said);
        if self.has_ended() {
            said.extend(self.joiner.finish());
        }
        Ok(said)
    }

    /// Whether the server said that this is all.
    pub fn has_ended(&self) -> bool {
        self.progress == AnswerProgress::Ended
    }

    /// Whether everything was told, though the server did not say so.
    pub fn may_end(&self) -> bool {
        self.progress != AnswerProgress::Incomplete
    }

    /// To be called when the server has closed the stream. Gives what the last bytes say; it is an error if the answer is
    /// not whole.
    pub fn finish(mut self) -> Result<Vec<ModelEvent>, StreamError> {
        let mut said = Vec::new();
        let ResponseDecoder { events, wire, progress, .. } = &mut self;
        if *progress != AnswerProgress::Ended {
            // A last event may lack the empty line after it. One that is cut off can't be read.
            let left = events.finish(&mut |data| read(wire, progress, data, &mut said));
            let left = left.map_err(|error| match error {
                StreamError::NotJson(_) | StreamError::NotText => StreamError::CutOff,
                told => told,
            })?;
            if left == StreamRemainder::Fragment {
                return Err(self.no_answer());
            }
        }
        if self.progress == AnswerProgress::Incomplete {
            return Err(self.no_answer());
        }
        let mut said = self.checked(said)?;
        said.extend(self.joiner.finish());
        Ok(said)
    }

    /// Why there is no answer: it was cut off, or something else came in its place.
    fn no_answer(&self) -> StreamError {
        let opening = String::from_utf8_lossy(&self.opening);
        let opening = opening.trim_start();
        match opening.chars().next() {
            Some('{' | '[') => parse_error_body(opening).unwrap_or_else(|| not_a_stream(opening)),
            Some('<') => not_a_stream(opening),
            _ => StreamError::CutOff,
        }
    }
}

/// Whatever comes after the end is not part of the answer.
fn read(
    wire: &mut WireDecoder,
    progress: &mut AnswerProgress,
    data: &str,
    said: &mut Vec<ModelEvent>,
) -> Result<(), StreamError> {
    if *progress != AnswerProgress::Ended {
        *progress = wire.read(data, said)?.max(*progress);
    }
    Ok(())
}

/// What the body of a response says that is no stream: the error that it tells of.
pub fn parse_error_body(body: &str) -> Option<StreamError> {
    error_of(&serde_json::from_str(body).ok()?)
}

fn not_a_stream(opening: &str) -> StreamError {
    StreamError::NotAStream(opening.chars().take(60).collect())
}
