//! How instruction files are opened.

use std::io;
use std::path::{Path, PathBuf};

/// Opens instruction files.
pub trait InstructionFiles {
    /// Resolves an absolute path, with every link on the way.
    fn resolve(&self, path: &Path) -> io::Result<Box<dyn ResolvedInstruction>>;

    /// The Markdown files in a folder and below it, sorted. A folder that is missing has none.
    fn markdown_below(&self, folder: &Path) -> Vec<PathBuf>;

    /// Whether a real path is a secret, or denied by a rule.
    fn is_hidden(&self, path: &Path) -> bool;
}

/// A path that was resolved and not read yet.
pub trait ResolvedInstruction {
    /// The real path: no link leads further.
    fn path(&self) -> &Path;

    /// Reads at most so many bytes.
    fn read(&self, max_bytes: usize) -> Result<FileText, ReadFailure>;
}

/// What was read of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileText {
    pub bytes: Vec<u8>,
    /// How large the whole file is.
    pub total_bytes: u64,
}

/// Why a file was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadFailure {
    Missing,
    /// A folder, a pipe, a device.
    NotAFile,
    Unreadable(String),
}
