//! Confinement where there is none: every order that asks for it is refused.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::io::Errno;
use rustix::process::Pid;

use crate::confinement::{Confinement, Part};
use crate::network::Files;
use crate::report::{Refusal, Step};

pub(crate) struct Plan<'a> {
    pub(crate) confinement: &'a Confinement,
    #[expect(dead_code, reason = "nothing is done with it here")]
    pub(crate) cwd: &'a Path,
    #[expect(dead_code, reason = "nothing is done with it here")]
    pub(crate) processes: Option<u32>,
    #[expect(dead_code, reason = "nothing is done with it here")]
    pub(crate) sockets: Vec<PathBuf>,
    #[expect(dead_code, reason = "nothing is done with it here")]
    pub(crate) beside: Option<&'a Files>,
}

pub(crate) struct Confined {
    pub(crate) command: Pid,
    pub(crate) holder: Option<Holder>,
    pub(crate) layer: Option<LayerLock>,
}

/// There are no layers here.
pub(crate) struct LayerLock;

pub(crate) struct Holder {
    pub(crate) pid: Pid,
}

pub(crate) fn start(_command: Command, plan: &Plan<'_>) -> Result<Confined, Refusal> {
    let part = if plan.confinement.settled().is_some() { Part::System } else { Part::Request };
    Err(Refusal::of(Step::Confinement(part), &Errno::NOSYS.into()))
}

pub(crate) const fn can_jail() -> bool {
    false
}

pub(crate) fn jail(_writable: &[PathBuf]) -> io::Result<()> {
    Err(Errno::NOSYS.into())
}

pub(crate) fn end_with(_parent: Pid) -> io::Result<bool> {
    Err(Errno::NOSYS.into())
}

/// Nothing is inherited that was not meant to be, as far as this system lets us.
pub(crate) fn keep_files_to_ourselves() {}
