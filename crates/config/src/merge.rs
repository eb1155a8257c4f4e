//! Layers laid over each other.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::check::missing_parts;
use crate::origin::{ConfigLayer, SettingOrigin};
use crate::problem::ConfigProblem;
use crate::setting_key::SettingKey;
use crate::shape::{SettingKind, settings_shape};
use crate::source_values::{SourceValues, SourcedValue};

/// Something that a source says and that does not count, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConfigNotice {
    /// The dotted key.
    pub key: String,
    /// Who set it, and where.
    pub origin: SettingOrigin,
    /// Why it does not count.
    pub reason: NoticeReason,
}

/// Why something that a source says does not count.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoticeReason {
    /// The user has not trusted this project.
    Untrusted,
    /// The user trusted this project before it asked for this.
    ChangedSinceTrusted,
    /// No project may set this, trusted or not.
    UserOnly,
    /// The rest of the table needs trust, and this is of no use without it.
    Incomplete,
    /// The administrator's file has another value.
    Fixed,
    /// The administrator's file allows this much only.
    AboveBound(Value),
}

impl fmt::Display for ConfigNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ", self.origin, self.key)?;
        match &self.reason {
            NoticeReason::Untrusted => f.write_str("is ignored: this project is not trusted"),
            NoticeReason::ChangedSinceTrusted => {
                f.write_str("is ignored: what this project asks for has changed since it was trusted")
            }
            NoticeReason::UserOnly => {
                f.write_str("is ignored: it counts in your own settings only, not in a project")
            }
            NoticeReason::Incomplete => {
                f.write_str("is ignored: the rest of it is in a project that is not trusted")
            }
            NoticeReason::Fixed => f.write_str("is ignored: the administrator has fixed it"),
            NoticeReason::AboveBound(Value::String(bound)) => {
                write!(f, "is cut to {bound}, the administrator's bound")
            }
            NoticeReason::AboveBound(bound) => write!(f, "is cut to {bound}, the administrator's bound"),
        }
    }
}

/// A value, who has set it, and who has set it in vain.
#[derive(Clone, Debug)]
pub(crate) struct MergedSetting {
    pub(crate) value: Value,
    pub(crate) origin: SettingOrigin,
    /// From the weakest; the built-in defaults are not counted.
    pub(crate) overridden: Vec<SettingOrigin>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct MergedSettings {
    pub(crate) leaves: BTreeMap<SettingKey, MergedSetting>,
    pub(crate) items: BTreeMap<SettingKey, Vec<SourcedValue>>,
}

impl MergedSettings {
    /// The defaults.
    pub(crate) fn built_in() -> MergedSettings {
        let mut merged = MergedSettings::default();
        settings_shape().walk(&SettingKey::root(), &mut |key, shape| {
            let is_leaf =
                !shape.facts.append && !matches!(shape.kind, SettingKind::Table(_) | SettingKind::Map(..));
            if let (true, Some(value)) = (is_leaf, &shape.default) {
                merged.set(key, value.clone(), SettingOrigin::BUILT_IN);
            }
        });
        merged
    }

    /// Lays a stronger source over what is there.
    pub(crate) fn add(&mut self, found: &SourceValues) {
        for (key, leaf) in &found.leaves {
            self.set(key, leaf.value.clone(), leaf.origin.clone());
        }
        self.add_items(found);
    }

    fn add_items(&mut self, found: &SourceValues) {
        for (key, items) in &found.items {
            let all = self.items.entry(key.clone()).or_default();
            all.extend(items.iter().cloned());
            // Stable: within a layer the order stays as it was written.
            all.sort_by_key(|item| Reverse(item.origin.layer));
        }
    }

    fn set(&mut self, key: &SettingKey, value: Value, origin: SettingOrigin) {
        let mut overridden = Vec::new();
        if let Some(weaker) = self.leaves.remove(key) {
            overridden = weaker.overridden;
            if weaker.origin.layer != ConfigLayer::BuiltIn {
                overridden.push(weaker.origin);
            }
        }
        self.leaves.insert(key.clone(), MergedSetting { value, origin, overridden });
    }

    /// Drops tables that are incomplete because a part of them is not trusted.
    pub(crate) fn drop_incomplete(&mut self, sources: &[SourceValues]) -> Vec<ConfigNotice> {
        let mut notices = Vec::new();
        for table in sources.iter().flat_map(|found| found.tables.keys()) {
            let Some(parts) = settings_shape().at(table).and_then(|shape| shape.as_table()) else { continue };
            let has = |name: &str| self.leaves.contains_key(&table.child(name));
            if missing_parts(table, &SettingOrigin::BUILT_IN, parts, has).is_empty() {
                continue;
            }
            for (key, setting) in self.leaves.extract_if(table.., |key, _| key.is_inside(table)) {
                notices.push(ConfigNotice {
                    key: key.to_string(),
                    origin: setting.origin,
                    reason: NoticeReason::Incomplete,
                });
            }
        }
        notices
    }

