//! `helve` without a command: the interface.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use helve_agent::{Feed, Session};
use helve_config::Color;
use helve_protocol::{Command, SessionId};
use helve_tui::{App, Device, Ending, Facts, KeyMap, Keyboard, Link, Look, Opened, Order, Raw, Told};
use helve_widgets::{Colours, Ground, Keys, Narrowing, Options, Screen, Theme};
use ratatui::layout::Size;
use tokio::sync::mpsc;

use super::opening::{Opening, begin, opened};
use super::run::Which;
use super::{machine, welcome};
use crate::args::Interactive;
use crate::failure::{Exit, Failure};
use crate::models::{Models, block_on};
use crate::setup::Setup;

/// So many events wait for the interface; then it only gets those that are stored.
const MOST_TOLD: usize = 1_024;

pub(crate) fn run(options: &Interactive, setup: &Setup) -> Result<Exit, Failure> {
    let prompt = options.text()?;
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        let hint = "Without one, `helve run \"…\"` does a task and prints the answer.";
        return Err(Failure::usage("the interface can't be shown", "it needs a terminal", hint));
    }
    welcome::ask_for_trust(setup)?;
    if let Some(exit) = welcome::find_model(setup)? {
        return Ok(exit);
    }
    block_on(talk(options, prompt, setup))?
}

/// One session after another, until the interface is left.
async fn talk(options: &Interactive, prompt: Option<String>, setup: &Setup) -> Result<Exit, Failure> {
    let models = Arc::new(Models::new(setup)?);
    let first = Which { resume: options.resume.as_deref(), continue_last: options.continue_last, fork: None };
    let mut session = begin(first, setup, &models).await?;
    if options.plain || machine::is_dumb() {
        return talk_plainly(session, prompt, setup, &models).await;
    }
    let look = look(setup)?;
    let facts = facts(setup);
    let mut prompt = prompt;
    let mut device = device()?;
    loop {
        let link = link(&session);
        let world = machine::world(setup, &models, &session);
        let Opening { opened, door, worker, .. } = session;
        let app = App::new(facts.clone(), look.clone(), Opened { prompt: prompt.take(), ..opened });
        let ended = helve_tui::run(app, &mut device, link, &world).await;
        let is_over = !matches!(ended, Ok(Ending::New | Ending::Resume(_)));
        if is_over {
            // A terminal that is gone can't be put back; the work is what counts.
            let _ = device.screen.leave();
            let _ = device.raw.pause();
        }
        if let Some(handle) = door.handle().await {
            handle.send(Command::ShutDown).await;
        }
        let old = worker.end().await?;
        let which = match ended {
            Ok(Ending::New) => None,
            Ok(Ending::Resume(id)) => Some(id),
            Ok(Ending::Quit) => return Ok(goodbye(&old)),
            Ok(Ending::Told) => return Ok(Exit::Interrupted),
            Ok(Ending::SessionEnded) => {
                let hint = "Report it with the log; `helve --continue` goes on.";
                return Err(Failure::new("the session ended by itself", "a mistake in Helve", hint));
            }
            Err(error) => {
                let hint = "`helve --continue` goes on where it was.";
                return Err(Failure::new("the terminal can't be used any more", error, hint));
            }
        };
        drop(old);
        session = another(which, setup, &models).await?;
    }
}

/// The same in plain lines.
async fn talk_plainly(
    mut session: Opening,
    mut prompt: Option<String>,
    setup: &Setup,
    models: &Arc<Models>,
) -> Result<Exit, Failure> {
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
fn device() -> Result<Device<File, impl FnMut() -> Size>, Failure> {
    let failed = |error: io::Error| {
        Failure::new("the terminal can't be used", error, "Try `helve run \"…\"`, or another terminal.")
    };
    // A handle of our own: whoever else writes to the standard output must not be waited for.
    let out = || rustix::io::dup(io::stdout()).map(File::from).map_err(io::Error::from);
    helve_tui::restore_on_panic(out().map_err(failed)?);
    helve_tui::mend(io::stdin(), &mut out().map_err(failed)?).map_err(failed)?;
    let raw = Raw::enter().map_err(failed)?;
    let options = Options { keys: Keys::Enhanced, narrowing: narrowing() };
    let mut screen = Screen::new(out().map_err(failed)?, window, options);
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

fn look(setup: &Setup) -> Result<Look, Failure> {
    let colours = match setup.config()?.settings.ui.color {
        Color::Never => Colours::None,
        Color::Auto | Color::Always => colours(),
    };
    Ok(Look { theme: Theme::new(colours, ground()), keys: KeyMap::default() })
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

fn facts(setup: &Setup) -> Facts {
    let data = setup.places.data();
    Facts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        project: setup.root.display().to_string(),
        history: Some(data.join("history.jsonl")),
        draft: Some(data.join(format!("draft-{}", machine::project_name(&setup.root)))),
    }
}
