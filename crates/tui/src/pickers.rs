//! Lists on the full screen: something is chosen, or looked at before it is.

use std::collections::HashMap;

use helve_protocol::SessionId;
use helve_widgets::{Picker, PickerChoice, PickerMove, Theme, put_line, width};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;

use crate::composer::typed_text;
use crate::keymap::KeyMap;
use crate::keys::{KeyAction, KeyContext};
use crate::link::{ModelChoice, SessionFileChange, SessionPreview, SessionRow};
use crate::pager_entries::{PagerEntry, PagerSection};
use crate::pager_view::{PagerView, ViewAction};
use crate::text_format::one_line;

/// So many rows tell about the selected session.
const SESSION_PREVIEW_ROWS: u16 = 7;
/// So many beginnings and ends of sessions are kept.
const MAX_CACHED_PREVIEWS: usize = 200;
/// Names of models are brought to the same width, unless they are longer.
const MAX_MODEL_NAME_PADDING: usize = 44;

/// A list to choose from.
pub(crate) struct PickerView {
    picker: Picker,
}

impl PickerView {
    pub(crate) fn new(title: &str, choices: Vec<PickerChoice>) -> PickerView {
        let mut picker = Picker::new(choices);
        picker.prompt = Some(format!("{title}: "));
        PickerView { picker }
    }

    /// The same, beginning with this choice.
    pub(crate) fn with_selection(mut self, choice: Option<usize>) -> PickerView {
        choice.into_iter().for_each(|choice| self.picker.select(choice));
        self
    }

    pub(crate) fn key(&mut self, event: &KeyEvent, keys: &KeyMap) -> ViewAction {
        match (keys.action(KeyContext::List, event), typed_text(event)) {
            (Some(KeyAction::ListUp), _) => self.picker.go(PickerMove::Up),
            (Some(KeyAction::ListDown), _) => self.picker.go(PickerMove::Down),
            (Some(KeyAction::ListPageUp), _) => self.picker.go(PickerMove::PageUp),
            (Some(KeyAction::ListPageDown), _) => self.picker.go(PickerMove::PageDown),
            (Some(KeyAction::Cancel), _) => return ViewAction::Close,
            (Some(KeyAction::Choose), _) => {
                return self.picker.selected().map_or(ViewAction::Stay, ViewAction::Chosen);
            }
            (_, Some(letter)) => self.filter(|filter| filter.push_str(&letter)),
            _ if event.code == KeyCode::Backspace => self.filter(|filter| {
                filter.pop();
            }),
            _ => {}
        }
        ViewAction::Stay
    }

    fn filter(&mut self, change: impl FnOnce(&mut String)) {
        let mut filter = self.picker.filter().to_owned();
        change(&mut filter);
        self.picker.set_filter(&filter);
    }

    pub(crate) fn draw(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) -> Option<Position> {
        self.picker.draw(area, buffer, theme).cursor
    }
}

/// The sessions that can be gone on with. What the selected one is about is read while it is looked at.
pub(crate) struct SessionPicker {
    list: PickerView,
    sessions: Vec<SessionRow>,
    glimpses: HashMap<SessionId, SessionPreview>,
    /// One is read at a time: whoever runs through the list does not wait for those passed by.
    asked: Option<SessionId>,
}

impl SessionPicker {
    pub(crate) fn new(sessions: Vec<SessionRow>) -> SessionPicker {
        let row = |past: &SessionRow| {
            let place = if past.is_here { String::new() } else { format!(" · {}", past.place) };
            PickerChoice::new(one_line(&past.title), one_line(&format!("{}{place}", past.when)))
        };
        let mut list = PickerView::new("go on with", sessions.iter().map(row).collect());
        list.picker.preview = SESSION_PREVIEW_ROWS;
        SessionPicker { list, sessions, glimpses: HashMap::new(), asked: None }
    }

    pub(crate) fn key(&mut self, event: &KeyEvent, keys: &KeyMap) -> ViewAction {
        self.list.key(event, keys)
    }

    pub(crate) fn get(&self, number: usize) -> Option<SessionId> {
        self.sessions.get(number).map(|past| past.session)
    }

