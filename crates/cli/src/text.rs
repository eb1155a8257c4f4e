//! Words for people.

use helve_protocol::Timestamp;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Text from elsewhere, with nothing in it that a terminal would obey and nothing that turns the writing around.
pub(crate) fn printable(text: &str) -> String {
    let shown = |letter: char| match letter {
        '\n' | '\t' => letter,
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        letter if letter.is_control() => '\u{fffd}',
        letter => letter,
    };
    text.chars().map(shown).collect()
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
pub(crate) fn moment(time: Timestamp) -> String {
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
