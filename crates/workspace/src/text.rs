//! Files as text, and back, without losing a byte.
//!
//! The text keeps its line endings as they are; only the byte order mark is taken off, because nobody means it when they
//! speak of the first line. Whoever edits looks at [`FileLine`]s, whose endings stand beside their content.

use thiserror::Error;

/// The text of a file, with what is needed to write it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFile {
    /// The text, without a byte order mark.
    pub text: String,
    /// How it stands in the file.
    pub encoding: TextEncoding,
}

/// How a text stands in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextEncoding {
    /// UTF-8 without a byte order mark.
    #[default]
    Utf8,
    /// UTF-8 with a byte order mark.
    Utf8WithBom,
    /// UTF-16, little-endian, always with its mark: without one it can't be told from other bytes.
    Utf16Le,
    /// UTF-16, big-endian, always with its mark too.
    Utf16Be,
}

/// Why a file can't be edited as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotTextError {
    /// The file has a zero byte.
    #[error("it is not a text file (byte {at} is zero)")]
    Binary {
        /// Where the zero byte is.
        at: usize,
    },
    /// The file is not UTF-8.
    #[error("it is not valid UTF-8 (line {line}); an edit would damage what can't be read")]
    BadUtf8 {
        /// The first line that can't be read, counted from 1.
        line: usize,
    },
    /// The file begins as UTF-16 and is not.
    #[error("it is not valid UTF-16 (byte {at}); an edit would damage what can't be read")]
    BadUtf16 {
        /// The first byte that can't be read.
        at: usize,
    },
}

/// Which line endings a text has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEndings {
    /// There is no line that ends.
    None,
    /// All end with `\n`.
    Lf,
    /// All end with `\r\n`.
    CrLf,
    /// Some end with `\n`, others with `\r\n`.
    Mixed,
}

const UTF8_BOM: [u8; 3] = [0xef, 0xbb, 0xbf];
const UTF16_LE_BOM: [u8; 2] = [0xff, 0xfe];
const UTF16_BE_BOM: [u8; 2] = [0xfe, 0xff];

impl TextEncoding {
    /// What the first bytes say, and the bytes after the mark.
    fn of(bytes: &[u8]) -> (TextEncoding, &[u8]) {
        let marks: [(TextEncoding, &[u8]); 3] = [
            (TextEncoding::Utf8WithBom, &UTF8_BOM),
            (TextEncoding::Utf16Le, &UTF16_LE_BOM),
            (TextEncoding::Utf16Be, &UTF16_BE_BOM),
        ];
        let marked = marks.iter().find_map(|(encoding, mark)| Some((*encoding, bytes.strip_prefix(*mark)?)));
        marked.unwrap_or((TextEncoding::Utf8, bytes))
    }
}

impl TextFile {
    /// Reads a file in one of the encodings, and refuses what an edit would damage.
    pub fn read(bytes: &[u8]) -> Result<TextFile, NotTextError> {
        let (encoding, content) = TextEncoding::of(bytes);
        let text = match encoding {
            TextEncoding::Utf8 | TextEncoding::Utf8WithBom => utf8(content)?,
            TextEncoding::Utf16Le => utf16(content, u16::from_le_bytes)?,
            TextEncoding::Utf16Be => utf16(content, u16::from_be_bytes)?,
        };
        Ok(TextFile { text, encoding })
    }

    /// The same file with another text.
    pub fn with(&self, text: String) -> TextFile {
        TextFile { text, encoding: self.encoding }
    }

    /// The file as it is written, with its mark.
    pub fn to_bytes(&self) -> Vec<u8> {
        let units = |mark: [u8; 2], bytes: fn(u16) -> [u8; 2]| {
            mark.into_iter().chain(self.text.encode_utf16().flat_map(bytes)).collect()
        };
        match self.encoding {
            TextEncoding::Utf8 => self.text.as_bytes().to_vec(),
            TextEncoding::Utf8WithBom => [&UTF8_BOM, self.text.as_bytes()].concat(),
            TextEncoding::Utf16Le => units(UTF16_LE_BOM, u16::to_le_bytes),
            TextEncoding::Utf16Be => units(UTF16_BE_BOM, u16::to_be_bytes),
        }
    }

