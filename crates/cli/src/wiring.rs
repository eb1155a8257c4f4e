//! From settings to a session: the house that it lives in, and what its model is told.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use helve_agent::{PermissionGate, Services, SessionError, TurnBudget, WatchConfig};
use helve_config::Settings;
use helve_exec::{ConfinementLevel, SandboxProbe, jail_arguments};
use helve_models::{Dialogue, ModelPrompt, ModelTarget};
use helve_protocol::{IdKind, IdSource, ModelName, ToolClass, UnreadableEvents};
use helve_tools::{
    ApplyPatchTool, AskUserTool, BackgroundJobs, EditTool, GlobTool, GrepTool, ListTool, NotebookEditTool,
    ReadTool, RememberTool, SessionFiles, ShellInputTool, ShellKillTool, ShellOutputTool, ShellTool,
    TodoTool, Tool, WebFetchTool, WriteTool,
};
use helve_workspace::{GitProgram, WorkspaceRoot};
use uuid::Uuid;

use crate::failure::CliFailure;
use crate::programs::ProgramFinder;
use crate::rulebook::{SettingsRulebook, judge_context};
use crate::sandbox_policy::{own_program, probe_sandbox, sandbox_policy_for};
use crate::setup::{CliSetup, SystemClock};
use crate::shell::commands;
use crate::text::{fit, one_line};
use crate::user_folders::project_memory;
use crate::user_models::UserModels;

const SYSTEM_PROMPT: &str = "You are Helve, a coding agent in the user's terminal. Use the tools to look before you act, and to check \
                      what you did. Keep your answers short.";

/// Real ids, which sort by age.
pub(crate) struct TimeOrderedIds;

impl IdSource for TimeOrderedIds {
    fn draw(&self, _: IdKind) -> Uuid {
        Uuid::now_v7()
    }
}

/// The tools that the settings leave.
pub(crate) fn offered_tools(
    setup: &CliSetup,
    files: SessionFiles,
    found: &SandboxProbe,
) -> Result<Vec<Arc<dyn Tool>>, CliFailure> {
    let settings = &setup.config()?.settings;
    let (mut tools, removed) = (tools(setup, files, settings, found)?, &settings.tools.remove);
    if let Some(name) = removed.iter().find(|name| !tools.iter().any(|tool| tool.name() == *name)) {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
        let hint = format!("There are {}.", names.join(", "));
        return Err(CliFailure::usage(format!("{name:?} can't be removed"), "there is no such tool", hint));
    }
    tools.retain(|tool| !removed.iter().any(|name| tool.name() == name));
    Ok(tools)
}

/// All tools of this program, as the user wants them.
pub(crate) fn tools(
    setup: &CliSetup,
    files: SessionFiles,
    settings: &Settings,
    found: &SandboxProbe,
) -> Result<Vec<Arc<dyn Tool>>, CliFailure> {
    let jobs = Arc::new(BackgroundJobs::default());
    let shell = ShellTool::new(commands(settings, setup, sandbox_policy_for(setup, found))?, jobs.clone());
    let files = Arc::new(files);
    let user_ignores = ignore::gitignore::gitconfig_excludes_path();
    Ok(vec![
        Arc::new(ReadTool { files: files.clone() }),
        Arc::new(ListTool { user_ignores: user_ignores.clone() }),
        Arc::new(GlobTool { user_ignores: user_ignores.clone() }),
        Arc::new(GrepTool { user_ignores }),
        Arc::new(WriteTool { files: files.clone() }),
        Arc::new(EditTool { files: files.clone() }),
        Arc::new(ApplyPatchTool { files: files.clone() }),
        Arc::new(NotebookEditTool { files }),
        Arc::new(RememberTool { project: project_memory(&setup.root), user: setup.places.memory() }),
        Arc::new(WebFetchTool::new(concat!("helve/", env!("CARGO_PKG_VERSION")), &settings.web.allow)),
        Arc::new(shell),
        Arc::new(ShellOutputTool { jobs: jobs.clone() }),
        Arc::new(ShellInputTool { jobs: jobs.clone() }),
        Arc::new(ShellKillTool { jobs }),
        Arc::new(TodoTool),
        Arc::new(AskUserTool),
    ])
}

