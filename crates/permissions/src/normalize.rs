//! Paths without detours.

use std::path::{Component, Path, PathBuf};

/// The path without `.` and `..`, as far as that can be said without looking.
pub fn normalize_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}
