//! The four protocols that models' servers speak. Each is read and written by pure functions.

mod blocks;
mod chat;
pub(crate) mod dialect;
mod effort;
mod gemini;
mod messages;
mod responses;
pub(crate) mod wire_message;

use helve_protocol::WireProtocol;
use serde_json::{Map, Value};

use crate::prompt::ModelPrompt;
use crate::{ModelEvent, StreamError, surrogates};
use dialect::ModelDialect;
use wire_message::{PrecedingItem, WireMessage};

/// What the code of each protocol does.
pub(crate) trait WireFormat {
    /// Reads a response of this protocol.
    fn decoder(self) -> WireDecoder;

    /// The field that the conversation stands in, and what stands before it.
    fn head(self, prompt: &ModelPrompt, dialect: &ModelDialect) -> (&'static str, Map<String, Value>);

    /// The prompt to use while the model goes on with what another one began, if it must be another.
    fn prompt_without_thinking(self, prompt: &ModelPrompt, dialect: &ModelDialect) -> Option<ModelPrompt>;

    /// What the conversation begins with, whoever speaks first.
    fn opening(self, prompt: &ModelPrompt) -> Option<Value>;

    /// A message, as the items that stand for it on this wire.
    fn items(self, said: &WireMessage<'_>, dialect: &ModelDialect, before: PrecedingItem) -> Vec<Value>;
}

impl WireFormat for WireProtocol {
    fn decoder(self) -> WireDecoder {
        match self {
            WireProtocol::Messages => WireDecoder::Messages(messages::MessagesReader::default()),
            WireProtocol::Chat => WireDecoder::Chat(chat::ChatReader::default()),
            WireProtocol::Responses => WireDecoder::Responses(responses::ResponsesReader::default()),
            WireProtocol::Gemini => WireDecoder::Gemini(gemini::GeminiReader::default()),
        }
    }

    fn head(self, prompt: &ModelPrompt, dialect: &ModelDialect) -> (&'static str, Map<String, Value>) {
        match self {
            WireProtocol::Messages => messages::head(prompt, dialect),
            WireProtocol::Chat => chat::head(prompt, dialect),
            WireProtocol::Responses => responses::head(prompt, dialect),
            WireProtocol::Gemini => gemini::head(prompt, dialect),
        }
    }

    fn prompt_without_thinking(self, prompt: &ModelPrompt, dialect: &ModelDialect) -> Option<ModelPrompt> {
        match self {
            WireProtocol::Messages => messages::disable_thinking(prompt, dialect),
            WireProtocol::Chat | WireProtocol::Responses | WireProtocol::Gemini => None,
        }
    }

    fn opening(self, prompt: &ModelPrompt) -> Option<Value> {
        match self {
            WireProtocol::Chat => chat::system(prompt),
            WireProtocol::Messages | WireProtocol::Responses | WireProtocol::Gemini => None,
        }
    }

    fn items(self, said: &WireMessage<'_>, dialect: &ModelDialect, before: PrecedingItem) -> Vec<Value> {
        match self {
            WireProtocol::Messages => messages::items(said, dialect, before),
            WireProtocol::Chat => chat::items(said, dialect, before),
            WireProtocol::Responses => responses::items(said, dialect, before),
            WireProtocol::Gemini => gemini::items(said, dialect, before),
        }
    }
}

/// Whether the answer is whole. It only ever goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AnswerProgress {
    /// More must come.
    Incomplete,
    /// If the server closes the stream here, between two events, the answer is whole: this wire, or some servers of it,
    /// have no other sign.
    MayEnd,
    /// The server said that this is all.
    Ended,
}

/// Whether the model wants tools to run. Two wires do not say so when they stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CallPresence {
    #[default]
    Absent,
    Present,
}

#[derive(Debug)]
pub(crate) enum WireDecoder {
    Messages(messages::MessagesReader),
    Chat(chat::ChatReader),
    Responses(responses::ResponsesReader),
    Gemini(gemini::GeminiReader),
}

