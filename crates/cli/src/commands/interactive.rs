//! `helve` without a command: the interface.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use helve_agent::{Feed, Session};
use helve_config::{ColorSetting, LoadedConfig, NoticeReason};
use helve_protocol::{SessionCommand, SessionId};
use helve_tui::{
    App, AppContext, AppExitReason, AppOptions, BindingProblem, KeyMap, KeyboardReader, RawMode,
    RefusedBinding, SessionLink, SessionMessage, SessionOverview, TerminalDevice, UiRequest,
};
use helve_widgets::{
    Background, ColorDepth, KeyboardProtocol, ReflowMode, ScreenOptions, TerminalScreen, Theme,
};
use ratatui::layout::Size;
use tokio::sync::mpsc;

use super::guided_setup::{self, ModelSetup};
use super::run::SessionSelector;
use super::session_opening::{SessionOpening, begin_session, session_overview};
use super::{machine, welcome};
use crate::args::InteractiveArgs;
use crate::failure::{CliFailure, ProgramExit};
use crate::setup::CliSetup;
use crate::user_models::{UserModels, block_on};
use crate::wiring::worker_failure;

/// So many events wait for the interface; then it only gets those that are stored.
const MAX_WAITING_MESSAGES: usize = 1_024;
/// How often, and with what pause, it is tried to open a session again that was just left.
const REOPEN_ATTEMPTS: u32 = 40;
const REOPEN_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) fn run(options: &InteractiveArgs, setup: &CliSetup) -> Result<ProgramExit, CliFailure> {
    let prompt = options.text()?;
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        let hint = "Without one, `helve run \"…\"` does a task and prints the answer.";
        return Err(CliFailure::usage("the interface can't be shown", "it needs a terminal", hint));
    }
    if options.plain || machine::is_dumb() {
        // A program that was killed may have left the terminal without line editing.
        let _ = helve_tui::repair_terminal(io::stdin(), &mut io::stdout());
        welcome::ask_for_trust(setup)?;
        if let Some(exit) = welcome::find_model(setup)? {
            return Ok(exit);
        }
        return block_on(talk_plainly(options, prompt, setup))?;
    }
    match block_on(run_sessions(options, prompt, setup))?? {
        InteractiveExit::Done(exit) => Ok(exit),
        InteractiveExit::Demo => {
            let mut screen = setup.screen();
            super::demo::run(setup, &mut screen).and_then(|exit| {
                screen.finish()?;
                Ok(exit)
            })
        }
    }
}

/// How the interface was left.
enum InteractiveExit {
    Done(ProgramExit),
    /// The demo is wanted instead.
    Demo,
}

fn first<'a>(options: &'a InteractiveArgs) -> SessionSelector<'a> {
    SessionSelector { resume: options.resume.as_deref(), continue_last: options.continue_last, fork: None }
}

