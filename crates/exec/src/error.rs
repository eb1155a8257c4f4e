//! Why a command could not be started, each with what to do about it.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

use crate::command_spec::{CommandSpec, MAX_COMMAND_SPEC_BYTES};
use crate::confinement::ConfinementPart;
use crate::report::{StartRefusal, StartStep};

#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    #[error("there is no program {}", .0.display())]
    ProgramNotFound(PathBuf),
    #[error("{} can't be executed", .0.display())]
    NotExecutable(PathBuf),
    #[error("there is no folder {}", .0.display())]
    NoFolder(PathBuf),
    #[error("the folder {} can't be entered", .0.display())]
    FolderClosed(PathBuf),
    #[error("the system takes no more processes")]
    TooManyProcesses,
    #[error("the arguments and the environment are longer than the system takes")]
    TooLong,
    #[error("an order of {0} bytes is above the limit of {MAX_COMMAND_SPEC_BYTES}")]
    TooLarge(usize),
    #[error("{} could not be started: {source}", program.display())]
    Other { program: PathBuf, source: io::Error },
    #[error("no terminal can be had: {0}")]
    NoTerminal(#[source] io::Error),
    #[error("the command can't be confined, so it was not run: {part}: {source}")]
    CannotConfine { part: ConfinementPart, source: io::Error },
    #[error("the keeper of commands failed: {0}")]
    SupervisorFailed(#[source] io::Error),
}

/// Why something could not be written to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandInputError {
    #[error("it takes no input, or no more")]
    Closed,
    #[error("it has not read what was written before")]
    Full,
}

impl ExecError {
    /// What a person can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            ExecError::ProgramNotFound(_) => "Check its name, and whether it is installed and on the PATH.",
            ExecError::NotExecutable(_) => {
                "Check its permissions (`chmod +x`), or name the program that runs it."
            }
            ExecError::NoFolder(_) => "Choose a folder that exists.",
            ExecError::FolderClosed(_) => "Check its permissions.",
            ExecError::TooManyProcesses => "End some processes, or raise the limit (`ulimit -u`).",
            ExecError::TooLong | ExecError::TooLarge(_) => "Pass the text in a file.",
            ExecError::Other { .. } => "The system's own words say what is wrong.",
            ExecError::NoTerminal(_) => "Run it without a terminal, or end some that have one.",
            ExecError::CannotConfine { part, .. } => part.remedy(),
            ExecError::SupervisorFailed(_) => "Check that Helve's own program can still be executed.",
        }
    }

    /// What a keeper's refusal means for the order that it got.
    pub(crate) fn refused(refusal: StartRefusal, order: &CommandSpec) -> ExecError {
        let program = PathBuf::from(&order.program);
        let cwd = order.cwd.clone();
        match (refusal.step, Errno::from_raw_os_error(refusal.errno)) {
            (StartStep::Folder, Errno::NOENT | Errno::NOTDIR) => ExecError::NoFolder(cwd),
            (StartStep::Folder, Errno::ACCESS | Errno::PERM) => ExecError::FolderClosed(cwd),
            (StartStep::Program, Errno::NOENT) => ExecError::ProgramNotFound(program),
            (StartStep::Program, Errno::ACCESS | Errno::PERM | Errno::NOEXEC | Errno::NOTDIR) => {
                ExecError::NotExecutable(program)
            }
            (StartStep::Program, Errno::AGAIN) => ExecError::TooManyProcesses,
            (StartStep::Program, Errno::TOOBIG) => ExecError::TooLong,
            (StartStep::Confinement(part), errno) => ExecError::CannotConfine { part, source: errno.into() },
            (StartStep::SupervisorSetup, errno) => ExecError::SupervisorFailed(errno.into()),
            (_, errno) => ExecError::Other { program, source: errno.into() },
        }
    }
}
