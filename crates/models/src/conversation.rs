//! A conversation on its way to one model: each message is encoded once, and requests grow only at their end (law 3).

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use helve_protocol::{BlobStore, Message, MessageId};
use serde_json::Value;

use crate::WireProtocol;
use crate::prefix::{self, PrefixBreak};
use crate::prompt::ModelPrompt;
use crate::wire::WireFormat;
use crate::wire::dialect::ModelDialect;
use crate::wire::wire_message::{PrecedingItem, WirePart, to_wire};

/// What is said to one model, as bytes.
#[derive(Debug)]
pub struct Conversation {
    dialect: ModelDialect,
    /// Everything before the messages.
    head: Vec<u8>,
    /// The same while the model goes on with calls that another one made, where that must be told otherwise.
    calm_head: Option<Vec<u8>>,
    work: CallAuthor,
    /// The messages, with commas between.
    messages: Vec<u8>,
    places: Vec<MessageSpan>,
    before: PrecedingItem,
    last: Option<SentRequest>,
    change: PrefixChange,
}

/// Whether the next request may begin otherwise than the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixChange {
    /// An event says why: cleared, summarised, rewound, another model, other tools.
    Explained,
    /// It must not.
    Unexplained,
}

/// Whose calls the model goes on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallAuthor {
    ThisModel,
    /// Another model made the last calls, so that this one's thoughts about them are missing.
    AnotherModel,
}

/// Where a message lies.
#[derive(Clone, Debug)]
struct MessageSpan {
    message: MessageId,
    bytes: Range<usize>,
    /// Where a cache mark can be put.
    mark: Option<usize>,
}

/// The last request.
#[derive(Clone, Debug)]
struct SentRequest {
    body: Bytes,
    marks: Vec<Range<usize>>,
    /// How many messages it held.
    messages: usize,
    work: CallAuthor,
    settled: Option<StablePrefix>,
}

/// How far a body stands for good: the next one has the same bytes up to there.
#[derive(Clone, Copy, Debug)]
struct StablePrefix {
    body: usize,
    /// The same place in the messages.
    messages: usize,
}

/// A body that was put together.
struct AssembledBody {
    body: Bytes,
    marks: Vec<Range<usize>>,
    settled: Option<StablePrefix>,
}

/// A request, ready to be sent.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// The JSON that is sent, in the form of the model's wire.
    pub body: Bytes,
    /// How many segments it shares with the request before: what stands before the messages is one, each message is one.
    pub kept: usize,
    /// The segments after those, without cache marks.
    pub segments: Vec<Bytes>,
    /// Where cache marks stand in the body.
    pub marks: Vec<usize>,
    /// Set if it begins otherwise than the request before and nobody said why.
    pub broken: Option<PrefixBreak>,
}

impl ModelRequest {
    /// The body of a request out of all its segments and the places of its marks.
    pub fn assemble_body(segments: &[&[u8]], marks: &[usize]) -> Vec<u8> {
        let (head, messages) =
            segments.split_first().map_or((&[][..], segments), |(head, rest)| (&**head, rest));
        let mut plain = head.to_vec();
        if !head.ends_with(b"[") && messages.iter().any(|message| !message.is_empty()) {
            plain.push(b',');
        }
        messages.iter().for_each(|message| plain.extend_from_slice(message));
        plain.extend_from_slice(BODY_END);
        let mut body = Vec::with_capacity(plain.len() + marks.len() * CACHE_MARK.len());
        let mut rest = &plain[..];
        for mark in marks {
            let (before, after) =
                rest.split_at_checked(mark.saturating_sub(body.len())).unwrap_or((rest, &[]));
            body.extend_from_slice(before);
            body.extend_from_slice(CACHE_MARK);
            rest = after;
        }
        body.extend_from_slice(rest);
        body
    }
}

const CACHE_MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;
const BODY_END: &[u8] = b"]}";

impl Conversation {
    /// A conversation without messages.
    pub fn new(dialect: ModelDialect, prompt: &ModelPrompt) -> Conversation {
        let mut conversation = Conversation {
            dialect,
            head: Vec::new(),
            calm_head: None,
            work: CallAuthor::ThisModel,
            messages: Vec::new(),
            places: Vec::new(),
            before: PrecedingItem::Other,
            last: None,
            change: PrefixChange::Unexplained,
        };
        conversation.set_prompt(prompt);
        conversation
    }

