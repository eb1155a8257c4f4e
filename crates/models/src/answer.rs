//! A whole response.

use std::collections::BTreeMap;

use helve_protocol::{
    CallId, MessagePart, ReasoningPart, StopReason, TextKind, TextPart, TokenUsage, ToolPart, ToolState,
};
use serde_json::Value;

use crate::{ModelEvent, ToolSpec, repair, text_calls};

/// What a model answered, in its order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelAnswer {
    blocks: BTreeMap<u32, AnswerBlock>,
    /// The tokens that it took, as the provider counted them.
    pub usage: TokenUsage,
    /// Why the model stopped; none while the answer is not complete.
    pub stop: Option<StopReason>,
}

/// One part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerBlock {
    /// What the model says to the user.
    Text {
        /// The text so far.
        text: String,
        /// What the provider wants back with it, exactly as it came; null for nothing.
        sealed: Value,
    },
    /// What the model thinks before it goes on.
    Thinking {
        /// The text so far, as far as the provider shows it.
        text: String,
        /// What the provider wants back with it, exactly as it came; null for nothing.
        sealed: Value,
    },
    /// A tool that the model calls.
    Call(AnswerCall),
    /// Read from a recording: it is as it was written down.
    Recorded(MessagePart),
}

/// A call as the model wrote it. Its arguments may be no JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerCall {
    /// The id that the provider gave to the call, if it gave one.
    pub id: Option<String>,
    /// The name of the tool.
    pub name: String,
    /// The arguments as the model wrote them.
    pub arguments: String,
    /// What the provider wants back with the call, exactly as it came; null for nothing.
    pub sealed: Value,
}

impl ModelAnswer {
    /// An answer out of a recording.
    pub fn from_recording(parts: Vec<MessagePart>, usage: TokenUsage, stop: StopReason) -> ModelAnswer {
        let blocks = (0..).zip(parts.into_iter().map(AnswerBlock::Recorded)).collect();
        ModelAnswer { blocks, usage, stop: Some(stop) }
    }