    /// Applies the administrator's file: limits are bounds, all else is fixed, and a table with a name of its
    /// own (a server, a provider) is taken as a whole, so that nobody can add to it.
    pub(crate) fn apply_administrator(
        &mut self,
        administrator: &SourceValues,
        others: &[SourceValues],
    ) -> Vec<ConfigNotice> {
        let mut notices: Vec<ConfigNotice> =
            others.iter().flat_map(|found| overruled(found, administrator)).collect();
        self.leaves.retain(|key, _| !is_taken_whole(key, administrator));
        for (key, leaf) in &administrator.leaves {
            if is_limit(key) {
                notices.extend(self.bound(key, leaf))
            } else {
                self.set(key, leaf.value.clone(), leaf.origin.clone())
            }
        }
        self.add_items(administrator);
        notices
    }

    fn bound(&mut self, key: &SettingKey, bound: &SourcedValue) -> Option<ConfigNotice> {
        let rank = |value: &Value| settings_shape().at(key).and_then(|shape| shape.rank(value));
        let loose = self.leaves.get(key).filter(|setting| match (rank(&setting.value), rank(&bound.value)) {
            (Some(rank), Some(most)) => rank > most,
            _ => true,
        });
        let notice = loose.filter(|setting| setting.origin.layer != ConfigLayer::BuiltIn).map(|setting| {
            ConfigNotice {
                key: key.to_string(),
                origin: setting.origin.clone(),
                reason: NoticeReason::AboveBound(bound.value.clone()),
            }
        });
        if loose.is_some() || !self.leaves.contains_key(key) {
            self.set(key, bound.value.clone(), bound.origin.clone());
        }
        notice
    }

    /// All values in the form that the typed settings are read from.
    pub(crate) fn to_json(&self) -> Value {
        let mut root = Map::new();
        for (key, setting) in &self.leaves {
            insert(&mut root, key.parts(), setting.value.clone());
        }
        for (key, items) in &self.items {
            insert(&mut root, key.parts(), items.iter().map(|item| item.value.clone()).collect());
        }
        Value::Object(root)
    }
}

fn is_limit(key: &SettingKey) -> bool {
    settings_shape().at(key).is_some_and(|shape| shape.facts.limit)
}

fn is_taken_whole(key: &SettingKey, administrator: &SourceValues) -> bool {
    !administrator.leaves.contains_key(key) && administrator.tables.keys().any(|table| key.is_inside(table))
}

/// What a source sets although the administrator has decided it otherwise.
fn overruled(found: &SourceValues, administrator: &SourceValues) -> Vec<ConfigNotice> {
    let is_overruled = |key: &SettingKey, leaf: &SourcedValue| match administrator.leaves.get(key) {
        Some(decided) => !is_limit(key) && decided.value != leaf.value,
        None => is_taken_whole(key, administrator),
    };
    let overruled = found.leaves.iter().filter(|(key, leaf)| is_overruled(key, leaf));
    let notice = |(key, leaf): (&SettingKey, &SourcedValue)| ConfigNotice {
        key: key.to_string(),
        origin: leaf.origin.clone(),
        reason: NoticeReason::Fixed,
    };
    overruled.map(notice).collect()
}

fn insert(table: &mut Map<String, Value>, path: &[String], value: Value) {
    match path {
        [] => {}
        [name] => {
            table.insert(name.clone(), value);
        }
        [name, rest @ ..] => {
            let inner = table.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}

/// Tables that lack something in all of these sources together, each at its strongest mention.
pub(crate) fn incomplete_tables(sources: &[&SourceValues]) -> Vec<ConfigProblem> {
    let mut tables: BTreeMap<&SettingKey, &SettingOrigin> = BTreeMap::new();
    for found in sources {
        tables.extend(&found.tables);
    }
    let mut problems = Vec::new();
    for (key, origin) in tables {
        let may_be_in_a_gap = sources.iter().any(|found| found.has_gaps);
        if let (Some(table), false) =
            (settings_shape().at(key).and_then(|shape| shape.as_table()), may_be_in_a_gap)
        {
            let has = |name: &str| sources.iter().any(|found| found.mentions(&key.child(name)));
            problems.extend(missing_parts(key, origin, table, has));
        }
    }
    problems
}
