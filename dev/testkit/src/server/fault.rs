//! What goes wrong between a client and a server.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use helve_models::WireProtocol;
use helve_models::script::{
    FailureResponse, ScriptFrame, ScriptRequest, ScriptStep, ScriptedAnswer, ScriptedPart, ScriptedReply,
    StepCondition, StreamEnding, response_frames,
};

use super::answer::stream_head;
use super::connection::{ClientGone, ConnectionAction, ResponseSender};
use super::http::{self, ReceivedRequest};

/// One way in which a request can go wrong. Those that begin an answer begin the one that the script has next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    /// The request is read, and nothing ever comes.
    Hang,
    HangAfterHeaders,
    HangMidStream,
    /// The connection is reset before any byte.
    ResetBefore,
    ResetMid,
    /// The connection is closed in the middle of the body, which HTTP can tell from its end.
    CloseMid,
    /// The body ends, well as HTTP sees it, in the middle of an event.
    CutMidEvent,
    /// The body ends in the middle of a character.
    CutMidUtf8,
    /// The body ends between two events, before the one that would end the answer.
    CutBetweenEvents,
    /// A stream of bytes that mean nothing.
    Garbage,
    /// An event that is no JSON.
    GarbageJson,
    /// Another status. Without a body, the error is in the words of the wire.
    Status {
        code: u16,
        headers: Vec<(String, String)>,
        body: Option<String>,
    },
    /// A web page.
    WrongContentType,
    /// One event of so many bytes, and nothing after it.
    HugeEvent(usize),
    /// A megabyte of headers.
    HugeHeaders,
    /// The whole answer, one byte at a time.
    SlowDrip,
    /// The whole answer, compressed.
    Gzip,
    /// A stream without a byte.
    EmptyBody,
    /// To a server on another port, which counts who comes: `Server::followed`.
    Redirect,
}

impl InjectedFault {
    /// One of each, by name.
    pub fn all() -> Vec<(&'static str, InjectedFault)> {
        let status = |code: u16| InjectedFault::Status { code, headers: Vec::new(), body: None };
        let wait = vec![("retry-after".to_owned(), "0".to_owned())];
        vec![
            ("hang", InjectedFault::Hang),
            ("hang after headers", InjectedFault::HangAfterHeaders),
            ("hang mid-stream", InjectedFault::HangMidStream),
            ("reset before", InjectedFault::ResetBefore),
            ("reset mid-stream", InjectedFault::ResetMid),
            ("close mid-stream", InjectedFault::CloseMid),
            ("cut mid-event", InjectedFault::CutMidEvent),
            ("cut mid-character", InjectedFault::CutMidUtf8),
            ("cut between events", InjectedFault::CutBetweenEvents),
            ("garbage", InjectedFault::Garbage),
            ("garbage instead of JSON", InjectedFault::GarbageJson),
            ("status 401", status(401)),
            ("status 403", status(403)),
            ("status 429", InjectedFault::Status { code: 429, headers: wait, body: None }),
            ("status 500", status(500)),
            ("status 503", status(503)),
            ("status 529", status(529)),
            ("wrong content type", InjectedFault::WrongContentType),
            ("huge event", InjectedFault::HugeEvent(40 << 20)),
            ("huge headers", InjectedFault::HugeHeaders),
            ("slow drip", InjectedFault::SlowDrip),
            ("gzip", InjectedFault::Gzip),
            ("empty body", InjectedFault::EmptyBody),
            ("redirect", InjectedFault::Redirect),
        ]
    }

    /// Whether the answer is whole all the same, so that a client must have it.
    pub fn leaves_answer_whole(&self) -> bool {
        matches!(self, InjectedFault::SlowDrip | InjectedFault::Gzip)
    }

    /// Does what it says to an answer.
    pub(super) fn play(
        &self,
        line: &ResponseSender<'_>,
        request: &ReceivedRequest,
        wire: WireProtocol,
        frames: Vec<ScriptFrame>,
    ) -> Result<ConnectionAction, ClientGone> {
        let frames = if self.can_spoil(&frames) { frames } else { sample(wire) };
        let (first, rest) = frames.split_at(frames.len() / 2);
        match self {
            InjectedFault::Hang => line.hang(),
            InjectedFault::HangAfterHeaders => {
                line.send(&stream_head(None))?;
                line.hang()
            }
            InjectedFault::HangMidStream => {
                line.begin(first, None, None)?;
                line.hang()
            }
            InjectedFault::ResetBefore => Ok(ConnectionAction::Reset),
            InjectedFault::ResetMid => {
                line.begin(first, None, None)?;
                Ok(ConnectionAction::Reset)
            }
            InjectedFault::CloseMid => {
                line.begin(first, None, None)?;
                Ok(ConnectionAction::Close)
            }
            InjectedFault::CutMidEvent => {
                let event = rest.first().map(|frame| frame.bytes.as_slice()).unwrap_or_default();
                let (half, _) = event.split_at(event.len() / 2);
                cut(line, first, half)
            }
            InjectedFault::CutMidUtf8 => cut_in_character(line, &frames),
            InjectedFault::CutBetweenEvents => cut(line, first, &[]),
            InjectedFault::Garbage => cut(line, &[], &noise()),
            InjectedFault::GarbageJson => cut(line, &[], b"data: {not json\n\n"),
            InjectedFault::Status { code, headers, body } => {
                let mut failure = FailureResponse::new(wire, *code, None, "The test wants it so.");
                failure.headers.extend(headers.iter().cloned());
                let body = body.as_ref().map_or(failure.body, |body| body.clone().into_bytes());
                send(line, *code, &failure.headers, &body)
            }
            InjectedFault::WrongContentType => {
                let page = b"<!doctype html><title>Sign in</title><p>Please sign in to the network.";
                send(line, 200, &[("content-type".to_owned(), "text/html".to_owned())], page)
            }
            InjectedFault::HugeEvent(bytes) => huge_event(line, *bytes),
            InjectedFault::HugeHeaders => {
                let filler = |number: usize| (format!("x-filler-{number}"), "x".repeat(16 << 10));
                let headers: Vec<(String, String)> = (0..64).map(filler).collect();
                send(line, 200, &headers, b"")
            }
            InjectedFault::EmptyBody => {
                send(line, 200, &[("content-type".to_owned(), "text/event-stream".to_owned())], b"")
            }
            InjectedFault::Redirect => {
                let to = format!("http://{}{}", line.shared.elsewhere, request.path);
                send(line, 307, &[("location".to_owned(), to)], b"")
            }
            // These leave the answer whole: whoever sends it does it in their way.
            InjectedFault::SlowDrip | InjectedFault::Gzip => Ok(ConnectionAction::Close),
        }
    }

