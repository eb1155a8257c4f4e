//! The few system calls for which there is no safe name.
#![expect(unsafe_code, reason = "nobody offers these calls in a safe form")]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rustix::fs::CWD;
use rustix::process::Pid;
use rustix::thread::{UnshareFlags, unshare_unsafe};

pub(super) const READ_ONLY_MOUNT: u64 = libc::MOUNT_ATTR_RDONLY;
pub(super) const NOSUID_NODEV_MOUNT: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;

/// Whose child a new process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForkParent {
    ThisProcess,
    /// That of this process too.
    SameParent,
}

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Goes on twice: in the new process with `None`. To be called only while this process has one thread.
pub(super) fn fork(parent: ForkParent) -> io::Result<Option<Pid>> {
    let flags = match parent {
        ForkParent::ThisProcess => libc::SIGCHLD,
        ForkParent::SameParent => libc::SIGCHLD | libc::CLONE_PARENT,
    };
    // SAFETY: without a stack of its own, the new process goes on with a copy of all memory, which no other thread was
    // changing.
    let pid = check(unsafe { libc::syscall(libc::SYS_clone, libc::c_long::from(flags), 0, 0, 0, 0) })?;
    Ok(i32::try_from(pid).ok().and_then(Pid::from_raw))
}

/// Moves this process into new namespaces.
pub(super) fn unshare(kinds: UnshareFlags) -> io::Result<()> {
    // SAFETY: no kind of namespace takes away what this process, which has one thread, has open.
    Ok(unsafe { unshare_unsafe(kinds) }?)
}

/// Ends this process at once, without what its parent prepared for its own end.
pub(super) fn leave(code: i32) -> ! {
    // SAFETY: it touches no memory.
    unsafe { libc::_exit(code) }
}

/// Lets the system forget children as they end.
pub(super) fn ignore_children() {
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Closes all open files but this one.
pub(super) fn close_all_but(kept: impl AsFd) {
    let kept = kept.as_fd().as_raw_fd().cast_unsigned();
    let before = kept.checked_sub(1).map(|last| (0, last));
    let after = kept.checked_add(1).map(|first| (first, u32::MAX));
    for (first, last) in before.into_iter().chain(after) {
        // SAFETY: only called where the process does nothing any more with the files that it had.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    }
}

/// Lets no program that is started have files beyond the three standard ones.
pub(crate) fn keep_files_to_ourselves() {
    // SAFETY: it changes a flag only. Where the call is missing, files are opened with the flag anyway.
    unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// Sets attributes of a mount that is not attached yet, and of all below it.
pub(super) fn restrict_mount(mount: impl AsFd, attributes: u64) -> io::Result<()> {
    set_mount(mount, c"", libc::AT_EMPTY_PATH | libc::AT_RECURSIVE, attributes)
}

/// The same for all mounts that can be seen.
pub(super) fn restrict_all_mounts(attributes: u64) -> io::Result<()> {
    set_mount(CWD, c"/", libc::AT_RECURSIVE, attributes)
}

fn set_mount(at: impl AsFd, path: &CStr, flags: i32, attributes: u64) -> io::Result<()> {
    let wish = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let at = at.as_fd().as_raw_fd();
    let size = size_of_val(&wish);
    // SAFETY: the path ends with a zero, and the size is that of the wish.
    check(unsafe {
        libc::syscall(libc::SYS_mount_setattr, at, path.as_ptr(), flags, &raw const wish, size)
    })?;
    Ok(())
}

/// Puts this process, and all that come of it, under a filter.
pub(super) fn filter(program: &[libc::sock_filter]) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    // SAFETY: the program has as many lines as it says, and is only read.
    check(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) })?;
    Ok(())
}
