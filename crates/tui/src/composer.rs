//! Where a person writes.

use std::path::{Path, PathBuf};
use std::time::Instant;

use helve_protocol::PromptDelivery;
use helve_widgets::{
    Editor, EditorCommand, EditorOutcome, EditorPart, Picker, PickerChoice, PickerMove, Theme, put_line,
};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;

use crate::history::{PromptDraft, PromptHistory};
use crate::keymap::KeyMap;
use crate::keys::{KeyAction, KeyContext};
use crate::menu::{self, CompletionKind, CompletionMenu};
use crate::slash::{self, SlashLine};

const PICTURE_LABEL_PREFIX: &str = "picture ";
const PICTURE_EXTENSIONS: [&str; 6] = ["png", "jpg", "jpeg", "gif", "webp", "pdf"];
const PROMPT_COLUMNS: u16 = 2;
const MAX_SEARCH_ROWS: u16 = 8;

/// What a key leads to outside of the composer.
#[derive(Debug, PartialEq)]
pub(crate) enum ComposerAction {
    Submit {
        pieces: Vec<ComposerPiece>,
        delivery: PromptDelivery,
    },
    SlashCommand(slash::SlashAction, String),
    /// There is no such command.
    UnknownCommand(String),
    RunCommand(String),
    Remember(String),
    /// The files are needed for a completion.
    ListFiles,
    /// The last message of the queue is to come back.
    RecallQueued,
    Key(KeyAction),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ComposerPiece {
    Text(String),
    Picture(PathBuf),
}

/// What the composer has to know of the rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ComposerContext<'a> {
    pub(crate) keys: &'a KeyMap,
    pub(crate) has_queue: bool,
    /// Whether a command runs that can go on by itself.
    pub(crate) has_command: bool,
}

pub(crate) struct Composer {
    editor: Editor,
    history: PromptHistory,
    draft: PromptDraft,
    menu: Option<CompletionMenu>,
    /// A menu that was closed is not opened again for the same word.
    closed: Option<(CompletionKind, usize)>,
    files: Vec<PickerChoice>,
    search: Option<Picker>,
}

impl Composer {
    pub(crate) fn new(history: Option<PathBuf>, draft: Option<PathBuf>) -> Composer {
        let mut draft = PromptDraft::new(draft);
        let mut editor = Editor::default();
        let left = draft.restore();
        if !left.is_empty() {
            editor.paste(&left);
        }
        Composer {
            editor,
            history: PromptHistory::read(history),
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
        self.files = files.into_iter().map(|file| PickerChoice::new(file, "")).collect();
        if self.menu.as_ref().is_some_and(|menu| menu.kind == CompletionKind::File) {
            self.menu = None;
        }
        self.update_menu();
    }

    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(search) = &mut self.search {
            let filter = format!("{}{}", search.filter(), text.lines().next().unwrap_or_default());
            return search.set_filter(&filter);
        }
        self.history.stop();
        match picture(text) {
            Some((path, name)) => self.editor.insert_chip(&format!("{PICTURE_LABEL_PREFIX}{name}"), &path),
            None => self.editor.paste(text),
        }
        self.update_menu();
    }

    pub(crate) fn key(&mut self, event: &KeyEvent, around: ComposerContext<'_>) -> Option<ComposerAction> {
        if self.search.is_some() {
            self.search_key(event, around.keys);
            return None;
        }
        if let Some(done) = self.menu_key(event, around.keys) {
            return done;
        }
        let action = around.keys.action(KeyContext::Composer, event);
        match (action, typed_text(event)) {
            (Some(KeyAction::Help), Some(letter)) if !self.is_empty() => self.insert(&letter),
            (Some(action), _) => self.act(action, around),
            (None, Some(letter)) => self.insert(&letter),
            (None, None) => None,
        }
    }

    pub(crate) fn insert(&mut self, text: &str) -> Option<ComposerAction> {
        self.history.stop();
        self.editor.insert(text);
        self.update_menu()
    }

