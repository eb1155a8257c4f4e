//! Why a request got no answer, and what that means: whether it is tried again, and what a person can do.

use std::fmt;
use std::time::Duration;

use helve_protocol::{Timestamp, TokenUsage};

use crate::StreamError;

/// A request that got no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestFailure {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// What happened, in words. Never holds a key.
    pub text: String,
    /// The HTTP status, if the server answered with one.
    pub status: Option<u16>,
    /// How long the server wants us to wait.
    pub wait: Option<Duration>,
    /// Set if it could have been tried again, but only after longer than we wait.
    pub resets: Option<Timestamp>,
    /// What the server had counted before it failed; that is paid for.
    pub spent: TokenUsage,
}

/// What kind of failure a request met, which decides whether it is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The key is missing, wrong or not allowed to do this.
    Auth,
    /// Nothing is left to pay with.
    Billing,
    /// The server knows no such model or address.
    NotFound,
    /// The server does not take the request.
    BadRequest,
    /// A script has no step for the request.
    NoStep,
    /// The conversation is longer than the model can read.
    TooLong,
    /// The user has sent too much in too short a time.
    RateLimited,
    /// The server has too much to do.
    Overloaded,
    /// The server broke.
    Server,
    /// The connection could not be made, or broke.
    Network,
    /// Nothing listens there: the local server is not running.
    NotRunning,
    /// The server can't prove who it is.
    Certificate,
    /// Nothing came for too long.
    Timeout,
    /// The answer ended before its end.
    CutOff,
    /// What came is no answer on this wire.
    Garbled,
    /// Something else than a model's server answers there.
    NotAModel,
    /// More came than any answer needs.
    TooLarge,
    /// Somebody stopped it.
    Interrupted,
}

impl FailureKind {
    /// Whether the same request may succeed a little later.
    pub fn is_retryable(self) -> bool {
        use FailureKind::*;
        match self {
            RateLimited | Overloaded | Server | Network | Timeout | CutOff | Garbled => true,
            Auth | Billing | NotFound | BadRequest | NoStep | TooLong | NotRunning | Certificate
            | NotAModel | TooLarge | Interrupted => false,
        }
    }

    /// Whether another model may take over. Where the mistake is ours, or somebody stopped it, it may not.
    pub fn allows_fallback(self) -> bool {
        use FailureKind::*;
        match self {
            Billing | NotFound | RateLimited | Overloaded | Server | Network | NotRunning | Certificate
            | Timeout | CutOff | Garbled | NotAModel | TooLarge => true,
            Auth | BadRequest | NoStep | TooLong | Interrupted => false,
        }
    }

    /// What a person can do about it.
    pub fn hint(self) -> &'static str {
        use FailureKind::*;
        match self {
            Auth => {
                "Check the key: `helve models list` shows where it comes from, `helve login PROVIDER` stores another."
            }
            Billing => "Add credit at the provider, or choose another model with -m.",
            NotFound => "Check the model's name (`helve models list`) and the base URL.",
            BadRequest => "The server's own words may say why; another model may work (-m).",
            NoStep => "Add a step to the script that answers this.",
            TooLong => "Compact the conversation, or choose a model with a larger context.",
            RateLimited => "Wait, or choose another model with -m.",
            Overloaded | Server => "Try again later, or choose another model with -m.",
            Network => "Check the connection, the proxy (HTTPS_PROXY) and the base URL.",
            NotRunning => "Start the server, or choose another model with -m.",
            Certificate => "If a proxy stands between, set SSL_CERT_FILE to its certificate.",
            Timeout => {
                "Check the connection; for a slow model raise timeouts.first_byte, timeouts.idle or timeouts.keep_alive."
            }
            CutOff | Garbled | TooLarge => "Try again; if it stays so, choose another model with -m.",
            NotAModel => "Check the base URL, and whether a proxy or a log-in page stands between.",
            Interrupted => "Send it again when you like.",
        }
    }
}

impl RequestFailure {
    /// A failure of which no more is known than its kind and what happened.
    pub fn new(kind: FailureKind, text: impl Into<String>) -> RequestFailure {
        RequestFailure {
            kind,
            text: text.into(),
            status: None,
            wait: None,
            resets: None,
            spent: TokenUsage::default(),
        }
    }

    pub(crate) fn interrupted() -> RequestFailure {
        RequestFailure::new(FailureKind::Interrupted, "interrupted")
    }