    fn set_prompt(&mut self, prompt: &ModelPrompt) {
        self.head = self.head_of(prompt);
        let calm = self.dialect.wire.prompt_without_thinking(prompt, &self.dialect);
        self.calm_head = calm.map(|calm| self.head_of(&calm));
    }

    fn head(&self) -> &[u8] {
        let calm = self.calm_head.as_ref().filter(|_| self.work == CallAuthor::AnotherModel);
        calm.unwrap_or(&self.head)
    }

    /// How many messages are encoded.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether no message is encoded yet.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Adds a message at the end. It must not change any more.
    pub fn push(&mut self, message: &Message, blobs: &dyn BlobStore) {
        let said = to_wire(message, &self.dialect, blobs);
        let items = self.dialect.wire.items(&said, &self.dialect, self.before);
        self.work = match &said.pieces[..] {
            [] => self.work,
            [WirePart::Thinking { .. }, ..] => CallAuthor::ThisModel,
            _ if said.results.is_empty() => CallAuthor::ThisModel,
            _ => CallAuthor::AnotherModel,
        };
        if !items.is_empty() {
            self.before = if said.results.is_empty() { PrecedingItem::Other } else { PrecedingItem::Results };
        }
        let start = self.messages.len();
        for item in &items {
            if !self.messages.is_empty() {
                self.messages.push(b',');
            }
            write(item, &mut self.messages);
        }
        let mark = (self.dialect.wire == WireProtocol::Messages && takes_mark(items.last())).then(|| {
            // The last block of the last item: its brace, the list's bracket, the item's brace.
            self.messages.len().saturating_sub(3)
        });
        self.places.push(MessageSpan { message: message.id, bytes: start..self.messages.len(), mark });
    }

    /// The last message that was encoded.
    pub fn last_message(&self) -> Option<MessageId> {
        self.places.last().map(|place| place.message)
    }

    /// Begins anew: what was said is another, or how it is said.
    pub fn renew(&mut self, dialect: ModelDialect, prompt: &ModelPrompt, change: PrefixChange) {
        self.dialect = dialect;
        self.set_prompt(prompt);
        self.work = CallAuthor::ThisModel;
        self.messages.clear();
        self.places.clear();
        self.before = PrecedingItem::Other;
        if let Some(last) = &mut self.last {
            last.settled = None;
        }
        if change == PrefixChange::Explained {
            self.change = change;
        }
    }

    /// The request with everything that was added, compared with the one before.
    pub fn next_request(&mut self) -> ModelRequest {
        let mut change = std::mem::replace(&mut self.change, PrefixChange::Unexplained);
        let last = self.last.take();
        if self.calm_head.is_some() && last.as_ref().is_some_and(|last| last.work != self.work) {
            change = PrefixChange::Explained;
        }
        let (assembled, kept, broken) = match last {
            // Only something was added: what was sent stands, and costs nothing again.
            Some(SentRequest { body, messages, work, settled: Some(settled), .. }) if work == self.work => {
                let marks = self.message_marks(Some(messages));
                (self.assembled(marks, Some((body, settled))), Some(messages), None)
            }
            Some(last) => {
                let assembled = self.assembled(self.message_marks(Some(last.messages)), None);
                let AssembledBody { body, marks, .. } = &assembled;
                let keeps = prefix::begins_with((&last.body, &last.marks), (body, marks), BODY_END.len());
                let is_broken = !keeps && change == PrefixChange::Unexplained;
                let broken = is_broken.then(|| prefix::explain(&last.body, body));
                (assembled, Some(last.messages).filter(|_| keeps), broken)
            }
            None => (self.assembled(self.message_marks(None), None), None, None),
        };
        let AssembledBody { body, marks, settled } = assembled;
        let request = ModelRequest {
            body: body.clone(),
            kept: kept.map_or(0, |messages| messages + 1),
            segments: self.segments_after(kept),
            marks: marks.iter().map(|mark| mark.start).collect(),
            broken,
        };
        let (messages, work) = (self.places.len(), self.work);
        self.last = Some(SentRequest { body, marks, messages, work, settled });
        request
    }

    fn segments_after(&self, kept: Option<usize>) -> Vec<Bytes> {
        let head = kept.is_none().then(|| Bytes::copy_from_slice(self.head()));
        let new = self.places.get(kept.unwrap_or(0)..).unwrap_or_default();
        let new = new.iter().filter_map(|place| self.messages.get(place.bytes.clone()));
        head.into_iter().chain(new.map(Bytes::copy_from_slice)).collect()
    }

