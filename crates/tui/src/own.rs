//! A command of the user's own, while it runs.

use std::time::Instant;

use helve_widgets::{Theme, width};
use ratatui::text::{Line, Span};

use crate::app::App;
use crate::cards::frame;
use crate::errands::Errand;
use crate::items::Tone;
use crate::kept::{Entry, Section};
use crate::keymap::KeyMap;
use crate::keys::Action;
use crate::link::{Ran, Stop};
use crate::words::{duration, keep_end, one_line, plain};

/// So many of its last lines are shown while it runs, and afterwards.
const ROWS: usize = 8;
const MOST_SHOWN: usize = 20;
/// What it put out goes to the model with the next message, so much of it.
const MOST_ASIDE: usize = 16 << 10;

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

impl App {
    /// Runs a command of the user's, one at a time.
    pub(crate) fn run_own(&mut self, command: &str, now: Instant) {
        if self.own.is_some() {
            self.composer.set_text(&format!("!{command}"));
            let key = self.look.keys.key(Action::Interrupt).to_owned();
            return self
                .transcript
                .remark(Tone::Warning, format!("a command of yours runs already; {key} stops it"));
        }
        let stop = Stop::default();
        self.own = Some(Own::new(command, stop.clone(), now));
        self.errands.push(Errand::Shell(command.to_owned(), stop));
    }

    pub(crate) fn own_ended(&mut self, command: &str, ran: &Ran) {
        self.own = None;
        let output = plain(ran.output.trim_end());
        let tone = if ran.is_well { Tone::Note } else { Tone::Warning };
        let lines: Vec<&str> = output.lines().collect();
        let hidden = lines.len().saturating_sub(MOST_SHOWN);
        let mut shown: Vec<String> = lines.iter().skip(hidden).map(|line| one_line(line)).collect();
        if hidden > 0 {
            shown.insert(0, format!("… {hidden} more lines"));
        }
        let entry = Entry::new(format!("$ {command}"), Section::Text(output.clone()));
        self.transcript.ran(&one_line(command), shown, tone, entry);
        let mut aside = output;
        keep_end(&mut aside, MOST_ASIDE);
        self.asides.push(format!("I ran `{command}` myself. Its output:\n{aside}"));
    }
}
