//! Words for people.

use std::time::Duration;

/// On one line, with nothing in it that a terminal would obey.
pub(crate) fn one_line(text: &str) -> String {
    helve_protocol::one_line(text.trim())
}

/// `0.4 s`, `12 s`, `3 min 5 s`
pub(crate) fn duration(time: Duration) -> String {
    match time.as_secs() {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        seconds @ 10..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

/// `950`, `12k`, `1.2M`
pub(crate) fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}k", count / 1_000),
        _ => format!("{}.{}M", count / 1_000_000, count / 100_000 % 10),
    }
}

/// The last of a text, from the beginning of a line.
pub(crate) fn keep_end(text: &mut String, most: usize) {
    if text.len() > most {
        let cut = text.ceil_char_boundary(text.len() - most);
        let line = text.get(cut..).and_then(|rest| rest.find('\n')).map_or(cut, |end| cut + end + 1);
        text.drain(..line.min(text.len()));
    }
}

/// What programs write for terminals, as lines for readers: colours gone, and only what is left of a line that was written over.
pub(crate) fn strip_terminal_codes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\x1b' => match letters.next() {
                Some('[') => {
                    letters.by_ref().find(|letter| ('\x40'..='\x7e').contains(letter));
                }
                Some(']') => {
                    letters.by_ref().find(|letter| *letter == '\x07' || *letter == '\x1b');
                }
                _ => {}
            },
            '\r' if letters.peek().is_some_and(|next| *next != '\n') => {
                let line = plain.rfind('\n').map_or(0, |end| end + 1);
                plain.truncate(line);
            }
            '\r' => {}
            letter => plain.push(letter),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_for_a_terminal_can_be_read() {
        assert_eq!(strip_terminal_codes("\x1b[32mok\x1b[0m\n10%\r100%\r\ndone"), "ok\n100%\ndone");
        assert_eq!(strip_terminal_codes("\x1b]0;title\x07text\x1b"), "text");
    }

    #[test]
    fn the_end_of_a_text_begins_with_a_line() {
        let mut text = "first\nsecond\nthird".to_owned();
        keep_end(&mut text, 9);
        assert_eq!(text, "third");
        let mut text = "日本語日本語".to_owned();
        keep_end(&mut text, 7);
        assert_eq!(text, "本語");
    }
}
