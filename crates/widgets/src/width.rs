//! How wide text is on a terminal, and text made harmless: what stands in a string from outside is shown, never obeyed.

use std::borrow::Cow;
use std::iter;

use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::invisible;
use crate::styled_spans::push_styled;

/// How far apart the tab stops are.
pub(crate) const TAB_WIDTH: usize = 4;

/// What is more than this in one cluster is marks upon marks.
const MAX_CLUSTER_BYTES: usize = 64;

/// A cluster may be as long as the text: this many bytes are read for its end.
const MAX_CLUSTER_SCAN_BYTES: usize = 1_024;

const TAB_SPACES: &str = "    ";

/// What stands in one place of the screen: a cluster as the reader sees it, and how many columns it takes, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextGlyph<'a> {
    pub text: Cow<'a, str>,
    pub width: usize,
    /// How many bytes of the source it stands for.
    pub bytes: usize,
}

/// The glyphs of a text that begins at a column, which decides how wide its tabs are. What has no width is left out.
pub fn glyphs(text: &str, column: usize) -> impl Iterator<Item = TextGlyph<'_>> {
    let mut rest = text;
    let mut column = column;
    let mut skipped = 0;
    iter::from_fn(move || {
        loop {
            let (cluster, after) = split_cluster(rest)?;
            rest = after;
            let (text, width) = visible_cluster(cluster, column);
            if width == 0 {
                skipped += cluster.len();
                continue;
            }
            column += width;
            let bytes = cluster.len() + skipped;
            skipped = 0;
            return Some(TextGlyph { text, width, bytes });
        }
    })
}

/// The first cluster and what comes after it. What is made visible stands alone.
fn split_cluster(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let first = *bytes.first()?;
    // Nothing joins two plain ASCII characters.
    let is_plain = (b' '..0x7f).contains(&first) && bytes.get(1).is_none_or(u8::is_ascii);
    let end = if is_plain { 1 } else { cluster_end(text)? };
    text.split_at_checked(end)
}

fn cluster_end(text: &str) -> Option<usize> {
    let near = text.get(..text.floor_char_boundary(MAX_CLUSTER_SCAN_BYTES))?;
    let cluster = near.graphemes(true).next()?;
    let mut at = 0;
    for (shown, c) in invisible::visible_chars(cluster) {
        if shown != c {
            return Some(if at == 0 { c.len_utf8() } else { at });
        }
        at += c.len_utf8();
    }
    Some(cluster.len())
}

/// What is shown of a cluster, and its width.
fn visible_cluster(cluster: &str, column: usize) -> (Cow<'_, str>, usize) {
    if cluster == "\t" {
        let width = TAB_WIDTH - column % TAB_WIDTH;
        return (TAB_SPACES.get(..width).unwrap_or(" ").into(), width);
    }
    let cluster = cluster.get(..cluster.floor_char_boundary(MAX_CLUSTER_BYTES)).unwrap_or(cluster);
    let text = sanitize_text(cluster);
    let width = text.width();
    (text, width)
}

/// The text with every character made visible that could steer a terminal, or hide in it; a tab too.
pub fn sanitize_text(text: &str) -> Cow<'_, str> {
    if invisible::visible_chars(text).all(|(shown, c)| shown == c) {
        return text.into();
    }
    invisible::visible_chars(text).map(|(shown, _)| shown).collect::<String>().into()
}

/// How many columns a text takes that begins at column zero.
pub fn width(text: &str) -> usize {
    glyphs(text, 0).map(|glyph| glyph.width).sum()
}

/// How many columns a line takes.
pub fn line_width(line: &Line<'_>) -> usize {
    line.spans.iter().fold(0, |column, span| {
        column + glyphs(&span.content, column).map(|glyph| glyph.width).sum::<usize>()
    })
}

/// The line, or as much of it as fits before a `…`.
pub fn truncate(line: &Line<'_>, most: usize) -> Line<'static> {
    let fits = line_width(line) <= most;
    let room = if fits { most } else { most.saturating_sub(1) };
    let mut spans = Vec::new();
    let mut column = 0;
    'line: for span in &line.spans {
        let style = line.style.patch(span.style);
        for glyph in glyphs(&span.content, column) {
            if column + glyph.width > room {
                break 'line;
            }
            column += glyph.width;
            push_styled(&mut spans, &glyph.text, style);
        }
    }
    if !fits && most > 0 {
        let style = spans.last().map_or(line.style, |span: &Span<'_>| span.style);
        push_styled(&mut spans, "…", style);
    }
    Line::from(spans)
}

/// [`truncate`] for a text without style.
pub fn truncate_text(text: &str, most: usize) -> String {
    truncate(&Line::from(text), most).spans.into_iter().map(|span| span.content).collect()
}

/// 2341 as `2,341`.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut told = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            told.push(',');
        }
        told.push(digit);
    }
    told
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(text: &str) -> String {
        glyphs(text, 0).map(|glyph| glyph.text).collect()
    }

    #[test]
    fn widths_are_those_of_a_terminal() {
        let cases = [
            ("", 0),
            ("abc", 3),
            ("日本", 4),
            ("e\u{301}", 1),
            ("👩‍💻", 2),
            ("🇫🇷🇩🇪", 4),
            ("a\tb", 5),
            ("abcd\tb", 9),
            ("\u{200b}", 1),
            ("rm\u{200d}\u{200d}x", 5),
            ("❤\u{fe0f}\u{200d}🔥", 2),
            ("ｶﾞ", 2),
        ];
        for (text, expected) in cases {
            assert_eq!(width(text), expected, "{text:?}");
        }
    }

    #[test]
    fn controls_are_shown() {
        assert_eq!(told("\x1b[2J\x07\r\n\x7f\u{9b}A\u{202e}x"), "␛[2J␇␍␊␡\u{fffd}A\u{fffd}x");
    }

    #[test]
    fn what_is_made_visible_stands_alone() {
        let texts: Vec<_> = glyphs("e\u{301}\u{200d}\u{fe0f}👩‍💻\u{200d}", 0).map(|glyph| glyph.text).collect();
        assert_eq!(texts, ["e\u{301}", "�", "�", "👩‍💻", "�"]);
    }

    #[test]
    fn marks_upon_marks_are_cut() {
        let text = format!("a{}b", "\u{301}".repeat(10_000));
        assert!(told(&text).len() <= MAX_CLUSTER_BYTES + 1);
        assert_eq!(width(&text), 2);
    }

    #[test]
    fn what_does_not_fit_is_cut_with_an_ellipsis() {
        let cases =
            [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("日本語", 4, "日…"), ("abc", 1, "…"), ("abc", 0, "")];
        for (text, most, expected) in cases {
            assert_eq!(truncate_text(text, most), expected);
        }
    }

    #[test]
    fn large_numbers_are_grouped() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    proptest! {
        #[test]
        fn nothing_that_is_shown_steers_a_terminal(text in any::<String>()) {
            let told = told(&text);
            prop_assert!(!told.chars().any(char::is_control));
            prop_assert_eq!(&*sanitize_text(&told), told.as_str());
        }

        #[test]
        fn every_byte_belongs_to_a_glyph_or_has_no_width(text in "[a-c\u{301}日\t\u{200b}\u{200d}👩💻]{0,20}") {
            let bytes: usize = glyphs(&text, 0).map(|glyph| glyph.bytes).sum();
            prop_assert_eq!(width(text.get(bytes..).unwrap()), 0);
        }

        #[test]
        fn what_is_cut_fits(text in any::<String>(), most in 0usize..20) {
            prop_assert!(width(&truncate_text(&text, most)) <= most);
        }
    }
}