    /// Adds what the next event says.
    pub fn apply(&mut self, event: ModelEvent) {
        match event {
            ModelEvent::Text { block, text } => {
                let new = || AnswerBlock::Text { text: String::new(), sealed: Value::Null };
                if let AnswerBlock::Text { text: said, .. } = self.blocks.entry(block).or_insert_with(new) {
                    said.push_str(&text);
                }
            }
            ModelEvent::Thinking { block, text } => {
                if let AnswerBlock::Thinking { text: thought, .. } =
                    self.blocks.entry(block).or_insert_with(thinking)
                {
                    thought.push_str(&text);
                }
            }
            ModelEvent::Sealed { block, sealed } => match self.blocks.entry(block).or_insert_with(thinking) {
                AnswerBlock::Text { sealed: kept, .. }
                | AnswerBlock::Thinking { sealed: kept, .. }
                | AnswerBlock::Call(AnswerCall { sealed: kept, .. }) => *kept = sealed,
                AnswerBlock::Recorded(_) => {}
            },
            ModelEvent::CallStarted { block, id, name } => {
                let call = AnswerCall { id, name, arguments: String::new(), sealed: Value::Null };
                self.blocks.entry(block).or_insert(AnswerBlock::Call(call));
            }
            ModelEvent::CallArguments { block, json } => {
                if let Some(AnswerBlock::Call(call)) = self.blocks.get_mut(&block) {
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
        let mut blocks: Vec<AnswerBlock> = std::mem::take(&mut self.blocks).into_values().collect();
        if let Some((thinking, text)) = blocks.first().and_then(thinking_in_tags) {
            let said = AnswerBlock::Text { text, sealed: Value::Null };
            blocks.splice(..1, [AnswerBlock::Thinking { text: thinking, sealed: Value::Null }, said]);
        }
        let has_calls = blocks.iter().any(|block| matches!(block, AnswerBlock::Call(_)));
        let has_ended = matches!(self.stop, None | Some(StopReason::EndTurn | StopReason::StopSequence));
        if let Some(AnswerBlock::Text { text, .. }) = blocks.last()
            && !has_calls
            && has_ended
            && let Some(spoken) = text_calls::find_calls(text, tools)
        {
            blocks.pop();
            if !spoken.before.is_empty() {
                blocks.push(AnswerBlock::Text { text: spoken.before, sealed: Value::Null });
            }
            blocks.extend(spoken.calls.into_iter().map(|call| {
                let arguments = call.input.to_string();
                AnswerBlock::Call(AnswerCall { id: None, name: call.name, arguments, sealed: Value::Null })
            }));
            self.stop = Some(StopReason::ToolUse);
        }
        self.blocks = (0..).zip(blocks).collect();
    }

    /// The answer as it is written down. Each call gets an id of ours. One whose arguments can't be read, or may not be whole,
    /// has failed already, and says why.
    pub fn parts(&self, mut draw: impl FnMut() -> CallId) -> Vec<MessagePart> {
        let last = self.blocks.len().saturating_sub(1);
        let part = |(place, block): (usize, &AnswerBlock)| match block {
            AnswerBlock::Text { text, sealed } => MessagePart::Text(TextPart {
                text: text.clone(),
                kind: TextKind::Said,
                sealed: sealed.clone(),
            }),
            AnswerBlock::Thinking { text, sealed } => {
                MessagePart::Reasoning(ReasoningPart { text: text.clone(), sealed: sealed.clone() })
            }
            AnswerBlock::Call(call) if place == last && self.stop == Some(StopReason::MaxTokens) => {
                MessagePart::Tool(Box::new(call.cut_off(draw())))
            }
            AnswerBlock::Call(call) => MessagePart::Tool(Box::new(call.part(draw()))),
            AnswerBlock::Recorded(part) => part.clone(),
        };
        self.blocks().enumerate().map(part).collect()
    }

    /// All parts, in the provider's order.
    pub fn blocks(&self) -> impl Iterator<Item = &AnswerBlock> {
        self.blocks.values()
    }

    /// The text of all parts that are said to the user.
    pub fn text(&self) -> String {
        self.joined(|block| match block {
            AnswerBlock::Text { text, .. } => Some(text),
            _ => None,
        })
    }

    /// The text of all parts that are thinking.
    pub fn thinking(&self) -> String {
        self.joined(|block| match block {
            AnswerBlock::Thinking { text, .. } => Some(text),
            _ => None,
        })
    }

    fn joined(&self, text: impl Fn(&AnswerBlock) -> Option<&String>) -> String {
        self.blocks().filter_map(text).map(String::as_str).collect()
    }

    /// All calls, in the provider's order.
    pub fn calls(&self) -> impl Iterator<Item = &AnswerCall> {
        self.blocks().filter_map(|block| match block {
            AnswerBlock::Call(call) => Some(call),
            _ => None,
        })
    }
}

impl AnswerCall {
    /// A call that the limit of the answer may have cut short, whatever its arguments look like.
    fn cut_off(&self, call: CallId) -> ToolPart {
        let message = "The answer reached its limit of tokens, so this call may not be whole, and was not run. Make it \
                       shorter, or divide it into several calls."
            .to_owned();
        ToolPart { state: ToolState::Error { message }, ..self.part(call) }
    }

    fn part(&self, call: CallId) -> ToolPart {
        let (input, state) = match repair::parse_arguments(&self.arguments) {
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
fn thinking_in_tags(block: &AnswerBlock) -> Option<(String, String)> {
    let AnswerBlock::Text { text, sealed: Value::Null } = block else { return None };
    let (thinking, rest) = text.trim_start().strip_prefix("<think>")?.split_once("</think>")?;
    Some((thinking.trim().to_owned(), rest.trim_start().to_owned()))
}

fn thinking() -> AnswerBlock {
    AnswerBlock::Thinking { text: String::new(), sealed: Value::Null }
}
