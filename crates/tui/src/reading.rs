//! The full screen: an item in full, the keys.

use helve_widgets::{Pager, Scroll, Theme, Towards, put};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use crate::composer::typed;
use crate::kept::{Entry, Kept};
use crate::keymap::KeyMap;
use crate::keys::{Action, Context};

/// So many columns of a title are shown.
const TITLE: usize = 24;

/// A text that is read page by page.
pub(crate) struct Reading {
    entry: Entry,
    /// Which of the kept items it is.
    number: Option<usize>,
    /// Laid out for this width.
    pager: Option<(u16, Pager<Vec<Line<'static>>>)>,
    /// What is looked for, while it is written.
    search: Option<String>,
}

/// What a key means for whoever opened something on the full screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Stay,
    Close,
    /// The choice of this number was taken.
    Chosen(usize),
}

impl Reading {
    pub(crate) fn new(entry: Entry) -> Reading {
        Reading { entry, number: None, pager: None, search: None }
    }

    /// The last of the kept items.
    pub(crate) fn last(kept: &Kept) -> Option<Reading> {
        let number = kept.len().checked_sub(1)?;
        Some(Reading { number: Some(number), ..Reading::new(kept.get(number)?.clone()) })
    }

    pub(crate) fn key(&mut self, event: &KeyEvent, keys: &KeyMap, kept: &Kept) -> Then {
        if self.search.is_some() {
            // A letter that closes is written here.
            if keys.action(Context::Pager, event) == Some(Action::Close) && typed(event).is_none() {
                self.search = None;
            }
            self.search_key(event);
            return Then::Stay;
        }
        let Some(action) = keys.action(Context::Pager, event) else { return Then::Stay };
        let step = match action {
            Action::Close => return Then::Close,
            Action::Older => self.number.and_then(|number| number.checked_sub(1)),
            Action::Newer => self.number.map(|number| number + 1),
            _ => None,
        };
        if let Some((number, entry)) = step.and_then(|number| Some((number, kept.get(number)?))) {
            *self = Reading { number: Some(number), ..Reading::new(entry.clone()) };
            return Then::Stay;
        }
        let Some((_, pager)) = &mut self.pager else { return Then::Stay };
        match action {
            Action::ScrollUp => pager.scroll(Scroll::Up),
            Action::ScrollDown => pager.scroll(Scroll::Down),
            Action::PageUp => pager.scroll(Scroll::PageUp),
            Action::PageDown => pager.scroll(Scroll::PageDown),
            Action::HalfUp => pager.scroll(Scroll::HalfUp),
            Action::HalfDown => pager.scroll(Scroll::HalfDown),
            Action::ToStart => pager.scroll(Scroll::Home),
            Action::ToEnd => pager.scroll(Scroll::End),
            Action::SearchNext => drop(pager.find_again(Towards::Next)),
            Action::SearchPrevious => drop(pager.find_again(Towards::Previous)),
            Action::Search => self.search = Some(String::new()),
            _ => {}
        }
        Then::Stay
    }

    fn search_key(&mut self, event: &KeyEvent) {
        let Some(search) = &mut self.search else { return };
        match event.code {
            KeyCode::Enter => {
                if let Some((_, pager)) = &mut self.pager {
                    pager.search(search);
                }
                self.search = None;
            }
            KeyCode::Esc => self.search = None,
            KeyCode::Backspace => {
                if search.pop().is_none() {
                    self.search = None;
                }
            }
            _ => search.extend(typed(event)),
        }
    }

    pub(crate) fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        keys: &KeyMap,
        theme: &Theme,
        kept: &Kept,
    ) {
        let is_new = self.pager.as_ref().is_none_or(|(width, _)| *width != area.width);
        if is_new {
            let top = self.pager.as_ref().map(|(_, pager)| pager.top_line());
            let mut pager = Pager::new(self.title(keys, kept), self.entry.lines(area.width.into(), theme));
            top.into_iter().for_each(|top| pager.go_to_line(top));
            self.pager = Some((area.width, pager));
        }
        let Some((_, pager)) = &mut self.pager else { return };
        pager.draw(area, buffer, theme);
        let last = Position::new(area.x, area.bottom().saturating_sub(1));
        if let Some(search) = &self.search {
            let line = Line::styled(format!("/{search}▏{:1$}", "", usize::from(area.width)), theme.accent);
            put(buffer, last, area.width, &line);
        }
    }

    fn title(&self, keys: &KeyMap, kept: &Kept) -> String {
        let (close, search) = (keys.key(Action::Close), keys.key(Action::Search));
        let title = helve_widgets::width::truncate_text(&self.entry.title, TITLE);
        match self.number {
            Some(number) => {
                let (older, newer) = (keys.key(Action::Older), keys.key(Action::Newer));
                let count = format!("{} of {}", number + 1, kept.len());
                format!("{count} · {title} · {close} closes · {older}/{newer} others · {search} searches")
            }
            None => format!("{title} · {close} closes · {search} searches"),
        }
    }
}

/// The keys of a context, and the commands.
pub(crate) fn help(keys: &KeyMap) -> Entry {
    use crate::kept::Section;
    let mut text = String::new();
    for context in Context::ALL {
        text.push_str(&format!("## {}\n\n| key | action | |\n|---|---|---|\n", context.name()));
        for (keys, name, about) in keys.rows(context) {
            let about = if about == name { "" } else { about };
            text.push_str(&format!("| {} | {name} | {about} |\n", keys.replace('|', "\\|")));
        }
        text.push('\n');
    }
    text.push_str("## Commands\n\n| command | |\n|---|---|\n");
    for command in &crate::slash::ALL {
        text.push_str(&format!("| /{} {} | {} |\n", command.word, command.takes, command.about));
    }
    text.push_str(
        "\n`@` completes files, `!` runs a command of yours, `#` remembers a sentence for later sessions.\n",
    );
    Entry::new("keys and commands", Section::Markdown(text))
}

/// The most useful keys in one row.
pub(crate) fn hints(keys: &KeyMap, theme: &Theme) -> Line<'static> {
    let hints = [
        (Action::Help, "keys"),
        (Action::CycleMode, "mode"),
        (Action::OpenPager, "read"),
        (Action::SearchHistory, "history"),
    ];
    let mut spans = Vec::new();
    for (action, about) in hints {
        if !spans.is_empty() {
            spans.push(Span::styled(" · ", theme.muted));
        }
        spans.push(Span::styled(format!("{} {about}", keys.key(action)), theme.muted));
    }
    Line::from(spans)
}
