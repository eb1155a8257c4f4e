//! `shell`

pub(crate) mod bounded_output;
pub(crate) mod clean_output;
pub(crate) mod commands;
pub(crate) mod end_text;
pub(crate) mod folder_watch;
pub(crate) mod forbidden_paths;
pub(crate) mod git_credentials;
pub(crate) mod jobs;
pub(crate) mod project_storage;
pub(crate) mod repository_safety;
pub(crate) mod sandbox_policy;
pub(crate) mod scratch;
pub(crate) mod shell_input;
pub(crate) mod shell_kill;
pub(crate) mod shell_output;
pub(crate) mod survey;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use helve_exec::{
    CommandEndCause, CommandExitStatus, CommandInput as Typed, CommandOutcome, CommandOutputChunk,
    CommandSpec, Confinement, NetworkAccess, RunningCommand,
};
use helve_protocol::{ToolAction, ToolClass, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::OnceCell;

use crate::shell::bounded_output::{HeadTailBuffer, ShownOutput, cut_middle};
use crate::shell::clean_output::{OutputCleaner, Utf8Decoder};
use crate::shell::commands::{
    CommandConnection, CommandSettings, FolderFollower, ShellNotesFolder, StartupResult, WorkingFolder,
};
use crate::shell::forbidden_paths::{ForbiddenPathGuard, ForbiddenPaths, is_granted_near, put_away};
use crate::shell::jobs::{AdoptedCommand, BackgroundJobs};
use crate::shell::project_storage::ProjectTemporaryFolder;
use crate::shell::repository_safety::is_harmless;
use crate::shell::scratch::{ScratchFolder, sweep};
use crate::shell::shell_output::report;
use crate::shell::survey::ProjectSurvey;
use crate::{LiveOutput, ToolContext, ToolFailure, ToolOutcome, TypedTool};

/// Runs commands, one after the other, each where the last one went; or in the background.
#[derive(Debug)]
pub struct ShellTool {
    commands: CommandSettings,
    jobs: Arc<BackgroundJobs>,
    folder: WorkingFolder,
    startup: OnceCell<StartupResult>,
    /// What the commands have as `/tmp`, together.
    scratch: OnceCell<SharedScratch>,
    /// What jobs must not make.
    forbidden: ForbiddenPaths,
    /// What commands must not see or change.
    survey: ProjectSurvey,
    /// Folders that were made so that jobs can't make them.
    made: Mutex<Vec<PathBuf>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShellCommandInput {
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

const DEFAULT_TIMEOUT_SECONDS: u32 = 120;
const MAX_TIMEOUT_SECONDS: u32 = 3_600;
/// What is kept of the beginning and of the end of the output.
const MAX_OUTPUT_HALF_BYTES: usize = 8 << 20;
/// How long a job has to say its first words.
const FIRST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

impl TypedTool for ShellTool {
    const NAME: &'static str = "shell";
    const DESCRIPTION: &'static str = include_str!("shell.md");
    const CLASS: ToolClass = ToolClass::Changes;
    type Input = ShellCommandInput;

    fn intent(&self, input: &ShellCommandInput) -> String {
        let background = if input.background { " in the background" } else { "" };
        format!("run {}{background}", input.command)
    }

    fn actions(&self, input: &ShellCommandInput, root: &Path) -> Vec<ToolAction> {
        let (command, folder) =
            (input.command.clone(), self.folder.now(root, self.scratch.get().map(SharedScratch::path)));
        vec![ToolAction::Run { command, folder, network: input.network, credentials: input.credentials }]
    }

    async fn run(&self, input: ShellCommandInput, context: &ToolContext) -> ToolOutcome {
        let scratch = self.scratch().await?;
        let (notes, script) = self.prepared(scratch, context).await?;
        let (at, gone) = self.folder.get(&context.root, scratch);
        let mut told = notes;
        told.push_str(&back_from(gone));
        let sheet = ShellNotesFolder::new(&self.commands.temporary)?;
        if input.background {
            self.take_own_places(context);
        }
        let order = match &context.granted.alone {
            Some(words) => {
                self.refuse_company(&input, context)?;
                self.commands.alone(words, &at, scratch, context)?
            }
            None => self.commands.order(&input.command, &at, &sheet, script.as_deref()),
        };
        let order = self.commands.confined(order, &sheet, scratch, &self.survey, context);
        let order = CommandConnection::of(input.terminal).of_order(order);
        let guard = self.guard(&order, context);
        let unfinished = unfinished(&context.root);
        if input.background {
            let mut order = CommandSpec { input: Typed::Open, ..order };
            // A job may run for hours: the commands beside it are to keep what they put into caches.
            if let Some(layers) = order.confinement.as_mut().and_then(|it| it.layers.as_mut()) {
                layers.is_kept = false;
            }
            return self.in_background(input.command, order, sheet, told, context).await;
        }
        let confinement = order.confinement.clone();
        let seconds = input.timeout.unwrap_or(DEFAULT_TIMEOUT_SECONDS).min(MAX_TIMEOUT_SECONDS);
        let followed = FolderFollower::new(sheet, &self.folder);
        let time = Duration::from_secs(seconds.into());
        let running = self.jobs.begin(order).await.map_err(|error| end_text::not_run(&error))?;
        let (heard, end) = listen_to_end(running, time, context).await;
        let ShownOutput { text, whole } = cut_middle(heard.into_whole(), &*context.blobs);
        told.push_str(&end_text::lines(text));
        let (is_well, how) = match end {
            ShellRunEnd::MovedToBackground(running) => {
                let job = self.jobs.adopt(AdoptedCommand {
                    command: input.command,
                    has_terminal: input.terminal,
                    is_confined: confinement.is_some_and(|it| it.network == NetworkAccess::Off),
                    running: *running,
                    sheet: followed.leave(),
                });
                told.push_str(&format!("[the user let it go on in the background: job {}]", job.number));
                let display = Some(format!("goes on as job {}", job.number));
                return Ok(ToolOutput { text: told, display, whole, ..ToolOutput::default() });
            }
            ShellRunEnd::TimedOut => (
                false,
                format!(
                    "[stopped after {seconds} s, with everything that it had started; give it more `timeout`, or run it in the `background`]\n"
                ),
            ),
            ShellRunEnd::CommandEnded(ended) => {
                let is_well = matches!(
                    ended,
                    CommandOutcome {
                        status: CommandExitStatus::Exited(0),
                        cause: CommandEndCause::Completed,
                        ..
                    }
                );
                (is_well, format!("[{}]\n{}", end_text::describe_end(ended), end_text::remarks(ended)))
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
                None if confinement.network == NetworkAccess::On => why_refused(&told),
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

impl ShellTool {
    pub fn new(commands: CommandSettings, jobs: Arc<BackgroundJobs>) -> ShellTool {
        ShellTool {
            commands,
            jobs,
            folder: WorkingFolder::default(),
            startup: OnceCell::new(),
            scratch: OnceCell::new(),
            forbidden: ForbiddenPaths::default(),
            survey: ProjectSurvey::default(),
            made: Mutex::default(),
        }
    }

    /// A folder for temporary files: the project's, or one for as long as the session lives.
    async fn scratch(&self) -> Result<&Path, ToolFailure> {
        let make = async || {
            sweep(&self.commands.temporary);
            let Some(fence) = &self.commands.fence else {
                return ScratchFolder::new(&self.commands.temporary).map(SharedScratch::OfSession);
            };
            fence.private.sweep();
            fence.private.temporary().map(SharedScratch::OfProject)
        };
        Ok(self.scratch.get_or_try_init(make).await?.path())
    }

    /// What a confined command must leave as it is: what decides about it, and can't be protected.
    fn guard(&self, order: &CommandSpec, context: &ToolContext) -> ForbiddenPathGuard<'_> {
        let fence = self.commands.fence.as_ref().filter(|_| order.confinement.is_some());
        let paths = fence.map(|fence| fence.unprotected(context, &self.survey)).unwrap_or_default();
        self.forbidden.during(paths, &context.granted.writes)
    }

    /// What a job could make and nobody would notice is made before, so that it can be protected. It goes with the session, if
    /// nothing was put into it.
    fn take_own_places(&self, context: &ToolContext) {
        let Some(fence) = self.commands.fence.as_ref() else { return };
        let folders = std::iter::once(&context.root).chain(&context.added);
        let places = folders.flat_map(|folder| fence.protected.iter().map(|name| folder.join(name)));
        let made = places.filter(|place| std::fs::create_dir(place).is_ok());
        self.made.lock().unwrap_or_else(PoisonError::into_inner).extend(made);
    }

    /// Whoever has credentials obeys settings that were looked at before: nobody may change them meanwhile.
    fn refuse_company(&self, input: &ShellCommandInput, context: &ToolContext) -> Result<(), ToolFailure> {
        if context.granted.credentials.is_none() {
            return Ok(());
        }
        let running = self.jobs.all().iter().find(|job| job.ended().is_none()).map(|job| job.number);
        match (input.background, running) {
            (true, _) => Err(ToolFailure(
                "The command was not run: what has the user's credentials is not run in the background."
                    .to_owned(),
            )),
            (_, Some(job)) => Err(ToolFailure(format!(
                "The command was not run: job {job} is running, and could change the settings that decide where the user's \
                 credentials go. End it first."
            ))),
            (false, None) => Ok(()),
        }
    }

    /// A repository that a command made, and that would run something, is put aside.
    fn put_new_repositories_aside(&self, is_confined: bool, context: &ToolContext) -> Vec<PathBuf> {
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
        context: &ToolContext,
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
        order: CommandSpec,
        sheet: ShellNotesFolder,
        told: String,
        context: &ToolContext,
    ) -> ToolOutcome {
        let job = self.jobs.start(command, order, sheet).await?;
        job.settle(FIRST_OUTPUT_TIMEOUT).await;
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
    OfSession(ScratchFolder),
    OfProject(ProjectTemporaryFolder),
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
const UNFINISHED_GIT_FOLDERS: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];

fn unfinished(root: &Path) -> Vec<&'static str> {
    UNFINISHED_GIT_FOLDERS
        .into_iter()
        .filter(|name| root.join(".git").join(name).symlink_metadata().is_ok())
        .collect()
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
const NO_NETWORK_MESSAGES: [&str; 9] = [
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
const READ_ONLY_MESSAGES: [&str; 2] = ["Read-only file system", "EROFS"];

/// What the model is told when a command may have failed because it is confined.
fn why_confined(said: &str, confinement: &Confinement) -> &'static str {
    let says = |signs: &[&str]| signs.iter().any(|sign| said.contains(sign));
    if confinement.network == NetworkAccess::Off && says(&NO_NETWORK_MESSAGES) {
        "[it had no network; with `network` set, the user can allow it]\n"
    } else if confinement.network == NetworkAccess::Off && says(&["Connection refused", "ECONNREFUSED"]) {
        "[without `network` it reaches only servers that run in the `background` without `network`]\n"
    } else if says(&READ_ONLY_MESSAGES) {
        "[it can write only in the project and in /tmp]\n"
    } else {
        ""
    }
}

/// What programs say that a server does not know the user.
const NO_CREDENTIALS_MESSAGES: [&str; 15] = [
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
    match NO_CREDENTIALS_MESSAGES.iter().any(|sign| said.contains(sign)) {
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
impl Drop for ShellTool {
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
enum ShellRunEnd {
    CommandEnded(CommandOutcome),
    /// Its time was over.
    TimedOut,
    /// It goes on, and somebody does not want to wait for it.
    MovedToBackground(Box<RunningCommand>),
}

/// Hears a command to its end, or as long as it may run.
async fn listen_to_end(
    mut running: RunningCommand,
    time: Duration,
    context: &ToolContext,
) -> (HeadTailBuffer, ShellRunEnd) {
    let mut ear = OutputListener::new(&context.live);
    let is_late = tokio::select! {
        () = ear.listen(&mut running) => false,
        () = tokio::time::sleep(time) => true,
        () = context.stop.cancelled() => false,
        () = context.background.notified() => return (ear.kept(), ShellRunEnd::MovedToBackground(Box::new(running))),
    };
    if is_late || context.stop.is_cancelled() {
        running.stop();
        // Its last words.
        ear.listen(&mut running).await;
    }
    let ended = running.wait().await;
    let end = if is_late { ShellRunEnd::TimedOut } else { ShellRunEnd::CommandEnded(ended) };
    (ear.kept(), end)
}

/// Hears what a command says: as it is for people who look on, and cleaned for the model.
struct OutputListener<'a> {
    live: &'a LiveOutput,
    letters: Utf8Decoder,
    cleaner: OutputCleaner,
    kept: HeadTailBuffer,
}

impl OutputListener<'_> {
    fn new(live: &LiveOutput) -> OutputListener<'_> {
        OutputListener {
            live,
            letters: Utf8Decoder::default(),
            cleaner: OutputCleaner::default(),
            kept: HeadTailBuffer::new(MAX_OUTPUT_HALF_BYTES, MAX_OUTPUT_HALF_BYTES),
        }
    }

    async fn listen(&mut self, running: &mut RunningCommand) {
        while let Some(CommandOutputChunk::Stdout(piece) | CommandOutputChunk::Stderr(piece)) =
            running.next().await
        {
            let mut live = String::with_capacity(piece.len());
            self.letters.push(&piece, |text| live.push_str(text));
            self.live.show(&live);
            self.cleaner.push(&piece, |text| self.kept.take(text));
        }
    }

    fn kept(mut self) -> HeadTailBuffer {
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