    /// What an HTTP status means, with what the body said about it.
    pub(crate) fn from_status(status: u16, told: Option<&StreamError>) -> RequestFailure {
        let (kind, message) = match told {
            Some(StreamError::Server { kind, message }) => (kind.as_deref().unwrap_or(""), message.as_str()),
            _ => ("", ""),
        };
        let message: String = message.chars().take(MAX_ERROR_TEXT_CHARS).collect();
        let text = if message.is_empty() {
            format!("the server answered with status {status}")
        } else {
            format!("the server answered with status {status}: {message}")
        };
        let kind = match kind_from_status(status) {
            // The words of an ordinary limit may speak of billing too, so only the kind counts.
            FailureKind::RateLimited if is_billing_kind(kind) => FailureKind::Billing,
            FailureKind::BadRequest => kind_from_text(kind, &message).unwrap_or(FailureKind::BadRequest),
            // Some servers call it their own failure. To send the same again would help nothing.
            FailureKind::Server if is_context_overflow(kind, &message) => FailureKind::TooLong,
            other => other,
        };
        RequestFailure { status: Some(status), ..RequestFailure::new(kind, text) }
    }

    /// What went wrong in the middle of an answer.
    pub(crate) fn from_stream_error(error: &StreamError) -> RequestFailure {
        let kind = match error {
            StreamError::CutOff => FailureKind::CutOff,
            StreamError::NotJson(_) | StreamError::NotText | StreamError::Restarted(_) => {
                FailureKind::Garbled
            }
            StreamError::TooLarge => FailureKind::TooLarge,
            StreamError::NotAStream(_) => FailureKind::NotAModel,
            StreamError::Server { kind, message } => {
                kind_from_text(kind.as_deref().unwrap_or(""), message).unwrap_or(FailureKind::Server)
            }
        };
        RequestFailure::new(kind, error.to_string())
    }
}

fn kind_from_status(status: u16) -> FailureKind {
    match status {
        401 | 403 => FailureKind::Auth,
        402 => FailureKind::Billing,
        404 | 405 => FailureKind::NotFound,
        408 => FailureKind::Timeout,
        413 => FailureKind::TooLong,
        429 => FailureKind::RateLimited,
        503 | 529 => FailureKind::Overloaded,
        500.. => FailureKind::Server,
        _ => FailureKind::BadRequest,
    }
}

/// More of a server's words nobody reads.
const MAX_ERROR_TEXT_CHARS: usize = 600;

/// What the words of an error mean, where the status says nothing.
fn kind_from_text(kind: &str, message: &str) -> Option<FailureKind> {
    let kind = kind.to_ascii_lowercase();
    let message = message.to_ascii_lowercase();
    let kind_has = |words: &[&str]| words.iter().any(|word| kind.contains(word));
    let message_has = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let status =
        kind.split('/').find_map(|word| word.parse::<u16>().ok()).filter(|code| (400..600).contains(code));
    if is_context_overflow(&kind, &message) {
        Some(FailureKind::TooLong)
    } else if kind_has(&["tool_use_failed"]) {
        // The model wrote a call that its server could not read. It may do better.
        Some(FailureKind::Garbled)
    } else if is_billing_kind(&kind) || message_has(&BILLING_PHRASES) {
        Some(FailureKind::Billing)
    } else if kind_has(&["rate_limit", "resource_exhausted", "too_many", "429"]) {
        Some(FailureKind::RateLimited)
    } else if kind_has(&["overloaded", "unavailable", "529", "503"]) || message_has(&["overloaded"]) {
        Some(FailureKind::Overloaded)
    } else if kind_has(&["authentication", "permission", "unauthenticated", "invalid_api_key"])
        || message_has(&["api key not valid", "invalid api key"])
    {
        Some(FailureKind::Auth)
    } else if kind_has(&["not_found"]) || message_has(&["model not found", "does not exist"]) {
        Some(FailureKind::NotFound)
    } else if kind_has(&["invalid_request", "invalid_argument", "invalid_prompt"]) {
        Some(FailureKind::BadRequest)
    } else if kind_has(&["timeout", "deadline"]) {
        Some(FailureKind::Timeout)
    } else {
        status.map(kind_from_status)
    }
}

/// Whether an error says that the conversation is longer than the model can read.
fn is_context_overflow(kind: &str, message: &str) -> bool {
    let (kind, message) = (kind.to_ascii_lowercase(), message.to_ascii_lowercase());
    CONTEXT_TOO_LONG_PHRASES.iter().any(|phrase| message.contains(phrase))
        || CONTEXT_TOO_LONG_KINDS.iter().any(|known| kind.contains(known))
}

const CONTEXT_TOO_LONG_KINDS: [&str; 3] =
    ["context_length", "string_above_max_length", "exceed_context_size"];

const CONTEXT_TOO_LONG_PHRASES: [&str; 12] = [
    "prompt is too long",
    "maximum context length",
    "context length exceeded",
    "context window",
    "exceeds the context",
    "context size",
    "exceed_context_size",
    "input is too long",
    "maximum number of tokens allowed",
    "exceed context limit",
    "maximum model length",
    "greater than the context length",
];

