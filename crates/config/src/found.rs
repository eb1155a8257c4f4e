//! What one source says, after it was checked.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::key::Key;
use crate::place::Origin;
use crate::shape::Shape;

/// A checked value and the place in its source.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) origin: Origin,
    pub(crate) content: Content,
}

#[derive(Debug)]
pub(crate) enum Content {
    Leaf(Value),
    List(Vec<Node>),
    Table(BTreeMap<String, Node>),
    /// It is there, but something is wrong with it, which has been said.
    Broken,
}

impl Node {
    /// Keys come out sorted, which the digest of a project relies on.
    pub(crate) fn to_json(&self) -> Value {
        match &self.content {
            Content::Leaf(value) => value.clone(),
            Content::List(items) => items.iter().map(Node::to_json).collect(),
            Content::Table(keys) => keys.iter().map(|(name, node)| (name.clone(), node.to_json())).collect(),
            Content::Broken => Value::Null,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Leaf {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// The values of one source by their full keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub(crate) leaves: BTreeMap<Key, Leaf>,
    /// The items of lists to which every layer adds.
    pub(crate) items: BTreeMap<Key, Vec<Leaf>>,
    /// Tables that can be incomplete.
    pub(crate) tables: BTreeMap<Key, Origin>,
    /// Keys whose value is wrong: not to be called missing as well.
    pub(crate) broken: BTreeSet<Key>,
    /// Lines were left out because of mistakes: what is missing may be on them.
    pub(crate) has_gaps: bool,
}

impl Found {
    pub(crate) fn new(root: &Node, shape: &Shape) -> Found {
        let mut found = Found::default();
        found.take(Key::root(), root, shape);
        found
    }

    fn take(&mut self, key: Key, node: &Node, shape: &Shape) {
        match &node.content {
            Content::Broken => {
                self.broken.insert(key);
            }
            Content::Table(keys) => self.take_table(&key, keys, node, shape),
            Content::List(items) if shape.facts.append => {
                let leaf = |item: &Node| Leaf { value: item.to_json(), origin: item.origin.clone() };
                self.items.insert(key, items.iter().map(leaf).collect());
            }
            Content::List(_) | Content::Leaf(_) => {
                self.leaves.insert(key, Leaf { value: node.to_json(), origin: node.origin.clone() });
            }
        }
    }

    fn take_table(&mut self, key: &Key, keys: &BTreeMap<String, Node>, node: &Node, shape: &Shape) {
        if shape.as_table().is_some_and(crate::shape::Table::is_whole) {
            self.tables.insert(key.clone(), node.origin.clone());
        }
        for (name, inner) in keys {
            if let Some(shape) = shape.child(name) {
                self.take(key.child(name), inner, shape);
            }
        }
    }

    pub(crate) fn mentions(&self, key: &Key) -> bool {
        self.leaves.contains_key(key) || self.broken.contains(key)
    }
}
