//! From settings to a session: what it is made of, and its tools.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use helve_agent::{
    GateRules, ModelSource, PermissionGate, Services, SessionError, SessionModel, SessionSpec, ToolFactory,
    TurnBudget, WatchConfig, WorkerError,
};
use helve_config::Settings;
use helve_exec::{ConfinementLevel, SandboxProbe, jail_arguments};
use helve_models::{ModelPurpose, ModelTarget};
use helve_protocol::{IdKind, IdSource, ModelName, ToolClass, UnreadableEvents};
use helve_tools::{
    ApplyPatchTool, AskUserTool, BackgroundJobs, CommandSettings, EditTool, GlobTool, GrepTool, ListTool,
    NotebookEditTool, ReadTool, RememberTool, SessionFiles, ShellInputTool, ShellKillTool, ShellOutputTool,
    ShellTool, TodoTool, Tool, WebFetchTool, WriteTool,
};
use helve_workspace::{GitProgram, WorkspaceRoot};
use uuid::Uuid;

use crate::failure::CliFailure;
use crate::programs::ProgramFinder;
use crate::rulebook::{SettingsRulebook, judge_context};
use crate::sandbox_policy::{own_program, probe_sandbox, program_finder, sandbox_policy_for};
use crate::setup::{CliSetup, SystemClock};
use crate::shell::commands;
use crate::text::{fit, one_line};
use crate::user_folders::{project_memory, project_name};
use crate::user_models::UserModels;

/// Real ids, which sort by age.
pub(crate) struct TimeOrderedIds;

impl IdSource for TimeOrderedIds {
    fn draw(&self, _: IdKind) -> Uuid {
        Uuid::now_v7()
    }
}

/// Makes the tools of this program, as the user wants them, for each session anew.
pub(crate) struct BuiltInTools {
    commands: CommandSettings,
    user_ignores: Option<PathBuf>,
    project_memory: PathBuf,
    user_memory: PathBuf,
    web_allowed: Vec<String>,
    /// The tools that the settings take away.
    removed: Vec<String>,
    /// Whether somebody is there whom a tool can ask.
    has_person: bool,
    /// What a session begins with that has read no file yet.
    files: fn() -> SessionFiles,
}

impl BuiltInTools {
    pub(crate) fn new(setup: &CliSetup, found: &SandboxProbe) -> Result<BuiltInTools, CliFailure> {
        let settings = &setup.config()?.settings;
        let tools = BuiltInTools {
            removed: settings.tools.remove.clone(),
            ..BuiltInTools::with_settings(setup, settings, found)?
        };
        let all =
            BuiltInTools { removed: Vec::new(), ..BuiltInTools::with_settings(setup, settings, found)? };
        let all = all.make();
        if let Some(name) = tools.removed.iter().find(|name| !all.iter().any(|tool| tool.name() == *name)) {
            let names: Vec<&str> = all.iter().map(|tool| tool.name()).collect();
            let hint = format!("There are {}.", names.join(", "));
            let what = format!("{name:?} can't be removed");
            return Err(CliFailure::usage(what, "there is no such tool", hint));
        }
        Ok(tools)
    }

    /// All tools, by these settings.
    pub(crate) fn with_settings(
        setup: &CliSetup,
        settings: &Settings,
        found: &SandboxProbe,
    ) -> Result<BuiltInTools, CliFailure> {
        Ok(BuiltInTools {
            commands: commands(settings, setup, sandbox_policy_for(setup, found))?,
            user_ignores: ignore::gitignore::gitconfig_excludes_path(),
            project_memory: project_memory(&setup.root),
            user_memory: setup.places.memory(),
            web_allowed: settings.web.allow.clone(),
            removed: Vec::new(),
            has_person: true,
            files: SessionFiles::default,
        })
    }

    /// For a person who runs single tools: they need not read a file before they change it.
    pub(crate) fn for_person(self) -> BuiltInTools {
        BuiltInTools { files: SessionFiles::for_person, ..self }
    }

