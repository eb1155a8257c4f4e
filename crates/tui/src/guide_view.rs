//! How the set-up looks: what is asked, what can be chosen, and what can be done.

use std::io::{self, Write};

use helve_widgets::{ScreenCursor, TerminalScreen, Theme, put_line, width, wrap_with_prefix};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};
use ratatui::text::{Line, Span};

use crate::guide::{GuideStage, LocalModelScan, SetupGuide};
use crate::keys::KeyAction;
use crate::text_format::one_line;

/// So many dots stand for a key.
const MAX_KEY_DOTS: usize = 40;
/// What stands below what a project asks for takes so many rows, in a narrow window too.
const TRUST_FOOTER_ROWS: u16 = 4;
/// So many rows of a list are shown.
const MAX_GUIDE_LIST_ROWS: u16 = 10;

impl SetupGuide {
    pub(crate) fn draw<W: Write, S: FnMut() -> Size>(
        &mut self,
        screen: &mut TerminalScreen<W, S>,
    ) -> io::Result<()> {
        let Size { width, height } = screen.size();
        let theme = self.look.theme.clone();
        let mut head = self.head(width.into(), &theme);
        if let GuideStage::Trust(_) = &self.stage {
            let room = usize::from(height.saturating_sub(TRUST_FOOTER_ROWS)).max(1);
            self.top = self.top.min(head.len().saturating_sub(room));
            self.has_seen_all |= self.top + room >= head.len();
            head = head.into_iter().skip(self.top).take(room).collect();
        }
        let foot = self.foot(width.into(), &theme);
        let fixed = u16::try_from(head.len() + foot.len()).unwrap_or(u16::MAX);
        let room = height.saturating_sub(fixed);
        let picker = match &mut self.stage {
            GuideStage::ChooseSource => Some(&mut self.ways),
            GuideStage::ChooseProvider(_, picker) => Some(&mut **picker),
            _ => None,
        };
        let rows = picker.as_ref().map_or(0, |picker| picker.height(MAX_GUIDE_LIST_ROWS).min(room));
        screen.draw(fixed.saturating_add(rows).min(height).max(1), |buffer| {
            let mut y = put_all(buffer, 0, &head);
            let mut cursor = None;
            if let Some(picker) = picker {
                let area = Rect { x: 0, y, width, height: rows }.intersection(buffer.area);
                cursor = picker.draw(area, buffer, &theme).cursor.map(ScreenCursor::at);
                y += rows;
            }
            put_all(buffer, y, &foot);
            cursor
        })
    }

    /// What is asked.
    fn head(&self, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        match &self.stage {
            GuideStage::ChooseSource => {
                let welcome = vec![
                    Span::styled("Welcome to Helve.", theme.heading),
                    Span::styled(" It needs a model, and found none.", theme.text),
                ];
                lines.extend([Line::from(welcome), Line::default()]);
            }
            GuideStage::EnterKey(key) => {
                let dots = "•".repeat(key.chars().count().min(MAX_KEY_DOTS));
                let whose = (self.guess)(key.trim()).map(|name| format!("  {name}")).unwrap_or_default();
                lines.push(Line::styled(
                    "Paste the key. It is not shown, and stored for you alone.",
                    theme.text,
                ));
                lines.push(Line::from(vec![
                    Span::styled("key: ", theme.accent),
                    Span::styled(format!("{dots}▏"), theme.text),
                    Span::styled(whose, theme.success),
                ]));
            }
            GuideStage::ChooseProvider(..) => {}
            GuideStage::StoringKey => lines.push(Line::styled("storing the key …", theme.muted)),
            GuideStage::Trust(asked) => {
                for (number, line) in asked.iter().enumerate() {
                    let style = if number == 0 { theme.warning } else { theme.text };
                    lines.push(Line::styled(width::sanitize_text(line).into_owned(), style));
                }
            }
        }
        wrapped(&lines, width)
    }

    /// What can be done, and what went wrong.
    fn foot(&self, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        let keys = &self.look.keys;
        let mut lines: Vec<Line<'static>> = Vec::new();
        lines.extend(self.trouble.iter().map(|why| Line::styled(one_line(why), theme.warning)));
        match &self.stage {
            GuideStage::ChooseSource => {
                lines.extend(self.nearby.odd.iter().map(|odd| Line::styled(one_line(odd), theme.warning)));
                if self.nearby == LocalModelScan::default() {
                    let text =
                        "A server such as Ollama, LM Studio or llama.cpp appears here as soon as it runs.";
                    lines.push(Line::styled(text, theme.muted));
                }
                lines.push(
                    self.keys_line(&[(KeyAction::Choose, "takes it"), (KeyAction::Cancel, "leaves")], theme),
                );
            }
            GuideStage::EnterKey(_) => {
                lines.push(Line::styled(
                    format!("enter stores it · {} goes back", keys.key(KeyAction::Cancel)),
                    theme.muted,
                ));
            }
            GuideStage::ChooseProvider(..) => {
                lines.push(
                    self.keys_line(
                        &[(KeyAction::Choose, "takes it"), (KeyAction::Cancel, "goes back")],
                        theme,
                    ),
                );
            }
            GuideStage::StoringKey => {}
            GuideStage::Trust(_) if !self.has_seen_all => {
                let hints =
                    [(KeyAction::ListPageDown, "shows more"), (KeyAction::Reject, "no, leave them out")];
                lines.push(self.keys_line(&hints, theme));
            }
            GuideStage::Trust(_) => {
                lines.push(Line::styled("Shall they count?", theme.strong));
                lines.push(self.keys_line(
                    &[(KeyAction::AllowOnce, "yes"), (KeyAction::Reject, "no, leave them out")],
                    theme,
                ));
            }
        }
        wrapped(&lines, width)
    }

    fn keys_line(&self, hints: &[(KeyAction, &str)], theme: &Theme) -> Line<'static> {
        let keys = &self.look.keys;
        let hints: Vec<String> =
            hints.iter().map(|(action, about)| format!("{} {about}", keys.key(*action))).collect();
        Line::styled(hints.join(" · "), theme.muted)
    }
}

fn wrapped(lines: &[Line<'static>], columns: usize) -> Vec<Line<'static>> {
    let none = Line::default();
    lines.iter().flat_map(|line| wrap_with_prefix(line, columns.max(1), &none, &none)).collect()
}

/// Draws lines from a row on, and gives the row behind them.
fn put_all(buffer: &mut Buffer, top: u16, lines: &[Line<'static>]) -> u16 {
    let columns = buffer.area.width;
    let mut y = top;
    for line in lines {
        put_line(buffer, Position::new(0, y), columns, &width::truncate(line, columns.into()));
        y = y.saturating_add(1);
    }
    y
}
