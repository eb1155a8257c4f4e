//! What the commands that begin with a slash do.

use helve_protocol::{Command, ModelName};
use helve_widgets::Choice as Row;

use crate::app::{App, Full};
use crate::choosing::{Changes, Choosing, Models, Sessions};
use crate::errands::Errand;
use crate::items::Tone;
use crate::link::{Changed, Ending, ModelChoice, Order, Past};
use crate::reading::{Reading, help};
use crate::slash::Does;
use crate::status::{EFFORTS, MODES, mode_name};
use crate::words::{one_line, tokens};

impl App {
    pub(crate) fn slash(&mut self, does: Does, argument: &str) {
        match does {
            Does::Help => self.full = Some(Full::Reading(Box::new(Reading::new(help(&self.look.keys))))),
            Does::New => self.ending = Some(Ending::New),
            Does::Quit => self.ending = Some(Ending::Quit),
            Does::Model if argument.is_empty() => self.errands.push(Errand::ListModels),
            Does::Model => {
                let model = ModelName::new(argument);
                self.orders.push(Order::Do(Command::SetModel { model }));
            }
            Does::Mode => self.set_mode(argument),
            Does::Effort => self.set_effort(argument),
            Does::Cost => self.tell_cost(),
            Does::Diff => self.errands.push(Errand::Changes),
            Does::GoOn => self.orders.push(Order::Do(Command::GoOn)),
            Does::Resume => self.errands.push(Errand::ListSessions),
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

    pub(crate) fn choose_model(&mut self, models: Vec<ModelChoice>) {
        if models.is_empty() {
            self.transcript.remark(Tone::Note, "no other model is known; /model NAME takes any");
            return;
        }
        self.full =
            Some(Full::Models(Models::new(models, self.status.model.as_ref().map(ModelName::as_str))));
    }

    /// What to do with a model that was chosen: one that can't be used is explained.
    pub(crate) fn take_model(&mut self, chosen: &ModelChoice) -> Option<Order> {
        if !chosen.is_usable {
            let text = format!("{} can't be used yet: {}", chosen.name, chosen.why);
            self.transcript.remark(Tone::Warning, one_line(&text));
            return None;
        }
        Some(Order::Do(Command::SetModel { model: ModelName::new(chosen.name.clone()) }))
    }

    fn set_mode(&mut self, argument: &str) {
        let named = MODES.iter().find(|(mode, _)| mode_name(*mode) == argument).map(|(mode, _)| *mode);
        match named {
            Some(mode) => self.orders.push(Order::Do(Command::SetMode { mode })),
            None if argument.is_empty() => {
                let rows = MODES.iter().map(|(mode, about)| Row::new(mode_name(*mode), *about));
                let now = MODES.iter().position(|(mode, _)| *mode == self.status.mode);
                self.full = Some(Full::Modes(Choosing::new("mode", rows.collect()).on(now)));
            }
            None => {
                let names: Vec<&str> = MODES.iter().map(|(mode, _)| mode_name(*mode)).collect();
                self.transcript.remark(Tone::Warning, format!("the modes are {}", names.join(", ")));
            }
        }
    }

    fn set_effort(&mut self, argument: &str) {
        match EFFORTS.iter().find(|(_, name, _)| *name == argument) {
            Some((effort, ..)) => self.orders.push(Order::Do(Command::SetEffort { effort: *effort })),
            None if argument.is_empty() => {
                let rows = EFFORTS.iter().map(|(_, name, about)| Row::new(*name, *about));
                let now = EFFORTS.iter().position(|(effort, ..)| *effort == self.status.effort);
                self.full = Some(Full::Efforts(Choosing::new("effort", rows.collect()).on(now)));
            }
            None => {
                let names: Vec<&str> = EFFORTS.iter().map(|(_, name, _)| *name).collect();
                self.transcript.remark(Tone::Warning, format!("the levels are {}", names.join(", ")));
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

    pub(crate) fn choose_session(&mut self, sessions: Result<Vec<Past>, String>) {
        match sessions {
            Err(why) => self.transcript.remark(Tone::Warning, one_line(&why)),
            Ok(sessions) if sessions.is_empty() => {
                self.transcript.remark(Tone::Note, "there is no other session yet");
            }
            Ok(sessions) => {
                self.full = Some(Full::Sessions(Box::new(Sessions::new(sessions))));
                self.look_into_session();
            }
        }
    }

    /// Lets the selected session be read, if that was not done yet.
    pub(crate) fn look_into_session(&mut self) {
        if let Some(Full::Sessions(sessions)) = &mut self.full {
            self.errands.extend(sessions.wanted().map(Errand::Glimpse));
        }
    }

    pub(crate) fn show_changes(&mut self, changes: Result<Vec<Changed>, String>) {
        match changes {
            Err(why) => self.transcript.remark(Tone::Warning, one_line(&why)),
            Ok(files) if files.is_empty() => {
                self.transcript.remark(Tone::Note, "nothing was changed in this session");
            }
            Ok(files) => self.full = Some(Full::Changes(Box::new(Changes::new(files)))),
        }
    }
}
