//! A whole response.

use std::collections::BTreeMap;

use helve_protocol::{StopReason, Usage};
use serde_json::Value;

use crate::ModelEvent;

/// What a model answered, in its order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    blocks: BTreeMap<u32, Block>,
    pub usage: Usage,
    pub stop: Option<StopReason>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    Text { text: String, sealed: Value },
    Thinking { text: String, sealed: Value },
    Call(Call),
}

/// A call as the model wrote it. Its arguments may be no JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub id: Option<String>,
    pub name: String,
    pub arguments: String,
    pub sealed: Value,
}

impl Answer {
    pub fn apply(&mut self, event: ModelEvent) {
        match event {
            ModelEvent::Text { block, text } => {
                let new = || Block::Text { text: String::new(), sealed: Value::Null };
                if let Block::Text { text: said, .. } = self.blocks.entry(block).or_insert_with(new) {
                    said.push_str(&text);
                }
            }
            ModelEvent::Thinking { block, text } => {
                if let Block::Thinking { text: thought, .. } =
                    self.blocks.entry(block).or_insert_with(thinking)
                {
                    thought.push_str(&text);
                }
            }
            ModelEvent::Sealed { block, sealed } => match self.blocks.entry(block).or_insert_with(thinking) {
                Block::Text { sealed: kept, .. }
                | Block::Thinking { sealed: kept, .. }
                | Block::Call(Call { sealed: kept, .. }) => *kept = sealed,
            },
            ModelEvent::CallStarted { block, id, name } => {
                let call = Call { id, name, arguments: String::new(), sealed: Value::Null };
                self.blocks.entry(block).or_insert(Block::Call(call));
            }
            ModelEvent::CallArguments { block, json } => {
                if let Some(Block::Call(call)) = self.blocks.get_mut(&block) {
                    call.arguments.push_str(&json);
                }
            }
            ModelEvent::Usage(usage) => self.usage = usage,
            ModelEvent::Stopped(stop) => self.stop = Some(stop),
        }
    }

    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.blocks.values()
    }

    pub fn text(&self) -> String {
        self.joined(|block| match block {
            Block::Text { text, .. } => Some(text),
            _ => None,
        })
    }

    pub fn thinking(&self) -> String {
        self.joined(|block| match block {
            Block::Thinking { text, .. } => Some(text),
            _ => None,
        })
    }

    fn joined(&self, text: impl Fn(&Block) -> Option<&String>) -> String {
        self.blocks().filter_map(text).map(String::as_str).collect()
    }

    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.blocks().filter_map(|block| match block {
            Block::Call(call) => Some(call),
            _ => None,
        })
    }
}

fn thinking() -> Block {
    Block::Thinking { text: String::new(), sealed: Value::Null }
}
