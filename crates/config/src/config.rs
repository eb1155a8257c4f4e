//! Everything put together: sources in, one typed value out.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Value, json};

use crate::merge::{ConfigNotice, MergedSettings, incomplete_tables};
use crate::origin::{ConfigLayer, SettingOrigin};
use crate::problem::{ConfigProblem, ConfigProblems};
use crate::project_trust::{ProjectTrust, ProjectVerdict, RestrictedSetting, digest_with, judge_project};
use crate::read::{read_file, read_flags, read_variables};
use crate::setting_key::SettingKey;
use crate::settings::{PermissionRule, Settings};
use crate::shape::{SettingKind, SettingShape, settings_shape};
use crate::source_values::SourceValues;
use crate::sources::ConfigSources;

/// The settings that count, and how they came about.
#[derive(Clone, Debug)]
pub struct LoadedConfig {
    /// The settings themselves.
    pub settings: Settings,
    entries: Vec<ConfigEntry>,
    /// Of the items of each list that all layers add to.
    item_origins: BTreeMap<SettingKey, Vec<SettingOrigin>>,
    notices: Vec<ConfigNotice>,
    trust: ProjectTrust,
    restricted: Vec<RestrictedSetting>,
    digest: String,
    asked: (SourceValues, SourceValues),
}

/// One setting for people to look at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConfigEntry {
    /// `limits.max_steps`, `permission[0]`.
    pub key: String,
    /// `None` if nobody has set it and there is no default.
    pub value: Option<Value>,
    /// Who set the value that counts, and where.
    pub origin: SettingOrigin,
    /// The weaker sources that set it too, from the weakest; the built-in default is not counted.
    pub overridden: Vec<SettingOrigin>,
    /// It may hold a password or a key: not to be shown unasked.
    pub secret: bool,
}

/// Reads all sources. Either everything is right, or every problem is reported at once.
pub fn load(sources: &ConfigSources<'_>) -> Result<LoadedConfig, ConfigProblems> {
    let mut problems = Vec::new();
    let read = LayerValues::all(sources, &mut problems);
    problems.extend(read.incomplete_tables());
    if !problems.is_empty() {
        return Err(ConfigProblems::new(problems));
    }
    let root = sources.project.as_ref().map(|project| project.root.as_path());
    read.into_config(root.and_then(|root| sources.trust.digest_of(root)))
}

/// What each source says.
struct LayerValues {
    administrator: SourceValues,
    user: SourceValues,
    project: SourceValues,
    local: SourceValues,
    /// Variables, then flags.
    given: Vec<SourceValues>,
}

impl LayerValues {
    fn all(sources: &ConfigSources<'_>, problems: &mut Vec<ConfigProblem>) -> LayerValues {
        let mut file = |layer, path: Option<&PathBuf>| match path {
            Some(path) => read_file(layer, path, problems),
            None => SourceValues::default(),
        };
        let project = sources.project.as_ref();
        let administrator = file(ConfigLayer::Administrator, sources.administrator.as_ref());
        let user = file(ConfigLayer::User, Some(&sources.user));
        let local = file(ConfigLayer::Local, project.map(|project| &project.local));
        let project = file(ConfigLayer::Project, project.map(|project| &project.config));
        let mut given = read_variables(&sources.environment, problems);
        given.extend(read_flags(&sources.flags, problems));
        LayerValues { administrator, user, project, local, given }
    }

    /// The administrator's tables are taken whole, so they are judged alone.
    fn incomplete_tables(&self) -> Vec<ConfigProblem> {
        let others: Vec<&SourceValues> =
            [&self.user, &self.project, &self.local].into_iter().chain(&self.given).collect();
        let mut problems = incomplete_tables(&others);
        problems.extend(incomplete_tables(&[&self.administrator]));
        problems
    }

    fn into_config(self, trusted: Option<&str>) -> Result<LoadedConfig, ConfigProblems> {
        let mut merged = MergedSettings::built_in();
        merged.add(&self.user);
        let judged = judge_project(self.project, self.local, &merged, trusted);
        let mut notices = judged.notices();
        let ProjectVerdict { project, local, trust, restricted, digest, asked, .. } = judged;
        for found in [&project, &local].into_iter().chain(&self.given) {
            merged.add(found);
        }
        let others: Vec<SourceValues> = [self.user, project, local].into_iter().chain(self.given).collect();
        notices.extend(merged.drop_incomplete(&others));
        notices.extend(merged.apply_administrator(&self.administrator, &others));
        Ok(LoadedConfig {
            settings: to_settings(&merged)?,
            entries: entries(&merged),
            item_origins: item_origins(&merged),
            notices,
            trust,
            restricted,
            digest,
            asked,
        })
    }
}

/// Everything was checked against the schema of this very type, so this can't fail unless the two disagree.
fn to_settings(merged: &MergedSettings) -> Result<Settings, ConfigProblems> {
    serde_json::from_value(merged.to_json()).map_err(|error| {
        let problem = ConfigProblem::new(
            SettingOrigin::BUILT_IN,
            format!("the checked settings can't be used: {error}"),
        );
        ConfigProblems::new(vec![problem.hint("this is a bug in Helve: please report it")])
    })
}

