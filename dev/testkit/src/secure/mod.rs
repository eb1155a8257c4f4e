//! A server that plays a model over TLS, and a proxy that leads to it: what a model's address is in the wild.
//!
//! Faults are the business of the other server; this one is for what lies below HTTP.
//!
//! ```no_run
//! use helve_models::script::ModelScript;
//! use helve_testkit::{HttpProtocol, TestProxy, SecureServer};
//!
//! let script = ModelScript::parse("[[step]]\ntext = \"Hello.\"\n").unwrap();
//! let server = SecureServer::play(script, &[HttpProtocol::Http2]).unwrap();
//! let trusted = server.authority(); // what SSL_CERT_FILE must hold
//! let proxy = TestProxy::to(server.address()).unwrap(); // leads there, as https://models.test, too
//! ```

mod certificate;
mod listener;
mod proxy;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use helve_models::WireProtocol;
use helve_models::script::{
    FailureResponse, ModelScript, ScriptFrame, ScriptPlayer, ScriptRequest, failure_response, response_frames,
};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Frame as Piece, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use certificate::ServerIdentity;
use listener::TestListener;
pub use proxy::TestProxy;

/// Who the server says it is. Nobody has to know where `models.test` is: a proxy does.
const CERTIFICATE_HOSTS: [&str; 4] = ["localhost", "127.0.0.1", "0.0.0.0", "models.test"];
const MAX_SECURE_BODY_BYTES: usize = 64 << 20;
const MAX_SECURE_REQUESTS: usize = 10_000;

/// What is spoken inside of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpProtocol {
    Http1,
    Http2,
}

/// A request as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecureRequest {
    pub protocol: HttpProtocol,
    pub path: String,
    /// The number of its connection: requests with the same one shared it.
    pub connection: usize,
}

/// Answers on the chat wire until it is dropped. The waits of a script are left out.
#[derive(Debug)]
pub struct SecureServer {
    listener: TestListener,
    authority: String,
    shared: Arc<SecureServerShared>,
}

impl SecureServer {
    /// Starts a server that offers these protocols, or leaves the client to guess if there are none.
    pub fn play(script: ModelScript, offers: &[HttpProtocol]) -> io::Result<SecureServer> {
        let shared = Arc::new(SecureServerShared::new(script));
        let identity = ServerIdentity::new(&CERTIFICATE_HOSTS).map_err(io::Error::other)?;
        let authority = identity.authority.clone();
        let acceptor = TlsAcceptor::from(Arc::new(config(identity, offers).map_err(io::Error::other)?));
        let serving = Arc::clone(&shared);
        let listener = TestListener::start(move |connection, stream| {
            serve(Arc::clone(&serving), acceptor.clone(), connection, stream)
        })?;
        Ok(SecureServer { listener, authority, shared })
    }

    pub fn address(&self) -> SocketAddr {
        self.listener.address
    }

    /// The certificate that a client must trust, as PEM.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Adds so many kibibytes of headers to every response.
    pub fn swell_headers(&self, kibibytes: usize) {
        self.shared.lock().swollen = kibibytes;
    }

    pub fn requests(&self) -> Vec<SecureRequest> {
        self.shared.lock().requests.clone()
    }

    /// How many connections were made, with a request or without.
    pub fn connections(&self) -> usize {
        self.shared.lock().connections
    }
}

fn config(identity: ServerIdentity, offers: &[HttpProtocol]) -> Result<ServerConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![identity.certificate], identity.key)?;
    config.alpn_protocols = offers.iter().map(|protocol| protocol.alpn().to_vec()).collect();
    Ok(config)
}

impl HttpProtocol {
    fn alpn(self) -> &'static [u8] {
        match self {
            HttpProtocol::Http1 => b"http/1.1",
            HttpProtocol::Http2 => b"h2",
        }
    }
}

/// What all connections of a server know.
#[derive(Debug)]
struct SecureServerShared {
    state: Mutex<SecureServerState>,
}

