//! The interface as a value: keys, events and results come in; orders for the session and errands for the machine come out; a
//! frame is drawn from what it is then. It owns the components and passes things to them in order, nothing else.

use std::io;
use std::time::{Duration, Instant};

use helve_protocol::{Body, Command, Delivery, Event, Mode, ModelName, Part, Prompt, Reply, Seq, TextPart};
use helve_widgets::Screen;
use ratatui::crossterm::event::{Event as Input, KeyEvent, KeyEventKind};
use ratatui::layout::Size;

use crate::approvals::{Approvals, Choice};
use crate::choosing::{Changes, Choosing, Models, Sessions};
use crate::composer::{Around, Composer, Piece, Wish, typed};
use crate::errands::{Done, Errand};
use crate::items::Tone;
use crate::kept::{Entry, Section};
use crate::keys::Action;
use crate::layout;
use crate::link::{Ending, Facts, Look, Opened, Order, Told};
use crate::own::Own;
use crate::pages::Page;
use crate::reading::{Reading, Then, help};
use crate::status::{self, EFFORTS, MODES, Status, next_mode};
use crate::transcript::Transcript;
use crate::words::one_line;

/// Two presses within this time leave.
const TWICE: Duration = Duration::from_secs(2);
/// Whoever looks elsewhere is told when a turn that took longer ends.
const LONG_TURN: Duration = Duration::from_secs(10);

/// What fills the window, if something does.
pub(crate) enum Full {
    Reading(Box<Reading>),
    Models(Models),
    Modes(Choosing),
    Efforts(Choosing),
    Sessions(Box<Sessions>),
    Changes(Box<Changes>),
}

pub struct App {
    pub(crate) facts: Facts,
    pub(crate) look: Look,
    pub(crate) transcript: Transcript,
    pub(crate) composer: Composer,
    pub(crate) approvals: Approvals,
    pub(crate) status: Status,
    pub(crate) full: Option<Full>,
    pub(crate) orders: Vec<Order>,
    pub(crate) errands: Vec<Errand>,
    pub(crate) ending: Option<Ending>,
    /// Ctrl-C was pressed once.
    pub(crate) leaving: Option<Instant>,
    /// What goes to the model with the next message.
    pub(crate) asides: Vec<String>,
    /// A command of the user's that runs.
    pub(crate) own: Option<Own>,
    has_focus: bool,
    /// What is written is not saved yet.
    is_unsaved: bool,
}

impl App {
    pub fn new(facts: Facts, look: Look, opened: Opened) -> App {
        let mut app = App {
            composer: Composer::new(facts.history.clone(), facts.draft.clone()),
            facts,
            look,
            transcript: Transcript::default(),
            approvals: Approvals::new(),
            status: Status::new(&opened),
            full: None,
            orders: Vec::new(),
            errands: vec![Errand::Branch, Errand::Sandbox],
            ending: None,
            leaving: None,
            asides: Vec::new(),
            own: None,
            has_focus: true,
            is_unsaved: false,
        };
        app.greet(&opened);
        if let Some(prompt) = opened.prompt {
            app.submit(vec![Piece::Text(prompt)], Delivery::Queue);
        }
        app
    }

    fn greet(&mut self, opened: &Opened) {
        if opened.recent.is_empty() {
            let text = format!(
                "helve {} · {} · /help tells more",
                self.facts.version,
                one_line(&self.facts.project)
            );
            self.transcript.remark(Tone::Note, text);
        }
        if opened.has_earlier {
            let text =
                format!("there is more before this: {} opens it", self.look.keys.key(Action::OpenPager));
            self.transcript.remark(Tone::Note, text);
        }
        self.transcript.recall(&opened.recent);
        for warning in &opened.warnings {
            self.transcript.remark(Tone::Warning, one_line(warning));
        }
        self.tell_unfinished(opened);
    }

    fn tell_unfinished(&mut self, opened: &Opened) {
        if opened.is_unfinished {
            let text = "the last turn did not end by itself; /continue goes on with it";
            self.transcript.remark(Tone::Warning, text);
        }
    }

    /// What the session is to do.
    pub fn take_orders(&mut self) -> Vec<Order> {
        std::mem::take(&mut self.orders)
    }

    pub(crate) fn take_errands(&mut self) -> Vec<Errand> {
        std::mem::take(&mut self.errands)
    }

    /// How it was left, if it was.
    pub fn ending(&self) -> Option<&Ending> {
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
        self.leaving = self.leaving.filter(|since| now.saturating_duration_since(*since) < TWICE);
    }

    pub fn told(&mut self, told: &Told, now: Instant) {
        match told {
            Told::Event(event) => self.event(event, now),
            Told::Reply(Reply::Failed { why }) => self.transcript.remark(Tone::Warning, one_line(why)),
            Told::Reply(_) => {}
            Told::Opened(opened) => {
                self.status.catch_up(opened);
                self.tell_unfinished(opened);
            }
        }
    }

