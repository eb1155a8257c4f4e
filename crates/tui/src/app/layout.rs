//! Where things are drawn: from the bottom up, what matters most first.

use std::time::Instant;

use helve_widgets::{ScreenCursor, put_line};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};
use ratatui::text::Line;

use super::{App, FullScreenView};
use crate::keys::KeyAction;
use crate::pager_view::hints;

/// In a lower window there is nothing but the input.
const MIN_HEIGHT_FOR_STATUS: u16 = 4;
/// In a lower window no line is spent on a border.
const MIN_HEIGHT_FOR_BORDER: u16 = 12;

/// The live area: lines that happen, lines above the input, the input or a question, and the status line.
pub(crate) struct LiveAreaLayout {
    width: u16,
    live: Vec<Line<'static>>,
    border: u16,
    input: u16,
    status: Option<Line<'static>>,
}

impl LiveAreaLayout {
    pub(crate) fn new(app: &App, window: Size, limit: Option<u64>, now: Instant) -> LiveAreaLayout {
        let (theme, keys) = (&app.look.theme, &app.look.keys);
        let columns = usize::from(window.width);
        let status = (window.height >= MIN_HEIGHT_FOR_STATUS).then(|| match app.leaving {
            Some(_) if !app.status.is_busy() => Line::styled("press Ctrl-C again to leave", theme.warning),
            _ => app.status.line(&app.look.status, columns, limit, theme),
        });
        let border = u16::from(window.height >= MIN_HEIGHT_FOR_BORDER);
        let room = window.height.saturating_sub(u16::from(status.is_some()) + border).max(1);
        let input = if app.approvals.is_open() {
            app.approvals.height(window.width, room.saturating_sub(room / 5).max(1), keys, theme)
        } else {
            app.composer.height(window.width, (room / 2).max(1))
        };
        let room = usize::from(room.saturating_sub(input));
        let mut above = app.status.above(columns, now, app.approvals.is_open(), keys, theme);
        above.truncate(room);
        let mut live = app.transcript.live(columns, now, theme);
        live.extend(app.own.iter().flat_map(|own| own.lines(columns, now, keys, theme)));
        // A blank line keeps what is going on apart from what was said.
        if !above.is_empty() && live.len() + above.len() < room {
            live.push(Line::default());
        }
        let hidden = live.len().saturating_sub(room - above.len());
        live.drain(..hidden);
        live.extend(above);
        LiveAreaLayout { width: window.width, live, border, input, status }
    }

    pub(crate) fn height(&self) -> u16 {
        let live = u16::try_from(self.live.len()).unwrap_or(u16::MAX);
        let status = u16::from(self.status.is_some());
        live.saturating_add(self.border).saturating_add(self.input).saturating_add(status)
    }

    pub(crate) fn draw(&self, app: &mut App, buffer: &mut Buffer) -> Option<ScreenCursor> {
        let theme = app.look.theme.clone();
        let mut y = 0;
        for line in &self.live {
            put_line(buffer, Position::new(0, y), self.width, line);
            y += 1;
        }
        if self.border > 0 {
            let rule = Line::styled("─".repeat(self.width.into()), theme.border);
            put_line(buffer, Position::new(0, y), self.width, &rule);
            y += 1;
        }
        let area = Rect { x: 0, y, width: self.width, height: self.input }.intersection(buffer.area);
        let keys = app.look.keys.clone();
        let at = if app.approvals.is_open() {
            app.approvals.draw(area, buffer, &keys, &theme)
        } else {
            let hint = if app.status.is_busy() {
                format!("{} queues, {} steers", keys.key(KeyAction::Send), keys.key(KeyAction::Steer))
            } else {
                "Ask Helve anything".to_owned()
            };
            app.composer.draw(area, buffer, &hint, &theme)
        };
        if let Some(status) = &self.status {
            let y = y + self.input;
            let used = put_line(buffer, Position::new(0, y), self.width, status);
            let hints = hints(&keys, &theme);
            let needed = u16::try_from(helve_widgets::width::line_width(&hints)).unwrap_or(u16::MAX);
            if used.saturating_add(needed).saturating_add(2) <= self.width {
                put_line(buffer, Position::new(self.width - needed, y), needed, &hints);
            }
        }
        at.map(ScreenCursor::at)
    }
}

/// What fills the window.
pub(crate) fn draw_full_screen(app: &mut App, buffer: &mut Buffer) -> Option<ScreenCursor> {
    let area = buffer.area;
    let cursor = full_alone(app, buffer);
    if app.approvals.is_open() && app.full.is_some() {
        let note = Line::styled(" a question waits: close this ", app.look.theme.warning);
        let width =
            u16::try_from(helve_widgets::width::line_width(&note)).unwrap_or(u16::MAX).min(area.width);
        put_line(buffer, Position::new(area.right() - width, area.y), width, &note);
    }
    cursor
}

fn full_alone(app: &mut App, buffer: &mut Buffer) -> Option<ScreenCursor> {
    let area = buffer.area;
    let (theme, keys) = (&app.look.theme, &app.look.keys);
    match app.full.as_mut()? {
        FullScreenView::Pager(reading) => {
            reading.draw(area, buffer, keys, theme);
            None
        }
        FullScreenView::Models(models) => models.draw(area, buffer, theme).map(ScreenCursor::at),
        FullScreenView::Modes(list) | FullScreenView::Efforts(list) => {
            list.draw(area, buffer, theme).map(ScreenCursor::at)
        }
        FullScreenView::Sessions(sessions) => sessions.draw(area, buffer, theme).map(ScreenCursor::at),
        FullScreenView::Changes(changes) => changes.draw(area, buffer, keys, theme).map(ScreenCursor::at),
    }
}
