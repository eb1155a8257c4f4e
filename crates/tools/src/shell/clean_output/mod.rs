//! What a command says, as a person would have seen it at the end: without colours and other escape sequences, without
//! what was overwritten (progress bars, redrawn lines), and with long runs of the same line told as a number.
//!
//! It works on pieces that are cut anywhere, also inside of a letter or of an escape sequence, and holds a bounded part of
//! them. What it gives never has more letters than it got bytes.

mod cursor_page;
mod escapes;
mod repeated_lines;
mod utf8_decoder;

use cursor_page::CursorPage;
use escapes::EscapeParser;
use repeated_lines::RepeatedLines;
pub(crate) use utf8_decoder::Utf8Decoder;

#[derive(Debug, Default)]
pub(crate) struct OutputCleaner {
    letters: Utf8Decoder,
    escapes: EscapeParser,
    page: CursorPage,
    runs: RepeatedLines,
}

impl OutputCleaner {
    /// Takes the next bytes, and gives what nothing can change any more.
    pub(crate) fn push(&mut self, bytes: &[u8], mut give: impl FnMut(&str)) {
        let OutputCleaner { letters, escapes, page, runs } = self;
        letters.push(bytes, |text| {
            escapes.push(text, page);
            page.settle(|text| runs.push(text, &mut give));
        });
    }

    /// Gives what is held so far, but not what may be half a letter or half an escape sequence.
    pub(crate) fn show(&mut self, mut give: impl FnMut(&str)) {
        let OutputCleaner { page, runs, .. } = self;
        page.flush(|text| runs.push(text, &mut give));
        runs.flush(give);
    }

