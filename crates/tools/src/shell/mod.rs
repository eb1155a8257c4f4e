//! `shell`

pub(crate) mod cleaned;
pub(crate) mod commands;
pub(crate) mod ending;
pub(crate) mod fence;
pub(crate) mod folder_watch;
pub(crate) mod guarded;
pub(crate) mod jobs;
pub(crate) mod kept;
pub(crate) mod private;
pub(crate) mod repositories;
pub(crate) mod scratch;
pub(crate) mod shell_input;
pub(crate) mod shell_kill;
pub(crate) mod shell_output;
pub(crate) mod survey;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use helve_exec::{Cause, Confinement, Ended, Input as Typed, Network, Order, Output, Running, Status};
use helve_protocol::{Action, ToolClass, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::OnceCell;

use crate::shell::cleaned::{Cleaner, Letters};
use crate::shell::commands::{Commands, Connection, Folder, Followed, Sheet, Startup};
use crate::shell::guarded::{Forbidden, Guard, is_granted_near, put_away};
use crate::shell::jobs::{Adopted, Jobs};
use crate::shell::kept::{Kept, Shown, shown};
use crate::shell::private::Temporary;
use crate::shell::repositories::is_harmless;
use crate::shell::scratch::{Scratch, sweep};
use crate::shell::shell_output::report;
use crate::shell::survey::Survey;
use crate::{Context, Done, Live, ToolFailure, TypedTool};

/// Runs commands, one after the other, each where the last one went; or in the background.
#[derive(Debug)]
pub struct Shell {
    commands: Commands,
    jobs: Arc<Jobs>,
    folder: Folder,
    startup: OnceCell<Startup>,
    /// What the commands have as `/tmp`, together.
    scratch: OnceCell<SharedScratch>,
    /// What jobs must not make.
    forbidden: Forbidden,
    /// What commands must not see or change.
    survey: Survey,
    /// Folders that were made so that jobs can't make them.
    made: Mutex<Vec<PathBuf>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The command.
    command: String,
    /// How many seconds it may take; 120 if left out. Not for the background.
    #[serde(default)]
    timeout: Option<u32>,
    /// Give it a terminal.
    #[serde(default)]
    terminal: bool,
    /// Go on at once, and leave it running as a job.
    #[serde(default)]
    background: bool,
    /// It fails without the network. The user may be asked.
    #[serde(default)]
    network: bool,
    /// It fails without the user's credentials (git, npm, pip, cargo, ssh …): one plain command, without a pipe. The user
    /// may be asked.
    #[serde(default)]
    credentials: bool,
}

const TIMEOUT: u32 = 120;
const LONGEST: u32 = 3_600;
/// What is kept of the beginning and of the end of the output.
const HALF: usize = 8 << 20;
/// How long a job has to say its first words.
const FIRST_WORDS: Duration = Duration::from_secs(1);

impl TypedTool for Shell {
    const NAME: &'static str = "shell";
    const DESCRIPTION: &'static str = include_str!("shell.md");
    const CLASS: ToolClass = ToolClass::Changes;
    type Input = Input;

    fn intent(&self, input: &Input) -> String {
        let background = if input.background { " in the background" } else { "" };
        format!("run {}{background}", input.command)
    }

    fn actions(&self, input: &Input, root: &Path) -> Vec<Action> {
        let (command, folder) =
            (input.command.clone(), self.folder.now(root, self.scratch.get().map(SharedScratch::path)));
        vec![Action::Run { command, folder, network: input.network, credentials: input.credentials }]
    }

    async fn run(&self, input: Input, context: &Context) -> Done {
        let scratch = self.scratch().await?;
        let (notes, script) = self.prepared(scratch, context).await?;
        let (at, gone) = self.folder.get(&context.root, scratch);
        let mut told = notes;
        told.push_str(&back_from(gone));
        let sheet = Sheet::new(&self.commands.temporary)?;
        if input.background {
            self.take_own_places(context);
        }
        let order = match &context.granted.alone {
            Some(words) => self.commands.alone(words, &at, context)?,
            None => self.commands.order(&input.command, &at, &sheet, script.as_deref()),
        };
        let order = self.commands.confined(order, &sheet, scratch, &self.survey, context);
        let order = Connection::of(input.terminal).of_order(order);
        let guard = self.guard(&order, context);
        let unfinished = unfinished(&context.root);
        if input.background {
            let mut order = Order { input: Typed::Open, ..order };
            // A job may run for hours: the commands beside it are to keep what they put into caches.
            if let Some(layers) = order.confinement.as_mut().and_then(|it| it.layers.as_mut()) {
                layers.is_kept = false;
            }
            return self.in_background(input.command, order, sheet, told, context).await;
        }
        let confinement = order.confinement.clone();
        let seconds = input.timeout.unwrap_or(TIMEOUT).min(LONGEST);
        let followed = Followed::new(sheet, &self.folder);
        let time = Duration::from_secs(seconds.into());
        let running = self.jobs.begin(order).await.map_err(|error| ending::not_run(&error))?;
        let (heard, end) = hear(running, time, context).await;
        let Shown { text, whole } = shown(heard.into_whole(), &*context.blobs);
        told.push_str(&ending::lines(text));
        let (is_well, how) = match end {
            End::Away(running) => {
                let job = self.jobs.adopt(Adopted {
                    command: input.command,
                    has_terminal: input.terminal,
                    is_confined: confinement.is_some_and(|it| it.network == Network::Off),
                    running: *running,
                    sheet: followed.leave(),
                });
                told.push_str(&format!("[the user let it go on in the background: job {}]", job.number));
                let display = Some(format!("goes on as job {}", job.number));
                return Ok(ToolOutput { text: told, display, whole, ..ToolOutput::default() });
            }
            End::Late => (
                false,
                format!(
                    "[stopped after {seconds} s, with everything that it had started; give it more `timeout`, or run it in the `background`]\n"
                ),
            ),
            End::Itself(ended) => {
                let is_well = matches!(ended, Ended { status: Status::Exited(0), cause: Cause::Itself, .. });
                (is_well, format!("[{}]\n{}", ending::words(ended), ending::remarks(ended)))
            }
        };
        drop(followed);
        told.push_str(&how);
        let mut aside = guard.put_aside();
        aside.extend(self.put_new_repositories_aside(confinement.is_some(), context));
        let aside = words_about(&aside);
        if let Some(confinement) = confinement.filter(|_| !is_well) {
            told.push_str(why_confined(&told, &confinement));
            told.push_str(match context.granted.credentials {
                None if confinement.network == Network::On => why_refused(&told),
                Some(_) => why_not_started(&told),
                None => "",
            });
        }
        told.push_str(&aside);
        told.push_str(&words_about_unfinished(&unfinished, &context.root));
        told.push_str(&self.whereabouts(&at, &context.root, scratch));
        told.truncate(told.trim_end_matches('\n').len());
        // What went well needs no word for people.
        let display = (!is_well).then(|| last_lines(&told));
        Ok(ToolOutput { text: told, display, whole, ..ToolOutput::default() })
    }
}

impl Shell {
    pub fn new(commands: Commands, jobs: Arc<Jobs>) -> Shell {
        Shell {
            commands,
            jobs,
            folder: Folder::default(),
            startup: OnceCell::new(),
            scratch: OnceCell::new(),
            forbidden: Forbidden::default(),
            survey: Survey::default(),
            made: Mutex::default(),
        }
    }

    /// A folder for temporary files: the project's, or one for as long as the session lives.
    async fn scratch(&self) -> Result<&Path, ToolFailure> {
        let make = async || {
            sweep(&self.commands.temporary);
            let Some(fence) = &self.commands.fence else {
                return Scratch::new(&self.commands.temporary).map(SharedScratch::OfSession);
            };
            fence.private.sweep();
            fence.private.temporary().map(SharedScratch::OfProject)
        };
        Ok(self.scratch.get_or_try_init(make).await?.path())
    }

    /// What a confined command must leave as it is: what decides about it, and can't be protected.
    fn guard(&self, order: &Order, context: &Context) -> Guard<'_> {
        let fence = self.commands.fence.as_ref().filter(|_| order.confinement.is_some());
        let paths = fence.map(|fence| fence.unprotected(context, &self.survey)).unwrap_or_default();
        self.forbidden.during(paths, &context.granted.writes)
    }

    /// What a job could make and nobody would notice is made before, so that it can be protected. It goes with the session, if
    /// nothing was put into it.
    fn take_own_places(&self, context: &Context) {
        let Some(fence) = self.commands.fence.as_ref() else { return };
        let folders = std::iter::once(&context.root).chain(&context.added);
        let places = folders.flat_map(|folder| fence.protected.iter().map(|name| folder.join(name)));
        let made = places.filter(|place| std::fs::create_dir(place).is_ok());
        self.made.lock().unwrap_or_else(PoisonError::into_inner).extend(made);
    }

    /// A repository that a command made, and that would run something, is put aside.
    fn put_new_repositories_aside(&self, is_confined: bool, context: &Context) -> Vec<PathBuf> {
        let Some(fence) = self.commands.fence.as_ref().filter(|_| is_confined) else { return Vec::new() };
        let is_alone = !self.jobs.all().iter().any(|job| job.ended().is_none());
        let new = self.survey.after(&fence.measure(context), is_alone);
        let is_granted = |path: &PathBuf| is_granted_near(path, &context.granted.writes);
        let harmful = new.iter().filter(|path| !is_granted(path) && !is_harmless(path));
        harmful.map(|path| put_away(path)).collect()
    }

    /// Tries the startup script before the first command. What is to be told about it, the first time, and the script
    /// that every shell reads.
    async fn prepared(
        &self,
        scratch: &Path,
        context: &Context,
    ) -> Result<(String, Option<PathBuf>), ToolFailure> {
        let is_first = !self.startup.initialized();
        let startup = self
            .startup
            .get_or_try_init(|| self.commands.try_startup(&context.root, scratch, &self.survey, context))
            .await?;
        let note = startup.note.clone().filter(|_| is_first).unwrap_or_default();
        Ok((note, startup.script.clone()))
    }

    async fn in_background(
        &self,
        command: String,
        order: Order,
        sheet: Sheet,
        told: String,
        context: &Context,
    ) -> Done {
        let job = self.jobs.start(command, order, sheet).await?;
        job.settle(FIRST_WORDS).await;
        let output = report(&job, context);
        Ok(ToolOutput { text: format!("{told}{}", output.text), ..output })
    }

    /// Where the next command works, if that is not where this one did, or outside the project.
    fn whereabouts(&self, before: &Path, root: &Path, scratch: &Path) -> String {
        let (now, gone) = self.folder.get(root, scratch);
        if gone.is_some() {
            return back_from(gone);
        }
        match now.strip_prefix(real(root)) {
            Err(_) if now != root => format!("[now in {}, outside the project]\n", now.display()),
            Ok(inside) if now != real(before) => match inside.as_os_str().is_empty() {
                true => "[now in the project's folder]\n".to_owned(),
                false => format!("[now in {}]\n", inside.display()),
            },
            _ => String::new(),
        }
    }
}

