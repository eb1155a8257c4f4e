//! What every command starts from: where it is, what it may use, what the user wants.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anstream::ColorChoice;
use helve_config::{
    ColorSetting, ConfigFlag, ConfigLayer, ConfigProblems, LoadedConfig, LogLevel, ProjectConfigFiles,
    TrustStore, TrustStoreError,
};
use helve_journal::FileJournal;
use helve_permissions::PermissionVerdict;
use helve_protocol::{Clock, Timestamp};
use helve_workspace::WorkspaceRoot;

use crate::args::GlobalArgs;
use crate::console::{self, ConsoleOutput, WARN};
use crate::failure::CliFailure;
use crate::settings_origins::SettingsOrigins;
use crate::text::count;
use crate::user_folders::{UserFolders, project_root};

pub(crate) struct CliSetup {
    pub(crate) places: UserFolders,
    /// Where the command works.
    pub(crate) cwd: PathBuf,
    /// The project, as a canonical path: the folder that the user named, else that of the project around `cwd`.
    pub(crate) root: PathBuf,
    is_root_named: bool,
    /// Folders that are worked on besides.
    pub(crate) added: Vec<WorkspaceRoot>,
    /// Where the settings come from.
    pub(crate) origins: SettingsOrigins,
    /// Rules of the command line.
    pub(crate) rules: Vec<(PermissionVerdict, String)>,
    /// The settings, or what is wrong with them. Only some commands need them.
    config: Result<LoadedConfig, ConfigProblems>,
    /// Which projects are trusted. While that can't be known, none is.
    trust: Result<TrustStore, TrustStoreError>,
}

impl CliSetup {
    /// `own` are flags of the command that stand for settings: key, value, and what the user typed.
    pub(crate) fn new(
        everywhere: &GlobalArgs,
        own: &[(&str, String, &str)],
        rules: Vec<(PermissionVerdict, String)>,
    ) -> Result<CliSetup, CliFailure> {
        let cwd = working_folder(everywhere.cwd.as_deref())?;
        let places = UserFolders::find()?;
        let home = home();
        let root = match everywhere.cwd {
            Some(_) => cwd.clone(),
            None => project_root(&cwd, home.as_deref()),
        };
        let added = added_to(&root, &everywhere.add_dir)?;
        let trust = TrustStore::read(places.trust());
        let nobody = TrustStore::empty();
        let origins = SettingsOrigins {
            user: places.user_settings(),
            trust: places.trust(),
            project: project_files(&root),
            environment: environment(),
            flags: flags(everywhere, own),
        };
        let config = origins.load(trust.as_ref().unwrap_or(&nobody));
        let is_root_named = everywhere.cwd.is_some();
        Ok(CliSetup { places, is_root_named, added, cwd, root, origins, rules, config, trust })
    }

    /// The same user with the same flags and some more, in another project.
    pub(crate) fn elsewhere(
        &self,
        folder: &Path,
        own: &[(&str, String, &str)],
    ) -> Result<CliSetup, CliFailure> {
        let there = GlobalArgs { cwd: Some(folder.to_owned()), ..GlobalArgs::default() };
        let mut setup = CliSetup::new(&there, own, self.rules.clone())?;
        setup.origins.flags.splice(0..0, self.origins.flags.iter().cloned());
        setup.config = setup.origins.load(setup.trust.as_ref().unwrap_or(&TrustStore::empty()));
        Ok(setup)
    }

    /// For commands that do what the settings say: all mistakes are told, and nothing is done.
    pub(crate) fn config(&self) -> Result<&LoadedConfig, CliFailure> {
        self.trust_store()?;
        self.config.as_ref().map_err(|problems| CliFailure::Settings(problems.clone()))
    }

    pub(crate) fn problems(&self) -> Option<&ConfigProblems> {
        self.config.as_ref().err()
    }

    /// For commands that work whatever the settings say: mistakes are mentioned, and defaults used.
    pub(crate) fn mention_problems(&self) {
        if let Some(problems) = self.problems() {
            let mistakes = count(problems.count(), "mistake", "mistakes");
            console::print_to_stderr(&format!(
                "{WARN}helve: the settings have {mistakes}; `helve config show` lists them{WARN:#}"
            ));
        }
    }

    pub(crate) fn project_files(&self) -> ProjectConfigFiles {
        project_files(&self.root)
    }

    pub(crate) fn trust_store(&self) -> Result<TrustStore, CliFailure> {
        let failed = |error| CliFailure::trust("it can't be known which projects you trust", error);
        self.trust.as_ref().cloned().map_err(failed)
    }