fn item_origins(merged: &MergedSettings) -> BTreeMap<SettingKey, Vec<SettingOrigin>> {
    let origins = merged.items.iter();
    origins
        .map(|(key, items)| (key.clone(), items.iter().map(|item| item.origin.clone()).collect()))
        .collect()
}

impl LoadedConfig {
    /// Who has set a value, by the key that [`LoadedConfig::entries`] shows. `None` if there is no such key.
    pub fn origin(&self, key: &str) -> Option<&SettingOrigin> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.origin)
    }

    /// A mistake that only whoever uses a value can see, at the place where it was set.
    pub fn problem(&self, key: &str, message: &str, hint: &str) -> ConfigProblem {
        let origin = self.origin(key).cloned().unwrap_or(SettingOrigin::BUILT_IN);
        ConfigProblem::new(origin, message).about(&key).hint(hint)
    }

    /// Every setting, sorted by key: defaults and those that nobody has set too.
    pub fn entries(&self) -> &[ConfigEntry] {
        &self.entries
    }

    /// What does not count although a source says it.
    pub fn notices(&self) -> &[ConfigNotice] {
        &self.notices
    }

    /// How things stand between the user and this project.
    pub fn trust(&self) -> ProjectTrust {
        self.trust
    }

    /// What the project asks for that needs trust, whether or not it has it.
    pub fn restricted(&self) -> &[RestrictedSetting] {
        &self.restricted
    }

    /// What to hand to [`TrustStore::trust`](crate::TrustStore::trust) once the user agrees to all of [`LoadedConfig::restricted`].
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// What to hand to [`TrustStore::trust`](crate::TrustStore::trust) once these rules are added to the user's own file in the project: it holds for
    /// exactly what was read here, and for them.
    pub fn digest_with(&self, rules: &[PermissionRule]) -> String {
        let (project, local) = &self.asked;
        digest_with(project, local.clone(), rules)
    }

    /// The rules about single actions, those of the strongest layer first.
    pub fn permission_rules(&self) -> Vec<(ConfigLayer, SettingOrigin, PermissionRule)> {
        let key = SettingKey::root().child("permission");
        let origins = self.item_origins.get(&key).map(Vec::as_slice).unwrap_or_default();
        let rules = origins.iter().zip(&self.settings.permission);
        rules.map(|(origin, rule)| (origin.layer, origin.clone(), rule.clone())).collect()
    }
}

fn entries(merged: &MergedSettings) -> Vec<ConfigEntry> {
    let mut list = EntryCollector { merged, entries: Vec::new() };
    list.add(&SettingKey::root(), settings_shape());
    list.entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    list.entries.into_iter().map(|(_, entry)| entry).collect()
}

struct EntryCollector<'a> {
    merged: &'a MergedSettings,
    /// With what they are sorted by.
    entries: Vec<((SettingKey, usize), ConfigEntry)>,
}

impl EntryCollector<'_> {
    fn add(&mut self, key: &SettingKey, shape: &SettingShape) {
        match &shape.kind {
            SettingKind::Table(table) => {
                for (name, shape) in &table.keys {
                    self.add(&key.child(name), shape);
                }
            }
            SettingKind::Map(_, entry) => self.add_map(key, shape, entry),
            SettingKind::List(_) if shape.facts.append => self.add_items(key, shape),
            _ => self.add_leaf(key, shape),
        }
    }

    fn add_map(&mut self, key: &SettingKey, shape: &SettingShape, entry: &SettingShape) {
        let inside =
            self.merged.leaves.range(key..).map(|(key, _)| key).take_while(|inner| inner.is_inside(key));
        let mut names: Vec<String> =
            inside.filter_map(|inner| inner.parts().get(key.parts().len()).cloned()).collect();
        names.dedup();
        if names.is_empty() {
            self.push((key.clone(), 0), shape, built_in(key, Some(json!({}))));
        }
        for name in names {
            self.add(&key.child(&name), entry);
        }
    }

    fn add_items(&mut self, key: &SettingKey, shape: &SettingShape) {
        let items = self.merged.items.get(key).map(Vec::as_slice).unwrap_or_default();
        if items.is_empty() {
            self.push((key.clone(), 0), shape, built_in(key, Some(json!([]))));
        }
        for (index, item) in items.iter().enumerate() {
            let mut entry = built_in(&key.item(index), Some(item.value.clone()));
            entry.origin = item.origin.clone();
            self.push((key.clone(), index), shape, entry);
        }
    }

    fn add_leaf(&mut self, key: &SettingKey, shape: &SettingShape) {
        let entry = match self.merged.leaves.get(key) {
            None => built_in(key, shape.default.clone()),
            Some(setting) => ConfigEntry {
                value: Some(setting.value.clone()),
                origin: setting.origin.clone(),
                overridden: setting.overridden.clone(),
                ..built_in(key, None)
            },
        };
        self.push((key.clone(), 0), shape, entry);
    }

    fn push(&mut self, order: (SettingKey, usize), shape: &SettingShape, mut entry: ConfigEntry) {
        entry.secret = shape.facts.secret;
        self.entries.push((order, entry));
    }
}

fn built_in(key: &SettingKey, value: Option<Value>) -> ConfigEntry {
    ConfigEntry {
        key: key.to_string(),
        value,
        origin: SettingOrigin::BUILT_IN,
        overridden: Vec::new(),
        secret: false,
    }
}