/// What commands have as `/tmp`, together.
#[derive(Debug)]
enum SharedScratch {
    OfSession(Scratch),
    OfProject(Temporary),
}

impl SharedScratch {
    fn path(&self) -> &Path {
        match self {
            SharedScratch::OfSession(scratch) => scratch.path(),
            SharedScratch::OfProject(temporary) => temporary.path(),
        }
    }
}

/// What is told of a folder that is not there any more.
fn back_from(gone: Option<PathBuf>) -> String {
    gone.map(|gone| format!("[{} is gone; back in the project]\n", gone.display())).unwrap_or_default()
}

/// What is told of things that were put aside.
fn words_about(aside: &[PathBuf]) -> String {
    let names: Vec<String> = aside.iter().map(|path| path.display().to_string()).collect();
    match names.is_empty() {
        true => String::new(),
        false => {
            let names = names.join(", ");
            format!("[commands may not make what decides what may be done; put aside: {names}]\n")
        }
    }
}

/// What git goes on with when it is told to: steps of it may run commands.
const UNFINISHED: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];

fn unfinished(root: &Path) -> Vec<&'static str> {
    UNFINISHED.into_iter().filter(|name| root.join(".git").join(name).symlink_metadata().is_ok()).collect()
}

/// What is told when a command left something that git goes on with.
fn words_about_unfinished(before: &[&str], root: &Path) -> String {
    let new: Vec<String> = unfinished(root)
        .iter()
        .filter(|name| !before.contains(name))
        .map(|name| format!(".git/{name}"))
        .collect();
    match new.is_empty() {
        true => String::new(),
        false => format!(
            "[git is in the middle of something ({}): look at it before it goes on; `git status` says how to end it]\n",
            new.join(", ")
        ),
    }
}

