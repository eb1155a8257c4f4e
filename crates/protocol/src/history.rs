//! Events in, conversation out.

use std::borrow::Cow;
use std::collections::HashMap;

use uuid::Uuid;

use crate::{
    Body, CallId, CompactionEnded, Event, Message, MessageId, Part, PatchPart, ResponseEnded, RewindScope,
    Rewound, Role, Seq, StepId, TextPart, Timestamp, ToolOutput, ToolPart, ToolState,
};

/// A session's conversation: a fold over its journal.
///
/// It takes any events in any state, after whatever crash. Events that stand at or before the last one seen are
/// ignored, and so is what speaks of things that were never heard of.
#[derive(Clone, Debug, Default)]
pub struct History {
    entries: Vec<Entry>,
    last: Seq,
    ids: HashMap<MessageId, usize>,
    steps: HashMap<StepId, usize>,
    calls: HashMap<CallId, CallPlace>,
    /// What the model sees. It grows with the events, so that a request costs what is new and not what there is.
    view: Vec<Seen>,
    partial: Option<String>,
}

#[derive(Clone, Debug)]
struct Entry {
    /// Where the message began.
    seq: Seq,
    message: Message,
    progress: Progress,
}

/// An assistant's message takes one answer, however often it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Open,
    Complete,
}

/// A message in the model's view, by the place of its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Entry(usize),
    /// A word of ours before a message of the model's that nobody asked for.
    Prompting(usize),
}

