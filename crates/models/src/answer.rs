//! A whole response.

use std::collections::BTreeMap;

use helve_protocol::{
    CallId, Part, ReasoningPart, StopReason, TextKind, TextPart, ToolPart, ToolState, Usage,
};
use serde_json::Value;

use crate::{ModelEvent, ToolSpec, repair, spoken};

/// What a model answered, in its order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    blocks: BTreeMap<u32, Block>,
    pub usage: Usage,
    pub stop: Option<StopReason>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    Text {
        text: String,
        sealed: Value,
    },
    Thinking {
        text: String,
        sealed: Value,
    },
    Call(Call),
    /// Read from a recording: it is as it was written down.
    Written(Part),
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
    /// An answer out of a recording.
    pub fn written(parts: Vec<Part>, usage: Usage, stop: StopReason) -> Answer {
        let blocks = (0..).zip(parts.into_iter().map(Block::Written)).collect();
        Answer { blocks, usage, stop: Some(stop) }
    }

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
                Block::Written(_) => {}
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

    /// Makes of the answer what the model meant, where it only said so: thinking between tags, and calls of offered tools
    /// that it wrote as text. Small models do both.
    pub fn settle(&mut self, tools: &[ToolSpec]) {
        let mut blocks: Vec<Block> = std::mem::take(&mut self.blocks).into_values().collect();
        if let Some((thinking, text)) = blocks.first().and_then(thinking_in_tags) {
            let said = Block::Text { text, sealed: Value::Null };
            blocks.splice(..1, [Block::Thinking { text: thinking, sealed: Value::Null }, said]);
        }
        let has_calls = blocks.iter().any(|block| matches!(block, Block::Call(_)));
        let has_ended = matches!(self.stop, None | Some(StopReason::EndTurn | StopReason::StopSequence));
        if let Some(Block::Text { text, .. }) = blocks.last()
            && !has_calls
            && has_ended
            && let Some(spoken) = spoken::calls(text, tools)
        {
            blocks.pop();
            if !spoken.before.is_empty() {
                blocks.push(Block::Text { text: spoken.before, sealed: Value::Null });
            }
            blocks.extend(spoken.calls.into_iter().map(|call| {
                let arguments = call.input.to_string();
                Block::Call(Call { id: None, name: call.name, arguments, sealed: Value::Null })
            }));
            self.stop = Some(StopReason::ToolUse);
        }
        self.blocks = (0..).zip(blocks).collect();
    }

    /// The answer as it is written down. Each call gets an id of ours. One whose arguments can't be read, or may not be whole,
    /// has failed already, and says why.
    pub fn parts(&self, mut draw: impl FnMut() -> CallId) -> Vec<Part> {
        let last = self.blocks.len().saturating_sub(1);
        let part = |(place, block): (usize, &Block)| match block {
            Block::Text { text, sealed } => {
                Part::Text(TextPart { text: text.clone(), kind: TextKind::Said, sealed: sealed.clone() })
            }
            Block::Thinking { text, sealed } => {
                Part::Reasoning(ReasoningPart { text: text.clone(), sealed: sealed.clone() })
            }
            Block::Call(call) if place == last && self.stop == Some(StopReason::MaxTokens) => {
                Part::Tool(Box::new(call.cut_off(draw())))
            }
            Block::Call(call) => Part::Tool(Box::new(call.part(draw()))),
            Block::Written(part) => part.clone(),
        };
        self.blocks().enumerate().map(part).collect()
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

impl Call {
    /// A call that the limit of the answer may have cut short, whatever its arguments look like.
    fn cut_off(&self, call: CallId) -> ToolPart {
        let message = "The answer reached its limit of tokens, so this call may not be whole, and was not run. Make it \
                       shorter, or divide it into several calls."
            .to_owned();
        ToolPart { state: ToolState::Error { message }, ..self.part(call) }
    }

    fn part(&self, call: CallId) -> ToolPart {
        let (input, state) = match repair::arguments(&self.arguments) {
            Ok(arguments) => (arguments.value, ToolState::Pending),
            Err(error) => {
                (Value::from(self.arguments.as_str()), ToolState::Error { message: error.to_string() })
            }
        };
        let (name, wire_id, sealed) = (self.name.clone(), self.id.clone(), self.sealed.clone());
        ToolPart { call, name, input, wire_id, sealed, state }
    }
}

/// What an answer thinks that begins with `<think>`, and what it says after that.
fn thinking_in_tags(block: &Block) -> Option<(String, String)> {
    let Block::Text { text, sealed: Value::Null } = block else { return None };
    let (thinking, rest) = text.trim_start().strip_prefix("<think>")?.split_once("</think>")?;
    Some((thinking.trim().to_owned(), rest.trim_start().to_owned()))
}

fn thinking() -> Block {
    Block::Thinking { text: String::new(), sealed: Value::Null }
}
