//! A request sent until it is answered: decoded as it comes, tried again when it fails.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helve_protocol::{Clock, Usage};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::failure::{Failure, FailureKind};
use crate::played::Played;
use crate::provider::Address;
use crate::retry::{Patience, Retry, Verdict};
use crate::target::{Target, Via};
use crate::transport::{Http, Response, Timeouts, humane, pause};
use crate::{Answer, Decoder, ModelEvent, Provider, Request, StreamError};

/// Speaks with models. One serves the whole program, so that connections are used again.
pub struct Client {
    http: Http,
    clock: Arc<dyn Clock>,
    jitter: Jitter,
    patience: Patience,
    /// How long a server may send nothing but signs of life.
    keep_alive: Duration,
}

/// Draws what is added to a wait.
pub type Jitter = Box<dyn Fn() -> Duration + Send + Sync>;

/// What is heard while a request is on its way.
#[derive(Debug)]
pub enum Heard<'a> {
    /// The response has begun.
    Began,
    Said(&'a ModelEvent),
    /// The try failed, and what was said in it does not count. The next one follows after the wait.
    Waiting {
        attempt: u32,
        delay: Duration,
        failure: &'a Failure,
    },
}

/// Hears.
pub type Ear<'a> = &'a mut (dyn FnMut(Heard<'_>) + Send);

impl Client {
    pub fn new(clock: Arc<dyn Clock>, jitter: Jitter, patience: Patience, timeouts: Timeouts) -> Client {
        let keep_alive = timeouts.keep_alive.max(timeouts.idle);
        Client { http: Http::new(timeouts), clock, jitter, patience, keep_alive }
    }

    /// Sends a request until it is answered, or until there is no sense in it.
    pub async fn answer(
        &self,
        target: &Target,
        request: &Request,
        ear: Ear<'_>,
        stop: &CancellationToken,
    ) -> Result<Answer, Failure> {
        if let Via::Recorded(record) = &target.via {
            return record.answers.answer(request);
        }
        let mut retry = Retry::new(self.patience, self.clock.now());
        loop {
            // Whatever the server does, a request does not take for ever.
            let left = retry.left(self.clock.now());
            let attempt = tokio::time::timeout(left, self.attempt(target, request, ear, stop)).await;
            let failure = match attempt {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failure)) => failure,
                Err(_) => {
                    return Err(Failure::new(
                        FailureKind::Timeout,
                        "the answer took longer than anybody waits",
                    ));
                }
            };
            match retry.after(&failure, self.clock.now(), (self.jitter)()) {
                Verdict::Wait(delay) => {
                    ear(Heard::Waiting { attempt: retry.tries(), delay, failure: &failure });
                    pause(delay, stop).await?;
                }
                Verdict::TooLong { resets } => {
                    let wait = Duration::from_millis(resets.millis_since(self.clock.now()));
                    let text = format!("{}; it can be tried again in {}", failure.text, humane(wait));
                    return Err(Failure { resets: Some(resets), text, ..failure });
                }
                Verdict::GiveUp => return Err(failure),
            }
        }
    }

    async fn attempt(
        &self,
        target: &Target,
        request: &Request,
        ear: Ear<'_>,
        stop: &CancellationToken,
    ) -> Result<Answer, Failure> {
        let now = self.clock.now();
        let decoder = Decoder::new(target.wire());
        match &target.via {
            Via::Script(stage) => {
                let played = stage.post(&request.body, now, stop).await?;
                ear(Heard::Began);
                let incoming = Incoming::Script(played);
                self.read(incoming, decoder, ear, stop).await
            }
            Via::Recorded(record) => record.answers.answer(request),
            Via::Provider(provider) => {
                let address = provider.address(&target.model);
                // Servers like to repeat what they were shown.
                let scrubbed = |failure: Failure| Failure { text: address.scrub(&failure.text), ..failure };
                let response = self.http.post(&address, request.body.clone(), now, stop).await;
                let response = response.map_err(scrubbed)?;
                ear(Heard::Began);
                let incoming = Incoming::Http { response, address: &address };
                self.read(incoming, decoder, ear, stop).await.map_err(scrubbed)
            }
        }
    }

    /// Reads a response to its end.
    async fn read(
        &self,
        mut incoming: Incoming<'_>,
        mut decoder: Decoder,
        ear: Ear<'_>,
        stop: &CancellationToken,
    ) -> Result<Answer, Failure> {
        let mut answer = Answer::default();
        let broken = |error: &StreamError, spent: Usage| Failure { spent, ..Failure::of_stream(error) };
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
                            humane(self.keep_alive)
                        );
                        return Err(Failure {
                            spent: answer.usage,
                            ..Failure::new(FailureKind::Timeout, text)
                        });
                    }
                    take(said, &mut answer, ear);
                    if decoder.has_ended() {
                        incoming.end().await;
                        return Ok(answer);
                    }
                }
                Ok(None) => {
                    let said = decoder.finish().map_err(|error| broken(&error, answer.usage))?;
                    take(said, &mut answer, ear);
                    return Ok(answer);
                }
                // Everything was told; that the server does not hang up properly is no reason to ask again.
                Err(failure) if ends_without_a_word(failure.kind) && decoder.may_end() => return Ok(answer),
                Err(failure) => return Err(Failure { spent: answer.usage, ..failure }),
            }
        }
    }

    /// The models that a server says it has.
    pub async fn models_of(&self, provider: &Provider, limit: Duration) -> Result<Vec<String>, Failure> {
        let address = provider.models_address();
        let body = self.http.get(&address, limit).await;
        let body = body.map_err(|failure| Failure { text: address.scrub(&failure.text), ..failure })?;
        let list: Value = serde_json::from_slice(&body)
            .map_err(|_| Failure::new(FailureKind::NotAModel, "the list of models is no JSON"))?;
        let models = list.get("data").or_else(|| list.get("models")).and_then(Value::as_array);
        let name = |model: &Value| {
            let name = model.get("id").or_else(|| model.get("name")).and_then(Value::as_str)?;
            Some(name.strip_prefix("models/").unwrap_or(name).to_owned())
        };
        Ok(models.into_iter().flatten().filter_map(name).collect())
    }
}

/// A response that has begun.
enum Incoming<'a> {
    Http { response: Response, address: &'a Address },
    Script(Played),
}

impl Incoming<'_> {
    async fn piece(&mut self, stop: &CancellationToken) -> Result<Option<Bytes>, Failure> {
        match self {
            Incoming::Http { response, address } => response.piece(address, stop).await,
            Incoming::Script(played) => played.piece(stop).await,
        }
    }

    async fn end(self) {
        match self {
            Incoming::Http { response, .. } => response.end().await,
            Incoming::Script(_) => {}
        }
    }
}

/// Whether the answer gets further by it.
fn is_progress(event: &ModelEvent) -> bool {
    !matches!(event, ModelEvent::Usage(_))
}

fn ends_without_a_word(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Timeout | FailureKind::Network)
}

/// Takes what is said, and tells it on.
fn take(said: Vec<ModelEvent>, answer: &mut Answer, ear: Ear<'_>) {
    for event in said {
        ear(Heard::Said(&event));
        answer.apply(event);
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("patience", &self.patience).finish_non_exhaustive()
    }
}