impl Seen {
    fn place(self) -> usize {
        match self {
            Seen::Entry(place) | Seen::Prompting(place) => place,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct CallPlace {
    entry: usize,
    part: usize,
}

impl History {
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> History {
        let mut history = History::default();
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
        last.is_none_or(|last| last.message.role == Role::Assistant && !calls_tools(&last.message))
    }

    /// The calls that have no result, as they wait to be run.
    pub fn unfinished(&self) -> Vec<ToolPart> {
        let parts = self.messages().flat_map(|message| &message.parts);
        let open = parts.filter_map(|part| match part {
            Part::Tool(tool) if !tool.state.is_ended() => Some(tool),
            _ => None,
        });
        open.map(|tool| ToolPart { state: ToolState::Pending, ..ToolPart::clone(tool) }).collect()
    }

    /// What had come of an answer that is not complete.
    pub fn partial(&self) -> Option<&str> {
        self.partial.as_deref()
    }

    pub fn apply(&mut self, event: &Event) {
        if event.seq <= self.last {
            return;
        }
        self.last = event.seq;
        match &event.body {
            Body::UserMessage(said) => self.begin_complete(event, said.message, said.parts.clone()),
            Body::NoteAdded(note) => {
                self.begin_complete(event, note.message, vec![Part::Text(TextPart::note(note.text.clone()))]);
            }
            Body::StepStarted(step) => {
                self.partial = None;
                let entry = self.assistant(event, step.message);
                if let (Some(entry), Some(id)) = (entry, event.step) {
                    self.steps.insert(id, entry);
                    self.attach(event, Part::StepStart { step: id, model: step.model.clone() });
                }
            }
            Body::ResponsePartial(partial) => self.partial.get_or_insert_default().push_str(&partial.text),
            Body::ResponseEnded(response) => self.answer(event, response),
            Body::RetryScheduled(retry) => {
                self.partial = None;
                let (attempt, delay_ms, reason) = (retry.attempt, retry.delay_ms, retry.reason.clone());
                self.attach(event, Part::Retry { attempt, delay_ms, reason });
            }
            Body::ToolStarted(started) => {
                if let Some(state) = self.call(started.call) {
                    // A call that has ended already stays ended.
                    let _ = state.advance(ToolState::Running { since: event.time });
                }
            }
            Body::ToolEnded(ended) => self.end_call(ended.call, &ended.end),
            Body::FilesChanged(files) => {
                self.attach(event, Part::Patch(PatchPart { changes: files.changes.clone() }));
            }
            Body::SnapshotTaken(snapshot) => {
                self.attach(event, Part::Snapshot { tree: snapshot.tree.clone() })
            }
            Body::SubagentStarted(started) => self.attach(
                event,
                Part::Subtask {
                    session: started.session,
                    agent: started.agent.clone(),
                    description: started.description.clone(),
                },
            ),
            Body::AgentSwitched(switch) => self.attach(event, Part::Agent { name: switch.to.clone() }),
            Body::StepEnded(end) => {
                if let Some(step) = event.step {
                    self.attach(
                        event,
                        Part::StepFinish { step, usage: end.usage, cost: end.cost, stop: end.stop },
                    );
                }
            }
            Body::CompactionEnded(compaction) => self.compact(event, compaction),
            Body::OutputsPruned(pruned) => pruned.calls.iter().for_each(|call| self.prune(*call, event.time)),
            Body::Rewound(rewound) => self.rewind(rewound),
            _ => {}
        }
    }

    /// The conversation as the model sees it (law 2): it begins with the user, every message says something, every
    /// tool call has its result, and the model never follows itself without a result or a word between. Parts
    /// for people only may stand in it; [`Part::is_for_model`] tells them apart.
    pub fn for_model(&self) -> Vec<Cow<'_, Message>> {
        self.for_model_from(0)
    }

    /// The same without the first so many messages.
    pub fn for_model_from(&self, first: usize) -> Vec<Cow<'_, Message>> {
        debug_assert_eq!(self.view, self.view_anew(), "the view has not followed the events");
        let seen = self.view.get(first..).unwrap_or_default().iter();
        seen.filter_map(|seen| {
            let message = &self.entries.get(seen.place())?.message;
            Some(match seen {
                Seen::Entry(_) => settled(message),
                Seen::Prompting(_) => Cow::Owned(self.prompting(message)),
            })
        })
        .collect()
    }

    /// Brings the view up to an entry that says something now.
    fn show(&mut self, place: usize) {
        match self.view.last() {
            Some(last) if last.place() >= place => self.view = self.view_anew(),
            _ => push_seen(&mut self.view, &self.entries, place),
        }
    }

    fn view_anew(&self) -> Vec<Seen> {
        let mut view = Vec::with_capacity(self.view.len());
        self.in_view().for_each(|place| push_seen(&mut view, &self.entries, place));
        view
    }

    /// Stands before a message of the model's that nobody asked for. Its id is the other's complement: always the same, and
    /// never one that a session drew.
    fn prompting(&self, next: &Message) -> Message {
        let mut id = !next.id.uuid().as_u128();
        while self.ids.contains_key(&MessageId::from(Uuid::from_u128(id))) {
            id = id.wrapping_add(1);
        }
        let parts = vec![Part::Text(TextPart::note("Go on."))];
        Message { id: Uuid::from_u128(id).into(), role: Role::User, time: next.time, parts }
    }

    /// The last summary, if there is one, and what it does not cover.
    fn in_view(&self) -> impl Iterator<Item = usize> {
        let entries = self.entries.iter().enumerate();
        let summary =
            entries.clone().rev().find_map(|(place, entry)| Some((place, covered(&entry.message)?)));
        let (summary, through) = summary.unzip();
        let rest = entries.filter(move |(_, entry)| {
            through.is_none_or(|through| entry.seq > through) && covered(&entry.message).is_none()
        });
        summary.into_iter().chain(rest.map(|(place, _)| place))
    }

    fn begin(&mut self, event: &Event, id: MessageId, role: Role, progress: Progress) -> Option<usize> {
        if self.ids.contains_key(&id) {
            return None;
        }
        let place = self.entries.len();
        self.ids.insert(id, place);
        let message = Message { id, role, time: event.time, parts: Vec::new() };
        self.entries.push(Entry { seq: event.seq, message, progress });
        Some(place)
    }

    fn begin_complete(&mut self, event: &Event, id: MessageId, parts: Vec<Part>) {
        if let Some(entry) = self.begin(event, id, Role::User, Progress::Complete) {
            self.extend(entry, parts);
        }
    }

    /// The entry of an answer: begun already, or begun now.
    fn assistant(&mut self, event: &Event, id: MessageId) -> Option<usize> {
        match self.ids.get(&id).copied() {
            Some(place) => {
                let role = self.entries.get(place)?.message.role;
                (role == Role::Assistant).then_some(place)
            }
            None => self.begin(event, id, Role::Assistant, Progress::Open),
        }
    }

    fn answer(&mut self, event: &Event, response: &ResponseEnded) {
        self.partial = None;
        let Some(place) = self.assistant(event, response.message) else { return };
        let Some(entry) = self.entries.get_mut(place) else { return };
        if entry.progress == Progress::Complete {
            return;
        }
        entry.progress = Progress::Complete;
        self.extend(place, response.parts.clone());
    }

    /// Adds parts to a message. A call that was heard of before is left out: it has its result there.
    fn extend(&mut self, place: usize, parts: Vec<Part>) {
        let Some(entry) = self.entries.get_mut(place) else { return };
        for mut part in parts {
            if let Part::Tool(tool) = &mut part {
                let here = CallPlace { entry: place, part: entry.message.parts.len() };
                if entry.message.role == Role::User || self.calls.contains_key(&tool.call) {
                    continue;
                }
                if !tool.state.is_ended() {
                    tool.state = ToolState::Pending;
                }
                self.calls.insert(tool.call, here);
            }
            // A summary replaces what was said, so only a compaction may bring one.
            if !matches!(part, Part::Compaction { .. }) {
                entry.message.parts.push(part);
            }
        }
        self.show(place);
    }

    /// Puts a part where the event's step is told, or else at the end.
    fn attach(&mut self, event: &Event, part: Part) {
        let of_step = event.step.and_then(|step| self.steps.get(&step)).copied();
        let place = of_step.or_else(|| self.entries.len().checked_sub(1));
        if let Some(entry) = place.and_then(|place| self.entries.get_mut(place)) {
            entry.message.parts.push(part);
        }
    }

    fn call(&mut self, call: CallId) -> Option<&mut ToolState> {
        let place = self.calls.get(&call)?;
        match self.entries.get_mut(place.entry)?.message.parts.get_mut(place.part)? {
            Part::Tool(tool) => Some(&mut tool.state),
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

    fn prune(&mut self, call: CallId, time: Timestamp) {
        if let Some(ToolState::Completed { output: ToolOutput { pruned, .. } }) = self.call(call) {
            pruned.get_or_insert(time);
        }
    }

    fn compact(&mut self, event: &Event, compaction: &CompactionEnded) {
        let Some(summary) = compaction.summary.clone().filter(|summary| !summary.trim().is_empty()) else {
            return;
        };
        // An answer that is still on its way can't have been summarised.
        let on_its_way =
            self.entries.last().filter(|entry| entry.progress == Progress::Open).map(|entry| entry.seq);
        let last_said = on_its_way.map_or(event.seq, |seq| Seq(seq.0.saturating_sub(1)));
        let through = compaction.through.min(last_said);
        let place = self.begin(event, compaction.message, Role::User, Progress::Complete);
        if let Some(entry) = place.and_then(|place| self.entries.get_mut(place)) {
            entry.message.parts.push(Part::Compaction { summary, through });
        }
        self.view = self.view_anew();
    }

    /// Drops the messages that began later. One that had begun stays whole, with the results that came afterwards.
    fn rewind(&mut self, rewound: &Rewound) {
        if rewound.scope == RewindScope::Files {
            return;
        }
        let kept = self.entries.partition_point(|entry| entry.seq <= rewound.to);
        self.partial = None;
        for entry in self.entries.drain(kept..) {
            self.ids.remove(&entry.message.id);
            for part in &entry.message.parts {
                match part {
                    Part::Tool(tool) => drop(self.calls.remove(&tool.call)),
                    Part::StepStart { step, .. } => drop(self.steps.remove(step)),
                    _ => {}
                }
            }
        }
        self.view = self.view_anew();
    }
}

/// Adds an entry to a view, if it says something, with a word before it where one is missing.
fn push_seen(view: &mut Vec<Seen>, entries: &[Entry], place: usize) {
    let Some(message) =
        entries.get(place).map(|entry| &entry.message).filter(|message| says_something(message))
    else {
        return;
    };
    let last = view.last().and_then(|last| Some(&entries.get(last.place())?.message));
    let expects_user = last.is_none_or(|last| last.role == Role::Assistant && !calls_tools(last));
    if message.role == Role::Assistant && expects_user {
        view.push(Seen::Prompting(place));
    }
    view.push(Seen::Entry(place));
}

/// The last event that a message's summary covers, if it is one.
fn covered(message: &Message) -> Option<Seq> {
    message.parts.iter().find_map(|part| match part {
        Part::Compaction { through, .. } => Some(*through),
        _ => None,
    })
}

/// Thinking alone is no message: no provider takes it back without what it led to.
fn says_something(message: &Message) -> bool {
    message.parts.iter().any(|part| part.is_for_model() && !matches!(part, Part::Reasoning(_)))
}

fn calls_tools(message: &Message) -> bool {
    message.parts.iter().any(|part| matches!(part, Part::Tool(_)))
}

fn settled(message: &Message) -> Cow<'_, Message> {
    let is_open = |part: &Part| matches!(part, Part::Tool(tool) if !tool.state.is_ended());
    if !message.parts.iter().any(is_open) {
        return Cow::Borrowed(message);
    }
    let mut message = message.clone();
    for part in &mut message.parts {
        if let Part::Tool(tool) = part {
            tool.state = tool.state.settled();
        }
    }
    Cow::Owned(message)
}
