//! `helve` without a command: the interface.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use helve_agent::{Feed, Session};
use helve_config::{Color, Config, Reason};
use helve_protocol::{Command, SessionId};
use helve_tui::{
    App, Device, Ending, Facts, KeyMap, Keyboard, Link, Look, Opened, Order, Raw, Refused, StatusItem, Told,
    Trouble,
};
use helve_widgets::{Colours, Ground, Keys, Narrowing, Options, Screen, Theme};
use ratatui::layout::Size;
use tokio::sync::mpsc;

use super::guided::{self, Guided};
use super::opening::{Opening, begin, opened};
use super::run::Which;
use super::{machine, welcome};
use crate::args::Interactive;
use crate::failure::{Exit, Failure};
use crate::models::{Models, block_on};
use crate::setup::Setup;

/// So many events wait for the interface; then it only gets those that are stored.
const MOST_TOLD: usize = 1_024;
/// How often, and with what pause, it is tried to open a session again that was just left.
const REOPENINGS: u32 = 40;
const BETWEEN_REOPENINGS: Duration = Duration::from_millis(50);

pub(crate) fn run(options: &Interactive, setup: &Setup) -> Result<Exit, Failure> {
    let prompt = options.text()?;
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        let hint = "Without one, `helve run \"…\"` does a task and prints the answer.";
        return Err(Failure::usage("the interface can't be shown", "it needs a terminal", hint));
    }
    if options.plain || machine::is_dumb() {
        // A program that was killed may have left the terminal without line editing.
        let _ = helve_tui::mend(io::stdin(), &mut io::stdout());
        welcome::ask_for_trust(setup)?;
        if let Some(exit) = welcome::find_model(setup)? {
            return Ok(exit);
        }
        return block_on(talk_plainly(options, prompt, setup))?;
    }
    match block_on(talk(options, prompt, setup))?? {
        Left::Done(exit) => Ok(exit),
        Left::Demo => {
            let mut screen = setup.screen();
            super::demo::run(setup, &mut screen).and_then(|exit| screen.finish().map(|()| exit))
        }
    }
}

/// How the interface was left.
enum Left {
    Done(Exit),
    /// The demo is wanted instead.
    Demo,
}

fn first<'a>(options: &'a Interactive) -> Which<'a> {
    Which { resume: options.resume.as_deref(), continue_last: options.continue_last, fork: None }
}

/// One session after another, until the interface is left.
async fn talk(options: &Interactive, mut prompt: Option<String>, setup: &Setup) -> Result<Left, Failure> {
    let (look, mut warnings) = look(setup)?;
    let mut terminal = None;
    let begun = begin_guided(options, setup, &look, &mut terminal).await;
    let (mut session, models) = match begun {
        Ok(ControlFlow::Continue(begun)) => begun,
        Ok(ControlFlow::Break(left)) => {
            terminal.iter_mut().for_each(guided::close);
            return Ok(left);
        }
        Err(failure) => {
            terminal.iter_mut().for_each(guided::close);
            return Err(failure);
        }
    };
    let mut device = match terminal {
        Some(device) => device,
        None => device()?,
    };
    let draft = Draft::own(setup);
    let facts = facts(setup, draft.as_ref());
    loop {
        let link = link(&session);
        let world = machine::world(setup, &models, &session);
        let Opening { session: before, opened, door, worker, .. } = session;
        let (prompt, warnings_now) = (prompt.take(), std::mem::take(&mut warnings));
        let app = App::new(facts.clone(), look.clone(), Opened { prompt, warnings: warnings_now, ..opened });
        let ended = helve_tui::run(app, &mut device, link, &world).await;
        let is_over = !matches!(ended, Ok(Ending::New | Ending::Resume(_)));
        if is_over {
            guided::close(&mut device);
        }
        if let Some(handle) = door.handle().await {
            handle.send(Command::ShutDown).await;
        }
        let old = worker.end().await?;
        let which = match ended {
            Ok(Ending::New) => None,
            Ok(Ending::Resume(id)) => Some(id),
            Ok(Ending::Quit) => return Ok(Left::Done(goodbye(&old))),
            Ok(Ending::Told) => {
                goodbye(&old);
                return Ok(Left::Done(Exit::Interrupted));
            }
            Ok(Ending::SessionEnded) => {
                let hint = "Report it with the log; `helve --continue` goes on.";
                return Err(Failure::new("the session ended by itself", "a mistake in Helve", hint));
            }
            // Nobody is there any more to be told.
            Err(error) if is_gone(&error) => return Ok(Left::Done(Exit::Interrupted)),
            Err(error) => {
                let hint = "`helve --continue` goes on where it was.";
                return Err(Failure::new("the terminal can't be used any more", error, hint));
            }
        };
        // Whoever has a part of it keeps it open.
        drop((old, door, world));
        session = match another(which, setup, &models).await {
            Ok(session) => session,
            // One that can't be opened is no reason to be thrown out.
            Err(failure) => {
                warnings.push(failure.to_string());
                reopen(before, setup, &models).await.inspect_err(|_| guided::close(&mut device))?
            }
        };
    }
}

