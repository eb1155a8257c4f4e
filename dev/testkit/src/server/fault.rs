//! What goes wrong between a client and a server.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use helve_models::Wire;
use helve_models::script::{Asked, End, Failure, Frame, Reply, Say, ScriptedAnswer, Step, When, frames};

use super::answer::stream_head;
use super::connection::{Gone, Line, Next};
use super::http::{self, Recorded};

/// One way in which a request can go wrong. Those that begin an answer begin the one that the script has next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
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

impl Fault {
    /// One of each, by name.
    pub fn all() -> Vec<(&'static str, Fault)> {
        let status = |code: u16| Fault::Status { code, headers: Vec::new(), body: None };
        let wait = vec![("retry-after".to_owned(), "0".to_owned())];
        vec![
            ("hang", Fault::Hang),
            ("hang after headers", Fault::HangAfterHeaders),
            ("hang mid-stream", Fault::HangMidStream),
            ("reset before", Fault::ResetBefore),
            ("reset mid-stream", Fault::ResetMid),
            ("close mid-stream", Fault::CloseMid),
            ("cut mid-event", Fault::CutMidEvent),
            ("cut mid-character", Fault::CutMidUtf8),
            ("cut between events", Fault::CutBetweenEvents),
            ("garbage", Fault::Garbage),
            ("garbage instead of JSON", Fault::GarbageJson),
            ("status 401", status(401)),
            ("status 403", status(403)),
            ("status 429", Fault::Status { code: 429, headers: wait, body: None }),
            ("status 500", status(500)),
            ("status 503", status(503)),
            ("status 529", status(529)),
            ("wrong content type", Fault::WrongContentType),
            ("huge event", Fault::HugeEvent(40 << 20)),
            ("huge headers", Fault::HugeHeaders),
            ("slow drip", Fault::SlowDrip),
            ("gzip", Fault::Gzip),
            ("empty body", Fault::EmptyBody),
            ("redirect", Fault::Redirect),
        ]
    }

    /// Whether the answer is whole all the same, so that a client must have it.
    pub fn leaves_answer_whole(&self) -> bool {
        matches!(self, Fault::SlowDrip | Fault::Gzip)
    }

    /// Does what it says to an answer.
    pub(super) fn play(
        &self,
        line: &Line<'_>,
        request: &Recorded,
        wire: Wire,
        frames: Vec<Frame>,
    ) -> Result<Next, Gone> {
        let frames = if self.can_spoil(&frames) { frames } else { sample(wire) };
        let (first, rest) = frames.split_at(frames.len() / 2);
        match self {
            Fault::Hang => line.hang(),
            Fault::HangAfterHeaders => {
                line.send(&stream_head(None))?;
                line.hang()
            }
            Fault::HangMidStream => {
                line.begin(first, None, None)?;
                line.hang()
            }
            Fault::ResetBefore => Ok(Next::Reset),
            Fault::ResetMid => {
                line.begin(first, None, None)?;
                Ok(Next::Reset)
            }
            Fault::CloseMid => {
                line.begin(first, None, None)?;
                Ok(Next::Close)
            }
            Fault::CutMidEvent => {
                let event = rest.first().map(|frame| frame.bytes.as_slice()).unwrap_or_default();
                let (half, _) = event.split_at(event.len() / 2);
                cut(line, first, half)
            }
            Fault::CutMidUtf8 => cut_in_character(line, &frames),
            Fault::CutBetweenEvents => cut(line, first, &[]),
            Fault::Garbage => cut(line, &[], &noise()),
            Fault::GarbageJson => cut(line, &[], b"data: {not json\n\n"),
            Fault::Status { code, headers, body } => {
                let mut failure = Failure::new(wire, *code, None, "The test wants it so.");
                failure.headers.extend(headers.iter().cloned());
                let body = body.as_ref().map_or(failure.body, |body| body.clone().into_bytes());
                send(line, *code, &failure.headers, &body)
            }
            Fault::WrongContentType => {
                let page = b"<!doctype html><title>Sign in</title><p>Please sign in to the network.";
                send(line, 200, &[("content-type".to_owned(), "text/html".to_owned())], page)
            }
            Fault::HugeEvent(bytes) => huge_event(line, *bytes),
            Fault::HugeHeaders => {
                let filler = |number: usize| (format!("x-filler-{number}"), "x".repeat(16 << 10));
                let headers: Vec<(String, String)> = (0..64).map(filler).collect();
                send(line, 200, &headers, b"")
            }
            Fault::EmptyBody => {
                send(line, 200, &[("content-type".to_owned(), "text/event-stream".to_owned())], b"")
            }
            Fault::Redirect => {
                let to = format!("http://{}{}", line.shared.elsewhere, request.path);
                send(line, 307, &[("location".to_owned(), to)], b"")
            }
            // These leave the answer whole: whoever sends it does it in their way.
            Fault::SlowDrip | Fault::Gzip => Ok(Next::Close),
        }
    }

