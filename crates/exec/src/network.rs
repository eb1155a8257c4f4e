//! A network with nobody in it but commands, which several of them share: what one serves, the others reach.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::process::Pid;

/// The network of a confined command that reaches no other: [`Running::network`](crate::RunningCommand::network). It lasts for as
/// long as somebody has it.
#[derive(Clone, Debug)]
pub struct LocalNetwork(Arc<NamespaceFiles>);

/// The namespaces of a network and of the users to whom it belongs.
#[derive(Debug)]
pub(crate) struct NamespaceFiles {
    pub(crate) users: OwnedFd,
    pub(crate) network: OwnedFd,
}

impl LocalNetwork {
    /// That of a process.
    pub(crate) fn of(process: Pid) -> io::Result<LocalNetwork> {
        let open = |kind: &str| File::open(format!("/proc/{}/ns/{kind}", process.as_raw_pid()));
        Ok(LocalNetwork(Arc::new(NamespaceFiles {
            users: open("user")?.into(),
            network: open("net")?.into(),
        })))
    }

    /// In the order in which they are handed over.
    pub(crate) fn files(&self) -> [&OwnedFd; 2] {
        [&self.0.users, &self.0.network]
    }
}