/// Opens the session that was just left. An errand that still runs may keep it for a moment.
async fn reopen(session: SessionId, setup: &Setup, models: &Arc<Models>) -> Result<Opening, Failure> {
    for _ in 0..REOPENINGS {
        if let Ok(session) = another(Some(session), setup, models).await {
            return Ok(session);
        }
        tokio::time::sleep(BETWEEN_REOPENINGS).await;
    }
    another(Some(session), setup, models).await
}

/// Whether the terminal itself is gone.
fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}

/// The same in plain lines.
async fn talk_plainly(
    options: &Interactive,
    mut prompt: Option<String>,
    setup: &Setup,
) -> Result<Exit, Failure> {
    let models = &Arc::new(Models::new(setup)?);
    let mut session = begin(first(options), setup, models).await?;
    let (sender, mut lines) = mpsc::channel(16);
    std::thread::spawn(move || {
        io::stdin().lines().map_while(Result::ok).try_for_each(|line| sender.blocking_send(line))
    });
    loop {
        let link = link(&session);
        let world = machine::world(setup, models, &session);
        let Opening { opened, door, worker, .. } = session;
        let opened = Opened { prompt: prompt.take(), ..opened };
        let ended = helve_tui::run_plain(opened, &mut lines, &mut io::stdout(), link, &world).await;
        if let Some(handle) = door.handle().await {
            handle.send(Command::ShutDown).await;
        }
        let old = worker.end().await?;
        match ended? {
            Ending::New => {}
            Ending::Told => return Ok(Exit::Interrupted),
            _ => return Ok(goodbye(&old)),
        }
        drop(old);
        session = another(None, setup, models).await?;
    }
}

/// Opens the first session, after whatever has to be asked before.
async fn begin_guided(
    options: &Interactive,
    setup: &Setup,
    look: &Look,
    terminal: &mut Option<guided::Terminal>,
) -> Result<ControlFlow<Left, (Opening, Arc<Models>)>, Failure> {
    let models = match guided::find_model(setup, look, device, terminal).await? {
        Guided::Ready(models) => Arc::new(*models),
        Guided::Demo => return Ok(ControlFlow::Break(Left::Demo)),
        Guided::Left(exit) => return Ok(ControlFlow::Break(Left::Done(exit))),
    };
    if let Some(exit) = guided::ask_for_trust(setup, look, device, terminal).await? {
        return Ok(ControlFlow::Break(Left::Done(exit)));
    }
    let session = begin(first(options), setup, &models).await?;
    Ok(ControlFlow::Continue((session, models)))
}

