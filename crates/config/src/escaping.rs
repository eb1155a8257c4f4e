//! Text from outside, made safe to show in a terminal.

/// A message may quote a file that anybody wrote: longer ones are cut.
const MAX_MESSAGE_CHARS: usize = 400;

/// Text that is safe to show in a terminal, whatever file it quotes.
pub(crate) fn escape_and_shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => escaped(text.get(..end).unwrap_or(text)) + "…",
        None => escaped(text),
    }
}

/// The same, however long it is.
pub(crate) fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_unsafe(letter) { shown.extend(letter.escape_unicode()) } else { shown.push(letter) }
    }
    shown
}

/// Whether it could act on the terminal, or make text look like other text by turning it around.
fn is_unsafe(letter: char) -> bool {
    let turns = matches!(letter, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    letter.is_control() || turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_escape_sequence_never_reaches_the_terminal() {
        assert_eq!(escape_and_shorten("a\u{1b}[2Jb\u{9b}c"), "a\\u{1b}[2Jb\\u{9b}c");
        assert_eq!(escape_and_shorten("é\u{202e}"), "é\\u{202e}");
    }
}
