//! From a request to its response.

use std::sync::atomic::Ordering;
use std::time::Duration;

use helve_models::WireProtocol;
use helve_models::script::{FailureResponse, ScriptFrame, ScriptRequest, failure_response, response_frames};
use serde_json::{Value, json};

use super::ScriptedServerState;
use super::connection::{ClientGone, ConnectionAction, ResponseSender};
use super::fault::{self, InjectedFault};
use super::gate::OpenEventCount;
use super::http::{self, ReceivedRequest};
use crate::strict;

/// Between two bytes of an answer that drips.
const DRIP_INTERVAL: Duration = Duration::from_micros(50);

/// What a request is for.
enum RequestRoute<'a> {
    Models,
    Model { wire: WireProtocol, model_in_url: Option<&'a str> },
}

/// How a request is answered. It is decided when the request is read, so that steps, faults and gates go by the order of
/// the requests and not by which thread is faster.
pub(super) enum ResponsePlan {
    Whole { delay: Duration, bytes: Vec<u8> },
    Stream { frames: Vec<ScriptFrame>, encoding: Option<&'static str>, gate: Option<OpenEventCount> },
    Drip(Vec<u8>),
    Faulty { fault: InjectedFault, wire: WireProtocol, frames: Vec<ScriptFrame> },
}

impl ScriptedServerState {
    /// Decides about the request with this number.
    pub(super) fn plan(&mut self, number: usize, request: &ReceivedRequest) -> ResponsePlan {
        let seed = u64::try_from(number).unwrap_or(u64::MAX);
        if let Some((wire, wrong)) = self.strict.then(|| strict_complaint(request)).flatten() {
            let refusal = whole(Duration::ZERO, &FailureResponse::new(wire, 400, None, &wrong));
            self.refused.push(format!("request {number}: {wrong}"));
            return refusal;
        }
        match self.next_fault() {
            None => self.response(seed, request),
            Some(InjectedFault::Gzip) => match self.response(seed, request) {
                ResponsePlan::Stream { frames, gate, .. } => {
                    ResponsePlan::Stream { frames: fault::gzipped(frames), encoding: Some("gzip"), gate }
                }
                plan => plan,
            },
            Some(InjectedFault::SlowDrip) => dripping(self.response(seed, request)),
            Some(fault) => {
                let (wire, frames) = self.next_answer(seed, request);
                ResponsePlan::Faulty { fault, wire, frames }
            }
        }
    }

    fn response(&mut self, seed: u64, request: &ReceivedRequest) -> ResponsePlan {
        match route(request) {
            Some(RequestRoute::Models) => {
                let kind = [("content-type".to_owned(), "application/json".to_owned())];
                let bytes = http::response(200, &kind, models(&self.models).to_string().as_bytes());
                ResponsePlan::Whole { delay: Duration::ZERO, bytes }
            }
            Some(RequestRoute::Model { wire, model_in_url }) => {
                self.play_next_step(seed, request, wire, model_in_url).unwrap_or_else(|message| {
                    whole(Duration::ZERO, &FailureResponse::new(wire, 400, None, &message))
                })
            }
            None => {
                let message = format!("{} {} is nothing here", request.method, request.path);
                whole(Duration::ZERO, &FailureResponse::new(WireProtocol::Chat, 404, None, &message))
            }
        }
    }

    /// The next step of the script, which is used up by it.
    fn play_next_step(
        &mut self,
        seed: u64,
        request: &ReceivedRequest,
        wire: WireProtocol,
        model: Option<&str>,
    ) -> Result<ResponsePlan, String> {
        let asked = ScriptRequest::read(wire, model, &request.body).map_err(|error| error.to_string())?;
        check_streaming(wire, request, &asked)?;
        let step = self.player.next(&asked).map_err(|none| none.to_string())?;
        if let Some(failure) = failure_response(step, wire) {
            return Ok(whole(step.delay, &failure));
        }
        let frames = response_frames(step, wire, &asked, seed);
        Ok(ResponsePlan::Stream { frames, encoding: None, gate: self.gates.pop_front() })
    }

    /// The answer that a fault spoils: the one that would be next, if there is one. It stays the next.
    fn next_answer(&mut self, seed: u64, request: &ReceivedRequest) -> (WireProtocol, Vec<ScriptFrame>) {
        let Some(RequestRoute::Model { wire, model_in_url }) = route(request) else {
            return (WireProtocol::Chat, Vec::new());
        };
        let Ok(asked) = ScriptRequest::read(wire, model_in_url, &request.body) else {
            return (wire, Vec::new());
        };
        let step = self.player.peek(&asked);
        (wire, step.map(|step| response_frames(step, wire, &asked, seed)).unwrap_or_default())
    }
}

/// The same as bytes, without the waits of the script.
fn dripping(plan: ResponsePlan) -> ResponsePlan {
    match plan {
        ResponsePlan::Whole { bytes, .. } => ResponsePlan::Drip(bytes),
        ResponsePlan::Stream { frames, .. } => {
            let mut bytes = stream_head(None);
            frames.iter().for_each(|frame| bytes.extend(http::chunk(&frame.bytes)));
            bytes.extend_from_slice(http::LAST_CHUNK);
            ResponsePlan::Drip(bytes)
        }
        plan => plan,
    }
}

impl ResponseSender<'_> {
    pub(super) fn answer(
        &self,
        request: &ReceivedRequest,
        plan: ResponsePlan,
    ) -> Result<ConnectionAction, ClientGone> {
        let next = match plan {
            ResponsePlan::Whole { delay, bytes } => {
                self.pause(delay)?;
                self.finish(&bytes)?;
                ConnectionAction::KeepAlive
            }
            ResponsePlan::Stream { frames, encoding, gate } => {
                self.begin(&frames, encoding, gate)?;
                self.finish(http::LAST_CHUNK)?;
                ConnectionAction::KeepAlive
            }
            ResponsePlan::Drip(bytes) => {
                self.drip(&bytes)?;
                ConnectionAction::KeepAlive
            }
            ResponsePlan::Faulty { fault, wire, frames } => fault.play(self, request, wire, frames)?,
        };
        Ok(if next == ConnectionAction::KeepAlive && request.wants_close() {
            ConnectionAction::Close
        } else {
            next
        })
    }

