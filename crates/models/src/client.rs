//! A request sent until it is answered: decoded as it comes, tried again when it fails.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helve_protocol::{Clock, TokenUsage};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::failure::{FailureKind, RequestFailure};
use crate::provider::RequestAddress;
use crate::retry::{RetryDecision, RetryState, RetryStrategy};
use crate::scripted::ScriptedResponse;
use crate::target::{ModelTarget, TargetRoute};
use crate::transport::{HttpTransport, RequestTimeouts, ResponseStream, format_duration, pause};
use crate::{ModelAnswer, ModelEvent, ModelProvider, ModelRequest, ResponseDecoder, StreamError};

/// Speaks with models. One serves the whole program, so that connections are used again.
pub struct ModelClient {
    http: HttpTransport,
    clock: Arc<dyn Clock>,
    jitter: JitterSource,
    patience: RetryStrategy,
    /// How long a server may send nothing but signs of life.
    keep_alive: Duration,
}

/// Draws what is added to a wait.
pub type JitterSource = Box<dyn Fn() -> Duration + Send + Sync>;

/// What is heard while a request is on its way.
#[derive(Debug)]
pub enum StreamEvent<'a> {
    /// The response has begun.
    Started,
    /// The next thing that the model said.
    Received(&'a ModelEvent),
    /// The try failed, and what was said in it does not count. The next one follows after the wait.
    Retrying {
        /// How many tries have failed so far.
        attempt: u32,
        /// How long the wait is.
        delay: Duration,
        /// Why the try failed.
        failure: &'a RequestFailure,
    },
}

