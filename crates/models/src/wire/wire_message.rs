//! A message as every wire needs it: what the model may see of it, in the form that any provider takes.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use helve_protocol::{
    BlobStore, FilePart, Message, MessagePart, MessageRole, TextKind, TextPart, ToolPart, ToolState,
};
use serde_json::{Value, json};

use super::WireProtocol;
use super::dialect::{MediaSupport, ModelDialect};
use crate::quirks::CallIdFormat;

/// One message. The results of its calls stand behind it.
pub(crate) struct WireMessage<'a> {
    pub(crate) role: MessageRole,
    pub(crate) pieces: Vec<WirePart<'a>>,
    pub(crate) results: Vec<WireCallResult<'a>>,
}

pub(crate) enum WirePart<'a> {
    Text {
        text: Cow<'a, str>,
        sealed: &'a Value,
    },
    /// Thinking that this model wants back.
    Thinking {
        text: &'a str,
        sealed: &'a Value,
    },
    File(WireFile<'a>),
    Call(WireCall<'a>),
}

/// A file in a form that the model can look at.
pub(crate) struct WireFile<'a> {
    pub(crate) kind: WireFileKind,
    pub(crate) name: &'a str,
    pub(crate) media_type: &'a str,
    pub(crate) base64: String,
}

impl WireFile<'_> {
    pub(crate) fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.media_type, self.base64)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WireFileKind {
    Image,
    Document,
}

pub(crate) struct WireCall<'a> {
    pub(crate) id: String,
    /// Whether the id is the server's own, and not drawn by us.
    pub(crate) origin: AuthorModel,
    pub(crate) name: Cow<'a, str>,
    pub(crate) input: Cow<'a, Value>,
    pub(crate) sealed: &'a Value,
}

impl WireCall<'_> {
    pub(crate) fn arguments(&self) -> String {
        self.input.to_string()
    }
}

pub(crate) struct WireCallResult<'a> {
    pub(crate) id: String,
    pub(crate) origin: AuthorModel,
    pub(crate) name: Cow<'a, str>,
    pub(crate) text: Cow<'a, str>,
    pub(crate) is_error: bool,
    pub(crate) files: Vec<WireFile<'a>>,
}

/// What stands before a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrecedingItem {
    Results,
    Other,
}

/// Whose words a message is, as this model sees it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuthorModel {
    /// This very model said it, so it gets back what it sealed.
    Same,
    /// Another one did, whose seals mean nothing here.
    Other,
}

const NO_SEAL: &Value = &Value::Null;

pub(crate) fn to_wire<'a>(
    message: &'a Message,
    dialect: &ModelDialect,
    blobs: &dyn BlobStore,
) -> WireMessage<'a> {
    let origin = origin(message, dialect);
    let mut said = WireMessage { role: message.role, pieces: Vec::new(), results: Vec::new() };
    for part in message.parts.iter().filter(|part| part.is_for_model()) {
        match part {
            MessagePart::Text(text) => said.pieces.push(spoken(text, origin)),
            MessagePart::Reasoning(thought) if origin == AuthorModel::Same => {
                said.pieces.push(WirePart::Thinking { text: &thought.text, sealed: &thought.sealed });
            }
            MessagePart::File(file) => said.pieces.push(attached(file, dialect, blobs)),
            MessagePart::Tool(tool) => {
                said.pieces.push(WirePart::Call(call(tool, origin, dialect)));
                said.results.push(result(tool, origin, dialect, blobs));
            }
            _ => {}
        }
    }
    said
}

fn origin(message: &Message, dialect: &ModelDialect) -> AuthorModel {
    // A model that failed may have begun; the last one answered.
    let model = message.parts.iter().rev().find_map(|part| match part {
        MessagePart::StepStart { model, .. } => Some(model),
        _ => None,
    });
    if model == Some(&dialect.name) { AuthorModel::Same } else { AuthorModel::Other }
}

/// What Helve adds is told apart from what the user said.
fn spoken(part: &TextPart, origin: AuthorModel) -> WirePart<'_> {
    match part.kind {
        TextKind::Said => {
            let sealed = if origin == AuthorModel::Same { &part.sealed } else { NO_SEAL };
            WirePart::Text { text: Cow::Borrowed(&part.text), sealed }
        }
        TextKind::Note => {
            WirePart::Text { text: format!("<note>\n{}\n</note>", part.text).into(), sealed: NO_SEAL }
        }
    }
}

