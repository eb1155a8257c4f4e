//! The full screen: an item in full, the keys.

use helve_protocol::{BlobId, Seq};
use helve_widgets::{Pager, ScrollStep, SearchDirection, Theme, put_line};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use crate::composer::typed_text;
use crate::keymap::KeyMap;
use crate::keys::{KeyAction, KeyContext};
use crate::machine_jobs::MachineJob;
use crate::pager_entries::{PagerEntry, PagerSection, UnjournaledEntries};
use crate::pager_pages::{self, PagerPage};

/// So many columns of a title are shown.
const MAX_TITLE_COLUMNS: usize = 24;

/// A text that is read page by page.
pub(crate) struct PagerView {
    entry: PagerEntry,
    /// Where it stands in the session, if it does.
    book: Option<SessionPager>,
    /// Laid out for this width.
    pager: Option<(u16, Pager<Vec<Line<'static>>>)>,
    /// What is looked for, while it is written.
    search: Option<String>,
    /// What has to be fetched.
    errands: Vec<MachineJob>,
}

/// All items of a session, of which one page is at hand.
struct SessionPager {
    page: PagerPage,
    /// The item of the page that is read.
    number: usize,
    /// The events before which the pages end that were turned: the newest first, the open one last.
    ends: Vec<Seq>,
    /// A page was asked for and has not come: its item at this end is read next.
    turning: Option<PageTurn>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageTurn {
    Older,
    Newer,
}

/// What a key means for whoever opened something on the full screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ViewAction {
    Stay,
    Close,
    /// The choice of this number was taken.
    Chosen(usize),
}

impl SessionPager {
    /// Goes to another item of the page, or asks for another page.
    fn turn(&mut self, to: PageTurn) -> Option<MachineJob> {
        if self.turning.is_some() {
            return None;
        }
        let next = match to {
            PageTurn::Older => self.number.checked_sub(1),
            PageTurn::Newer => Some(self.number + 1).filter(|next| *next < self.page.entries.len()),
        };
        if let Some(next) = next {
            self.number = next;
            return None;
        }
        match to {
            PageTurn::Older if self.page.is_first => return None,
            PageTurn::Older => self.ends.push(self.page.start),
            PageTurn::Newer if self.ends.len() == 1 => return None,
            PageTurn::Newer => drop(self.ends.pop()),
        }
        self.turning = Some(to);
        self.ends.last().copied().map(MachineJob::LoadPage)
    }

    /// A page has come.
    fn take(&mut self, page: PagerPage, turned: PageTurn) {
        if page.entries.is_empty() {
            // Nothing is older than what is at hand.
            self.ends.pop();
            self.page.is_first = true;
            return;
        }
        self.number = if turned == PageTurn::Older { page.entries.len() - 1 } else { 0 };
        self.page = page;
    }
}

impl PagerView {
    pub(crate) fn new(entry: PagerEntry) -> PagerView {
        PagerView { entry, book: None, pager: None, search: None, errands: Vec::new() }
    }

    /// The last item of the session, as soon as it has come.
    pub(crate) fn of_session() -> PagerView {
        let book = SessionPager {
            page: PagerPage::default(),
            number: 0,
            ends: vec![pager_pages::AFTER_LAST_EVENT],
            turning: Some(PageTurn::Older),
        };
        let errands = vec![MachineJob::LoadPage(pager_pages::AFTER_LAST_EVENT)];
        PagerView { book: Some(book), errands, ..PagerView::new(PagerEntry::default()) }
    }

    /// What has to be fetched.
    pub(crate) fn take_errands(&mut self) -> Vec<MachineJob> {
        std::mem::take(&mut self.errands)
    }

    /// A page has come that ends before an event. Gives why there is nothing to read, if there is not.
    pub(crate) fn turned(
        &mut self,
        before: Seq,
        page: Result<PagerPage, String>,
        kept: &UnjournaledEntries,
    ) -> Result<(), String> {
        let Some(book) = &mut self.book else { return Ok(()) };
        let Some(turned) = book.turning.filter(|_| book.ends.last() == Some(&before)) else { return Ok(()) };
        book.turning = None;
        let mut page = page?;
        kept.join(&mut page.entries, if page.is_first { Seq::START } else { page.start }, before);
        if page.entries.is_empty() && book.ends.len() == 1 {
            return Err("there is nothing to read yet".to_owned());
        }
        book.take(page, turned);
        self.show();
        Ok(())
    }

    /// Shows the item at hand from its beginning.
    fn show(&mut self) {
        let Some(entry) = self.book.as_ref().and_then(|book| book.page.entries.get(book.number)) else {
            return;
        };
        (self.entry, self.pager, self.search) = (entry.clone(), None, None);
        self.errands.extend(self.entry.whole.map(MachineJob::LoadOutput));
    }

    /// All of an output has come, or why it can't be had.
    pub(crate) fn fill(&mut self, blob: BlobId, whole: Result<String, String>) {
        if self.entry.whole != Some(blob) {
            return;
        }
        match whole {
            Ok(whole) => self.entry.fill(whole),
            Err(why) => {
                self.entry.sections.push(PagerSection::Text(format!("[the rest can't be had: {why}]")))
            }
        }
        // It is laid out anew, and stays where it was.
        if let Some((width, _)) = &mut self.pager {
            *width = 0;
        }
    }

