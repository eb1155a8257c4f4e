//! The first start: a person gives Helve a model to speak with, and says whether a project's settings may count.
//!
//! [`Guide`] is the set-up as a value, as [`App`](crate::App) is the interface; [`lead`] is the loop around it; `guide_view` draws it.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use helve_widgets::{Choice, Picker, Step};
use ratatui::crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind};
use ratatui::layout::Size;
use ratatui::text::Line;
use tokio::sync::mpsc;

use crate::approvals::GUARD;
use crate::composer::typed;
use crate::keys::{Action, Context};
use crate::link::{Look, Make, Take};
use crate::run::Device;
use crate::terminal::{Notice, Notices};
use crate::words::one_line;

/// How often local servers are looked for.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// No key is longer.
const MOST_KEY: usize = 4_096;
/// So many rows are gone through at once.
const PAGE: usize = 10;
/// So many models of local servers are offered.
const MOST_LOCAL: usize = 50;

/// What the set-up asks of the machine. All but `now` and `guess` may take its time: it is called on a thread of its own.
#[derive(Clone)]
pub struct Helper {
    pub now: Make<Instant>,
    /// Whose key it is, by its looks.
    pub guess: Take<Option<String>>,
    /// Those whose keys can be stored, by name, and what people call them.
    pub providers: Vec<(String, String)>,
    /// Stores the key of a provider.
    pub store: Store,
    /// Looks for servers on this machine.
    pub look_around: Make<Nearby>,
}

/// Takes the name of a provider and a key.
pub type Store = Arc<dyn Fn(&str, &str) -> Result<(), String> + Send + Sync>;

/// What runs on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nearby {
    /// Models that can be used.
    pub models: Vec<String>,
    /// What keeps a server that runs from being used.
    pub odd: Vec<String>,
}

/// Where the set-up led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Led {
    /// There is a key now.
    Key,
    /// A model of a server on this machine.
    Local(String),
    Demo,
    /// The project is trusted.
    Trusted,
    /// It was left without an answer, or the answer is no.
    Skipped,
    /// Somebody wants us to end, or the terminal is gone.
    Told,
}

pub(crate) enum Stage {
    /// How to get a model.
    Ways,
    Key(String),
    /// Whose key it is.
    Whose(String, Box<Picker>),
    Storing,
    /// Whether the project's settings may count: what they ask for.
    Trust(Vec<String>),
}

// Keys are never shown, not even to who looks for mistakes: no Debug.
enum Job {
    LookAround,
    Store(String, String),
}

enum Done {
    Nearby(Nearby),
    Stored(Result<String, String>),
}

pub struct Guide {
    pub(crate) look: Look,
    pub(crate) stage: Stage,
    pub(crate) ways: Picker,
    pub(crate) nearby: Nearby,
    providers: Vec<(String, String)>,
    pub(crate) guess: Take<Option<String>>,
    /// What went wrong last.
    pub(crate) trouble: Option<String>,
    /// Since when the question is there.
    since: Instant,
    /// The first row that is seen of what is asked, and whether the last one was.
    pub(crate) top: usize,
    pub(crate) has_seen_all: bool,
    jobs: Vec<Job>,
    led: Option<Led>,
}

impl Guide {
    /// Helps to a model.
    pub fn to_a_model(look: Look, helper: &Helper) -> Guide {
        let jobs = vec![Job::LookAround];
        let mut guide = Guide { jobs, ..Guide::new(Stage::Ways, look, helper) };
        guide.set_ways();
        guide
    }

    /// Asks whether a project may do what needs trust: a line for what it is about, and one for each thing.
    pub fn to_trust(asked: Vec<String>, look: Look, helper: &Helper) -> Guide {
        Guide::new(Stage::Trust(asked), look, helper)
    }

    fn new(stage: Stage, look: Look, helper: &Helper) -> Guide {
        Guide {
            look,
            stage,
            ways: Picker::default(),
            nearby: Nearby::default(),
            providers: helper.providers.clone(),
            guess: helper.guess.clone(),
            trouble: None,
            since: (helper.now)(),
            top: 0,
            has_seen_all: false,
            jobs: Vec::new(),
            led: None,
        }
    }