/// Says how to go on, unless nothing was said.
fn goodbye(session: &Session) -> Exit {
    if session.state(|state| state.history.messages().next().is_some()) {
        crate::screen::complain("`helve --continue` goes on with this session.");
    }
    Exit::Fine
}

async fn another(which: Option<SessionId>, setup: &Setup, models: &Arc<Models>) -> Result<Opening, Failure> {
    let id = which.map(|id| id.to_string());
    begin(Which { resume: id.as_deref(), ..Which::default() }, setup, models).await
}

/// The way to the session: two tasks carry what is said, as soon as it is open.
fn link(session: &Opening) -> Link {
    let (orders, mut to_do) = mpsc::channel(64);
    let (tell, told) = mpsc::channel(MOST_TOLD);
    let (door, replies) = (session.door.clone(), tell.downgrade());
    tokio::spawn(async move {
        let Some(asked) = door.handle().await else { return };
        while let Some(order) = to_do.recv().await {
            match order {
                Order::Do(command) => asked.send(command).await,
                Order::Ask(query) => {
                    let reply = asked.ask(query).await;
                    if let Some(replies) = replies.upgrade() {
                        let _ = replies.send(Told::Reply(reply)).await;
                    }
                }
            }
        }
    });
    let (door, done, is_glance) = (session.door.clone(), session.worker.done.clone(), session.is_glance);
    tokio::spawn(async move {
        let Some(handle) = door.handle().await else { return };
        if is_glance {
            let _ = tell.send(Told::Opened(Box::new(handle.state(opened)))).await;
        }
        let mut feed = handle.feed();
        loop {
            tokio::select! {
                biased;
                event = feed.next() => match event {
                    Some(event) => {
                        if tell.send(Told::Event(event)).await.is_err() {
                            return;
                        }
                    }
                    None => return,
                },
                () = done.cancelled() => return drain(&mut feed, &tell).await,
            }
        }
    });
    Link { orders, told }
}

/// What is left to be told when the session has ended.
async fn drain(feed: &mut Feed, tell: &mpsc::Sender<Told>) {
    while let Ok(Some(event)) = tokio::time::timeout(Duration::ZERO, feed.next()).await {
        if tell.send(Told::Event(event)).await.is_err() {
            return;
        }
    }
}

/// The terminal, ready to be drawn on, and put back whatever happens.
fn device() -> Result<guided::Terminal, Failure> {
    let failed = |error: io::Error| {
        Failure::new("the terminal can't be used", error, "Try `helve run \"…\"`, or another terminal.")
    };
    // A handle of our own: whoever else writes to the standard output must not be waited for.
    let out = || rustix::io::dup(io::stdout()).map(File::from).map_err(io::Error::from);
    helve_tui::restore_on_panic(out().map_err(failed)?, helve_tools::is_aside);
    helve_tui::mend(io::stdin(), &mut out().map_err(failed)?).map_err(failed)?;
    let raw = Raw::enter().map_err(failed)?;
    let options = Options { keys: Keys::Enhanced, narrowing: narrowing() };
    let size: fn() -> Size = window;
    let mut screen = Screen::new(out().map_err(failed)?, size, options);
    screen.enter().map_err(failed)?;
    Ok(Device { screen, keyboard: Keyboard::listen(), raw })
}

fn window() -> Size {
    let size = terminal_size::terminal_size_of(io::stdout());
    size.map_or(Size::new(80, 24), |(width, height)| Size::new(width.0, height.0))
}

fn narrowing() -> Narrowing {
    let term = std::env::var("TERM").unwrap_or_default();
    let cuts = std::env::var_os("XTERM_VERSION").is_some()
        || ["rxvt", "st-", "screen"].iter().any(|name| term.starts_with(name))
            && std::env::var_os("TMUX").is_none();
    if cuts { Narrowing::Cuts } else { Narrowing::Wraps }
}