    /// Which line endings its text has.
    pub fn endings(&self) -> LineEndings {
        LineEndings::of(&self.text)
    }
}

impl LineEndings {
    /// Which line endings a text has.
    pub fn of(text: &str) -> LineEndings {
        match count_endings(text) {
            (0, 0) => LineEndings::None,
            (_, 0) => LineEndings::Lf,
            (0, _) => LineEndings::CrLf,
            _ => LineEndings::Mixed,
        }
    }
}

/// The text for somebody who only reads: what is not valid is shown as U+FFFD.
pub fn read_lossily(bytes: &[u8]) -> Result<String, NotTextError> {
    match TextFile::read(bytes) {
        Ok(file) => Ok(file.text),
        Err(binary @ NotTextError::Binary { .. }) => Err(binary),
        Err(NotTextError::BadUtf8 { .. }) => {
            Ok(String::from_utf8_lossy(TextEncoding::of(bytes).1).into_owned())
        }
        Err(NotTextError::BadUtf16 { .. }) => lossy_utf16(bytes),
    }
}

fn utf8(bytes: &[u8]) -> Result<String, NotTextError> {
    no_zero(bytes)?;
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let valid = bytes.iter().take(error.valid_up_to());
        NotTextError::BadUtf8 { line: 1 + valid.filter(|byte| **byte == b'\n').count() }
    })?;
    Ok(text.to_owned())
}

fn no_zero(bytes: &[u8]) -> Result<(), NotTextError> {
    match bytes.iter().position(|byte| *byte == 0) {
        Some(at) => Err(NotTextError::Binary { at }),
        None => Ok(()),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, NotTextError> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let units = || pairs.iter().map(|pair| unit(*pair));
    if let Some(at) = units().position(|unit| unit == 0) {
        return Err(NotTextError::Binary { at: 2 + 2 * at });
    }
    let mut text = String::with_capacity(bytes.len());
    let mut at = 2;
    for letter in char::decode_utf16(units()) {
        let letter = letter.map_err(|_| NotTextError::BadUtf16 { at })?;
        at += 2 * letter.len_utf16();
        text.push(letter);
    }
    if rest.is_empty() { Ok(text) } else { Err(NotTextError::BadUtf16 { at }) }
}

fn lossy_utf16(bytes: &[u8]) -> Result<String, NotTextError> {
    let (encoding, content) = TextEncoding::of(bytes);
    let unit = if encoding == TextEncoding::Utf16Be { u16::from_be_bytes } else { u16::from_le_bytes };
    let (pairs, rest) = content.as_chunks::<2>();
    let letters = char::decode_utf16(pairs.iter().map(|pair| unit(*pair)));
    let letters = letters.map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER));
    Ok(letters.chain(rest.iter().map(|_| char::REPLACEMENT_CHARACTER)).collect())
}

/// A line without its ending, and its ending: `\n`, `\r\n`, or nothing where the text ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLine<'a> {
    /// The line.
    pub content: &'a str,
    /// Its ending.
    pub ending: &'a str,
}

/// The lines of a text. Put together they are the text again.
pub fn lines(text: &str) -> impl Iterator<Item = FileLine<'_>> {
    text.split_inclusive('\n').map(|line| {
        let content = line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line));
        let (content, ending) = line.split_at_checked(content.len()).unwrap_or((line, ""));
        FileLine { content, ending }
    })
}

/// A text that is put together from lines.
#[derive(Clone, Debug)]
pub struct FileTextBuilder<'a> {
    text: String,
    lines: usize,
    /// How a line ends that has to and does not say how.
    ending: &'a str,
}

