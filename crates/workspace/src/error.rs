//! What can go wrong with a workspace, each with what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use helve_protocol::BlobError;

/// Why a workspace could not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The folder is `/`.
    #[error("{} is the root of all files, and is not looked through unasked", .0.display())]
    FileSystemRoot(PathBuf),
    /// The folder is the user's home folder, or around it.
    #[error("{} is your home folder or above it, and is not looked through unasked", .0.display())]
    Home(PathBuf),
    /// There is no folder by that name.
    #[error("{} is not a folder", .0.display())]
    NotAFolder(PathBuf),
    /// There are more files than [`WorkspaceLimits::max_files`](crate::WorkspaceLimits::max_files).
    #[error("there are more than {0} files in the workspace")]
    TooManyFiles(usize),
    /// A path is empty, not Unicode, or leads nowhere in the workspace.
    #[error("`{0}` is not the path of a file")]
    BadPath(String),
    /// A path that was to be restored was changed meanwhile.
    #[error("{0} is not what Helve last saw there")]
    Changed(String),
    /// Something else is where a path was to be restored.
    #[error("{0} is in the way")]
    InTheWay(String),
    /// The content that was to be restored is not kept.
    #[error("what {0} was is not kept, so it can't be brought back")]
    NotKept(String),
    /// What the system said about a file or folder.
    #[error("{}: {source}", path.display())]
    Disk {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A thread that looked through the files ended without a result.
    #[error("looking through the workspace broke off: {0}")]
    Broken(String),
    /// The store of contents failed.
    #[error("a file's content could not be kept: {0}")]
    Blobs(#[from] BlobError),
}

impl WorkspaceError {
    /// What a person can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            WorkspaceError::FileSystemRoot(_) | WorkspaceError::Home(_) => {
                "Start Helve in the folder of a project, or name the folder if you mean it: `--cwd DIR`."
            }
            WorkspaceError::NotAFolder(_) => "Choose a folder that exists.",
            WorkspaceError::TooManyFiles(_) => {
                "Start Helve in a smaller folder, or leave folders out with a `.ignore` file."
            }
            WorkspaceError::BadPath(_) => "Name a file relative to the workspace, without `..`.",
            WorkspaceError::Changed(_) => "Look at it first: somebody else changed it.",
            WorkspaceError::InTheWay(_) => "Move it away first: nobody kept what is there.",
            WorkspaceError::NotKept(_) => "Get it from elsewhere: a backup, or the program that made it.",
            WorkspaceError::Broken(_) => "Please report it: this is a mistake in Helve.",
            WorkspaceError::Disk { .. } => "Check the permissions and the space that is left.",
            WorkspaceError::Blobs(_) => "Check that Helve's own folder can be written and has space left.",
        }
    }
}

pub(crate) type WorkspaceResult<T> = Result<T, WorkspaceError>;

/// Says which path an error is about.
pub(crate) trait PathContext<T> {
    fn at(self, path: impl AsRef<Path>) -> WorkspaceResult<T>;
}

impl<T, E: Into<io::Error>> PathContext<T> for Result<T, E> {
    fn at(self, path: impl AsRef<Path>) -> WorkspaceResult<T> {
        let disk = |error: E| WorkspaceError::Disk { path: path.as_ref().to_owned(), source: error.into() };
        self.map_err(disk)
    }
}