    /// Sends the headers and some events. What is waited for before the first event is waited for before the headers.
    pub(super) fn begin(
        &self,
        frames: &[ScriptFrame],
        encoding: Option<&str>,
        gate: Option<OpenEventCount>,
    ) -> Result<(), ClientGone> {
        self.pause(frames.first().map(|first| first.wait).unwrap_or_default())?;
        self.send(&stream_head(encoding))?;
        for (sent, frame) in frames.iter().enumerate() {
            if sent > 0 {
                self.pause(frame.wait)?;
            }
            if let Some(opened) = &gate {
                self.wait_for(|| opened.load(Ordering::Relaxed) > sent)?;
            }
            self.send(&http::chunk(&frame.bytes))?;
        }
        Ok(())
    }

    /// Sends one byte after the other, headers included.
    fn drip(&self, bytes: &[u8]) -> Result<(), ClientGone> {
        let (last, first) = bytes.split_last().ok_or(ClientGone)?;
        for byte in first {
            self.send(&[*byte])?;
            self.pause(DRIP_INTERVAL)?;
        }
        self.finish(&[*last])
    }
}

pub(super) fn stream_head(encoding: Option<&str>) -> Vec<u8> {
    let mut headers = vec![("content-type", "text/event-stream"), ("transfer-encoding", "chunked")];
    headers.extend(encoding.map(|encoding| ("content-encoding", encoding)));
    http::head(200, &headers)
}

fn whole(delay: Duration, failure: &FailureResponse) -> ResponsePlan {
    ResponsePlan::Whole { delay, bytes: http::response(failure.status, &failure.headers, &failure.body) }
}

/// Whatever stands before the last pieces of a path, it is of this wire.
fn route(request: &ReceivedRequest) -> Option<RequestRoute<'_>> {
    let path = request.path.as_str();
    let model = |wire: WireProtocol| Some(RequestRoute::Model { wire, model_in_url: None });
    match request.method.as_str() {
        "GET" if path.ends_with("/models") => Some(RequestRoute::Models),
        "POST" if path.ends_with("/messages") => model(WireProtocol::Messages),
        "POST" if path.ends_with("/chat/completions") => model(WireProtocol::Chat),
        "POST" if path.ends_with("/responses") => model(WireProtocol::Responses),
        "POST" => {
            let (_, named) = path.rsplit_once("/models/")?;
            let name = named.strip_suffix(":streamGenerateContent")?;
            Some(RequestRoute::Model { wire: WireProtocol::Gemini, model_in_url: Some(name) })
        }
        _ => None,
    }
}

/// What the real server of its wire would have against a request.
fn strict_complaint(request: &ReceivedRequest) -> Option<(WireProtocol, String)> {
    let Some(RequestRoute::Model { wire, .. }) = route(request) else { return None };
    let checked = serde_json::from_slice(&request.body)
        .map_err(|error| format!("the body is no JSON: {error}"))
        .and_then(|body: Value| strict::check(wire, &body));
    checked.err().map(|wrong| (wire, wrong))
}

/// A real server would answer in one piece, which is not what we are here for.
fn check_streaming(
    wire: WireProtocol,
    request: &ReceivedRequest,
    asked: &ScriptRequest,
) -> Result<(), String> {
    let (streams, how) = match wire {
        WireProtocol::Gemini => {
            (request.query.split('&').any(|pair| pair == "alt=sse"), "?alt=sse in the address")
        }
        _ => {
            (asked.body.get("stream").and_then(Value::as_bool) == Some(true), "\"stream\": true in the body")
        }
    };
    if streams { Ok(()) } else { Err(format!("this server only streams: ask with {how}")) }
}

/// One list that the clients of every provider can read.
fn models(names: &[String]) -> Value {
    let data = names.iter().map(|name| {
        json!({
            "id": name, "object": "model", "created": 0, "owned_by": "script",
            "type": "model", "display_name": name, "created_at": "1970-01-01T00:00:00Z",
        })
    });
    let models = names.iter().map(
        |name| json!({"name": format!("models/{name}"), "supportedGenerationMethods": ["generateContent"]}),
    );
    json!({
        "object": "list", "data": data.collect::<Vec<_>>(), "has_more": false,
        "models": models.collect::<Vec<_>>(),
    })
}
