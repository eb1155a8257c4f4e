//! From the bytes of a page to its text.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// So far a page is searched for a word about its encoding.
const CHARSET_SEARCH_BYTES: usize = 1_024;

/// The text: by its byte order mark, else by what the server says, else by what the page says or how it looks.
pub(crate) fn decode(bytes: &[u8], content_type: &str) -> String {
    let encoding = named_in(content_type)
        .or_else(|| of_wide_letters(bytes))
        .or_else(|| named_in_page(bytes))
        .unwrap_or_else(|| if is_utf8(bytes) { UTF_8 } else { WINDOWS_1252 });
    // A byte order mark is stronger than all of them, and comes off.
    encoding.decode(bytes).0.into_owned()
}

/// What stands after `charset=`.
fn named_in(text: &str) -> Option<&'static Encoding> {
    let text = text.to_ascii_lowercase();
    let (_, after) = text.split_once("charset")?;
    let after = after.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let end = after.find(|letter: char| letter.is_whitespace() || "\"';/>".contains(letter));
    Encoding::for_label(after.get(..end.unwrap_or(after.len()))?.as_bytes())
}

/// Markup whose letters have two bytes each.
fn of_wide_letters(bytes: &[u8]) -> Option<&'static Encoding> {
    match bytes {
        [b'<', 0, ..] => Some(UTF_16LE),
        [0, b'<', ..] => Some(UTF_16BE),
        _ => None,
    }
}

fn named_in_page(bytes: &[u8]) -> Option<&'static Encoding> {
    let head =
        String::from_utf8_lossy(bytes.get(..CHARSET_SEARCH_BYTES).unwrap_or(bytes)).to_ascii_lowercase();
    let named = head.split("<meta").skip(1).find_map(|meta| named_in(meta.split('>').next()?))?;
    // Whoever could read that page so far is not reading letters of two bytes.
    Some(if named == UTF_16LE || named == UTF_16BE { UTF_8 } else { named })
}

/// Whether all is UTF-8. The last letter may have been cut, if others show what it was.
fn is_utf8(bytes: &[u8]) -> bool {
    let Err(error) = std::str::from_utf8(bytes) else { return true };
    let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
    error.error_len().is_none() && !before.is_ascii()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pages_are_read_in_their_encoding() {
        let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let cases: [(&[u8], &str, &str); 10] = [
            (b"caf\xe9", "text/html; charset=ISO-8859-1", "café"),
            (b"caf\xe9", "text/plain; Charset = \"latin1\"; x=y", "café"),
            (b"<meta charset='windows-1252'>caf\xe9", "text/html", "<meta charset='windows-1252'>café"),
            (b"caf\xe9", "text/html", "café"),
            ("café".as_bytes(), "text/html", "café"),
            (b"\xef\xbb\xbfcaf\xc3\xa9", "text/html; charset=latin1", "café"),
            (&wide("é"), "text/html; charset=utf-16le", "é"),
            (&wide("\u{feff}é"), "", "é"),
            (&wide("<p>é"), "text/html", "<p>é"),
            ("<meta charset=utf-16>é".as_bytes(), "text/html", "<meta charset=utf-16>é"),
        ];
        for (bytes, kind, text) in cases {
            assert_eq!(decode(bytes, kind), text, "{kind}");
        }
        let old = b"<META http-equiv=Content-Type content=\"text/html; charset=koi8-r\">\xc1";
        assert!(decode(old, "text/html").ends_with('а'));
        assert_eq!(decode(b"\xc3\xa9 caf\xc3", "text/html"), "é caf\u{fffd}", "a letter that was cut");
    }

    proptest! {
        #[test]
        fn any_bytes_are_text(bytes in prop::collection::vec(any::<u8>(), 0..80), kind in "[a-z/;= \"]{0,20}", name in "[a-z0-9-]{0,12}") {
            let _ = decode(&bytes, &kind);
            let _ = decode(&bytes, &format!("text/html; charset={name}"));
        }
    }
}
