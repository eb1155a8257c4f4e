//! A service as it is used here: a vendor, with this user's key, address and headers.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use helve_protocol::{KeyPlacement, WireProtocol};
use reqwest::Url;

use crate::route_error::RouteError;
use crate::vendor::{ServerLocation, Vendor};
use crate::{Quirks, Secret};

/// A service that can be spoken to.
#[derive(Clone)]
pub struct ModelProvider {
    /// The first part of `provider/model`.
    pub name: String,
    /// The protocol that its server speaks.
    pub wire: WireProtocol,
    /// What the addresses of all requests begin with.
    pub base_url: Url,
    /// How the key is shown to the server.
    pub auth: KeyPlacement,
    /// The key, if there is one.
    pub key: Option<ProviderKey>,
    /// The variables that may hold the key.
    pub key_names: Vec<String>,
    /// Why it can't be used, if its settings are wrong.
    pub fault: Option<RouteError>,
    /// Sent with each request.
    pub headers: Vec<(String, Secret)>,
    /// What is peculiar about its server.
    pub quirks: Quirks,
    /// Where its server runs.
    pub place: ServerLocation,
    /// What is known of it without being told, if it is.
    pub vendor: Option<&'static Vendor>,
}

/// A key, and where it was found.
#[derive(Clone, Debug)]
pub struct ProviderKey {
    /// The key itself.
    pub secret: Secret,
    /// Where it was found.
    pub origin: KeyOrigin,
}

/// Where a key was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyOrigin {
    /// This environment variable.
    Variable(String),
    /// `helve login`.
    Stored,
}

/// Where a request goes, and what it shows there.
#[derive(Clone)]
pub(crate) struct RequestAddress {
    pub(crate) url: Url,
    pub(crate) headers: Vec<(String, Secret)>,
}

impl RequestAddress {
    /// Takes everything secret out of a text.
    pub(crate) fn scrub(&self, text: &str) -> String {
        let of_headers = self.headers.iter().filter(|(name, _)| !PUBLIC_HEADERS.contains(&name.as_str()));
        let of_headers = of_headers.flat_map(|(_, secret)| {
            let whole = secret.reveal();
            [whole, whole.strip_prefix("Bearer ").unwrap_or(whole)].map(str::to_owned)
        });
        let of_query = self.url.query_pairs().map(|(_, value)| value.into_owned());
        let password = self.url.password().map(str::to_owned);
        let basic =
            password.as_ref().map(|password| STANDARD.encode(format!("{}:{password}", self.url.username())));
        let secrets = of_headers.chain(of_query).chain(basic).chain(password);
        secrets.map(Secret::new).fold(text.to_owned(), |text, secret| secret.scrub(&text))
    }
}

/// Headers of ours that hold nothing secret.
const PUBLIC_HEADERS: [&str; 2] = ["anthropic-version", "anthropic-beta"];

/// Shows nothing secret: not the key, not the headers, not what stands in the address beside host and path.
impl fmt::Debug for ModelProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("name", &self.name)
            .field("wire", &self.wire)
            .field("address", &self.shown_url())
            .field("auth", &self.auth)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl ModelProvider {
    /// Whether it can be used; a server on this machine may still not be running.
    pub fn has_key(&self) -> bool {
        self.auth == KeyPlacement::None || self.key.is_some()
    }

    /// The base URL without what may be secret in it: a password, a query.
    pub fn shown_url(&self) -> String {
        let mut url = self.base_url.clone();
        // Only addresses without a host refuse these, and no base URL is one.
        let _ = (url.set_username(""), url.set_password(None));
        url.set_query(None);
        url.set_fragment(None);
        url.to_string()
    }

    /// Where an answer is asked for.
    pub(crate) fn address(&self, model: &str) -> RequestAddress {
        let mut url = self.base_url.clone();
        match self.wire {
            WireProtocol::Messages => self.extend(&mut url, "v1", &["messages"]),
            WireProtocol::Chat => self.extend(&mut url, "", &["chat", "completions"]),
            WireProtocol::Responses => self.extend(&mut url, "", &["responses"]),
            WireProtocol::Gemini => {
                self.extend(&mut url, "v1beta", &["models", &format!("{model}:streamGenerateContent")]);
                url.query_pairs_mut().append_pair("alt", "sse");
            }
        }
        self.signed(url)
    }

    /// Where the server tells which models it has.
    pub(crate) fn models_address(&self) -> RequestAddress {
        let mut url = self.base_url.clone();
        let version = match self.wire {
            WireProtocol::Messages => "v1",
            WireProtocol::Gemini => "v1beta",
            WireProtocol::Chat | WireProtocol::Responses => "",
        };
        self.extend(&mut url, version, &["models"]);
        self.signed(url)
    }

    /// Adds to the path. The version is added where the base URL has none.
    fn extend(&self, url: &mut Url, version: &str, path: &[&str]) {
        let last =
            url.path_segments().and_then(|segments| segments.rev().find(|segment| !segment.is_empty()));
        let is_version = |segment: &str| {
            segment.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let has_version = last.is_some_and(is_version);
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty();
            if !has_version && !version.is_empty() {
                segments.push(version);
            }
            segments.extend(path);
        }
    }

    fn signed(&self, mut url: Url) -> RequestAddress {
        let mut headers = Vec::new();
        if self.wire == WireProtocol::Messages {
            headers.push(("anthropic-version".to_owned(), Secret::new("2023-06-01")));
            // Lets models think between calls; those that always do ignore it.
            headers.push(("anthropic-beta".to_owned(), Secret::new("interleaved-thinking-2025-05-14")));
        }
        if let Some(ProviderKey { secret, .. }) = &self.key {
            match self.auth {
                KeyPlacement::Bearer => {
                    headers.push((
                        "authorization".to_owned(),
                        Secret::new(format!("Bearer {}", secret.reveal().trim())),
                    ));
                }
                KeyPlacement::XApiKey => headers.push(("x-api-key".to_owned(), secret.clone())),
                KeyPlacement::ApiKey => headers.push(("api-key".to_owned(), secret.clone())),
                KeyPlacement::XGoogApiKey => headers.push(("x-goog-api-key".to_owned(), secret.clone())),
                KeyPlacement::Query => {
                    url.query_pairs_mut().append_pair("key", secret.reveal().trim());
                }
                KeyPlacement::None => {}
            }
        }
        headers.extend(self.headers.iter().cloned());
        RequestAddress { url, headers }
    }
}