/// Hears.
pub type OnStream<'a> = &'a mut (dyn FnMut(StreamEvent<'_>) + Send);

impl ModelClient {
    /// A client that makes its connections when they are first needed. `jitter` draws what is added to each wait before a retry.
    pub fn new(
        clock: Arc<dyn Clock>,
        jitter: JitterSource,
        patience: RetryStrategy,
        timeouts: RequestTimeouts,
    ) -> ModelClient {
        let keep_alive = timeouts.keep_alive.max(timeouts.idle);
        ModelClient { http: HttpTransport::new(timeouts), clock, jitter, patience, keep_alive }
    }

    /// Sends a request until it is answered, or until there is no sense in it.
    pub async fn answer(
        &self,
        target: &ModelTarget,
        request: &ModelRequest,
        ear: OnStream<'_>,
        stop: &CancellationToken,
    ) -> Result<ModelAnswer, RequestFailure> {
        if let TargetRoute::Recorded(record) = &target.via {
            return record.answers.answer(request);
        }
        let mut retry = RetryState::new(self.patience, self.clock.now());
        loop {
            // Whatever the server does, a request does not take for ever.
            let left = retry.left(self.clock.now());
            let attempt = tokio::time::timeout(left, self.attempt(target, request, ear, stop)).await;
            let failure = match attempt {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failure)) => failure,
                Err(_) => {
                    return Err(RequestFailure::new(
                        FailureKind::Timeout,
                        "the answer took longer than anybody waits",
                    ));
                }
            };
            match retry.after(&failure, self.clock.now(), (self.jitter)()) {
                RetryDecision::Wait(delay) => {
                    ear(StreamEvent::Retrying { attempt: retry.tries(), delay, failure: &failure });
                    pause(delay, stop).await?;
                }
                RetryDecision::TooLong { resets } => {
                    let wait = Duration::from_millis(resets.millis_since(self.clock.now()));
                    let text =
                        format!("{}; it can be tried again in {}", failure.text, format_duration(wait));
                    return Err(RequestFailure { resets: Some(resets), text, ..failure });
                }
                RetryDecision::GiveUp => return Err(failure),
            }
        }
    }

    async fn attempt(
        &self,
        target: &ModelTarget,
        request: &ModelRequest,
        ear: OnStream<'_>,
        stop: &CancellationToken,
    ) -> Result<ModelAnswer, RequestFailure> {
        let now = self.clock.now();
        let decoder = ResponseDecoder::new(target.wire());
        match &target.via {
            TargetRoute::Script(stage) => {
                let played = stage.post(&request.body, now, stop).await?;
                ear(StreamEvent::Started);
                let incoming = IncomingResponse::Script(played);
                self.read(incoming, decoder, ear, stop).await
            }
            TargetRoute::Recorded(record) => record.answers.answer(request),
            TargetRoute::Provider(provider) => {
                let address = provider.address(&target.model);
                // Servers like to repeat what they were shown.
                let scrubbed = |failure: RequestFailure| RequestFailure {
                    text: address.scrub(&failure.text),
                    ..failure
                };
                let response = self.http.post(&address, request.body.clone(), now, stop).await;
                let response = response.map_err(scrubbed)?;
                ear(StreamEvent::Started);
                let incoming = IncomingResponse::Http { response, address: &address };
                self.read(incoming, decoder, ear, stop).await.map_err(scrubbed)
            }
        }
    }

    /// Reads a response to its end.
    async fn read(
        &self,
        mut incoming: IncomingResponse<'_>,
        mut decoder: ResponseDecoder,
        ear: OnStream<'_>,
        stop: &CancellationToken,
    ) -> Result<ModelAnswer, RequestFailure> {
        let mut answer = ModelAnswer::default();
        let broken = |error: &StreamError, spent: TokenUsage| RequestFailure {
            spent,
            ..RequestFailure::from_stream_error(error)
        };
        let mut last_word = Instant::now();
        let mut has_begun = false;
        loop {
            match incoming.piece(stop).await {
                Ok(Some(piece)) => {
                    let said = decoder.push(&piece).map_err(|error| broken(&error, answer.usage))?;
                    // Some servers tell the counts with every sign of life. Only the first time do they begin the answer.
                    let is_beginning = !said.is_empty() && !std::mem::replace(&mut has_begun, true);
                    if is_beginning || said.iter().any(is_progress) {
                        last_word = Instant::now();
                    } else if last_word.elapsed() > self.keep_alive {
                        let text = format!(
                            "the server sent signs of life, but no word for {}",
                            format_duration(self.keep_alive)
                        );
                        return Err(RequestFailure {
                            spent: answer.usage,
                            ..RequestFailure::new(FailureKind::Timeout, text)
                        });
                    }
                    deliver_events(said, &mut answer, ear);
                    if decoder.has_ended() {
                        incoming.end().await;
                        return Ok(answer);
                    }
                }
                Ok(None) => {
                    let said = decoder.finish().map_err(|error| broken(&error, answer.usage))?;
                    deliver_events(said, &mut answer, ear);
                    return Ok(answer);
                }
                // Everything was told; that the server does not hang up properly is no reason to ask again.
                Err(failure) if is_connection_loss(failure.kind) && decoder.may_end() => return Ok(answer),
                Err(failure) => return Err(RequestFailure { spent: answer.usage, ..failure }),
            }
        }
    }

    /// The models that a server says it has.
    pub async fn models_of(
        &self,
        provider: &ModelProvider,
        limit: Duration,
    ) -> Result<Vec<String>, RequestFailure> {
        let address = provider.models_address();
        let body = self.http.get(&address, limit).await;
        let body =
            body.map_err(|failure| RequestFailure { text: address.scrub(&failure.text), ..failure })?;
        let list: Value = serde_json::from_slice(&body)
            .map_err(|_| RequestFailure::new(FailureKind::NotAModel, "the list of models is no JSON"))?;
        let models = list.get("data").or_else(|| list.get("models")).and_then(Value::as_array);
        let name = |model: &Value| {
            let name = model.get("id").or_else(|| model.get("name")).and_then(Value::as_str)?;
            Some(name.strip_prefix("models/").unwrap_or(name).to_owned())
        };
        Ok(models.into_iter().flatten().filter_map(name).collect())
    }
}

/// A response that has begun.
enum IncomingResponse<'a> {
    Http { response: ResponseStream, address: &'a RequestAddress },
    Script(ScriptedResponse),
}

impl IncomingResponse<'_> {
    async fn piece(&mut self, stop: &CancellationToken) -> Result<Option<Bytes>, RequestFailure> {
        match self {
            IncomingResponse::Http { response, address } => response.piece(address, stop).await,
            IncomingResponse::Script(played) => played.piece(stop).await,
        }
    }

    async fn end(self) {
        match self {
            IncomingResponse::Http { response, .. } => response.end().await,
            IncomingResponse::Script(_) => {}
        }
    }
}

/// Whether the answer gets further by it.
fn is_progress(event: &ModelEvent) -> bool {
    !matches!(event, ModelEvent::Usage(_))
}

fn is_connection_loss(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Timeout | FailureKind::Network)
}

/// Takes what is said, and tells it on.
fn deliver_events(said: Vec<ModelEvent>, answer: &mut ModelAnswer, ear: OnStream<'_>) {
    for event in said {
        ear(StreamEvent::Received(&event));
        answer.apply(event);
    }
}

impl fmt::Debug for ModelClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("patience", &self.patience).finish_non_exhaustive()
    }
}
