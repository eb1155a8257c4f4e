//! The first start: a person gives Helve a model to speak with, and says whether a project's settings may count.
//!
//! [`SetupGuide`] is the set-up as a value, as [`App`](crate::App) is the interface; [`lead`] is the loop around it; `guide_view` draws it.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use helve_widgets::{Picker, PickerChoice, PickerMove};
use ratatui::crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind};
use ratatui::layout::Size;
use ratatui::text::Line;
use tokio::sync::mpsc;

use crate::approvals::APPROVAL_GUARD_TIME;
use crate::composer::typed_text;
use crate::keys::{KeyAction, KeyContext};
use crate::link::{AppOptions, MachineCall, MachineTextCall};
use crate::run::TerminalDevice;
use crate::terminal::{TerminalSignal, TerminalSignals};
use crate::text_format::one_line;

/// How often local servers are looked for.
const LOCAL_SCAN_INTERVAL: Duration = Duration::from_secs(2);
/// No key is longer.
const MAX_API_KEY_CHARS: usize = 4_096;
/// So many rows are gone through at once.
const GUIDE_PAGE_ROWS: usize = 10;
/// So many models of local servers are offered.
const MAX_LOCAL_MODELS: usize = 50;

/// What the set-up asks of the machine. All but `now` and `guess` may take its time: it is called on a thread of its own.
#[derive(Clone)]
pub struct SetupServices {
    pub now: MachineCall<Instant>,
    /// Whose key it is, by its looks.
    pub guess: MachineTextCall<Option<String>>,
    /// Those whose keys can be stored, by name, and what people call them.
    pub providers: Vec<(String, String)>,
    /// Stores the key of a provider.
    pub store: ApiKeyStorer,
    /// Looks for servers on this machine.
    pub look_around: MachineCall<LocalModelScan>,
}

/// Takes the name of a provider and a key.
pub type ApiKeyStorer = Arc<dyn Fn(&str, &str) -> Result<(), String> + Send + Sync>;

/// What runs on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalModelScan {
    /// Models that can be used.
    pub models: Vec<String>,
    /// What keeps a server that runs from being used.
    pub odd: Vec<String>,
}

/// Where the set-up led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuideOutcome {
    /// There is a key now.
    KeyStored,
    /// A model of a server on this machine.
    LocalModel(String),
    Demo,
    /// The project is trusted.
    Trusted,
    /// It was left without an answer, or the answer is no.
    Skipped,
    /// Somebody wants us to end, or the terminal is gone.
    Terminated,
}

pub(crate) enum GuideStage {
    /// How to get a model.
    ChooseSource,
    EnterKey(String),
    /// Whose key it is.
    ChooseProvider(String, Box<Picker>),
    StoringKey,
    /// Whether the project's settings may count: what they ask for.
    Trust(Vec<String>),
}

// Keys are never shown, not even to who looks for mistakes: no Debug.
enum GuideJob {
    ScanLocalServers,
    StoreKey(String, String),
}

enum GuideJobResult {
    LocalModels(LocalModelScan),
    Stored(Result<String, String>),
}

pub struct SetupGuide {
    pub(crate) look: AppOptions,
    pub(crate) stage: GuideStage,
    pub(crate) ways: Picker,
    pub(crate) nearby: LocalModelScan,
    providers: Vec<(String, String)>,
    pub(crate) guess: MachineTextCall<Option<String>>,
    /// What went wrong last.
    pub(crate) trouble: Option<String>,
    /// Since when the question is there.
    since: Instant,
    /// The first row that is seen of what is asked, and whether the last one was.
    pub(crate) top: usize,
    pub(crate) has_seen_all: bool,
    jobs: Vec<GuideJob>,
    led: Option<GuideOutcome>,
}

impl SetupGuide {
    /// Helps to a model.
    pub fn for_model(look: AppOptions, helper: &SetupServices) -> SetupGuide {
        let jobs = vec![GuideJob::ScanLocalServers];
        let mut guide = SetupGuide { jobs, ..SetupGuide::new(GuideStage::ChooseSource, look, helper) };
        guide.set_ways();
        guide
    }