    fn selected(&self) -> Option<&SessionRow> {
        self.sessions.get(self.list.picker.selected()?)
    }

    /// The session that has to be looked into next, if one has to be.
    pub(crate) fn next_preview(&mut self) -> Option<SessionId> {
        let wanted = self.selected()?.session;
        if self.asked.is_some() || self.glimpses.contains_key(&wanted) {
            return None;
        }
        self.asked = Some(wanted);
        self.asked
    }

    pub(crate) fn saw(&mut self, session: SessionId, glimpse: SessionPreview) {
        self.asked = self.asked.filter(|asked| *asked != session);
        if self.glimpses.len() >= MAX_CACHED_PREVIEWS {
            self.glimpses.clear();
        }
        self.glimpses.insert(session, glimpse);
    }

    pub(crate) fn draw(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) -> Option<Position> {
        let drawn = self.list.picker.draw(area, buffer, theme);
        let columns = usize::from(drawn.preview.width);
        let lines = self.selected().map(|past| self.preview(past, columns, theme)).unwrap_or_default();
        for (y, line) in (drawn.preview.y..drawn.preview.bottom()).zip(&lines) {
            let fitting = width::truncate(line, columns);
            put_line(buffer, Position::new(drawn.preview.x, y), drawn.preview.width, &fitting);
        }
        drawn.cursor
    }

    fn preview(&self, past: &SessionRow, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        let turns = if past.turns == 1 { "1 turn".to_owned() } else { format!("{} turns", past.turns) };
        let model = past.model.as_deref().unwrap_or("no model yet");
        let facts = format!("{} · {turns} · {model} · {}", past.when, past.cost);
        let glimpse = self.glimpses.get(&past.session);
        let said = |mark: &str, of: fn(&SessionPreview) -> &String| {
            let text = glimpse.map_or("…", |glimpse| of(glimpse).as_str());
            Line::styled(format!("{mark} {}", one_line(text)), theme.text)
        };
        vec![
            Line::styled("─".repeat(columns), theme.border),
            Line::styled(one_line(&past.title), theme.strong),
            Line::styled(one_line(&facts), theme.muted),
            Line::styled(one_line(&past.place), theme.muted),
            said("first:", |glimpse| &glimpse.first),
            said("last: ", |glimpse| &glimpse.last),
        ]
    }
}

/// The models, with what they cost and whether they can be used here.
pub(crate) struct ModelPicker {
    list: PickerView,
    models: Vec<ModelChoice>,
}

impl ModelPicker {
    /// With the one that answers now selected.
    pub(crate) fn new(models: Vec<ModelChoice>, current: Option<&str>) -> ModelPicker {
        let longest = models.iter().map(|model| width::width(&model.name)).max().unwrap_or(0);
        let row = |model: &ModelChoice| {
            let gap = longest.min(MAX_MODEL_NAME_PADDING).saturating_sub(width::width(&model.name));
            let prices = match &model.prices {
                Some((input, output)) => format!("{input:>8} in {output:>8} out"),
                None => format!("{:>24}", "price not known"),
            };
            let mark = if model.is_usable { "✓" } else { "✗" };
            let about = format!("{:gap$}{:>6} {prices}  {mark} {}", "", model.context, model.why);
            PickerChoice::new(one_line(&model.name), helve_protocol::one_line(about.trim_end()))
        };
        let mut list = PickerView::new("model (price of a million tokens)", models.iter().map(row).collect());
        let place = models.iter().position(|model| Some(model.name.as_str()) == current);
        list.picker.select(place.unwrap_or(0));
        ModelPicker { list, models }
    }

    pub(crate) fn key(&mut self, event: &KeyEvent, keys: &KeyMap) -> ViewAction {
        self.list.key(event, keys)
    }

    pub(crate) fn get(&self, number: usize) -> Option<&ModelChoice> {
        self.models.get(number)
    }

    pub(crate) fn draw(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) -> Option<Position> {
        self.list.draw(area, buffer, theme)
    }
}

/// The files that the session changed, and what it changed in the one that is read.
pub(crate) struct ChangesView {
    list: PickerView,
    files: Vec<SessionFileChange>,
    open: Option<PagerView>,
}

