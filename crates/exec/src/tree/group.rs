//! The processes that came of a command, where the system has no subreaper and no `/proc`: its process group.

use std::io;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use crate::command_mark::CommandMark;

/// Nobody adopts orphans here.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

/// Can't be counted cheaply here.
pub(crate) fn machine_task_count() -> Option<u64> {
    None
}

/// The processes of one command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessTree {
    #[expect(dead_code, reason = "the keeper is the root of the tree only where there is a tree")]
    pub(crate) keeper: Pid,
    pub(crate) command: Pid,
    #[expect(dead_code, reason = "there are no namespaces here, and nobody to hold them")]
    pub(crate) holder: Option<Pid>,
    #[expect(dead_code, reason = "environments of others are not seen here")]
    pub(crate) mark: Option<CommandMark>,
}

/// The group as a whole: its members can't be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeProcess(Pid);

impl ProcessTree {
    pub(crate) fn members(self) -> Vec<TreeProcess> {
        if test_kill_process_group(self.command).is_ok() {
            vec![TreeProcess(self.command)]
        } else {
            Vec::new()
        }
    }

    pub(crate) fn orphans(self) -> Vec<TreeProcess> {
        self.members()
    }

    pub(crate) fn is_gone(self) -> bool {
        self.members().is_empty()
    }

    /// There is no holder here.
    pub(crate) fn let_go(self) -> bool {
        false
    }

    pub(crate) fn kill(self) {
        self.signal(&self.members(), Signal::KILL);
    }

    pub(crate) fn signal(self, members: &[TreeProcess], signal: Signal) {
        for TreeProcess(group) in members {
            let _ = kill_process_group(*group, signal);
        }
    }
}

pub(crate) fn count(members: &[TreeProcess]) -> u32 {
    u32::try_from(members.len()).unwrap_or(u32::MAX)
}
