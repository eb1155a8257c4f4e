//! Words for people.

use std::path::Path;

pub(crate) use helve_protocol::one_line;
use helve_protocol::{ApprovalRequested, Timestamp, is_bidi_control};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::console::{BAD, DIM, GOOD, WARN};

/// Text from elsewhere, on as many lines as it has, with nothing in it that a terminal would obey and nothing that
/// turns the writing around.
pub(crate) fn printable(text: &str) -> String {
    let shown = |letter: char| match letter {
        '\n' | '\t' => letter,
        letter if letter.is_control() || is_bidi_control(letter) => '\u{fffd}',
        letter => letter,
    };
    text.chars().map(shown).collect()
}

pub(crate) fn path(path: &Path) -> String {
    one_line(&path.display().to_string())
}

/// A value that a person has to judge, however long it is: its beginning, its end, and how much is between. Many blanks
/// in a row would push the rest out of sight, so they are counted.
pub(crate) fn text_for_review(text: &str) -> String {
    const BLANKS: usize = 8;
    const SHOWN: usize = 20_000;
    let mut counted = String::new();
    let mut rest = one_line(text);
    while let Some(start) = rest.find(&" ".repeat(BLANKS)) {
        let (before, blanks) = rest.split_at(start);
        let after = blanks.trim_start_matches(' ');
        counted.push_str(before);
        counted.push_str(&format!("[{} blanks]", blanks.len() - after.len()));
        rest = after.to_owned();
    }
    counted.push_str(&rest);
    let letters: Vec<char> = counted.chars().collect();
    if letters.len() <= SHOWN {
        return counted;
    }
    let (beginning, rest) = letters.split_at(SHOWN / 2);
    let (between, end) = rest.split_at(rest.len() - SHOWN / 2);
    let text = |letters: &[char]| letters.iter().collect::<String>();
    format!("{} [… {} more …] {}", text(beginning), count(between.len(), "letter", "letters"), text(end))
}

/// A text that fills at most `width` columns.
pub(crate) fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut used = 0;
    let kept = text.chars().take_while(|letter| {
        used += letter.width().unwrap_or(0);
        used < width
    });
    kept.chain(['…']).collect()
}

/// A text filled up to `width` columns.
pub(crate) fn pad(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(missing))
}

pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", thousands(number as u64), if number == 1 { one } else { many })
}

/// `12,345`
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `3 min ago`
pub(crate) fn ago(now: Timestamp, then: Timestamp) -> String {
    if then.millis_since(now) > 60_000 {
        return day(then);
    }
    let seconds = now.millis_since(then) / 1000;
    match seconds {
        0..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        86_400..172_800 => "yesterday".to_owned(),
        172_800..2_592_000 => format!("{} days ago", seconds / 86_400),
        _ => day(then),
    }
}

fn zoned(time: Timestamp) -> Option<jiff::Zoned> {
    let millis = i64::try_from(time.millis()).ok()?;
    Some(jiff::Timestamp::from_millisecond(millis).ok()?.to_zoned(jiff::tz::TimeZone::system()))
}

fn day(time: Timestamp) -> String {
    zoned(time).map_or_else(|| "?".to_owned(), |zoned| zoned.strftime("%Y-%m-%d").to_string())
}

/// `2026-05-01 14:03`, in the local time zone.
pub(crate) fn local_time(time: Timestamp) -> String {
    zoned(time).map_or_else(|| "?".to_owned(), |zoned| zoned.strftime("%Y-%m-%d %H:%M").to_string())
}

/// `1.5 GB`
pub(crate) fn bytes(count: u64) -> String {
    let units = [(1u64 << 40, "TB"), (1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB")];
    let unit = units.into_iter().find(|(size, _)| count >= *size);
    unit.map_or_else(
        || format!("{count} bytes"),
        |(size, name)| {
            let tenths = u128::from(count) * 10 / u128::from(size);
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        },
    )
}

/// What is asked before something is done: what, why, how files would change, and the rules that would cover it.
pub(crate) fn question(request: &ApprovalRequested) -> String {
    let mut effects = request.effects.iter();
    let first = effects.next().map(|effect| one_line(effect)).unwrap_or_default();
    let mut text =
        format!("{WARN}Allow Helve to {first}?{WARN:#}\n  {DIM}why{DIM:#}   {}", one_line(&request.reason));
    for effect in effects {
        text.push_str(&format!("\n  {DIM}does{DIM:#}  {}", one_line(effect)));
    }
    for rule in &request.rules {
        text.push_str(&format!("\n  {DIM}rule{DIM:#}  {}", one_line(rule)));
    }
    for line in request.diff.iter().flat_map(|diff| diff.lines()) {
        let style = match line.as_bytes().first() {
            Some(b'+') => GOOD,
            Some(b'-') => BAD,
            _ => DIM,
        };
        text.push_str(&format!("\n    {style}{}{style:#}", one_line(line)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit_and_nothing_in_them_is_obeyed() {
        assert_eq!(fit("a long title", 6), "a lon…");
        assert_eq!(fit("日本語です", 5), "日本…");
        assert_eq!(fit("short", 5), "short");
        assert_eq!(printable("a\x1b[31mb\u{202e}c\n\td\r"), "a\u{fffd}[31mb\u{fffd}c\n\td\u{fffd}");
    }

    #[test]
    fn what_must_be_judged_can_be_seen() {
        assert_eq!(one_line("a\nb\u{202e}c\u{200b}"), "a\\nb\\u{202e}c\\u{200b}");
        assert_eq!(text_for_review(&format!("hi{}; rm", " ".repeat(5000))), "hi[5000 blanks]; rm");
        let long = text_for_review(&format!("begin{}end", "x".repeat(60_000)));
        assert!(long.starts_with("begin") && long.ends_with("end") && long.len() < 21_000, "{}", long.len());
    }

    #[test]
    fn numbers_read_easily() {
        assert_eq!(["0", "999", "1,000", "1,234,567"], [0, 999, 1000, 1_234_567].map(thousands));
        assert_eq!(["5 bytes", "1.5 kB", "1.0 GB"], [5, 1536, 1 << 30].map(bytes));
        let at = |seconds: u64| {
            ago(
                Timestamp::from_millis(10_000_000_000),
                Timestamp::from_millis(10_000_000_000 - seconds * 1000),
            )
        };
        assert_eq!(
            ["just now", "5 min ago", "3 h ago", "yesterday", "3 days ago"],
            [5, 300, 10_800, 90_000, 300_000].map(at)
        );
    }
}