impl<'a> FileTextBuilder<'a> {
    /// Begins an empty text. `ending` is for lines that must end and do not say how.
    pub fn new(ending: &'a str) -> FileTextBuilder<'a> {
        FileTextBuilder { text: String::new(), lines: 0, ending }
    }

    /// Adds a line. One before it that had no ending gets one.
    pub fn push(&mut self, content: &str, ending: &str) {
        // What was a last line without an ending may no longer be the last.
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push_str(self.ending);
        }
        self.text.push_str(content);
        self.text.push_str(ending);
        self.lines += 1;
    }

    /// How many lines were added.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// The text.
    pub fn into_text(self) -> String {
        self.text
    }
}

/// How most lines of a text end.
pub fn main_ending(text: &str) -> &'static str {
    let (lf, crlf) = count_endings(text);
    if crlf > lf { "\r\n" } else { "\n" }
}

fn count_endings(text: &str) -> (usize, usize) {
    lines(text).fold((0, 0), |(lf, crlf), line| match line.ending {
        "\n" => (lf + 1, crlf),
        "\r\n" => (lf, crlf + 1),
        _ => (lf, crlf),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encodings() -> impl Strategy<Value = TextEncoding> {
        prop_oneof![
            Just(TextEncoding::Utf8),
            Just(TextEncoding::Utf8WithBom),
            Just(TextEncoding::Utf16Le),
            Just(TextEncoding::Utf16Be)
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(text in r"([a-zé€😀]|\r|\n|\r\n){0,60}", encoding in encodings()) {
            let file = TextFile { text, encoding };
            prop_assert_eq!(TextFile::read(&file.to_bytes()).unwrap(), file);
        }

        #[test]
        fn what_is_read_is_written_again(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(file) = TextFile::read(&bytes) {
                prop_assert_eq!(file.to_bytes(), bytes);
            }
        }

        #[test]
        fn marked_bytes_are_kept_or_refused(mark in 0..3_usize, bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mark: &[u8] = [&UTF8_BOM[..], &UTF16_LE_BOM, &UTF16_BE_BOM][mark];
            let bytes = [mark, &bytes].concat();
            match TextFile::read(&bytes) {
                Ok(file) => prop_assert_eq!(file.to_bytes(), bytes),
                Err(NotTextError::Binary { .. }) => prop_assert!(read_lossily(&bytes).is_err()),
                Err(_) => prop_assert!(read_lossily(&bytes).unwrap().contains(char::REPLACEMENT_CHARACTER)),
            }
        }

        #[test]
        fn lines_make_up_the_text(text in r"([ab]|\r|\n|\r\n){0,40}") {
            let again: String = lines(&text).flat_map(|line| [line.content, line.ending]).collect();
            prop_assert_eq!(again, text);
        }
    }

    #[test]
    fn reasons_say_where() {
        assert_eq!(TextFile::read(b"ab\0c"), Err(NotTextError::Binary { at: 2 }));
        assert_eq!(TextFile::read(b"a\nb\xff\n"), Err(NotTextError::BadUtf8 { line: 2 }));
        assert_eq!(TextFile::read(b"\xff\xfea\0\x00\xd8"), Err(NotTextError::BadUtf16 { at: 4 }));
        assert_eq!(TextFile::read(b"\xff\xfea\0b"), Err(NotTextError::BadUtf16 { at: 4 }));
        assert_eq!(read_lossily(b"a\xff"), Ok("a\u{fffd}".to_owned()));
        assert!(read_lossily(b"a\0").is_err());
    }

    #[test]
    fn endings_are_told() {
        let endings = |text: &str| TextFile::read(text.as_bytes()).unwrap().endings();
        assert_eq!(endings("a"), LineEndings::None);
        assert_eq!(endings("a\nb"), LineEndings::Lf);
        assert_eq!(endings("a\r\nb\r\n"), LineEndings::CrLf);
        assert_eq!(endings("a\r\nb\n"), LineEndings::Mixed);
        assert_eq!(main_ending("a\r\nb\n\r\n"), "\r\n");
    }
}
