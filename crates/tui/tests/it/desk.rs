//! The interface on an emulated terminal, with a session that says what the test wants.

use std::cell::Cell;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use helve_protocol::{EventBody, SessionCommand};
use helve_testkit::{SampleSession, sample_id};
use helve_tui::{App, AppContext, AppOptions, SessionMessage, SessionOverview, UiRequest};
use helve_widgets::{ScreenOptions, TerminalScreen};
use ratatui::crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Size;

/// What is written goes to an emulator.
#[derive(Clone)]
struct Wire(Rc<RefCell<vt100::Parser>>);

impl io::Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().process(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

type Window = Box<dyn FnMut() -> Size>;

pub(crate) struct Desk {
    pub(crate) app: App,
    screen: TerminalScreen<Wire, Window>,
    seen: Rc<RefCell<vt100::Parser>>,
    size: Rc<Cell<Size>>,
    pub(crate) session: SampleSession,
    now: Instant,
    /// What the interface asked of the session.
    pub(crate) orders: Vec<SessionCommand>,
}

impl Desk {
    pub(crate) fn new(opened: SessionOverview) -> Desk {
        let size = Rc::new(Cell::new(Size::new(80, 24)));
        let seen = Rc::new(RefCell::new(vt100::Parser::new(24, 80, 10_000)));
        let window: Window = {
            let size = size.clone();
            Box::new(move || size.get())
        };
        let mut screen = TerminalScreen::new(Wire(seen.clone()), window, ScreenOptions::default());
        screen.enter().unwrap();
        let facts = AppContext { version: "0".to_owned(), project: "/p".to_owned(), ..AppContext::default() };
        let app = App::new(facts, AppOptions::default(), opened);
        let mut desk = Desk {
            app,
            screen,
            seen,
            size,
            session: SampleSession::new(sample_id(1)),
            now: Instant::now(),
            orders: Vec::new(),
        };
        desk.draw();
        desk
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
        self.app.tick(self.now);
    }

    pub(crate) fn tell(&mut self, body: impl Into<EventBody>) {
        let event = self.session.event(body);
        self.app.told(&SessionMessage::Event(Arc::new(event)), self.now);
        self.collect();
    }

    pub(crate) fn input(&mut self, input: &Input) {
        self.app.input(input, self.now);
        self.collect();
    }

    pub(crate) fn key(&mut self, code: KeyCode, held: KeyModifiers) {
        self.input(&Input::Key(KeyEvent::new(code, held)));
    }

    pub(crate) fn say(&mut self, text: &str) {
        text.chars().for_each(|letter| self.key(KeyCode::Char(letter), KeyModifiers::NONE));
        self.key(KeyCode::Enter, KeyModifiers::NONE);
    }

    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        self.size.set(Size::new(columns, rows));
        // The emulator only grows: it breaks when a wide letter is cut by a smaller window.
        let mut seen = self.seen.borrow_mut();
        let (old_rows, old_columns) = seen.screen().size();
        seen.screen_mut().set_size(rows.max(old_rows), columns.max(old_columns));
    }

    fn collect(&mut self) {
        let orders = self.app.take_requests().into_iter();
        self.orders.extend(orders.filter_map(|order| match order {
            UiRequest::Command(command) => Some(command),
            UiRequest::Query(_) => None,
        }));
    }

    pub(crate) fn draw(&mut self) {
        self.app.draw(&mut self.screen, Some(100_000), self.now).unwrap();
    }

    pub(crate) fn text(&mut self) -> String {
        self.draw();
        self.seen.borrow().screen().contents()
    }

    /// Leaves, and looks at what is left.
    pub(crate) fn assert_restores(mut self) {
        self.screen.leave().unwrap();
        let parser = self.seen.borrow();
        let screen = parser.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste());
    }
}
