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
/// Whoever was writing a message when a question came is given longer to notice it.
pub const WRITING: Duration = Duration::from_secs(1);
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
    /// The key came too soon: it was meant for what was being written.
    Early,
    /// The key was taken, and nothing is to be done.
    Nothing,
}

pub(crate) struct Approvals {
    waiting: VecDeque<Request>,
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

impl Approvals {
    pub(crate) fn new() -> Approvals {
        Approvals {
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
            Request::Approval(asked) => asked.approval.to_string(),
            Request::Question(asked) => asked.call.to_string(),
        })
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
                *self = Approvals { written: self.written, ..Approvals::new() };
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

    /// Somebody writes a message, or has none under way.
    pub(crate) fn note_writing(&mut self, at: Option<Instant>) {
        self.written = at;
    }

    /// It is seen from now on: a key that comes at once was meant for what was seen before.
    pub(crate) fn appear(&mut self, now: Instant) {
        let is_writing = self.written.is_some_and(|at| now.saturating_duration_since(at) < WRITING);
        self.closed_until = Some(now + if is_writing { WRITING } else { GUARD });
    }

    /// Whether it is too soon for an answer.
    pub(crate) fn is_closed(&self, now: Instant) -> bool {
        self.closed_until.is_some_and(|until| now < until)
    }

    fn show_first(&mut self, now: Instant) {
        self.appear(now);
        (self.is_sent, self.is_cut, self.is_read) = (false, false, false);
        // A question without options is answered in words at once.
        let needs_words =
            matches!(self.waiting.front(), Some(Request::Question(asked)) if asked.options.is_empty());
        self.words = needs_words.then(Editor::default);
    }

    /// Whether a paste was taken.
    pub(crate) fn paste(&mut self, text: &str) -> bool {
        self.words.as_mut().is_some_and(|words| {
            words.paste(text);
            true
        })
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
            Some(Action::ReadAll) => {
                self.is_read = true;
                return Choice::ReadAll;
            }
            _ => {}
        }
        // Whoever goes on writing has not noticed it yet.
        if self.is_closed(now) {
            self.appear(now);
            return Choice::Early;
        }
        if self.is_sent {
            return Choice::Nothing;
        }
        if self.words.is_some() {
            return self.word_key(event, keys);
        }
        match self.waiting.front() {
            Some(Request::Approval(asked)) => {
                let (approval, has_rules) = (asked.approval, !asked.rules.is_empty());
                let is_hidden = self.is_cut && !self.is_read;
                let answer = match action {
                    Some(Action::AllowOnce | Action::AllowSession | Action::AllowProject) if is_hidden => {
                        return Choice::Nothing;
                    }
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
        let is_approval = matches!(self.waiting.front(), Some(Request::Approval(_)));
        self.is_cut = is_approval && rows.head.len() + rows.rules.len() + rows.foot.len() > room;
        let rows = match self.is_cut && !self.is_read {
            true => Rows { foot: must_read(keys, area.width.into(), theme), ..rows },
            false => rows,
        };
        let mut y = area.y;
        for line in rows.within(room, keys, theme) {
            put(buffer, Position::new(area.x, y), area.width, &line);
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
        let labelled = |name: &str, text: &str| {
            let first = Line::styled(format!("  {name:<5} "), theme.muted);
            wrap_after(&Line::raw(text.to_owned()), width, &first, &Line::raw("        "))
        };
        let mut add = |name: &str, text: &str| rows.body.extend(labelled(name, text));
        add("why", &one_line(&asked.reason));
        for (number, effect) in effects.by_ref().take(MOST_EFFECTS).enumerate() {
            add(if number == 0 { "it" } else { "" }, &effect);
        }
        let more = effects.count();
        if more > 0 {
            add("", &format!("… {more} more; {} shows all", keys.key(Action::ReadAll)));
        }
        rows.rules = asked.rules.iter().flat_map(|rule| labelled("rule", &one_line(rule))).collect();
        if let Some(diff) = &asked.diff {
            let lines = diff_lines(without_count(diff), width.saturating_sub(2), DIFF_ROWS, theme);
            rows.diff.extend(
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
    /// What is asked.
    head: Vec<Line<'static>>,
    body: Vec<Line<'static>>,
    /// What a yes for longer would mean.
    rules: Vec<Line<'static>>,
    diff: Vec<Line<'static>>,
    /// The keys.
    foot: Vec<Line<'static>>,
}

impl Rows {
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
        let text = format!("  … {hidden} rows more; {} shows all", keys.key(Action::ReadAll));
        lines.push(Line::styled(text, theme.warning));
    }
    lines.extend(last);
    lines
}

/// What is offered where not all that matters is seen.
fn must_read(keys: &KeyMap, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let key = |action, about: &str| (keys.key(action).to_owned(), about.to_owned());
    let choices = [key(Action::ReadAll, "read all of it first"), key(Action::Reject, "no")];
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
    wrap_after(&Line::from(spans), width, &Line::raw("  "), &Line::raw("  "))
}
