//! A command of the user's own, while it runs.

use std::time::Instant;

use helve_widgets::{Theme, width};
use ratatui::text::{Line, Span};

use crate::cards::frame;
use crate::keymap::KeyMap;
use crate::keys::Action;
use crate::link::Stop;
use crate::words::{duration, one_line, plain};

/// So many of its last lines are shown.
const ROWS: usize = 8;

#[derive(Debug)]
pub(crate) struct Own {
    command: String,
    since: Instant,
    /// The last of what it put out.
    tail: String,
    stop: Stop,
    is_stopping: bool,
}

impl Own {
    pub(crate) fn new(command: &str, stop: Stop, now: Instant) -> Own {
        Own { command: command.to_owned(), since: now, tail: String::new(), stop, is_stopping: false }
    }

    pub(crate) fn stop(&mut self) {
        self.is_stopping = true;
        self.stop.stop();
    }

    pub(crate) fn set_tail(&mut self, tail: &str) {
        self.tail = plain(tail);
    }

    pub(crate) fn lines(
        &self,
        columns: usize,
        now: Instant,
        keys: &KeyMap,
        theme: &Theme,
    ) -> Vec<Line<'static>> {
        let time = now.saturating_duration_since(self.since);
        let end = if self.is_stopping {
            "stopping".to_owned()
        } else {
            format!("{} stops", keys.key(Action::Interrupt))
        };
        let head = Line::from(vec![
            Span::styled(format!("{} $ {}", frame(time), one_line(&self.command)), theme.accent),
            Span::styled(format!(" · {} · {end}", duration(time)), theme.muted),
        ]);
        let last: Vec<&str> = self.tail.lines().rev().take(ROWS).collect();
        let rows =
            last.into_iter().rev().map(|line| Line::styled(format!("  │ {}", one_line(line)), theme.muted));
        // Apart from what was said before.
        let lines = [Line::default(), head].into_iter().chain(rows);
        lines.map(|line| width::truncate(&line, columns.max(1))).collect()
    }
}

/// Nothing goes on that nobody can see or stop any more.
impl Drop for Own {
    fn drop(&mut self) {
        self.stop.stop();
    }
}
