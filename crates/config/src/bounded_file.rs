//! Reading files that somebody else may have written, without being held up or flooded by them.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// No settings file is longer than this.
const MAX_SETTINGS_FILE_BYTES: u64 = 1024 * 1024;

/// Reads a whole file. What is no plain file, or too long, is an error.
pub(crate) fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    // Asked before opening, because opening a pipe would wait for a writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_SETTINGS_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= MAX_SETTINGS_FILE_BYTES => Ok(bytes),
        _ => Err(io::Error::other("it is larger than 1 MiB")),
    }
}
