//! `helve run`: one turn, without the interface.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{IsTerminal, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use helve_agent::{Error, Feed, Gate, House, Limits, Session};
use helve_journal::Journal;
use helve_models::{Dialogue, Prompt, Target};
use helve_protocol::{
    Body, Cost, Event, Ids, Outcome, Part, Persistence, Role, SessionId, TextPart, ToolState, Usage,
};
use helve_tools::{Read as ReadTool, Shell, Tool, Write as WriteTool};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::args::{OutputForm, Run};
use crate::failure::{Exit, Failure};
use crate::models::{Models, block_on};
use crate::screen::{self, BAD, DIM, Screen, WARN};
use crate::setup::{Setup, SystemClock};
use crate::text::{count, fit, one_line, printable};

const SYSTEM: &str = "You are Helve, a coding agent in the user's terminal. Use the tools to look before you act, and to check \
                      what you did. Keep your answers short.";

pub(crate) fn run(options: Run, setup: &Setup, screen: &mut Screen) -> Result<Exit, Failure> {
    let prompt = instruction(&options)?;
    let models = Models::new(setup)?;
    block_on(async {
        let target = models.main().await?;
        let fallbacks = models.router.fallbacks().map_err(|error| Failure::route(&error))?;
        let house = house(&options, setup)?;
        let dialogue = dialogue(&models, target, fallbacks, &house);
        let session = open(&options, setup, house, dialogue)?;
        turn(session, prompt, Front::new(&options), screen).await
    })?
}

pub(super) fn dialogue(models: &Models, target: Target, fallbacks: Vec<Target>, house: &House) -> Dialogue {
    let prompt = Prompt {
        system: SYSTEM.to_owned(),
        tools: house.specs(),
        effort: models.effort,
        cache_key: Some(project_key(&house.root)),
        ..Prompt::default()
    };
    Dialogue::new(models.client.clone(), target, fallbacks, prompt)
}

/// The sessions of one project begin alike. What the project is called is nobody's business.
fn project_key(root: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    root.hash(&mut hasher);
    format!("helve-{:016x}", hasher.finish())
}

/// One turn, shown as it happens.
pub(super) async fn turn(
    session: Session,
    prompt: String,
    mut front: Front,
    screen: &mut Screen,
) -> Result<Exit, Failure> {
    let mut feed = session.feed();
    let stop = CancellationToken::new();
    let parts = vec![Part::Text(TextPart::said(prompt))];
    let worker = Worker::start(session, parts, stop.clone());
    loop {
        tokio::select! {
            biased;
            event = feed.next() => front.show(event.as_deref(), screen)?,
            () = worker.done.cancelled() => break,
            _ = tokio::signal::ctrl_c() => interrupt(&stop),
        }
    }
    drain(&mut feed, &mut front, screen).await?;
    let (session, outcome) = worker.end()?;
    let outcome = outcome.map_err(|error| journal_failure(&error))?;
    front.finish(outcome, &session, screen)
}

/// The turn, on a thread of its own: whoever reads our output may be slow, or stop reading, and the work goes on.
struct Worker {
    thread: JoinHandle<Result<Worked, Failure>>,
    /// Set when the turn is over.
    done: CancellationToken,
}

type Worked = (Session, Result<Outcome, Error>);

impl Worker {
    fn start(mut session: Session, parts: Vec<Part>, stop: CancellationToken) -> Worker {
        let done = CancellationToken::new();
        let guard = done.clone().drop_guard();
        let thread = std::thread::spawn(move || {
            let _guard = guard;
            let outcome = block_on(session.submit(parts, &stop))?;
            Ok((session, outcome))
        });
        Worker { thread, done }
    }

    fn end(self) -> Result<Worked, Failure> {
        self.thread.join().unwrap_or_else(|_| {
            let why = "a mistake in Helve";
            Err(Failure::new(
                "the turn broke off",
                why,
                "Report it with the log; `helve run --continue` goes on.",
            ))
        })
    }
}

/// The first time the turn ends in order; the second time the program does.
#[expect(clippy::exit, reason = "somebody pressed Ctrl-C twice and wants out")]
fn interrupt(stop: &CancellationToken) {
    if stop.is_cancelled() {
        std::process::exit(i32::from(Exit::Interrupted as u8));
    }
    screen::complain(&format!("{WARN}stopping; press Ctrl-C again to leave at once{WARN:#}"));
    stop.cancel();
}

