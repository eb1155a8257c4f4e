//! What was said and done, as it happens. An item stays in the live area until it is final, and is printed once. The pager
//! reads it from the journal.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use helve_protocol::{
    Body, CallId, ErrorRaised, Event, FilesChanged, Message, Outcome, Part, Role, Seq, StopReason, TextKind,
};
use helve_widgets::Theme;
use ratatui::text::Line;

use crate::cards::Card;
use crate::items::{Answer, Item, OWN_MARK, Remark, SAID_MARK, Thinking, Tone};
use crate::kept::{Entry, Kept};
use crate::words::{duration, one_line};

/// So many files that somebody else changed are named.
const MOST_OUTSIDE: usize = 10;
/// Of a long message of the user's, so many lines are printed.
const MOST_SAID: usize = 12;
/// Thinking that is longer is not kept.
const MOST_THOUGHT: usize = 256 << 10;

#[derive(Debug, Default)]
pub(crate) struct Transcript {
    items: VecDeque<Item>,
    pub(crate) kept: Kept,
    /// The last event.
    last: Seq,
    /// The last answer as it was written.
    pub(crate) last_answer: String,
    /// What has come of the answer that is not whole.
    streamed: String,
    /// Something was printed already, so that the next item stands apart.
    has_printed: bool,
}

impl Transcript {
    /// One line of ours.
    pub(crate) fn remark(&mut self, tone: Tone, text: impl Into<String>) {
        let mark = match tone {
            Tone::Said => SAID_MARK,
            Tone::Note | Tone::Good => "· ",
            Tone::Warning | Tone::Error => "! ",
        };
        let lines = text.into().lines().map(|line| (line.to_owned(), tone)).collect();
        self.items.push_back(Item::Remark(Remark { mark, lines }));
    }

    /// A command of the user's, and the last of what it put out.
    pub(crate) fn ran(&mut self, command: &str, shown: Vec<String>, tone: Tone, entry: Entry) {
        let output = shown.into_iter().map(|line| (line, tone));
        let lines = std::iter::once((command.to_owned(), Tone::Said)).chain(output).collect();
        self.items.push_back(Item::Remark(Remark { mark: OWN_MARK, lines }));
        // No journal has it.
        self.kept.push(Entry { seq: self.last, ..entry });
    }

    /// What was said before this process.
    pub(crate) fn recall(&mut self, messages: &[Message]) {
        for message in messages {
            for part in &message.parts {
                self.recall_part(message.role, part);
            }
        }
    }

    fn recall_part(&mut self, role: Role, part: &Part) {
        match (role, part) {
            (_, Part::Text(text)) if text.kind == TextKind::Note => {}
            (Role::User, Part::Text(text)) => self.said(&text.text),
            (Role::User, Part::File(file)) => self.said(&format!("[{}]", one_line(&file.name))),
            (Role::Assistant, Part::Text(text)) => {
                let mut answer = Answer::default();
                answer.push(&text.text);
                answer.finish();
                self.items.push_back(Item::Answer(Box::new(answer)));
            }
            (_, Part::Tool(tool)) => self.items.push_back(Item::Card(Box::new(Card::recorded(tool)))),
            _ => {}
        }
    }

    fn said(&mut self, text: &str) {
        let all: Vec<&str> = text.trim_end().lines().collect();
        let mut shown = all.get(..all.len().min(MOST_SAID)).unwrap_or_default().join("\n");
        if all.len() > MOST_SAID {
            shown.push_str(&format!("\n… {} more lines", all.len() - MOST_SAID));
        }
        self.remark(Tone::Said, shown);
    }