/// What programs say that miss the network, or a place to write.
const NO_NETWORK: [&str; 9] = [
    "resolve host",
    "name resolution",
    "Network is unreachable",
    "ENETUNREACH",
    "EAI_AGAIN",
    "ENOTFOUND",
    "dns error",
    "no such host",
    "Name or service not known",
];
const NO_WRITING: [&str; 2] = ["Read-only file system", "EROFS"];

/// What the model is told when a command may have failed because it is confined.
fn why_confined(said: &str, confinement: &Confinement) -> &'static str {
    let says = |signs: &[&str]| signs.iter().any(|sign| said.contains(sign));
    if confinement.network == Network::Off && says(&NO_NETWORK) {
        "[it had no network; with `network` set, the user can allow it]\n"
    } else if confinement.network == Network::Off && says(&["Connection refused", "ECONNREFUSED"]) {
        "[without `network` it reaches only servers that run in the `background` without `network`]\n"
    } else if says(&NO_WRITING) {
        "[it can write only in the project and in /tmp]\n"
    } else {
        ""
    }
}

/// What programs say that a server does not know the user.
const NOT_KNOWN: [&str; 15] = [
    "E401",
    "401 Unauthorized",
    "401 Client Error",
    "401 Error",
    "HTTP 401",
    "got 401",
    "error: 401",
    "ENEEDAUTH",
    "authentication required",
    "Authentication failed",
    "could not read Username",
    "could not read Password",
    "no token found",
    "Permission denied (publickey",
    // pip asks.
    "User for ",
];

