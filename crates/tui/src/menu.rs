//! What is offered while somebody writes: commands behind `/`, files behind `@`.

use std::ops::Range;

use helve_widgets::{Picker, PickerChoice, PickerMove, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::slash;

/// So many rows are offered at once.
const MAX_MENU_ROWS: u16 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompletionKind {
    Command,
    File,
}

#[derive(Debug)]
pub(crate) struct CompletionMenu {
    pub(crate) kind: CompletionKind,
    /// What would be replaced.
    pub(crate) range: Range<usize>,
    picker: Picker,
}

impl CompletionMenu {
    pub(crate) fn new(token: &CompletionToken, choices: Vec<PickerChoice>) -> CompletionMenu {
        let mut menu =
            CompletionMenu { kind: token.kind, range: token.range.clone(), picker: Picker::new(choices) };
        menu.follow(token);
        menu
    }

    /// Looks for what is written now.
    pub(crate) fn follow(&mut self, token: &CompletionToken) {
        self.range.clone_from(&token.range);
        self.picker.set_filter(&token.text);
    }

    pub(crate) fn is_for(&self, token: &CompletionToken) -> bool {
        self.kind == token.kind && self.range.start == token.range.start
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.picker.count() == 0
    }

    pub(crate) fn go(&mut self, step: PickerMove) {
        self.picker.go(step);
    }

    pub(crate) fn chosen(&self) -> Option<&str> {
        let choice = self.picker.choices().get(self.picker.selected()?)?;
        Some(&choice.title)
    }

    pub(crate) fn height(&self, most: u16) -> u16 {
        self.picker.height(most.min(MAX_MENU_ROWS))
    }

    pub(crate) fn draw(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        self.picker.draw(area, buffer, theme);
    }
}

/// The word at the cursor, if something can be offered for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompletionToken {
    pub(crate) kind: CompletionKind,
    /// With its sign.
    pub(crate) range: Range<usize>,
    /// Without it.
    pub(crate) text: String,
}

pub(crate) fn token(text: &str, cursor: usize) -> Option<CompletionToken> {
    let before = text.get(..cursor)?;
    if let Some(word) = before.strip_prefix('/').filter(|word| !word.contains([' ', '\n', '/'])) {
        return Some(CompletionToken {
            kind: CompletionKind::Command,
            range: 0..cursor,
            text: word.to_owned(),
        });
    }
    let start = before.rfind(char::is_whitespace).map_or(0, |space| {
        space + before.get(space..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
    });
    let word = before.get(start..)?.strip_prefix('@')?;
    Some(CompletionToken { kind: CompletionKind::File, range: start..cursor, text: word.to_owned() })
}

pub(crate) fn commands() -> Vec<PickerChoice> {
    let choice = |command: &slash::SlashCommand| {
        let takes = if command.takes.is_empty() { String::new() } else { format!("{} · ", command.takes) };
        PickerChoice::new(command.word, format!("{takes}{}", command.about))
    };
    slash::SLASH_COMMANDS.iter().map(choice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_with_a_sign_are_completed() {
        let at_end = |text: &str| token(text, text.len()).map(|token| (token.kind, token.range, token.text));
        assert_eq!(at_end("/mo"), Some((CompletionKind::Command, 0..3, "mo".to_owned())));
        assert_eq!(at_end("/mo x"), None);
        assert_eq!(at_end("/usr/b"), None);
        assert_eq!(at_end("look at @src/m"), Some((CompletionKind::File, 8..14, "src/m".to_owned())));
        assert_eq!(at_end("日本\u{3000}@é"), Some((CompletionKind::File, 9..12, "é".to_owned())));
        assert_eq!(at_end("me@home"), None);
        assert_eq!(at_end(""), None);
    }
}
