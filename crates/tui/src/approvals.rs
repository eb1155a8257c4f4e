//! What a person has to decide or to answer. Requests wait in line and are shown one by one; none is forgotten before the
//! session says that it is settled.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use helve_protocol::{
    ApprovalAnswer, ApprovalRequested, EventBody, QuestionAsked, SessionCommand, SessionEvent,
};
use helve_widgets::{Editor, Theme, diff_lines, put_line, wrap_with_prefix};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use crate::composer::typed_text;
use crate::keymap::KeyMap;
use crate::keys::{KeyAction, KeyContext};
use crate::pager_entries::{PagerEntry, PagerSection};
use crate::text_format::one_line;

/// A key that comes sooner was meant for something else.
pub const APPROVAL_GUARD_TIME: Duration = Duration::from_millis(300);
/// Whoever was writing a message when a question came is given longer to notice it.
pub const TYPING_GUARD_TIME: Duration = Duration::from_secs(1);
/// So many rows of a diff are shown; Ctrl-O shows all.
const MAX_APPROVAL_DIFF_ROWS: usize = 12;
const MAX_SHOWN_EFFECTS: usize = 8;

#[derive(Debug)]
enum DecisionRequest {
    Approval(ApprovalRequested),
    Question(QuestionAsked),
}

/// What a key means here.
#[derive(Debug, PartialEq)]
pub(crate) enum ApprovalDialogAction {
    Send(SessionCommand),
    Interrupt,
    ReadAll,
    /// The key came too soon: it was meant for what was being written.
    TooEarly,
    /// The key was taken, and nothing is to be done.
    Nothing,
}

pub(crate) struct ApprovalDialog {
    waiting: VecDeque<DecisionRequest>,
    /// How many were settled since the line was empty.
    settled: usize,
    /// Until then no key counts as an answer.
    closed_until: Option<Instant>,
    /// When a message was last written at, if it is not sent.
    written: Option<Instant>,
    /// Not all that has to be seen could be shown, when it was last drawn.
    is_cut: bool,
    /// All of the first one was opened to be read.
    is_read: bool,
    /// What is written instead of a plain no, or as an answer.
    words: Option<Editor>,
    /// The first one is answered, and the session has not said so yet.
    is_sent: bool,
}

impl ApprovalDialog {
    pub(crate) fn new() -> ApprovalDialog {
        ApprovalDialog {
            waiting: VecDeque::new(),
            settled: 0,
            closed_until: None,
            written: None,
            is_cut: false,
            is_read: false,
            words: None,
            is_sent: false,
        }
    }

