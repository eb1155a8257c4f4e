//! Events in, conversation out.

use std::borrow::Cow;
use std::collections::HashMap;

use uuid::Uuid;

use crate::{
    CallId, EventBody, Message, MessageId, MessagePart, MessageRole, PatchPart, ResponseEnded, RewindScope,
    Rewound, Seq, SessionEvent, StepId, TextPart, ToolPart, ToolState,
};

/// A session's conversation: a fold over its journal.
///
/// It takes any events in any state, after whatever crash. Events that stand at or before the last one seen are
/// ignored, and so is what speaks of things that were never heard of.
#[derive(Clone, Debug, Default)]
pub struct ConversationHistory {
    entries: Vec<MessageEntry>,
    last: Seq,
    ids: HashMap<MessageId, usize>,
    steps: HashMap<StepId, usize>,
    calls: HashMap<CallId, CallPlace>,
    /// What the model sees. It grows with the events, so that a request costs what is new and not what there is.
    view: Vec<ModelViewEntry>,
    partial: Option<String>,
}

#[derive(Clone, Debug)]
struct MessageEntry {
    /// Where the message began.
    seq: Seq,
    message: Message,
    progress: MessageProgress,
}

/// An assistant's message takes one answer, however often it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessageProgress {
    Open,
    Complete,
}

/// A message in the model's view, by the place of its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModelViewEntry {
    Message(usize),
    /// A word of ours before a message of the model's that nobody asked for.
    InsertedPrompt(usize),
}

impl ModelViewEntry {
    fn place(self) -> usize {
        match self {
            ModelViewEntry::Message(place) | ModelViewEntry::InsertedPrompt(place) => place,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct CallPlace {
    entry: usize,
    part: usize,
}

impl ConversationHistory {
    pub fn of<'a>(events: impl IntoIterator<Item = &'a SessionEvent>) -> ConversationHistory {
        let mut history = ConversationHistory::default();
        events.into_iter().for_each(|event| history.apply(event));
        history
    }

    /// The last event that was taken in.
    pub fn last(&self) -> Seq {
        self.last
    }

    /// The conversation as people see it.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.entries.iter().map(|entry| &entry.message)
    }

    /// Whether the model has had the last word, or nobody has said anything.
    pub fn is_answered(&self) -> bool {
        let last = self.view.last().and_then(|last| self.entries.get(last.place()));
        last.is_none_or(|last| last.message.role == MessageRole::Assistant && !calls_tools(&last.message))
    }

    /// The calls that have no result, as they wait to be run.
    pub fn unfinished_calls(&self) -> Vec<ToolPart> {
        let parts = self.messages().flat_map(|message| &message.parts);
        let open = parts.filter_map(|part| match part {
            MessagePart::Tool(tool) if !tool.state.is_ended() => Some(tool),
            _ => None,
        });
        open.map(|tool| ToolPart { state: ToolState::Pending, ..ToolPart::clone(tool) }).collect()
    }

    /// What had come of an answer that is not complete.
    pub fn partial(&self) -> Option<&str> {
        self.partial.as_deref()
    }

    pub fn apply(&mut self, event: &SessionEvent) {
        if event.seq <= self.last {
            return;
        }
        self.last = event.seq;
        match &event.body {
            EventBody::UserMessage(said) => self.add_user_message(event, said.message, said.parts.clone()),
            EventBody::NoteAdded(note) => {
                self.add_user_message(
                    event,
                    note.message,
                    vec![MessagePart::Text(TextPart::note(note.text.clone()))],
                );
            }
            EventBody::StepStarted(step) => {
                self.partial = None;
                let entry = self.assistant_entry(event, step.message);
                if let (Some(entry), Some(id)) = (entry, event.step) {
                    self.steps.insert(id, entry);
                    self.attach(event, MessagePart::StepStart { step: id, model: step.model.clone() });
                }
            }
            EventBody::ResponsePartial(partial) => {
                self.partial.get_or_insert_default().push_str(&partial.text)
            }
            EventBody::ResponseEnded(response) => self.answer(event, response),
            EventBody::RetryScheduled(retry) => {
                self.partial = None;
                let (attempt, delay_ms, reason) = (retry.attempt, retry.delay_ms, retry.reason.clone());
                self.attach(event, MessagePart::Retry { attempt, delay_ms, reason });
            }
            EventBody::ToolStarted(started) => {
                if let Some(state) = self.call(started.call) {
                    // A call that has ended already stays ended.
                    let _ = state.advance(ToolState::Running { since: event.time });
                }
            }
            EventBody::ToolEnded(ended) => self.end_call(ended.call, &ended.end),
            EventBody::FilesChanged(files) => {
                self.attach(event, MessagePart::Patch(PatchPart { changes: files.changes.clone() }));
            }
            EventBody::StepEnded(end) => {
                if let Some(step) = event.step {
                    self.attach(
                        event,
                        MessagePart::StepFinish { step, usage: end.usage, cost: end.cost, stop: end.stop },
                    );
                }
            }
            EventBody::Rewound(rewound) => self.rewind(rewound),
            _ => {}
        }
    }

    /// The conversation as the model sees it (law 2): it begins with the user, every message says something, every
    /// tool call has its result, and the model never follows itself without a result or a word between. Parts
    /// for people only may stand in it; [`MessagePart::is_for_model`] tells them apart.
    pub fn for_model(&self) -> Vec<Cow<'_, Message>> {
        self.messages_for_model_from(0)
    }