/// One session after another, until the interface is left.
async fn run_sessions(
    options: &InteractiveArgs,
    mut prompt: Option<String>,
    setup: &CliSetup,
) -> Result<InteractiveExit, CliFailure> {
    let (look, mut warnings) = app_options(setup)?;
    let mut terminal = None;
    let begun = begin_guided(options, setup, &look, &mut terminal).await;
    let (mut session, models) = match begun {
        Ok(ControlFlow::Continue(begun)) => begun,
        Ok(ControlFlow::Break(left)) => {
            terminal.iter_mut().for_each(guided_setup::close);
            return Ok(left);
        }
        Err(failure) => {
            terminal.iter_mut().for_each(guided_setup::close);
            return Err(failure);
        }
    };
    let mut device = match terminal {
        Some(device) => device,
        None => device()?,
    };
    let draft = DraftLock::own(setup);
    let facts = facts(setup, draft.as_ref());
    loop {
        let link = link(&session);
        let world = machine::machine_for(setup, &models, &session);
        let SessionOpening { session: before, opened, door, worker, .. } = session;
        let (prompt, warnings_now) = (prompt.take(), std::mem::take(&mut warnings));
        let app = App::new(
            facts.clone(),
            look.clone(),
            SessionOverview { prompt, warnings: warnings_now, ..opened },
        );
        let ended = helve_tui::run(app, &mut device, link, &world).await;
        let is_over = !matches!(ended, Ok(AppExitReason::NewSession | AppExitReason::ResumeSession(_)));
        if is_over {
            guided_setup::close(&mut device);
        }
        if let Some(handle) = door.handle().await {
            handle.send(SessionCommand::ShutDown).await;
        }
        let old = worker.end().await.map_err(|error| worker_failure(&error))?;
        let which = match ended {
            Ok(AppExitReason::NewSession) => None,
            Ok(AppExitReason::ResumeSession(id)) => Some(id),
            Ok(AppExitReason::Quit) => return Ok(InteractiveExit::Done(goodbye(&old))),
            Ok(AppExitReason::Terminated) => {
                goodbye(&old);
                return Ok(InteractiveExit::Done(ProgramExit::Interrupted));
            }
            Ok(AppExitReason::SessionEnded) => {
                let hint = "Report it with the log; `helve --continue` resumes.";
                return Err(CliFailure::new("the session ended by itself", "a bug in Helve", hint));
            }
            // Nobody is there any more to be told.
            Err(error) if is_gone(&error) => return Ok(InteractiveExit::Done(ProgramExit::Interrupted)),
            Err(error) => {
                let hint = "`helve --continue` resumes where it was.";
                return Err(CliFailure::new("the terminal can't be used any more", error, hint));
            }
        };
        // Whoever has a part of it keeps it open.
        drop((old, door, world));
        session = match open_other_session(which, setup, &models).await {
            Ok(session) => session,
            // One that can't be opened is no reason to be thrown out.
            Err(failure) => {
                warnings.push(failure.to_string());
                reopen(before, setup, &models).await.inspect_err(|_| guided_setup::close(&mut device))?
            }
        };
    }
}

/// Opens the session that was just left. An errand that still runs may keep it for a moment.
async fn reopen(
    session: SessionId,
    setup: &CliSetup,
    models: &Arc<UserModels>,
) -> Result<SessionOpening, CliFailure> {
    for _ in 0..REOPEN_ATTEMPTS {
        if let Ok(session) = open_other_session(Some(session), setup, models).await {
            return Ok(session);
        }
        tokio::time::sleep(REOPEN_INTERVAL).await;
    }
    open_other_session(Some(session), setup, models).await
}

/// Whether the terminal itself is gone.
fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}

/// The same in plain lines.
async fn talk_plainly(
    options: &InteractiveArgs,
    mut prompt: Option<String>,
    setup: &CliSetup,
) -> Result<ProgramExit, CliFailure> {
    let models = &Arc::new(UserModels::new(setup)?);
    let mut session = begin_session(first(options), setup, models).await?;
    let (sender, mut lines) = mpsc::channel(16);
    std::thread::spawn(move || {
        io::stdin().lines().map_while(Result::ok).try_for_each(|line| sender.blocking_send(line))
    });
    loop {
        let link = link(&session);
        let world = machine::machine_for(setup, models, &session);
        let SessionOpening { opened, door, worker, .. } = session;
        let opened = SessionOverview { prompt: prompt.take(), ..opened };
        let ended = helve_tui::run_plain(opened, &mut lines, &mut io::stdout(), link, &world).await;
        if let Some(handle) = door.handle().await {
            handle.send(SessionCommand::ShutDown).await;
        }
        let old = worker.end().await.map_err(|error| worker_failure(&error))?;
        match ended? {
            AppExitReason::NewSession => {}
            AppExitReason::Terminated => return Ok(ProgramExit::Interrupted),
            _ => return Ok(goodbye(&old)),
        }
        drop(old);
        session = open_other_session(None, setup, models).await?;
    }
}