    /// Whether something waits for a person.
    pub(crate) fn is_open(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Which one is shown.
    pub(crate) fn first(&self) -> Option<String> {
        self.waiting.front().map(|request| match request {
            DecisionRequest::Approval(asked) => asked.approval.to_string(),
            DecisionRequest::Question(asked) => asked.call.to_string(),
        })
    }

    /// Follows the session. Says whether something new waits.
    pub(crate) fn apply(&mut self, event: &SessionEvent, now: Instant) -> bool {
        match &event.body {
            EventBody::ApprovalRequested(request) => {
                self.add(DecisionRequest::Approval(request.clone()), now)
            }
            EventBody::QuestionAsked(question) => self.add(DecisionRequest::Question(question.clone()), now),
            EventBody::ApprovalResolved(resolved) => {
                let is_it = |request: &DecisionRequest| matches!(request, DecisionRequest::Approval(asked) if asked.approval == resolved.approval);
                self.settle(is_it, now);
                false
            }
            EventBody::QuestionAnswered(answered) => {
                let is_it = |request: &DecisionRequest| matches!(request, DecisionRequest::Question(asked) if asked.call == answered.call);
                self.settle(is_it, now);
                false
            }
            // With the turn, everything that it asked is over.
            EventBody::TurnEnded(_) => {
                *self = ApprovalDialog { written: self.written, ..ApprovalDialog::new() };
                false
            }
            _ => false,
        }
    }

    fn add(&mut self, request: DecisionRequest, now: Instant) -> bool {
        self.waiting.push_back(request);
        if self.waiting.len() == 1 {
            self.settled = 0;
            self.show_first(now);
        }
        true
    }

    fn settle(&mut self, is_it: impl Fn(&DecisionRequest) -> bool, now: Instant) {
        let Some(place) = self.waiting.iter().position(is_it) else { return };
        self.waiting.remove(place);
        self.settled += 1;
        if place == 0 {
            self.show_first(now);
        }
    }

    /// Somebody writes a message, or has none under way.
    pub(crate) fn note_writing(&mut self, at: Option<Instant>) {
        self.written = at;
    }

    /// It is seen from now on: a key that comes at once was meant for what was seen before.
    pub(crate) fn restart_guard(&mut self, now: Instant) {
        let is_writing = self.written.is_some_and(|at| now.saturating_duration_since(at) < TYPING_GUARD_TIME);
        self.closed_until = Some(now + if is_writing { TYPING_GUARD_TIME } else { APPROVAL_GUARD_TIME });
    }

    /// Whether it is too soon for an answer.
    pub(crate) fn is_guarded(&self, now: Instant) -> bool {
        self.closed_until.is_some_and(|until| now < until)
    }

    fn show_first(&mut self, now: Instant) {
        self.restart_guard(now);
        (self.is_sent, self.is_cut, self.is_read) = (false, false, false);
        // A question without options is answered in words at once.
        let needs_words = matches!(self.waiting.front(), Some(DecisionRequest::Question(asked)) if asked.options.is_empty());
        self.words = needs_words.then(Editor::default);
    }

    /// Whether a paste was taken.
    pub(crate) fn paste(&mut self, text: &str) -> bool {
        self.words.as_mut().is_some_and(|words| {
            words.paste(text);
            true
        })
    }

    pub(crate) fn key(&mut self, event: &KeyEvent, keys: &KeyMap, now: Instant) -> ApprovalDialogAction {
        let action = keys.action(KeyContext::Approval, event);
        // Whoever wants to stop, or to read, may do so at any time.
        match action {
            Some(KeyAction::StopTurn) if self.words.is_some() && !self.needs_words() => {
                self.words = None;
                return ApprovalDialogAction::Nothing;
            }
            Some(KeyAction::StopTurn) => return ApprovalDialogAction::Interrupt,
            Some(KeyAction::ReadAll) => {
                self.is_read = true;
                return ApprovalDialogAction::ReadAll;
            }
            _ => {}
        }
        // Whoever goes on writing has not noticed it yet.
        if self.is_guarded(now) {
            self.restart_guard(now);
            return ApprovalDialogAction::TooEarly;
        }
        if self.is_sent {
            return ApprovalDialogAction::Nothing;
        }
        if self.words.is_some() {
            return self.word_key(event, keys);
        }
        match self.waiting.front() {
            Some(DecisionRequest::Approval(asked)) => {
                let (approval, has_rules) = (asked.approval, !asked.rules.is_empty());
                let is_hidden = self.is_cut && !self.is_read;
                let answer = match action {
                    Some(KeyAction::AllowOnce | KeyAction::AllowSession | KeyAction::AllowProject)
                        if is_hidden =>
                    {
                        return ApprovalDialogAction::Nothing;
                    }
                    Some(KeyAction::AllowOnce) => ApprovalAnswer::Once,
                    Some(KeyAction::AllowSession) if has_rules => ApprovalAnswer::Session,
                    Some(KeyAction::AllowProject) if has_rules => ApprovalAnswer::Project,
                    Some(KeyAction::Reject) => ApprovalAnswer::Reject { message: None },
                    Some(KeyAction::RejectWithMessage) => {
                        self.words = Some(Editor::default());
                        return ApprovalDialogAction::Nothing;
                    }
                    _ => return ApprovalDialogAction::Nothing,
                };
                self.is_sent = true;
                ApprovalDialogAction::Send(SessionCommand::Decide { approval, answer })
            }
            Some(DecisionRequest::Question(asked)) => {
                let letter = typed_text(event);
                let number = letter.as_deref().and_then(|letter| letter.parse::<usize>().ok());
                let option = number.and_then(|number| asked.options.get(number.checked_sub(1)?));
                if let Some(option) = option {
                    let (call, text) = (asked.call, Some(option.clone()));
                    self.is_sent = true;
                    return ApprovalDialogAction::Send(SessionCommand::Answer { call, text });
                }
                if let Some(letter) = letter {
                    let mut words = Editor::default();
                    words.insert(&letter);
                    self.words = Some(words);
                }
                ApprovalDialogAction::Nothing
            }
            None => ApprovalDialogAction::Nothing,
        }
    }

    fn needs_words(&self) -> bool {
        matches!(self.waiting.front(), Some(DecisionRequest::Question(asked)) if asked.options.is_empty())
    }

    /// A key for what is written.
    fn word_key(&mut self, event: &KeyEvent, keys: &KeyMap) -> ApprovalDialogAction {
        let Some(words) = &mut self.words else { return ApprovalDialogAction::Nothing };
        match (keys.action(KeyContext::Composer, event), typed_text(event)) {
            (Some(KeyAction::Send), _) => {
                let text = words.text().trim().to_owned();
                let message = (!text.is_empty()).then_some(text);
                let command = match self.waiting.front() {
                    Some(DecisionRequest::Approval(asked)) => SessionCommand::Decide {
                        approval: asked.approval,
                        answer: ApprovalAnswer::Reject { message },
                    },
                    // An empty answer is none.
                    Some(DecisionRequest::Question(asked)) if message.is_some() => {
                        SessionCommand::Answer { call: asked.call, text: message }
                    }
                    _ => return ApprovalDialogAction::Nothing,
                };
                self.is_sent = true;
                return ApprovalDialogAction::Send(command);
            }
            (Some(KeyAction::Edit(edit)), _) => drop(words.apply(edit)),
            (_, Some(letter)) => words.insert(&letter),
            _ => {}
        }
        if words.is_empty()
            && event.code == ratatui::crossterm::event::KeyCode::Backspace
            && !self.needs_words()
        {
            self.words = None;
        }
        ApprovalDialogAction::Nothing
    }

    /// How a line answers the first request.
    pub(crate) fn line_hint(&self) -> &'static str {
        match self.waiting.front() {
            Some(DecisionRequest::Approval(asked)) if asked.rules.is_empty() => {
                "y = yes, n = no, or say what to do instead"
            }
            Some(DecisionRequest::Approval(_)) => {
                "y = yes, a = for this session, p = for this project, n = no, or say what to do instead"
            }
            Some(DecisionRequest::Question(asked)) if !asked.options.is_empty() => {
                "a number, or your own words"
            }
            _ => "your answer",
        }
    }

