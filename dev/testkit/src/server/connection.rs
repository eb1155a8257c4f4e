//! Connections: one thread reads, so that it notices when the client goes, and one answers.

use std::io::{self, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use super::answer::ResponsePlan;
use super::http::{self, ReceivedRequest};
use super::{ScriptedServerShared, ScriptedServerState, TrackedRequest, TrackedRequestStatus};

const MAX_SERVER_CONNECTIONS: usize = 64;
const MAX_SERVER_REQUESTS: usize = 10_000;
/// How many requests may come before the first is answered.
const MAX_PIPELINED_REQUESTS: usize = 16;

/// What becomes of a connection after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionAction {
    KeepAlive,
    Close,
    /// Without a goodbye: the client is told that the connection was reset.
    Reset,
}

/// The client has closed the connection, or the server stops: nobody listens any more.
#[derive(Debug)]
pub(super) struct ClientGone;

impl From<io::Error> for ClientGone {
    fn from(_: io::Error) -> ClientGone {
        ClientGone
    }
}

/// Takes connections until the server stops.
pub(super) fn listen(shared: &ScriptedServerShared, listener: &TcpListener) {
    thread::scope(|scope| {
        while let Some(stream) = accept(shared, listener) {
            scope.spawn(move || serve(shared, stream));
        }
    });
}

/// Only counts who comes.
pub(super) fn count(shared: &ScriptedServerShared, listener: &TcpListener) {
    while let Some(stream) = accept(shared, listener) {
        shared.change(|state| state.followed += 1);
        drop(stream);
    }
}

fn accept(shared: &ScriptedServerShared, listener: &TcpListener) -> Option<TcpStream> {
    loop {
        let accepted = listener.accept();
        if shared.lock().stopping {
            return None;
        }
        match accepted {
            Ok((stream, _)) => return Some(stream),
            // A client that left before it was seen.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(_) => return None,
        }
    }
}

fn serve(shared: &ScriptedServerShared, stream: TcpStream) {
    // Every piece is sent as it is written.
    let _ = stream.set_nodelay(true);
    let stream = Arc::new(stream);
    let Some(number) = shared.change(|state| register(state, &stream)) else { return };
    let (sender, requests) = sync_channel(MAX_PIPELINED_REQUESTS);
    thread::scope(|scope| {
        scope.spawn(|| answer_all(shared, &stream, number, requests));
        read_all(shared, &stream, number, &sender);
        drop(sender);
    });
    shared.change(|state| state.connections.remove(&number));
}

fn register(state: &mut ScriptedServerState, stream: &Arc<TcpStream>) -> Option<usize> {
    if state.stopping || state.connections.len() >= MAX_SERVER_CONNECTIONS {
        return None;
    }
    let number = state.accepted;
    state.accepted += 1;
    state.connections.insert(number, Arc::clone(stream));
    Some(number)
}

/// What a client sent: a request with its number, and how it is answered; or something that is none.
enum ClientMessage {
    Request(usize, Arc<ReceivedRequest>, ResponsePlan),
    Malformed(String),
}

fn read_all(
    shared: &ScriptedServerShared,
    stream: &TcpStream,
    connection: usize,
    sender: &SyncSender<ClientMessage>,
) {
    let mut reader = BufReader::new(stream);
    loop {
        let sent = match http::read_request(&mut reader, connection) {
            Ok(Some(request)) => shared.change(|state| record(state, request)),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                ClientMessage::Malformed(error.to_string())
            }
            Ok(None) | Err(_) => break,
        };
        if sender.send(sent).is_err() {
            break;
        }
    }
    shared.change(|state| leave(state, connection));
}

fn record(state: &mut ScriptedServerState, request: ReceivedRequest) -> ClientMessage {
    if state.requests.len() >= MAX_SERVER_REQUESTS {
        return ClientMessage::Malformed("too many requests for one server of tests".to_owned());
    }
    let (number, recorded) = (state.requests.len(), Arc::new(request));
    let plan = state.plan(number, &recorded);
    state.requests.push(TrackedRequest { recorded: Arc::clone(&recorded), fate: TrackedRequestStatus::Open });
    ClientMessage::Request(number, recorded, plan)
}

/// The client is gone: what it still waited for will not be heard.
fn leave(state: &mut ScriptedServerState, connection: usize) {
    state.gone.insert(connection);
    let requests = state.requests.iter_mut().filter(|request| request.recorded.connection == connection);
    for request in requests.filter(|request| request.fate == TrackedRequestStatus::Open) {
        request.fate = TrackedRequestStatus::Abandoned;
    }
}

fn answer_all(
    shared: &ScriptedServerShared,
    stream: &TcpStream,
    connection: usize,
    requests: Receiver<ClientMessage>,
) {
    for sent in requests {
        let next = match sent {
            ClientMessage::Request(number, request, plan) => {
                let next = ResponseSender { shared, stream, connection, number }.answer(&request, plan);
                let fate = if next.is_ok() {
                    TrackedRequestStatus::Answered
                } else {
                    TrackedRequestStatus::Abandoned
                };
                shared.change(|state| state.settle(number, fate));
                next.unwrap_or(ConnectionAction::Close)
            }
            ClientMessage::Malformed(message) => {
                let mut writer = stream;
                let _ = writer.write_all(&http::response(400, &[], message.as_bytes()));
                ConnectionAction::Close
            }
        };
        match next {
            ConnectionAction::KeepAlive => continue,
            ConnectionAction::Close => drop(stream.shutdown(Shutdown::Both)),
            ConnectionAction::Reset => reset(stream),
        }
        break;
    }
}

/// A socket that does not linger is reset when it is closed. That is when its reader, who is told to stop, has let it go.
fn reset(stream: &TcpStream) {
    let _ = rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO));
    let _ = stream.shutdown(Shutdown::Read);
}

/// The way to the client for the answer to one request.
pub(super) struct ResponseSender<'a> {
    pub(super) shared: &'a ScriptedServerShared,
    stream: &'a TcpStream,
    connection: usize,
    /// The request's.
    number: usize,
}

impl ResponseSender<'_> {
    pub(super) fn send(&self, bytes: &[u8]) -> Result<(), ClientGone> {
        let mut writer = self.stream;
        Ok(writer.write_all(bytes)?)
    }

    /// Sends the last bytes of an answer. A client that closes after them has abandoned nothing.
    pub(super) fn finish(&self, bytes: &[u8]) -> Result<(), ClientGone> {
        self.shared.change(|state| state.settle(self.number, TrackedRequestStatus::Answered));
        self.send(bytes)
    }

    fn is_heard(&self, state: &ScriptedServerState) -> bool {
        !state.stopping && !state.gone.contains(&self.connection)
    }

    pub(super) fn pause(&self, time: Duration) -> Result<(), ClientGone> {
        if time.is_zero() {
            return Ok(());
        }
        let gone = self.shared.wait(time, |state| !self.is_heard(state));
        if gone { Err(ClientGone) } else { Ok(()) }
    }

    /// Waits for something that has no time of its own.
    pub(super) fn wait_for(&self, ready: impl Fn() -> bool) -> Result<(), ClientGone> {
        let waiting = |state: &mut ScriptedServerState| self.is_heard(state) && !ready();
        let state = self.shared.changed.wait_while(self.shared.lock(), waiting);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        if self.is_heard(&state) { Ok(()) } else { Err(ClientGone) }
    }

    /// Says nothing more, and keeps the client waiting.
    pub(super) fn hang<T>(&self) -> Result<T, ClientGone> {
        self.wait_for(|| false)?;
        Err(ClientGone)
    }
}