    fn act(&mut self, action: KeyAction, around: ComposerContext<'_>) -> Option<ComposerAction> {
        match action {
            KeyAction::Send if self.ends_with_backslash() => {
                self.editor.apply(EditorCommand::DeleteLeft);
                self.editor.apply(EditorCommand::NewLine);
                None
            }
            KeyAction::Send => self.send(PromptDelivery::Queue),
            KeyAction::Steer => self.send(PromptDelivery::Steer),
            KeyAction::SearchHistory => {
                let entries = self.history.entries().iter().rev();
                let mut picker =
                    Picker::new(entries.map(|entry| PickerChoice::new(entry.as_str(), "")).collect());
                picker.prompt = Some("search: ".to_owned());
                picker.set_filter(&self.editor.text());
                self.search = Some(picker);
                None
            }
            KeyAction::Complete => None,
            KeyAction::Background if !around.has_command => self.edit(EditorCommand::Left, around.has_queue),
            KeyAction::EndInput if !self.is_empty() => {
                self.edit(EditorCommand::DeleteRight, around.has_queue)
            }
            KeyAction::Edit(edit) => self.edit(edit, around.has_queue),
            action => Some(ComposerAction::Key(action)),
        }
    }

    fn ends_with_backslash(&self) -> bool {
        let (text, cursor) = self.editor.raw();
        text.get(..cursor).is_some_and(|before| before.ends_with('\\'))
    }

    fn edit(&mut self, edit: EditorCommand, has_queue: bool) -> Option<ComposerAction> {
        if edit == EditorCommand::Up && has_queue && self.is_empty() {
            return Some(ComposerAction::RecallQueued);
        }
        match (self.editor.apply(edit), edit) {
            (EditorOutcome::Nothing, EditorCommand::Up) => {
                let text = self.editor.text();
                if let Some(older) = self.history.older(&text) {
                    self.editor.set_text(older);
                }
                None
            }
            (EditorOutcome::Nothing, EditorCommand::Down) => {
                if let Some(newer) = self.history.newer() {
                    self.editor.set_text(&newer);
                }
                None
            }
            (EditorOutcome::Changed, _) => {
                self.history.stop();
                self.update_menu()
            }
            _ => self.update_menu(),
        }
    }

