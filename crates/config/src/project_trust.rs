//! What a project may not decide for a user who has not trusted it.
//!
//! A project's files come with a `git clone`. Whatever in them could run a command, send something somewhere
//! or loosen a limit is ignored until the user has seen it and trusted the project.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::merge::{ConfigNotice, MergedSettings, NoticeReason};
use crate::origin::{ConfigLayer, ConfigLocation, SettingOrigin};
use crate::setting_key::SettingKey;
use crate::settings::PermissionRule;
use crate::shape::{UntrustedPolicy, settings_shape};
use crate::source_values::{SourceValues, SourcedValue};

/// How things stand between the user and a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProjectTrust {
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
pub struct RestrictedSetting {
    /// The dotted key.
    pub key: String,
    /// What the project sets it to.
    pub value: Value,
    /// Where the project sets it.
    pub origin: SettingOrigin,
}

/// A project's two files with the verdict about them.
#[derive(Debug)]
pub(crate) struct ProjectVerdict {
    pub(crate) project: SourceValues,
    pub(crate) local: SourceValues,
    pub(crate) trust: ProjectTrust,
    pub(crate) restricted: Vec<RestrictedSetting>,
    pub(crate) digest: String,
    /// Both files as they are, trusted or not.
    pub(crate) asked: (SourceValues, SourceValues),
    /// What no project may set, and this one does.
    refused: Vec<ConfigNotice>,
}

impl ProjectVerdict {
    /// What does not count, as things stand.
    pub(crate) fn notices(&self) -> Vec<ConfigNotice> {
        let reason = match self.trust {
            ProjectTrust::NothingToTrust | ProjectTrust::Trusted => return self.refused.clone(),
            ProjectTrust::Changed => NoticeReason::ChangedSinceTrusted,
            ProjectTrust::Untrusted => NoticeReason::Untrusted,
        };
        let notice = |item: &RestrictedSetting| ConfigNotice {
            key: item.key.clone(),
            origin: item.origin.clone(),
            reason: reason.clone(),
        };
        self.refused.iter().cloned().chain(self.restricted.iter().map(notice)).collect()
    }
}

/// Lets through what may count. `below` is what the weaker layers say, `trusted` the digest that the user has
/// trusted for this project.
pub(crate) fn judge_project(
    mut project: SourceValues,
    mut local: SourceValues,
    below: &MergedSettings,
    trusted: Option<&str>,
) -> ProjectVerdict {
    let refused = [&mut project, &mut local].into_iter().flat_map(remove_user_only).collect();
    let digest = digest(&project, &local);
    let asked = (project.clone(), local.clone());
    let (harmless_project, mut restricted) = split_untrusted(&project, below);
    let mut below = below.clone();
    below.add(&harmless_project);
    let (harmless_local, more) = split_untrusted(&local, &below);
    restricted.extend(more);
    let trust = match trusted {
        _ if restricted.is_empty() => ProjectTrust::NothingToTrust,
        Some(trusted) if trusted == digest => ProjectTrust::Trusted,
        Some(_) => ProjectTrust::Changed,
        None => ProjectTrust::Untrusted,
    };
    let (project, local) =
        if trust == ProjectTrust::Trusted { (project, local) } else { (harmless_project, harmless_local) };
    ProjectVerdict { project, local, trust, restricted, digest, asked, refused }
}

/// Takes out what is for the user alone: whoever could choose the keys could make a no mean yes.
fn remove_user_only(found: &mut SourceValues) -> Vec<ConfigNotice> {
    let is_refused = |key: &SettingKey| settings_shape().at(key).is_some_and(|shape| shape.facts.user_only);
    let refused = found.leaves.extract_if(.., |key, _| is_refused(key));
    let notice = |(key, leaf): (SettingKey, SourcedValue)| ConfigNotice {
        key: key.to_string(),
        origin: leaf.origin,
        reason: NoticeReason::UserOnly,
    };
    refused.map(notice).collect()
}