    /// What can be chosen: a key, the models that were found, the demo.
    fn set_ways(&mut self) {
        let selected = self.ways.selected().and_then(|number| self.ways.choices().get(number)).cloned();
        let key = Choice::new(
            "paste a key",
            "of Anthropic, OpenAI, Gemini, OpenRouter or another; stored for you alone",
        );
        let local = self.nearby.models.iter().take(MOST_LOCAL);
        let local = local.map(|model| Choice::new(one_line(model), "runs on this machine"));
        let demo = Choice::new("watch the demo", "a scripted model mends a small project, offline");
        let ways: Vec<Choice> = std::iter::once(key).chain(local).chain([demo]).collect();
        // Whoever is about to choose something still chooses the same.
        let place = selected.and_then(|selected| ways.iter().position(|way| *way == selected));
        self.ways = Picker::new(ways);
        self.ways.select(place.unwrap_or(0));
    }

    fn is_looking(&self) -> bool {
        matches!(self.stage, Stage::Ways)
    }

    fn input(&mut self, input: &Input, now: Instant) {
        match input {
            Input::Key(key) if key.kind != KeyEventKind::Release => self.key(key, now),
            Input::Paste(text) => self.paste(text),
            _ => {}
        }
    }

    fn paste(&mut self, text: &str) {
        match &mut self.stage {
            Stage::Ways => self.stage = Stage::Key(bounded(text)),
            Stage::Key(key) => *key = bounded(&format!("{key}{text}")),
            _ => {}
        }
    }

    fn key(&mut self, event: &KeyEvent, now: Instant) {
        let list = self.look.keys.action(Context::List, event);
        match &mut self.stage {
            Stage::Ways => match list {
                Some(Action::Cancel) => self.led = Some(Led::Skipped),
                Some(Action::Choose) => self.choose_way(),
                action => step(&mut self.ways, action),
            },
            Stage::Key(key) => match (list, event.code) {
                (Some(Action::Cancel), _) => self.go_back(),
                (_, KeyCode::Enter) => {
                    let key = key.trim().to_owned();
                    self.take_key(key);
                }
                (_, KeyCode::Backspace) => {
                    key.pop();
                }
                _ => {
                    if let Some(letter) = typed(event).filter(|_| key.len() < MOST_KEY) {
                        key.push_str(&letter);
                    }
                }
            },
            Stage::Whose(key, picker) => match (list, typed(event)) {
                (Some(Action::Cancel), _) => self.go_back(),
                (Some(Action::Choose), _) => {
                    let provider = picker.selected().and_then(|number| self.providers.get(number));
                    if let Some((name, _)) = provider {
                        self.jobs.push(Job::Store(name.clone(), std::mem::take(key)));
                        self.stage = Stage::Storing;
                    }
                }
                (None, Some(letter)) => picker.set_filter(&format!("{}{letter}", picker.filter())),
                (None, None) if event.code == KeyCode::Backspace => {
                    let mut filter = picker.filter().to_owned();
                    filter.pop();
                    picker.set_filter(&filter);
                }
                (action, _) => step(picker, action),
            },
            Stage::Storing => {}
            Stage::Trust(_) => self.decide(event, now),
        }
    }

    fn decide(&mut self, event: &KeyEvent, now: Instant) {
        let is_early = now.saturating_duration_since(self.since) < GUARD;
        match self.look.keys.action(Context::Approval, event) {
            // Nobody agrees to what they have not seen.
            Some(Action::AllowOnce) if !is_early && self.has_seen_all => self.led = Some(Led::Trusted),
            Some(Action::Reject | Action::StopTurn) => self.led = Some(Led::Skipped),
            _ => {}
        }
        match self.look.keys.action(Context::List, event) {
            Some(Action::ListUp) => self.top = self.top.saturating_sub(1),
            Some(Action::ListDown) => self.top += 1,
            Some(Action::ListPageUp) => self.top = self.top.saturating_sub(PAGE),
            Some(Action::ListPageDown) => self.top += PAGE,
            _ => {}
        }
    }

    fn go_back(&mut self) {
        (self.stage, self.trouble) = (Stage::Ways, None);
    }

