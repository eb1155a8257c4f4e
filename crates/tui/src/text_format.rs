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
    let mut plain = TerminalLines::default();
    for line in text.split_inclusive('\n') {
        // Each line begins anew, and its end is not for the parser: a title that is never ended must not hide what follows.
        let (words, has_end) = line.strip_suffix('\n').map_or((line, false), |words| (words, true));
        vte::Parser::new().advance(&mut plain, words.as_bytes());
        plain.has_returned = false;
        plain.text.push_str(if has_end { "\n" } else { "" });
    }
    plain.text
}

/// Text as it stands on the screen when a terminal has obeyed what moves within a line.
#[derive(Default)]
struct TerminalLines {
    text: String,
    /// Whether the cursor went back to the beginning of the line, so that what comes is written over it.
    has_returned: bool,
}

impl TerminalLines {
    fn clear_overwritten(&mut self) {
        if std::mem::take(&mut self.has_returned) {
            self.text.truncate(self.text.rfind('\n').map_or(0, |end| end + 1));
        }
    }
}

impl vte::Perform for TerminalLines {
    fn print(&mut self, letter: char) {
        self.clear_overwritten();
        self.text.push(letter);
    }

    fn execute(&mut self, control: u8) {
        match control {
            b'\r' => self.has_returned = true,
            // Whoever draws the text makes them visible.
            _ => self.print(char::from(control)),
        }
    }

    fn csi_dispatch(&mut self, _: &vte::Params, _: &[u8], _: bool, action: char) {
        const ERASE_LINE: char = 'K';
        if action == ERASE_LINE {
            self.clear_overwritten();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_for_a_terminal_can_be_read() {
        assert_eq!(strip_terminal_codes("\x1b[32mok\x1b[0m\n10%\r100%\r\ndone"), "ok\n100%\ndone");
        assert_eq!(strip_terminal_codes("\x1b]0;title\x07text\x1b"), "text");
        assert_eq!(strip_terminal_codes("50%\r\x1b[K\nover\r"), "\nover");
    }

    #[test]
    fn every_kind_of_sequence_goes_and_none_hides_the_next_line() {
        assert_eq!(strip_terminal_codes("\x1b]8;;https://a.b\x1b\\link\x1b]8;;\x1b\\"), "link");
        assert_eq!(strip_terminal_codes("\x1bP1$r0m\x1b\\a\x1b(Bb\x1b=c"), "abc");
        assert_eq!(strip_terminal_codes("a\x1b]0;never ended\nb\x1b[31\nc"), "a\nb\nc");
        assert_eq!(strip_terminal_codes("bell\x07 größer 日本\t\u{9b}"), "bell\x07 größer 日本\t\u{9b}");
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