/// What counts without trust, and what does not.
fn split_untrusted(found: &SourceValues, below: &MergedSettings) -> (SourceValues, Vec<RestrictedSetting>) {
    let mut harmless = found.clone();
    let leaves = harmless.leaves.extract_if(.., |key, leaf| !leaf_is_harmless(key, leaf, below));
    let mut restricted: Vec<RestrictedSetting> =
        leaves.map(|(key, leaf)| item(key.to_string(), leaf)).collect();
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

fn item(key: String, leaf: SourcedValue) -> RestrictedSetting {
    RestrictedSetting { key, value: leaf.value, origin: leaf.origin }
}

/// Whoever is not known is not trusted.
fn untrusted_policy(key: &SettingKey) -> UntrustedPolicy {
    settings_shape().at(key).map_or(UntrustedPolicy::Nothing, |shape| shape.facts.untrusted)
}

fn leaf_is_harmless(key: &SettingKey, leaf: &SourcedValue, below: &MergedSettings) -> bool {
    match untrusted_policy(key) {
        UntrustedPolicy::Nothing => false,
        UntrustedPolicy::Anything => true,
        UntrustedPolicy::Tighten => {
            let rank = |value: &Value| settings_shape().at(key).and_then(|shape| shape.rank(value));
            match (rank(&leaf.value), below.leaves.get(key)) {
                (Some(_), None) => true,
                (Some(new), Some(setting)) => rank(&setting.value).is_some_and(|old| new <= old),
                (None, _) => false,
            }
        }
    }
}

fn item_is_harmless(key: &SettingKey, item: &SourcedValue) -> bool {
    match untrusted_policy(key) {
        UntrustedPolicy::Nothing => false,
        UntrustedPolicy::Anything => true,
        UntrustedPolicy::Tighten => {
            matches!(item.value.get("action").and_then(Value::as_str), Some("deny" | "ask"))
        }
    }
}

/// A fingerprint of all that needs trust, whatever the weaker layers say and wherever in its file it stands.
fn digest(project: &SourceValues, local: &SourceValues) -> String {
    let canonical =
        Value::Array(vec![values_needing_trust(project), values_needing_trust(local)]).to_string();
    blake3::hash(canonical.as_bytes()).to_hex().to_string()
}

/// The fingerprint that the same files have once these rules stand at the end of the second.
pub(crate) fn digest_with(
    project: &SourceValues,
    mut local: SourceValues,
    rules: &[PermissionRule],
) -> String {
    let item = |rule: &PermissionRule| {
        let Ok(Value::Object(fields)) = serde_json::to_value(rule) else { return Value::Null };
        let fields: BTreeMap<String, Value> =
            fields.into_iter().filter(|(_, value)| !value.is_null()).collect();
        fields.into_iter().collect()
    };
    let origin = SettingOrigin { layer: ConfigLayer::Local, place: ConfigLocation::Variable(String::new()) };
    let items = rules.iter().map(|rule| SourcedValue { value: item(rule), origin: origin.clone() });
    local.items.entry(SettingKey::root().child("permission")).or_default().extend(items);
    digest(project, &local)
}

/// The keys are sorted, and so are those inside the values: see `Node::to_json`.
fn values_needing_trust(found: &SourceValues) -> Value {
    let leaves = found.leaves.iter().filter(|(key, _)| untrusted_policy(key) != UntrustedPolicy::Anything);
    let leaves = leaves.map(|(key, leaf)| (key.to_string(), leaf.value.clone()));
    // The whole list, because a rule that allows reaches further when the one before it is gone.
    let lists =
        found.items.iter().filter(|(key, items)| !items.iter().all(|item| item_is_harmless(key, item)));
    let lists =
        lists.map(|(key, items)| (key.to_string(), items.iter().map(|item| item.value.clone()).collect()));
    leaves.chain(lists).collect::<BTreeMap<_, _>>().into_iter().collect()
}
