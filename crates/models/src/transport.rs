//! One HTTP exchange: a request goes out, and the response comes back piece by piece.

use std::error::Error;
use std::future::Future;
use std::io;
use std::iter::successors;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use helve_protocol::Timestamp;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use tokio_util::sync::CancellationToken;

use crate::failure::{FailureKind, RequestFailure};
use crate::parse_error_body;
use crate::provider::RequestAddress;
use crate::retry::{wait_from_body, wait_from_headers};

/// How long nothing may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTimeouts {
    /// Until the connection stands.
    pub connect: Duration,
    /// From the request until the response begins. A slow machine reads a long conversation for minutes.
    pub first_byte: Duration,
    /// Between two pieces of the response. Some models think for minutes without a sign.
    pub idle: Duration,
    /// Between two words of the answer, while the server sends signs of life only, as some do while the model thinks. Never less
    /// than `idle`.
    pub keep_alive: Duration,
}

impl Default for RequestTimeouts {
    fn default() -> RequestTimeouts {
        RequestTimeouts {
            connect: Duration::from_secs(15),
            first_byte: Duration::from_secs(10 * 60),
            idle: Duration::from_secs(5 * 60),
            keep_alive: Duration::from_secs(10 * 60),
        }
    }
}

/// The body of an error is read so far and no further.
const MAX_ERROR_BODY_BYTES: usize = 64 << 10;
/// No answer is as large as this.
const MAX_MODEL_RESPONSE_BYTES: usize = 256 << 20;
/// When an answer is whole, its connection is given so long to end, so that it can be used again.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);

/// So long a connection is kept for the next request. Local servers hang up after a few seconds without a word, and a
/// request that meets such a connection has to be sent again.
const LOCAL_POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(3);
const REMOTE_POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// Makes connections and keeps them for the next request.
#[derive(Debug)]
pub(crate) struct HttpTransport {
    local: HttpClientPair,
    remote: HttpClientPair,
    timeouts: RequestTimeouts,
}

/// One for plain connections and one for encrypted ones, each made when it is first needed, so that nobody loads
/// certificates for nothing.
#[derive(Debug, Default)]
struct HttpClientPair {
    plain: OnceLock<Result<Client, String>>,
    encrypted: OnceLock<Result<Client, String>>,
}

/// What a client is made for.
#[derive(Clone, Copy)]
struct HttpClientKind {
    /// A server on this machine is spoken to without a proxy.
    is_local: bool,
    is_encrypted: bool,
}

impl HttpTransport {
    pub(crate) fn new(timeouts: RequestTimeouts) -> HttpTransport {
        HttpTransport { local: HttpClientPair::default(), remote: HttpClientPair::default(), timeouts }
    }

    /// Sends a request and waits for the response to begin. A status that is no success is a failure.
    pub(crate) async fn post(
        &self,
        address: &RequestAddress,
        body: Bytes,
        now: Timestamp,
        stop: &CancellationToken,
    ) -> Result<ResponseStream, RequestFailure> {
        let sending = async {
            let request = self.client(&address.url)?.post(address.url.clone());
            let headers = headers(address)?;
            let sent = request.headers(headers).header(CONTENT_TYPE, "application/json").body(body).send();
            within(self.timeouts.first_byte, "the server did not answer", sent)
                .await?
                .map_err(|error| failure_from_error(error, address))
        };
        let response = unless_cancelled(stop, sending).await?;
        if !response.status().is_success() {
            return Err(unless_cancelled(stop, async { Ok(self.refusal(response, now).await) }).await?);
        }
        refuse_page(&response)?;
        Ok(ResponseStream { response, idle: self.timeouts.idle, received: 0 })
    }

    /// Asks for a small JSON document.
    pub(crate) async fn get(
        &self,
        address: &RequestAddress,
        limit: Duration,
    ) -> Result<Bytes, RequestFailure> {
        let asking = async {
            let request = self.client(&address.url)?.get(address.url.clone()).headers(headers(address)?);
            let response = request.send().await.map_err(|error| failure_from_error(error, address))?;
            let status = response.status();
            let body = beginning(response, MAX_MODEL_RESPONSE_BYTES >> 4).await;
            if status.is_success() { Ok(body) } else { Err(refused(status.as_u16(), &body)) }
        };
        within(limit, "the server did not answer", asking).await?
    }