    /// What a whole line means as an answer to the first request.
    pub(crate) fn answer_line(&mut self, line: &str) -> Option<SessionCommand> {
        if self.is_sent || line.is_empty() {
            return None;
        }
        let command = match self.waiting.front()? {
            DecisionRequest::Approval(asked) => {
                SessionCommand::Decide { approval: asked.approval, answer: asked.answer_from_line(line) }
            }
            DecisionRequest::Question(asked) => {
                SessionCommand::Answer { call: asked.call, text: asked.answer_from_line(line) }
            }
        };
        self.is_sent = true;
        Some(command)
    }

    /// The first request in full.
    pub(crate) fn entry(&self) -> Option<PagerEntry> {
        match self.waiting.front()? {
            DecisionRequest::Approval(asked) => {
                let mut text = format!("{}\n\n{}", asked.effects.join("\n"), asked.reason);
                if !asked.rules.is_empty() {
                    text.push_str(&format!("\n\nrules:\n{}", asked.rules.join("\n")));
                }
                let mut sections = vec![PagerSection::Text(text)];
                sections.extend(
                    asked.diff.as_deref().map(|diff| PagerSection::Diff(without_count(diff).to_owned())),
                );
                Some(PagerEntry { title: "Allow this?".to_owned(), sections, ..PagerEntry::default() })
            }
            DecisionRequest::Question(asked) => {
                let text = format!("{}\n\n{}", asked.text, asked.options.join("\n"));
                Some(PagerEntry::new("a question", PagerSection::Markdown(text)))
            }
        }
    }

    pub(crate) fn height(&self, width: u16, most: u16, keys: &KeyMap, theme: &Theme) -> u16 {
        let rows = self.rows(width.into(), keys, theme);
        let all = rows.head.len() + rows.body.len() + rows.rules.len() + rows.diff.len() + rows.foot.len();
        let words = self.words.as_ref().map_or(0, |words| words.height(width.saturating_sub(2).max(1), 4));
        u16::try_from(all).unwrap_or(most).saturating_add(words).min(most)
    }