    fn send(&mut self, delivery: PromptDelivery) -> Option<ComposerAction> {
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
            return Some(ComposerAction::RunCommand(command.trim().to_owned()));
        }
        // A heading of a pasted document begins with the same sign.
        if let Some(fact) =
            line.strip_prefix('#').filter(|fact| !fact.trim().is_empty() && !line.contains('\n'))
        {
            return Some(ComposerAction::Remember(fact.trim().to_owned()));
        }
        Some(match slash::parse(line) {
            SlashLine::Command(command, argument) => {
                ComposerAction::SlashCommand(command.does, argument.to_owned())
            }
            SlashLine::Unknown(word) => {
                let word = word.to_owned();
                self.editor.set_text(&text);
                ComposerAction::UnknownCommand(word)
            }
            SlashLine::Message => ComposerAction::Submit { pieces, delivery },
        })
    }

    /// What was written, with pictures apart.
    fn pieces(&self) -> Vec<ComposerPiece> {
        let mut pieces: Vec<ComposerPiece> = Vec::new();
        for part in self.editor.parts() {
            let text = match part {
                EditorPart::Chip(chip) if chip.label.starts_with(PICTURE_LABEL_PREFIX) => {
                    pieces.push(ComposerPiece::Picture(PathBuf::from(&*chip.payload)));
                    continue;
                }
                EditorPart::Chip(chip) => &*chip.payload,
                EditorPart::Text(text) => text,
            };
            match pieces.last_mut() {
                Some(ComposerPiece::Text(last)) => last.push_str(text),
                _ => pieces.push(ComposerPiece::Text(text.to_owned())),
            }
        }
        pieces.retain(|piece| !matches!(piece, ComposerPiece::Text(text) if text.trim().is_empty()));
        pieces
    }

    /// Opens, follows or closes the menu for the word at the cursor.
    fn update_menu(&mut self) -> Option<ComposerAction> {
        let (text, cursor) = self.editor.raw();
        let token = menu::token(text, cursor);
        let Some(token) = token.filter(|token| self.closed != Some((token.kind, token.range.start))) else {
            self.menu = None;
            let is_same = |(_, start): (CompletionKind, usize)| {
                text.get(..cursor).is_some_and(|before| before.len() > start)
            };
            self.closed = self.closed.filter(|closed| is_same(*closed));
            return None;
        };
        if let Some(menu) = self.menu.as_mut().filter(|menu| menu.is_for(&token)) {
            menu.follow(&token);
            return None;
        }
        let choices = match token.kind {
            CompletionKind::Command => menu::commands(),
            CompletionKind::File => self.files.clone(),
        };
        self.menu = Some(CompletionMenu::new(&token, choices));
        // They may have changed since they were listed last.
        (token.kind == CompletionKind::File && token.text.is_empty()).then_some(ComposerAction::ListFiles)
    }

    /// A key for the menu: `None` if it is none.
    fn menu_key(&mut self, event: &KeyEvent, keys: &KeyMap) -> Option<Option<ComposerAction>> {
        let menu = self.menu.as_mut().filter(|menu| !menu.is_empty())?;
        match keys.action(KeyContext::List, event)? {
            KeyAction::ListUp => menu.go(PickerMove::Up),
            KeyAction::ListDown => menu.go(PickerMove::Down),
            KeyAction::ListPageUp => menu.go(PickerMove::PageUp),
            KeyAction::ListPageDown => menu.go(PickerMove::PageDown),
            KeyAction::Cancel => {
                self.closed = Some((menu.kind, menu.range.start));
                self.menu = None;
            }
            KeyAction::Choose => {
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
        kind: CompletionKind,
        range: std::ops::Range<usize>,
        chosen: &str,
        is_enter: bool,
    ) -> Option<ComposerAction> {
        let sign = if kind == CompletionKind::Command { "/" } else { "@" };
        self.editor.complete(range, &format!("{sign}{chosen} "));
        let takes_more = slash::SLASH_COMMANDS.iter().any(|command| {
            command.word == chosen && command.takes.starts_with(|letter: char| letter.is_ascii_uppercase())
        });
        if kind == CompletionKind::Command && is_enter && !takes_more {
            self.send(PromptDelivery::Queue)
        } else {
            None
        }
    }

    fn search_key(&mut self, event: &KeyEvent, keys: &KeyMap) {
        let Some(search) = &mut self.search else { return };
        match (keys.action(KeyContext::List, event), typed_text(event)) {
            (Some(KeyAction::ListUp), _) => search.go(PickerMove::Up),
            (Some(KeyAction::ListDown), _) => search.go(PickerMove::Down),
            (Some(KeyAction::ListPageUp), _) => search.go(PickerMove::PageUp),
            (Some(KeyAction::ListPageDown), _) => search.go(PickerMove::PageDown),
            (Some(KeyAction::Choose), _) => {
                let chosen = search.selected().and_then(|number| search.choices().get(number));
                let chosen = chosen.map(|choice| choice.title.clone());
                self.search = None;
                if let Some(text) = chosen {
                    self.editor.set_text(&text);
                }
            }
            (Some(KeyAction::Cancel), _) => self.search = None,
            (_, Some(letter)) => {
                let filter = format!("{}{letter}", search.filter());
                search.set_filter(&filter);
            }
            _ if event.code == KeyCode::Backspace => {
                let mut filter = search.filter().to_owned();
                filter.pop();
                search.set_filter(&filter);
            }
            _ if keys.action(KeyContext::Composer, event) == Some(KeyAction::SearchHistory) => {
                search.go(PickerMove::Down)
            }
            _ => {}
        }
    }

    /// How many rows it takes, at most `most`.
    pub(crate) fn height(&self, width: u16, most: u16) -> u16 {
        if let Some(search) = &self.search {
            return search.height(most.min(MAX_SEARCH_ROWS + 2));
        }
        let text = self.editor.height(width.saturating_sub(PROMPT_COLUMNS).max(1), most);
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
        let rows = self.editor.height(area.width.saturating_sub(PROMPT_COLUMNS).max(1), area.height);
        put_line(buffer, area.as_position(), PROMPT_COLUMNS, &Line::styled("> ", theme.accent));
        let inner = Rect {
            x: area.x + PROMPT_COLUMNS.min(area.width),
            width: area.width.saturating_sub(PROMPT_COLUMNS),
            height: rows.min(area.height),
            ..area
        };
        if self.editor.is_empty() {
            put_line(buffer, inner.as_position(), inner.width, &Line::styled(hint.to_owned(), theme.muted));
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
pub(crate) fn typed_text(event: &KeyEvent) -> Option<String> {
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
    let is_picture =
        !text.contains('\n') && text.len() < 4_096 && PICTURE_EXTENSIONS.contains(&kind.as_str());
    (is_picture && path.is_absolute() && path.is_file()).then(|| (text.clone(), name))
}
