//! Characters that a reader can't see, or that a terminal obeys: each is shown as another one. So `rm` with something
//! hidden in it does not look like `rm`.

use helve_protocol::mark_hidden;

/// The characters of a text: as they are shown, and as they are. Joiners and selectors stay where they make one emoji of
/// several characters.
pub(crate) fn visible_chars(text: &str) -> impl Iterator<Item = (char, char)> {
    mark_hidden(text).map(|(c, is_hidden)| (if is_hidden { visible(c) } else { c }, c))
}

/// The character that is shown in the place of a hidden one.
fn visible(c: char) -> char {
    match c {
        '\0'..='\x1f' => char::from_u32(u32::from(c) + 0x2400).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\x7f' => '␡',
        _ => char::REPLACEMENT_CHARACTER,
    }
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