    fn client(&self, url: &Url) -> Result<&Client, RequestFailure> {
        let purpose = HttpClientKind { is_local: is_loopback(url), is_encrypted: url.scheme() == "https" };
        let clients = if purpose.is_local { &self.local } else { &self.remote };
        let client = if purpose.is_encrypted { &clients.encrypted } else { &clients.plain };
        client.get_or_init(|| make(purpose, &self.timeouts)).as_ref().map_err(|why| {
            RequestFailure::new(FailureKind::Certificate, format!("no connection can be made: {why}"))
        })
    }

    async fn refusal(&self, response: reqwest::Response, now: Timestamp) -> RequestFailure {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let wait = wait_from_headers(|name| headers.get(name)?.to_str().ok(), now);
        // What the status says counts, even if the body never comes.
        let body = within(
            self.timeouts.idle.min(Duration::from_secs(30)),
            "",
            beginning(response, MAX_ERROR_BODY_BYTES),
        );
        let body = body.await.unwrap_or_default();
        let wait = wait.or_else(|| wait_from_body(&serde_json::from_slice(&body).ok()?));
        RequestFailure { wait, ..refused(status, &body) }
    }
}

fn refused(status: u16, body: &[u8]) -> RequestFailure {
    let told = std::str::from_utf8(body).ok().and_then(parse_error_body);
    RequestFailure::from_status(status, told.as_ref())
}

/// The certificates of the system are read here by the libraries below. Where they are files, on Linux and the BSDs,
/// `SSL_CERT_FILE` and `SSL_CERT_DIR` take their place.
fn make(purpose: HttpClientKind, timeouts: &RequestTimeouts) -> Result<Client, String> {
    // A second one would be refused; the first is the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .user_agent(concat!("helve/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(timeouts.connect)
        .tcp_nodelay(true)
        .tcp_keepalive(Duration::from_secs(30))
        .pool_idle_timeout(if purpose.is_local { LOCAL_POOL_IDLE_TIMEOUT } else { REMOTE_POOL_IDLE_TIMEOUT })
        .http2_max_header_list_size(64 << 10)
        // A redirect would take the key to another place.
        .redirect(reqwest::redirect::Policy::none())
        .referer(false);
    if purpose.is_local {
        builder = builder.no_proxy();
    }
    if !purpose.is_encrypted {
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| chain(&error))
}

pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn headers(address: &RequestAddress) -> Result<HeaderMap, RequestFailure> {
    let mut headers = HeaderMap::new();
    for (name, secret) in &address.headers {
        let bad = |what: &str| {
            let text =
                format!("the {what} {name:?} can't be sent as a header: check the settings and the key");
            RequestFailure::new(FailureKind::BadRequest, text)
        };
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("name"))?;
        let mut value = HeaderValue::from_str(secret.reveal().trim()).map_err(|_| bad("value of"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// A page for people means that something else answers than a model's server. Other types say nothing: servers label
/// their streams as they like.
fn refuse_page(response: &reqwest::Response) -> Result<(), RequestFailure> {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.starts_with("text/html") {
        return Err(RequestFailure::new(FailureKind::NotAModel, "a web page came instead of an answer"));
    }
    Ok(())
}

/// As much of a body as fits; what comes of one that breaks off, too.
async fn beginning(mut response: reqwest::Response, most: usize) -> Bytes {
    let mut body = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await {
        let room = most.saturating_sub(body.len());
        body.extend_from_slice(piece.get(..room.min(piece.len())).unwrap_or_default());
        if body.len() >= most {
            break;
        }
    }
    body.into()
}

/// A response that has begun. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct ResponseStream {
    response: reqwest::Response,
    idle: Duration,
    received: usize,
}

impl ResponseStream {
    /// The next piece; none at the end.
    pub(crate) async fn piece(
        &mut self,
        address: &RequestAddress,
        stop: &CancellationToken,
    ) -> Result<Option<Bytes>, RequestFailure> {
        let piece = unless_cancelled(stop, async {
            let piece = within(self.idle, "nothing more came of the answer", self.response.chunk()).await?;
            piece.map_err(|error| failure_from_error(error, address))
        });
        let piece = piece.await?;
        self.received += piece.as_ref().map_or(0, Bytes::len);
        if self.received > MAX_MODEL_RESPONSE_BYTES {
            return Err(RequestFailure::new(
                FailureKind::TooLarge,
                "the answer is larger than any answer should be",
            ));
        }
        Ok(piece)
    }

    /// Lets the connection come to its end, so that the next request can use it.
    pub(crate) async fn end(mut self) {
        let rest = async { while let Ok(Some(_)) = self.response.chunk().await {} };
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, rest).await;
    }
}

/// Waits, but not after somebody said stop.
pub(crate) async fn unless_cancelled<T>(
    stop: &CancellationToken,
    work: impl Future<Output = Result<T, RequestFailure>>,
) -> Result<T, RequestFailure> {
    tokio::select! {
        biased;
        () = stop.cancelled() => Err(RequestFailure::interrupted()),
        done = work => done,
    }
}

pub(crate) async fn pause(time: Duration, stop: &CancellationToken) -> Result<(), RequestFailure> {
    let rest = async {
        tokio::time::sleep(time).await;
        Ok(())
    };
    unless_cancelled(stop, rest).await
}

async fn within<T>(limit: Duration, what: &str, work: impl Future<Output = T>) -> Result<T, RequestFailure> {
    tokio::time::timeout(limit, work).await.map_err(|_| {
        RequestFailure::new(FailureKind::Timeout, format!("{what} within {}", format_duration(limit)))
    })
}

pub(crate) fn format_duration(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        seconds @ 1..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

/// What a broken connection means. The address is left out: it may hold a key.
fn failure_from_error(error: reqwest::Error, address: &RequestAddress) -> RequestFailure {
    let error = error.without_url();
    let text = address.scrub(&chain(&error));
    let lower = text.to_ascii_lowercase();
    let kind = if error.is_timeout() {
        FailureKind::Timeout
    } else if lower.contains("certificate") {
        FailureKind::Certificate
    } else if error.is_connect() && is_loopback(&address.url) && is_refused(&error) {
        FailureKind::NotRunning
    } else if error.is_connect() && speaks_no_tls(&error) {
        FailureKind::NotAModel
    } else if error.is_decode() {
        FailureKind::Garbled
    } else {
        FailureKind::Network
    };
    let host = address.url.host_str().unwrap_or_default();
    let port = address.url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let says = match kind {
        FailureKind::NotRunning => format!("nothing listens at {host}{port}"),
        FailureKind::NotAModel => {
            format!("{host}{port} does not speak TLS: its address may begin with http:// instead of https://")
        }
        FailureKind::Timeout if error.is_connect() => format!("no connection to {host}{port} in time"),
        _ => format!("the connection to {host}{port} failed: {text}"),
    };
    RequestFailure::new(kind, says)
}

fn is_refused(error: &reqwest::Error) -> bool {
    let mut io = causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>());
    io.any(|io| io.kind() == io::ErrorKind::ConnectionRefused)
}

fn speaks_no_tls(error: &reqwest::Error) -> bool {
    let mut tls = causes(error).filter_map(|cause| cause.downcast_ref::<rustls::Error>());
    tls.any(|tls| matches!(tls, rustls::Error::InvalidMessage(_)))
}

/// An error and what lies below it, the deepest last.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |&error| {
        // An error of input or output that wraps another one leaves it out of its sources.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        wrapped.map(|wrapped| wrapped as &(dyn Error + 'static)).or_else(|| error.source())
    })
}

/// What really happened: the deepest causes of an error. Those above them only say that something did.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut causes: Vec<String> = causes(error).map(ToString::to_string).collect();
    causes.dedup();
    let deepest = causes.split_off(causes.len().saturating_sub(2));
    match &deepest[..] {
        [above, below] if above.contains(below) => above.clone(),
        _ => deepest.join(": "),
    }
}
