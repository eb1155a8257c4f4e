//! What a project may not decide for a user who has not trusted it.
//!
//! A project's files come with a `git clone`. Whatever in them could run a command, send something somewhere
//! or loosen a limit is ignored until the user has seen it and trusted the project.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::found::{Found, Leaf};
use crate::key::Key;
use crate::merge::{Merged, Notice, Reason};
use crate::place::{Layer, Origin, Place};
use crate::settings::PermissionRule;
use crate::shape::{Untrusted, shape};

/// How things stand between the user and a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// The project asks for nothing that needs trust.
    NothingToTrust,
    /// What the project asks for is what the user has trusted.
    Trusted,
    /// The user has trusted something else than what it asks for now.
    Changed,
    /// The user has never trusted this project.
    Untrusted,
}

/// Something that a project asks for and that needs trust.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Restricted {
    pub key: String,
    pub value: Value,
    pub origin: Origin,
}

/// A project's two files with the verdict about them.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) project: Found,
    pub(crate) local: Found,
    pub(crate) trust: Trust,
    pub(crate) restricted: Vec<Restricted>,
    pub(crate) digest: String,
    /// Both files as they are, trusted or not.
    pub(crate) asked: (Found, Found),
    /// What no project may set, and this one does.
    refused: Vec<Notice>,
}

impl Judged {
    /// What does not count, as things stand.
    pub(crate) fn notices(&self) -> Vec<Notice> {
        let reason = match self.trust {
            Trust::NothingToTrust | Trust::Trusted => return self.refused.clone(),
            Trust::Changed => Reason::ChangedSinceTrusted,
            Trust::Untrusted => Reason::Untrusted,
        };
        let notice = |item: &Restricted| Notice {
            key: item.key.clone(),
            origin: item.origin.clone(),
            reason: reason.clone(),
        };
        self.refused.iter().cloned().chain(self.restricted.iter().map(notice)).collect()
    }
}

/// Lets through what may count. `below` is what the weaker layers say, `trusted` the digest that the user has
/// trusted for this project.
pub(crate) fn judge(mut project: Found, mut local: Found, below: &Merged, trusted: Option<&str>) -> Judged {
    let refused = [&mut project, &mut local].into_iter().flat_map(refuse).collect();
    let digest = digest(&project, &local);
    let asked = (project.clone(), local.clone());
    let (harmless_project, mut restricted) = split(&project, below);
    let mut below = below.clone();
    below.add(&harmless_project);
    let (harmless_local, more) = split(&local, &below);
    restricted.extend(more);
    let trust = match trusted {
        _ if restricted.is_empty() => Trust::NothingToTrust,
        Some(trusted) if trusted == digest => Trust::Trusted,
        Some(_) => Trust::Changed,
        None => Trust::Untrusted,
    };
    let (project, local) =
        if trust == Trust::Trusted { (project, local) } else { (harmless_project, harmless_local) };
    Judged { project, local, trust, restricted, digest, asked, refused }
}

/// Takes out what is for the user alone: whoever could choose the keys could make a no mean yes.
fn refuse(found: &mut Found) -> Vec<Notice> {
    let is_refused = |key: &Key| shape().at(key).is_some_and(|shape| shape.facts.user_only);
    let refused = found.leaves.extract_if(.., |key, _| is_refused(key));
    let notice = |(key, leaf): (Key, Leaf)| Notice {
        key: key.to_string(),
        origin: leaf.origin,
        reason: Reason::UserOnly,
    };
    refused.map(notice).collect()
}

/// What counts without trust, and what does not.
fn split(found: &Found, below: &Merged) -> (Found, Vec<Restricted>) {
    let mut harmless = found.clone();
    let leaves = harmless.leaves.extract_if(.., |key, leaf| !leaf_is_harmless(key, leaf, below));
    let mut restricted: Vec<Restricted> = leaves.map(|(key, leaf)| item(key.to_string(), leaf)).collect();
    for (key, items) in &mut harmless.items {
        let numbered = std::mem::take(items).into_iter().enumerate();
        for (index, leaf) in numbered {
            if item_is_harmless(key, &leaf) {
                items.push(leaf)
            } else {
                restricted.push(item(key.item(index).to_string(), leaf))
            }
        }
    }
    (harmless, restricted)
}

fn item(key: String, leaf: Leaf) -> Restricted {
    Restricted { key, value: leaf.value, origin: leaf.origin }
}

/// Whoever is not known is not trusted.
fn untrusted(key: &Key) -> Untrusted {
    shape().at(key).map_or(Untrusted::Nothing, |shape| shape.facts.untrusted)
}

fn leaf_is_harmless(key: &Key, leaf: &Leaf, below: &Merged) -> bool {
    match untrusted(key) {
        Untrusted::Nothing => false,
        Untrusted::Anything => true,
        Untrusted::Tighten => {
            let rank = |value: &Value| shape().at(key).and_then(|shape| shape.rank(value));
            match (rank(&leaf.value), below.leaves.get(key)) {
                (Some(_), None) => true,
                (Some(new), Some(setting)) => rank(&setting.value).is_some_and(|old| new <= old),
                (None, _) => false,
            }
        }
    }
}

fn item_is_harmless(key: &Key, item: &Leaf) -> bool {
    match untrusted(key) {
        Untrusted::Nothing => false,
        Untrusted::Anything => true,
        Untrusted::Tighten => {
            matches!(item.value.get("action").and_then(Value::as_str), Some("deny" | "ask"))
        }
    }
}

/// A fingerprint of all that needs trust, whatever the weaker layers say and wherever in its file it stands.
fn digest(project: &Found, local: &Found) -> String {
    let canonical = Value::Array(vec![asked_for(project), asked_for(local)]).to_string();
    blake3::hash(canonical.as_bytes()).to_hex().to_string()
}

/// The fingerprint that the same files have once these rules stand at the end of the second.
pub(crate) fn digest_with(project: &Found, mut local: Found, rules: &[PermissionRule]) -> String {
    let item = |rule: &PermissionRule| {
        let Ok(Value::Object(fields)) = serde_json::to_value(rule) else { return Value::Null };
        let fields: BTreeMap<String, Value> =
            fields.into_iter().filter(|(_, value)| !value.is_null()).collect();
        fields.into_iter().collect()
    };
    let origin = Origin { layer: Layer::Local, place: Place::Variable(String::new()) };
    let items = rules.iter().map(|rule| Leaf { value: item(rule), origin: origin.clone() });
    local.items.entry(Key::root().child("permission")).or_default().extend(items);
    digest(project, &local)
}

/// The keys are sorted, and so are those inside the values: see `Node::to_json`.
fn asked_for(found: &Found) -> Value {
    let leaves = found.leaves.iter().filter(|(key, _)| untrusted(key) != Untrusted::Anything);
    let leaves = leaves.map(|(key, leaf)| (key.to_string(), leaf.value.clone()));
    // The whole list, because a rule that allows reaches further when the one before it is gone.
    let lists =
        found.items.iter().filter(|(key, items)| !items.iter().all(|item| item_is_harmless(key, item)));
    let lists =
        lists.map(|(key, items)| (key.to_string(), items.iter().map(|item| item.value.clone()).collect()));
    leaves.chain(lists).collect::<BTreeMap<_, _>>().into_iter().collect()
}