    fn can_spoil(&self, frames: &[Frame]) -> bool {
        match self {
            Fault::CutMidUtf8 => frames.iter().any(|frame| !frame.bytes.is_ascii()),
            _ => frames.len() > 1,
        }
    }
}

fn send(line: &Line<'_>, status: u16, headers: &[(String, String)], body: &[u8]) -> Result<Next, Gone> {
    line.finish(&http::response(status, headers, body))?;
    Ok(Next::Stay)
}

/// A body that ends well, but too early: after some events and a part of the next.
fn cut(line: &Line<'_>, events: &[Frame], part: &[u8]) -> Result<Next, Gone> {
    line.begin(events, None, None)?;
    if !part.is_empty() {
        line.send(&http::chunk(part))?;
    }
    line.finish(http::LAST_CHUNK)?;
    Ok(Next::Stay)
}

fn cut_in_character(line: &Line<'_>, frames: &[Frame]) -> Result<Next, Gone> {
    let cut_at = frames.iter().enumerate().find_map(|(number, frame)| {
        let byte = frame.bytes.iter().position(|byte| !byte.is_ascii())?;
        Some((number, frame.bytes.get(..=byte)?))
    });
    let (number, part) = cut_at.unwrap_or_default();
    cut(line, frames.get(..number).unwrap_or_default(), part)
}

fn huge_event(line: &Line<'_>, bytes: usize) -> Result<Next, Gone> {
    const BLOCK: usize = 64 << 10;
    let filler = http::chunk(&[b'x'; BLOCK]);
    line.begin(&[], None, None)?;
    line.send(&http::chunk(b"data: {\"type\":\"filler\",\"filler\":\""))?;
    for _ in 0..bytes.div_ceil(BLOCK) {
        line.send(&filler)?;
    }
    line.send(&http::chunk(b"\"}\n\n"))?;
    line.finish(http::LAST_CHUNK)?;
    Ok(Next::Stay)
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
fn sample(wire: Wire) -> Vec<Frame> {
    let answer = ScriptedAnswer {
        says: vec![Say::Text("Once upon a time: é☃, and then …".to_owned())],
        usage: None,
        stop: None,
        piece: 6,
        end: End::Whole,
    };
    let step =
        Step { when: When::default(), delay: Duration::ZERO, repeat: false, reply: Reply::Answer(answer) };
    let asked = Asked::read(wire, Some("sample"), br#"{"messages": [], "input": [], "contents": []}"#);
    asked.map(|asked| frames(&step, wire, &asked, 0)).unwrap_or_default()
}

/// The same events, compressed so that each can be read as soon as it is there.
pub(super) fn gzipped(frames: Vec<Frame>) -> Vec<Frame> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let mut compressed: Vec<Frame> = Vec::new();
    for Frame { wait, bytes } in frames {
        // Writing to memory can't fail.
        let _ = encoder.write_all(&bytes).and_then(|()| encoder.flush());
        compressed.push(Frame { wait, bytes: std::mem::take(encoder.get_mut()) });
    }
    let end = encoder.finish().unwrap_or_default();
    compressed.push(Frame { wait: Duration::ZERO, bytes: end });
    compressed
}