/// How it looks and which keys it has, and what of that can't be as the settings want it.
fn look(setup: &Setup) -> Result<(Look, Vec<String>), Failure> {
    let config = setup.config()?;
    let colours = match config.settings.ui.color {
        Color::Never => Colours::None,
        Color::Auto | Color::Always => colours(),
    };
    let (keys, mut warnings) = keys(config);
    // Trust is asked for elsewhere.
    let not_counting = config
        .notices()
        .iter()
        .filter(|notice| matches!(notice.reason, Reason::UserOnly | Reason::Fixed | Reason::AboveBound(_)));
    warnings.extend(not_counting.map(|notice| notice.to_string()));
    let status = config.settings.interface.status.iter().map(|item| status_item(*item)).collect();
    Ok((Look { theme: Theme::new(colours, ground()), keys, status }, warnings))
}

/// The keys of the settings, and the mistakes among them.
fn keys(config: &Config) -> (KeyMap, Vec<String>) {
    let wishes = config.settings.keys.iter().map(|(name, keys)| (name.clone(), keys.0.clone())).collect();
    let (keys, refused) = KeyMap::with(&wishes);
    let told = refused.into_iter().map(|Refused { action, why }| {
        let meant = helve_config::nearest(&action, helve_tui::keys::names());
        let hint = match (&why, meant) {
            (Trouble::UnknownAction, Some(meant)) => format!("did you mean `{meant}`?"),
            _ => why.hint(),
        };
        let key = format!("keys.{action}");
        let problem = config.problem(&key, &format!("{key}: {why}"), &hint);
        format!("{}: {}; {hint}", problem.place, problem.message)
    });
    (keys, told.collect())
}

fn status_item(item: helve_config::StatusItem) -> StatusItem {
    match item {
        helve_config::StatusItem::Model => StatusItem::Model,
        helve_config::StatusItem::Agent => StatusItem::Agent,
        helve_config::StatusItem::Mode => StatusItem::Mode,
        helve_config::StatusItem::Context => StatusItem::Context,
        helve_config::StatusItem::Cost => StatusItem::Cost,
        helve_config::StatusItem::Branch => StatusItem::Branch,
        helve_config::StatusItem::Sandbox => StatusItem::Sandbox,
        helve_config::StatusItem::Queue => StatusItem::Queue,
    }
}

/// As the environment tells what the terminal can show.
fn colours() -> Colours {
    let value = |name: &str| std::env::var(name).unwrap_or_default();
    match (value("COLORTERM").as_str(), value("TERM").as_str()) {
        _ if !value("NO_COLOR").is_empty() => Colours::None,
        ("truecolor" | "24bit", _) => Colours::True,
        (_, term) if term.contains("256color") => Colours::Ansi256,
        _ => Colours::Ansi16,
    }
}

/// Some terminals tell their colours as numbers: text, then ground.
fn ground() -> Ground {
    let told = std::env::var("COLORFGBG").unwrap_or_default();
    match told.rsplit(';').next() {
        Some("7" | "15") => Ground::Light,
        _ => Ground::Dark,
    }
}

fn facts(setup: &Setup, draft: Option<&Draft>) -> Facts {
    let data = setup.places.data();
    Facts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        project: setup.root.display().to_string(),
        history: Some(data.join("history.jsonl")),
        draft: draft.map(|draft| draft.file.clone()),
    }
}

/// The file for what is not sent yet. Only one process in a project has it: two would write over each other.
struct Draft {
    file: PathBuf,
    _held: File,
}

impl Draft {
    fn own(setup: &Setup) -> Option<Draft> {
        let data = setup.places.data();
        std::fs::create_dir_all(data).ok()?;
        let file = data.join(format!("draft-{}", crate::places::project_name(&setup.root)));
        let lock = file.with_extension("lock");
        let held = File::options().create(true).truncate(false).write(true).open(lock).ok()?;
        held.try_lock().ok()?;
        Some(Draft { file, _held: held })
    }
}