    fn head_of(&self, prompt: &ModelPrompt) -> Vec<u8> {
        let (field, fields) = self.dialect.wire.head(prompt, &self.dialect);
        let mut head = Vec::new();
        head.push(b'{');
        for (key, value) in &fields {
            write(&Value::from(key.as_str()), &mut head);
            head.push(b':');
            write(value, &mut head);
            head.push(b',');
        }
        write(&Value::from(field), &mut head);
        head.extend_from_slice(b":[");
        if let Some(opening) = self.dialect.wire.opening(prompt) {
            write(&opening, &mut head);
        }
        head
    }

    /// The body, with cache marks at these places of the messages. It goes on from the last one as far as that stands.
    fn assembled(&self, message_marks: Vec<usize>, last: Option<(Bytes, StablePrefix)>) -> AssembledBody {
        let head = self.head();
        let head_mark = self.head_mark().map(|at| at..at + CACHE_MARK.len());
        let mut marks: Vec<Range<usize>> = head_mark.clone().into_iter().collect();
        let mut written = 0;
        let mut body = match last {
            Some((last, settled)) => {
                written = settled.messages;
                // Nobody else has it any more, so that nothing need be copied.
                let mut body = last.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
                body.truncate(settled.body);
                body
            }
            None => {
                let mut body =
                    BytesMut::with_capacity(head.len() + self.messages.len() + 5 * CACHE_MARK.len());
                let at = head_mark.map_or(head.len(), |mark| mark.start);
                let (before, after) = head.split_at_checked(at).unwrap_or((head, &[]));
                body.extend_from_slice(before);
                if !marks.is_empty() {
                    body.extend_from_slice(CACHE_MARK);
                }
                body.extend_from_slice(after);
                if !head.ends_with(b"[") && !self.messages.is_empty() {
                    body.extend_from_slice(b",");
                }
                body
            }
        };
        let mut settled = None;
        for at in message_marks {
            body.extend_from_slice(self.messages.get(written..at).unwrap_or_default());
            // The next request may have its marks from here on.
            settled.get_or_insert(StablePrefix { body: body.len(), messages: at });
            marks.push(body.len()..body.len() + CACHE_MARK.len());
            body.extend_from_slice(CACHE_MARK);
            written = at;
        }
        body.extend_from_slice(self.messages.get(written..).unwrap_or_default());
        let end = StablePrefix { body: body.len(), messages: self.messages.len() };
        // Before the first message stands no comma.
        let settled = (!self.messages.is_empty()).then(|| settled.unwrap_or(end));
        body.extend_from_slice(BODY_END);
        AssembledBody { body: body.freeze(), marks, settled }
    }

    /// Behind the system prompt, which stands last before the messages: so tools and system are cached together, for
    /// other conversations too.
    fn head_mark(&self) -> Option<usize> {
        const AFTER_SYSTEM: &[u8] = br#"}],"messages":["#;
        let head = self.head();
        let has_system = self.dialect.wire == WireProtocol::Messages && head.ends_with(AFTER_SYSTEM);
        has_system.then(|| head.len().saturating_sub(AFTER_SYSTEM.len()))
    }

    /// Where the last request ended, so that it is found however much came since; and where this one ends, so that the next
    /// one finds it. Anthropic looks back twenty blocks from a mark, and takes four marks.
    fn message_marks(&self, sent: Option<usize>) -> Vec<usize> {
        let end_of = |count: usize| self.places.get(..count)?.iter().rev().find_map(|place| place.mark);
        let last = sent.and_then(end_of);
        let this = end_of(self.places.len());
        let mut marks: Vec<usize> = last.into_iter().chain(this).collect();
        marks.dedup();
        marks
    }
}

/// Thinking can't be marked, and neither can nothing.
fn takes_mark(item: Option<&Value>) -> bool {
    let block = item.and_then(|item| item.get("content")?.as_array()?.last());
    block.and_then(|block| block.get("type")?.as_str()).is_some_and(|kind| !kind.contains("thinking"))
}

/// A JSON value can always be written to memory.
fn write(value: &Value, to: &mut Vec<u8>) {
    to.extend_from_slice(value.to_string().as_bytes());
}
