//! Failures, in the words of each wire.

use serde_json::{Value, json};

use super::step::{ScriptStep, ScriptedReply};
use crate::WireProtocol;

/// An HTTP response that is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureResponse {
    /// The HTTP status.
    pub status: u16,
    /// Names and values of its headers.
    pub headers: Vec<(String, String)>,
    /// The error in the wire's own form.
    pub body: Vec<u8>,
}

/// The failure that a step wants instead of an answer.
pub fn failure_response(step: &ScriptStep, wire: WireProtocol) -> Option<FailureResponse> {
    let ScriptedReply::Fail(fail) = &step.reply else { return None };
    let message = fail.message.as_deref().unwrap_or("The script fails here.");
    let mut failure = FailureResponse::new(wire, fail.status, fail.kind.as_deref(), message);
    failure.headers.extend(fail.headers.iter().cloned());
    Some(failure)
}

impl FailureResponse {
    /// A failure as a server of this wire tells it. Without a kind it is the one that the status means there.
    pub fn new(wire: WireProtocol, status: u16, kind: Option<&str>, message: &str) -> FailureResponse {
        let kind = kind.unwrap_or_else(|| usual_kind(wire, status));
        let body = match wire {
            WireProtocol::Messages => {
                json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_script"})
            }
            WireProtocol::Chat | WireProtocol::Responses => {
                json!({"error": {"message": message, "type": kind, "param": null, "code": usual_code(status)}})
            }
            WireProtocol::Gemini => json!({"error": {"code": status, "message": message, "status": kind}}),
        };
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        FailureResponse { status, headers, body: body.to_string().into_bytes() }
    }
}

fn usual_kind(wire: WireProtocol, status: u16) -> &'static str {
    match wire {
        WireProtocol::Messages => match status {
            401 => "authentication_error",
            402 => "billing_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            504 => "timeout_error",
            529 => "overloaded_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        },
        WireProtocol::Chat | WireProtocol::Responses => match status {
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        },
        WireProtocol::Gemini => match status {
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            429 => "RESOURCE_EXHAUSTED",
            503 => "UNAVAILABLE",
            504 => "DEADLINE_EXCEEDED",
            500.. => "INTERNAL",
            _ => "INVALID_ARGUMENT",
        },
    }
}

fn usual_code(status: u16) -> Value {
    match status {
        401 => json!("invalid_api_key"),
        404 => json!("model_not_found"),
        429 => json!("rate_limit_exceeded"),
        _ => Value::Null,
    }
}
