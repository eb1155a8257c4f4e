//! What the commands that begin with a slash do.

use helve_protocol::{Command, ModelName, Query, SessionSummary};
use helve_widgets::Choice as Row;

use crate::app::{App, Full};
use crate::errands::Errand;
use crate::items::Tone;
use crate::kept::{Entry, Section};
use crate::link::{Ending, Order};
use crate::reading::{Choosing, Reading, help};
use crate::slash::Does;
use crate::status::{MODES, mode_name};
use crate::words::{one_line, tokens};

impl App {
    pub(crate) fn slash(&mut self, does: Does, argument: &str) {
        match does {
            Does::Help => self.full = Some(Full::Reading(Reading::new(help(&self.look.keys)))),
            Does::New => self.ending = Some(Ending::New),
            Does::Quit => self.ending = Some(Ending::Quit),
            Does::Model if argument.is_empty() => self.errands.push(Errand::ListModels),
            Does::Model => {
                let model = ModelName::new(argument);
                self.orders.push(Order::Do(Command::SetModel { model }));
            }
            Does::Mode => self.set_mode(argument),
            Does::Cost => self.tell_cost(),
            Does::Diff if self.diff.is_empty() => {
                self.transcript.remark(Tone::Note, "nothing was changed since the session was opened");
            }
            Does::Diff => {
                let entry =
                    Entry::new("changed since the session was opened", Section::Diff(self.diff.clone()));
                self.full = Some(Full::Reading(Reading::new(entry)));
            }
            Does::GoOn => self.orders.push(Order::Do(Command::GoOn)),
            Does::Resume => self.orders.push(Order::Ask(Query::Sessions)),
            Does::Rename if argument.is_empty() => {
                self.transcript.remark(Tone::Warning, "write the title behind it: /rename TITLE");
            }
            Does::Rename => self.orders.push(Order::Do(Command::Rename { title: argument.to_owned() })),
            Does::Copy if self.transcript.last_answer.is_empty() => {
                self.transcript.remark(Tone::Note, "there is no answer yet");
            }
            Does::Copy => {
                self.errands.push(Errand::Copy(self.transcript.last_answer.clone()));
                self.transcript
                    .remark(Tone::Note, "the last answer is in the clipboard, if your terminal allows it");
            }
            Does::Permissions => self.errands.push(Errand::Permissions),
            Does::Doctor => self.errands.push(Errand::Doctor),
        }
    }

    pub(crate) fn choose_model(&mut self, models: Vec<(String, String)>) {
        if models.is_empty() {
            self.transcript.remark(Tone::Note, "no other model is known; /model NAME takes any");
            return;
        }
        let rows = models.iter().map(|(name, about)| Row::new(name.as_str(), about.as_str()));
        self.full = Some(Full::Models(Choosing::new("model", rows.collect()), models));
    }

    fn set_mode(&mut self, argument: &str) {
        let named = MODES.iter().find(|(mode, _)| mode_name(*mode) == argument).map(|(mode, _)| *mode);
        match named {
            Some(mode) => self.orders.push(Order::Do(Command::SetMode { mode })),
            None if argument.is_empty() => {
                let rows = MODES.iter().map(|(mode, about)| Row::new(mode_name(*mode), *about));
                self.full = Some(Full::Modes(Choosing::new("mode", rows.collect())));
            }
            None => {
                let names: Vec<&str> = MODES.iter().map(|(mode, _)| mode_name(*mode)).collect();
                self.transcript.remark(Tone::Warning, format!("the modes are {}", names.join(", ")));
            }
        }
    }

    fn tell_cost(&mut self) {
        let usage = self.status.usage;
        let text = format!(
            "{} in this session; since it was opened: {} tokens read, {} of them cached, {} written",
            self.status.cost,
            tokens(usage.input + usage.cache_read + usage.cache_write),
            tokens(usage.cache_read),
            tokens(usage.output),
        );
        self.transcript.remark(Tone::Note, text);
    }

    pub(crate) fn choose_session(&mut self, sessions: &[SessionSummary]) {
        let shown: Vec<&SessionSummary> =
            sessions.iter().filter(|summary| summary.parent.is_none()).collect();
        let row = |summary: &&SessionSummary| {
            Row::new(
                one_line(&summary.title),
                format!("{} turns · {}", summary.turns, one_line(&summary.workspace)),
            )
        };
        let (rows, ids) =
            (shown.iter().map(row).collect(), shown.iter().map(|summary| summary.session).collect());
        self.full = Some(Full::Sessions(Choosing::new("resume", rows), ids));
    }
}
