//! The rules of the settings: read anew at each message, and written to the project's file when a person says so.

use std::path::PathBuf;

use helve_agent::{Book, Grounds, Rulebook};
use helve_config::{
    Action as Said, Config, Flag, Layer as From, PermissionRule, Sources, Trust, TrustStore, add_rules,
};
use helve_permissions::{Layer, Level, Places, Rule, Rules, Verdict};
use helve_protocol::Mode;

use crate::failure::Failure;
use crate::places::ADMINISTRATOR_FILE;
use crate::setup::{Setup, home};
use crate::text::one_line;

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

    /// Adds them to the project's file for this user. Who trusted the project before trusts it with them, and with nothing
    /// else: whatever else is in the files by then was shown to nobody.
    fn keep(&self, rules: &[Rule]) -> Result<(), String> {
        let mut trust = self.trust()?;
        let before = self.origins.load(&trust).map_err(|_| "the settings have mistakes".to_owned())?;
        if !before.restricted().is_empty() && before.trust() != Trust::Trusted {
            return Err("this project is not trusted yet (`helve trust`)".to_owned());
        }
        let rules: Vec<PermissionRule> = rules.iter().map(as_setting).collect();
        let file = &self.origins.project.local;
        // Not for what is read afterwards: that could be anything, and was shown to nobody.
        let shown = before.digest_with(&rules);
        add_rules(file, &rules)
            .map_err(|error| format!("{}: {error}", one_line(&file.display().to_string())))?;
        trust
            .trust(&self.origins.project.root, &shown)
            .map_err(|error| format!("the project could not be trusted again: {error}"))
    }
}

/// A rule as the settings have it.
fn as_setting(rule: &Rule) -> PermissionRule {
    let action = match rule.verdict {
        Verdict::Allow => Said::Allow,
        Verdict::Ask => Said::Ask,
        Verdict::Deny => Said::Deny,
    };
    PermissionRule { tool: rule.tool().to_owned(), pattern: rule.pattern().map(str::to_owned), action }
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
        credentials: crate::keys::there(home().as_deref(), &setup.root),
        is_nested: false,
    };
    Grounds { places, level }
}
