//! Reads files that a command may have put there.

use std::fs;
use std::io;
use std::path::Path;

/// The beginning of a file. The command could have put anything else in its place.
pub(crate) fn read_up_to(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(fs::File::open(path)?, most), &mut bytes)?;
    Ok(bytes)
}