    fn can_spoil(&self, frames: &[ScriptFrame]) -> bool {
        match self {
            InjectedFault::CutMidUtf8 => frames.iter().any(|frame| !frame.bytes.is_ascii()),
            _ => frames.len() > 1,
        }
    }
}

fn send(
    line: &ResponseSender<'_>,
    status: u16,
    headers: &[(String, String)],
    body: &[u8],
) -> Result<ConnectionAction, ClientGone> {
    line.finish(&http::response(status, headers, body))?;
    Ok(ConnectionAction::KeepAlive)
}

/// A body that ends well, but too early: after some events and a part of the next.
fn cut(
    line: &ResponseSender<'_>,
    events: &[ScriptFrame],
    part: &[u8],
) -> Result<ConnectionAction, ClientGone> {
    line.begin(events, None, None)?;
    if !part.is_empty() {
        line.send(&http::chunk(part))?;
    }
    line.finish(http::LAST_CHUNK)?;
    Ok(ConnectionAction::KeepAlive)
}

fn cut_in_character(
    line: &ResponseSender<'_>,
    frames: &[ScriptFrame],
) -> Result<ConnectionAction, ClientGone> {
    let cut_at = frames.iter().enumerate().find_map(|(number, frame)| {
        let byte = frame.bytes.iter().position(|byte| !byte.is_ascii())?;
        Some((number, frame.bytes.get(..=byte)?))
    });
    let (number, part) = cut_at.unwrap_or_default();
    cut(line, frames.get(..number).unwrap_or_default(), part)
}

fn huge_event(line: &ResponseSender<'_>, bytes: usize) -> Result<ConnectionAction, ClientGone> {
    const BLOCK: usize = 64 << 10;
    let filler = http::chunk(&[b'x'; BLOCK]);
    line.begin(&[], None, None)?;
    line.send(&http::chunk(b"data: {\"type\":\"filler\",\"filler\":\""))?;
    for _ in 0..bytes.div_ceil(BLOCK) {
        line.send(&filler)?;
    }
    line.send(&http::chunk(b"\"}\n\n"))?;
    line.finish(http::LAST_CHUNK)?;
    Ok(ConnectionAction::KeepAlive)
}

/// The same bytes every time, of every kind.
fn noise() -> Vec<u8> {
    let mut state: u32 = 0x2545_f491;
    let bytes = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()
    });
    bytes.take(1024).flatten().collect()
}

/// An answer to spoil, where the script has none that would do.
fn sample(wire: WireProtocol) -> Vec<ScriptFrame> {
    let answer = ScriptedAnswer {
        says: vec![ScriptedPart::Text("Once upon a time: é☃, and then …".to_owned())],
        usage: None,
        stop: None,
        piece: 6,
        end: StreamEnding::Complete,
    };
    let step = ScriptStep {
        when: StepCondition::default(),
        delay: Duration::ZERO,
        repeat: false,
        reply: ScriptedReply::Answer(answer),
    };
    let asked =
        ScriptRequest::read(wire, Some("sample"), br#"{"messages": [], "input": [], "contents": []}"#);
    asked.map(|asked| response_frames(&step, wire, &asked, 0)).unwrap_or_default()
}

/// The same events, compressed so that each can be read as soon as it is there.
pub(super) fn gzipped(frames: Vec<ScriptFrame>) -> Vec<ScriptFrame> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let mut compressed: Vec<ScriptFrame> = Vec::new();
    for ScriptFrame { wait, bytes } in frames {
        // Writing to memory can't fail.
        let _ = encoder.write_all(&bytes).and_then(|()| encoder.flush());
        compressed.push(ScriptFrame { wait, bytes: std::mem::take(encoder.get_mut()) });
    }
    let end = encoder.finish().unwrap_or_default();
    compressed.push(ScriptFrame { wait: Duration::ZERO, bytes: end });
    compressed
}
