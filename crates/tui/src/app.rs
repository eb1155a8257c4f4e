//! The interface as a value: keys, events and results come in; orders for the session and errands for the machine come out; a
//! frame is drawn from what it is then. It owns the components and passes things to them in order, nothing else.

mod layout;
mod user_command;

use std::io;
use std::time::{Duration, Instant};

use helve_protocol::{
    EventBody, MessagePart, ModelName, PermissionMode, PromptDelivery, QueryReply, Seq, SessionCommand,
    SessionEvent, TextPart, UserPrompt,
};
use helve_widgets::TerminalScreen;
use ratatui::crossterm::event::{Event as Input, KeyEvent, KeyEventKind};
use ratatui::layout::Size;

use crate::approvals::{ApprovalDialog, ApprovalDialogAction};
use crate::composer::{Composer, ComposerAction, ComposerContext, ComposerPiece, typed_text};
use crate::keys::KeyAction;
use crate::link::{AppContext, AppExitReason, AppOptions, SessionMessage, SessionOverview, UiRequest};
use crate::machine_jobs::{MachineJob, MachineJobResult};
use crate::pager_entries::{PagerEntry, PagerSection};
use crate::pager_pages::PagerPage;
use crate::pager_view::{PagerView, ViewAction, help_entry};
use crate::pickers::{ChangesView, ModelPicker, PickerView, SessionPicker};
use crate::status::{self, EFFORT_DESCRIPTIONS, MODE_DESCRIPTIONS, StatusBar, next_mode};
use crate::text_format::one_line;
use crate::transcript::Transcript;
use crate::transcript_items::RemarkTone;
use user_command::RunningUserCommand;

/// Two presses within this time leave.
const QUIT_CONFIRM_TIMEOUT: Duration = Duration::from_secs(2);
/// Whoever looks elsewhere is told when a turn that took longer ends.
const LONG_TURN_DURATION: Duration = Duration::from_secs(10);

/// What fills the window, if something does.
pub(crate) enum FullScreenView {
    Pager(Box<PagerView>),
    Models(ModelPicker),
    Modes(PickerView),
    Efforts(PickerView),
    Sessions(Box<SessionPicker>),
    Changes(Box<ChangesView>),
}

pub struct App {
    pub(crate) facts: AppContext,
    pub(crate) look: AppOptions,
    pub(crate) transcript: Transcript,
    pub(crate) composer: Composer,
    pub(crate) approvals: ApprovalDialog,
    pub(crate) status: StatusBar,
    pub(crate) full: Option<FullScreenView>,
    pub(crate) orders: Vec<UiRequest>,
    pub(crate) errands: Vec<MachineJob>,
    pub(crate) ending: Option<AppExitReason>,
    /// Ctrl-C was pressed once.
    pub(crate) leaving: Option<Instant>,
    /// What goes to the model with the next message.
    pub(crate) asides: Vec<String>,
    /// A command of the user's that runs.
    pub(crate) own: Option<RunningUserCommand>,
    has_focus: bool,
    /// What is written is not saved yet.
    is_unsaved: bool,
}

impl App {
    pub fn new(facts: AppContext, look: AppOptions, opened: SessionOverview) -> App {
        let mut app = App {
            composer: Composer::new(facts.history.clone(), facts.draft.clone()),
            facts,
            look,
            transcript: Transcript::default(),
            approvals: ApprovalDialog::new(),
            status: StatusBar::new(&opened),
            full: None,
            orders: Vec::new(),
            errands: vec![MachineJob::Branch, MachineJob::Sandbox],
            ending: None,
            leaving: None,
            asides: Vec::new(),
            own: None,
            has_focus: true,
            is_unsaved: false,
        };
        app.greet(&opened);
        if let Some(prompt) = opened.prompt {
            app.submit(vec![ComposerPiece::Text(prompt)], PromptDelivery::Queue);
        }
        app
    }

    fn greet(&mut self, opened: &SessionOverview) {
        if opened.recent.is_empty() {
            let text =
                format!("helve {} · {} · /help for help", self.facts.version, one_line(&self.facts.project));
            self.transcript.remark(RemarkTone::Note, text);
        }
        if opened.has_earlier {
            let text =
                format!("there is more before this: {} opens it", self.look.keys.key(KeyAction::OpenPager));
            self.transcript.remark(RemarkTone::Note, text);
        }
        self.transcript.add_messages(&opened.recent);
        for warning in &opened.warnings {
            self.transcript.remark(RemarkTone::Warning, one_line(warning));
        }
        self.tell_unfinished(opened);
    }

    fn tell_unfinished(&mut self, opened: &SessionOverview) {
        if opened.is_unfinished {
            let text = "the last turn was cut off; /continue resumes it";
            self.transcript.remark(RemarkTone::Warning, text);
        }
    }

