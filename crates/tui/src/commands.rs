//! What the commands that begin with a slash do.

use helve_protocol::{ModelName, SessionCommand};
use helve_widgets::PickerChoice as Row;

use crate::app::{App, FullScreenView};
use crate::link::{AppExitReason, ModelChoice, SessionFileChange, SessionRow, UiRequest};
use crate::machine_jobs::MachineJob;
use crate::pager_view::{PagerView, help_entry};
use crate::pickers::{ChangesView, ModelPicker, PickerView, SessionPicker};
use crate::slash::SlashAction;
use crate::status::{EFFORT_DESCRIPTIONS, MODE_DESCRIPTIONS, mode_name};
use crate::text_format::{one_line, tokens};
use crate::transcript_items::RemarkTone;

impl App {
    pub(crate) fn slash(&mut self, does: SlashAction, argument: &str) {
        match does {
            SlashAction::Help => {
                self.full = Some(FullScreenView::Pager(Box::new(PagerView::new(help_entry(&self.look.keys)))))
            }
            SlashAction::New => self.ending = Some(AppExitReason::NewSession),
            SlashAction::Quit => self.ending = Some(AppExitReason::Quit),
            SlashAction::Model if argument.is_empty() => self.errands.push(MachineJob::ListModels),
            SlashAction::Model => {
                let model = ModelName::new(argument);
                self.orders.push(UiRequest::Command(SessionCommand::SetModel { model }));
            }
            SlashAction::Mode => self.set_mode(argument),
            SlashAction::Effort => self.set_effort(argument),
            SlashAction::Cost => self.tell_cost(),
            SlashAction::Diff => self.errands.push(MachineJob::Changes),
            SlashAction::Continue => self.orders.push(UiRequest::Command(SessionCommand::GoOn)),
            SlashAction::Resume => self.errands.push(MachineJob::ListSessions),
            SlashAction::Rename if argument.is_empty() => {
                self.transcript.remark(RemarkTone::Warning, "write the title behind it: /rename TITLE");
            }
            SlashAction::Rename => {
                self.orders.push(UiRequest::Command(SessionCommand::Rename { title: argument.to_owned() }))
            }
            SlashAction::Copy if self.transcript.last_answer.is_empty() => {
                self.transcript.remark(RemarkTone::Note, "no answer yet");
            }
            SlashAction::Copy => {
                self.errands.push(MachineJob::Copy(self.transcript.last_answer.clone()));
                self.transcript
                    .remark(RemarkTone::Note, "copied the last answer, if your terminal allows it");
            }
            SlashAction::Permissions => self.errands.push(MachineJob::Permissions),
            SlashAction::Doctor => self.errands.push(MachineJob::Doctor),
        }
    }

    pub(crate) fn choose_model(&mut self, models: Vec<ModelChoice>) {
        if models.is_empty() {
            self.transcript.remark(RemarkTone::Note, "no other model is known; /model NAME takes any");
            return;
        }
        self.full = Some(FullScreenView::Models(ModelPicker::new(
            models,
            self.status.model.as_ref().map(ModelName::as_str),
        )));
    }

    /// What to do with a model that was chosen: one that can't be used is explained.
    pub(crate) fn take_model(&mut self, chosen: &ModelChoice) -> Option<UiRequest> {
        if !chosen.is_usable {
            let text = format!("{} can't be used yet: {}", chosen.name, chosen.why);
            self.transcript.remark(RemarkTone::Warning, one_line(&text));
            return None;
        }
        Some(UiRequest::Command(SessionCommand::SetModel { model: ModelName::new(chosen.name.clone()) }))
    }

    fn set_mode(&mut self, argument: &str) {
        let named =
            MODE_DESCRIPTIONS.iter().find(|(mode, _)| mode_name(*mode) == argument).map(|(mode, _)| *mode);
        match named {
            Some(mode) => self.orders.push(UiRequest::Command(SessionCommand::SetMode { mode })),
            None if argument.is_empty() => {
                let rows = MODE_DESCRIPTIONS.iter().map(|(mode, about)| Row::new(mode_name(*mode), *about));
                let now = MODE_DESCRIPTIONS.iter().position(|(mode, _)| *mode == self.status.mode);
                self.full =
                    Some(FullScreenView::Modes(PickerView::new("mode", rows.collect()).with_selection(now)));
            }
            None => {
                let names: Vec<&str> = MODE_DESCRIPTIONS.iter().map(|(mode, _)| mode_name(*mode)).collect();
                self.transcript.remark(RemarkTone::Warning, format!("the modes are {}", names.join(", ")));
            }
        }
    }

    fn set_effort(&mut self, argument: &str) {
        match EFFORT_DESCRIPTIONS.iter().find(|(_, name, _)| *name == argument) {
            Some((effort, ..)) => {
                self.orders.push(UiRequest::Command(SessionCommand::SetEffort { effort: *effort }))
            }
            None if argument.is_empty() => {
                let rows = EFFORT_DESCRIPTIONS.iter().map(|(_, name, about)| Row::new(*name, *about));
                let now = EFFORT_DESCRIPTIONS.iter().position(|(effort, ..)| *effort == self.status.effort);
                self.full = Some(FullScreenView::Efforts(
                    PickerView::new("effort", rows.collect()).with_selection(now),
                ));
            }
            None => {
                let names: Vec<&str> = EFFORT_DESCRIPTIONS.iter().map(|(_, name, _)| *name).collect();
                self.transcript.remark(RemarkTone::Warning, format!("the levels are {}", names.join(", ")));
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
        self.transcript.remark(RemarkTone::Note, text);
    }

    pub(crate) fn choose_session(&mut self, sessions: Result<Vec<SessionRow>, String>) {
        match sessions {
            Err(why) => self.transcript.remark(RemarkTone::Warning, one_line(&why)),
            Ok(sessions) if sessions.is_empty() => {
                self.transcript.remark(RemarkTone::Note, "no other sessions yet");
            }
            Ok(sessions) => {
                self.full = Some(FullScreenView::Sessions(Box::new(SessionPicker::new(sessions))));
                self.look_into_session();
            }
        }
    }

    /// Lets the selected session be read, if that was not done yet.
    pub(crate) fn look_into_session(&mut self) {
        if let Some(FullScreenView::Sessions(sessions)) = &mut self.full {
            self.errands.extend(sessions.next_preview().map(MachineJob::PreviewSession));
        }
    }

    pub(crate) fn show_changes(&mut self, changes: Result<Vec<SessionFileChange>, String>) {
        match changes {
            Err(why) => self.transcript.remark(RemarkTone::Warning, one_line(&why)),
            Ok(files) if files.is_empty() => {
                self.transcript.remark(RemarkTone::Note, "no files changed in this session");
            }
            Ok(files) => self.full = Some(FullScreenView::Changes(Box::new(ChangesView::new(files)))),
        }
    }
}