/// Opens the first session, after whatever has to be asked before.
async fn begin_guided(
    options: &InteractiveArgs,
    setup: &CliSetup,
    look: &AppOptions,
    terminal: &mut Option<guided_setup::GuideTerminal>,
) -> Result<ControlFlow<InteractiveExit, (SessionOpening, Arc<UserModels>)>, CliFailure> {
    let models = match guided_setup::find_model(setup, look, device, terminal).await? {
        ModelSetup::Ready(models) => Arc::new(*models),
        ModelSetup::Demo => return Ok(ControlFlow::Break(InteractiveExit::Demo)),
        ModelSetup::Exit(exit) => return Ok(ControlFlow::Break(InteractiveExit::Done(exit))),
    };
    if let Some(exit) = guided_setup::ask_for_trust(setup, look, device, terminal).await? {
        return Ok(ControlFlow::Break(InteractiveExit::Done(exit)));
    }
    let session = begin_session(first(options), setup, &models).await?;
    Ok(ControlFlow::Continue((session, models)))
}

/// Says how to go on, unless nothing was said.
fn goodbye(session: &Session) -> ProgramExit {
    if session.state(|state| state.history.messages().next().is_some()) {
        crate::console::print_to_stderr("`helve --continue` resumes this session.");
    }
    ProgramExit::Success
}

async fn open_other_session(
    which: Option<SessionId>,
    setup: &CliSetup,
    models: &Arc<UserModels>,
) -> Result<SessionOpening, CliFailure> {
    let id = which.map(|id| id.to_string());
    begin_session(SessionSelector { resume: id.as_deref(), ..SessionSelector::default() }, setup, models)
        .await
}

/// The way to the session: two tasks carry what is said, as soon as it is open.
fn link(session: &SessionOpening) -> SessionLink {
    let (orders, mut to_do) = mpsc::channel(64);
    let (tell, told) = mpsc::channel(MAX_WAITING_MESSAGES);
    let (door, replies) = (session.door.clone(), tell.downgrade());
    tokio::spawn(async move {
        let Some(asked) = door.handle().await else { return };
        while let Some(order) = to_do.recv().await {
            match order {
                UiRequest::Command(command) => asked.send(command).await,
                UiRequest::Query(query) => {
                    let reply = asked.ask(query).await;
                    if let Some(replies) = replies.upgrade() {
                        let _ = replies.send(SessionMessage::Reply(reply)).await;
                    }
                }
            }
        }
    });
    let (door, done, is_glance) = (session.door.clone(), session.worker.done(), session.is_glance);
    tokio::spawn(async move {
        let Some(handle) = door.handle().await else { return };
        if is_glance {
            let _ = tell.send(SessionMessage::Overview(Box::new(handle.state(session_overview)))).await;
        }
        let mut feed = handle.feed();
        loop {
            tokio::select! {
                biased;
                event = feed.next() => match event {
                    Some(event) => {
                        if tell.send(SessionMessage::Event(event)).await.is_err() {
                            return;
                        }
                    }
                    None => return,
                },
                () = done.cancelled() => return drain(&mut feed, &tell).await,
            }
        }
    });
    SessionLink { orders, told }
}

/// What is left to be told when the session has ended.
async fn drain(feed: &mut Feed, tell: &mpsc::Sender<SessionMessage>) {
    while let Ok(Some(event)) = tokio::time::timeout(Duration::ZERO, feed.next()).await {
        if tell.send(SessionMessage::Event(event)).await.is_err() {
            return;
        }
    }
}

/// The terminal, ready to be drawn on, and put back whatever happens.
fn device() -> Result<guided_setup::GuideTerminal, CliFailure> {
    let failed = |error: io::Error| {
        CliFailure::new("the terminal can't be used", error, "Try `helve run \"…\"`, or another terminal.")
    };
    // A handle of our own: whoever else writes to the standard output must not be waited for.
    let out = || rustix::io::dup(io::stdout()).map(File::from).map_err(io::Error::from);
    helve_tui::restore_on_panic(out().map_err(failed)?, helve_tools::is_tool_thread);
    helve_tui::repair_terminal(io::stdin(), &mut out().map_err(failed)?).map_err(failed)?;
    let raw = RawMode::enter().map_err(failed)?;
    let options = ScreenOptions { keys: KeyboardProtocol::Enhanced, narrowing: narrowing() };
    let size: fn() -> Size = window;
    let mut screen = TerminalScreen::new(out().map_err(failed)?, size, options);
    screen.enter().map_err(failed)?;
    Ok(TerminalDevice { screen, keyboard: KeyboardReader::listen(), raw })
}

