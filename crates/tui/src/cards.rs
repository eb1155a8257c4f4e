//! A tool call as a person sees it: what it does, how it goes, what came of it.

use std::time::{Duration, Instant};

use helve_protocol::{BlobId, CallId, FilesChanged, Interruption, Timestamp, ToolPart, ToolState};
use helve_widgets::{Theme, diff_lines, wrap_with_prefix};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use serde_json::Value;

use crate::pager_entries::{PagerEntry, PagerSection};
use crate::text_format::{duration, keep_end, one_line, strip_terminal_codes};

/// So much of the output is kept while it runs.
const MAX_CARD_OUTPUT_BYTES: usize = 256 << 10;
/// So many rows of a diff are shown; the rest is in the pager.
const MAX_CARD_DIFF_ROWS: usize = 20;
/// So many lines of the output are shown.
const CARD_TAIL_LINES: usize = 5;
const CARD_TAIL_BYTES: usize = 4 << 10;
const MAX_CARD_ERROR_LINES: usize = 8;
const SPINNER_FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Tools whose output a person wants to see; the others look things up for the model.
const TOOLS_WITH_SHOWN_OUTPUT: [&str; 6] =
    ["shell", "shell_output", "shell_input", "shell_kill", "web_fetch", "ask_user"];

#[derive(Debug)]
pub(crate) struct ToolCard {
    pub(crate) call: CallId,
    name: String,
    input: Value,
    /// When it began, for who looks and for the record.
    began: Option<(Instant, Timestamp)>,
    took: Option<Duration>,
    output: String,
    diff: String,
    end: Option<ToolState>,
}

impl ToolCard {
    /// A call whose arguments are still to come.
    pub(crate) fn announced(call: CallId, name: &str) -> ToolCard {
        ToolCard {
            call,
            name: one_line(name),
            input: Value::Null,
            began: None,
            took: None,
            output: String::new(),
            diff: String::new(),
            end: None,
        }
    }

    /// A call of the record.
    pub(crate) fn recorded(part: &ToolPart) -> ToolCard {
        let mut card = ToolCard::announced(part.call, &part.name);
        card.complete(part);
        card.end.get_or_insert_with(|| part.state.settled());
        card
    }

    pub(crate) fn complete(&mut self, part: &ToolPart) {
        self.input.clone_from(&part.input);
        if part.state.is_ended() {
            self.end = Some(part.state.clone());
        }
    }

    pub(crate) fn begin(&mut self, now: Instant, time: Timestamp) {
        self.began = Some((now, time));
    }

    pub(crate) fn add_output(&mut self, text: &str) {
        self.output.push_str(text);
        // Not at every piece: the end is moved each time.
        if self.output.len() > 2 * MAX_CARD_OUTPUT_BYTES {
            keep_end(&mut self.output, MAX_CARD_OUTPUT_BYTES);
        }
    }

    pub(crate) fn add_changes(&mut self, files: &FilesChanged) {
        self.diff.push_str(&files.diff);
    }

