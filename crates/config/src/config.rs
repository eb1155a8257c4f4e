//! Everything put together: sources in, one typed value out.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Value, json};

use crate::found::Found;
use crate::key::Key;
use crate::merge::{Merged, Notice, incomplete_tables};
use crate::place::{Layer, Origin};
use crate::problem::{Problem, Problems};
use crate::read::{read_file, read_flags, read_variables};
use crate::restricted::{Judged, Restricted, Trust, digest_with, judge};
use crate::settings::{Hook, HookEvent, PermissionRule, Settings};
use crate::shape::{Kind, Shape, shape};
use crate::trust::TrustStore;

/// Where to look. Files need not exist.
#[derive(Clone, Debug)]
pub struct Sources<'a> {
    pub administrator: Option<PathBuf>,
    pub user: PathBuf,
    pub project: Option<ProjectFiles>,
    /// All variables; those that set nothing are left alone.
    pub environment: Vec<(String, String)>,
    /// In the order of the command line: the later one wins.
    pub flags: Vec<Flag>,
    pub trust: &'a TrustStore,
}

#[derive(Clone, Debug)]
pub struct ProjectFiles {
    /// The canonical path that trust is given to.
    pub root: PathBuf,
    /// The file that the project brings along.
    pub config: PathBuf,
    /// The user's own file in this project.
    pub local: PathBuf,
}

/// A setting given on the command line.
#[derive(Clone, Debug)]
pub struct Flag {
    /// Dotted, as in a file.
    pub key: String,
    pub value: String,
    /// What the user typed: `--model`, `--set limits.max_steps`.
    pub shown_as: String,
}

/// The settings that count, and how they came about.
#[derive(Clone, Debug)]
pub struct Config {
    pub settings: Settings,
    entries: Vec<Entry>,
    /// Of the items of each list that all layers add to.
    item_origins: BTreeMap<Key, Vec<Origin>>,
    notices: Vec<Notice>,
    trust: Trust,
    restricted: Vec<Restricted>,
    digest: String,
    asked: (Found, Found),
}

/// One setting for people to look at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// `limits.max_steps`, `permission[0]`.
    pub key: String,
    /// `None` if nobody has set it and there is no default.
    pub value: Option<Value>,
    pub origin: Origin,
    /// The weaker sources that set it too, from the weakest; the built-in default is not counted.
    pub overridden: Vec<Origin>,
    /// It may hold a password or a key: not to be shown unasked.
    pub secret: bool,
}

/// Reads all sources. Either everything is right, or every problem is reported at once.
pub fn load(sources: &Sources<'_>) -> Result<Config, Problems> {
    let mut problems = Vec::new();
    let read = Read::all(sources, &mut problems);
    problems.extend(read.incomplete_tables());
    if !problems.is_empty() {
        return Err(Problems::new(problems));
    }
    let root = sources.project.as_ref().map(|project| project.root.as_path());
    read.put_together(root.and_then(|root| sources.trust.digest_of(root)))
}

/// What each source says.
struct Read {
    administrator: Found,
    user: Found,
    project: Found,
    local: Found,
    /// Variables, then flags.
    given: Vec<Found>,
}

impl Read {
    fn all(sources: &Sources<'_>, problems: &mut Vec<Problem>) -> Read {
        let mut file = |layer, path: Option<&PathBuf>| match path {
            Some(path) => read_file(layer, path, problems),
            None => Found::default(),
        };
        let project = sources.project.as_ref();
        let administrator = file(Layer::Administrator, sources.administrator.as_ref());
        let user = file(Layer::User, Some(&sources.user));
        let local = file(Layer::Local, project.map(|project| &project.local));
        let project = file(Layer::Project, project.map(|project| &project.config));
        let mut given = read_variables(&sources.environment, problems);
        given.extend(read_flags(&sources.flags, problems));
        Read { administrator, user, project, local, given }
    }

    /// The administrator's tables are taken whole, so they are judged alone.
    fn incomplete_tables(&self) -> Vec<Problem> {
        let others: Vec<&Found> =
            [&self.user, &self.project, &self.local].into_iter().chain(&self.given).collect();
        let mut problems = incomplete_tables(&others);
        problems.extend(incomplete_tables(&[&self.administrator]));
        problems
    }