fn attached<'a>(part: &'a FilePart, dialect: &ModelDialect, blobs: &dyn BlobStore) -> WirePart<'a> {
    match file(part, dialect, blobs) {
        Ok(file) => WirePart::File(file),
        Err(words) => WirePart::Text { text: words.into(), sealed: NO_SEAL },
    }
}

/// A file that the model can look at, or words in its place.
fn file<'a>(
    part: &'a FilePart,
    dialect: &ModelDialect,
    blobs: &dyn BlobStore,
) -> Result<WireFile<'a>, String> {
    let FilePart { name, media_type, content } = part;
    let is_text = media_type.starts_with("text/");
    let (kind, sees) = match media_type.as_str() {
        "image/png" | "image/jpeg" | "image/gif" | "image/webp" => (WireFileKind::Image, dialect.images),
        "application/pdf" => (WireFileKind::Document, dialect.documents),
        _ => (WireFileKind::Document, MediaSupport::No),
    };
    if sees == MediaSupport::No && !is_text {
        return Err(format!("[The file {name} ({media_type}) is not shown: this model can't look at it.]"));
    }
    let content =
        blobs.get(*content).map_err(|_| format!("[The file {name} is lost and can't be shown.]"))?;
    if is_text {
        return Err(format!("<file name={name:?}>\n{}\n</file>", String::from_utf8_lossy(&content)));
    }
    Ok(WireFile { kind, name, media_type, base64: STANDARD.encode(content) })
}

fn call<'a>(tool: &'a ToolPart, origin: AuthorModel, dialect: &ModelDialect) -> WireCall<'a> {
    let input = match &tool.input {
        object @ Value::Object(_) => Cow::Borrowed(object),
        // No provider takes back anything but an object.
        other => Cow::Owned(json!({"unreadable": other})),
    };
    let sealed = if origin == AuthorModel::Same { &tool.sealed } else { NO_SEAL };
    let (id, origin) = call_id(tool, origin, dialect);
    WireCall { id, origin, name: plain_name(&tool.name), input, sealed }
}

fn result<'a>(
    tool: &'a ToolPart,
    origin: AuthorModel,
    dialect: &ModelDialect,
    blobs: &dyn BlobStore,
) -> WireCallResult<'a> {
    let told = tool.state.for_model();
    let mut text = told.text;
    let mut files = Vec::new();
    if let ToolState::Completed { output } = &tool.state {
        for part in &output.files {
            match file(part, dialect, blobs) {
                Ok(file) => files.push(file),
                Err(words) => text = format!("{text}\n{words}").into(),
            }
        }
    }
    if text.trim().is_empty() && files.is_empty() {
        text = "[The tool gave no output.]".into();
    }
    let (id, origin) = call_id(tool, origin, dialect);
    WireCallResult { id, origin, name: plain_name(&tool.name), text, is_error: told.is_error, files }
}

/// The server's own id for a call if it is this server's, and in a form that it takes back; else ours.
fn call_id(tool: &ToolPart, origin: AuthorModel, dialect: &ModelDialect) -> (String, AuthorModel) {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let fits = |id: &&String| {
        let takes =
            |byte: u8| is_plain(byte) || (dialect.wire != WireProtocol::Messages && byte.is_ascii_graphic());
        (1..=256).contains(&id.len()) && id.bytes().all(takes)
    };
    let theirs = tool.wire_id.as_ref().filter(|_| origin == AuthorModel::Same);
    match (dialect.quirks.call_ids, theirs.filter(fits)) {
        (CallIdFormat::Any, Some(id)) => (id.clone(), AuthorModel::Same),
        (CallIdFormat::Any, None) => (tool.call.to_string(), AuthorModel::Other),
        (CallIdFormat::NineAlphanumeric, Some(id))
            if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) =>
        {
            (id.clone(), AuthorModel::Same)
        }
        (CallIdFormat::NineAlphanumeric, _) => (nine_letters(tool), AuthorModel::Other),
    }
}

/// The end of our own id is the part that is drawn at random.
fn nine_letters(tool: &ToolPart) -> String {
    let id: String = tool.call.to_string().chars().filter(char::is_ascii_alphanumeric).collect();
    id.get(id.len().saturating_sub(9)..).unwrap_or(&id).to_owned()
}

/// Models make up names; what goes back must be one that providers take.
fn plain_name(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if (1..=64).contains(&name.len()) && name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let plain: String = name.chars().take(64).map(|c| if is_plain(c) { c } else { '_' }).collect();
    if plain.is_empty() { Cow::Borrowed("unnamed") } else { Cow::Owned(plain) }
}
