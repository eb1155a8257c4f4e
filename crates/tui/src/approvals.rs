//! What a person has to decide or to answer. Requests wait in line and are shown one by one; none is forgotten before the
//! session says that it is settled.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use helve_protocol::{Answer, ApprovalRequested, Body, Command, Event, QuestionAsked};
use helve_widgets::{Editor, Theme, diff_lines, put, wrap_after};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use crate::composer::typed;
use crate::kept::{Entry, Section};
use crate::keymap::KeyMap;
use crate::keys::{Action, Context};
use crate::words::one_line;

/// A key that comes sooner was meant for something else.
pub const GUARD: Duration = Duration::from_millis(300);
/// So many rows of a diff are shown; Ctrl-O shows all.
const DIFF_ROWS: usize = 12;
const MOST_EFFECTS: usize = 8;

#[derive(Debug)]
enum Request {
    Approval(ApprovalRequested),
    Question(QuestionAsked),
}

/// What a key means here.
#[derive(Debug, PartialEq)]
pub(crate) enum Choice {
    Send(Command),
    Interrupt,
    ReadAll,
    /// The key was taken, and nothing is to be done.
    Nothing,
}

pub(crate) struct Approvals {
    waiting: VecDeque<Request>,
    /// How many were settled since the line was empty.
    settled: usize,
    /// When the first one appeared.
    since: Option<Instant>,
    /// What is written instead of a plain no, or as an answer.
    words: Option<Editor>,
    /// The first one is answered, and the session has not said so yet.
    is_sent: bool,
}

impl Approvals {
    pub(crate) fn new() -> Approvals {
        Approvals { waiting: VecDeque::new(), settled: 0, since: None, words: None, is_sent: false }
    }

    /// Whether something waits for a person.
    pub(crate) fn is_open(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Follows the session. Says whether something new waits.
    pub(crate) fn apply(&mut self, event: &Event, now: Instant) -> bool {
        match &event.body {
            Body::ApprovalRequested(request) => self.add(Request::Approval(request.clone()), now),
            Body::QuestionAsked(question) => self.add(Request::Question(question.clone()), now),
            Body::ApprovalResolved(resolved) => {
                let is_it = |request: &Request| matches!(request, Request::Approval(asked) if asked.approval == resolved.approval);
                self.settle(is_it, now);
                false
            }
            Body::QuestionAnswered(answered) => {
                let is_it = |request: &Request| matches!(request, Request::Question(asked) if asked.call == answered.call);
                self.settle(is_it, now);
                false
            }
            // With the turn, everything that it asked is over.
            Body::TurnEnded(_) => {
                *self = Approvals::new();
                false
            }
            _ => false,
        }
    }

    fn add(&mut self, request: Request, now: Instant) -> bool {
        self.waiting.push_back(request);
        if self.waiting.len() == 1 {
            self.settled = 0;
            self.show_first(now);
        }
        true
    }

    fn settle(&mut self, is_it: impl Fn(&Request) -> bool, now: Instant) {
        let Some(place) = self.waiting.iter().position(is_it) else { return };
        self.waiting.remove(place);
        self.settled += 1;
        if place == 0 {
            self.show_first(now);
        }
    }

    fn show_first(&mut self, now: Instant) {
        self.since = Some(now);
        self.is_sent = false;
        // A question without options is answered in words at once.
        let needs_words =
            matches!(self.waiting.front(), Some(Request::Question(asked)) if asked.options.is_empty());
        self.words = needs_words.then(Editor::default);
    }

    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(words) = &mut self.words {
            words.paste(text);
        }
    }

    pub(crate) fn key(&mut self, event: &KeyEvent, keys: &KeyMap, now: Instant) -> Choice {
        let action = keys.action(Context::Approval, event);
        // Whoever wants to stop, or to read, may do so at any time.
        match action {
            Some(Action::StopTurn) if self.words.is_some() && !self.needs_words() => {
                self.words = None;
                return Choice::Nothing;
            }
            Some(Action::StopTurn) => return Choice::Interrupt,
            Some(Action::ReadAll) => return Choice::ReadAll,
            _ => {}
        }
        let is_early = self.since.is_some_and(|since| now.saturating_duration_since(since) < GUARD);
        if is_early || self.is_sent {
            return Choice::Nothing;
        }
        if self.words.is_some() {
            return self.word_key(event, keys);
        }
        match self.waiting.front() {
            Some(Request::Approval(asked)) => {
                let (approval, has_rules) = (asked.approval, !asked.rules.is_empty());
                let answer = match action {
                    Some(Action::AllowOnce) => Answer::Once,
                    Some(Action::AllowSession) if has_rules => Answer::Session,
                    Some(Action::AllowProject) if has_rules => Answer::Project,
                    Some(Action::Reject) => Answer::Reject { message: None },
                    Some(Action::RejectWithMessage) => {
                        self.words = Some(Editor::default());
                        return Choice::Nothing;
                    }
                    _ => return Choice::Nothing,
                };
                self.is_sent = true;
                Choice::Send(Command::Decide { approval, answer })
            }
            Some(Request::Question(asked)) => {
                let letter = typed(event);
                let number = letter.as_deref().and_then(|letter| letter.parse::<usize>().ok());
                let option = number.and_then(|number| asked.options.get(number.checked_sub(1)?));
                if let Some(option) = option {
                    let (call, text) = (asked.call, Some(option.clone()));
                    self.is_sent = true;
                    return Choice::Send(Command::Answer { call, text });
                }
                if let Some(letter) = letter {
                    let mut words = Editor::default();
                    words.insert(&letter);
                    self.words = Some(words);
                }
                Choice::Nothing
            }
            None => Choice::Nothing,
        }
    }

