//! Reads settings files that anybody may have put there.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Larger ones are not read.
const MAX_SETTINGS_BYTES: u64 = 256 << 10;

/// The text of a settings file; none if it is no file, too large, or no text. A pipe in its place makes nobody wait.
pub(crate) fn read_settings(path: &Path) -> Option<String> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).ok()?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let file = Some(file).filter(|file| file.metadata().is_ok_and(|facts| facts.is_file()))?;
    let mut text = String::new();
    file.take(MAX_SETTINGS_BYTES + 1).read_to_string(&mut text).ok()?;
    (text.len() as u64 <= MAX_SETTINGS_BYTES).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_in_the_place_of_a_file_makes_nobody_wait() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("config");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        assert_eq!(read_settings(&pipe), None);
        std::fs::write(folder.path().join("file"), "a = 1\n").unwrap();
        assert_eq!(read_settings(&folder.path().join("file")).as_deref(), Some("a = 1\n"));
    }
}