    pub(crate) fn key(&mut self, event: &KeyEvent, keys: &KeyMap) -> ViewAction {
        if self.search.is_some() {
            // A letter that closes is written here.
            if keys.action(KeyContext::Pager, event) == Some(KeyAction::Close) && typed_text(event).is_none()
            {
                self.search = None;
            }
            self.search_key(event);
            return ViewAction::Stay;
        }
        match keys.action(KeyContext::Pager, event) {
            Some(KeyAction::Close) => return ViewAction::Close,
            Some(KeyAction::Older) => self.turn(PageTurn::Older),
            Some(KeyAction::Newer) => self.turn(PageTurn::Newer),
            Some(action) => self.scroll(action),
            None => {}
        }
        ViewAction::Stay
    }

    fn turn(&mut self, to: PageTurn) {
        let Some(book) = &mut self.book else { return };
        let was = book.number;
        self.errands.extend(book.turn(to));
        if book.number != was {
            self.show();
        }
    }

    fn scroll(&mut self, action: KeyAction) {
        let Some((_, pager)) = &mut self.pager else { return };
        match action {
            KeyAction::ScrollUp => pager.scroll(ScrollStep::Up),
            KeyAction::ScrollDown => pager.scroll(ScrollStep::Down),
            KeyAction::PageUp => pager.scroll(ScrollStep::PageUp),
            KeyAction::PageDown => pager.scroll(ScrollStep::PageDown),
            KeyAction::HalfUp => pager.scroll(ScrollStep::HalfUp),
            KeyAction::HalfDown => pager.scroll(ScrollStep::HalfDown),
            KeyAction::ToStart => pager.scroll(ScrollStep::Home),
            KeyAction::ToEnd => pager.scroll(ScrollStep::End),
            KeyAction::SearchNext => drop(pager.find_again(SearchDirection::Next)),
            KeyAction::SearchPrevious => drop(pager.find_again(SearchDirection::Previous)),
            KeyAction::Search => self.search = Some(String::new()),
            _ => {}
        }
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
            _ => search.extend(typed_text(event)),
        }
    }

    pub(crate) fn draw(&mut self, area: Rect, buffer: &mut Buffer, keys: &KeyMap, theme: &Theme) {
        let is_new = self.pager.as_ref().is_none_or(|(width, _)| *width != area.width);
        if is_new {
            let top = self.pager.as_ref().map(|(_, pager)| pager.top_line());
            let mut pager = Pager::new(self.title(keys), self.entry.lines(area.width.into(), theme));
            top.into_iter().for_each(|top| pager.go_to_line(top));
            self.pager = Some((area.width, pager));
        }
        let Some((_, pager)) = &mut self.pager else { return };
        pager.draw(area, buffer, theme);
        let last = Position::new(area.x, area.bottom().saturating_sub(1));
        if let Some(search) = &self.search {
            let line = Line::styled(format!("/{search}▏{:1$}", "", usize::from(area.width)), theme.accent);
            put_line(buffer, last, area.width, &line);
        }
    }

    fn title(&self, keys: &KeyMap) -> String {
        let (close, search) = (keys.key(KeyAction::Close), keys.key(KeyAction::Search));
        let title = helve_widgets::width::truncate_text(&self.entry.title, MAX_TITLE_COLUMNS);
        if self.book.is_none() {
            return format!("{title} · {close} closes · {search} searches");
        }
        let (older, newer) = (keys.key(KeyAction::Older), keys.key(KeyAction::Newer));
        format!("{title} · {close} closes · {older}/{newer} others · {search} searches")
    }
}

/// The keys of a context, and the commands.
pub(crate) fn help_entry(keys: &KeyMap) -> PagerEntry {
    let mut text = String::new();
    for context in KeyContext::ALL {
        text.push_str(&format!("## {}\n\n| key | action | |\n|---|---|---|\n", context.name()));
        for (keys, name, about) in keys.rows(context) {
            let about = if about == name { "" } else { about };
            text.push_str(&format!("| {} | {name} | {about} |\n", keys.replace('|', "\\|")));
        }
        text.push('\n');
    }
    text.push_str("## Commands\n\n| command | |\n|---|---|\n");
    for command in &crate::slash::SLASH_COMMANDS {
        text.push_str(&format!("| /{} {} | {} |\n", command.word, command.takes, command.about));
    }
    text.push_str(
        "\n`@` completes files, `!` runs a command of yours, `#` remembers a sentence for later sessions.\n",
    );
    PagerEntry::new("keys and commands", PagerSection::Markdown(text))
}

/// The most useful keys in one row.
pub(crate) fn hints(keys: &KeyMap, theme: &Theme) -> Line<'static> {
    let hints = [
        (KeyAction::Help, "keys"),
        (KeyAction::CycleMode, "mode"),
        (KeyAction::OpenPager, "read"),
        (KeyAction::SearchHistory, "history"),
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