fn window() -> Size {
    let size = terminal_size::terminal_size_of(io::stdout());
    size.map_or(Size::new(80, 24), |(width, height)| Size::new(width.0, height.0))
}

fn narrowing() -> ReflowMode {
    let term = std::env::var("TERM").unwrap_or_default();
    let cuts = std::env::var_os("XTERM_VERSION").is_some()
        || ["rxvt", "st-", "screen"].iter().any(|name| term.starts_with(name))
            && std::env::var_os("TMUX").is_none();
    if cuts { ReflowMode::Cuts } else { ReflowMode::Wraps }
}

/// How it looks and which keys it has, and what of that can't be as the settings want it.
fn app_options(setup: &CliSetup) -> Result<(AppOptions, Vec<String>), CliFailure> {
    let config = setup.config()?;
    let colours = match config.settings.ui.color {
        ColorSetting::Never => ColorDepth::None,
        ColorSetting::Auto | ColorSetting::Always => colours(),
    };
    let (keys, mut warnings) = keys(config);
    // Trust is asked for elsewhere.
    let not_counting = config.notices().iter().filter(|notice| {
        matches!(notice.reason, NoticeReason::UserOnly | NoticeReason::Fixed | NoticeReason::AboveBound(_))
    });
    warnings.extend(not_counting.map(|notice| notice.to_string()));
    let status = config.settings.interface.status.clone();
    Ok((AppOptions { theme: Theme::new(colours, detect_background()), keys, status }, warnings))
}

/// The keys of the settings, and the mistakes among them.
fn keys(config: &LoadedConfig) -> (KeyMap, Vec<String>) {
    let wishes = config.settings.keys.iter().map(|(name, keys)| (name.clone(), keys.0.clone())).collect();
    let (keys, refused) = KeyMap::with(&wishes);
    let told = refused.into_iter().map(|RefusedBinding { action, why }| {
        let meant = helve_config::nearest(&action, helve_tui::keys::names());
        let hint = match (&why, meant) {
            (BindingProblem::UnknownAction, Some(meant)) => format!("did you mean `{meant}`?"),
            _ => why.hint(),
        };
        let key = format!("keys.{action}");
        let problem = config.problem(&key, &format!("{key}: {why}"), &hint);
        format!("{}: {}; {hint}", problem.place, problem.message)
    });
    (keys, told.collect())
}

/// As the environment tells what the terminal can show.
fn colours() -> ColorDepth {
    let value = |name: &str| std::env::var(name).unwrap_or_default();
    match (value("COLORTERM").as_str(), value("TERM").as_str()) {
        _ if !value("NO_COLOR").is_empty() => ColorDepth::None,
        ("truecolor" | "24bit", _) => ColorDepth::True,
        (_, term) if term.contains("256color") => ColorDepth::Ansi256,
        _ => ColorDepth::Ansi16,
    }
}

/// Some terminals tell their colours as numbers: text, then ground.
fn detect_background() -> Background {
    let told = std::env::var("COLORFGBG").unwrap_or_default();
    match told.rsplit(';').next() {
        Some("7" | "15") => Background::Light,
        _ => Background::Dark,
    }
}

fn facts(setup: &CliSetup, draft: Option<&DraftLock>) -> AppContext {
    let data = setup.places.data();
    AppContext {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        project: setup.root.display().to_string(),
        history: Some(data.join("history.jsonl")),
        draft: draft.map(|draft| draft.file.clone()),
    }
}

/// The file for what is not sent yet. Only one process in a project has it: two would write over each other.
struct DraftLock {
    file: PathBuf,
    _held: File,
}

impl DraftLock {
    fn own(setup: &CliSetup) -> Option<DraftLock> {
        let data = setup.places.data();
        std::fs::create_dir_all(data).ok()?;
        let file = data.join(format!("draft-{}", crate::user_folders::project_name(&setup.root)));
        let lock = file.with_extension("lock");
        let held = File::options().create(true).truncate(false).write(true).open(lock).ok()?;
        held.try_lock().ok()?;
        Some(DraftLock { file, _held: held })
    }
}
