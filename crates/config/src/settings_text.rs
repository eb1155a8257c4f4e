//! A file's text, and where in it something is.

use std::path::{Path, PathBuf};

use crate::origin::{ConfigLayer, ConfigLocation, ConfigPosition, SettingOrigin};

/// Characters are counted once for every so many bytes: a position then costs the same in a file of one long
/// line.
const CHAR_COUNT_BLOCK_BYTES: usize = 256;

pub(crate) struct SettingsText {
    path: PathBuf,
    layer: ConfigLayer,
    text: String,
    line_starts: Vec<usize>,
    /// How many characters come before each block.
    chars_before: Vec<usize>,
}

impl SettingsText {
    /// A byte order mark at the start is not part of the text.
    pub(crate) fn new(layer: ConfigLayer, path: &Path, text: &str) -> SettingsText {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).to_owned();
        let after_breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let line_starts = std::iter::once(0).chain(after_breaks).collect();
        let mut chars_before = vec![0];
        let mut count = 0;
        for block in text.as_bytes().chunks(CHAR_COUNT_BLOCK_BYTES) {
            count += count_chars(block);
            chars_before.push(count);
        }
        SettingsText { path: path.to_owned(), layer, text, line_starts, chars_before }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn origin(&self, offset: usize) -> SettingOrigin {
        let place = ConfigLocation::File { path: self.path.clone(), at: Some(self.position(offset)) };
        SettingOrigin { layer: self.layer, place }
    }

    /// Where the text ends.
    pub(crate) fn end(&self) -> SettingOrigin {
        self.origin(self.text.len())
    }

    fn position(&self, offset: usize) -> ConfigPosition {
        let offset = offset.min(self.text.len());
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        ConfigPosition { line, column: self.chars_until(offset) - self.chars_until(start) + 1 }
    }

    fn chars_until(&self, offset: usize) -> usize {
        let block = offset / CHAR_COUNT_BLOCK_BYTES;
        let rest = self.text.as_bytes().get(block * CHAR_COUNT_BLOCK_BYTES..offset).unwrap_or_default();
        self.chars_before.get(block).copied().unwrap_or(0) + count_chars(rest)
    }
}

/// Every byte that does not continue a character begins one.
fn count_chars(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(text: &str) -> SettingsText {
        SettingsText::new(ConfigLayer::User, Path::new("f"), text)
    }

    #[test]
    fn columns_count_characters_and_lines_start_at_one() {
        let file = text("\u{feff}é = 1\r\nüü = 2\n");
        let at = |offset| {
            let ConfigPosition { line, column } = file.position(offset);
            (line, column)
        };
        assert_eq!(at(0), (1, 1));
        assert_eq!(at(3), (1, 3));
        assert_eq!(at(8), (2, 1));
        assert_eq!(at(13), (2, 4));
        assert_eq!(at(9999), (3, 1));
    }

    proptest! {
        #[test]
        fn positions_agree_with_counting_by_hand(content in "[aé\n]{0,700}", share in 0.0..=1.0_f64) {
            let ends: Vec<usize> = content.char_indices().map(|(at, _)| at).collect();
            let pick = ends.iter().rev().find(|at| **at as f64 <= share * content.len() as f64);
            let offset = pick.copied().unwrap_or(0);
            let before = &content[..offset];
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
            prop_assert_eq!(text(&content).position(offset), ConfigPosition { line, column });
        }
    }
}
