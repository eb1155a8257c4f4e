//! How the lines of the text input lie on rows.

use std::borrow::Cow;
use std::ops::Range;

use crate::chips::{CHIP_PLACEHOLDER, EditorChip, EditorContent};
use crate::width::{TAB_WIDTH, glyphs, truncate_text, width as text_width};

/// One thing in a line: its place in the line, and what is drawn for it.
pub(crate) struct EditorGlyph<'a> {
    pub(crate) place: Range<usize>,
    pub(crate) text: Cow<'a, str>,
    pub(crate) width: usize,
    pub(crate) is_chip: bool,
}

/// The pieces of a line or a row, whose chips begin with the first of `chips`. None is wider than `width`, if it can be. All
/// tabs are of one width, so that a row can be read without what is before it.
pub(crate) fn editor_glyphs<'a>(
    line: &'a str,
    chips: &'a [EditorChip],
    width: usize,
) -> impl Iterator<Item = EditorGlyph<'a>> + 'a {
    let mut chips = chips.iter();
    let mut at = 0;
    glyphs(line, 0).map(move |glyph| {
        let place = at..at + glyph.bytes;
        at = place.end;
        let source = line.get(place.clone()).unwrap_or_default();
        let is_chip = source.contains(CHIP_PLACEHOLDER);
        let chip = if is_chip { chips.next() } else { None };
        let (text, width) = match chip {
            Some(chip) => {
                let text = truncate_text(&format!("[{}]", chip.label), width);
                let width = text_width(&text);
                (text.into(), width)
            }
            None if source.ends_with('\t') => (" ".repeat(TAB_WIDTH).into(), TAB_WIDTH),
            None => (glyph.text, glyph.width),
        };
        EditorGlyph { place, text, width, is_chip }
    })
}

/// The rows of a line, as ranges of it; there is at least one. If the last is full, an empty one follows, for the cursor.
pub(crate) fn rows(line: &str, chips: &[EditorChip], width: usize) -> Vec<Range<usize>> {
    let width = width.max(1);
    let mut starts = vec![0];
    let mut used = 0;
    // Behind the last space of the row: the place, and how much of the row is before it.
    let mut gap: Option<(usize, usize)> = None;
    for piece in editor_glyphs(line, chips, width) {
        let is_space = piece.text.starts_with(' ') && !piece.is_chip;
        if is_space && used + piece.width > width {
            // A space at the edge hangs over it.
            starts.push(piece.place.end);
            (used, gap) = (0, None);
            continue;
        }
        if used + piece.width > width
            && let Some((place, before)) = gap.take()
        {
            starts.push(place);
            used -= before;
        }
        if used + piece.width > width && used > 0 {
            starts.push(piece.place.start);
            used = 0;
        }
        used += piece.width;
        if is_space {
            gap = Some((piece.place.end, used));
        }
    }
    if used >= width {
        starts.push(line.len());
    }
    let ends = starts.iter().skip(1).copied().chain([line.len()]);
    starts.iter().zip(ends).map(|(start, end)| *start..end).collect()
}

/// A line of a text: where it is, and its rows as ranges of the text.
pub(crate) struct EditorLineLayout {
    pub(crate) line: Range<usize>,
    pub(crate) rows: Vec<Range<usize>>,
}

/// Lays out the line in which a place is.
pub(crate) fn lay_out_line(content: &EditorContent, at: usize, width: usize) -> EditorLineLayout {
    let line = line_at(content.text(), at);
    let text = content.text().get(line.clone()).unwrap_or_default();
    let rows = rows(text, content.chips_from(line.start), width);
    let rows = rows.into_iter().map(|row| line.start + row.start..line.start + row.end).collect();
    EditorLineLayout { line, rows }
}

impl EditorLineLayout {
    /// In which row a place is: between two rows it belongs to the lower one.
    pub(crate) fn row_of(&self, at: usize) -> usize {
        self.rows.iter().rposition(|row| row.start <= at).unwrap_or(0)
    }
}

pub(crate) fn line_at(text: &str, at: usize) -> Range<usize> {
    let (before, after) = text.split_at_checked(at).unwrap_or((text, ""));
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let end = after.find('\n').map_or(text.len(), |newline| at + newline);
    start..end
}

/// The pieces of a row of the text, with their places in the row.
pub(crate) fn row_pieces<'a>(
    content: &'a EditorContent,
    row: &Range<usize>,
    width: usize,
) -> impl Iterator<Item = EditorGlyph<'a>> + 'a {
    let text = content.text().get(row.clone()).unwrap_or_default();
    editor_glyphs(text, content.chips_from(row.start), width)
}

/// The column of a place in its row.
pub(crate) fn column_of(content: &EditorContent, row: &Range<usize>, at: usize, width: usize) -> usize {
    row_pieces(content, row, width)
        .take_while(|piece| row.start + piece.place.end <= at)
        .map(|piece| piece.width)
        .sum()
}

/// The place in a row that is nearest to a column, from the left.
pub(crate) fn offset_at_column(
    content: &EditorContent,
    laid: &EditorLineLayout,
    number: usize,
    column: usize,
    width: usize,
) -> usize {
    let Some(row) = laid.rows.get(number) else { return laid.line.start };
    let is_last = number + 1 == laid.rows.len();
    let mut place = row.start;
    let mut used = 0;
    for piece in row_pieces(content, row, width) {
        used += piece.width;
        let end = row.start + piece.place.end;
        // The end of a row is the beginning of the next one.
        if used > column || (end >= row.end && !is_last) {
            break;
        }
        place = end;
    }
    place
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(line: &str, width: usize) -> Vec<&str> {
        rows(line, &[], width).into_iter().map(|row| &line[row]).collect()
    }

    #[test]
    fn rows_break_behind_spaces() {
        assert_eq!(told("hello world", 8), ["hello ", "world"]);
        assert_eq!(told("hello world", 5), ["hello ", "world", ""]);
        assert_eq!(told("incomprehensible", 6), ["incomp", "rehens", "ible"]);
        assert_eq!(told("日本語", 4), ["日本", "語"]);
        assert_eq!(told("日本", 4), ["日本", ""]);
        assert_eq!(told("", 4), [""]);
    }

    proptest! {
        #[test]
        fn rows_cover_the_line(line in "[a-c 日\t\u{301}]{0,40}", width in 1usize..10) {
            prop_assert_eq!(told(&line, width).concat(), line);
        }
    }
}
