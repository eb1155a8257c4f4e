//! A command of the user's own, while it runs.

use std::time::Instant;

use helve_widgets::{Theme, width};
use ratatui::text::{Line, Span};

use super::App;
use crate::cards::spinner_frame;
use crate::keymap::KeyMap;
use crate::keys::KeyAction;
use crate::link::{CommandStopFlag, UserCommandResult};
use crate::machine_jobs::MachineJob;
use crate::pager_entries::{PagerEntry, PagerSection};
use crate::text_format::{duration, keep_end, one_line, strip_terminal_codes};
use crate::transcript_items::RemarkTone;

/// So many of its last lines are shown while it runs, and afterwards.
const RUNNING_COMMAND_ROWS: usize = 8;
const MAX_FINISHED_COMMAND_LINES: usize = 20;
/// What it put out goes to the model with the next message, so much of it.
const MAX_SHARED_OUTPUT_BYTES: usize = 16 << 10;

#[derive(Debug)]
pub(crate) struct RunningUserCommand {
    command: String,
    since: Instant,
    /// The last of what it put out.
    tail: String,
    stop: CommandStopFlag,
    is_stopping: bool,
}

impl RunningUserCommand {
    pub(crate) fn new(command: &str, stop: CommandStopFlag, now: Instant) -> RunningUserCommand {
        RunningUserCommand {
            command: command.to_owned(),
            since: now,
            tail: String::new(),
            stop,
            is_stopping: false,
        }
    }

    pub(crate) fn stop(&mut self) {
        self.is_stopping = true;
        self.stop.stop();
    }

    pub(crate) fn set_tail(&mut self, tail: &str) {
        self.tail = strip_terminal_codes(tail);
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
            format!("{} stops", keys.key(KeyAction::Interrupt))
        };
        let head = Line::from(vec![
            Span::styled(format!("{} $ {}", spinner_frame(time), one_line(&self.command)), theme.accent),
            Span::styled(format!(" · {} · {end}", duration(time)), theme.muted),
        ]);
        let last: Vec<&str> = self.tail.lines().rev().take(RUNNING_COMMAND_ROWS).collect();
        let rows =
            last.into_iter().rev().map(|line| Line::styled(format!("  │ {}", one_line(line)), theme.muted));
        // Apart from what was said before.
        let lines = [Line::default(), head].into_iter().chain(rows);
        lines.map(|line| width::truncate(&line, columns.max(1))).collect()
    }
}

/// Nothing goes on that nobody can see or stop any more.
impl Drop for RunningUserCommand {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

impl App {
    /// Runs a command of the user's, one at a time.
    pub(crate) fn run_user_command(&mut self, command: &str, now: Instant) {
        if self.own.is_some() {
            self.composer.set_text(&format!("!{command}"));
            let key = self.look.keys.key(KeyAction::Interrupt).to_owned();
            return self
                .transcript
                .remark(RemarkTone::Warning, format!("a command of yours runs already; {key} stops it"));
        }
        let stop = CommandStopFlag::default();
        self.own = Some(RunningUserCommand::new(command, stop.clone(), now));
        self.errands.push(MachineJob::Shell(command.to_owned(), stop));
    }

    pub(crate) fn user_command_ended(&mut self, command: &str, ran: &UserCommandResult) {
        self.own = None;
        let output = strip_terminal_codes(ran.output.trim_end());
        let tone = if ran.is_well { RemarkTone::Note } else { RemarkTone::Warning };
        let lines: Vec<&str> = output.lines().collect();
        let hidden = lines.len().saturating_sub(MAX_FINISHED_COMMAND_LINES);
        let mut shown: Vec<String> = lines.iter().skip(hidden).map(|line| one_line(line)).collect();
        if hidden > 0 {
            shown.insert(0, format!("… {hidden} more lines"));
        }
        let entry = PagerEntry::new(format!("$ {command}"), PagerSection::Text(output.clone()));
        self.transcript.add_user_command(&one_line(command), shown, tone, entry);
        let mut aside = output;
        keep_end(&mut aside, MAX_SHARED_OUTPUT_BYTES);
        self.asides.push(format!("I ran `{command}` myself. Its output:\n{aside}"));
    }
}
