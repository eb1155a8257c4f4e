//! How much work one command may make, nested scripts included.

use std::cell::Cell;

/// Longer commands are not read.
const MAX_SHELL_COMMAND_BYTES: usize = 1 << 20;
/// How deep constructs may be nested in each other.
pub(super) const MAX_SHELL_NESTING: usize = 40;
/// How many words braces may make, and how many commands may be found.
const MAX_EXPANDED_WORDS: usize = 20_000;
/// Steps per byte of text. Reading takes a few; only texts that are made to be read again and again take many.
const STEPS_PER_BYTE: usize = 64;

/// What is left of it. Shared by everything that reads one command.
pub(super) struct AnalysisBudget {
    steps: Cell<usize>,
    words: Cell<usize>,
}

impl AnalysisBudget {
    /// `None` if the text is too long.
    pub(super) fn new(text: &str) -> Option<AnalysisBudget> {
        let steps = text.len().saturating_mul(STEPS_PER_BYTE).saturating_add(10_000);
        let budget = AnalysisBudget { steps: Cell::new(steps), words: Cell::new(MAX_EXPANDED_WORDS) };
        (text.len() <= MAX_SHELL_COMMAND_BYTES).then_some(budget)
    }

    /// Takes steps; false if there are none left.
    pub(super) fn steps(&self, count: usize) -> bool {
        take(&self.steps, count)
    }

    pub(super) fn words(&self, count: usize) -> bool {
        take(&self.words, count)
    }
}

fn take(from: &Cell<usize>, count: usize) -> bool {
    let left = from.get().checked_sub(count);
    from.set(left.unwrap_or(0));
    left.is_some()
}