    fn put_together(self, trusted: Option<&str>) -> Result<Config, Problems> {
        let mut merged = Merged::built_in();
        merged.add(&self.user);
        let judged = judge(self.project, self.local, &merged, trusted);
        let mut notices = judged.notices();
        let Judged { project, local, trust, restricted, digest, asked, .. } = judged;
        for found in [&project, &local].into_iter().chain(&self.given) {
            merged.add(found);
        }
        let others: Vec<Found> = [self.user, project, local].into_iter().chain(self.given).collect();
        notices.extend(merged.drop_incomplete(&others));
        notices.extend(merged.rule(&self.administrator, &others));
        Ok(Config {
            settings: typed(&merged)?,
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
fn typed(merged: &Merged) -> Result<Settings, Problems> {
    serde_json::from_value(merged.to_json()).map_err(|error| {
        let problem = Problem::new(Origin::BUILT_IN, format!("the checked settings can't be used: {error}"));
        Problems::new(vec![problem.hint("this is a mistake in Helve: please report it")])
    })
}

fn item_origins(merged: &Merged) -> BTreeMap<Key, Vec<Origin>> {
    let origins = merged.items.iter();
    origins
        .map(|(key, items)| (key.clone(), items.iter().map(|item| item.origin.clone()).collect()))
        .collect()
}

impl Config {
    /// Who has set a value, by the key that [`Config::entries`] shows. `None` if there is no such key.
    pub fn origin(&self, key: &str) -> Option<&Origin> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.origin)
    }

    /// A mistake that only whoever uses a value can see, at the place where it was set.
    pub fn problem(&self, key: &str, message: &str, hint: &str) -> Problem {
        let origin = self.origin(key).cloned().unwrap_or(Origin::BUILT_IN);
        Problem::new(origin, message).about(&key).hint(hint)
    }

    /// Every setting, sorted by key: defaults and those that nobody has set too.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What does not count although a source says it.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    pub fn trust(&self) -> Trust {
        self.trust
    }

    /// What the project asks for that needs trust, whether or not it has it.
    pub fn restricted(&self) -> &[Restricted] {
        &self.restricted
    }

    /// What to hand to [`TrustStore::trust`] once the user agrees to all of [`Config::restricted`].
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// What to hand to [`TrustStore::trust`] once these rules are added to the user's own file in the project: it holds for
    /// exactly what was read here, and for them.
    pub fn digest_with(&self, rules: &[PermissionRule]) -> String {
        let (project, local) = &self.asked;
        digest_with(project, local.clone(), rules)
    }

    /// The rules about single actions, those of the strongest layer first.
    pub fn permission_rules(&self) -> Vec<(Layer, Origin, PermissionRule)> {
        self.sourced(&Key::root().child("permission"), &self.settings.permission)
    }

    /// The hooks of one event, those of the strongest layer first.
    pub fn hooks(&self, event: HookEvent) -> Vec<(Layer, Origin, Hook)> {
        let name = serde_json::to_value(event).ok();
        let name = name.as_ref().and_then(Value::as_str).unwrap_or_default();
        let hooks = self.settings.hooks.0.get(&event).map(Vec::as_slice).unwrap_or_default();
        self.sourced(&Key::root().child("hooks").child(name), hooks)
    }

    fn sourced<T: Clone>(&self, key: &Key, items: &[T]) -> Vec<(Layer, Origin, T)> {
        let origins = self.item_origins.get(key).map(Vec::as_slice).unwrap_or_default();
        origins.iter().zip(items).map(|(origin, item)| (origin.layer, origin.clone(), item.clone())).collect()
    }
}

fn entries(merged: &Merged) -> Vec<Entry> {
    let mut list = Listing { merged, entries: Vec::new() };
    list.add(&Key::root(), shape());
    list.entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    list.entries.into_iter().map(|(_, entry)| entry).collect()
}

struct Listing<'a> {
    merged: &'a Merged,
    /// With what they are sorted by.
    entries: Vec<((Key, usize), Entry)>,
}

impl Listing<'_> {
    fn add(&mut self, key: &Key, shape: &Shape) {
        match &shape.kind {
            Kind::Table(table) => {
                for (name, shape) in &table.keys {
                    self.add(&key.child(name), shape);
                }
            }
            Kind::Map(_, entry) => self.add_map(key, shape, entry),
            Kind::List(_) if shape.facts.append => self.add_items(key, shape),
            _ => self.add_leaf(key, shape),
        }
    }

    fn add_map(&mut self, key: &Key, shape: &Shape, entry: &Shape) {
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

    fn add_items(&mut self, key: &Key, shape: &Shape) {
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

    fn add_leaf(&mut self, key: &Key, shape: &Shape) {
        let entry = match self.merged.leaves.get(key) {
            None => built_in(key, shape.default.clone()),
            Some(setting) => Entry {
                value: Some(setting.value.clone()),
                origin: setting.origin.clone(),
                overridden: setting.overridden.clone(),
                ..built_in(key, None)
            },
        };
        self.push((key.clone(), 0), shape, entry);
    }

    fn push(&mut self, order: (Key, usize), shape: &Shape, mut entry: Entry) {
        entry.secret = shape.facts.secret;
        self.entries.push((order, entry));
    }
}

fn built_in(key: &Key, value: Option<Value>) -> Entry {
    Entry { key: key.to_string(), value, origin: Origin::BUILT_IN, overridden: Vec::new(), secret: false }
}