impl WireDecoder {
    /// Reads the data of one event.
    pub(crate) fn read(
        &mut self,
        data: &str,
        said: &mut Vec<ModelEvent>,
    ) -> Result<AnswerProgress, StreamError> {
        match self {
            WireDecoder::Messages(reader) => reader.read(&parse(data)?, said),
            WireDecoder::Chat(reader) if data.trim() == "[DONE]" => {
                if reader.has_answered() {
                    Ok(AnswerProgress::Ended)
                } else {
                    Err(StreamError::CutOff)
                }
            }
            WireDecoder::Chat(reader) => reader.read(&parse(data)?, said),
            WireDecoder::Responses(_) if data.trim() == "[DONE]" => Ok(AnswerProgress::Incomplete),
            WireDecoder::Responses(reader) => reader.read(&parse(data)?, said),
            WireDecoder::Gemini(reader) => reader.read(&parse(data)?, said),
        }
    }
}

fn parse(data: &str) -> Result<Value, StreamError> {
    let read = serde_json::from_str(data).ok();
    let mended = || serde_json::from_str(&surrogates::with_stand_ins(data)?).ok();
    read.or_else(mended).ok_or_else(|| StreamError::NotJson(data.chars().take(200).collect()))
}

/// The error that an object tells of in its field `error`, as all the wires write it.
pub(crate) fn server_error(object: &Value) -> Option<StreamError> {
    let error = object.get("error").filter(|error| !error.is_null())?;
    let text = |name: &str| error.get(name).and_then(Value::as_str).map(str::to_owned);
    let message =
        text("message").or_else(|| error.as_str().map(str::to_owned)).unwrap_or_else(|| error.to_string());
    let message = with_cause(message, error.get("metadata"));
    let code = error.get("code").filter(|code| code.is_string() || code.is_number());
    let code = code.map(|code| code.to_string().replace('"', ""));
    // One is general, the other particular, and servers do not agree which is which.
    let mut kinds: Vec<String> = [text("type"), text("status"), code].into_iter().flatten().collect();
    kinds.dedup();
    let kind = (!kinds.is_empty()).then(|| kinds.join("/"));
    Some(StreamError::Server { kind, message })
}

/// An error's message with what lies behind it: a service that passes requests on, such as OpenRouter, puts the words of the
/// provider that failed beside its own, which say nothing.
fn with_cause(message: String, metadata: Option<&Value>) -> String {
    let raw = metadata.and_then(|metadata| metadata.get("raw")).filter(|raw| !raw.is_null());
    let body = raw.and_then(|raw| match raw {
        Value::String(text) => serde_json::from_str(text).ok(),
        whole => Some(whole.clone()),
    });
    let told = body.as_ref().and_then(error_of).and_then(|error| match error {
        StreamError::Server { message, .. } => Some(message),
        _ => None,
    });
    let cause = told.or_else(|| raw.map(|raw| raw.as_str().map_or_else(|| raw.to_string(), str::to_owned)));
    let Some(cause) = cause.map(|cause| cause.trim().to_owned()).filter(|cause| !cause.is_empty()) else {
        return message;
    };
    let cause: String = cause.chars().take(MAX_CAUSE_CHARS).collect();
    let provider = metadata.and_then(|metadata| metadata.get("provider_name")).and_then(Value::as_str);
    match provider.filter(|provider| !provider.is_empty()) {
        Some(provider) => format!("{message}: {provider}: {cause}"),
        None => format!("{message}: {cause}"),
    }
}

/// More of another server's words nobody reads.
const MAX_CAUSE_CHARS: usize = 500;

/// The error that a whole body tells of, in whichever form.
pub(crate) fn error_of(body: &Value) -> Option<StreamError> {
    let body = body.as_array().and_then(|list| list.first()).unwrap_or(body);
    let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
    let bare = || {
        let message = text("message").or_else(|| text("detail")).or_else(|| {
            let detail = body.get("detail").filter(|detail| !detail.is_null());
            detail.map(Value::to_string)
        })?;
        Some(StreamError::Server { kind: text("type").or_else(|| text("code")), message })
    };
    server_error(body).or_else(bare)
}

fn text_at<'a>(value: &'a Value, path: &str) -> Option<&'a str> {
    value.pointer(path).and_then(Value::as_str)
}

/// The first of some numbers that is there.
fn number_at(value: &Value, paths: &[&str]) -> Option<u64> {
    paths.iter().find_map(|path| value.pointer(path).and_then(Value::as_u64))
}
