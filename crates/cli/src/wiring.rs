//! From settings to a session: the house that it lives in, and what its model is told.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use helve_agent::{Error, Gate, House, Limits, Watched};
use helve_config::Settings;
use helve_exec::{Level, Probe, jailed};
use helve_models::{Dialogue, Prompt, Target};
use helve_protocol::{IdKind, Ids, ModelName, ToolClass};
use helve_tools::{
    ApplyPatch, AskUser, Edit, Files, Glob, Grep, Jobs, List, NotebookEdit, Read, Remember, Shell,
    ShellInput, ShellKill, ShellOutput, Todo, Tool, WebFetch, Write,
};
use helve_workspace::{GitProgram, Root};
use uuid::Uuid;

use crate::confine::{self, fence, found, own_program};
use crate::failure::Failure;
use crate::models::Models;
use crate::places::project_memory;
use crate::programs::Programs;
use crate::rulebook::{SettingsBook, grounds};
use crate::setup::{Setup, SystemClock};
use crate::shell::commands;

const SYSTEM: &str = "You are Helve, a coding agent in the user's terminal. Use the tools to look before you act, and to check \
                      what you did. Keep your answers short.";

/// Real ids, which sort by age.
pub(crate) struct RealIds;

impl Ids for RealIds {
    fn draw(&self, _: IdKind) -> Uuid {
        Uuid::now_v7()
    }
}

/// The tools that the settings leave.
pub(crate) fn offered(setup: &Setup, files: Files, found: &Probe) -> Result<Vec<Arc<dyn Tool>>, Failure> {
    let settings = &setup.config()?.settings;
    let (mut tools, removed) = (tools(setup, files, settings, found)?, &settings.tools.remove);
    if let Some(name) = removed.iter().find(|name| !tools.iter().any(|tool| tool.name() == *name)) {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
        let hint = format!("There are {}.", names.join(", "));
        return Err(Failure::usage(format!("{name:?} can't be removed"), "there is no such tool", hint));
    }
    tools.retain(|tool| !removed.iter().any(|name| tool.name() == name));
    Ok(tools)
}

/// All tools of this program, as the user wants them.
pub(crate) fn tools(
    setup: &Setup,
    files: Files,
    settings: &Settings,
    found: &Probe,
) -> Result<Vec<Arc<dyn Tool>>, Failure> {
    let jobs = Arc::new(Jobs::default());
    let shell = Shell::new(commands(settings, setup, fence(setup, found))?, jobs.clone());
    let files = Arc::new(files);
    let user_ignores = ignore::gitignore::gitconfig_excludes_path();
    Ok(vec![
        Arc::new(Read { files: files.clone() }),
        Arc::new(List { user_ignores: user_ignores.clone() }),
        Arc::new(Glob { user_ignores: user_ignores.clone() }),
        Arc::new(Grep { user_ignores }),
        Arc::new(Write { files: files.clone() }),
        Arc::new(Edit { files: files.clone() }),
        Arc::new(ApplyPatch { files: files.clone() }),
        Arc::new(NotebookEdit { files }),
        Arc::new(Remember { project: project_memory(&setup.root), user: setup.places.memory() }),
        Arc::new(WebFetch::new(concat!("helve/", env!("CARGO_PKG_VERSION")), &settings.web.allow)),
        Arc::new(shell),
        Arc::new(ShellOutput { jobs: jobs.clone() }),
        Arc::new(ShellInput { jobs: jobs.clone() }),
        Arc::new(ShellKill { jobs }),
        Arc::new(Todo),
        Arc::new(AskUser),
    ])
}

pub(crate) fn house(setup: &Setup, gate: Gate, models: &Arc<Models>) -> Result<House, Failure> {
    let settings = &setup.config()?.settings;
    let limits = &settings.limits;
    let models = models.clone();
    let root = setup.workspace()?;
    let found = found(setup);
    let gate = ruled(gate, setup, found.level)?;
    let mut tools = offered(setup, Files::default(), &found)?;
    if !gate.has_person() {
        tools.retain(|tool| tool.class() != ToolClass::Interactive);
    }
    Ok(House {
        journal: Arc::new(setup.journal()),
        clock: Arc::new(SystemClock),
        ids: Arc::new(RealIds),
        tools,
        gate,
        mode: settings.permissions.mode,
        limits: Limits {
            steps: limits.max_steps,
            cost: limits.max_cost.map(|dollars| dollars.0),
            time: limits.max_time.map(Into::into),
        },
        models: Arc::new(move |name: &ModelName| models.find(name.as_str())),
        root: setup.root.clone(),
        added: added_folders(setup),
        watched: Some(watched(root, setup)),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// The gate, with the rules of the settings.
pub(crate) fn ruled(gate: Gate, setup: &Setup, level: Level) -> Result<Gate, Failure> {
    let book = SettingsBook::new(setup)?;
    Ok(gate.with_rules(Arc::new(book), grounds(setup, confine::level(level))))
}

/// The project as its files are watched.
pub(crate) fn watched(root: Root, setup: &Setup) -> Watched {
    let notes = Some(setup.places.seen());
    let git = git_program(&Programs::new(setup));
    Watched { root, added: setup.added.clone(), git, limits: helve_workspace::Limits::default(), notes }
}

pub(crate) fn added_folders(setup: &Setup) -> Vec<PathBuf> {
    setup.added.iter().map(|root| root.folder().to_owned()).collect()
}

/// How git is run: jailed, or not at all. A project may name programs for it to run.
pub(crate) fn git_program(programs: &Programs) -> Option<GitProgram> {
    let leading = jailed(&programs.find("git")?, std::process::id())?;
    let environment = std::env::vars_os().collect();
    Some(GitProgram { program: own_program().ok()?, leading, environment })
}

/// What the model is told by this build, whatever the machine.
pub(crate) fn prompt(tools: &[Arc<dyn Tool>]) -> Prompt {
    Prompt { system: SYSTEM.to_owned(), tools: helve_agent::specs(tools), ..Prompt::default() }
}

pub(crate) fn dialogue(models: &Models, target: Target, fallbacks: Vec<Target>, house: &House) -> Dialogue {
    let cache_key = Some(project_key(&house.root));
    let prompt = Prompt { effort: models.effort, cache_key, ..prompt(&house.tools) };
    Dialogue::new(models.client.clone(), target, fallbacks, prompt)
}

/// The sessions of one project begin alike. What the project is called is nobody's business.
fn project_key(root: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    root.hash(&mut hasher);
    format!("helve-{:016x}", hasher.finish())
}

pub(crate) fn session_failure(error: &Error) -> Failure {
    match error {
        Error::Journal(error) => Failure::journal("the session can't go on", error),
        Error::Blob(error) => {
            Failure::new("the session can't go on", error, "Check the disk, then `helve doctor`.")
        }
    }
}
