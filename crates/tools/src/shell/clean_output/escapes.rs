//! Control characters and escape sequences, as far as they move text about. All others are dropped.

use super::cursor_page::CursorPage;

const ESCAPE: char = '\u{1b}';
/// No number in a sequence means more than this.
const MAX_ESCAPE_NUMBER: usize = 9_999;

/// Where in a sequence the text is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum EscapeParser {
    #[default]
    Text,
    /// After ESC.
    AfterEscape,
    /// One more letter belongs to it.
    OneMoreChar,
    /// After ESC [.
    Control(ControlSequence),
    /// A title or the like, until it is ended.
    ControlString,
    /// After an ESC in such words.
    ControlStringEscape,
}

/// A control sequence as far as it was read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ControlSequence {
    /// The first of its numbers.
    number: Option<usize>,
    has_more: bool,
    /// It means something private, or is of a kind that moves nothing.
    is_foreign: bool,
}

impl EscapeParser {
    pub(super) fn push(&mut self, text: &str, page: &mut CursorPage) {
        let mut rest = text;
        while !rest.is_empty() {
            if matches!(self, EscapeParser::Text) {
                let (plain, special) = split_at_special(rest);
                page.write(plain);
                rest = without_zeros(special);
            }
            let mut letters = rest.chars();
            if let Some(letter) = letters.next() {
                self.take(letter, page);
            }
            rest = letters.as_str();
        }
    }

    fn take(&mut self, letter: char, page: &mut CursorPage) {
        *self = match (*self, letter) {
            (EscapeParser::Text, letter) => plain_or_control(letter, page),
            (EscapeParser::ControlString, '\u{7}' | '\u{18}' | '\u{1a}') => EscapeParser::Text,
            (EscapeParser::ControlString, ESCAPE) => EscapeParser::ControlStringEscape,
            // Words that were never ended must not hide all that comes after them.
            (EscapeParser::ControlString, '\n') => plain_or_control('\n', page),
            (EscapeParser::ControlString, _) => EscapeParser::ControlString,
            (EscapeParser::ControlStringEscape, '\\') => EscapeParser::Text,
            // A control character or a letter that belongs to no sequence ends it, and counts.
            (_, letter) if letter.is_control() || !letter.is_ascii() => plain_or_control(letter, page),
            (EscapeParser::OneMoreChar, _) => EscapeParser::Text,
            (EscapeParser::AfterEscape | EscapeParser::ControlStringEscape, letter) => begun(letter, page),
            (EscapeParser::Control(control), letter) => control.take(letter, page),
        };
    }
}

/// Binary data is full of zeros: they are skipped in blocks.
fn without_zeros(text: &str) -> &str {
    const BLOCK: [u8; 1 << 10] = [0; 1 << 10];
    let mut rest = text;
    while rest.as_bytes().starts_with(&BLOCK) {
        rest = rest.get(BLOCK.len()..).unwrap_or_default();
    }
    rest
}

/// The text before the first letter that may need care, and the rest.
fn split_at_special(text: &str) -> (&str, &str) {
    // 0xc2 begins the control characters above ASCII, and some letters.
    let is_special = |byte: &u8| matches!(byte, 0..=8 | 11..=31 | 0x7f | 0xc2);
    let at = text.as_bytes().iter().position(is_special).unwrap_or(text.len());
    text.split_at_checked(at).unwrap_or((text, ""))
}

fn plain_or_control(letter: char, page: &mut CursorPage) -> EscapeParser {
    match letter {
        ESCAPE => return EscapeParser::AfterEscape,
        '\r' => page.return_to_start(),
        '\u{8}' => page.back(1),
        '\n' | '\u{b}' | '\u{c}' => page.write("\n"),
        '\t' => page.write("\t"),
        // It parts names from each other, or says that this is no text.
        '\0' => page.write("\u{2400}"),
        letter if letter.is_control() => {}
        letter => page.write(letter.encode_utf8(&mut [0; 4])),
    }
    EscapeParser::Text
}

fn begun(letter: char, page: &mut CursorPage) -> EscapeParser {
    match letter {
        '[' => return EscapeParser::Control(ControlSequence::default()),
        ']' | 'P' | 'X' | '^' | '_' => return EscapeParser::ControlString,
        ' '..='/' => return EscapeParser::OneMoreChar,
        'M' => page.up(1),
        'c' => page.begin_line(),
        _ => {}
    }
    EscapeParser::Text
}

impl ControlSequence {
    fn take(mut self, letter: char, page: &mut CursorPage) -> EscapeParser {
        match letter {
            '0'..='9' if !self.has_more => {
                let digit = letter.to_digit(10).map_or(0, |digit| digit as usize);
                self.number = Some((self.number.unwrap_or(0) * 10 + digit).min(MAX_ESCAPE_NUMBER));
            }
            ';' | ':' => self.has_more = true,
            '0'..='9' => {}
            ' '..='/' | '<'..='?' => self.is_foreign = true,
            _ => {
                if !self.is_foreign {
                    self.act(letter, page);
                }
                return EscapeParser::Text;
            }
        }
        EscapeParser::Control(self)
    }

    fn act(self, letter: char, page: &mut CursorPage) {
        let count = self.number.unwrap_or(1).max(1);
        match (letter, self.number.unwrap_or(0)) {
            ('A', _) => page.up(count),
            ('B', _) => page.down(count),
            ('C', _) => page.forward(count),
            ('D', _) => page.back(count),
            ('E', _) => {
                page.down(count);
                page.return_to_start();
            }
            ('F', _) => {
                page.up(count);
                page.return_to_start();
            }
            ('G', _) => {
                page.return_to_start();
                page.forward(count - 1);
            }
            // Where that is on a screen, nobody knows here.
            ('H' | 'f', _) | ('J', 2 | 3) => page.begin_line(),
            ('J', 0) => page.erase_below(),
            ('K', 0) => page.erase_to_line_end(),
            ('K', 1) => page.erase_to_line_start(),
            ('K', 2) => {
                page.return_to_start();
                page.erase_to_line_end();
            }
            _ => {}
        }
    }
}