    pub(crate) fn finish(&mut self, end: &ToolState, time: Timestamp) {
        self.took = self.began.map(|(_, began)| Duration::from_millis(time.millis_since(began)));
        self.end = Some(end.clone());
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Whether something was called at all: a call that was only announced may vanish with its answer.
    pub(crate) fn is_called(&self) -> bool {
        !self.input.is_null() || self.is_ended()
    }

    /// What the call is about, in one line.
    pub(crate) fn about(&self) -> String {
        const FIELDS: [&str; 8] = ["command", "path", "pattern", "url", "query", "text", "question", "job"];
        let field = FIELDS.iter().find_map(|field| self.input.get(field)?.as_str());
        match (field, &self.input) {
            (Some(field), _) => one_line(field),
            (None, Value::Object(fields)) if fields.contains_key("tasks") => {
                let count = fields.get("tasks").and_then(Value::as_array).map_or(0, Vec::len);
                format!("{count} {}", if count == 1 { "task" } else { "tasks" })
            }
            (None, Value::Object(fields)) if fields.contains_key("patch") => {
                one_line(&patched(fields.get("patch").and_then(Value::as_str).unwrap_or_default()))
            }
            (None, Value::Null) => String::new(),
            (None, Value::Object(fields)) if fields.is_empty() => String::new(),
            (None, input) => one_line(&input.to_string()),
        }
    }

    pub(crate) fn lines(&self, width: usize, now: Instant, theme: &Theme) -> Vec<Line<'static>> {
        let mut lines = self.heading(width, now, theme);
        let body = match &self.end {
            None => self.tail(width, theme),
            Some(end) => self.outcome(end, width, theme),
        };
        let bar = Line::styled("  │ ", theme.border);
        lines.extend(body.iter().flat_map(|line| wrap_with_prefix(line, width, &bar, &bar)));
        lines
    }

    fn heading(&self, width: usize, now: Instant, theme: &Theme) -> Vec<Line<'static>> {
        let (mark, style) = self.mark(now, theme);
        let mut spans = vec![Span::styled(self.name.clone(), theme.strong)];
        let about = self.about();
        if !about.is_empty() {
            // A person must be able to see a whole command; a whole file not.
            let about = helve_widgets::width::truncate_text(&about, width.saturating_mul(3).max(1));
            spans.push(Span::styled(format!(" {about}"), theme.text));
        }
        let time = self.took.or_else(|| Some(now.saturating_duration_since(self.began?.0)));
        if let Some(time) = time.filter(|time| time.as_millis() >= 100) {
            spans.push(Span::styled(format!(" · {}", duration(time)), theme.muted));
        }
        let first = Line::styled(format!("{mark} "), style);
        wrap_with_prefix(&Line::from(spans), width, &first, &Line::raw("    "))
    }

    fn mark(&self, now: Instant, theme: &Theme) -> (&'static str, Style) {
        match (&self.end, self.began) {
            (Some(ToolState::Completed { .. }), _) => ("✓", theme.success),
            (Some(ToolState::Interrupted { .. }), _) => ("■", theme.warning),
            (Some(_), _) => ("✗", theme.error),
            (None, Some((began, _))) => (spinner_frame(now.saturating_duration_since(began)), theme.accent),
            (None, None) => ("○", theme.muted),
        }
    }

    /// What a running call has put out last.
    fn tail(&self, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        let from = self.output.ceil_char_boundary(self.output.len().saturating_sub(CARD_TAIL_BYTES));
        let end = strip_terminal_codes(self.output.get(from..).unwrap_or_default());
        let lines: Vec<&str> = end.lines().filter(|line| !line.trim().is_empty()).collect();
        let shown = lines.get(lines.len().saturating_sub(CARD_TAIL_LINES)..).unwrap_or_default();
        shown.iter().map(|line| cut(line, width, theme.muted)).collect()
    }

    fn outcome(&self, end: &ToolState, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        match end {
            ToolState::Completed { .. } if self.diff().is_some() => {
                let diff = self.diff().unwrap_or_default();
                diff_lines(diff, width.saturating_sub(4), MAX_CARD_DIFF_ROWS, theme)
            }
            ToolState::Completed { .. } if TOOLS_WITH_SHOWN_OUTPUT.contains(&self.name.as_str()) => {
                last_lines(&self.result(), CARD_TAIL_LINES, width, theme.muted)
            }
            ToolState::Completed { .. } => Vec::new(),
            ToolState::Error { message } => first_lines(message, MAX_CARD_ERROR_LINES, width, theme.error),
            ToolState::Denied { reason } => first_lines(reason, MAX_CARD_ERROR_LINES, width, theme.warning),
            ToolState::Interrupted { how, .. } => {
                let said = match how {
                    Interruption::NotStarted => "was not run",
                    Interruption::Stopped => "was stopped",
                    Interruption::Unknown => "Helve exited while it was running; check what it did",
                };
                vec![Line::styled(said, theme.warning)]
            }
            _ => Vec::new(),
        }
    }

    /// How it changed files, if it did.
    fn diff(&self) -> Option<&str> {
        if !self.diff.is_empty() {
            return Some(&self.diff);
        }
        let Some(ToolState::Completed { output }) = &self.end else { return None };
        // Tools that write files tell a count in the first line, and the diff behind it.
        let (_, diff) = output.display.as_deref()?.split_once('\n')?;
        diff.contains("\n@@ ").then_some(diff)
    }

    /// What it gave, for people.
    fn result(&self) -> String {
        match &self.end {
            Some(ToolState::Completed { output }) => strip_terminal_codes(&output.text),
            Some(ended) => strip_terminal_codes(&ended.for_model().text),
            None => strip_terminal_codes(&self.output),
        }
    }

    /// Everything about it.
    pub(crate) fn entry(&self) -> PagerEntry {
        let input = match &self.input {
            Value::Null => String::new(),
            Value::Object(fields) => {
                let field = |(name, value): (&String, &Value)| match value.as_str() {
                    Some(text) if text.contains('\n') => format!("{name}:\n{text}"),
                    Some(text) => format!("{name}: {text}"),
                    None => format!("{name}: {value}"),
                };
                fields.iter().map(field).collect::<Vec<_>>().join("\n")
            }
            other => other.to_string(),
        };
        let mut sections = vec![PagerSection::Text(input)];
        sections.extend(self.diff().map(|diff| PagerSection::Diff(diff.to_owned())));
        sections.push(PagerSection::Text(self.result()));
        let whole = self.end.as_ref().and_then(full_output_blob);
        PagerEntry {
            title: format!("{} {}", self.name, self.about()),
            sections,
            whole,
            ..PagerEntry::default()
        }
    }
}

