//! Numbers for blocks.

use std::collections::{HashMap, HashSet};

use crate::{ModelEvent, StreamError};

/// Numbers for blocks that the provider names itself. Its names are not relied upon: one that is used again after its
/// block has ended is another block.
#[derive(Debug, Default)]
pub(crate) struct NamedBlocks {
    known: HashMap<String, u32>,
    begun: u32,
    /// The names of blocks whose beginning was told, and whose end was not.
    open: HashSet<String>,
}

impl NamedBlocks {
    /// Begins a block. It is an error if the one of the same name has not ended: whatever follows could belong to both.
    pub(crate) fn begin(&mut self, name: String) -> Result<u32, StreamError> {
        if !name.is_empty() && !self.open.insert(name.clone()) {
            return Err(StreamError::Restarted("a part of the answer begins twice"));
        }
        Ok(self.next(name))
    }

    pub(crate) fn end(&mut self, name: &str) {
        self.open.remove(name);
    }

    fn next(&mut self, name: String) -> u32 {
        let block = self.begun;
        self.begun = self.begun.saturating_add(1);
        self.known.insert(name, block);
        block
    }

    /// The block of a name; a new one if its beginning was not told.
    pub(crate) fn of(&mut self, name: String) -> u32 {
        match self.known.get(&name) {
            Some(block) => *block,
            None => self.next(name),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.begun == 0
    }
}

/// Numbers where the provider gives none. Text and thinking come in pieces that say only what they are. A block begins when the other kind, or a call, begins.
#[derive(Debug, Default)]
pub(crate) struct UnnamedBlocks {
    begun: u32,
    growing: Option<(GrowingBlockKind, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GrowingBlockKind {
    Text,
    Thinking,
}

impl UnnamedBlocks {
    pub(crate) fn is_empty(&self) -> bool {
        self.begun == 0
    }

    /// A block of its own.
    pub(crate) fn begin(&mut self) -> u32 {
        self.growing = None;
        let block = self.begun;
        self.begun = self.begun.saturating_add(1);
        block
    }

    pub(crate) fn text(&mut self, text: Option<&str>, said: &mut Vec<ModelEvent>) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            said.push(ModelEvent::Text { block: self.grow(GrowingBlockKind::Text), text: text.to_owned() });
        }
    }

    pub(crate) fn think(&mut self, text: Option<&str>, said: &mut Vec<ModelEvent>) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            said.push(ModelEvent::Thinking { block: self.thinking(), text: text.to_owned() });
        }
    }

    /// The block of thinking that grows, or a new one.
    pub(crate) fn thinking(&mut self) -> u32 {
        self.grow(GrowingBlockKind::Thinking)
    }

    fn grow(&mut self, kind: GrowingBlockKind) -> u32 {
        if let Some((_, block)) = self.growing.filter(|(growing, _)| *growing == kind) {
            return block;
        }
        let block = self.begin();
        self.growing = Some((kind, block));
        block
    }
}