    /// Asks whether a project may do what needs trust: a line for what it is about, and one for each thing.
    pub fn for_trust(asked: Vec<String>, look: AppOptions, helper: &SetupServices) -> SetupGuide {
        SetupGuide::new(GuideStage::Trust(asked), look, helper)
    }

    fn new(stage: GuideStage, look: AppOptions, helper: &SetupServices) -> SetupGuide {
        SetupGuide {
            look,
            stage,
            ways: Picker::default(),
            nearby: LocalModelScan::default(),
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
        let key = PickerChoice::new(
            "paste a key",
            "of Anthropic, OpenAI, Gemini, OpenRouter or another; stored for you alone",
        );
        let local = self.nearby.models.iter().take(MAX_LOCAL_MODELS);
        let local = local.map(|model| PickerChoice::new(one_line(model), "runs on this machine"));
        let demo = PickerChoice::new("watch the demo", "a scripted model fixes a small project, offline");
        let ways: Vec<PickerChoice> = std::iter::once(key).chain(local).chain([demo]).collect();
        // Whoever is about to choose something still chooses the same.
        let place = selected.and_then(|selected| ways.iter().position(|way| *way == selected));
        self.ways = Picker::new(ways);
        self.ways.select(place.unwrap_or(0));
    }

    fn is_looking(&self) -> bool {
        matches!(self.stage, GuideStage::ChooseSource)
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
            GuideStage::ChooseSource => self.stage = GuideStage::EnterKey(bounded(text)),
            GuideStage::EnterKey(key) => *key = bounded(&format!("{key}{text}")),
            _ => {}
        }
    }