impl ChangesView {
    pub(crate) fn new(files: Vec<SessionFileChange>) -> ChangesView {
        let count = |added: u64, removed: u64| format!("+{added} -{removed}");
        let row = |file: &SessionFileChange| {
            PickerChoice::new(one_line(&file.path), count(file.added, file.removed))
        };
        let (added, removed) = files.iter().fold((0u64, 0u64), |(added, removed), file| {
            (added.saturating_add(file.added), removed.saturating_add(file.removed))
        });
        let noun = if files.len() == 1 { "file" } else { "files" };
        let all =
            PickerChoice::new("everything", format!("{} {noun} {}", files.len(), count(added, removed)));
        let rows = std::iter::once(all).chain(files.iter().map(row)).collect();
        ChangesView { list: PickerView::new("changed in this session", rows), files, open: None }
    }

    pub(crate) fn key(&mut self, event: &KeyEvent, keys: &KeyMap) -> ViewAction {
        if let Some(reading) = &mut self.open {
            // What is read here has no items before it or after it.
            if reading.key(event, keys) == ViewAction::Close {
                self.open = None;
            }
            return ViewAction::Stay;
        }
        match self.list.key(event, keys) {
            ViewAction::Chosen(number) => {
                self.open = Some(PagerView::new(self.entry(number)));
                ViewAction::Stay
            }
            then => then,
        }
    }

    /// All of them, or one.
    fn entry(&self, number: usize) -> PagerEntry {
        match number.checked_sub(1).and_then(|number| self.files.get(number)) {
            Some(file) => PagerEntry::new(one_line(&file.path), PagerSection::Diff(file.diff.clone())),
            None => {
                let diffs: Vec<&str> = self.files.iter().map(|file| file.diff.as_str()).collect();
                PagerEntry::new("everything", PagerSection::Diff(diffs.concat()))
            }
        }
    }

    pub(crate) fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        keys: &KeyMap,
        theme: &Theme,
    ) -> Option<Position> {
        match &mut self.open {
            Some(reading) => {
                reading.draw(area, buffer, keys, theme);
                None
            }
            None => self.list.draw(area, buffer, theme),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helve_testkit::sample_id;
    use ratatui::crossterm::event::KeyModifiers;

    #[test]
    fn whoever_runs_through_many_sessions_waits_for_none() {
        let past = |number: u64| SessionRow {
            session: sample_id(number),
            title: format!("title {number}"),
            when: "today".to_owned(),
            model: None,
            cost: "-".to_owned(),
            turns: number,
            place: "/p".to_owned(),
            is_here: true,
        };
        let mut sessions = SessionPicker::new((1..=5_000).map(past).collect());
        let keys = KeyMap::default();
        assert_eq!(sessions.next_preview(), Some(sample_id(1)));
        for _ in 1..5_000 {
            sessions.key(&KeyEvent::new(KeyCode::Down, KeyModifiers::NONE), &keys);
            assert_eq!(sessions.next_preview(), None, "the first is still read");
        }
        sessions.saw(sample_id(1), SessionPreview::default());
        assert_eq!(sessions.next_preview(), Some(sample_id(5_000)), "those passed by are not");
        let glimpse = SessionPreview { first: "how it began".to_owned(), last: "how\nit ended".to_owned() };
        sessions.saw(sample_id(5_000), glimpse);
        assert_eq!(sessions.next_preview(), None);
        let area = Rect::new(0, 0, 60, 20);
        let mut buffer = Buffer::empty(area);
        sessions.draw(area, &mut buffer, &Theme::default());
        let text: String = buffer.content().iter().map(|cell| cell.symbol()).collect();
        assert!(text.contains("5000 turns") && text.contains("first: how it began"), "{text}");
        // What is looked for is found among all.
        "4321".chars().for_each(|letter| {
            sessions.key(&KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE), &keys);
        });
        let chosen = sessions.key(&KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE), &keys);
        assert_eq!(chosen, ViewAction::Chosen(4_320));
        assert_eq!(sessions.get(4_320), Some(sample_id(4_321)));
    }
}
