//! What was said and done, as it happens. An item stays in the live area until it is final, and is printed once. The pager
//! reads it from the journal.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use helve_protocol::{
    CallId, ErrorRaised, EventBody, FilesChanged, Message, MessagePart, MessageRole, ModelSwitchReason, Seq,
    SessionEvent, StopReason, TextKind, TurnOutcome, UnkeptReason,
};
use helve_widgets::Theme;
use ratatui::text::Line;

use crate::cards::ToolCard;
use crate::pager_entries::{PagerEntry, UnjournaledEntries};
use crate::text_format::{duration, one_line};
use crate::transcript_items::{
    AnswerItem, RemarkItem, RemarkTone, ThinkingItem, TranscriptItem, USER_COMMAND_MARK, USER_TEXT_MARK,
};

/// So many files that somebody else changed are named.
const MAX_OUTSIDE_FILES: usize = 10;
/// Of a long message of the user's, so many lines are printed.
const MAX_USER_TEXT_LINES: usize = 12;
/// Thinking that is longer is not kept.
const MAX_THINKING_BYTES: usize = 256 << 10;

#[derive(Debug, Default)]
pub(crate) struct Transcript {
    items: VecDeque<TranscriptItem>,
    pub(crate) kept: UnjournaledEntries,
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
    pub(crate) fn remark(&mut self, tone: RemarkTone, text: impl Into<String>) {
        let mark = match tone {
            RemarkTone::UserText => USER_TEXT_MARK,
            RemarkTone::Note | RemarkTone::Success => "· ",
            RemarkTone::Warning | RemarkTone::Error => "! ",
        };
        let lines = text.into().lines().map(|line| (line.to_owned(), tone)).collect();
        self.items.push_back(TranscriptItem::Remark(RemarkItem { mark, lines }));
    }

    /// A command of the user's, and the last of what it put out.
    pub(crate) fn add_user_command(
        &mut self,
        command: &str,
        shown: Vec<String>,
        tone: RemarkTone,
        entry: PagerEntry,
    ) {
        let output = shown.into_iter().map(|line| (line, tone));
        let lines = std::iter::once((command.to_owned(), RemarkTone::UserText)).chain(output).collect();
        self.items.push_back(TranscriptItem::Remark(RemarkItem { mark: USER_COMMAND_MARK, lines }));
        // No journal has it.
        self.kept.push(PagerEntry { seq: self.last, ..entry });
    }

    /// What was said before this process.
    pub(crate) fn add_messages(&mut self, messages: &[Message]) {
        for message in messages {
            for part in &message.parts {
                self.recall_part(message.role, part);
            }
        }
    }

    fn recall_part(&mut self, role: MessageRole, part: &MessagePart) {
        match (role, part) {
            (_, MessagePart::Text(text)) if text.kind == TextKind::Note => {}
            (MessageRole::User, MessagePart::Text(text)) => self.said(&text.text),
            (MessageRole::User, MessagePart::File(file)) => self.said(&format!("[{}]", one_line(&file.name))),
            (MessageRole::Assistant, MessagePart::Text(text)) => {
                let mut answer = AnswerItem::default();
                answer.push(&text.text);
                answer.finish();
                self.items.push_back(TranscriptItem::Answer(Box::new(answer)));
            }
            (_, MessagePart::Tool(tool)) => {
                self.items.push_back(TranscriptItem::Card(Box::new(ToolCard::recorded(tool))))
            }
            _ => {}
        }
    }

    fn said(&mut self, text: &str) {
        let all: Vec<&str> = text.trim_end().lines().collect();
        let mut shown = all.get(..all.len().min(MAX_USER_TEXT_LINES)).unwrap_or_default().join("\n");
        if all.len() > MAX_USER_TEXT_LINES {
            shown.push_str(&format!("\n… {} more lines", all.len() - MAX_USER_TEXT_LINES));
        }
        self.remark(RemarkTone::UserText, shown);
    }

    pub(crate) fn apply(&mut self, event: &SessionEvent, now: Instant) {
        self.last = event.seq;
        match &event.body {
            EventBody::UserMessage(message) => {
                message.parts.iter().for_each(|part| self.recall_part(MessageRole::User, part));
            }
            EventBody::ThinkingStarted(_) => self.think("", now),
            EventBody::ThinkingDelta(delta) => self.think(&delta.text, now),
            EventBody::ThinkingEnded(_) => self.end_thinking(now),
            EventBody::TextDelta(delta) => {
                self.end_thinking(now);
                self.answer(&delta.text);
            }
            EventBody::CallAnnounced(call) => {
                self.end_thinking(now);
                self.end_answer();
                self.items
                    .push_back(TranscriptItem::Card(Box::new(ToolCard::announced(call.call, &call.name))));
            }
            EventBody::ResponseEnded(ended) => self.settle(&ended.parts, ended.stop, now),
            EventBody::RetryScheduled(retry) => {
                let dropped = self.drop_answer(now);
                let seconds = duration(Duration::from_millis(retry.delay_ms));
                let dropped = if dropped { " The partial answer is dropped." } else { "" };
                let text = format!("trying again in {seconds}: {}.{dropped}", one_line(&retry.reason));
                self.remark(RemarkTone::Warning, text);
            }
            EventBody::ToolStarted(started) => {
                let time = event.time;
                self.with_card(started.call, |card| card.begin(now, time));
            }
            EventBody::ToolOutputDelta(delta) => {
                self.with_card(delta.call, |card| card.add_output(&delta.text))
            }
            EventBody::FilesChanged(files) => self.files_changed(files),
            EventBody::ToolEnded(ended) => {
                let time = event.time;
                self.with_card(ended.call, |card| card.finish(&ended.end, time));
            }
            EventBody::StepEnded(_) => self.end_step(now),
            EventBody::TurnEnded(ended) => {
                self.end_step(now);
                self.turn_ended(ended.outcome);
            }
            body => self.tell(body),
        }
    }

