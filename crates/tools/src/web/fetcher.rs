//! Getting something from the web: whom to ask, where to follow, how much to take.

use std::error::Error;
use std::iter::successors;
use std::sync::Arc;
use std::time::Duration;

use image::ImageFormat;
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};
use url::Url;

use crate::ToolFailure;
use crate::files::picture;
use crate::web::address::{AllowedHosts, HostAccess, NoPublicAddress, PublicResolver, admit, inside};

const MAX_REDIRECTS: usize = 5;
const MAX_FETCHED_BYTES: usize = 5 << 20;
/// A longer address is none.
pub(crate) const MAX_URL_BYTES: usize = 2_000;
const FETCH_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const ACCEPTED_TYPES: &str =
    "text/html, text/markdown, text/plain, application/json, image/*;q=0.8, */*;q=0.5";

/// Who asks, and who may be asked.
#[derive(Clone, Debug)]
pub(crate) struct WebFetcher {
    pub(crate) user_agent: String,
    pub(crate) allowed: AllowedHosts,
}

/// What came, and from where at last.
pub(crate) struct FetchResponse {
    pub(crate) url: Url,
    pub(crate) status: StatusCode,
    pub(crate) content_type: String,
    pub(crate) body: FetchBody,
    /// Whether it was not cut.
    pub(crate) is_whole: bool,
}

pub(crate) enum FetchBody {
    Html(Vec<u8>),
    Text(Vec<u8>),
    Image(ImageFormat, Vec<u8>),
}

impl WebFetcher {
    pub(crate) async fn fetch(&self, url: Url) -> Result<FetchResponse, ToolFailure> {
        let (url, mut response) = self.follow(url).await?;
        let status = response.status();
        let content_type = header(&response, CONTENT_TYPE);
        let kind = FetchBodyKind::of(&content_type);
        let size = response.content_length();
        let encoding = header(&response, CONTENT_ENCODING);
        if kind == FetchBodyKind::Other || !matches!(encoding.as_str(), "" | "identity") {
            return Err(unwanted(&url, &content_type, &encoding, size));
        }
        let (bytes, is_whole) = body(&mut response, &url).await?;
        let body = kind.body(bytes, is_whole).ok_or_else(|| unwanted(&url, &content_type, "", size))?;
        Ok(FetchResponse { url, status, content_type, body, is_whole })
    }

    /// Asks, and asks again where the host sends us, as long as it is the same one.
    async fn follow(&self, mut url: Url) -> Result<(Url, Response), ToolFailure> {
        for _ in 0..=MAX_REDIRECTS {
            let access = admit(&url, &self.allowed).map_err(|refused| ToolFailure(refused.0))?;
            let client = self.client(access, url.scheme() == "https")?;
            let sent = client.get(url.clone()).header(ACCEPT, ACCEPTED_TYPES).send().await;
            let response = sent.map_err(|error| unreachable(&url, error))?;
            match next(&response, &url)? {
                None => return Ok((url, response)),
                Some(to) if is_same_place(&url, &to) => url = to,
                Some(to) => {
                    return Err(ToolFailure(format!(
                        "{url} leads to another place. Fetch it if you want it: {to}"
                    )));
                }
            }
        }
        Err(ToolFailure(format!("{url}: more than {MAX_REDIRECTS} redirects. Fetch another address.")))
    }

    /// No proxy: who connects has to be who checked the address.
    fn client(&self, access: HostAccess, is_encrypted: bool) -> Result<Client, ToolFailure> {
        // A second one would be refused; the first is the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .user_agent(&self.user_agent)
            .no_proxy()
            .redirect(Policy::none())
            .referer(false)
            .connect_timeout(FETCH_CONNECT_TIMEOUT)
            .pool_max_idle_per_host(0)
            .http2_max_header_list_size(64 << 10);
        if access == HostAccess::Public {
            builder = builder.dns_resolver(Arc::new(PublicResolver));
        }
        if !is_encrypted {
            // Nobody loads certificates for nothing.
            builder = builder.tls_certs_only([]);
        }
        builder.build().map_err(|error| ToolFailure(format!("Nothing can be fetched: {}.", cause(&error))))
    }
}

