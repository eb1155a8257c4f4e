//! Reading TOML as far as it can be read.
//!
//! The parser recovers from mistakes, but what it makes of the rest of a broken document is guesswork: an
//! unclosed list swallows the lines after it, a key without value hides them. So the first mistake is noted,
//! the lines that it spoils are blanked, and the rest is parsed again. Each mistake is then reported once,
//! and what comes after it is still checked. Offsets stay as they are.

use toml::de::{DeTable, DeValue, Error};

/// Each mistake costs one more reading, so only so many are looked for, and fewer in a very long text.
const MAX_SYNTAX_ERRORS: usize = 64;
const MIN_SYNTAX_ERROR_LIMIT: usize = 8;
const MAX_REPARSED_BYTES: usize = 8 * 1024 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TomlSyntaxError {
    pub(crate) offset: usize,
    pub(crate) message: String,
}

/// The mistakes in a document, and the document without the lines that they spoil.
pub(crate) fn blank_broken_lines(text: &str) -> (Vec<TomlSyntaxError>, String) {
    let mut sound = text.to_owned();
    let mut mistakes = Vec::new();
    let most = (MAX_REPARSED_BYTES / text.len().max(1)).clamp(MIN_SYNTAX_ERROR_LIMIT, MAX_SYNTAX_ERRORS);
    loop {
        let (table, errors) = DeTable::parse_recoverable(&sound);
        let (repeated, broken): (Vec<_>, Vec<_>) = errors.iter().partition(|error| is_duplicate_key(error));
        let Some(first) = broken.into_iter().min_by_key(|error| offset(error)) else {
            mistakes.extend(repeated.into_iter().map(|error| mistake(error, &sound)));
            return (mistakes, sound);
        };
        mistakes.push(mistake(first, &sound));
        let spoilt = broken_lines(&sound, offset(first), table.get_ref());
        let blanked = blank(&sound, spoilt);
        if blanked == sound || mistakes.len() == most {
            return (mistakes, " ".repeat(text.len()));
        }
        sound = blanked;
    }
}

/// A repeated key spoils nothing else: the first one stays and the parser goes on.
fn is_duplicate_key(error: &Error) -> bool {
    error.message() == "duplicate key"
}

fn offset(error: &Error) -> usize {
    error.span().map_or(0, |span| span.start)
}

fn mistake(error: &Error, text: &str) -> TomlSyntaxError {
    let offset = offset(error);
    let before = text.get(..offset).unwrap_or_default().trim_end_matches([' ', '\t']);
    let after = text.get(offset..).unwrap_or_default();
    let nothing_follows = after.is_empty() || after.starts_with(['\n', '\r', '#']);
    let message = match error.message() {
        "duplicate key" => "this key is here a second time",
        _ if before.ends_with('=') && nothing_follows => "a value is missing after `=`",
        other => other,
    };
    TomlSyntaxError { offset, message: format!("not valid TOML: {message}") }
}

/// The lines, as a range of bytes, that can't be understood because of a mistake at `offset`.
fn broken_lines(text: &str, offset: usize, table: &DeTable<'_>) -> std::ops::Range<usize> {
    let start = line_start(text, offset);
    if let Some(value) = value_around(text, table, offset).filter(|value| value.start < start) {
        return line_start(text, value.start)..end_of_value(text, &value);
    }
    let end = line_end(text, offset);
    let line = text.get(start..end).unwrap_or_default();
    // Without its header, nobody knows where the keys below it belong.
    if line.trim_start().starts_with('[') {
        start..next_line(text, end, looks_like_header)
    } else {
        start..end
    }
}

/// A value that was closed is spoilt as a whole. One that was not ends where something new seems to begin.
fn end_of_value(text: &str, value: &std::ops::Range<usize>) -> usize {
    let runs_to_the_end = text.get(value.end..).is_none_or(|rest| rest.trim().is_empty());
    if runs_to_the_end {
        let first_line = line_end(text, value.start);
        next_line(text, first_line, |line| looks_like_header(line) || looks_like_entry(line))
    } else {
        line_end(text, value.end)
    }
}

/// The string, list or inline table that holds `offset`.
fn value_around(text: &str, table: &DeTable<'_>, offset: usize) -> Option<std::ops::Range<usize>> {
    table.iter().find_map(|(_, value)| {
        let span = value.span();
        let begins_with =
            |letters: &[char]| text.get(span.start..).is_some_and(|rest| rest.starts_with(letters));
        let written_here = match value.get_ref() {
            DeValue::String(_) => begins_with(&['"', '\'']),
            DeValue::Array(_) => begins_with(&['[']),
            DeValue::Table(_) => begins_with(&['{']),
            _ => false,
        };
        if written_here && span.start <= offset && offset <= span.end {
            return Some(span);
        }
        match value.get_ref() {
            DeValue::Table(inner) => value_around(text, inner, offset),
            DeValue::Array(items) => items
                .iter()
                .filter_map(|item| item.get_ref().as_table())
                .find_map(|item| value_around(text, item, offset)),
            _ => None,
        }
    })
}