/// What turns while something goes on.
/// The files that a patch names.
fn patched(patch: &str) -> String {
    const BEGIN: [&str; 4] = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "+++ b/"];
    let name = |line: &'_ str| BEGIN.iter().find_map(|begin| line.strip_prefix(begin)).map(str::to_owned);
    patch.lines().filter_map(name).collect::<Vec<_>>().join(" ")
}

pub(crate) fn spinner_frame(since: Duration) -> &'static str {
    let number = usize::try_from(since.as_millis() / 100).unwrap_or(0);
    SPINNER_FRAMES.get(number % SPINNER_FRAMES.len()).copied().unwrap_or_default()
}

fn cut(line: &str, width: usize, style: Style) -> Line<'static> {
    Line::styled(helve_widgets::width::truncate_text(line, width.saturating_sub(4).max(1)), style)
}

fn first_lines(text: &str, most: usize, width: usize, style: Style) -> Vec<Line<'static>> {
    let text = strip_terminal_codes(text);
    let all: Vec<&str> = text.lines().collect();
    let mut lines: Vec<Line<'static>> =
        all.iter().take(most).map(|line| Line::styled((*line).to_owned(), style)).collect();
    if all.len() > most {
        lines.push(cut(&format!("… {} more lines", all.len() - most), width, style));
    }
    lines
}

fn last_lines(text: &str, most: usize, width: usize, style: Style) -> Vec<Line<'static>> {
    let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let hidden = all.len().saturating_sub(most);
    let mut lines = Vec::new();
    if hidden > 0 {
        lines.push(cut(&format!("… {hidden} more lines"), width, style));
    }
    lines.extend(all.iter().skip(hidden).map(|line| cut(line, width, style)));
    lines
}
/// The whole output of a call, if what is told of it is a cut.
pub(crate) fn full_output_blob(end: &ToolState) -> Option<BlobId> {
    match end {
        ToolState::Completed { output } => output.whole,
        _ => None,
    }
}
