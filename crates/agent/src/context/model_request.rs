//! One request to a model: written down, sent, heard as it streams, and recorded.

use helve_models::{Dialogue, ModelAnswer, ModelRequest, RequestFailure, StreamEvent};
use helve_protocol::{BlobId, CallId, MessageId, StepStarted, TokenUsage};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::stream_recorder::StreamRecorder;
use crate::recorder::{Recorder, SessionError};

/// The step that a request belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepRequest {
    /// The message that the answer becomes.
    pub(crate) message: MessageId,
    /// Counted from 1 in the turn.
    pub(crate) number: u32,
}

/// What came of a request.
pub(crate) struct RequestResult {
    pub(crate) answer: Result<ModelAnswer, RequestFailure>,
    /// The ids of the calls in the answer, as they were announced.
    pub(crate) call_ids: Vec<CallId>,
    /// What tries took that came to nothing.
    pub(crate) lost: TokenUsage,
}

/// Asks the model for the next step of the conversation. The request is on record before it leaves, and what comes back is told as it
/// comes. Which model, and with which prompt, is the dialogue's business.
pub(crate) async fn ask_model(
    dialogue: &mut Dialogue,
    step: StepRequest,
    record: &Recorder,
    stop: &CancellationToken,
) -> Result<RequestResult, SessionError> {
    let request = write_down(dialogue, step, record)?;
    let mut recorder = StreamRecorder::new(record);
    let target = dialogue.target();
    let span = tracing::debug_span!(
        "chat",
        "gen_ai.operation.name" = "chat",
        "gen_ai.provider.name" = target.name.as_str().split('/').next(),
        "gen_ai.request.model" = target.model,
        "gen_ai.conversation.id" = %record.session(),
        "gen_ai.usage.input_tokens" = tracing::field::Empty,
        "gen_ai.usage.output_tokens" = tracing::field::Empty,
        "error.type" = tracing::field::Empty,
    );
    let mut on_stream = |event: StreamEvent<'_>| recorder.hear(&event);
    let answer = dialogue.send(&request, &mut on_stream, stop).instrument(span.clone()).await;
    match &answer {
        Ok(answer) => {
            span.record("gen_ai.usage.input_tokens", answer.usage.context());
            span.record("gen_ai.usage.output_tokens", answer.usage.output);
        }
        Err(failure) => drop(span.record("error.type", format!("{:?}", failure.kind))),
    }
    let (call_ids, lost) = recorder.end()?;
    Ok(RequestResult { answer, call_ids, lost })
}

/// Writes a request down, before it leaves.
fn write_down(
    dialogue: &mut Dialogue,
    step: StepRequest,
    record: &Recorder,
) -> Result<ModelRequest, SessionError> {
    let blobs = record.blobs();
    let request = record.state(|state| dialogue.prepare(&state.history, &*blobs));
    if let Some(broken) = &request.broken {
        tracing::warn!(name: "request.broken", path = broken.path, tokens = broken.tokens);
    }
    let stored = request.segments.iter().map(|segment| blobs.put_unsynced(segment));
    let mut segments: Vec<BlobId> = stored.collect::<Result<_, _>>()?;
    // A new process begins with nothing in hand, but what it sends may be what was sent before.
    let mut kept = request.kept;
    if kept == 0 {
        kept = record.state(|state| shared_prefix_len(&state.request, &segments));
        segments.drain(..kept);
    }
    record.set_step(Some(record.draw()));
    record.emit(StepStarted {
        message: step.message,
        request: record.draw(),
        model: dialogue.target().name.clone(),
        number: step.number,
        kept: kept as u64,
        segments,
        marks: request.marks.iter().map(|mark| *mark as u64).collect(),
    })?;
    Ok(request)
}

/// How many segments two requests begin with in common.
fn shared_prefix_len(sent: &[BlobId], now: &[BlobId]) -> usize {
    sent.iter().zip(now).take_while(|(sent, now)| sent == now).count()
}