const BILLING_PHRASES: [&str; 3] =
    ["credit balance is too low", "insufficient balance", "insufficient credits"];

fn is_billing_kind(kind: &str) -> bool {
    ["insufficient_quota", "billing", "insufficient_balance"].iter().any(|word| kind.contains(word))
}

impl fmt::Display for RequestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for RequestFailure {}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(kind: &str, message: &str) -> StreamError {
        StreamError::Server { kind: Some(kind.to_owned()), message: message.to_owned() }
    }

    #[test]
    fn a_status_and_its_words_say_what_happened() {
        use FailureKind::*;
        for (status, kind, message, expected) in [
            (401, "authentication_error", "invalid x-api-key", Auth),
            (403, "permission_error", "", Auth),
            (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", Auth),
            (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", TooLong),
            (400, "context_length_exceeded", "too many", TooLong),
            (400, "invalid_request_error", "Your credit balance is too low to access the API", Billing),
            (400, "invalid_request_error", "messages: at least one message is required", BadRequest),
            (404, "not_found_error", "model: x", NotFound),
            (408, "", "", Timeout),
            (429, "rate_limit_error", "slow down", RateLimited),
            (429, "insufficient_quota", "You exceeded your current quota", Billing),
            (
                429,
                "RESOURCE_EXHAUSTED",
                "You exceeded your current quota, please check your plan and billing details.",
                RateLimited,
            ),
            (400, "invalid_request_error/context_length_exceeded", "Please reduce the length", TooLong),
            (400, "tool_use_failed", "Failed to call a function.", Garbled),
            (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).", RateLimited),
            (500, "api_error", "", Server),
            (502, "", "", Server),
            (503, "UNAVAILABLE", "", Overloaded),
            (529, "overloaded_error", "Overloaded", Overloaded),
            (302, "", "", BadRequest),
        ] {
            assert_eq!(
                RequestFailure::from_status(status, Some(&told(kind, message))).kind,
                expected,
                "{status} {kind} {message}"
            );
        }
    }

    /// The words of the four wires, and of servers that speak one of them in their own way.
    #[test]
    fn every_server_that_finds_the_conversation_too_long_is_understood() {
        for (server, status, kind, message) in [
            ("Messages", 400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
            (
                "Messages, with the output",
                400,
                "invalid_request_error",
                "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
            ),
            ("Messages, in bytes", 413, "request_too_large", "Request exceeds the maximum size"),
            (
                "Chat",
                400,
                "invalid_request_error/context_length_exceeded",
                "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens.",
            ),
            (
                "Responses",
                400,
                "invalid_request_error/context_length_exceeded",
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
            ),
            (
                "Gemini",
                400,
                "INVALID_ARGUMENT",
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            ),
            (
                "llama.cpp",
                400,
                "exceed_context_size_error",
                "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
            ),
            (
                "llama.cpp, older",
                500,
                "server_error",
                "the request exceeds the available context size. try increasing the context size",
            ),
            (
                "vLLM",
                400,
                "BadRequestError",
                "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
            ),
            (
                "vLLM, newer",
                400,
                "BadRequestError",
                "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
            ),
            (
                "OpenRouter",
                400,
                "400",
                "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens.",
            ),
            (
                "LM Studio",
                400,
                "",
                "The number of tokens to keep from the initial prompt is greater than the context length.",
            ),
        ] {
            let failure = RequestFailure::from_status(status, Some(&told(kind, message)));
            assert_eq!(failure.kind, FailureKind::TooLong, "{server}");
            assert!(!failure.kind.is_retryable(), "{server}");
            if status != 413 {
                let failure = RequestFailure::from_stream_error(&told(kind, message));
                assert_eq!(failure.kind, FailureKind::TooLong, "{server}, in the stream");
            }
        }
        let other = RequestFailure::from_status(500, Some(&told("server_error", "the model crashed")));
        assert_eq!(other.kind, FailureKind::Server);
    }

    #[test]
    fn an_error_in_the_stream_says_what_happened() {
        use FailureKind::*;
        for (kind, message, expected) in [
            ("overloaded_error", "Overloaded", Overloaded),
            ("rate_limit_exceeded", "", RateLimited),
            ("UNAVAILABLE", "The model is overloaded.", Overloaded),
            ("server_error", "", Server),
            ("something_new", "", Server),
            ("400", "bad", BadRequest),
            ("401", "who are you?", Auth),
            ("429", "", RateLimited),
            ("invalid_request_error", "prompt is too long", TooLong),
        ] {
            assert_eq!(RequestFailure::from_stream_error(&told(kind, message)).kind, expected, "{kind}");
        }
    }
}