    fn needs_words(&self) -> bool {
        matches!(self.waiting.front(), Some(Request::Question(asked)) if asked.options.is_empty())
    }

    /// A key for what is written.
    fn word_key(&mut self, event: &KeyEvent, keys: &KeyMap) -> Choice {
        let Some(words) = &mut self.words else { return Choice::Nothing };
        match (keys.action(Context::Composer, event), typed(event)) {
            (Some(Action::Send), _) => {
                let text = words.text().trim().to_owned();
                let message = (!text.is_empty()).then_some(text);
                let command = match self.waiting.front() {
                    Some(Request::Approval(asked)) => {
                        Command::Decide { approval: asked.approval, answer: Answer::Reject { message } }
                    }
                    // An empty answer is none.
                    Some(Request::Question(asked)) if message.is_some() => {
                        Command::Answer { call: asked.call, text: message }
                    }
                    _ => return Choice::Nothing,
                };
                self.is_sent = true;
                return Choice::Send(command);
            }
            (Some(Action::Edit(edit)), _) => drop(words.apply(edit)),
            (_, Some(letter)) => words.insert(&letter),
            _ => {}
        }
        if words.is_empty()
            && event.code == ratatui::crossterm::event::KeyCode::Backspace
            && !self.needs_words()
        {
            self.words = None;
        }
        Choice::Nothing
    }

