//! The system calls that a confined command can't do: what would undo its confinement, reach other processes, or open
//! parts of the kernel that ordinary work has no use for. They fail as if the system did not have them, so that
//! programs do without.

use std::io;

use libc::{c_long, sock_filter};

use crate::confinement::NetworkAccess;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: Option<u32> = None;

/// The numbers of x86-64 from here on are another way to call the same.
const X32_SYSCALL_BASE: u32 = 0x4000_0000;

/// Where a call's number, its architecture and its arguments stand. Of an argument, the lower half, which is all that
/// is looked at.
const SYSCALL_NUMBER_OFFSET: u32 = 0;
const ARCHITECTURE_OFFSET: u32 = 4;
const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

/// Those that fail with "not permitted".
const FORBIDDEN_SYSCALLS: &[c_long] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Mounts and roots, in the old way and the new.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_fanotify_init,
    // Keys of the session, which outlive the command.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// The same number everywhere, newer than our library of numbers.
const OPEN_TREE_ATTR: c_long = 467;
const FCHMODAT2: c_long = 452;

/// Those that fail as if the system were older: programs then use calls that can be looked into, which these can't.
const UNAVAILABLE_SYSCALLS: &[c_long] = &[
    libc::SYS_clone3,
    libc::SYS_openat2,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Rights of a file's owner or group for whoever runs it. Where root runs Helve, such a file in the workspace would make
/// anybody root. On a folder the second one only says whose group new files have; it can't be told apart here.
const SET_ID_BITS: u32 = 0o6000;

/// Calls that set permissions, and which of their arguments holds them.
const MODE_SYSCALLS: &[(c_long, u32)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, 1),
    (libc::SYS_mkdirat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_mknodat, 2),
];

/// Calls that set permissions if they make a file: which arguments hold their flags and the permissions.
const OPEN_SYSCALLS: &[(c_long, u32, u32)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1, 2),
    (libc::SYS_openat, 2, 3),
];
/// `O_CREAT`, and the part of `O_TMPFILE` that is its own.
const CREATE_FILE_FLAGS: u32 = 0o100 | 0o20_000_000;

/// All kinds of namespaces. Time stands apart: in `clone`, its bit is part of a signal's number.
const NAMESPACE_FLAGS: u32 = 0x7e02_0000;
const TIME_NAMESPACE_FLAG: u32 = 0x80;

/// What a new thread has and a new process has not.
const THREAD_FLAG: u32 = libc::CLONE_THREAD.cast_unsigned();

/// Typing into a terminal as if a person did, and what else terminals can do for others.
const FORBIDDEN_TERMINAL_IOCTLS: [u32; 3] = [0x5412, 0x541c, 0x5423];

/// Which kinds of sockets a command can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketPolicy {
    /// In a network of its own, or where Unix sockets are told apart by what can be seen.
    Namespaced,
    /// Where nothing but this filter stands between the command and the sockets of others.
    FilterOnly(NetworkAccess),
}

impl SocketPolicy {
    fn families(self) -> &'static [i32] {
        match self {
            SocketPolicy::Namespaced => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
            SocketPolicy::FilterOnly(NetworkAccess::On) => &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
            SocketPolicy::FilterOnly(NetworkAccess::Off | NetworkAccess::Shared) => &[],
        }
    }
}

/// What a command can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessPolicy {
    Any,
    /// None: threads are all that it can make.
    None,
}

/// Puts this process under the filter, for good.
pub(super) fn apply(sockets: SocketPolicy, processes: ProcessPolicy) -> io::Result<()> {
    let architecture = ARCHITECTURE.ok_or(io::ErrorKind::Unsupported)?;
    super::syscalls::filter(&program(architecture, sockets, processes))
}

/// Whether there is a filter for this machine.
pub(super) const fn is_possible() -> bool {
    ARCHITECTURE.is_some()
}

fn program(architecture: u32, sockets: SocketPolicy, processes: ProcessPolicy) -> Vec<sock_filter> {
    let mut lines = head(architecture);
    if processes == ProcessPolicy::None {
        #[cfg(target_arch = "x86_64")]
        for number in [libc::SYS_fork, libc::SYS_vfork] {
            lines.extend(when_syscall(number, &[fail(libc::EPERM)]));
        }
        lines.extend(when_syscall(libc::SYS_clone, &unless_any(0, THREAD_FLAG)));
    }
    lines.extend(rules(sockets));
    lines
}

