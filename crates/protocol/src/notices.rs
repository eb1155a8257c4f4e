//! Sentences about events that every front end says in the same words. They are safe to show: see [`one_line`].

use crate::{CommandRefused, FileChange, IrreversibleChange, ModelSwitched, StopReason, one_line};

impl ModelSwitched {
    /// Says which model takes over, and why.
    pub fn notice(&self) -> String {
        format!("{} takes over from {}: {}", self.to, self.from, one_line(&self.reason.to_string()))
    }
}

impl CommandRefused {
    /// Says which command was refused, and why.
    pub fn notice(&self) -> String {
        format!("{}: {}", self.command.replace('_', " "), one_line(&self.why))
    }
}

impl StopReason {
    /// Says why an answer is not whole, if it is not.
    pub fn notice(self) -> Option<&'static str> {
        match self {
            StopReason::MaxTokens => Some("the answer reached its limit of tokens and was cut"),
            StopReason::Refusal => Some("the model refused to answer"),
            _ => None,
        }
    }
}

impl FileChange {
    /// Says that somebody else changed this file.
    pub fn outside_notice(&self) -> String {
        format!("{} was changed by somebody else", one_line(&self.path))
    }
}

impl IrreversibleChange {
    /// Says that this file's change can't be undone, and why.
    pub fn notice(&self) -> String {
        format!("{} changed, and can't be undone: {}", one_line(&self.path), self.why)
    }
}