/// What is left to be shown when the turn is over.
async fn drain(feed: &mut Feed, front: &mut Front, screen: &mut Screen) -> Result<(), Failure> {
    while let Ok(event) = tokio::time::timeout(std::time::Duration::ZERO, feed.next()).await {
        front.show(event.as_deref(), screen)?;
    }
    Ok(())
}

pub(super) fn journal_failure(error: &Error) -> Failure {
    match error {
        Error::Journal(error) => Failure::journal("the session can't go on", error),
    }
}

/// The words of the command line, and after them what is piped in.
fn instruction(options: &Run) -> Result<String, Failure> {
    let mut prompt = options.prompt.join(" ");
    if !std::io::stdin().is_terminal() {
        let mut piped = String::new();
        let read = std::io::stdin().read_to_string(&mut piped);
        read.map_err(|error| Failure::usage("the piped input can't be read", error, "It must be text."))?;
        if !piped.trim().is_empty() {
            let between = if prompt.is_empty() { "" } else { "\n\n" };
            prompt = format!("{prompt}{between}{}", piped.trim_end());
        }
    }
    if prompt.trim().is_empty() {
        let why = "there is nothing to do";
        return Err(Failure::usage(
            "nothing was run",
            why,
            "Say what you want: `helve run \"fix the bug\"`.",
        ));
    }
    Ok(prompt)
}

/// Real ids, which sort by age.
struct RealIds;

impl Ids for RealIds {
    fn draw(&self) -> Uuid {
        Uuid::now_v7()
    }
}