/// Refuses other ways to call, and loads the number of the call.
fn head(architecture: u32) -> Vec<sock_filter> {
    vec![
        load(ARCHITECTURE_OFFSET),
        jump(libc::BPF_JEQ, architecture, 1, 0),
        fail(libc::ENOSYS),
        load(SYSCALL_NUMBER_OFFSET),
        jump(libc::BPF_JGE, X32_SYSCALL_BASE, 0, 1),
        fail(libc::ENOSYS),
    ]
}

fn rules(sockets: SocketPolicy) -> Vec<sock_filter> {
    let mut lines = Vec::new();
    lines.extend(FORBIDDEN_SYSCALLS.iter().flat_map(|number| when_syscall(*number, &[fail(libc::EPERM)])));
    lines.extend(UNAVAILABLE_SYSCALLS.iter().flat_map(|number| when_syscall(*number, &[fail(libc::ENOSYS)])));
    lines.extend(when_syscall(libc::SYS_clone, &if_any(0, NAMESPACE_FLAGS)));
    lines.extend(when_syscall(libc::SYS_unshare, &if_any(0, NAMESPACE_FLAGS | TIME_NAMESPACE_FLAG)));
    lines.extend(
        MODE_SYSCALLS.iter().flat_map(|(number, mode)| when_syscall(*number, &if_any(*mode, SET_ID_BITS))),
    );
    lines.extend(
        OPEN_SYSCALLS.iter().flat_map(|(number, flags, mode)| {
            when_syscall(*number, &if_made_with(*flags, *mode, SET_ID_BITS))
        }),
    );
    lines.extend(when_syscall(libc::SYS_ioctl, &if_one_of(1, &FORBIDDEN_TERMINAL_IOCTLS)));
    // Asking for it, and having the ordinary one, is no harm.
    lines.extend(when_syscall(libc::SYS_personality, &unless_one_of(0, &[0, u32::MAX], libc::EPERM)));
    let families: Vec<u32> = sockets.families().iter().map(|family| family.cast_unsigned()).collect();
    lines.extend(when_syscall(libc::SYS_socket, &unless_one_of(0, &families, libc::EACCES)));
    if matches!(sockets, SocketPolicy::FilterOnly(_)) {
        // Where other processes are seen, they could be starved by limits: one's own are set with zero for oneself.
        lines.extend(when_syscall(libc::SYS_prlimit64, &unless_one_of(0, &[0], libc::EPERM)));
    }
    lines.push(allow());
    lines
}

/// What is done for a call of this number. It must decide, or end with the number loaded again.
fn when_syscall(number: c_long, then: &[sock_filter]) -> Vec<sock_filter> {
    // Numbers of calls are small, and so are the pieces that are jumped over.
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    let length = u8::try_from(then.len()).unwrap_or(u8::MAX);
    [&[jump(libc::BPF_JEQ, number, 0, length)], then].concat()
}

fn if_any(index: u32, bits: u32) -> Vec<sock_filter> {
    vec![load(argument(index)), jump(libc::BPF_JSET, bits, 0, 1), fail(libc::EPERM), allow()]
}

/// Refuses a call without any of these bits, and leaves the others to what follows.
fn unless_any(index: u32, bits: u32) -> Vec<sock_filter> {
    vec![
        load(argument(index)),
        jump(libc::BPF_JSET, bits, 1, 0),
        fail(libc::EPERM),
        load(SYSCALL_NUMBER_OFFSET),
    ]
}

fn if_made_with(flags: u32, mode: u32, bits: u32) -> Vec<sock_filter> {
    let is_made = [load(argument(flags)), jump(libc::BPF_JSET, CREATE_FILE_FLAGS, 1, 0), allow()];
    [is_made.as_slice(), &if_any(mode, bits)].concat()
}

fn if_one_of(index: u32, values: &[u32]) -> Vec<sock_filter> {
    let mut lines = vec![load(argument(index))];
    for value in values {
        lines.extend([jump(libc::BPF_JEQ, *value, 0, 1), fail(libc::EPERM)]);
    }
    lines.push(allow());
    lines
}

fn unless_one_of(index: u32, values: &[u32], errno: i32) -> Vec<sock_filter> {
    let mut lines = vec![load(argument(index))];
    for value in values {
        lines.extend([jump(libc::BPF_JEQ, *value, 0, 1), allow()]);
    }
    lines.push(fail(errno));
    lines
}

fn load(offset: u32) -> sock_filter {
    line(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0)
}