    /// The project, to be worked on. All files of the machine or of the user are never meant by accident.
    pub(crate) fn workspace(&self) -> Result<WorkspaceRoot, CliFailure> {
        let root = WorkspaceRoot::named(&self.root);
        let root = if self.is_root_named {
            root
        } else {
            root.and_then(|root| root.refuse_too_wide(home().as_deref()))
        };
        root.map_err(|error| CliFailure::usage("there is no project to work on", &error, error.hint()))
    }

    pub(crate) fn journal(&self) -> FileJournal {
        FileJournal::new(self.places.data())
    }

    pub(crate) fn screen(&self) -> ConsoleOutput {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let config = self.config.as_ref().ok();
        let by_flag = config
            .and_then(|config| config.origin("ui.color"))
            .is_some_and(|o| o.layer == ConfigLayer::Flags);
        let wanted = match config.map_or(ColorSetting::Auto, |config| config.settings.ui.color) {
            // A variable is stronger than a file.
            ColorSetting::Always if is_set("NO_COLOR") && !by_flag => ColorSetting::Never,
            wanted => wanted,
        };
        ConsoleOutput::new(match wanted {
            ColorSetting::Auto => ColorChoice::Auto,
            ColorSetting::Always => ColorChoice::Always,
            ColorSetting::Never => ColorChoice::Never,
        })
    }

    pub(crate) fn log_level(&self) -> LogLevel {
        self.config.as_ref().map_or(LogLevel::Info, |config| config.settings.log.level)
    }
}

/// The folders that are worked on besides the project. One that is in another is no folder besides it.
fn added_to(project: &Path, wanted: &[PathBuf]) -> Result<Vec<WorkspaceRoot>, CliFailure> {
    let mut added: Vec<WorkspaceRoot> = Vec::new();
    for folder in wanted {
        let what = format!("the folder {} can't be added", folder.display());
        let root = WorkspaceRoot::named(folder)
            .map_err(|error| CliFailure::usage(&what, &error, "Give a folder that exists: --add-dir DIR."))?;
        if project != root.folder() && project.starts_with(root.folder()) {
            return Err(CliFailure::usage(what, "the project is in it", "Name it as the project: -C DIR."));
        }
        let is_inside = |outer: &Path| root.folder().starts_with(outer);
        if is_inside(project) || added.iter().any(|other| is_inside(other.folder())) {
            continue;
        }
        added.retain(|other| !other.folder().starts_with(root.folder()));
        added.push(root);
    }
    Ok(added)
}

pub(crate) fn home() -> Option<PathBuf> {
    std::env::home_dir().and_then(|home| home.canonicalize().ok())
}

fn working_folder(wanted: Option<&Path>) -> Result<PathBuf, CliFailure> {
    let wanted = wanted.unwrap_or(Path::new("."));
    wanted
        .canonicalize()
        .and_then(|path| if path.is_dir() { Ok(path) } else { Err(std::io::ErrorKind::NotADirectory.into()) })
        .map_err(|error| {
            let what = format!("the folder {} can't be used", wanted.display());
            CliFailure::usage(what, error, "Choose another with -C, or go to one that exists.")
        })
}

fn project_files(root: &Path) -> ProjectConfigFiles {
    let folder = root.join(".helve");
    ProjectConfigFiles {
        root: root.to_owned(),
        config: folder.join("config.toml"),
        local: folder.join("local.toml"),
    }
}

/// A value that is not Unicode is no good value of any setting, and is told as a mistake like any other.
fn environment() -> Vec<(String, String)> {
    let pairs =
        std::env::vars_os().map(|(name, value)| (name.into_string(), value.to_string_lossy().into_owned()));
    pairs.filter_map(|(name, value)| Some((name.ok()?, value))).collect()
}

fn flags(everywhere: &GlobalArgs, own: &[(&str, String, &str)]) -> Vec<ConfigFlag> {
    let flag = |key: &str, value: &str, shown_as: &str| ConfigFlag {
        key: key.to_owned(),
        value: value.to_owned(),
        shown_as: shown_as.to_owned(),
    };
    let set = everywhere.set.iter().map(|(key, value)| flag(key, value, &format!("--set {key}")));
    let model = everywhere.model.iter().map(|name| flag("model", name, "--model"));
    let color = everywhere.color.iter().map(|when| flag("ui.color", when.name(), "--color"));
    let debug = everywhere.debug.then(|| flag("log.level", "debug", "--debug"));
    let own = own.iter().map(|(key, value, shown_as)| flag(key, value, shown_as));
    set.chain(model).chain(color).chain(debug).chain(own).collect()
}

/// The real time.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX))
    }
}