    fn choose_way(&mut self) {
        let Some(number) = self.ways.selected() else { return };
        let model = number.checked_sub(1).and_then(|number| self.nearby.models.get(number));
        match model {
            _ if number == 0 => self.stage = Stage::Key(String::new()),
            Some(model) => self.led = Some(Led::Local(model.clone())),
            None => self.led = Some(Led::Demo),
        }
    }

    fn take_key(&mut self, key: String) {
        self.trouble = None;
        if key.is_empty() {
            self.trouble = Some("nothing was pasted yet".to_owned());
        } else if let Some(provider) = (self.guess)(&key) {
            self.jobs.push(Job::Store(provider, key));
            self.stage = Stage::Storing;
        } else {
            let rows = self.providers.iter().map(|(name, title)| Choice::new(name.as_str(), title.as_str()));
            let mut picker = Picker::new(rows.collect());
            picker.prompt = Some("whose key is it? ".to_owned());
            self.stage = Stage::Whose(key, Box::new(picker));
        }
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Nearby(nearby) if nearby == self.nearby => {}
            Done::Nearby(nearby) => {
                self.nearby = nearby;
                self.set_ways();
            }
            Done::Stored(Ok(_)) => self.led = Some(Led::Key),
            Done::Stored(Err(why)) => (self.stage, self.trouble) = (Stage::Key(String::new()), Some(why)),
        }
    }

    /// What stays on the screen when it is over.
    fn farewell(&self, led: &Led) -> Option<String> {
        match led {
            Led::Key => Some("✓ the key is stored, for you alone".to_owned()),
            Led::Local(model) => Some(format!("✓ {} answers from this machine", one_line(model))),
            _ => None,
        }
    }
}

fn bounded(key: &str) -> String {
    key.chars().filter(|letter| !letter.is_control()).take(MOST_KEY).collect()
}

fn step(picker: &mut Picker, action: Option<Action>) {
    match action {
        Some(Action::ListUp) => picker.go(Step::Up),
        Some(Action::ListDown) => picker.go(Step::Down),
        Some(Action::ListPageUp) => picker.go(Step::PageUp),
        Some(Action::ListPageDown) => picker.go(Step::PageDown),
        _ => {}
    }
}

/// Leads a person through the set-up. The screen must have been entered, and is not left at the end.
pub async fn lead<W: Write, S: FnMut() -> Size>(
    mut guide: Guide,
    device: &mut Device<W, S>,
    helper: &Helper,
) -> io::Result<Led> {
    let mut notices = Notices::listen()?;
    let (sender, mut done) = mpsc::unbounded_channel();
    loop {
        guide.jobs.drain(..).for_each(|job| start(job, helper, sender.clone()));
        if let Some(led) = guide.led.take() {
            device.screen.print(
                guide
                    .farewell(&led)
                    .map(|text| Line::styled(text, guide.look.theme.success))
                    .into_iter()
                    .collect(),
            );
            device.screen.draw(1, |_| None)?;
            return Ok(led);
        }
        guide.draw(&mut device.screen)?;
        tokio::select! {
            biased;
            input = device.keyboard.next() => match input {
                Some(input) => {
                    if matches!(input, Input::Resize(..)) {
                        device.screen.resized();
                    }
                    guide.input(&input, (helper.now)());
                }
                None => return Ok(Led::Told),
            },
            notice = notices.next() => match notice {
                Notice::End => return Ok(Led::Told),
                Notice::Suspend => {}
                Notice::Continue => {
                    device.raw.resume()?;
                    device.screen.enter()?;
                }
            },
            Some(result) = done.recv() => guide.done(result),
            () = tokio::time::sleep(LOOK_AGAIN), if guide.is_looking() => guide.jobs.push(Job::LookAround),
        }
    }
}

fn start(job: Job, helper: &Helper, done: mpsc::UnboundedSender<Done>) {
    let helper = helper.clone();
    std::thread::spawn(move || {
        let result = match job {
            Job::LookAround => Done::Nearby((helper.look_around)()),
            Job::Store(provider, key) => Done::Stored((helper.store)(&provider, &key).map(|()| provider)),
        };
        // Nobody waits for it any more if the set-up is over.
        let _ = done.send(result);
    });
}
