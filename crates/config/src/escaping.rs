//! Messages that quote files, made safe to show in a terminal.

use helve_protocol::one_line;

/// A message may quote a file that anybody wrote: longer ones are cut.
const MAX_MESSAGE_CHARS: usize = 400;

/// Text that is safe to show in a terminal, whatever file it quotes.
pub(crate) fn escape_and_shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => one_line(text.get(..end).unwrap_or(text)) + "…",
        None => one_line(text),
    }
}