    /// Gives all that is still held. What comes after it begins anew.
    pub(crate) fn flush(&mut self, give: impl FnMut(&str)) {
        let OutputCleaner { letters, escapes, page, .. } = self;
        letters.flush(|text| escapes.push(text, page));
        *escapes = EscapeParser::default();
        self.show(give);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::{Index, select};

    use super::*;

    fn cleaned(bytes: &[u8]) -> String {
        in_pieces(&[bytes])
    }

    fn in_pieces(pieces: &[&[u8]]) -> String {
        let (mut cleaner, mut text) = (OutputCleaner::default(), String::new());
        pieces.iter().for_each(|piece| cleaner.push(piece, |part| text.push_str(part)));
        cleaner.flush(|part| text.push_str(part));
        text
    }

    #[test]
    fn plain_text_is_left_alone() {
        let text = "fn main() {\n\tprintln!(\"größer © 日本 🦀\");\n}\n\n";
        assert_eq!(cleaned(text.as_bytes()), text);
    }

    #[test]
    fn colours_titles_and_control_bytes_are_gone() {
        assert_eq!(
            cleaned(b"\x1b[1;31merror\x1b[0m: \x1b]0;title\x07no\x1b(B\x07 \x7f\x0e!\n"),
            "error: no !\n"
        );
        assert_eq!(cleaned(b"\x1bP1$r0m\x1b\\a\x1b[?25lb\x1b[38;2;1;2;3mc\x1b=\xc2\x9bd"), "abcd");
    }

    #[test]
    fn zeros_are_seen_but_not_in_thousands() {
        assert_eq!(cleaned(b"a.rs\0b c\0"), "a.rs\u{2400}b c\u{2400}");
        assert!(cleaned(&[0; 1 << 20]).len() <= 1);
    }

    #[test]
    fn whoever_looks_in_between_breaks_nothing() {
        let (mut cleaner, mut text) = (OutputCleaner::default(), String::new());
        for piece in [&b"a\xc3"[..], b"\xa9b\n\x1b[", b"31mred\n"] {
            cleaner.push(piece, |part| text.push_str(part));
            cleaner.show(|part| text.push_str(part));
        }
        assert_eq!(text, "aéb\nred\n");
    }

    #[test]
    fn a_sequence_that_never_ends_hides_one_line_at_most() {
        assert_eq!(cleaned(b"a\x1b]0;title\nb\n"), "a\nb\n");
        assert_eq!(cleaned(b"a\x1b[31\nb\x1b"), "a\nb");
        assert_eq!(cleaned("a\x1b[3é".as_bytes()), "aé");
    }

    #[test]
    fn what_is_overwritten_is_gone() {
        assert_eq!(cleaned(b" 10%\r 50%\r100%\ndone\r\n"), "100%\ndone\n");
        assert_eq!(cleaned(b"loading...\r\x1b[Kok\n"), "ok\n");
        assert_eq!(cleaned(b"\x1b[2K\rone\x1b[2K\rtwo"), "two");
        assert_eq!(cleaned(b"abcdef\rxy\n"), "xycdef\n");
        assert_eq!(cleaned(b"|\x08/\x08-\x08\\\x08 ready"), " ready");
        assert_eq!(cleaned("ää\rb".as_bytes()), "bä");
        assert_eq!(cleaned(b"abc\x1b[2Dx\x1b[1G_"), "_xc");
    }

    #[test]
    fn lines_that_are_drawn_again_are_told_once() {
        let frames = b"a: 1\nb: 1\n\x1b[2Aa: 2\nb: 2\n\x1b[2A\x1b[Ja: done\nb: done\nover\n";
        assert_eq!(cleaned(frames), "a: done\nb: done\nover\n");
        assert_eq!(cleaned(b"x\ny\n\x1b[1A\x1b[2Kz\n"), "x\nz\n");
        assert_eq!(cleaned(b"one\ntwo\nthree\x1b[Fsix\x1b[Edrei!"), "one\nsix\ndrei!");
    }

    #[test]
    fn a_screen_that_is_cleared_begins_a_line() {
        assert_eq!(cleaned(b"old\x1b[H\x1b[2Jnew\x1b[60G[ ok ]"), "old\nnew [ ok ]");
    }

    #[test]
    fn what_is_no_text_is_marked() {
        assert_eq!(cleaned(b"a\xffb\xe2\x82c\xe2"), "a\u{fffd}b\u{fffd}c\u{fffd}");
    }

    #[test]
    fn runs_of_a_line_are_counted() {
        let text = "compiling the crates\n".repeat(500);
        let told = "compiling the crates\n".repeat(3) + "[the line above 497 times more]\n";
        assert_eq!(cleaned((text + "end").as_bytes()), told + "end");
        let few = "the same thing\n".repeat(5);
        assert_eq!(cleaned(few.as_bytes()), few, "a note would be no shorter");
    }

    #[test]
    fn little_is_held_of_a_line_without_end() {
        let (mut cleaner, mut count) = (OutputCleaner::default(), 0);
        for _ in 0..1_000 {
            cleaner.push(&[b'x'; 10_000], |part| count += part.len());
        }
        assert!(count > 9_800_000, "{count}");
        cleaner.push(b"\rback", |_| {});
        cleaner.flush(|part| count += part.len());
        assert_eq!(count, 10_000_000);
    }

    /// Bytes that mean something, in any order.
    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let part = prop_oneof![
            4 => select(vec![
                b"\n".to_vec(), b"\r".to_vec(), b"\x08".to_vec(), b"\x1b[".to_vec(), b"\x1b[A".to_vec(), b"\x1b[3F".to_vec(),
                b"\x1b[2B".to_vec(), b"\x1b[K".to_vec(), b"\x1b[1K".to_vec(), b"\x1b[J".to_vec(), b"\x1b[2J".to_vec(),
                b"\x1b[9C".to_vec(), b"\x1b[4G".to_vec(), b"\x1b]".to_vec(), b"\x1b\\".to_vec(), b"\x1bM".to_vec(),
                b"\xc2".to_vec(), b"\x9b".to_vec(), b"same\n".to_vec(), b"\n\n\n\n".to_vec(),
                "\u{e4}\u{1f980}".as_bytes().to_vec(), vec![b'w'; 3_000], b"same long line of text\n".repeat(40),
            ]),
            2 => "[a-z0-9;]{1,6}".prop_map(String::into_bytes),
            1 => vec(any::<u8>(), 1..6),
        ];
        vec(part, 0..60).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn pieces_give_the_same_as_the_whole_and_nothing_grows(bytes in stream(), cuts in vec(any::<Index>(), 0..8)) {
            let whole = cleaned(&bytes);
            prop_assert!(whole.chars().count() <= bytes.len());
            prop_assert!(!whole.contains(|letter: char| letter.is_control() && letter != '\n' && letter != '\t'));
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            prop_assert_eq!(in_pieces(&pieces), whole.as_str());
            let singles: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(in_pieces(&singles), whole);
        }
    }
}
