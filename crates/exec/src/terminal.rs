//! A terminal for a command: Helve holds one side of it, the command has the other.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{FdFlags, fcntl_setfd, ioctl_fionbio};
use rustix::process::{ioctl_tiocsctty, setsid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::stdio::stdin;
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::net::unix::pipe;

use crate::command_spec::WindowSize;

/// Both sides of a terminal.
pub(crate) struct CommandTerminal {
    /// What the command says.
    pub(crate) output: pipe::Receiver,
    /// What is typed.
    pub(crate) input: pipe::Sender,
    /// The command's side.
    pub(crate) theirs: OwnedFd,
}

impl CommandTerminal {
    pub(crate) fn open(size: WindowSize) -> io::Result<CommandTerminal> {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        fcntl_setfd(&ours, FdFlags::CLOEXEC)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let name = ptsname(&ours, Vec::new())?;
        let theirs = open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
        let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&theirs, size)?;
        ioctl_fionbio(&ours, true)?;
        // It is no pipe, but it is read and written as one.
        let input = pipe::Sender::from_owned_fd_unchecked(ours.try_clone()?)?;
        let output = pipe::Receiver::from_owned_fd_unchecked(ours)?;
        Ok(CommandTerminal { output, input, theirs })
    }
}

/// Gives a command this terminal, as the one that controls its session, of which it is the leader.
#[expect(unsafe_code, reason = "only a new process can make a session of its own before its program begins")]
pub(crate) fn attach_terminal(command: &mut Command, theirs: impl AsFd) -> io::Result<()> {
    let side = || theirs.as_fd().try_clone_to_owned().map(Stdio::from);
    command.stdin(side()?).stdout(side()?).stderr(side()?);
    let take = || {
        setsid()?;
        Ok(ioctl_tiocsctty(stdin())?)
    };
    // SAFETY: between fork and exec, it does two system calls and touches no memory that another thread may hold.
    unsafe { command.pre_exec(take) };
    Ok(())
}
