//! The items of the transcript, and how each looks.

use std::time::{Duration, Instant};

use helve_protocol::CallId;
use helve_widgets::{MarkdownStream, Theme, wrap_with_prefix};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::cards::ToolCard;
use crate::text_format::{duration, one_line};

#[derive(Debug)]
pub(crate) enum TranscriptItem {
    Answer(Box<AnswerItem>),
    Thinking(ThinkingItem),
    Card(Box<ToolCard>),
    /// Lines that are final: built for a width when they are printed.
    Remark(RemarkItem),
}

/// An answer that comes piece by piece.
#[derive(Debug, Default)]
pub(crate) struct AnswerItem {
    pub(crate) markdown: MarkdownStream,
    pub(crate) is_over: bool,
    /// The mark before the first line was printed.
    pub(crate) has_begun: bool,
}

#[derive(Debug)]
pub(crate) struct ThinkingItem {
    pub(crate) text: String,
    pub(crate) since: Instant,
    pub(crate) took: Option<Duration>,
}

/// Stands before what a person said, and what a person ran.
pub(crate) const USER_TEXT_MARK: &str = "> ";
pub(crate) const USER_COMMAND_MARK: &str = "$ ";

/// A line of ours with a mark before it.
#[derive(Debug)]
pub(crate) struct RemarkItem {
    pub(crate) mark: &'static str,
    pub(crate) lines: Vec<(String, RemarkTone)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RemarkTone {
    UserText,
    Note,
    Success,
    Warning,
    Error,
}

impl RemarkTone {
    fn style(self, theme: &Theme) -> Style {
        match self {
            RemarkTone::UserText => theme.strong,
            RemarkTone::Note => theme.muted,
            RemarkTone::Success => theme.success,
            RemarkTone::Warning => theme.warning,
            RemarkTone::Error => theme.error,
        }
    }
}

impl AnswerItem {
    pub(crate) fn push(&mut self, text: &str) {
        self.markdown.push(text);
    }

    pub(crate) fn finish(&mut self) {
        if !self.is_over {
            self.markdown.finish();
            self.is_over = true;
        }
    }
}

impl TranscriptItem {
    pub(crate) fn is_card(&self, call: CallId) -> bool {
        matches!(self, TranscriptItem::Card(card) if card.call == call)
    }

    pub(crate) fn is_final(&self) -> bool {
        match self {
            TranscriptItem::Answer(answer) => answer.is_over,
            TranscriptItem::Thinking(thinking) => thinking.took.is_some(),
            TranscriptItem::Card(card) => card.is_ended(),
            TranscriptItem::Remark(_) => true,
        }
    }

    /// Whether a blank line comes before it. Of an answer whose beginning is printed, the rest follows without.
    pub(crate) fn stands_apart(&self) -> bool {
        match self {
            TranscriptItem::Answer(answer) => !answer.has_begun,
            TranscriptItem::Remark(remark) => [USER_TEXT_MARK, USER_COMMAND_MARK].contains(&remark.mark),
            TranscriptItem::Thinking(_) | TranscriptItem::Card(_) => true,
        }
    }

    pub(crate) fn take_final(&mut self, width: usize, now: Instant, theme: &Theme) -> Vec<Line<'static>> {
        match self {
            TranscriptItem::Answer(answer) => {
                let lines = answer.markdown.take_finished(body_width(width), theme);
                let marked = marked(lines, !answer.has_begun, theme);
                answer.has_begun |= !marked.is_empty();
                marked
            }
            TranscriptItem::Thinking(thinking) if thinking.took.is_none() => Vec::new(),
            TranscriptItem::Card(card) if !card.is_ended() => Vec::new(),
            item => item.live(width, now, theme),
        }
    }

    pub(crate) fn live(&self, width: usize, now: Instant, theme: &Theme) -> Vec<Line<'static>> {
        match self {
            TranscriptItem::Answer(answer) => {
                marked(answer.markdown.pending(body_width(width), theme), !answer.has_begun, theme)
            }
            TranscriptItem::Thinking(thinking) => vec![thinking.line(width, now, theme)],
            TranscriptItem::Card(card) => card.lines(width, now, theme),
            TranscriptItem::Remark(remark) => remark.rows(width, theme),
        }
    }
}

/// Answers stand behind a mark.
fn body_width(width: usize) -> usize {
    width.saturating_sub(2).max(1)
}

fn marked(lines: Vec<Line<'static>>, is_first: bool, theme: &Theme) -> Vec<Line<'static>> {
    let mark = |number: usize| if number == 0 && is_first { "• " } else { "  " };
    let lines = lines.into_iter().enumerate().map(|(number, mut line)| {
        line.spans.insert(0, Span::styled(mark(number), theme.accent));
        line
    });
    lines.collect()
}

impl ThinkingItem {
    /// Folded: how long, and the last line of it while it goes on.
    fn line(&self, width: usize, now: Instant, theme: &Theme) -> Line<'static> {
        let text = match self.took {
            Some(took) => format!("· thought for {}", duration(took)),
            None => {
                let last = self.text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
                let time = duration(now.saturating_duration_since(self.since));
                format!("· thinking · {time} · {}", one_line(last))
            }
        };
        Line::styled(helve_widgets::width::truncate_text(&text, width.max(1)), theme.muted)
    }
}

impl RemarkItem {
    fn rows(&self, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        let mut rows = Vec::new();
        for (number, (text, tone)) in self.lines.iter().enumerate() {
            let style = tone.style(theme);
            let mark = if *tone == RemarkTone::UserText { theme.accent } else { style };
            let first = Line::styled(if number == 0 { self.mark } else { "  " }, mark);
            rows.extend(wrap_with_prefix(
                &Line::styled(text.clone(), style),
                width,
                &first,
                &Line::raw("  "),
            ));
        }
        rows
    }
}