    /// The same without the first so many messages.
    pub fn messages_for_model_from(&self, first: usize) -> Vec<Cow<'_, Message>> {
        debug_assert_eq!(self.view, self.rebuild_view(), "the view has not followed the events");
        let seen = self.view.get(first..).unwrap_or_default().iter();
        seen.filter_map(|seen| {
            let message = &self.entries.get(seen.place())?.message;
            Some(match seen {
                ModelViewEntry::Message(_) => with_calls_settled(message),
                ModelViewEntry::InsertedPrompt(_) => Cow::Owned(self.inserted_prompt(message)),
            })
        })
        .collect()
    }

    /// Brings the view up to an entry that says something now.
    fn show(&mut self, place: usize) {
        match self.view.last() {
            Some(last) if last.place() >= place => self.view = self.rebuild_view(),
            _ => push_visible(&mut self.view, &self.entries, place),
        }
    }

    fn rebuild_view(&self) -> Vec<ModelViewEntry> {
        let mut view = Vec::with_capacity(self.view.len());
        (0..self.entries.len()).for_each(|place| push_visible(&mut view, &self.entries, place));
        view
    }

    /// Stands before a message of the model's that nobody asked for. Its id is the other's complement: always the same, and
    /// never one that a session drew.
    fn inserted_prompt(&self, next: &Message) -> Message {
        let mut id = !next.id.uuid().as_u128();
        while self.ids.contains_key(&MessageId::from(Uuid::from_u128(id))) {
            id = id.wrapping_add(1);
        }
        let parts = vec![MessagePart::Text(TextPart::note("Go on."))];
        Message { id: Uuid::from_u128(id).into(), role: MessageRole::User, time: next.time, parts }
    }

    fn begin(
        &mut self,
        event: &SessionEvent,
        id: MessageId,
        role: MessageRole,
        progress: MessageProgress,
    ) -> Option<usize> {
        if self.ids.contains_key(&id) {
            return None;
        }
        let place = self.entries.len();
        self.ids.insert(id, place);
        let message = Message { id, role, time: event.time, parts: Vec::new() };
        self.entries.push(MessageEntry { seq: event.seq, message, progress });
        Some(place)
    }

    fn add_user_message(&mut self, event: &SessionEvent, id: MessageId, parts: Vec<MessagePart>) {
        if let Some(entry) = self.begin(event, id, MessageRole::User, MessageProgress::Complete) {
            self.extend(entry, parts);
        }
    }

    /// The entry of an answer: begun already, or begun now.
    fn assistant_entry(&mut self, event: &SessionEvent, id: MessageId) -> Option<usize> {
        match self.ids.get(&id).copied() {
            Some(place) => {
                let role = self.entries.get(place)?.message.role;
                (role == MessageRole::Assistant).then_some(place)
            }
            None => self.begin(event, id, MessageRole::Assistant, MessageProgress::Open),
        }
    }

    fn answer(&mut self, event: &SessionEvent, response: &ResponseEnded) {
        self.partial = None;
        let Some(place) = self.assistant_entry(event, response.message) else { return };
        let Some(entry) = self.entries.get_mut(place) else { return };
        if entry.progress == MessageProgress::Complete {
            return;
        }
        entry.progress = MessageProgress::Complete;
        self.extend(place, response.parts.clone());
    }

    /// Adds parts to a message. A call that was heard of before is left out: it has its result there.
    fn extend(&mut self, place: usize, parts: Vec<MessagePart>) {
        let Some(entry) = self.entries.get_mut(place) else { return };
        for mut part in parts {
            if let MessagePart::Tool(tool) = &mut part {
                let here = CallPlace { entry: place, part: entry.message.parts.len() };
                if entry.message.role == MessageRole::User || self.calls.contains_key(&tool.call) {
                    continue;
                }
                if !tool.state.is_ended() {
                    tool.state = ToolState::Pending;
                }
                self.calls.insert(tool.call, here);
            }
            entry.message.parts.push(part);
        }
        self.show(place);
    }

    /// Puts a part where the event's step is told, or else at the end.
    fn attach(&mut self, event: &SessionEvent, part: MessagePart) {
        let of_step = event.step.and_then(|step| self.steps.get(&step)).copied();
        let place = of_step.or_else(|| self.entries.len().checked_sub(1));
        if let Some(entry) = place.and_then(|place| self.entries.get_mut(place)) {
            entry.message.parts.push(part);
        }
    }

    fn call(&mut self, call: CallId) -> Option<&mut ToolState> {
        let place = self.calls.get(&call)?;
        match self.entries.get_mut(place.entry)?.message.parts.get_mut(place.part)? {
            MessagePart::Tool(tool) => Some(&mut tool.state),
            _ => None,
        }
    }

    /// Takes a real result even if the start was never told, and never a second one.
    fn end_call(&mut self, call: CallId, end: &ToolState) {
        if let Some(state) = self.call(call)
            && !state.is_ended()
            && end.is_ended()
        {
            *state = end.clone();
        }
    }

    /// Drops the messages that began later. One that had begun stays whole, with the results that came afterwards.
    fn rewind(&mut self, rewound: &Rewound) {
        // The only scope that there is.
        let RewindScope::Messages = rewound.scope;
        let kept = self.entries.partition_point(|entry| entry.seq <= rewound.to);
        self.partial = None;
        for entry in self.entries.drain(kept..) {
            self.ids.remove(&entry.message.id);
            for part in &entry.message.parts {
                match part {
                    MessagePart::Tool(tool) => drop(self.calls.remove(&tool.call)),
                    MessagePart::StepStart { step, .. } => drop(self.steps.remove(step)),
                    _ => {}
                }
            }
        }
        self.view = self.rebuild_view();
    }
}

