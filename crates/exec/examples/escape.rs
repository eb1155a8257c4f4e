//! What tests of confinement run: one attack after the other, each of which succeeds where nothing stops it. A program
//! that got through ends with 0, one that was stopped with 1 and the system's words. It is told where the ground for it
//! is (`GROUND`), and of whom it can try to get hold (`VICTIM`, a process id; `PORT`; `ABSTRACT`, a name; `AGENT` and
//! `DOCKER`, paths of sockets).
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::print_stdout,
    unsafe_code,
    reason = "a helper of tests fails by panicking, and tries what no honest program does"
)]
#![cfg_attr(not(target_os = "linux"), expect(unused, reason = "there is nothing to escape from elsewhere"))]

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    let attack = std::env::args().nth(1).unwrap();
    match attacks::run(&attack) {
        Ok(()) => {
            println!("{attack}: escaped");
            std::process::ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{attack}: stopped: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

#[cfg(target_os = "linux")]
mod attacks {
    use std::ffi::CString;
    use std::fs::{self, File};
    use std::io::{self, Read, Write};
    use std::net::{TcpStream, ToSocketAddrs, UdpSocket};
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::time::Duration;

    fn ground(path: &str) -> PathBuf {
        Path::new(&std::env::var_os("GROUND").unwrap()).join(path)
    }

    fn number(name: &str) -> i32 {
        std::env::var(name).unwrap().parse().unwrap()
    }

    fn named(name: &str) -> PathBuf {
        std::env::var_os(name).unwrap().into()
    }

    fn check(result: i64) -> io::Result<()> {
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn call(number: libc::c_long, arguments: [i64; 4]) -> io::Result<()> {
        let [a, b, c, d] = arguments;
        // SAFETY: the arguments are numbers, or point to texts and places that outlive the call.
        check(unsafe { libc::syscall(number, a, b, c, d, 0_i64, 0_i64) })
    }

    /// The same for calls that give an open file.
    fn open(number: libc::c_long, arguments: [i64; 4]) -> io::Result<OwnedFd> {
        let [a, b, c, d] = arguments;
        // SAFETY: the arguments are numbers, or point to places that outlive the call.
        let fd = unsafe { libc::syscall(number, a, b, c, d, 0_i64, 0_i64) };
        check(fd)?;
        // SAFETY: the call has just made it, and nobody else has it.
        Ok(unsafe { OwnedFd::from_raw_fd(i32::try_from(fd).unwrap()) })
    }

    fn text(path: &Path) -> CString {
        CString::new(path.to_str().unwrap()).unwrap()
    }

    fn overwrite(path: &Path) -> io::Result<()> {
        File::options().write(true).open(path)?.write_all(b"new")
    }

    fn read_secret(path: &Path) -> io::Result<()> {
        if fs::read_to_string(path)?.contains("secret") {
            Ok(())
        } else {
            Err(io::Error::other("nothing is in it"))
        }
    }

    pub(super) fn run(attack: &str) -> io::Result<()> {
        let victim = number("VICTIM");
        let through = |link: &str, path: PathBuf| PathBuf::from(format!("/proc/{link}{}", path.display()));
        match attack {
            "write" => overwrite(&ground("outside/victim")),
            "write-above" => overwrite(&ground("work/../outside/victim")),
            "write-link" => {
                let _ = fs::remove_file(ground("work/link"));
                symlink("../outside/victim", ground("work/link"))?;
                overwrite(&ground("work/link"))
            }
            "write-race" => race(),
            "write-hard-link" => {
                let _ = fs::remove_file(ground("work/hard"));
                fs::hard_link(ground("outside/victim"), ground("work/hard"))?;
                overwrite(&ground("work/hard"))
            }
            "write-own-root" => overwrite(&through("self/root", ground("outside/victim"))),
            "write-other-root" => overwrite(&through(&format!("{victim}/root"), ground("outside/victim"))),
            "write-other-folder" => overwrite(Path::new(&format!("/proc/{victim}/cwd/victim"))),
            "create" => {
                File::create(ground("outside/new")).and_then(|_| fs::remove_file(ground("outside/new")))
            }
            "remove" => {
                let kept = fs::read(ground("outside/victim"))?;
                fs::remove_file(ground("outside/victim"))?;
                fs::write(ground("outside/victim"), kept)
            }
            "take" => {
                fs::rename(ground("outside/victim"), ground("work/taken"))?;
                fs::rename(ground("work/taken"), ground("outside/victim"))
            }
            "truncate" => {
                let path = text(&ground("outside/victim"));
                call(libc::SYS_truncate, [path.as_ptr() as i64, 1, 0, 0])
            }
            "permissions" => fs::set_permissions(ground("outside/victim"), PermissionsExt::from_mode(0o666)),
            "descriptor" => call(libc::SYS_write, [9, c"new".as_ptr() as i64, 3, 0]),
            "hook" => fs::write(ground("work/.git/hooks/pre-commit"), "#!/bin/sh\n"),
            "hook-aside" => {
                fs::rename(ground("work/.git"), ground("work/.git2"))?;
                fs::rename(ground("work/.git2"), ground("work/.git"))
            }
            "git-config" => File::options().append(true).open(ground("work/.git/config")).map(drop),
            "secret" => read_secret(&ground("secret/key")),
            "secret-link" => {
                let _ = fs::remove_file(ground("work/key"));
                symlink(ground("secret"), ground("work/key"))?;
                read_secret(&ground("work/key/key"))
            }
            "secret-own-root" => read_secret(&through("self/root", ground("secret/key"))),
            "secret-first-root" => read_secret(&through("1/root", ground("secret/key"))),
            "secret-handle" => open_by_handle(),
            "secret-mounted" => read_secret(&ground("mounted/key")),
            "secret-mounted-around" => read_secret(&ground("around/secret/key")),
            "secret-hard-link" => {
                let _ = fs::remove_file(ground("work/key"));
                fs::hard_link(ground("secret/key"), ground("work/key"))?;
                read_secret(&ground("work/key"))
            }
            "secret-other-root" => read_secret(&through(&format!("{victim}/root"), ground("secret/key"))),
            "secret-moved" => {
                fs::rename(ground("work/private"), ground("work/moved"))?;
                let read = read_secret(&ground("work/moved/key"));
                fs::rename(ground("work/moved"), ground("work/private"))?;
                read
            }
            "tcp" => TcpStream::connect(("127.0.0.1", u16::try_from(number("PORT")).unwrap())).map(drop),
            "udp" => ask_udp(b"hello"),
            "dns" => ask_udp(b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x06secret\x07example\0\0\x01\0\x01"),
            "name" => ("example.org", 80).to_socket_addrs().map(drop),
            "icmp" => ping(),
            "route" => UdpSocket::bind("0.0.0.0:0")?.connect("192.0.2.1:53"),
            "packets" => call(libc::SYS_socket, [libc::AF_PACKET.into(), libc::SOCK_RAW.into(), 0, 0]),
            "socket" => UnixStream::connect(ground("sockets/agent")).map(drop),
            "socket-datagram" => UnixDatagram::unbound()?.send_to(b"x", ground("sockets/log")).map(drop),
            "socket-agent" => UnixStream::connect(named("AGENT")).map(drop),
            "socket-docker" => UnixStream::connect(named("DOCKER")).map(drop),
            "socket-link" => {
                let _ = fs::remove_file(ground("work/agent"));
                symlink(ground("sockets/agent"), ground("work/agent"))?;
                UnixStream::connect(ground("work/agent")).map(drop)
            }
            "socket-abstract" => {
                let name = SocketAddr::from_abstract_name(std::env::var("ABSTRACT").unwrap())?;
                UnixStream::connect_addr(&name).map(drop)
            }
            "signal" => call(libc::SYS_kill, [victim.into(), libc::SIGCONT.into(), 0, 0]),
            "signal-handle" => {
                let victim = open(libc::SYS_pidfd_open, [victim.into(), 0, 0, 0])?;
                call(libc::SYS_pidfd_send_signal, [victim.as_raw_fd().into(), libc::SIGCONT.into(), 0, 0])
            }
            "starve" => {
                let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                let (what, none) = (i64::from(libc::RLIMIT_CORE), std::ptr::from_ref(&none));
                call(libc::SYS_prlimit64, [victim.into(), what, none as i64, 0])
            }
            "trace" => {
                const SEIZE: i64 = 0x4206;
                call(libc::SYS_ptrace, [SEIZE, victim.into(), 0, 0])
            }
            "memory" => File::open(format!("/proc/{victim}/mem")).map(drop),
            "user-namespace" => call(libc::SYS_unshare, [libc::CLONE_NEWUSER.into(), 0, 0, 0]),
            "bind" => bind(),
            "remount" => {
                in_own_view();
                let flags = libc::MS_REMOUNT | libc::MS_BIND;
                call(libc::SYS_mount, [0, c"/".as_ptr() as i64, 0, flags.cast_signed()])
            }
            "uncover" => {
                let path = text(&ground("secret"));
                in_own_view();
                // Where nobody has put a cover, it brings its own.
                let _ = call(
                    libc::SYS_mount,
                    [c"none".as_ptr() as i64, path.as_ptr() as i64, c"tmpfs".as_ptr() as i64, 0],
                );
                call(libc::SYS_umount2, [path.as_ptr() as i64, libc::MNT_DETACH.into(), 0, 0])?;
                read_secret(&ground("secret/key"))
            }
            "chroot" => call(libc::SYS_chroot, [c"/".as_ptr() as i64, 0, 0, 0]),
            "key" => {
                let (kind, name) = (c"user".as_ptr() as i64, c"helve".as_ptr() as i64);
                const PROCESS: i64 = -2;
                // SAFETY: kind, name and content are texts that outlive the call.
                check(unsafe { libc::syscall(libc::SYS_add_key, kind, name, name, 5, PROCESS) })
            }
            "keyring" => {
                const KEYRING_OF: i64 = 0;
                const SESSION: i64 = -3;
                call(libc::SYS_keyctl, [KEYRING_OF, SESSION, 1, 0])
            }
            "io-uring" => {
                let mut parameters = [0_u64; 15];
                open(libc::SYS_io_uring_setup, [1, parameters.as_mut_ptr() as i64, 0, 0]).map(drop)
            }
            "device" => {
                let _ = fs::remove_file(ground("work/null"));
                let (path, device) = (text(&ground("work/null")), libc::makedev(1, 3));
                let mode = (libc::S_IFCHR | 0o666).into();
                call(
                    libc::SYS_mknodat,
                    [libc::AT_FDCWD.into(), path.as_ptr() as i64, mode, device.cast_signed()],
                )?;
                File::open(ground("work/null")).map(drop)
            }
            "kernel-setting" => {
                let path = "/proc/sys/kernel/panic";
                fs::write(path, fs::read(path)?)
            }
            "setuid" => {
                let said = Command::new(ground("bin/setuid")).arg("be-root").env("VICTIM", "0").output()?;
                if said.status.success() { Ok(()) } else { Err(io::Error::other("it is not root")) }
            }
            "be-root" => call(libc::SYS_setresuid, [0, 0, 0, 0]),
            "fill" => fs::write("/tmp/helve-fill", vec![1; 4 << 20])
                .and_then(|()| fs::remove_file("/tmp/helve-fill")),
            "large-file" => fs::write(ground("work/large"), vec![1; 4 << 20]),
            "type" => type_into_terminal(),
            other => panic!("unknown: {other}"),
        }
    }

    /// Writes to a folder that is a link to another one half of the time.
    fn race() -> io::Result<()> {
        let (place, real, link) = (ground("work/place"), ground("work/real"), ground("work/swap"));
        fs::create_dir_all(&real)?;
        let target = ground("outside/raced");
        let swap = std::thread::spawn({
            let (place, target) = (place.clone(), target.clone());
            move || {
                for _ in 0..4_000 {
                    let _ = symlink("../outside", &link).and_then(|()| fs::rename(&link, &place));
                    let _ = fs::remove_file(&place);
                    let _ = symlink("real", &link).and_then(|()| fs::rename(&link, &place));
                    if target.exists() {
                        break;
                    }
                }
            }
        });
        let mut last = io::Error::other("never tried");
        while !swap.is_finished() && !target.exists() {
            if let Err(error) = fs::write(place.join("raced"), "new") {
                last = error;
            }
        }
        swap.join().unwrap();
        fs::remove_file(&target).map_err(|_| last)
    }

    /// What is done to mounts does not reach others, where it can be done at all.
    fn in_own_view() {
        let _ = call(libc::SYS_unshare, [libc::CLONE_NEWNS.into(), 0, 0, 0]);
        let private = (libc::MS_REC | libc::MS_PRIVATE).cast_signed();
        let _ = call(libc::SYS_mount, [0, c"/".as_ptr() as i64, 0, private]);
    }

    /// By the number that the file system gives a file, past all folders.
    fn open_by_handle() -> io::Result<()> {
        #[repr(C)]
        struct Handle {
            bytes: u32,
            kind: i32,
            content: [u8; 128],
        }
        let mut handle = Handle { bytes: 128, kind: 0, content: [0; 128] };
        let (path, folder) = (text(&ground("secret/key")), File::open(ground("work"))?);
        let at = std::ptr::from_mut(&mut handle) as i64;
        let mut mount = 0_i32;
        let mount = std::ptr::from_mut(&mut mount) as i64;
        call(libc::SYS_name_to_handle_at, [libc::AT_FDCWD.into(), path.as_ptr() as i64, at, mount])?;
        let found = open(libc::SYS_open_by_handle_at, [folder.as_raw_fd().into(), at, 0, 0])?;
        let secret = io::read_to_string(File::from(found))?;
        if secret.contains("secret") { Ok(()) } else { Err(io::Error::other("nothing is in it")) }
    }

    /// Asks for an echo, as `ping` does.
    fn ping() -> io::Result<()> {
        let kind = [libc::AF_INET.into(), libc::SOCK_RAW.into(), libc::IPPROTO_ICMP.into(), 0];
        let socket = UdpSocket::from(open(libc::SYS_socket, kind)?);
        socket.set_read_timeout(Some(Duration::from_secs(1)))?;
        socket.connect("127.0.0.1:0")?;
        socket.send(&[8, 0, 0xf7, 0xff, 0, 0, 0, 0])?;
        socket.recv(&mut [0; 64]).map(drop)
    }

    fn ask_udp(question: &[u8]) -> io::Result<()> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.set_read_timeout(Some(Duration::from_secs(1)))?;
        socket.send_to(question, ("127.0.0.1", u16::try_from(number("PORT")).unwrap()))?;
        socket.recv(&mut [0; 8]).map(drop)
    }

    /// As root of a namespace of its own, puts the outside into the workspace.
    fn bind() -> io::Result<()> {
        call(libc::SYS_unshare, [i64::from(libc::CLONE_NEWUSER | libc::CLONE_NEWNS), 0, 0, 0])?;
        fs::create_dir_all(ground("work/bound"))?;
        let (from, to) = (text(&ground("outside")), text(&ground("work/bound")));
        call(libc::SYS_mount, [from.as_ptr() as i64, to.as_ptr() as i64, 0, libc::MS_BIND.cast_signed()])?;
        overwrite(&ground("work/bound/victim"))
    }

    /// Types into a terminal that it has made itself, as one would into that of a person.
    fn type_into_terminal() -> io::Result<()> {
        let ours = File::options().read(true).write(true).open("/dev/ptmx")?;
        rustix::pty::unlockpt(&ours)?;
        let name = rustix::pty::ptsname(&ours, Vec::new())?;
        let mut theirs = File::options().read(true).write(true).open(name.to_str().unwrap())?;
        let fd = i64::from(theirs.as_raw_fd());
        call(libc::SYS_ioctl, [fd, libc::TIOCSTI.cast_signed(), c"\n".as_ptr() as i64, 0])?;
        theirs.read(&mut [0]).map(drop)
    }
}