    pub(crate) fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        keys: &KeyMap,
        theme: &Theme,
    ) -> Option<Position> {
        let rows = self.rows(area.width.into(), keys, theme);
        let words =
            self.words.as_ref().map_or(0, |words| words.height(area.width.saturating_sub(2).max(1), 4));
        let room = usize::from(area.height.saturating_sub(words));
        let is_approval = matches!(self.waiting.front(), Some(DecisionRequest::Approval(_)));
        self.is_cut = is_approval && rows.head.len() + rows.rules.len() + rows.foot.len() > room;
        let rows = match self.is_cut && !self.is_read {
            true => ApprovalDialogRows { foot: must_read(keys, area.width.into(), theme), ..rows },
            false => rows,
        };
        let mut y = area.y;
        for line in rows.within(room, keys, theme) {
            put_line(buffer, Position::new(area.x, y), area.width, &line);
            y += 1;
        }
        let words_area = Rect {
            x: area.x + 2,
            y,
            width: area.width.saturating_sub(2),
            height: area.bottom().saturating_sub(y),
        };
        if self.words.is_some() {
            put_line(buffer, Position::new(area.x, y), 2, &Line::styled("> ", theme.accent));
        }
        self.words.as_mut().and_then(|words| words.draw(words_area, buffer, theme))
    }

    fn rows(&self, width: usize, keys: &KeyMap, theme: &Theme) -> ApprovalDialogRows {
        let total = self.settled + self.waiting.len();
        let count = if total > 1 { format!("{} of {total} · ", self.settled + 1) } else { String::new() };
        match self.waiting.front() {
            Some(DecisionRequest::Approval(asked)) => self.approval_rows(asked, &count, width, keys, theme),
            Some(DecisionRequest::Question(asked)) => self.question_rows(asked, &count, width, keys, theme),
            None => ApprovalDialogRows::default(),
        }
    }

    fn approval_rows(
        &self,
        asked: &ApprovalRequested,
        count: &str,
        width: usize,
        keys: &KeyMap,
        theme: &Theme,
    ) -> ApprovalDialogRows {
        let mut effects = asked.effects.iter().map(|effect| one_line(effect));
        let first = effects.next().unwrap_or_default();
        let title = Line::from(vec![
            Span::styled(count.to_owned(), theme.muted),
            Span::styled(format!("Allow Helve to {first}?"), theme.warning),
        ]);
        let mut rows = ApprovalDialogRows {
            head: wrap_with_prefix(&title, width, &Line::styled("? ", theme.warning), &Line::raw("  ")),
            ..ApprovalDialogRows::default()
        };
        let labelled = |name: &str, text: &str| {
            let first = Line::styled(format!("  {name:<5} "), theme.muted);
            wrap_with_prefix(&Line::raw(text.to_owned()), width, &first, &Line::raw("        "))
        };
        let mut add = |name: &str, text: &str| rows.body.extend(labelled(name, text));
        add("why", &one_line(&asked.reason));
        for (number, effect) in effects.by_ref().take(MAX_SHOWN_EFFECTS).enumerate() {
            add(if number == 0 { "it" } else { "" }, &effect);
        }
        let more = effects.count();
        if more > 0 {
            add("", &format!("… {more} more; {} shows all", keys.key(KeyAction::ReadAll)));
        }
        rows.rules = asked.rules.iter().flat_map(|rule| labelled("rule", &one_line(rule))).collect();
        if let Some(diff) = &asked.diff {
            let lines =
                diff_lines(without_count(diff), width.saturating_sub(2), MAX_APPROVAL_DIFF_ROWS, theme);
            rows.diff.extend(
                lines
                    .iter()
                    .flat_map(|line| wrap_with_prefix(line, width, &Line::raw("  "), &Line::raw("  "))),
            );
        }
        let key = |action, about: &str| (keys.key(action).to_owned(), about.to_owned());
        let mut choices = vec![key(KeyAction::AllowOnce, "yes")];
        if !asked.rules.is_empty() {
            choices.push(key(KeyAction::AllowSession, "for this session"));
            choices.push(key(KeyAction::AllowProject, "for this project"));
        }
        choices.push(key(KeyAction::Reject, "no"));
        choices.push(key(KeyAction::RejectWithMessage, "no, and tell it why"));
        rows.foot = match (&self.words, self.is_sent) {
            (_, true) => vec![Line::styled("  …", theme.muted)],
            (Some(_), _) => vec![Line::styled("  what should it do instead? Enter sends", theme.muted)],
            (None, _) => offered(&choices, width, theme),
        };
        rows
    }

    fn question_rows(
        &self,
        asked: &QuestionAsked,
        count: &str,
        width: usize,
        keys: &KeyMap,
        theme: &Theme,
    ) -> ApprovalDialogRows {
        let mut rows = ApprovalDialogRows::default();
        for (number, line) in asked.text.lines().enumerate() {
            let first =
                Line::styled(if number == 0 { format!("? {count}") } else { "  ".to_owned() }, theme.accent);
            let line = Line::styled(helve_widgets::width::sanitize_text(line).into_owned(), theme.strong);
            rows.head.extend(wrap_with_prefix(&line, width, &first, &Line::raw("  ")));
        }
        for (number, option) in asked.options.iter().enumerate() {
            let first = Line::styled(format!("  {} ", number + 1), theme.accent);
            rows.body.extend(wrap_with_prefix(
                &Line::raw(one_line(option)),
                width,
                &first,
                &Line::raw("    "),
            ));
        }
        let hint = match (asked.options.is_empty(), self.words.is_some()) {
            (false, false) => "  a number, or write your own answer".to_owned(),
            _ => format!(
                "  {} answers · {} stops the agent",
                keys.key(KeyAction::Send),
                keys.key(KeyAction::StopTurn)
            ),
        };
        rows.foot.push(Line::styled(hint, theme.muted));
        rows
    }
}