pub(super) fn house(options: &Run, setup: &Setup) -> Result<House, Failure> {
    let limits = &setup.config()?.settings.limits;
    let keeper = std::env::current_exe()
        .map_err(|error| Failure::new("commands can't be run", error, "Start helve by its path."))?;
    let shell = Shell { keeper, env: std::env::vars_os().filter(|(name, _)| !is_secret(name)).collect() };
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(ReadTool), Arc::new(WriteTool), Arc::new(shell)];
    Ok(House {
        journal: Arc::new(setup.journal()),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RealIds),
        tools,
        gate: if options.yes { Gate::Yes } else { Gate::Nobody },
        limits: Limits {
            steps: limits.max_steps,
            cost: limits.max_cost.map(|dollars| dollars.0),
            time: limits.max_time.map(Into::into),
        },
        root: setup.root.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// The keys of providers are none of a command's business.
fn is_secret(name: &std::ffi::OsStr) -> bool {
    let keys = helve_models::VENDORS.iter().flat_map(|vendor| vendor.keys);
    keys.into_iter().any(|(key, _)| name == *key)
}

fn open(options: &Run, setup: &Setup, house: House, dialogue: Dialogue) -> Result<Session, Failure> {
    let journal = setup.journal();
    let id: Option<SessionId> = match (&options.resume, options.continue_last) {
        (Some(id), _) => Some(super::sessions::find(&journal, id)?),
        (None, true) => Some(last_here(&journal, &setup.root)?),
        (None, false) => None,
    };
    let opened = match id {
        Some(id) => Session::open(house, dialogue, id),
        None => Session::create(house, dialogue),
    };
    opened.map_err(|error| journal_failure(&error))
}

fn last_here(journal: &helve_journal::FileJournal, root: &Path) -> Result<SessionId, Failure> {
    let sessions =
        journal.list().map_err(|error| Failure::journal("the sessions can't be listed", &error))?;
    let here =
        sessions.iter().find(|summary| Path::new(&summary.workspace) == root && summary.parent.is_none());
    here.map(|summary| summary.session).ok_or_else(|| {
        let hint = "Leave --continue out, or go to the project of the session.";
        Failure::usage("there is nothing to go on with", "this project has no session yet", hint)
    })
}

/// What a person or a program sees of a turn.
pub(super) struct Front {
    form: OutputForm,
    quiet: bool,
    /// Whether the last thing that was printed is a text without its end of line.
    in_text: bool,
    usage: Usage,
    cost: Cost,
    denied: bool,
}

impl Front {
    pub(super) fn new(options: &Run) -> Front {
        Front {
            form: options.output,
            quiet: options.quiet,
            in_text: false,
            usage: Usage::default(),
            cost: Cost::ZERO,
            denied: false,
        }
    }

    fn show(&mut self, event: Option<&Event>, screen: &mut Screen) -> Result<(), Failure> {
        let Some(event) = event else { return Ok(()) };
        if let Body::StepEnded(step) = &event.body {
            self.usage += step.usage;
            self.cost += step.cost;
        }
        self.denied |=
            matches!(&event.body, Body::ToolEnded(ended) if matches!(ended.end, ToolState::Denied { .. }));
        match self.form {
            OutputForm::StreamJson => {
                writeln!(screen, "{}", event.to_json()?)?;
                if event.body.persistence() == Persistence::Live { screen.finish() } else { Ok(()) }
            }
            OutputForm::Text if !self.quiet => self.tell(event, screen),
            OutputForm::Text | OutputForm::Json => Ok(()),
        }
    }

    fn tell(&mut self, event: &Event, screen: &mut Screen) -> Result<(), Failure> {
        match &event.body {
            Body::TextDelta(delta) => {
                write!(screen, "{}", printable(&delta.text))?;
                self.in_text = true;
                screen.finish()?;
            }
            Body::ResponseEnded(ended) => {
                if std::mem::take(&mut self.in_text) {
                    writeln!(screen)?;
                    screen.finish()?;
                }
                for part in &ended.parts {
                    if let Part::Tool(tool) = part {
                        let input = fit(&one_line(&tool.input.to_string()), 100);
                        screen::complain(&format!("{DIM}· {} {input}{DIM:#}", one_line(&tool.name)));
                    }
                }
            }
            Body::RetryScheduled(retry) => {
                let reason = one_line(&retry.reason);
                screen::complain(&format!("{WARN}trying again in {} ms: {reason}{WARN:#}", retry.delay_ms));
            }
            Body::ModelSwitched(switch) => {
                let reason = one_line(&switch.reason);
                screen::complain(&format!(
                    "{WARN}{} takes over from {}: {reason}{WARN:#}",
                    switch.to, switch.from
                ));
            }
            Body::ToolEnded(ended) => {
                if let ToolState::Error { message } | ToolState::Denied { reason: message } = &ended.end {
                    screen::complain(&format!("{BAD}  {}{BAD:#}", fit(&one_line(message), 120)));
                }
            }
            Body::LimitReached(limit) => {
                screen::complain(&format!("{WARN}{}{WARN:#}", one_line(&limit.text)))
            }
            Body::ErrorRaised(error) => {
                screen::complain(&format!("{BAD}helve: {}{BAD:#}", one_line(&error.what)));
                screen::complain(&format!(
                    "  why:  {}\n  do:   {}",
                    one_line(&error.why),
                    one_line(&error.hint)
                ));
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self, outcome: Outcome, session: &Session, screen: &mut Screen) -> Result<Exit, Failure> {
        let answer = last_answer(session);
        let exit = exit_of(outcome, self.denied);
        match self.form {
            OutputForm::Json | OutputForm::StreamJson => {
                let result = json!({
                    "type": "result",
                    "session": session.id(),
                    "outcome": outcome,
                    "answer": answer,
                    "usage": self.usage,
                    "cost_usd": self.cost.to_string().trim_start_matches('$'),
                    "exit_code": exit as u8,
                });
                writeln!(screen, "{result}")?;
            }
            OutputForm::Text if self.quiet => writeln!(screen, "{}", printable(&answer))?,
            OutputForm::Text => {
                let tokens = usize::try_from(self.usage.context()).unwrap_or(usize::MAX);
                let tokens = count(tokens, "token", "tokens");
                screen::complain(&format!("{DIM}{tokens}, {}; session {}{DIM:#}", self.cost, session.id()));
            }
        }
        Ok(exit)
    }
}

fn last_answer(session: &Session) -> String {
    let last = session.history().messages().filter(|message| message.role == Role::Assistant).last();
    let texts = last.into_iter().flat_map(|message| &message.parts).filter_map(|part| match part {
        Part::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn exit_of(outcome: Outcome, denied: bool) -> Exit {
    match outcome {
        // The model may find another way; if it gave up because of what was refused, that is told.
        Outcome::EndTurn | Outcome::Goal if denied => Exit::Denied,
        Outcome::EndTurn | Outcome::Goal => Exit::Fine,
        Outcome::Cancelled => Exit::Interrupted,
        Outcome::MaxTurns => Exit::Steps,
        Outcome::Timeout => Exit::Time,
        Outcome::Budget => Exit::Budget,
        Outcome::Denied => Exit::Denied,
        Outcome::Error | Outcome::NoCompletion => Exit::Error,
    }
}
