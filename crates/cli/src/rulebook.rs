//! The rules of the settings: read anew at each message, and written to the project's file when a person says so.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use helve_agent::{Book, Grounds, Rulebook};
use helve_config::{Action as Said, Config, Flag, Layer as From, Sources, Trust, TrustStore};
use helve_permissions::{Layer, Level, Places, Rule, Rules, Verdict};
use helve_protocol::Mode;

use crate::failure::Failure;
use crate::places::ADMINISTRATOR_FILE;
use crate::setup::{Setup, home};

/// Where the settings come from, so that they can be read again.
#[derive(Clone, Debug)]
pub(crate) struct Origins {
    pub(crate) user: PathBuf,
    pub(crate) trust: PathBuf,
    pub(crate) project: helve_config::ProjectFiles,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) flags: Vec<Flag>,
}

impl Origins {
    pub(crate) fn load(&self, trust: &TrustStore) -> Result<Config, helve_config::Problems> {
        self.load_with(trust, self.flags.clone())
    }

    fn load_with(&self, trust: &TrustStore, flags: Vec<Flag>) -> Result<Config, helve_config::Problems> {
        helve_config::load(&Sources {
            administrator: Some(PathBuf::from(ADMINISTRATOR_FILE)),
            user: self.user.clone(),
            project: Some(self.project.clone()),
            environment: self.environment.clone(),
            flags,
            trust,
        })
    }

    /// The loosest mode that the administrator leaves: what becomes of the loosest there is.
    fn loosest(&self, trust: &TrustStore) -> Result<Mode, helve_config::Problems> {
        let (key, value) = ("permissions.mode".to_owned(), "bypass".to_owned());
        let flag = Flag { key, value, shown_as: "--permission-mode".to_owned() };
        Ok(self.load_with(trust, vec![flag])?.settings.permissions.mode)
    }
}

/// The rules of the settings and of the command line.
pub(crate) struct SettingsBook {
    origins: Origins,
    given: Vec<(String, Rule)>,
}

impl SettingsBook {
    pub(crate) fn new(setup: &Setup) -> Result<SettingsBook, Failure> {
        // A list that others read as one of denies, asks and allows keeps that order.
        let mut given = Vec::new();
        for wanted in [Verdict::Deny, Verdict::Ask, Verdict::Allow] {
            for (verdict, text) in setup.rules.iter().filter(|(verdict, _)| *verdict == wanted) {
                let rule = Rule::parse(text, *verdict).map_err(|bad| {
                    let hint = "Such as --allow 'shell(npm test:*)' or --deny 'read(./secrets/**)'.";
                    Failure::usage(format!("--{verdict} can't be used"), bad, hint)
                })?;
                given.push((format!("--{verdict}"), rule));
            }
        }
        Ok(SettingsBook { origins: setup.origins.clone(), given })
    }

    fn trust(&self) -> Result<TrustStore, String> {
        TrustStore::read(&self.origins.trust).map_err(|error| error.to_string())
    }
}

impl Rulebook for SettingsBook {
    fn read(&self) -> Result<Book, String> {
        let trust = self.trust()?;
        let told = |problems: helve_config::Problems| {
            problems.list().first().map(ToString::to_string).unwrap_or_default()
        };
        let config = self.origins.load(&trust).map_err(told)?;
        let mut rules = rules(&config);
        for (place, rule) in &self.given {
            rules.add(Layer::Session, place, rule.clone());
        }
        let loosest = self.origins.loosest(&trust).map_err(told)?;
        let max_deletes = config.settings.permissions.max_deletes as usize;
        Ok(Book { rules, loosest, max_deletes })
    }

    /// Adds them to the project's file for this user. Who trusted the project before trusts it with them.
    fn keep(&self, rules: &[Rule]) -> Result<(), String> {
        let mut trust = self.trust()?;
        let file = &self.origins.project.local;
        let shown = |error: std::io::Error| format!("{}: {error}", file.display());
        let before = self.origins.load(&trust).map_err(|_| "the settings have mistakes".to_owned())?;
        if !before.restricted().is_empty() && before.trust() != Trust::Trusted {
            return Err("this project is not trusted yet (`helve trust`)".to_owned());
        }
        let old = match fs::read_to_string(file) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(shown(error)),
        };
        let mut text = old.clone().unwrap_or_default();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        rules.iter().for_each(|rule| text.push_str(&written(rule)));
        write(file, &text).map_err(shown)?;
        // It is this user's, and none of the repository's.
        let ignores = file.with_file_name(".gitignore");
        if !ignores.exists() {
            write(&ignores, "local.toml\n").map_err(shown)?;
        }
        match self.origins.load(&trust) {
            Ok(config) => trust
                .trust(&self.origins.project.root, config.digest())
                .map_err(|error| format!("the project could not be trusted again: {error}")),
            Err(_) => {
                let back = old.map_or_else(|| fs::remove_file(file), |old| write(file, &old));
                back.map_err(shown)?;
                Err(format!("{} has rules in a form that can't be added to", file.display()))
            }
        }
    }
}

/// A rule as a table of the settings.
fn written(rule: &Rule) -> String {
    let quoted = |text: &str| toml_string(text);
    let pattern =
        rule.pattern().map(|pattern| format!("pattern = {}\n", quoted(pattern))).unwrap_or_default();
    format!("\n[[permission]]\ntool = {}\n{pattern}action = \"{}\"\n", quoted(rule.tool()), rule.verdict)
}

/// A text in quotes, as TOML has it. JSON's escapes are among TOML's.
fn toml_string(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// All of it or nothing.
fn write(file: &Path, text: &str) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(text.as_bytes())?;
    new.as_file().sync_all()?;
    new.persist(file).map_err(|error| error.error)?;
    Ok(())
}

/// The rules of all layers, each with its place.
fn rules(config: &Config) -> Rules {
    let mut rules = Rules::default();
    for (from, origin, rule) in config.permission_rules() {
        let layer = match from {
            From::Administrator => Layer::Administrator,
            From::Flags | From::Environment => Layer::Session,
            From::Project | From::Local => Layer::Project,
            From::User => Layer::User,
            From::BuiltIn => Layer::BuiltIn,
        };
        let verdict = match rule.action {
            Said::Allow => Verdict::Allow,
            Said::Ask => Verdict::Ask,
            Said::Deny => Verdict::Deny,
        };
        rules.add(layer, origin.to_string(), Rule::new(&rule.tool, rule.pattern.as_deref(), verdict));
    }
    rules
}

/// Where calls are judged.
pub(crate) fn grounds(setup: &Setup, level: Level) -> Grounds {
    let places = Places {
        root: setup.root.clone(),
        added: setup.added.iter().map(|root| root.folder().to_owned()).collect(),
        home: home(),
        own: setup.places.own(),
    };
    Grounds { places, level }
}
