//! The processes that came of a command, as `/proc` shows them.
//!
//! The keeper is a subreaper: whatever loses its parent becomes the keeper's child, so everything that came of the
//! command hangs below the keeper, however often it forked or made a session of its own.

use std::collections::HashSet;
use std::fs;
use std::io;

use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, set_child_subreaper, waitpid,
};

use crate::command_mark::CommandMark;

/// Makes orphans below this process its children.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// How many tasks the whole machine has: much cheaper than counting those of a command.
pub(crate) fn machine_task_count() -> Option<u64> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    load.split(' ').nth(3)?.split_once('/')?.1.parse().ok()
}

/// The processes of one command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessTree {
    pub(crate) keeper: Pid,
    pub(crate) command: Pid,
    /// The first process of the command's PID namespace, if it has one: none of the command's own, but with it all of
    /// them end.
    pub(crate) holder: Option<Pid>,
    /// What all of them carry in their environment, unless they threw it away. The keeper, below which all of them hang,
    /// needs no such mark.
    pub(crate) mark: Option<CommandMark>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeProcess {
    pid: i32,
    parent: i32,
    group: i32,
    session: i32,
    /// Over, but not yet reaped. Its threads may still run, if only the first of them has ended.
    is_zombie: bool,
}

impl ProcessTree {
    /// Those below the keeper.
    pub(crate) fn members(self) -> Vec<TreeProcess> {
        let keeper = self.keeper.as_raw_pid();
        let mut members = below(processes(), |process| process.parent == keeper);
        members.retain(|process| Some(process.pid) != self.holder.map(Pid::as_raw_pid));
        members
    }

    /// Those that can be found once the keeper is dead: its session, that of a command on a terminal, whatever carries the
    /// mark, and what hangs below them.
    pub(crate) fn orphans(self) -> Vec<TreeProcess> {
        let sessions = [self.keeper, self.command].map(Pid::as_raw_pid);
        let keeper = self.keeper.as_raw_pid();
        let environment = |pid: i32| fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let is_marked = |pid: i32| self.mark.is_some_and(|mark| mark.is_in(&environment(pid)));
        below(processes(), |process| {
            process.pid != keeper && (sessions.contains(&process.session) || is_marked(process.pid))
        })
    }

    /// Whether nobody is left, given that the keeper has no children: orphans would be its children.
    pub(crate) fn is_gone(self) -> bool {
        true
    }

    /// Ends the holder if it holds nobody, given that the command has ended. Whatever else there is would hang below it.
    pub(crate) fn let_go(self) -> bool {
        let Some(holder) = self.holder else { return false };
        let pid = holder.as_raw_pid();
        let is_alone = match fs::read(format!("/proc/{pid}/task/{pid}/children")) {
            Ok(children) => children.is_empty(),
            // Not every kernel lists them.
            Err(_) => self.members().is_empty(),
        };
        is_alone
            && kill_process(holder, Signal::KILL).is_ok()
            && waitpid(Some(holder), WaitOptions::empty()).is_ok()
    }

    /// Kills all of them: each child of the keeper as soon as it is seen, the newest first, because some fork and end
    /// faster than all processes can be listed.
    pub(crate) fn kill(self) {
        let mut killed = HashSet::new();
        let mut others = Vec::new();
        for process in pids().into_iter().rev().filter_map(read) {
            if process.parent == self.keeper.as_raw_pid() {
                self.signal(&[process], Signal::KILL);
                killed.insert(process.pid);
            } else {
                others.push(process);
            }
        }
        self.signal(&below(others, |process| killed.contains(&process.parent)), Signal::KILL);
    }

    /// Sends a signal to these. Whole groups at once where that can be: no member can fork out of it meanwhile.
    pub(crate) fn signal(self, members: &[TreeProcess], signal: Signal) {
        let mut groups = HashSet::from([self.keeper.as_raw_pid()]);
        for member in members {
            if groups.insert(member.group)
                && let Some(group) = Pid::from_raw(member.group)
            {
                let _ = kill_process_group(group, signal);
            }
            // The keeper leads a session of its own, so a group never has strangers in it. The keeper's own group,
            // which a command may join, has the keeper in it.
            if member.group == self.keeper.as_raw_pid()
                && let Some(pid) = Pid::from_raw(member.pid)
            {
                let _ = kill_process(pid, signal);
            }
        }
    }
}

/// How many of them still run.
pub(crate) fn count(members: &[TreeProcess]) -> u32 {
    let running = members.iter().filter(|member| !member.is_zombie).count();
    u32::try_from(running).unwrap_or(u32::MAX)
}

/// The roots and all that descend from them.
fn below(mut processes: Vec<TreeProcess>, is_root: impl Fn(&TreeProcess) -> bool) -> Vec<TreeProcess> {
    let mut found: Vec<TreeProcess> = Vec::new();
    let mut pids = HashSet::new();
    loop {
        let belongs = |process: &mut TreeProcess| is_root(process) || pids.contains(&process.parent);
        let next: Vec<TreeProcess> = processes.extract_if(.., belongs).collect();
        if next.is_empty() {
            return found;
        }
        pids.extend(next.iter().map(|process| process.pid));
        found.extend(next);
    }
}

/// All processes of the machine that can be seen.
fn processes() -> Vec<TreeProcess> {
    pids().into_iter().filter_map(read).collect()
}

/// Their numbers, in the order of `/proc`: ascending.
fn pids() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn read(pid: i32) -> Option<TreeProcess> {
    parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads `pid (name) state parent group session …`, where the name may hold anything.
fn parse(pid: i32, stat: &[u8]) -> Option<TreeProcess> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let is_zombie = matches!(fields.next()?, "Z" | "X");
    let mut number = || fields.next()?.parse().ok();
    Some(TreeProcess { pid, parent: number()?, group: number()?, session: number()?, is_zombie })
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn process(pid: i32, parent: i32) -> TreeProcess {
        TreeProcess { pid, parent, group: pid, session: pid, is_zombie: false }
    }

    #[test]
    fn descendants_are_found_whatever_their_order() {
        let all = vec![process(9, 8), process(8, 7), process(3, 2), process(7, 1), process(2, 0)];
        let found: Vec<i32> = below(all, |process| process.parent == 1).iter().map(|it| it.pid).collect();
        assert_eq!(found, [7, 8, 9]);
    }

    #[test]
    fn a_name_with_brackets_and_spaces_is_no_trap() {
        let read = parse(5, b"5 (a) Z 1 (b) S 4 3 2 0 -1\n");
        assert_eq!(read, Some(TreeProcess { pid: 5, parent: 4, group: 3, session: 2, is_zombie: false }));
    }

    #[test]
    fn this_process_is_found_below_its_parent() {
        let own = parse(getpid().as_raw_pid(), &fs::read("/proc/self/stat").unwrap()).unwrap();
        assert!(processes().iter().any(|it| it.pid == own.pid && it.parent == own.parent));
        assert!(machine_task_count().unwrap() > 0);
    }

    proptest! {
        #[test]
        fn a_written_line_is_read(name in vec(any::<u8>(), 0..16), parent: i32, group: i32, session: i32) {
            let mut line = b"7 (".to_vec();
            line.extend(name);
            line.extend(format!(") Z {parent} {group} {session} 0\n").into_bytes());
            prop_assert_eq!(parse(7, &line), Some(TreeProcess { pid: 7, parent, group, session, is_zombie: true }));
        }

        #[test]
        fn garbage_never_panics(line in vec(any::<u8>(), 0..60)) {
            let _ = parse(1, &line);
        }
    }
}