/// Adds an entry to a view, if it says something, with a word before it where one is missing.
fn push_visible(view: &mut Vec<ModelViewEntry>, entries: &[MessageEntry], place: usize) {
    let Some(message) =
        entries.get(place).map(|entry| &entry.message).filter(|message| has_model_content(message))
    else {
        return;
    };
    let last = view.last().and_then(|last| Some(&entries.get(last.place())?.message));
    let expects_user = last.is_none_or(|last| last.role == MessageRole::Assistant && !calls_tools(last));
    if message.role == MessageRole::Assistant && expects_user {
        view.push(ModelViewEntry::InsertedPrompt(place));
    }
    view.push(ModelViewEntry::Message(place));
}

/// Thinking alone is no message: no provider takes it back without what it led to.
fn has_model_content(message: &Message) -> bool {
    message.parts.iter().any(|part| part.is_for_model() && !matches!(part, MessagePart::Reasoning(_)))
}

fn calls_tools(message: &Message) -> bool {
    message.parts.iter().any(|part| matches!(part, MessagePart::Tool(_)))
}

fn with_calls_settled(message: &Message) -> Cow<'_, Message> {
    let is_open = |part: &MessagePart| matches!(part, MessagePart::Tool(tool) if !tool.state.is_ended());
    if !message.parts.iter().any(is_open) {
        return Cow::Borrowed(message);
    }
    let mut message = message.clone();
    for part in &mut message.parts {
        if let MessagePart::Tool(tool) = part {
            tool.state = tool.state.settled();
        }
    }
    Cow::Owned(message)
}
