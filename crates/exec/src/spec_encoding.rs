//! How the fields of a command's specification become bytes, and bytes become fields again.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// Appends a count, or anything else that is at most as large.
pub(crate) fn put_count(to: &mut Vec<u8>, count: usize) {
    to.extend((count as u64).to_le_bytes());
}

/// Appends bytes, after their length.
pub(crate) fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put_count(to, bytes.len());
    to.extend(bytes);
}

/// Appends a number that may be missing: a flag, then the number.
pub(crate) fn put_number(to: &mut Vec<u8>, number: Option<u64>) {
    put_count(to, usize::from(number.is_some()));
    to.extend(number.unwrap_or_default().to_le_bytes());
}

/// The rest of a specification that is being read. Every field is `None` where the bytes don't hold one.
pub(crate) struct SpecReader<'a>(&'a [u8]);

impl<'a> SpecReader<'a> {
    /// Begins to read what the `put` functions wrote.
    pub(crate) fn new(bytes: &'a [u8]) -> SpecReader<'a> {
        SpecReader(bytes)
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn count(&mut self) -> Option<u64> {
        let (count, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*count))
    }

    pub(crate) fn flag(&mut self) -> Option<bool> {
        match self.count()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(crate) fn number(&mut self) -> Option<Option<u64>> {
        let is_given = self.flag()?;
        let number = self.count()?;
        Some(is_given.then_some(number))
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.count()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(crate) fn text(&mut self) -> Option<OsString> {
        self.bytes().map(|bytes| OsString::from_vec(bytes.to_vec()))
    }
}