fn jump(kind: u32, value: u32, if_so: u8, if_not: u8) -> sock_filter {
    line(libc::BPF_JMP | kind | libc::BPF_K, value, if_so, if_not)
}

fn fail(errno: i32) -> sock_filter {
    line(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | errno.cast_unsigned(), 0, 0)
}

fn allow() -> sock_filter {
    line(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0)
}

fn line(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    // The codes are small numbers that happen to be declared large.
    sock_filter { code: u16::try_from(code).unwrap_or_default(), jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: u32 = 0xc000_003e;

    /// What the kernel does with a filter, for the few kinds of lines that ours has.
    fn run(sockets: SocketPolicy, machine: u32, number: u32, arguments: [u32; 4]) -> Option<i32> {
        judge(&program(HERE, sockets, ProcessPolicy::Any), machine, number, arguments)
    }

    fn lone() -> Vec<sock_filter> {
        program(HERE, SocketPolicy::FilterOnly(NetworkAccess::Off), ProcessPolicy::None)
    }

    fn judge(lines: &[sock_filter], machine: u32, number: u32, arguments: [u32; 4]) -> Option<i32> {
        let (mut at, mut held) = (0, 0);
        loop {
            let line = lines[at];
            at += 1;
            let code = u32::from(line.code);
            let jump = |is_so: bool| usize::from(if is_so { line.jt } else { line.jf });
            match code {
                0x20 => {
                    held = match line.k {
                        SYSCALL_NUMBER_OFFSET => number,
                        ARCHITECTURE_OFFSET => machine,
                        16 => arguments[0],
                        24 => arguments[1],
                        32 => arguments[2],
                        40 => arguments[3],
                        other => panic!("loads {other}"),
                    }
                }
                0x15 => at += jump(held == line.k),
                0x35 => at += jump(held >= line.k),
                0x45 => at += jump(held & line.k != 0),
                0x06 if line.k == libc::SECCOMP_RET_ALLOW => return None,
                0x06 => return Some((line.k & 0xffff).cast_signed()),
                other => panic!("unknown code {other:#x}"),
            }
        }
    }

    fn call(sockets: SocketPolicy, number: c_long, [first, second]: [u32; 2]) -> Option<i32> {
        call_with(sockets, number, [first, second, 0, 0])
    }

    fn call_with(sockets: SocketPolicy, number: c_long, arguments: [u32; 4]) -> Option<i32> {
        run(sockets, HERE, u32::try_from(number).unwrap(), arguments)
    }

    #[test]
    fn no_file_gets_the_rights_of_another() {
        for mode in [0o4755, 0o2755, 0o6000, 0o4000] {
            for (number, index) in MODE_SYSCALLS {
                let mut arguments = [0; 4];
                arguments[*index as usize] = mode;
                assert_eq!(
                    call_with(SocketPolicy::Namespaced, *number, arguments),
                    Some(libc::EPERM),
                    "{number} {mode:o}"
                );
                arguments[*index as usize] = 0o1777;
                assert_eq!(call_with(SocketPolicy::Namespaced, *number, arguments), None, "{number}");
            }
            for (number, flags, at) in OPEN_SYSCALLS {
                for (flag, expected) in
                    [(0o100, Some(libc::EPERM)), (0o20_200_000, Some(libc::EPERM)), (0o2, None)]
                {
                    let mut arguments = [0; 4];
                    arguments[*flags as usize] = flag;
                    arguments[*at as usize] = mode;
                    assert_eq!(
                        call_with(SocketPolicy::Namespaced, *number, arguments),
                        expected,
                        "{number} {flag:o}"
                    );
                }
            }
        }
    }

    #[test]
    fn ordinary_calls_pass() {
        for number in [libc::SYS_read, libc::SYS_execve, libc::SYS_socketpair, libc::SYS_kill] {
            assert_eq!(call(SocketPolicy::Namespaced, number, [0, 0]), None, "{number}");
        }
        assert_eq!(call(SocketPolicy::Namespaced, libc::SYS_clone, [0x0125_8000, 0]), None, "a thread");
        assert_eq!(call(SocketPolicy::Namespaced, libc::SYS_ioctl, [0, 0x5401]), None);
        assert_eq!(call(SocketPolicy::Namespaced, libc::SYS_personality, [u32::MAX, 0]), None);
    }

    #[test]
    fn what_is_refused_fails() {
        for number in FORBIDDEN_SYSCALLS {
            assert_eq!(call(SocketPolicy::Namespaced, *number, [0, 0]), Some(libc::EPERM), "{number}");
        }
        for number in UNAVAILABLE_SYSCALLS {
            assert_eq!(call(SocketPolicy::Namespaced, *number, [0, 0]), Some(libc::ENOSYS), "{number}");
        }
        for bit in [0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000]
        {
            assert_eq!(
                call(SocketPolicy::Namespaced, libc::SYS_clone, [bit | 17, 0]),
                Some(libc::EPERM),
                "{bit:#x}"
            );
            assert_eq!(
                call(SocketPolicy::Namespaced, libc::SYS_unshare, [bit, 0]),
                Some(libc::EPERM),
                "{bit:#x}"
            );
        }
        assert_eq!(
            call(SocketPolicy::Namespaced, libc::SYS_unshare, [TIME_NAMESPACE_FLAG, 0]),
            Some(libc::EPERM)
        );
        assert_eq!(call(SocketPolicy::Namespaced, libc::SYS_ioctl, [0, 0x5412]), Some(libc::EPERM));
        assert_eq!(call(SocketPolicy::Namespaced, libc::SYS_personality, [8, 0]), Some(libc::EPERM));
    }

    #[test]
    fn sockets_are_of_the_kinds_that_are_left() {
        let makes =
            |sockets, family: i32| call(sockets, libc::SYS_socket, [family.cast_unsigned(), 0]).is_none();
        let families = [libc::AF_UNIX, libc::AF_INET, libc::AF_NETLINK, libc::AF_PACKET, libc::AF_VSOCK];
        assert_eq!(families.map(|it| makes(SocketPolicy::Namespaced, it)), [true, true, true, false, false]);
        assert_eq!(
            families.map(|it| makes(SocketPolicy::FilterOnly(NetworkAccess::On), it)),
            [false, true, true, false, false]
        );
        assert_eq!(families.map(|it| makes(SocketPolicy::FilterOnly(NetworkAccess::Off), it)), [false; 5]);
    }

    #[test]
    fn limits_are_set_for_oneself_where_others_are_seen() {
        assert_eq!(call(SocketPolicy::Namespaced, libc::SYS_prlimit64, [7, 0]), None);
        assert_eq!(call(SocketPolicy::FilterOnly(NetworkAccess::On), libc::SYS_prlimit64, [0, 0]), None);
        assert_eq!(
            call(SocketPolicy::FilterOnly(NetworkAccess::On), libc::SYS_prlimit64, [7, 0]),
            Some(libc::EPERM)
        );
    }

    #[test]
    fn who_is_alone_makes_threads_and_nothing_else() {
        let alone =
            |number: c_long, arguments| judge(&lone(), HERE, u32::try_from(number).unwrap(), arguments);
        assert_eq!(alone(libc::SYS_clone, [0x003d_0f00, 0, 0, 0]), None, "a thread");
        assert_eq!(alone(libc::SYS_clone, [17, 0, 0, 0]), Some(libc::EPERM), "fork");
        assert_eq!(alone(libc::SYS_clone, [0x4111, 0, 0, 0]), Some(libc::EPERM), "vfork");
        assert_eq!(
            alone(libc::SYS_clone, [0x0001_0000 | 0x1000_0000, 0, 0, 0]),
            Some(libc::EPERM),
            "a namespace"
        );
        assert_eq!(alone(libc::SYS_clone3, [0, 0, 0, 0]), Some(libc::ENOSYS));
        #[cfg(target_arch = "x86_64")]
        for number in [libc::SYS_fork, libc::SYS_vfork] {
            assert_eq!(alone(number, [0, 0, 0, 0]), Some(libc::EPERM));
        }
        assert_eq!(alone(libc::SYS_socket, [libc::AF_UNIX.cast_unsigned(), 0, 0, 0]), Some(libc::EACCES));
        assert_eq!(alone(libc::SYS_ptrace, [0, 0, 0, 0]), Some(libc::EPERM));
        assert_eq!(alone(libc::SYS_execve, [0, 0, 0, 0]), None, "how it becomes the program");
        assert_eq!(judge(&lone(), 0x4000_0003, 2, [0, 0, 0, 0]), Some(libc::ENOSYS), "32 bits");
    }

    #[test]
    fn other_ways_to_call_are_closed() {
        assert_eq!(run(SocketPolicy::Namespaced, 0x4000_0003, 3, [0; 4]), Some(libc::ENOSYS), "32 bits");
        assert_eq!(run(SocketPolicy::Namespaced, HERE, X32_SYSCALL_BASE, [0; 4]), Some(libc::ENOSYS), "x32");
    }
}
