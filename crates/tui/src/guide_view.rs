//! How the set-up looks: what is asked, what can be chosen, and what can be done.

use std::io::{self, Write};

use helve_widgets::{Cursor, Screen, Theme, put, width, wrap_after};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};
use ratatui::text::{Line, Span};

use crate::guide::{Guide, Nearby, Stage};
use crate::keys::Action;
use crate::words::one_line;

/// So many dots stand for a key.
const MOST_DOTS: usize = 40;
/// What stands below what a project asks for takes so many rows, in a narrow window too.
const TRUST_FOOT: u16 = 4;
/// So many rows of a list are shown.
const ROWS: u16 = 10;

impl Guide {
    pub(crate) fn draw<W: Write, S: FnMut() -> Size>(&mut self, screen: &mut Screen<W, S>) -> io::Result<()> {
        let Size { width, height } = screen.size();
        let theme = self.look.theme.clone();
        let mut head = self.head(width.into(), &theme);
        if let Stage::Trust(_) = &self.stage {
            let room = usize::from(height.saturating_sub(TRUST_FOOT)).max(1);
            self.top = self.top.min(head.len().saturating_sub(room));
            self.has_seen_all |= self.top + room >= head.len();
            head = head.into_iter().skip(self.top).take(room).collect();
        }
        let foot = self.foot(width.into(), &theme);
        let fixed = u16::try_from(head.len() + foot.len()).unwrap_or(u16::MAX);
        let room = height.saturating_sub(fixed);
        let picker = match &mut self.stage {
            Stage::Ways => Some(&mut self.ways),
            Stage::Whose(_, picker) => Some(&mut **picker),
            _ => None,
        };
        let rows = picker.as_ref().map_or(0, |picker| picker.height(ROWS).min(room));
        screen.draw(fixed.saturating_add(rows).min(height).max(1), |buffer| {
            let mut y = put_all(buffer, 0, &head);
            let mut cursor = None;
            if let Some(picker) = picker {
                let area = Rect { x: 0, y, width, height: rows }.intersection(buffer.area);
                cursor = picker.draw(area, buffer, &theme).cursor.map(Cursor::at);
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
            Stage::Ways => {
                let welcome = vec![
                    Span::styled("Welcome to Helve.", theme.heading),
                    Span::styled(" It needs a model to speak with, and found none.", theme.text),
                ];
                lines.extend([Line::from(welcome), Line::default()]);
            }
            Stage::Key(key) => {
                let dots = "•".repeat(key.chars().count().min(MOST_DOTS));
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
            Stage::Whose(..) => {}
            Stage::Storing => lines.push(Line::styled("storing the key …", theme.muted)),
            Stage::Trust(asked) => {
                for (number, line) in asked.iter().enumerate() {
                    let style = if number == 0 { theme.warning } else { theme.text };
                    lines.push(Line::styled(width::harmless(line).into_owned(), style));
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
            Stage::Ways => {
                lines.extend(self.nearby.odd.iter().map(|odd| Line::styled(one_line(odd), theme.warning)));
                if self.nearby == Nearby::default() {
                    let text =
                        "A server such as Ollama, LM Studio or llama.cpp appears here as soon as it runs.";
                    lines.push(Line::styled(text, theme.muted));
                }
                lines
                    .push(self.keys_line(&[(Action::Choose, "takes it"), (Action::Cancel, "leaves")], theme));
            }
            Stage::Key(_) => {
                lines.push(Line::styled(
                    format!("enter stores it · {} goes back", keys.key(Action::Cancel)),
                    theme.muted,
                ));
            }
            Stage::Whose(..) => {
                lines.push(
                    self.keys_line(&[(Action::Choose, "takes it"), (Action::Cancel, "goes back")], theme),
                );
            }
            Stage::Storing => {}
            Stage::Trust(_) if !self.has_seen_all => {
                let hints = [(Action::ListPageDown, "shows more"), (Action::Reject, "no, leave them out")];
                lines.push(self.keys_line(&hints, theme));
            }
            Stage::Trust(_) => {
                lines.push(Line::styled("Shall they count?", theme.strong));
                lines.push(
                    self.keys_line(
                        &[(Action::AllowOnce, "yes"), (Action::Reject, "no, leave them out")],
                        theme,
                    ),
                );
            }
        }
        wrapped(&lines, width)
    }

    fn keys_line(&self, hints: &[(Action, &str)], theme: &Theme) -> Line<'static> {
        let keys = &self.look.keys;
        let hints: Vec<String> =
            hints.iter().map(|(action, about)| format!("{} {about}", keys.key(*action))).collect();
        Line::styled(hints.join(" · "), theme.muted)
    }
}

fn wrapped(lines: &[Line<'static>], columns: usize) -> Vec<Line<'static>> {
    let none = Line::default();
    lines.iter().flat_map(|line| wrap_after(line, columns.max(1), &none, &none)).collect()
}

/// Draws lines from a row on, and gives the row behind them.
fn put_all(buffer: &mut Buffer, top: u16, lines: &[Line<'static>]) -> u16 {
    let columns = buffer.area.width;
    let mut y = top;
    for line in lines {
        put(buffer, Position::new(0, y), columns, &width::truncate(line, columns.into()));
        y = y.saturating_add(1);
    }
    y
}
