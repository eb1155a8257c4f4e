//! Confinement where there is none: every order that asks for it is refused.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::io::Errno;
use rustix::process::Pid;

use crate::confinement::{Confinement, ConfinementPart};
use crate::network::NamespaceFiles;
use crate::report::{StartRefusal, StartStep};

pub(crate) struct SandboxPlan<'a> {
    pub(crate) confinement: &'a Confinement,
    #[expect(dead_code, reason = "nothing is done with it here")]
    pub(crate) cwd: &'a Path,
    #[expect(dead_code, reason = "nothing is done with it here")]
    pub(crate) processes: Option<u32>,
    #[expect(dead_code, reason = "nothing is done with it here")]
    pub(crate) sockets: Vec<PathBuf>,
    #[expect(dead_code, reason = "nothing is done with it here")]
    pub(crate) beside: Option<&'a NamespaceFiles>,
}

pub(crate) struct ConfinedCommand {
    pub(crate) command: Pid,
    pub(crate) holder: Option<NamespaceHolder>,
    pub(crate) layer: Option<LayerLock>,
}

/// There are no layers here.
pub(crate) struct LayerLock;

pub(crate) struct NamespaceHolder {
    pub(crate) pid: Pid,
}

pub(crate) fn start(_command: Command, plan: &SandboxPlan<'_>) -> Result<ConfinedCommand, StartRefusal> {
    let part =
        if plan.confinement.settled().is_some() { ConfinementPart::System } else { ConfinementPart::Request };
    Err(StartRefusal::of(StartStep::Confinement(part), &Errno::NOSYS.into()))
}

pub(crate) const fn can_jail() -> bool {
    false
}

pub(crate) fn jail(_writable: &[PathBuf]) -> io::Result<()> {
    Err(Errno::NOSYS.into())
}

pub(crate) fn die_with_parent(_parent: Pid) -> io::Result<bool> {
    Err(Errno::NOSYS.into())
}

/// Nothing is inherited that was not meant to be, as far as this system lets us.
pub(crate) fn keep_files_to_ourselves() {}