    /// What is told in a line.
    fn tell(&mut self, body: &EventBody) {
        match body {
            EventBody::ModelSwitched(switch) if switch.reason == ModelSwitchReason::Chosen => {
                self.remark(RemarkTone::Note, format!("{} answers from here on", switch.to));
            }
            EventBody::ModelSwitched(switch) => {
                self.remark(RemarkTone::Warning, switch.notice());
            }
            EventBody::SessionRenamed(renamed) => {
                self.remark(RemarkTone::Note, format!("the session is called {}", one_line(&renamed.title)));
            }
            EventBody::CommandRefused(refused) => {
                self.remark(RemarkTone::Warning, refused.notice());
            }
            EventBody::LimitReached(limit) => {
                let text = format!("{} /continue resumes.", one_line(&limit.text));
                self.remark(RemarkTone::Warning, text);
            }
            EventBody::ErrorRaised(error) => self.error(error),
            _ => {}
        }
    }

    fn error(&mut self, error: &ErrorRaised) {
        let lines = vec![
            (one_line(&error.what), RemarkTone::Error),
            (format!("why: {}", one_line(&error.why)), RemarkTone::Note),
            (format!("do:  {}", one_line(&error.hint)), RemarkTone::Note),
        ];
        self.items.push_back(TranscriptItem::Remark(RemarkItem { mark: "! ", lines }));
    }

    fn turn_ended(&mut self, outcome: TurnOutcome) {
        let text = match outcome {
            TurnOutcome::Cancelled => "stopped; say what to do instead",
            TurnOutcome::Denied => "something had to be asked, and nobody could answer",
            _ => return,
        };
        self.remark(RemarkTone::Warning, text);
    }

    fn files_changed(&mut self, files: &FilesChanged) {
        match files.call {
            Some(call) => self.with_card(call, |card| card.add_changes(files)),
            None => {
                // What is kept there, a person has just asked for.
                let others = files.changes.iter().filter(|change| !change.path.starts_with(".helve/"));
                for change in others.take(MAX_OUTSIDE_FILES) {
                    self.remark(RemarkTone::Note, change.outside_notice());
                }
            }
        }
        let lost = files.not_kept.iter().filter(|lost| lost.why != UnkeptReason::Ignored);
        for lost in lost.take(MAX_OUTSIDE_FILES) {
            self.remark(RemarkTone::Warning, lost.notice());
        }
    }

    fn with_card(&mut self, call: CallId, act: impl FnOnce(&mut ToolCard)) {
        let card = self.items.iter_mut().rev().find_map(|item| match item {
            TranscriptItem::Card(card) if card.call == call => Some(card),
            _ => None,
        });
        if let Some(card) = card {
            act(card);
        }
    }

    fn think(&mut self, text: &str, now: Instant) {
        match self.items.back_mut() {
            Some(TranscriptItem::Thinking(thinking)) if thinking.took.is_none() => {
                if thinking.text.len() + text.len() < MAX_THINKING_BYTES {
                    thinking.text.push_str(text);
                }
            }
            _ => {
                let thinking = ThinkingItem { text: text.to_owned(), since: now, took: None };
                self.items.push_back(TranscriptItem::Thinking(thinking));
            }
        }
    }

    fn end_thinking(&mut self, now: Instant) {
        for item in &mut self.items {
            if let TranscriptItem::Thinking(thinking) = item
                && thinking.took.is_none()
            {
                thinking.took = Some(now.saturating_duration_since(thinking.since));
            }
        }
    }

    fn answer(&mut self, text: &str) {
        self.streamed.push_str(text);
        match self.items.back_mut() {
            Some(TranscriptItem::Answer(answer)) if !answer.is_over => answer.push(text),
            _ => {
                let mut answer = AnswerItem::default();
                answer.push(text);
                self.items.push_back(TranscriptItem::Answer(Box::new(answer)));
            }
        }
    }

    fn end_answer(&mut self) {
        for item in &mut self.items {
            if let TranscriptItem::Answer(answer) = item {
                answer.finish();
            }
        }
    }

    /// The answer is whole: what was lost on the way is added.
    fn settle(&mut self, parts: &[MessagePart], stop: StopReason, now: Instant) {
        self.end_thinking(now);
        let text = |part: &MessagePart| match part {
            MessagePart::Text(text) => Some(text.text.clone()),
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
            if let MessagePart::Tool(tool) = part {
                if !self.items.iter().any(|item| item.is_card(tool.call)) {
                    self.items.push_back(TranscriptItem::Card(Box::new(ToolCard::announced(
                        tool.call, &tool.name,
                    ))));
                }
                self.with_card(tool.call, |card| card.complete(tool));
            }
        }
        (self.last_answer, self.streamed) = (whole, String::new());
        if let Some(notice) = stop.notice() {
            self.remark(RemarkTone::Warning, notice);
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
        self.items.retain(|item| !matches!(item, TranscriptItem::Card(card) if !card.is_called()));
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
