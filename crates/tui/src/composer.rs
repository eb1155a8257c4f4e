//! Where a person writes.

use std::path::{Path, PathBuf};
use std::time::Instant;

use helve_protocol::Delivery;
use helve_widgets::{Choice, Edit, Editor, Effect, Part, Picker, Step, Theme, put};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;

use crate::history::{Draft, History};
use crate::keymap::KeyMap;
use crate::keys::{Action, Context};
use crate::menu::{self, Kind, Menu};
use crate::slash::{self, Meaning};

const IMAGE: &str = "picture ";
const PICTURES: [&str; 6] = ["png", "jpg", "jpeg", "gif", "webp", "pdf"];
const PROMPT: u16 = 2;
const SEARCH_ROWS: u16 = 8;

/// What a key leads to outside of the composer.
#[derive(Debug, PartialEq)]
pub(crate) enum Wish {
    Submit {
        pieces: Vec<Piece>,
        delivery: Delivery,
    },
    Slash(slash::Does, String),
    /// There is no such command.
    Unknown(String),
    Shell(String),
    Remember(String),
    /// The files are needed for a completion.
    ListFiles,
    /// The last message of the queue is to come back.
    TakeBack,
    Act(Action),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Picture(PathBuf),
}

/// What the composer has to know of the rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around<'a> {
    pub(crate) keys: &'a KeyMap,
    pub(crate) has_queue: bool,
    /// Whether a command runs that can go on by itself.
    pub(crate) has_command: bool,
}

pub(crate) struct Composer {
    editor: Editor,
    history: History,
    draft: Draft,
    menu: Option<Menu>,
    /// A menu that was closed is not opened again for the same word.
    closed: Option<(Kind, usize)>,
    files: Vec<Choice>,
    search: Option<Picker>,
}

impl Composer {
    pub(crate) fn new(history: Option<PathBuf>, draft: Option<PathBuf>) -> Composer {
        let mut draft = Draft::new(draft);
        let mut editor = Editor::default();
        let left = draft.restore();
        if !left.is_empty() {
            editor.paste(&left);
        }
        Composer {
            editor,
            history: History::read(history),
            draft,
            menu: None,
            closed: None,
            files: Vec::new(),
            search: None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.editor.is_empty()
    }

    pub(crate) fn text(&self) -> String {
        self.editor.text()
    }

    pub(crate) fn set_text(&mut self, text: &str) {
        self.editor.set_text(text);
        self.menu = None;
    }

    pub(crate) fn clear(&mut self) {
        self.history.stop();
        self.set_text("");
    }

    /// Saves what is written; says whether that must be tried again.
    pub(crate) fn save(&mut self, now: Instant) -> bool {
        self.draft.save(&self.editor.text(), now)
    }

    pub(crate) fn set_files(&mut self, files: Vec<String>) {
        self.files = files.into_iter().map(|file| Choice::new(file, "")).collect();
        if self.menu.as_ref().is_some_and(|menu| menu.kind == Kind::File) {
            self.menu = None;
        }
        self.offer();
    }

    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(search) = &mut self.search {
            let filter = format!("{}{}", search.filter(), text.lines().next().unwrap_or_default());
            return search.set_filter(&filter);
        }
        self.history.stop();
        match picture(text) {
            Some((path, name)) => self.editor.insert_chip(&format!("{IMAGE}{name}"), &path),
            None => self.editor.paste(text),
        }
        self.offer();
    }

    pub(crate) fn key(&mut self, event: &KeyEvent, around: Around<'_>) -> Option<Wish> {
        if self.search.is_some() {
            self.search_key(event, around.keys);
            return None;
        }
        if let Some(done) = self.menu_key(event, around.keys) {
            return done;
        }
        let action = around.keys.action(Context::Composer, event);
        match (action, typed(event)) {
            (Some(Action::Help), Some(letter)) if !self.is_empty() => self.insert(&letter),
            (Some(action), _) => self.act(action, around),
            (None, Some(letter)) => self.insert(&letter),
            (None, None) => None,
        }
    }

    pub(crate) fn insert(&mut self, text: &str) -> Option<Wish> {
        self.history.stop();
        self.editor.insert(text);
        self.offer()
    }

    fn act(&mut self, action: Action, around: Around<'_>) -> Option<Wish> {
        match action {
            Action::Send if self.ends_with_backslash() => {
                self.editor.apply(Edit::DeleteLeft);
                self.editor.apply(Edit::NewLine);
                None
            }
            Action::Send => self.send(Delivery::Queue),
            Action::Steer => self.send(Delivery::Steer),
            Action::SearchHistory => {
                let entries = self.history.entries().iter().rev();
                let mut picker = Picker::new(entries.map(|entry| Choice::new(entry.as_str(), "")).collect());
                picker.prompt = Some("search: ".to_owned());
                picker.set_filter(&self.editor.text());
                self.search = Some(picker);
                None
            }
            Action::Complete => None,
            Action::Background if !around.has_command => self.edit(Edit::Left, around.has_queue),
            Action::EndInput if !self.is_empty() => self.edit(Edit::DeleteRight, around.has_queue),
            Action::Edit(edit) => self.edit(edit, around.has_queue),
            action => Some(Wish::Act(action)),
        }
    }

