//! What one source says, after it was checked.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::origin::SettingOrigin;
use crate::setting_key::SettingKey;
use crate::shape::SettingShape;

/// A checked value and the place in its source.
#[derive(Debug)]
pub(crate) struct CheckedNode {
    pub(crate) origin: SettingOrigin,
    pub(crate) content: CheckedContent,
}

#[derive(Debug)]
pub(crate) enum CheckedContent {
    Leaf(Value),
    List(Vec<CheckedNode>),
    Table(BTreeMap<String, CheckedNode>),
    /// It is there, but something is wrong with it, which has been said.
    Broken,
}

impl CheckedNode {
    /// Keys come out sorted, which the digest of a project relies on.
    pub(crate) fn to_json(&self) -> Value {
        match &self.content {
            CheckedContent::Leaf(value) => value.clone(),
            CheckedContent::List(items) => items.iter().map(CheckedNode::to_json).collect(),
            CheckedContent::Table(keys) => {
                keys.iter().map(|(name, node)| (name.clone(), node.to_json())).collect()
            }
            CheckedContent::Broken => Value::Null,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SourcedValue {
    pub(crate) value: Value,
    pub(crate) origin: SettingOrigin,
}

/// The values of one source by their full keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct SourceValues {
    pub(crate) leaves: BTreeMap<SettingKey, SourcedValue>,
    /// The items of lists to which every layer adds.
    pub(crate) items: BTreeMap<SettingKey, Vec<SourcedValue>>,
    /// Tables that can be incomplete.
    pub(crate) tables: BTreeMap<SettingKey, SettingOrigin>,
    /// Keys whose value is wrong: not to be called missing as well.
    pub(crate) broken: BTreeSet<SettingKey>,
    /// Lines were left out because of mistakes: what is missing may be on them.
    pub(crate) has_gaps: bool,
}

impl SourceValues {
    pub(crate) fn new(root: &CheckedNode, shape: &SettingShape) -> SourceValues {
        let mut found = SourceValues::default();
        found.take(SettingKey::root(), root, shape);
        found
    }

    fn take(&mut self, key: SettingKey, node: &CheckedNode, shape: &SettingShape) {
        match &node.content {
            CheckedContent::Broken => {
                self.broken.insert(key);
            }
            CheckedContent::Table(keys) => self.insert_table(&key, keys, node, shape),
            CheckedContent::List(items) if shape.facts.append => {
                let leaf =
                    |item: &CheckedNode| SourcedValue { value: item.to_json(), origin: item.origin.clone() };
                self.items.insert(key, items.iter().map(leaf).collect());
            }
            CheckedContent::List(_) | CheckedContent::Leaf(_) => {
                self.leaves.insert(key, SourcedValue { value: node.to_json(), origin: node.origin.clone() });
            }
        }
    }

    fn insert_table(
        &mut self,
        key: &SettingKey,
        keys: &BTreeMap<String, CheckedNode>,
        node: &CheckedNode,
        shape: &SettingShape,
    ) {
        if shape.as_table().is_some_and(crate::shape::TableShape::is_whole) {
            self.tables.insert(key.clone(), node.origin.clone());
        }
        for (name, inner) in keys {
            if let Some(shape) = shape.child(name) {
                self.take(key.child(name), inner, shape);
            }
        }
    }

    pub(crate) fn mentions(&self, key: &SettingKey) -> bool {
        self.leaves.contains_key(key) || self.broken.contains(key)
    }
}