/// What the model is told when a command may have failed because it had no credentials.
fn why_refused(said: &str) -> &'static str {
    match NOT_KNOWN.iter().any(|sign| said.contains(sign)) {
        true => {
            "[it had none of the user's credentials; if it needs them, set `credentials` for one plain command that runs nothing of the \
             project's, and build without them: `git fetch`, `git submodule update --init`, `npm ci --ignore-scripts`, \
             `pip download --only-binary=:all: -d DIR`, `cargo fetch`]\n"
        }
        false => "",
    }
}

/// What the model is told when a command with credentials may have failed because it wanted to start another program.
fn why_not_started(said: &str) -> &'static str {
    match ["Operation not permitted", "Permission denied", "EPERM", "EACCES"]
        .iter()
        .any(|sign| said.contains(sign))
    {
        true => {
            "[what has the user's credentials starts no program but its own parts, and builds nothing: fetch what is needed, then build \
             without `credentials`]\n"
        }
        false => "",
    }
}

/// Whatever a job made at last.
impl Drop for Shell {
    fn drop(&mut self) {
        self.forbidden.put_aside();
        let made = self.made.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Only an empty one goes.
        made.iter().for_each(|folder| drop(std::fs::remove_dir(folder)));
    }
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// How it came to an end.
#[derive(Debug)]
enum End {
    Itself(Ended),
    /// Its time was over.
    Late,
    /// It goes on, and somebody does not want to wait for it.
    Away(Box<Running>),
}

/// Hears a command to its end, or as long as it may run.
async fn hear(mut running: Running, time: Duration, context: &Context) -> (Kept, End) {
    let mut ear = Ear::new(&context.live);
    let is_late = tokio::select! {
        () = ear.listen(&mut running) => false,
        () = tokio::time::sleep(time) => true,
        () = context.stop.cancelled() => false,
        () = context.background.notified() => return (ear.kept(), End::Away(Box::new(running))),
    };
    if is_late || context.stop.is_cancelled() {
        running.stop();
        // Its last words.
        ear.listen(&mut running).await;
    }
    let ended = running.wait().await;
    let end = if is_late { End::Late } else { End::Itself(ended) };
    (ear.kept(), end)
}

/// Hears what a command says: as it is for people who look on, and cleaned for the model.
struct Ear<'a> {
    live: &'a Live,
    letters: Letters,
    cleaner: Cleaner,
    kept: Kept,
}

impl Ear<'_> {
    fn new(live: &Live) -> Ear<'_> {
        Ear { live, letters: Letters::default(), cleaner: Cleaner::default(), kept: Kept::new(HALF, HALF) }
    }

    async fn listen(&mut self, running: &mut Running) {
        while let Some(Output::Stdout(piece) | Output::Stderr(piece)) = running.next().await {
            let mut live = String::with_capacity(piece.len());
            self.letters.push(&piece, |text| live.push_str(text));
            self.live.show(&live);
            self.cleaner.push(&piece, |text| self.kept.take(text));
        }
    }

    fn kept(mut self) -> Kept {
        self.cleaner.flush(|text| self.kept.take(text));
        self.kept
    }
}

/// How a command ended, with what it said last.
fn last_lines(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().rev().filter(|line| !line.trim().is_empty()).take(2).collect();
    lines.reverse();
    lines.join(" ")
}
