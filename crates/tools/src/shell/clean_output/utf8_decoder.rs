//! Text out of bytes that are cut anywhere.

/// Holds the beginning of a letter whose rest has not come yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Utf8Decoder {
    begun: Vec<u8>,
}

impl Utf8Decoder {
    /// What is no text is given as `\u{fffd}`.
    pub(crate) fn push(&mut self, bytes: &[u8], mut give: impl FnMut(&str)) {
        let joined;
        let bytes = if self.begun.is_empty() {
            bytes
        } else {
            joined = [std::mem::take(&mut self.begun).as_slice(), bytes].concat();
            joined.as_slice()
        };
        // Nearly always.
        if let Ok(text) = str::from_utf8(bytes) {
            return give(text);
        }
        let mut left = bytes.len();
        for chunk in bytes.utf8_chunks() {
            let (text, wrong) = (chunk.valid(), chunk.invalid());
            left -= text.len() + wrong.len();
            if !text.is_empty() {
                give(text);
            }
            if left == 0 && is_begun(wrong) {
                self.begun = wrong.to_vec();
            } else if !wrong.is_empty() {
                give("\u{fffd}");
            }
        }
    }

    /// Nothing comes any more.
    pub(crate) fn flush(&mut self, mut give: impl FnMut(&str)) {
        if !std::mem::take(&mut self.begun).is_empty() {
            give("\u{fffd}");
        }
    }
}

/// Whether more bytes could make it a letter.
fn is_begun(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