#[derive(Debug)]
struct SecureServerState {
    player: ScriptPlayer,
    requests: Vec<SecureRequest>,
    connections: usize,
    swollen: usize,
}

impl SecureServerShared {
    fn new(script: ModelScript) -> SecureServerShared {
        let player = ScriptPlayer::new(script);
        SecureServerShared {
            state: Mutex::new(SecureServerState { player, requests: Vec::new(), connections: 0, swollen: 0 }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, SecureServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn serve(shared: Arc<SecureServerShared>, acceptor: TlsAcceptor, connection: usize, stream: TcpStream) {
    shared.lock().connections += 1;
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let (_, session) = stream.get_ref();
    let is_http2 = session.alpn_protocol() == Some(HttpProtocol::Http2.alpn());
    let service = service_fn(|request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(answer(&shared, connection, request).await) }
    });
    let stream = TokioIo::new(stream);
    // How a connection ends is for the client to tell.
    if is_http2 {
        let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await;
    } else {
        let _ = http1::Builder::new().serve_connection(stream, service).await;
    }
}

async fn answer(
    shared: &SecureServerShared,
    connection: usize,
    request: Request<Incoming>,
) -> Response<ChunkedBody> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, MAX_SECURE_BODY_BYTES).collect().await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    let protocol = if head.version == Version::HTTP_2 { HttpProtocol::Http2 } else { HttpProtocol::Http1 };
    let recorded = SecureRequest { protocol, path: head.uri.path().to_owned(), connection };
    let mut state = shared.lock();
    let mut response = match state.play(recorded, &body) {
        Ok(frames) => stream(frames),
        Err(failure) => refusal(failure),
    };
    for number in 0..state.swollen {
        add_header(&mut response, &format!("x-filler-{number}"), &"x".repeat(1 << 10));
    }
    response
}

impl SecureServerState {
    fn play(&mut self, request: SecureRequest, body: &[u8]) -> Result<Vec<ScriptFrame>, FailureResponse> {
        let wire = WireProtocol::Chat;
        let refused = |status, message: &str| FailureResponse::new(wire, status, None, message);
        if self.requests.len() >= MAX_SECURE_REQUESTS {
            return Err(refused(400, "too many requests for one server of tests"));
        }
        let is_known = request.path.ends_with("/chat/completions");
        let seed = u64::try_from(self.requests.len()).unwrap_or(u64::MAX);
        self.requests.push(request);
        if !is_known {
            return Err(refused(404, "only the chat wire is spoken here"));
        }
        let asked =
            ScriptRequest::read(wire, None, body).map_err(|error| refused(400, &error.to_string()))?;
        let step = self.player.next(&asked).map_err(|none| refused(400, &none.to_string()))?;
        match failure_response(step, wire) {
            Some(failure) => Err(failure),
            None => Ok(response_frames(step, wire, &asked, seed)),
        }
    }
}

fn stream(frames: Vec<ScriptFrame>) -> Response<ChunkedBody> {
    let mut response =
        Response::new(ChunkedBody(frames.into_iter().map(|frame| frame.bytes.into()).collect()));
    add_header(&mut response, "content-type", "text/event-stream");
    response
}

fn refusal(failure: FailureResponse) -> Response<ChunkedBody> {
    let mut response = Response::new(ChunkedBody([failure.body.into()].into()));
    *response.status_mut() = StatusCode::from_u16(failure.status).unwrap_or(StatusCode::BAD_REQUEST);
    for (name, value) in &failure.headers {
        add_header(&mut response, name, value);
    }
    response
}

/// Adds a header, if it can be one.
fn add_header(response: &mut Response<ChunkedBody>, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
        response.headers_mut().insert(name, value);
    }
}

/// A body that is sent piece by piece.
struct ChunkedBody(VecDeque<Bytes>);

impl Body for ChunkedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Piece<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|piece| Ok(Piece::data(piece))))
    }
}