pub(crate) fn session_services(
    setup: &CliSetup,
    gate: PermissionGate,
    models: &Arc<UserModels>,
) -> Result<Services, CliFailure> {
    let settings = &setup.config()?.settings;
    let limits = &settings.limits;
    let models = models.clone();
    let root = setup.workspace()?;
    let found = probe_sandbox(setup);
    let gate = with_settings_rules(gate, setup, found.level)?;
    let mut tools = offered_tools(setup, SessionFiles::default(), &found)?;
    if !gate.has_person() {
        tools.retain(|tool| tool.class() != ToolClass::Interactive);
    }
    Ok(Services {
        journal: Arc::new(setup.journal()),
        clock: Arc::new(SystemClock),
        ids: Arc::new(TimeOrderedIds),
        tools,
        gate,
        mode: settings.permissions.mode,
        limits: TurnBudget {
            steps: limits.max_steps,
            cost: limits.max_cost.map(|dollars| dollars.0),
            time: limits.max_time.map(Into::into),
        },
        models: Arc::new(move |name: &ModelName| models.find(name.as_str())),
        root: setup.root.clone(),
        added: added_folders(setup),
        watched: Some(watch_config(root, setup)),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// The gate, with the rules of the settings.
pub(crate) fn with_settings_rules(
    gate: PermissionGate,
    setup: &CliSetup,
    level: ConfinementLevel,
) -> Result<PermissionGate, CliFailure> {
    let book = SettingsRulebook::new(setup)?;
    Ok(gate.with_rules(Arc::new(book), judge_context(setup, level)))
}

/// The project as its files are watched.
pub(crate) fn watch_config(root: WorkspaceRoot, setup: &CliSetup) -> WatchConfig {
    let notes = Some(setup.places.seen());
    let git = git_program(&ProgramFinder::new(setup));
    WatchConfig {
        root,
        added: setup.added.clone(),
        git,
        limits: helve_workspace::WorkspaceLimits::default(),
        notes,
    }
}

pub(crate) fn added_folders(setup: &CliSetup) -> Vec<PathBuf> {
    setup.added.iter().map(|root| root.folder().to_owned()).collect()
}

/// How git is run: jailed, or not at all. A project may name programs for it to run.
pub(crate) fn git_program(programs: &ProgramFinder) -> Option<GitProgram> {
    let leading = jail_arguments(&programs.find("git")?, std::process::id())?;
    let environment = std::env::vars_os().collect();
    Some(GitProgram { program: own_program().ok()?, leading, environment })
}

/// What the model is told by this build, whatever the machine.
pub(crate) fn prompt(tools: &[Arc<dyn Tool>]) -> ModelPrompt {
    ModelPrompt {
        system: SYSTEM_PROMPT.to_owned(),
        tools: helve_agent::specs(tools),
        ..ModelPrompt::default()
    }
}

pub(crate) fn dialogue(
    models: &UserModels,
    target: ModelTarget,
    fallbacks: Vec<ModelTarget>,
    house: &Services,
) -> Dialogue {
    let cache_key = Some(project_key(&house.root));
    let prompt = ModelPrompt { effort: models.effort, cache_key, ..prompt(&house.tools) };
    Dialogue::new(models.client.clone(), target, fallbacks, prompt)
}

/// The sessions of one project begin alike. What the project is called is nobody's business.
fn project_key(root: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    root.hash(&mut hasher);
    format!("helve-{:016x}", hasher.finish())
}

pub(crate) fn session_failure(error: &SessionError) -> CliFailure {
    match error {
        SessionError::Journal(error) => CliFailure::journal("the session can't go on", error),
        SessionError::Blob(error) => {
            CliFailure::new("the session can't go on", error, "Check the disk, then `helve doctor`.")
        }
        SessionError::Unreadable(unreadable) => unreadable_session(unreadable),
    }
}

/// Why a session that another version wrote can't be continued by this one, and what to do.
pub(crate) fn unreadable_session(unreadable: &UnreadableEvents) -> CliFailure {
    let list = |names: &BTreeSet<String>| {
        let shown: Vec<String> =
            names.iter().take(MAX_UNREADABLE_NAMED).map(|name| fit(&one_line(name), 40)).collect();
        let more = names.len().saturating_sub(shown.len());
        if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
    };
    let writer = match unreadable.versions.is_empty() {
        true => "another version of Helve".to_owned(),
        false => format!("Helve {}", list(&unreadable.versions)),
    };
    let kinds = list(&unreadable.kinds);
    let own = env!("CARGO_PKG_VERSION");
    CliFailure::new(
        "the session can't be continued",
        format!("{writer} wrote events in it that Helve {own} does not know: {kinds}"),
        format!(
            "Continue it with {writer}, or a newer one. `helve sessions show ID` shows what can be read here."
        ),
    )
}

/// So many kinds and versions are named in an error.
const MAX_UNREADABLE_NAMED: usize = 5;
