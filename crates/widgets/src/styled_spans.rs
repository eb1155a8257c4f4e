//! Rows that are put together from styled text, piece by piece.

use ratatui::style::Style;
use ratatui::text::Span;

/// Adds text to the spans of a row, to the last one if the style is the same.
pub(crate) fn push_styled(spans: &mut Vec<Span<'static>>, text: &str, style: Style) {
    match spans.last_mut() {
        Some(last) if last.style == style => last.content.to_mut().push_str(text),
        _ => spans.push(Span::styled(text.to_owned(), style)),
    }
}