    fn ends_with_backslash(&self) -> bool {
        let (text, cursor) = self.editor.raw();
        text.get(..cursor).is_some_and(|before| before.ends_with('\\'))
    }

    fn edit(&mut self, edit: Edit, has_queue: bool) -> Option<Wish> {
        if edit == Edit::Up && has_queue && self.is_empty() {
            return Some(Wish::TakeBack);
        }
        match (self.editor.apply(edit), edit) {
            (Effect::Nothing, Edit::Up) => {
                let text = self.editor.text();
                if let Some(older) = self.history.older(&text) {
                    self.editor.set_text(older);
                }
                None
            }
            (Effect::Nothing, Edit::Down) => {
                if let Some(newer) = self.history.newer() {
                    self.editor.set_text(&newer);
                }
                None
            }
            (Effect::Changed, _) => {
                self.history.stop();
                self.offer()
            }
            _ => self.offer(),
        }
    }

    fn send(&mut self, delivery: Delivery) -> Option<Wish> {
        let text = self.editor.text();
        if text.trim().is_empty() {
            return None;
        }
        let pieces = self.pieces();
        self.history.add(&text);
        self.set_text("");
        self.closed = None;
        let line = text.trim();
        if let Some(command) = line.strip_prefix('!').filter(|command| !command.trim().is_empty()) {
            return Some(Wish::Shell(command.trim().to_owned()));
        }
        // A heading of a pasted document begins with the same sign.
        if let Some(fact) =
            line.strip_prefix('#').filter(|fact| !fact.trim().is_empty() && !line.contains('\n'))
        {
            return Some(Wish::Remember(fact.trim().to_owned()));
        }
        Some(match slash::parse(line) {
            Meaning::Command(command, argument) => Wish::Slash(command.does, argument.to_owned()),
            Meaning::Unknown(word) => {
                let word = word.to_owned();
                self.editor.set_text(&text);
                Wish::Unknown(word)
            }
            Meaning::Message => Wish::Submit { pieces, delivery },
        })
    }