    pub(crate) fn apply(&mut self, event: &Event, now: Instant) {
        self.last = event.seq;
        match &event.body {
            Body::UserMessage(message) => {
                message.parts.iter().for_each(|part| self.recall_part(Role::User, part));
            }
            Body::ThinkingStarted(_) => self.think("", now),
            Body::ThinkingDelta(delta) => self.think(&delta.text, now),
            Body::ThinkingEnded(_) => self.end_thinking(now),
            Body::TextDelta(delta) => {
                self.end_thinking(now);
                self.answer(&delta.text);
            }
            Body::CallAnnounced(call) => {
                self.end_thinking(now);
                self.end_answer();
                self.items.push_back(Item::Card(Box::new(Card::announced(call.call, &call.name))));
            }
            Body::ResponseEnded(ended) => self.settle(&ended.parts, ended.stop, now),
            Body::RetryScheduled(retry) => {
                let dropped = self.drop_answer(now);
                let seconds = duration(Duration::from_millis(retry.delay_ms));
                let dropped = if dropped { " What was said so far does not count." } else { "" };
                let text = format!("trying again in {seconds}: {}.{dropped}", one_line(&retry.reason));
                self.remark(Tone::Warning, text);
            }
            Body::ToolStarted(started) => {
                let time = event.time;
                self.with_card(started.call, |card| card.begin(now, time));
            }
            Body::ToolOutputDelta(delta) => self.with_card(delta.call, |card| card.add_output(&delta.text)),
            Body::FilesChanged(files) => self.files_changed(files),
            Body::ToolEnded(ended) => {
                let time = event.time;
                self.with_card(ended.call, |card| card.finish(&ended.end, time));
            }
            Body::StepEnded(_) => self.end_step(now),
            Body::TurnEnded(ended) => {
                self.end_step(now);
                self.turn_ended(ended.outcome);
            }
            body => self.tell(body),
        }
    }

    /// What is told in a line.
    fn tell(&mut self, body: &Body) {
        match body {
            Body::ModelSwitched(switch) if switch.reason == "chosen" => {
                self.remark(Tone::Note, format!("{} answers from here on", switch.to));
            }
            Body::ModelSwitched(switch) => {
                let reason = one_line(&switch.reason);
                self.remark(
                    Tone::Warning,
                    format!("{} takes over from {}: {reason}", switch.to, switch.from),
                );
            }
            Body::SessionRenamed(renamed) => {
                self.remark(Tone::Note, format!("the session is called {}", one_line(&renamed.title)));
            }
            Body::CompactionStarted(_) => self.remark(Tone::Note, "summing the conversation up"),
            Body::CompactionEnded(ended) if ended.summary.is_some() => {
                let (before, after) = (ended.tokens_before, ended.tokens_after);
                let text = format!("the conversation was summed up: {before} tokens are {after} now");
                self.remark(Tone::Note, text);
            }
            Body::CompactionEnded(_) => self.remark(Tone::Warning, "the conversation could not be summed up"),
            Body::OutputsPruned(pruned) => {
                self.remark(Tone::Note, format!("{} old outputs were cleared", pruned.calls.len()));
            }
            Body::CommandRefused(refused) => {
                let command = refused.command.replace('_', " ");
                self.remark(Tone::Warning, format!("{command}: {}", one_line(&refused.why)));
            }
            Body::LimitReached(limit) => {
                let text = format!("{} /continue goes on.", one_line(&limit.text));
                self.remark(Tone::Warning, text);
            }
            Body::ErrorRaised(error) => self.error(error),
            _ => {}
        }
    }

    fn error(&mut self, error: &ErrorRaised) {
        let lines = vec![
            (one_line(&error.what), Tone::Error),
            (format!("why: {}", one_line(&error.why)), Tone::Note),
            (format!("do:  {}", one_line(&error.hint)), Tone::Note),
        ];
        self.items.push_back(Item::Remark(Remark { mark: "! ", lines }));
    }

    fn turn_ended(&mut self, outcome: Outcome) {
        let text = match outcome {
            Outcome::Cancelled => "stopped; say what to do instead",
            Outcome::Denied => "something had to be asked, and nobody could answer",
            _ => return,
        };
        self.remark(Tone::Warning, text);
    }

    fn files_changed(&mut self, files: &FilesChanged) {
        match files.call {
            Some(call) => self.with_card(call, |card| card.add_changes(files)),
            None => {
                // What is kept there, a person has just asked for.
                let others = files.changes.iter().filter(|change| !change.path.starts_with(".helve/"));
                for change in others.take(MOST_OUTSIDE) {
                    let path = one_line(&change.path);
                    self.remark(Tone::Note, format!("{path} was changed by somebody else"));
                }
            }
        }
        let lost = files.not_kept.iter().filter(|lost| !lost.why.contains("ignored"));
        for lost in lost.take(MOST_OUTSIDE) {
            let (path, why) = (one_line(&lost.path), one_line(&lost.why));
            self.remark(Tone::Warning, format!("{path} changed, and can't be undone: {why}"));
        }
    }