    /// What the session is to do.
    pub fn take_requests(&mut self) -> Vec<UiRequest> {
        std::mem::take(&mut self.orders)
    }

    pub(crate) fn take_errands(&mut self) -> Vec<MachineJob> {
        std::mem::take(&mut self.errands)
    }

    /// How it was left, if it was.
    pub fn ending(&self) -> Option<&AppExitReason> {
        self.ending.as_ref()
    }

    /// Whether the picture changes by itself.
    pub fn is_moving(&self) -> bool {
        self.status.is_busy() || self.own.is_some() || self.is_unsaved || self.leaving.is_some()
    }

    /// Whether something waits for a person.
    pub fn has_request(&self) -> bool {
        self.approvals.is_open()
    }

    /// Time passes.
    pub fn tick(&mut self, now: Instant) {
        self.is_unsaved = self.composer.save(now);
        self.leaving =
            self.leaving.filter(|since| now.saturating_duration_since(*since) < QUIT_CONFIRM_TIMEOUT);
    }

    pub fn told(&mut self, told: &SessionMessage, now: Instant) {
        match told {
            SessionMessage::Event(event) => self.event(event, now),
            SessionMessage::Reply(QueryReply::Failed { why }) => {
                self.transcript.remark(RemarkTone::Warning, one_line(why))
            }
            SessionMessage::Reply(_) => {}
            SessionMessage::Overview(opened) => {
                self.status.catch_up(opened);
                self.tell_unfinished(opened);
            }
        }
    }

    fn event(&mut self, event: &SessionEvent, now: Instant) {
        self.status.apply(event, now);
        self.transcript.apply(event, now);
        if self.approvals.apply(event, now) && !self.has_focus {
            self.errands.push(MachineJob::Notify("Helve has a question".to_owned()));
        }
        if let EventBody::TurnEnded(_) = &event.body {
            self.turn_ended();
        }
    }

    fn turn_ended(&mut self) {
        self.errands.push(MachineJob::Branch);
        let took = self.status.take_ended();
        if !self.has_focus && took.is_some_and(|took| took > LONG_TURN_DURATION) {
            self.errands.push(MachineJob::Notify("Helve is done".to_owned()));
        }
    }

    pub fn input(&mut self, input: &Input, now: Instant) {
        match input {
            Input::Key(key) if key.kind != KeyEventKind::Release => self.key(key, now),
            Input::Paste(text) => {
                let is_taken = self.full.is_none() && self.approvals.is_open() && self.approvals.paste(text);
                // Whatever lies on top, what was pasted is not lost.
                if !is_taken {
                    self.composer.paste(text);
                    self.is_unsaved = true;
                }
            }
            Input::FocusGained => self.has_focus = true,
            Input::FocusLost => self.has_focus = false,
            _ => {}
        }
    }

    /// A key goes to what lies on top.
    fn key(&mut self, key: &KeyEvent, now: Instant) {
        if self.full.is_some() {
            self.full_key(key);
            if self.full.is_none() {
                self.approvals.restart_guard(now);
            }
        } else if self.approvals.is_open() {
            match self.approvals.key(key, &self.look.keys, now) {
                ApprovalDialogAction::Send(command) => self.orders.push(UiRequest::Command(command)),
                ApprovalDialogAction::Interrupt => self.interrupt(),
                ApprovalDialogAction::ReadAll => {
                    self.full = self
                        .approvals
                        .entry()
                        .map(|entry| FullScreenView::Pager(Box::new(PagerView::new(entry))))
                }
                ApprovalDialogAction::TooEarly => self.go_on_writing(key, now),
                ApprovalDialogAction::Nothing => {}
            }
        } else {
            let around = ComposerContext {
                keys: &self.look.keys,
                has_queue: !self.status.queue.is_empty(),
                has_command: self.status.has_command(),
            };
            let wish = self.composer.key(key, around);
            self.is_unsaved = true;
            if let Some(wish) = wish {
                self.perform(wish, now);
            }
            self.approvals.note_writing(Some(now).filter(|_| !self.composer.is_empty()));
        }
    }

    /// A letter of somebody who has not noticed yet that there is a question.
    fn go_on_writing(&mut self, key: &KeyEvent, now: Instant) {
        if let Some(letter) = typed_text(key).filter(|_| !self.composer.is_empty()) {
            if let Some(wish) = self.composer.insert(&letter) {
                self.perform(wish, now);
            }
            self.approvals.note_writing(Some(now));
            self.is_unsaved = true;
        }
    }

    fn interrupt(&mut self) {
        self.orders.push(UiRequest::Command(SessionCommand::Interrupt));
    }