fn line_start(text: &str, offset: usize) -> usize {
    text.get(..offset).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1)
}

/// Where the line break is, or the end of the text.
fn line_end(text: &str, offset: usize) -> usize {
    text.get(offset..).and_then(|after| after.find('\n')).map_or(text.len(), |at| offset + at)
}

/// Where the first line after `from` begins that `is_wanted`, or the end of the text.
fn next_line(text: &str, from: usize, is_wanted: impl Fn(&str) -> bool) -> usize {
    let mut start = from;
    for line in text.get(from..).unwrap_or_default().split_inclusive('\n') {
        if start > from && is_wanted(line.trim()) {
            return start;
        }
        start += line.len();
    }
    text.len()
}

fn looks_like_header(line: &str) -> bool {
    let inner = line.trim_start_matches('[');
    inner.len() < line.len() && inner.starts_with(|letter: char| letter.is_ascii_alphabetic())
}

fn looks_like_entry(line: &str) -> bool {
    let key = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-. ".contains(&byte));
    line.split_once('=').is_some_and(|(before, _)| !before.trim().is_empty() && key(before))
}

/// The text with spaces in place of everything in `range` but line breaks.
fn blank(text: &str, range: std::ops::Range<usize>) -> String {
    let (Some(before), Some(middle), Some(after)) =
        (text.get(..range.start), text.get(range.clone()), text.get(range.end..))
    else {
        return text.to_owned();
    };
    let mut blanked = String::with_capacity(text.len());
    blanked.push_str(before);
    blanked.extend(middle.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
    blanked.push_str(after);
    blanked
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The lines of the mistakes, and the lines that are left.
    fn mended(text: &str) -> (Vec<usize>, Vec<String>) {
        let (mistakes, sound) = blank_broken_lines(text);
        assert_eq!(sound.len(), text.len());
        let lines = mistakes.iter().map(|mistake| text[..mistake.offset].matches('\n').count() + 1).collect();
        (
            lines,
            sound.lines().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect(),
        )
    }

    #[test]
    fn each_mistake_is_found_once_and_the_rest_is_kept() {
        for (text, lines, left) in [
            ("a = 1\n", vec![], vec!["a = 1"]),
            ("a = \nb = 3", vec![1], vec!["b = 3"]),
            ("a b = 2\nc = 1", vec![1], vec!["c = 1"]),
            ("a = \"x\nb = 2", vec![1], vec!["b = 2"]),
            ("a = tru\nb = nope\nc = 1", vec![1, 2], vec!["c = 1"]),
            ("[limits\nx = 1\n[ui]\ny = 2", vec![1], vec!["[ui]", "y = 2"]),
            ("[[a]]\nb\n[[a]]\nc = 1", vec![2], vec!["[[a]]", "[[a]]", "c = 1"]),
            ("a = [1, 2\nb = 3\n[c]\nd = 1", vec![2], vec!["b = 3", "[c]", "d = 1"]),
            ("a = [\n 1\n 2,\n]\nb = 3", vec![3], vec!["b = 3"]),
            ("x = '''abc\nd = 2\n", vec![3], vec!["d = 2"]),
            ("a = 1\na = 2\nb = 3", vec![2], vec!["a = 1", "a = 2", "b = 3"]),
            ("]\r\nb = 1\r\n", vec![1], vec!["b = 1"]),
        ] {
            let left = left.into_iter().map(str::to_owned).collect();
            assert_eq!(mended(text), (lines, left), "{text:?}");
        }
    }

    #[test]
    fn a_missing_value_is_called_that() {
        let (mistakes, _) = blank_broken_lines("a = # nothing\n");
        assert_eq!(mistakes[0].message, "not valid TOML: a value is missing after `=`");
    }

    #[test]
    fn very_broken_text_is_given_up_at_some_point() {
        let (mistakes, sound) = blank_broken_lines(&"a b\n".repeat(1000));
        assert_eq!(mistakes.len(), MAX_SYNTAX_ERRORS);
        assert!(sound.trim().is_empty());
    }

    proptest! {
        #[test]
        fn what_is_left_has_no_mistake_but_repetitions(text in "([ab=\\[\\]{}\"'\n,.1é#]|a = 1\n){0,60}") {
            let (_, sound) = blank_broken_lines(&text);
            let (_, errors) = DeTable::parse_recoverable(&sound);
            prop_assert!(errors.iter().all(is_duplicate_key), "{sound:?} {errors:?}");
            prop_assert_eq!(sound.len(), text.len());
        }
    }
}