    /// What was written, with pictures apart.
    fn pieces(&self) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        for part in self.editor.parts() {
            let text = match part {
                Part::Chip(chip) if chip.label.starts_with(IMAGE) => {
                    pieces.push(Piece::Picture(PathBuf::from(&*chip.payload)));
                    continue;
                }
                Part::Chip(chip) => &*chip.payload,
                Part::Text(text) => text,
            };
            match pieces.last_mut() {
                Some(Piece::Text(last)) => last.push_str(text),
                _ => pieces.push(Piece::Text(text.to_owned())),
            }
        }
        pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.trim().is_empty()));
        pieces
    }

    /// Opens, follows or closes the menu for the word at the cursor.
    fn offer(&mut self) -> Option<Wish> {
        let (text, cursor) = self.editor.raw();
        let token = menu::token(text, cursor);
        let Some(token) = token.filter(|token| self.closed != Some((token.kind, token.range.start))) else {
            self.menu = None;
            let is_same =
                |(_, start): (Kind, usize)| text.get(..cursor).is_some_and(|before| before.len() > start);
            self.closed = self.closed.filter(|closed| is_same(*closed));
            return None;
        };
        if let Some(menu) = self.menu.as_mut().filter(|menu| menu.is_for(&token)) {
            menu.follow(&token);
            return None;
        }
        let choices = match token.kind {
            Kind::Command => menu::commands(),
            Kind::File => self.files.clone(),
        };
        self.menu = Some(Menu::new(&token, choices));
        // They may have changed since they were listed last.
        (token.kind == Kind::File && token.text.is_empty()).then_some(Wish::ListFiles)
    }

    /// A key for the menu: `None` if it is none.
    fn menu_key(&mut self, event: &KeyEvent, keys: &KeyMap) -> Option<Option<Wish>> {
        let menu = self.menu.as_mut().filter(|menu| !menu.is_empty())?;
        match keys.action(Context::List, event)? {
            Action::ListUp => menu.go(Step::Up),
            Action::ListDown => menu.go(Step::Down),
            Action::ListPageUp => menu.go(Step::PageUp),
            Action::ListPageDown => menu.go(Step::PageDown),
            Action::Cancel => {
                self.closed = Some((menu.kind, menu.range.start));
                self.menu = None;
            }
            Action::Choose => {
                let (kind, range) = (menu.kind, menu.range.clone());
                let chosen = menu.chosen()?.to_owned();
                self.menu = None;
                return Some(self.take(kind, range, &chosen, event.code == KeyCode::Enter));
            }
            _ => return None,
        }
        Some(None)
    }

    fn take(
        &mut self,
        kind: Kind,
        range: std::ops::Range<usize>,
        chosen: &str,
        is_enter: bool,
    ) -> Option<Wish> {
        let sign = if kind == Kind::Command { "/" } else { "@" };
        self.editor.complete(range, &format!("{sign}{chosen} "));
        let takes_more = slash::ALL.iter().any(|command| {
            command.word == chosen && command.takes.starts_with(|letter: char| letter.is_ascii_uppercase())
        });
        if kind == Kind::Command && is_enter && !takes_more { self.send(Delivery::Queue) } else { None }
    }

    fn search_key(&mut self, event: &KeyEvent, keys: &KeyMap) {
        let Some(search) = &mut self.search else { return };
        match (keys.action(Context::List, event), typed(event)) {
            (Some(Action::ListUp), _) => search.go(Step::Up),
            (Some(Action::ListDown), _) => search.go(Step::Down),
            (Some(Action::ListPageUp), _) => search.go(Step::PageUp),
            (Some(Action::ListPageDown), _) => search.go(Step::PageDown),
            (Some(Action::Choose), _) => {
                let chosen = search.selected().and_then(|number| search.choices().get(number));
                let chosen = chosen.map(|choice| choice.title.clone());
                self.search = None;
                if let Some(text) = chosen {
                    self.editor.set_text(&text);
                }
            }
            (Some(Action::Cancel), _) => self.search = None,
            (_, Some(letter)) => {
                let filter = format!("{}{letter}", search.filter());
                search.set_filter(&filter);
            }
            _ if event.code == KeyCode::Backspace => {
                let mut filter = search.filter().to_owned();
                filter.pop();
                search.set_filter(&filter);
            }
            _ if keys.action(Context::Composer, event) == Some(Action::SearchHistory) => {
                search.go(Step::Down)
            }
            _ => {}
        }
    }

    /// How many rows it takes, at most `most`.
    pub(crate) fn height(&self, width: u16, most: u16) -> u16 {
        if let Some(search) = &self.search {
            return search.height(most.min(SEARCH_ROWS + 2));
        }
        let text = self.editor.height(width.saturating_sub(PROMPT).max(1), most);
        text + self.menu.as_ref().map_or(0, |menu| menu.height(most.saturating_sub(text)))
    }

    pub(crate) fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        hint: &str,
        theme: &Theme,
    ) -> Option<Position> {
        if let Some(search) = &mut self.search {
            return search.draw(area, buffer, theme).cursor;
        }
        let rows = self.editor.height(area.width.saturating_sub(PROMPT).max(1), area.height);
        put(buffer, area.as_position(), PROMPT, &Line::styled("> ", theme.accent));
        let inner = Rect {
            x: area.x + PROMPT.min(area.width),
            width: area.width.saturating_sub(PROMPT),
            height: rows.min(area.height),
            ..area
        };
        if self.editor.is_empty() {
            put(buffer, inner.as_position(), inner.width, &Line::styled(hint.to_owned(), theme.muted));
        }
        let cursor = self.editor.draw(inner, buffer, theme);
        if let Some(menu) = &mut self.menu {
            let below = Rect { y: area.y + inner.height, height: area.height - inner.height, ..area };
            menu.draw(below, buffer, theme);
        }
        cursor
    }
}

/// What a key writes, if it does.
pub(crate) fn typed(event: &KeyEvent) -> Option<String> {
    let held = event.modifiers - KeyModifiers::SHIFT;
    // Some keyboards make letters with both.
    let is_plain = held.is_empty() || held == KeyModifiers::CONTROL | KeyModifiers::ALT;
    match event.code {
        KeyCode::Char(letter) if is_plain => Some(letter.to_string()),
        _ => None,
    }
}

/// Whether what was pasted is the path of a picture that exists: the path, and its name.
fn picture(pasted: &str) -> Option<(String, String)> {
    let text = pasted.trim();
    let text = text.strip_prefix("file://").unwrap_or(text);
    let text = text.trim_matches(['\'', '"']).replace("\\ ", " ");
    let path = Path::new(&text);
    let kind = path.extension()?.to_str()?.to_ascii_lowercase();
    let name = path.file_name()?.to_str()?.to_owned();
    let is_picture = !text.contains('\n') && text.len() < 4_096 && PICTURES.contains(&kind.as_str());
    (is_picture && path.is_absolute() && path.is_file()).then(|| (text.clone(), name))
}
