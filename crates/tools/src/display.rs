//! How paths and numbers are written in what a tool says.

use std::path::Path;

/// A path as the model is told it: from the project's root, if it is in there.
pub(crate) fn display_path(root: &Path, path: &Path) -> String {
    let short = short(root, path);
    if short.as_os_str().is_empty() { ".".to_owned() } else { short.to_string_lossy().into_owned() }
}

/// A path from the project's root, if it is in there.
pub(crate) fn short<'a>(root: &Path, path: &'a Path) -> &'a Path {
    path.strip_prefix(root).unwrap_or(path)
}

/// A number with its word.
pub(crate) fn count_with_noun(number: u64, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}
