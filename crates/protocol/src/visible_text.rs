//! Text from outside, made safe to show: the one definition of which characters can't be seen or could act on a terminal.
//!
//! Names of files, output of programs and words of a model may hold anything. A line break would fake a second line of a
//! question, an escape sequence would be obeyed, a bidirectional control would show `rm` as something else, and a
//! character without width would make two different names look the same. Whoever shows such text asks here.

const ZERO_WIDTH_JOINER: char = '\u{200d}';

/// Whether a character changes the direction of the text around it.
pub fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a character can't be seen, is obeyed by a terminal, or changes the direction of the text around it.
///
/// It sees one character alone, so it also names the joiners inside of emoji. [`mark_hidden`] leaves those out.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || is_bidi_control(c)
        || matches!(
            c,
            // The hyphen that is shown at the end of a line only.
            '\u{ad}'
            // Joiners, what has no width, separators of lines, and operators nobody sees.
            | '\u{34f}' | '\u{200b}'..='\u{200d}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            // Letters that are blank.
            | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}'
            // Selectors, tags, notes and signs for programs.
            | '\u{180b}'..='\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// What may stand before a joiner or a selector, as far as they care.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PrecedingChar {
    Emoji,
    /// An emoji of which it is said how it looks.
    EmojiWithSelector,
    /// Of these and a frame, keycaps are made.
    KeycapBase,
    Other,
}

/// The characters of a text, each with whether it is hidden. Joiners and selectors that make one emoji of several
/// characters are not: they are seen.
pub fn mark_hidden(text: &str) -> impl Iterator<Item = (char, bool)> {
    let mut before = PrecedingChar::Other;
    let mut chars = text.chars().peekable();
    std::iter::from_fn(move || {
        let c = chars.next()?;
        let next = chars.peek().copied();
        let is_part = is_part_of_emoji(before, c, next);
        before = match (before, c) {
            (PrecedingChar::Emoji, _) if is_part && c != ZERO_WIDTH_JOINER => {
                PrecedingChar::EmojiWithSelector
            }
            _ if is_emoji(c) => PrecedingChar::Emoji,
            (_, '0'..='9' | '#' | '*') => PrecedingChar::KeycapBase,
            _ => PrecedingChar::Other,
        };
        Some((c, !is_part && is_hidden(c)))
    })
}

/// The text on one line, with every hidden character written as an escape: `\n`, `\u{202e}`.
///
/// ```
/// assert_eq!(helve_protocol::one_line("rm\u{200b} x\n👩‍💻"), r"rm\u{200b} x\n👩‍💻");
/// ```
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for (c, is_hidden) in mark_hidden(text) {
        match c {
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            _ if is_hidden => line.extend(c.escape_unicode()),
            _ => line.push(c),
        }
    }
    line
}

/// The words of a text. Whatever breaks a line and every control character stands between words, so that the words with
/// spaces between them are one line: a title, or an entry of a list.
pub fn split_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty())
}

fn is_part_of_emoji(before: PrecedingChar, c: char, next: Option<char>) -> bool {
    match (before, c) {
        (PrecedingChar::Emoji | PrecedingChar::EmojiWithSelector, ZERO_WIDTH_JOINER) => {
            next.is_some_and(is_emoji)
        }
        (PrecedingChar::Emoji, '\u{fe0e}' | '\u{fe0f}') => true,
        (PrecedingChar::KeycapBase, '\u{fe0f}') => next == Some('\u{20e3}'),
        _ => false,
    }
}

/// What emoji are made of; a few other signs stand between them.
fn is_emoji(c: char) -> bool {
    matches!(
        c,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2194}'..='\u{21aa}'
        | '\u{231a}'..='\u{23ff}' | '\u{24c2}' | '\u{25aa}'..='\u{27bf}' | '\u{2934}'..='\u{2935}'
        | '\u{2b05}'..='\u{2b55}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_hidden_is_written_as_an_escape() {
        assert_eq!(
            one_line("a\nb\r\tc\u{1b}[2J\u{9b}\u{202e}d\u{200b}\0"),
            r"a\nb\r\tc\u{1b}[2J\u{9b}\u{202e}d\u{200b}\u{0}"
        );
        assert_eq!(one_line("größer 日本 … x\u{3000}y"), "größer 日本 … x\u{3000}y");
    }

    #[test]
    fn joiners_stay_inside_of_emoji_only() {
        for emoji in ["👩‍💻", "❤\u{fe0f}‍🔥", "👍🏽", "☺\u{fe0e}", "1\u{fe0f}\u{20e3}"] {
            assert_eq!(one_line(emoji), emoji);
        }
        assert_eq!(one_line("👩\u{200d}rm"), r"👩\u{200d}rm");
        assert_eq!(one_line("1\u{fe0f}"), r"1\u{fe0f}");
    }

    #[test]
    fn words_stand_between_blanks_and_controls() {
        let words: Vec<_> = split_words(" a\n\tb\u{1b}[31mc\u{2028}d\u{a0}e ").collect();
        assert_eq!(words, ["a", "b", "[31mc", "d", "e"]);
    }

    /// Text in which hidden characters are many and near each other.
    fn tricky_text() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            "[a1#☺👩💻\u{200d}\u{fe0f}\u{fe0e}\u{20e3}\u{200b}\u{202e}\u{2066}\u{1b}\u{9b}\u{2028}\u{e0041}\n\r\t ]{0,16}",
        ]
    }

    proptest! {
        #[test]
        fn a_line_is_one_line_and_nothing_in_it_is_hidden(text in tricky_text()) {
            let line = one_line(&text);
            prop_assert!(!line.chars().any(|c| c.is_control() || is_bidi_control(c)), "{line:?}");
            prop_assert!(mark_hidden(&line).all(|(_, is_hidden)| !is_hidden), "{line:?}");
            prop_assert!(line.lines().count() <= 1);
            prop_assert_eq!(one_line(&line), line.clone());
        }

        #[test]
        fn what_can_be_seen_is_left_alone(text in "[ -~äß日本☺👩…]{0,20}") {
            prop_assert_eq!(one_line(&text), text);
        }

        #[test]
        fn every_character_is_marked_once(text in tricky_text()) {
            prop_assert!(mark_hidden(&text).map(|(c, _)| c).eq(text.chars()));
            prop_assert!(mark_hidden(&text).all(|(c, marked)| !marked || is_hidden(c)));
        }

        #[test]
        fn words_are_one_line(text in tricky_text()) {
            let line = split_words(&text).collect::<Vec<_>>().join(" ");
            prop_assert!(!line.chars().any(char::is_control));
            prop_assert!(line.lines().count() <= 1);
        }
    }
}