    fn full_key(&mut self, key: &KeyEvent) {
        let keys = &self.look.keys;
        let (then, chosen) = match &mut self.full {
            Some(FullScreenView::Pager(reading)) => {
                let then = reading.key(key, keys);
                self.errands.extend(reading.take_errands());
                (then, None)
            }
            Some(FullScreenView::Changes(changes)) => (changes.key(key, keys), None),
            Some(FullScreenView::Models(models)) => {
                let then = models.key(key, keys);
                let chosen =
                    if let ViewAction::Chosen(number) = then { models.get(number).cloned() } else { None };
                (then, chosen.and_then(|chosen| self.take_model(&chosen)))
            }
            Some(FullScreenView::Modes(list)) => {
                let then = list.key(key, keys);
                let mode = chosen_of(then, &MODE_DESCRIPTIONS).map(|(mode, _)| *mode);
                (then, mode.map(|mode| UiRequest::Command(SessionCommand::SetMode { mode })))
            }
            Some(FullScreenView::Efforts(list)) => {
                let then = list.key(key, keys);
                let effort = chosen_of(then, &EFFORT_DESCRIPTIONS).map(|(effort, ..)| *effort);
                (then, effort.map(|effort| UiRequest::Command(SessionCommand::SetEffort { effort })))
            }
            Some(FullScreenView::Sessions(sessions)) => {
                let then = sessions.key(key, keys);
                if let ViewAction::Chosen(number) = then {
                    self.ending = sessions.get(number).map(AppExitReason::ResumeSession);
                }
                (then, None)
            }
            None => return,
        };
        self.orders.extend(chosen);
        if then != ViewAction::Stay {
            self.full = None;
        }
        self.look_into_session();
    }

    fn perform(&mut self, wish: ComposerAction, now: Instant) {
        match wish {
            ComposerAction::Submit { pieces, delivery } => self.submit(pieces, delivery),
            ComposerAction::SlashCommand(does, argument) => self.slash(does, &argument),
            ComposerAction::UnknownCommand(word) => {
                self.transcript
                    .remark(RemarkTone::Warning, format!("there is no command /{word}; /help lists them"));
            }
            ComposerAction::RunCommand(command) => self.run_user_command(&command, now),
            ComposerAction::Remember(fact) => self.errands.push(MachineJob::Remember(fact)),
            ComposerAction::ListFiles => self.errands.push(MachineJob::ListFiles),
            ComposerAction::RecallQueued => self.take_back(),
            ComposerAction::Key(action) => self.act(action, now),
        }
    }

    fn act(&mut self, action: KeyAction, now: Instant) {
        match action {
            KeyAction::Interrupt | KeyAction::Leave if self.own.is_some() => {
                self.own.iter_mut().for_each(RunningUserCommand::stop);
            }
            KeyAction::Interrupt if self.status.is_busy() => self.interrupt(),
            KeyAction::Leave if self.leaving.is_some() && self.composer.is_empty() => {
                self.ending = Some(AppExitReason::Quit)
            }
            KeyAction::Leave if !self.composer.is_empty() => self.composer.clear(),
            KeyAction::Leave => {
                if self.status.is_busy() {
                    self.interrupt();
                }
                self.leaving = Some(now);
            }
            KeyAction::Background => self.orders.push(UiRequest::Command(SessionCommand::Background)),
            KeyAction::EndInput => self.ending = Some(AppExitReason::Quit),
            KeyAction::CycleMode => {
                let mode = next_mode(self.status.mode);
                self.orders.push(UiRequest::Command(SessionCommand::SetMode { mode }));
            }
            KeyAction::OpenPager => {
                let mut reading = PagerView::of_session();
                self.errands.extend(reading.take_errands());
                self.full = Some(FullScreenView::Pager(Box::new(reading)));
            }
            KeyAction::OpenEditor => self.errands.push(MachineJob::Edit(self.composer.text())),
            KeyAction::Suspend => self.errands.push(MachineJob::Suspend),
            KeyAction::Redraw => self.errands.push(MachineJob::Redraw),
            KeyAction::Help => {
                self.full = Some(FullScreenView::Pager(Box::new(PagerView::new(help_entry(&self.look.keys)))))
            }
            _ => {}
        }
    }

    fn submit(&mut self, pieces: Vec<ComposerPiece>, delivery: PromptDelivery) {
        let texts = std::mem::take(&mut self.asides).into_iter().map(ComposerPiece::Text);
        let pieces: Vec<ComposerPiece> = texts.chain(pieces).collect();
        if pieces.iter().any(|piece| matches!(piece, ComposerPiece::Picture(_))) {
            self.errands.push(MachineJob::Attach(pieces, delivery));
            return;
        }
        let parts = pieces.into_iter().filter_map(|piece| match piece {
            ComposerPiece::Text(text) => Some(MessagePart::Text(TextPart::said(text))),
            ComposerPiece::Picture(_) => None,
        });
        let prompt = UserPrompt { parts: parts.collect(), delivery };
        self.orders.push(UiRequest::Command(SessionCommand::Submit(prompt)));
    }

