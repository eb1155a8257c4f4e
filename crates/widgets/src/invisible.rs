//! Characters that a reader can't see, or that a terminal obeys: each is shown as another one. So `rm` with something
//! hidden in it does not look like `rm`.

const ZERO_WIDTH_JOINER: char = '\u{200d}';

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

/// The characters of a text: as they are shown, and as they are. Joiners and selectors stay where they make one emoji of
/// several characters.
pub(crate) fn visible_chars(text: &str) -> impl Iterator<Item = (char, char)> {
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
        Some((if is_part { c } else { visible(c) }, c))
    })
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

fn visible(c: char) -> char {
    match c {
        '\0'..='\x1f' => char::from_u32(u32::from(c) + 0x2400).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\x7f' => '␡',
        _ if is_hidden(c) => char::REPLACEMENT_CHARACTER,
        _ => c,
    }
}

/// Whether a character is one that can't be seen, or that turns the writing around.
pub fn is_hidden(c: char) -> bool {
    matches!(
        c,
        // Controls of the second set, and the hyphen that is shown at the end of a line only.
        '\u{80}'..='\u{9f}' | '\u{ad}'
        // Joiners, what has no width, separators of lines, and what turns the direction of the text around.
        | '\u{34f}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        // Letters that are blank.
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}'
        // Selectors, tags, notes and signs for programs.
        | '\u{180b}'..='\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
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

    fn told(text: &str) -> String {
        visible_chars(text).map(|(shown, _)| shown).collect()
    }

    #[test]
    fn nothing_hides() {
        let hidden = [
            '\u{200b}'..='\u{200f}',
            '\u{2028}'..='\u{202e}',
            '\u{2060}'..='\u{206f}',
            '\u{61c}'..='\u{61c}',
            '\u{feff}'..='\u{feff}',
            '\u{e0000}'..='\u{e0fff}',
            '\u{ad}'..='\u{ad}',
            '\u{180e}'..='\u{180e}',
            '\u{115f}'..='\u{1160}',
            '\u{3164}'..='\u{3164}',
            '\u{ffa0}'..='\u{ffa0}',
            '\u{fe00}'..='\u{fe0f}',
            '\u{80}'..='\u{9f}',
        ];
        for c in hidden.into_iter().flatten() {
            assert_eq!(told(&format!("rm{c} -rf")), "rm� -rf", "{c:?}");
        }
        assert_eq!(told("\x1b\t\x7f"), "␛␉␡");
    }

    #[test]
    fn emoji_stay_whole() {
        for emoji in [
            "👩‍💻",
            "❤\u{fe0f}‍🔥",
            "🏳\u{fe0f}‍🌈",
            "👍🏽",
            "👩🏽‍🚀",
            "☺\u{fe0f}",
            "☺\u{fe0e}",
            "1\u{fe0f}\u{20e3}",
            "🐈‍⬛",
        ] {
            assert_eq!(told(emoji), emoji);
        }
    }

    #[test]
    fn what_makes_no_emoji_is_shown() {
        let cases = [
            ("👩\u{200d}rm", "👩�rm"),
            ("a\u{200d}👩", "a�👩"),
            ("👩\u{200d}\u{200d}👩", "👩��👩"),
            ("☺\u{fe0f}\u{fe0f}", "☺\u{fe0f}�"),
            ("1\u{fe0f}", "1�"),
            ("🏴\u{e0072}\u{e006d}", "🏴��"),
        ];
        for (text, expected) in cases {
            assert_eq!(told(text), expected);
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_stays_so(text in "[a1☺👩\u{200d}\u{fe0f}\u{fe0e}\u{20e3}\u{200b}\u{1b}]{0,12}") {
            let once = told(&text);
            prop_assert_eq!(once.chars().count(), text.chars().count());
            prop_assert_eq!(told(&once), once);
        }
    }
}
