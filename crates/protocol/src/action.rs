//! What a call is about to do, as its tool says it. The gate judges by it.

use std::path::PathBuf;

/// One thing that a call would do. Paths are absolute, and as they were named: a link may lead elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolAction {
    Read(PathBuf),
    /// Look for something in files.
    Search(String),
    Write(PathBuf),
    Delete(PathBuf),
    /// Run a command, in a folder.
    Run {
        command: String,
        folder: PathBuf,
        /// It says itself that it needs the network.
        network: bool,
        /// It says itself that it needs the user's credentials.
        credentials: bool,
    },
    Fetch(String),
    /// Anything else, in words.
    Other {
        what: String,
        /// It reaches no further than a command that is confined.
        is_confined: bool,
    },
}

/// What a call needs beyond what any may do. Once it is allowed, it has that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallPermissions {
    pub network: bool,
    /// Places that it writes although they are outside, or guarded.
    pub writes: Vec<PathBuf>,
    /// Secrets that it reads.
    pub reads: Vec<PathBuf>,
    /// It can't work confined at all: as another user, with a container.
    pub unconfined: bool,
    /// It may look at the project, and not change it: plan mode.
    pub read_only: bool,
    /// The program and its arguments, where the call is run without a shell, so that nothing else gets what only this
    /// program was given: credentials, or a way out of the sandbox.
    pub alone: Option<Vec<String>>,
    /// The program whose credentials it gets: `git`, `npm`.
    pub credentials: Option<String>,
}