    fn with_card(&mut self, call: CallId, act: impl FnOnce(&mut Card)) {
        let card = self.items.iter_mut().rev().find_map(|item| match item {
            Item::Card(card) if card.call == call => Some(card),
            _ => None,
        });
        if let Some(card) = card {
            act(card);
        }
    }

    fn think(&mut self, text: &str, now: Instant) {
        match self.items.back_mut() {
            Some(Item::Thinking(thinking)) if thinking.took.is_none() => {
                if thinking.text.len() + text.len() < MOST_THOUGHT {
                    thinking.text.push_str(text);
                }
            }
            _ => {
                let thinking = Thinking { text: text.to_owned(), since: now, took: None };
                self.items.push_back(Item::Thinking(thinking));
            }
        }
    }

    fn end_thinking(&mut self, now: Instant) {
        for item in &mut self.items {
            if let Item::Thinking(thinking) = item
                && thinking.took.is_none()
            {
                thinking.took = Some(now.saturating_duration_since(thinking.since));
            }
        }
    }

    fn answer(&mut self, text: &str) {
        self.streamed.push_str(text);
        match self.items.back_mut() {
            Some(Item::Answer(answer)) if !answer.is_over => answer.push(text),
            _ => {
                let mut answer = Answer::default();
                answer.push(text);
                self.items.push_back(Item::Answer(Box::new(answer)));
            }
        }
    }

    fn end_answer(&mut self) {
        for item in &mut self.items {
            if let Item::Answer(answer) = item {
                answer.finish();
            }
        }
    }

    /// The answer is whole: what was lost on the way is added.
    fn settle(&mut self, parts: &[Part], stop: StopReason, now: Instant) {
        self.end_thinking(now);
        let text = |part: &Part| match part {
            Part::Text(text) => Some(text.text.clone()),
            _ => None,
        };
        let whole: String = parts.iter().filter_map(text).collect();
        let seen = std::mem::take(&mut self.streamed);
        match whole.strip_prefix(seen.as_str()) {
            Some("") => {}
            Some(rest) => self.answer(rest),
            None if seen.contains(whole.trim()) => {}
            None => {
                self.end_answer();
                self.answer(&whole);
            }
        }
        self.end_answer();
        for part in parts {
            if let Part::Tool(tool) = part {
                if !self.items.iter().any(|item| item.is_card(tool.call)) {
                    self.items.push_back(Item::Card(Box::new(Card::announced(tool.call, &tool.name))));
                }
                self.with_card(tool.call, |card| card.complete(tool));
            }
        }
        (self.last_answer, self.streamed) = (whole, String::new());
        match stop {
            StopReason::MaxTokens => {
                self.remark(Tone::Warning, "the answer reached its limit of tokens and was cut");
            }
            StopReason::Refusal => self.remark(Tone::Warning, "the model refused to answer"),
            _ => {}
        }
    }

    /// An answer that broke off. Says whether something of it was seen.
    fn drop_answer(&mut self, now: Instant) -> bool {
        let seen = !self.streamed.is_empty();
        self.end_step(now);
        seen
    }

    /// Nothing of the step is open any more: what was only announced is gone.
    fn end_step(&mut self, now: Instant) {
        self.end_thinking(now);
        self.end_answer();
        self.streamed.clear();
        self.items.retain(|item| !matches!(item, Item::Card(card) if !card.is_called()));
    }

    /// What can be printed now: everything before the first item that may still change.
    pub(crate) fn take_final(&mut self, width: usize, now: Instant, theme: &Theme) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        while let Some(item) = self.items.front_mut() {
            let is_apart = self.has_printed && item.stands_apart();
            let printed = item.take_final(width, now, theme);
            if !printed.is_empty() {
                if is_apart {
                    lines.push(Line::default());
                }
                self.has_printed = true;
                lines.extend(printed);
            }
            if !item.is_final() {
                break;
            }
            self.items.pop_front();
        }
        lines
    }

    /// What is not final, as it looks now.
    pub(crate) fn live(&self, width: usize, now: Instant, theme: &Theme) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for item in &self.items {
            let shown = item.live(width, now, theme);
            if !shown.is_empty() && item.stands_apart() && (self.has_printed || !lines.is_empty()) {
                lines.push(Line::default());
            }
            lines.extend(shown);
        }
        lines
    }
}