    pub(crate) fn make(&self) -> Vec<Arc<dyn Tool>> {
        let jobs = Arc::new(BackgroundJobs::default());
        let files = Arc::new((self.files)());
        let user_ignores = self.user_ignores.clone();
        let user_agent = concat!("helve/", env!("CARGO_PKG_VERSION"));
        let (project, user) = (self.project_memory.clone(), self.user_memory.clone());
        let mut tools: Vec<Arc<dyn Tool>> = vec![
            Arc::new(ReadTool { files: files.clone() }),
            Arc::new(ListTool { user_ignores: user_ignores.clone() }),
            Arc::new(GlobTool { user_ignores: user_ignores.clone() }),
            Arc::new(GrepTool { user_ignores }),
            Arc::new(WriteTool { files: files.clone() }),
            Arc::new(EditTool { files: files.clone() }),
            Arc::new(ApplyPatchTool { files: files.clone() }),
            Arc::new(NotebookEditTool { files }),
            Arc::new(RememberTool { project, user }),
            Arc::new(WebFetchTool::new(user_agent, &self.web_allowed)),
            Arc::new(ShellTool::new(self.commands.clone(), jobs.clone())),
            Arc::new(ShellOutputTool { jobs: jobs.clone() }),
            Arc::new(ShellInputTool { jobs: jobs.clone() }),
            Arc::new(ShellKillTool { jobs }),
            Arc::new(TodoTool),
            Arc::new(AskUserTool),
        ];
        tools.retain(|tool| !self.removed.iter().any(|name| tool.name() == name));
        tools.retain(|tool| self.has_person || tool.class() != ToolClass::Interactive);
        tools
    }
}

impl ToolFactory for BuiltInTools {
    fn make_tools(&self, _: &SessionSpec) -> Vec<Arc<dyn Tool>> {
        self.make()
    }
}

/// The models that the user has, for sessions.
struct SessionModels(Arc<UserModels>);

impl ModelSource for SessionModels {
    fn by_name(&self, name: &ModelName) -> Result<ModelTarget, String> {
        self.0.find(name.as_str())
    }

    fn by_purpose(&self, purpose: ModelPurpose, main: &ModelTarget) -> Result<ModelTarget, String> {
        self.0.router.for_purpose(purpose, main).map_err(|error| error.to_string())
    }
}

/// What a session is made of, besides its model.
pub(crate) struct SessionWiring {
    pub(crate) services: Services,
    pub(crate) spec: SessionSpec,
}

/// Wires a session up from the settings. `gate` makes the gate out of their rules.
pub(crate) fn wire_session(
    setup: &CliSetup,
    gate: impl FnOnce(GateRules) -> PermissionGate,
    models: &Arc<UserModels>,
) -> Result<SessionWiring, CliFailure> {
    let settings = &setup.config()?.settings;
    let limits = &settings.limits;
    let root = setup.workspace()?;
    let found = probe_sandbox(setup);
    let gate = gate(gate_rules(setup, found.level)?);
    let tools = BuiltInTools { has_person: gate.has_person(), ..BuiltInTools::new(setup, &found)? };
    let services = Services {
        journal: Arc::new(setup.journal()),
        clock: Arc::new(SystemClock),
        ids: Arc::new(TimeOrderedIds),
        models: Arc::new(SessionModels(models.clone())),
        tools: Arc::new(tools),
        gate,
        workspaces: Arc::default(),
        hooks: Services::no_hooks(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let spec = SessionSpec {
        root: setup.root.clone(),
        added: added_folders(setup),
        mode: settings.permissions.mode,
        limits: TurnBudget {
            steps: limits.max_steps,
            cost: limits.max_cost.map(|dollars| dollars.0),
            time: limits.max_time.map(Into::into),
        },
        watch: Some(watch_config(root, setup)),
        ..SessionSpec::default()
    };
    Ok(SessionWiring { services, spec })
}

/// The rules of the settings, for a gate.
pub(crate) fn gate_rules(setup: &CliSetup, level: ConfinementLevel) -> Result<GateRules, CliFailure> {
    let book = SettingsRulebook::new(setup)?;
    Ok(Some((Arc::new(book), judge_context(setup, level))))
}

/// The project as its files are watched.
pub(crate) fn watch_config(root: WorkspaceRoot, setup: &CliSetup) -> WatchConfig {
    let notes = Some(setup.places.seen());
    let git = git_program(&program_finder(setup));
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

/// The model that a session speaks with.
pub(crate) fn session_model(
    models: &UserModels,
    target: ModelTarget,
    fallbacks: Vec<ModelTarget>,
    spec: &SessionSpec,
) -> SessionModel {
    // The sessions of one project begin alike. What the project is called is nobody's business.
    let cache_key = Some(format!("helve-{}", project_name(&spec.root)));
    SessionModel { client: models.client.clone(), target, fallbacks, effort: models.effort, cache_key }
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

/// What a person is told when the work of a session breaks off.
pub(crate) fn worker_failure(error: &WorkerError) -> CliFailure {
    match error {
        WorkerError::Session(error) => session_failure(error),
        WorkerError::Runtime(error) => {
            CliFailure::new("the session can't go on", error, "Check the limits of this process.")
        }
        WorkerError::Panicked => {
            let hint = "Report it with the log; `helve run --continue` resumes.";
            CliFailure::new("the turn broke off", "a bug in Helve", hint)
        }
    }
}