    /// How a line answers the first request.
    pub(crate) fn line_hint(&self) -> &'static str {
        match self.waiting.front() {
            Some(Request::Approval(asked)) if asked.rules.is_empty() => {
                "y = yes, n = no, or say what to do instead"
            }
            Some(Request::Approval(_)) => {
                "y = yes, a = for this session, p = for this project, n = no, or say what to do instead"
            }
            Some(Request::Question(asked)) if !asked.options.is_empty() => "a number, or your own words",
            _ => "your answer",
        }
    }

    /// What a whole line means as an answer to the first request.
    pub(crate) fn answer_line(&mut self, line: &str) -> Option<Command> {
        if self.is_sent || line.is_empty() {
            return None;
        }
        let command = match self.waiting.front()? {
            Request::Approval(asked) => {
                let has_rules = !asked.rules.is_empty();
                let answer = match line {
                    "y" | "yes" => Answer::Once,
                    "a" if has_rules => Answer::Session,
                    "p" if has_rules => Answer::Project,
                    "n" | "no" => Answer::Reject { message: None },
                    other => Answer::Reject { message: Some(other.to_owned()) },
                };
                Command::Decide { approval: asked.approval, answer }
            }
            Request::Question(asked) => {
                let number = line.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                let chosen = number.and_then(|number| asked.options.get(number)).map_or(line, String::as_str);
                Command::Answer { call: asked.call, text: Some(chosen.to_owned()) }
            }
        };
        self.is_sent = true;
        Some(command)
    }

    /// The first request in full.
    pub(crate) fn entry(&self) -> Option<Entry> {
        match self.waiting.front()? {
            Request::Approval(asked) => {
                let mut text = format!("{}\n\n{}", asked.effects.join("\n"), asked.reason);
                if !asked.rules.is_empty() {
                    text.push_str(&format!("\n\nrules:\n{}", asked.rules.join("\n")));
                }
                let mut sections = vec![Section::Text(text)];
                sections
                    .extend(asked.diff.as_deref().map(|diff| Section::Diff(without_count(diff).to_owned())));
                Some(Entry { title: "may it do this?".to_owned(), sections, ..Entry::default() })
            }
            Request::Question(asked) => {
                let text = format!("{}\n\n{}", asked.text, asked.options.join("\n"));
                Some(Entry::new("a question", Section::Markdown(text)))
            }
        }
    }

    pub(crate) fn height(&self, width: u16, most: u16, keys: &KeyMap, theme: &Theme) -> u16 {
        let rows = self.rows(width.into(), keys, theme);
        let all = rows.head.len() + rows.body.len() + rows.foot.len();
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
        // What is asked and the keys are always seen; what is between is cut.
        let room = usize::from(area.height.saturating_sub(words));
        let foot = rows.foot.len().min(room);
        let head = rows.head.len().min(room - foot);
        let between = room - foot - head;
        let body = rows.body.iter().take(between);
        let lines = rows.head.iter().take(head).chain(body).chain(rows.foot.iter().take(foot));
        let mut y = area.y;
        for line in lines {
            put(buffer, Position::new(area.x, y), area.width, line);
            y += 1;
        }
        let words_area = Rect {
            x: area.x + 2,
            y,
            width: area.width.saturating_sub(2),
            height: area.bottom().saturating_sub(y),
        };
        if self.words.is_some() {
            put(buffer, Position::new(area.x, y), 2, &Line::styled("> ", theme.accent));
        }
        self.words.as_mut().and_then(|words| words.draw(words_area, buffer, theme))
    }

    fn rows(&self, width: usize, keys: &KeyMap, theme: &Theme) -> Rows {
        let total = self.settled + self.waiting.len();
        let count = if total > 1 { format!("{} of {total} · ", self.settled + 1) } else { String::new() };
        match self.waiting.front() {
            Some(Request::Approval(asked)) => self.approval_rows(asked, &count, width, keys, theme),
            Some(Request::Question(asked)) => self.question_rows(asked, &count, width, keys, theme),
            None => Rows::default(),
        }
    }

    fn approval_rows(
        &self,
        asked: &ApprovalRequested,
        count: &str,
        width: usize,
        keys: &KeyMap,
        theme: &Theme,
    ) -> Rows {
        let mut effects = asked.effects.iter().map(|effect| one_line(effect));
        let first = effects.next().unwrap_or_default();
        let title = Line::from(vec![
            Span::styled(count.to_owned(), theme.muted),
            Span::styled(format!("may it {first}?"), theme.warning),
        ]);
        let mut rows = Rows {
            head: wrap_after(&title, width, &Line::styled("? ", theme.warning), &Line::raw("  ")),
            ..Rows::default()
        };
        let mut add = |name: &str, text: &str| {
            let first = Line::styled(format!("  {name:<5} "), theme.muted);
            rows.body.extend(wrap_after(&Line::raw(text.to_owned()), width, &first, &Line::raw("        ")));
        };
        add("why", &one_line(&asked.reason));
        for (number, effect) in effects.by_ref().take(MOST_EFFECTS).enumerate() {
            add(if number == 0 { "it" } else { "" }, &effect);
        }
        let more = effects.count();
        if more > 0 {
            add("", &format!("… {more} more; {} shows all", keys.key(Action::ReadAll)));
        }
        asked.rules.iter().for_each(|rule| add("rule", &one_line(rule)));
        if let Some(diff) = &asked.diff {
            let lines = diff_lines(without_count(diff), width.saturating_sub(2), DIFF_ROWS, theme);
            rows.body.extend(
                lines.iter().flat_map(|line| wrap_after(line, width, &Line::raw("  "), &Line::raw("  "))),
            );
        }
        let key = |action, about: &str| (keys.key(action).to_owned(), about.to_owned());
        let mut choices = vec![key(Action::AllowOnce, "yes")];
        if !asked.rules.is_empty() {
            choices.push(key(Action::AllowSession, "for this session"));
            choices.push(key(Action::AllowProject, "for this project"));
        }
        choices.push(key(Action::Reject, "no"));
        choices.push(key(Action::RejectWithMessage, "no, and say why"));
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
    ) -> Rows {
        let mut rows = Rows::default();
        for (number, line) in asked.text.lines().enumerate() {
            let first =
                Line::styled(if number == 0 { format!("? {count}") } else { "  ".to_owned() }, theme.accent);
            let line = Line::styled(helve_widgets::width::harmless(line).into_owned(), theme.strong);
            rows.head.extend(wrap_after(&line, width, &first, &Line::raw("  ")));
        }
        for (number, option) in asked.options.iter().enumerate() {
            let first = Line::styled(format!("  {} ", number + 1), theme.accent);
            rows.body.extend(wrap_after(&Line::raw(one_line(option)), width, &first, &Line::raw("    ")));
        }
        let hint = match (asked.options.is_empty(), self.words.is_some()) {
            (false, false) => "  a number, or write your own answer".to_owned(),
            _ => format!(
                "  {} answers · {} stops the agent",
                keys.key(Action::Send),
                keys.key(Action::StopTurn)
            ),
        };
        rows.foot.push(Line::styled(hint, theme.muted));
        rows
    }
}

#[derive(Default)]
struct Rows {
    head: Vec<Line<'static>>,
    body: Vec<Line<'static>>,
    foot: Vec<Line<'static>>,
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
    wrap_after(&Line::from(spans), width, &Line::raw("  "), &Line::raw("  "))
}