#[derive(Default)]
struct ApprovalDialogRows {
    /// What is asked.
    head: Vec<Line<'static>>,
    body: Vec<Line<'static>>,
    /// What a yes for longer would mean.
    rules: Vec<Line<'static>>,
    diff: Vec<Line<'static>>,
    /// The keys.
    foot: Vec<Line<'static>>,
}

impl ApprovalDialogRows {
    /// As many as there is room for. What is asked comes first, then the keys and the rules; of what is cut, that is said.
    fn within(self, room: usize, keys: &KeyMap, theme: &Theme) -> Vec<Line<'static>> {
        let foot = self.foot.len().min(room.saturating_sub(1));
        let rules = self.rules.len().min(room.saturating_sub(foot + self.head.len()));
        let head = self.head.len().min(room - foot - rules);
        let between = room - foot - rules - head;
        let body = self.body.len().min(between);
        let diff = self.diff.len().min(between - body);
        let short = |lines: Vec<Line<'static>>, most: usize| shortened(lines, most, keys, theme);
        let mut lines = short(self.head, head);
        lines.extend(short(self.body, body));
        lines.extend(short(self.rules, rules));
        lines.extend(short(self.diff, diff));
        lines.extend(self.foot.into_iter().take(foot));
        lines
    }
}

/// The beginning and the last of some rows, and how many are not shown between.
fn shortened(mut lines: Vec<Line<'static>>, most: usize, keys: &KeyMap, theme: &Theme) -> Vec<Line<'static>> {
    if lines.len() <= most {
        return lines;
    }
    let last = lines.pop().filter(|_| most >= 3);
    let kept = most.saturating_sub(1 + usize::from(last.is_some()));
    let hidden = lines.len().saturating_sub(kept) + usize::from(last.is_none());
    lines.truncate(kept);
    if most > 0 {
        let text = format!("  … {hidden} rows more; {} shows all", keys.key(KeyAction::ReadAll));
        lines.push(Line::styled(text, theme.warning));
    }
    lines.extend(last);
    lines
}

/// What is offered where not all that matters is seen.
fn must_read(keys: &KeyMap, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let key = |action, about: &str| (keys.key(action).to_owned(), about.to_owned());
    let choices = [key(KeyAction::ReadAll, "read all of it first"), key(KeyAction::Reject, "no")];
    offered(&choices, width, theme)
}

/// Tools that write files tell a count in the first line, which the drawn diff tells too.
fn without_count(diff: &str) -> &str {
    match diff.split_once('\n') {
        Some((_, rest)) if rest.starts_with("--- ") => rest,
        _ => diff,
    }
}

fn offered(choices: &[(String, String)], width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut spans = Vec::new();
    for (key, about) in choices {
        if !spans.is_empty() {
            spans.push(Span::styled(" · ", theme.muted));
        }
        spans.push(Span::styled(key.clone(), theme.accent));
        spans.push(Span::raw(format!(" {about}")));
    }
    wrap_with_prefix(&Line::from(spans), width, &Line::raw("  "), &Line::raw("  "))
}
