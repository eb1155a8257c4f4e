//! The rules of the settings: read anew at each message, and written to the project's file when a person says so.

use std::path::PathBuf;

use helve_agent::{JudgeContext, RuleSet, Rulebook};
use helve_config::{ConfigLayer as From, LoadedConfig, PermissionRule, ProjectTrust, TrustStore, add_rules};
use helve_permissions::{ConfinementLevel, LayeredRules, PermissionVerdict, ProjectContext, Rule, RuleLayer};

use crate::failure::CliFailure;
use crate::sandbox_policy::shown_of_home;
use crate::settings_origins::SettingsOrigins;
use crate::setup::{CliSetup, home};
use crate::text::one_line;

/// The rules of the settings and of the command line.
pub(crate) struct SettingsRulebook {
    origins: SettingsOrigins,
    given: Vec<(String, Rule)>,
}

impl SettingsRulebook {
    pub(crate) fn new(setup: &CliSetup) -> Result<SettingsRulebook, CliFailure> {
        // A list that others read as one of denies, asks and allows keeps that order.
        let mut given = Vec::new();
        for wanted in [PermissionVerdict::Deny, PermissionVerdict::Ask, PermissionVerdict::Allow] {
            for (verdict, text) in setup.rules.iter().filter(|(verdict, _)| *verdict == wanted) {
                let rule = Rule::parse(text, *verdict).map_err(|bad| {
                    let hint = "Such as --allow 'shell(npm test:*)' or --deny 'read(./secrets/**)'.";
                    CliFailure::usage(format!("--{verdict} can't be used"), bad, hint)
                })?;
                given.push((format!("--{verdict}"), rule));
            }
        }
        Ok(SettingsRulebook { origins: setup.origins.clone(), given })
    }

    fn trust(&self) -> Result<TrustStore, String> {
        TrustStore::read(&self.origins.trust).map_err(|error| error.to_string())
    }
}

impl Rulebook for SettingsRulebook {
    fn read(&self) -> Result<RuleSet, String> {
        let trust = self.trust()?;
        let told = |problems: helve_config::ConfigProblems| {
            problems.list().first().map(ToString::to_string).unwrap_or_default()
        };
        let config = self.origins.load(&trust).map_err(told)?;
        let mut rules = rules(&config);
        for (place, rule) in &self.given {
            rules.add(RuleLayer::Session, place, rule.clone());
        }
        let loosest = self.origins.loosest(&trust).map_err(told)?;
        let max_deletes = config.settings.permissions.max_deletes as usize;
        Ok(RuleSet { rules, loosest, max_deletes })
    }

    /// Adds them to the project's file for this user. Who trusted the project before trusts it with them, and with nothing
    /// else: whatever else is in the files by then was shown to nobody.
    fn keep(&self, rules: &[Rule]) -> Result<(), String> {
        let mut trust = self.trust()?;
        let before = self.origins.load(&trust).map_err(|_| "the settings have mistakes".to_owned())?;
        if !before.restricted().is_empty() && before.trust() != ProjectTrust::Trusted {
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
    let (tool, pattern) = (rule.tool().to_owned(), rule.pattern().map(str::to_owned));
    PermissionRule { tool, pattern, action: rule.verdict }
}

/// The rules of all layers, each with its place.
fn rules(config: &LoadedConfig) -> LayeredRules {
    let mut rules = LayeredRules::default();
    for (from, origin, rule) in config.permission_rules() {
        let layer = match from {
            From::Administrator => RuleLayer::Administrator,
            From::Flags | From::Environment => RuleLayer::Session,
            From::Project | From::Local => RuleLayer::Project,
            From::User => RuleLayer::User,
            From::BuiltIn => RuleLayer::BuiltIn,
        };
        rules.add(layer, origin.to_string(), Rule::new(&rule.tool, rule.pattern.as_deref(), rule.action));
    }
    rules
}

/// The folders of this program, by their names and as they really are.
fn own_folders(setup: &CliSetup) -> Vec<PathBuf> {
    let mut own = setup.places.own();
    own.extend(setup.places.own().iter().filter_map(|folder| folder.canonicalize().ok()));
    own.sort();
    own.dedup();
    own
}

/// Where calls are judged.
pub(crate) fn judge_context(setup: &CliSetup, level: ConfinementLevel) -> JudgeContext {
    let places = ProjectContext {
        root: setup.root.clone(),
        added: setup.added.iter().map(|root| root.folder().to_owned()).collect(),
        home: home(),
        shown: shown_of_home(setup),
        own: own_folders(setup),
        credentials: crate::credentials::programs_with_credentials(home().as_deref(), &setup.root),
        is_nested: false,
        git_folders: Vec::new(),
    };
    JudgeContext { places, level }
}