fn header(response: &Response, name: HeaderName) -> String {
    let value = response.headers().get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().trim().to_owned()
}

/// Where a response sends us, if it does.
fn next(response: &Response, url: &Url) -> Result<Option<Url>, ToolFailure> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let to = header(response, LOCATION);
    if to.is_empty() || to.len() > MAX_URL_BYTES {
        return Err(ToolFailure(format!(
            "{url} leads to nothing that can be followed. Fetch another address."
        )));
    }
    let wrong = |error| ToolFailure(format!("{url} leads to {to:?}, which is no address: {error}."));
    url.join(&to).map(Some).map_err(wrong)
}

/// A person was asked about the host, and about whether others can listen.
fn is_same_place(from: &Url, to: &Url) -> bool {
    from.host() == to.host() && (to.scheme() == from.scheme() || to.scheme() == "https")
}

fn unreachable(url: &Url, error: reqwest::Error) -> ToolFailure {
    let error = error.without_url();
    let host = url.host_str().unwrap_or_default();
    if causes(&error).any(|cause| cause.is::<NoPublicAddress>()) {
        return ToolFailure(inside(host).0);
    }
    ToolFailure(format!("{host} can't be reached: {}. Check the address, or try again later.", cause(&error)))
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |&error| error.source())
}

/// What really happened is the deepest cause; those above only say that something did.
fn cause(error: &(dyn Error + 'static)) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}

/// What came, as far as it may, and whether that is all. A small body can unpack to gigabytes: its end counts, not what
/// was announced.
async fn body(response: &mut Response, url: &Url) -> Result<(Vec<u8>, bool), ToolFailure> {
    let mut bytes = Vec::new();
    loop {
        let piece = response.chunk().await.map_err(|error| {
            let why = cause(&error.without_url());
            ToolFailure(format!("{url} broke off after {} bytes: {why}. Try again.", bytes.len()))
        })?;
        let Some(piece) = piece else { return Ok((bytes, true)) };
        let room = MAX_FETCHED_BYTES - bytes.len();
        if piece.len() > room {
            bytes.extend(piece.iter().take(room));
            return Ok((bytes, false));
        }
        bytes.extend_from_slice(&piece);
    }
}

fn unwanted(url: &Url, content_type: &str, encoding: &str, size: Option<u64>) -> ToolFailure {
    let kind = if content_type.is_empty() { "of unknown type" } else { content_type };
    let encoding = if encoding.is_empty() { String::new() } else { format!(", encoded as {encoding}") };
    let size = size.map_or("of unknown size".to_owned(), |bytes| format!("{} KiB", bytes.div_ceil(1 << 10)));
    ToolFailure(format!(
        "{url} is {kind}{encoding} ({size}). Only text and images up to 5 MiB are shown. Use the shell if it is needed."
    ))
}

/// What a server says that it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FetchBodyKind {
    Html,
    Text,
    Image,
    /// It does not say.
    Unspecified,
    Other,
}

impl FetchBodyKind {
    fn of(content_type: &str) -> FetchBodyKind {
        let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let (group, name) = essence.split_once('/').unwrap_or((&essence, ""));
        match (group, name) {
            ("text", "html") | ("application", "xhtml+xml") => FetchBodyKind::Html,
            ("text", _) => FetchBodyKind::Text,
            (_, name) if name.ends_with("+json") || name.ends_with("+xml") || name.ends_with("+yaml") => {
                FetchBodyKind::Text
            }
            (
                "application",
                "json" | "xml" | "javascript" | "ecmascript" | "yaml" | "x-yaml" | "toml" | "x-ndjson"
                | "jsonl" | "sql" | "x-sh" | "graphql" | "x-javascript",
            ) => FetchBodyKind::Text,
            ("image", "png" | "jpeg" | "jpg" | "gif" | "webp") => FetchBodyKind::Image,
            ("", _) | ("application", "octet-stream") => FetchBodyKind::Unspecified,
            _ => FetchBodyKind::Other,
        }
    }

    /// The body, if it is what it is said to be.
    fn body(self, bytes: Vec<u8>, is_whole: bool) -> Option<FetchBody> {
        match self {
            FetchBodyKind::Html => Some(FetchBody::Html(bytes)),
            FetchBodyKind::Text => Some(FetchBody::Text(bytes)),
            FetchBodyKind::Image => {
                Some(FetchBody::Image(picture::format_of(&bytes).filter(|_| is_whole)?, bytes))
            }
            FetchBodyKind::Unspecified => FetchBodyKind::seeming(&bytes).body(bytes, is_whole),
            FetchBodyKind::Other => None,
        }
    }

    fn seeming(bytes: &[u8]) -> FetchBodyKind {
        let head = bytes.trim_ascii_start();
        let begins_with =
            |tag: &[u8]| head.get(..tag.len()).is_some_and(|head| head.eq_ignore_ascii_case(tag));
        if picture::format_of(bytes).is_some() {
            FetchBodyKind::Image
        } else if begins_with(b"<!doctype html") || begins_with(b"<html") {
            FetchBodyKind::Html
        } else if bytes.contains(&0) {
            FetchBodyKind::Other
        } else {
            FetchBodyKind::Text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_known_by_their_names() {
        let cases = [
            ("text/html; charset=utf-8", FetchBodyKind::Html),
            ("TEXT/HTML", FetchBodyKind::Html),
            ("application/xhtml+xml", FetchBodyKind::Html),
            ("text/markdown", FetchBodyKind::Text),
            ("application/json", FetchBodyKind::Text),
            ("application/problem+json", FetchBodyKind::Text),
            ("image/svg+xml", FetchBodyKind::Text),
            ("image/png", FetchBodyKind::Image),
            ("image/avif", FetchBodyKind::Other),
            ("application/pdf", FetchBodyKind::Other),
            ("application/octet-stream", FetchBodyKind::Unspecified),
            ("", FetchBodyKind::Unspecified),
            ("nonsense", FetchBodyKind::Other),
        ];
        for (name, kind) in cases {
            assert_eq!(FetchBodyKind::of(name), kind, "{name}");
        }
    }

    #[test]
    fn what_is_not_said_is_seen() {
        assert_eq!(FetchBodyKind::seeming(b"\n <!DOCTYPE HTML><p>"), FetchBodyKind::Html);
        assert_eq!(FetchBodyKind::seeming(b"<html lang=en>"), FetchBodyKind::Html);
        assert_eq!(FetchBodyKind::seeming(b"{}"), FetchBodyKind::Text);
        assert_eq!(FetchBodyKind::seeming(b""), FetchBodyKind::Text);
        assert_eq!(FetchBodyKind::seeming(b"\x7fELF\0"), FetchBodyKind::Other);
        assert_eq!(FetchBodyKind::seeming(b"GIF89a"), FetchBodyKind::Image);
    }

    #[test]
    fn another_host_and_a_connection_that_others_hear_are_other_places() {
        let same = |from: &str, to: &str| is_same_place(&Url::parse(from).unwrap(), &Url::parse(to).unwrap());
        assert!(same("http://a.test/x", "https://a.test/y"));
        assert!(same("https://a.test/x", "https://a.test:8443/y"));
        assert!(!same("https://a.test/x", "http://a.test/x"));
        assert!(!same("https://a.test/x", "https://www.a.test/x"));
        assert!(!same("https://a.test/x", "ftp://a.test/x"));
    }
}