    fn event(&mut self, event: &Event, now: Instant) {
        self.status.apply(event, now);
        self.transcript.apply(event, now);
        if self.approvals.apply(event, now) && !self.has_focus {
            self.errands.push(Errand::Notify("Helve has a question".to_owned()));
        }
        if let Body::TurnEnded(_) = &event.body {
            self.turn_ended();
        }
    }

    fn turn_ended(&mut self) {
        self.errands.push(Errand::Branch);
        let took = self.status.take_ended();
        if !self.has_focus && took.is_some_and(|took| took > LONG_TURN) {
            self.errands.push(Errand::Notify("Helve is done".to_owned()));
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
                self.approvals.appear(now);
            }
        } else if self.approvals.is_open() {
            match self.approvals.key(key, &self.look.keys, now) {
                Choice::Send(command) => self.orders.push(Order::Do(command)),
                Choice::Interrupt => self.interrupt(),
                Choice::ReadAll => {
                    self.full =
                        self.approvals.entry().map(|entry| Full::Reading(Box::new(Reading::new(entry))))
                }
                Choice::Early => self.go_on_writing(key, now),
                Choice::Nothing => {}
            }
        } else {
            let around = Around {
                keys: &self.look.keys,
                has_queue: !self.status.queue.is_empty(),
                has_command: self.status.has_command(),
            };
            let wish = self.composer.key(key, around);
            self.is_unsaved = true;
            if let Some(wish) = wish {
                self.grant(wish, now);
            }
            self.approvals.note_writing(Some(now).filter(|_| !self.composer.is_empty()));
        }
    }

    /// A letter of somebody who has not noticed yet that there is a question.
    fn go_on_writing(&mut self, key: &KeyEvent, now: Instant) {
        if let Some(letter) = typed(key).filter(|_| !self.composer.is_empty()) {
            if let Some(wish) = self.composer.insert(&letter) {
                self.grant(wish, now);
            }
            self.approvals.note_writing(Some(now));
            self.is_unsaved = true;
        }
    }

    fn interrupt(&mut self) {
        self.orders.push(Order::Do(Command::Interrupt));
    }

    fn full_key(&mut self, key: &KeyEvent) {
        let keys = &self.look.keys;
        let (then, chosen) = match &mut self.full {
            Some(Full::Reading(reading)) => {
                let then = reading.key(key, keys);
                self.errands.extend(reading.take_errands());
                (then, None)
            }
            Some(Full::Changes(changes)) => (changes.key(key, keys), None),
            Some(Full::Models(models)) => {
                let then = models.key(key, keys);
                let chosen = if let Then::Chosen(number) = then { models.get(number).cloned() } else { None };
                (then, chosen.and_then(|chosen| self.take_model(&chosen)))
            }
            Some(Full::Modes(list)) => {
                let then = list.key(key, keys);
                let mode = chosen_of(then, &MODES).map(|(mode, _)| *mode);
                (then, mode.map(|mode| Order::Do(Command::SetMode { mode })))
            }
            Some(Full::Efforts(list)) => {
                let then = list.key(key, keys);
                let effort = chosen_of(then, &EFFORTS).map(|(effort, ..)| *effort);
                (then, effort.map(|effort| Order::Do(Command::SetEffort { effort })))
            }
            Some(Full::Sessions(sessions)) => {
                let then = sessions.key(key, keys);
                if let Then::Chosen(number) = then {
                    self.ending = sessions.get(number).map(Ending::Resume);
                }
                (then, None)
            }
            None => return,
        };
        self.orders.extend(chosen);
        if then != Then::Stay {
            self.full = None;
        }
        self.look_into_session();
    }

    fn grant(&mut self, wish: Wish, now: Instant) {
        match wish {
            Wish::Submit { pieces, delivery } => self.submit(pieces, delivery),
            Wish::Slash(does, argument) => self.slash(does, &argument),
            Wish::Unknown(word) => {
                self.transcript
                    .remark(Tone::Warning, format!("there is no command /{word}; /help lists them"));
            }
            Wish::Shell(command) => self.run_own(&command, now),
            Wish::Remember(fact) => self.errands.push(Errand::Remember(fact)),
            Wish::ListFiles => self.errands.push(Errand::ListFiles),
            Wish::TakeBack => self.take_back(),
            Wish::Act(action) => self.act(action, now),
        }
    }

    fn act(&mut self, action: Action, now: Instant) {
        match action {
            Action::Interrupt | Action::Leave if self.own.is_some() => {
                self.own.iter_mut().for_each(Own::stop);
            }
            Action::Interrupt if self.status.is_busy() => self.interrupt(),
            Action::Leave if self.leaving.is_some() && self.composer.is_empty() => {
                self.ending = Some(Ending::Quit)
            }
            Action::Leave if !self.composer.is_empty() => self.composer.clear(),
            Action::Leave => {
                if self.status.is_busy() {
                    self.interrupt();
                }
                self.leaving = Some(now);
            }
            Action::Background => self.orders.push(Order::Do(Command::Background)),
            Action::EndInput => self.ending = Some(Ending::Quit),
            Action::CycleMode => {
                let mode = next_mode(self.status.mode);
                self.orders.push(Order::Do(Command::SetMode { mode }));
            }
            Action::OpenPager => {
                let mut reading = Reading::of_session();
                self.errands.extend(reading.take_errands());
                self.full = Some(Full::Reading(Box::new(reading)));
            }
            Action::OpenEditor => self.errands.push(Errand::Edit(self.composer.text())),
            Action::Suspend => self.errands.push(Errand::Suspend),
            Action::Redraw => self.errands.push(Errand::Redraw),
            Action::Help => self.full = Some(Full::Reading(Box::new(Reading::new(help(&self.look.keys))))),
            _ => {}
        }
    }

    fn submit(&mut self, pieces: Vec<Piece>, delivery: Delivery) {
        let texts = std::mem::take(&mut self.asides).into_iter().map(Piece::Text);
        let pieces: Vec<Piece> = texts.chain(pieces).collect();
        if pieces.iter().any(|piece| matches!(piece, Piece::Picture(_))) {
            self.errands.push(Errand::Attach(pieces, delivery));
            return;
        }
        let parts = pieces.into_iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(Part::Text(TextPart::said(text))),
            Piece::Picture(_) => None,
        });
        let prompt = Prompt { parts: parts.collect(), delivery };
        self.orders.push(Order::Do(Command::Submit(prompt)));
    }

    /// The last message of the queue comes back to be changed.
    fn take_back(&mut self) {
        if let Some(queued) = self.status.queue.last() {
            if queued.parts.iter().any(|part| matches!(part, Part::File(_))) {
                let text = "the last message in the queue has a picture, and can't be taken back";
                return self.transcript.remark(Tone::Note, text);
            }
            self.composer.set_text(&status::text_of(&queued.parts));
            self.orders.push(Order::Do(Command::DropQueued { message: queued.message }));
        }
    }

    /// An errand is done.
    pub(crate) fn done(&mut self, done: Done) {
        match done {
            Done::Files(files) => self.composer.set_files(files),
            Done::Branch(branch) => self.status.branch = branch,
            Done::Sandbox(level) => self.status.sandbox = level,
            Done::Models(models) => self.choose_model(models),
            Done::Sessions(sessions) => self.choose_session(sessions),
            Done::Glimpse(session, glimpse) => {
                if let Some(Full::Sessions(sessions)) = &mut self.full {
                    sessions.saw(session, glimpse);
                }
                self.look_into_session();
            }
            Done::Changes(changes) => self.show_changes(changes),
            Done::Tail(tail) => self.own.iter_mut().for_each(|own| own.set_tail(&tail)),
            Done::Ran(command, ran) => self.own_ended(&command, &ran),
            Done::Remembered(Ok(place)) => self.transcript.remark(Tone::Good, place),
            Done::Edited(Ok(text)) => self.composer.set_text(text.trim_end()),
            Done::Remembered(Err(why)) | Done::Edited(Err(why)) => {
                self.transcript.remark(Tone::Warning, one_line(&why))
            }
            Done::Attached(Ok(prompt)) => self.orders.push(Order::Do(Command::Submit(prompt))),
            Done::Attached(Err((why, text))) => {
                self.transcript.remark(Tone::Warning, one_line(&why));
                self.composer.set_text(&text);
            }
            Done::Text(title, text) => {
                self.full =
                    Some(Full::Reading(Box::new(Reading::new(Entry::new(title, Section::Text(text))))));
            }
            Done::Page(before, page) => self.turned(before, page),
            Done::Whole(blob, whole) => {
                if let Some(Full::Reading(reading)) = &mut self.full {
                    reading.fill(blob, whole);
                }
            }
        }
    }

    fn turned(&mut self, before: Seq, page: Result<Page, String>) {
        let Some(Full::Reading(reading)) = &mut self.full else { return };
        let turned = reading.turned(before, page, &self.transcript.kept);
        self.errands.extend(reading.take_errands());
        if let Err(why) = turned {
            self.full = None;
            self.transcript.remark(Tone::Note, one_line(&why));
        }
    }

    /// Prints what is final, and draws the rest.
    pub fn draw<W: io::Write, S: FnMut() -> Size>(
        &mut self,
        screen: &mut Screen<W, S>,
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
            screen.draw(window.height, |buffer| layout::full(self, buffer))
        } else {
            screen.close_full()?;
            let plan = layout::Plan::new(self, window, limit, now);
            screen.draw(plan.height(), |buffer| plan.draw(self, buffer))
        }
    }

    /// The model that answers.
    pub fn model(&self) -> Option<&ModelName> {
        self.status.model.as_ref()
    }

    pub fn mode(&self) -> Mode {
        self.status.mode
    }
}

fn chosen_of<T>(then: Then, of: &[T]) -> Option<&T> {
    match then {
        Then::Chosen(number) => of.get(number),
        _ => None,
    }
}