    /// The last message of the queue comes back to be changed.
    fn take_back(&mut self) {
        if let Some(queued) = self.status.queue.last() {
            if queued.parts.iter().any(|part| matches!(part, MessagePart::File(_))) {
                let text = "the last message in the queue has a picture, and can't be taken back";
                return self.transcript.remark(RemarkTone::Note, text);
            }
            self.composer.set_text(&status::text_of(&queued.parts));
            self.orders.push(UiRequest::Command(SessionCommand::DropQueued { message: queued.message }));
        }
    }

    /// An errand is done.
    pub(crate) fn done(&mut self, done: MachineJobResult) {
        match done {
            MachineJobResult::Files(files) => self.composer.set_files(files),
            MachineJobResult::Branch(branch) => self.status.branch = branch,
            MachineJobResult::Sandbox(level) => self.status.sandbox = level,
            MachineJobResult::Models(models) => self.choose_model(models),
            MachineJobResult::Sessions(sessions) => self.choose_session(sessions),
            MachineJobResult::SessionPreview(session, glimpse) => {
                if let Some(FullScreenView::Sessions(sessions)) = &mut self.full {
                    sessions.saw(session, glimpse);
                }
                self.look_into_session();
            }
            MachineJobResult::Changes(changes) => self.show_changes(changes),
            MachineJobResult::Tail(tail) => self.own.iter_mut().for_each(|own| own.set_tail(&tail)),
            MachineJobResult::Ran(command, ran) => self.user_command_ended(&command, &ran),
            MachineJobResult::Remembered(Ok(place)) => self.transcript.remark(RemarkTone::Success, place),
            MachineJobResult::Edited(Ok(text)) => self.composer.set_text(text.trim_end()),
            MachineJobResult::Remembered(Err(why)) | MachineJobResult::Edited(Err(why)) => {
                self.transcript.remark(RemarkTone::Warning, one_line(&why))
            }
            MachineJobResult::Attached(Ok(prompt)) => {
                self.orders.push(UiRequest::Command(SessionCommand::Submit(prompt)))
            }
            MachineJobResult::Attached(Err((why, text))) => {
                self.transcript.remark(RemarkTone::Warning, one_line(&why));
                self.composer.set_text(&text);
            }
            MachineJobResult::Text(title, text) => {
                self.full = Some(FullScreenView::Pager(Box::new(PagerView::new(PagerEntry::new(
                    title,
                    PagerSection::Text(text),
                )))));
            }
            MachineJobResult::Page(before, page) => self.turned(before, page),
            MachineJobResult::FullOutput(blob, whole) => {
                if let Some(FullScreenView::Pager(reading)) = &mut self.full {
                    reading.fill(blob, whole);
                }
            }
        }
    }

    fn turned(&mut self, before: Seq, page: Result<PagerPage, String>) {
        let Some(FullScreenView::Pager(reading)) = &mut self.full else { return };
        let turned = reading.turned(before, page, &self.transcript.kept);
        self.errands.extend(reading.take_errands());
        if let Err(why) = turned {
            self.full = None;
            self.transcript.remark(RemarkTone::Note, one_line(&why));
        }
    }

    /// Prints what is final, and draws the rest.
    pub fn draw<W: io::Write, S: FnMut() -> Size>(
        &mut self,
        screen: &mut TerminalScreen<W, S>,
        limit: Option<u64>,
        now: Instant,
    ) -> io::Result<()> {
        let window = screen.size();
        let lines = self.transcript.take_final(window.width.into(), now, &self.look.theme);
        if !lines.is_empty() {
            screen.print(lines);
        }
        if self.full.is_some() {
            screen.open_full()?;
            screen.draw(window.height, |buffer| layout::draw_full_screen(self, buffer))
        } else {
            screen.close_full()?;
            let plan = layout::LiveAreaLayout::new(self, window, limit, now);
            screen.draw(plan.height(), |buffer| plan.draw(self, buffer))
        }
    }

    /// The model that answers.
    pub fn model(&self) -> Option<&ModelName> {
        self.status.model.as_ref()
    }

    pub fn mode(&self) -> PermissionMode {
        self.status.mode
    }
}

fn chosen_of<T>(then: ViewAction, of: &[T]) -> Option<&T> {
    match then {
        ViewAction::Chosen(number) => of.get(number),
        _ => None,
    }
}