    fn key(&mut self, event: &KeyEvent, now: Instant) {
        let list = self.look.keys.action(KeyContext::List, event);
        match &mut self.stage {
            GuideStage::ChooseSource => match list {
                Some(KeyAction::Cancel) => self.led = Some(GuideOutcome::Skipped),
                Some(KeyAction::Choose) => self.choose_way(),
                action => step(&mut self.ways, action),
            },
            GuideStage::EnterKey(key) => match (list, event.code) {
                (Some(KeyAction::Cancel), _) => self.go_back(),
                (_, KeyCode::Enter) => {
                    let key = key.trim().to_owned();
                    self.take_key(key);
                }
                (_, KeyCode::Backspace) => {
                    key.pop();
                }
                _ => {
                    if let Some(letter) = typed_text(event).filter(|_| key.len() < MAX_API_KEY_CHARS) {
                        key.push_str(&letter);
                    }
                }
            },
            GuideStage::ChooseProvider(key, picker) => match (list, typed_text(event)) {
                (Some(KeyAction::Cancel), _) => self.go_back(),
                (Some(KeyAction::Choose), _) => {
                    let provider = picker.selected().and_then(|number| self.providers.get(number));
                    if let Some((name, _)) = provider {
                        self.jobs.push(GuideJob::StoreKey(name.clone(), std::mem::take(key)));
                        self.stage = GuideStage::StoringKey;
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
            GuideStage::StoringKey => {}
            GuideStage::Trust(_) => self.decide(event, now),
        }
    }

    fn decide(&mut self, event: &KeyEvent, now: Instant) {
        let is_early = now.saturating_duration_since(self.since) < APPROVAL_GUARD_TIME;
        match self.look.keys.action(KeyContext::Approval, event) {
            // Nobody agrees to what they have not seen.
            Some(KeyAction::AllowOnce) if !is_early && self.has_seen_all => {
                self.led = Some(GuideOutcome::Trusted)
            }
            Some(KeyAction::Reject | KeyAction::StopTurn) => self.led = Some(GuideOutcome::Skipped),
            _ => {}
        }
        match self.look.keys.action(KeyContext::List, event) {
            Some(KeyAction::ListUp) => self.top = self.top.saturating_sub(1),
            Some(KeyAction::ListDown) => self.top += 1,
            Some(KeyAction::ListPageUp) => self.top = self.top.saturating_sub(GUIDE_PAGE_ROWS),
            Some(KeyAction::ListPageDown) => self.top += GUIDE_PAGE_ROWS,
            _ => {}
        }
    }

    fn go_back(&mut self) {
        (self.stage, self.trouble) = (GuideStage::ChooseSource, None);
    }

    fn choose_way(&mut self) {
        let Some(number) = self.ways.selected() else { return };
        let model = number.checked_sub(1).and_then(|number| self.nearby.models.get(number));
        match model {
            _ if number == 0 => self.stage = GuideStage::EnterKey(String::new()),
            Some(model) => self.led = Some(GuideOutcome::LocalModel(model.clone())),
            None => self.led = Some(GuideOutcome::Demo),
        }
    }

    fn take_key(&mut self, key: String) {
        self.trouble = None;
        if key.is_empty() {
            self.trouble = Some("nothing was pasted yet".to_owned());
        } else if let Some(provider) = (self.guess)(&key) {
            self.jobs.push(GuideJob::StoreKey(provider, key));
            self.stage = GuideStage::StoringKey;
        } else {
            let rows =
                self.providers.iter().map(|(name, title)| PickerChoice::new(name.as_str(), title.as_str()));
            let mut picker = Picker::new(rows.collect());
            picker.prompt = Some("whose key is it? ".to_owned());
            self.stage = GuideStage::ChooseProvider(key, Box::new(picker));
        }
    }

    fn done(&mut self, done: GuideJobResult) {
        match done {
            GuideJobResult::LocalModels(nearby) if nearby == self.nearby => {}
            GuideJobResult::LocalModels(nearby) => {
                self.nearby = nearby;
                self.set_ways();
            }
            GuideJobResult::Stored(Ok(_)) => self.led = Some(GuideOutcome::KeyStored),
            GuideJobResult::Stored(Err(why)) => {
                (self.stage, self.trouble) = (GuideStage::EnterKey(String::new()), Some(why))
            }
        }
    }

    /// What stays on the screen when it is over.
    fn farewell(&self, led: &GuideOutcome) -> Option<String> {
        match led {
            GuideOutcome::KeyStored => Some("✓ the key is stored, for you alone".to_owned()),
            GuideOutcome::LocalModel(model) => {
                Some(format!("✓ {} answers from this machine", one_line(model)))
            }
            _ => None,
        }
    }
}

fn bounded(key: &str) -> String {
    key.chars().filter(|letter| !letter.is_control()).take(MAX_API_KEY_CHARS).collect()
}

fn step(picker: &mut Picker, action: Option<KeyAction>) {
    match action {
        Some(KeyAction::ListUp) => picker.go(PickerMove::Up),
        Some(KeyAction::ListDown) => picker.go(PickerMove::Down),
        Some(KeyAction::ListPageUp) => picker.go(PickerMove::PageUp),
        Some(KeyAction::ListPageDown) => picker.go(PickerMove::PageDown),
        _ => {}
    }
}

/// Leads a person through the set-up. The screen must have been entered, and is not left at the end.
pub async fn run_guide<W: Write, S: FnMut() -> Size>(
    mut guide: SetupGuide,
    device: &mut TerminalDevice<W, S>,
    helper: &SetupServices,
) -> io::Result<GuideOutcome> {
    let mut notices = TerminalSignals::listen()?;
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
                None => return Ok(GuideOutcome::Terminated),
            },
            notice = notices.next() => match notice {
                TerminalSignal::Terminate => return Ok(GuideOutcome::Terminated),
                TerminalSignal::Suspend => {}
                TerminalSignal::Continue => {
                    device.raw.resume()?;
                    device.screen.enter()?;
                }
            },
            Some(result) = done.recv() => guide.done(result),
            () = tokio::time::sleep(LOCAL_SCAN_INTERVAL), if guide.is_looking() => guide.jobs.push(GuideJob::ScanLocalServers),
        }
    }
}

fn start(job: GuideJob, helper: &SetupServices, done: mpsc::UnboundedSender<GuideJobResult>) {
    let helper = helper.clone();
    std::thread::spawn(move || {
        let result = match job {
            GuideJob::ScanLocalServers => GuideJobResult::LocalModels((helper.look_around)()),
            GuideJob::StoreKey(provider, key) => {
                GuideJobResult::Stored((helper.store)(&provider, &key).map(|()| provider))
            }
        };
        // Nobody waits for it any more if the set-up is over.
        let _ = done.send(result);
    });
}
