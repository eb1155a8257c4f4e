//! Numbers for blocks, on wires that give them none.

use crate::ModelEvent;

/// Text and thinking come in pieces that say only what they are. A block begins when the other kind, or a call, begins.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    begun: u32,
    growing: Option<(Kind, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

impl Blocks {
    /// A block of its own.
    pub(crate) fn begin(&mut self) -> u32 {
        self.growing = None;
        let block = self.begun;
        self.begun = self.begun.saturating_add(1);
        block
    }

    pub(crate) fn text(&mut self, text: Option<&str>, said: &mut Vec<ModelEvent>) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            said.push(ModelEvent::Text { block: self.grow(Kind::Text), text: text.to_owned() });
        }
    }

    pub(crate) fn think(&mut self, text: Option<&str>, said: &mut Vec<ModelEvent>) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            said.push(ModelEvent::Thinking { block: self.thinking(), text: text.to_owned() });
        }
    }

    /// The block of thinking that grows, or a new one.
    pub(crate) fn thinking(&mut self) -> u32 {
        self.grow(Kind::Thinking)
    }

    fn grow(&mut self, kind: Kind) -> u32 {
        if let Some((_, block)) = self.growing.filter(|(growing, _)| *growing == kind) {
            return block;
        }
        let block = self.begin();
        self.growing = Some((kind, block));
        block
    }
}
