//! Whether somebody has a file open to write it: the kernel knows, and says so to whoever asks for a lease.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::thread::sleep;
use std::time::Duration;

/// How often it is asked, and how long it is waited in between: a second in all. A save takes milliseconds.
const LEASE_ATTEMPTS: usize = 200;
const LEASE_RETRY_INTERVAL: Duration = Duration::from_millis(5);
/// Not in `libc`.
const F_SETSIG: libc::c_int = 10;

/// Whether somebody has a file open to write it, after giving them time to finish. Where that can't be known (a file of
/// another user, a file system without leases) the answer is no.
pub(crate) fn is_written(file: &File) -> bool {
    for _ in 0..LEASE_ATTEMPTS {
        match try_lease(file) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(LEASE_RETRY_INTERVAL),
            _ => return false,
        }
    }
    true
}

/// Takes a lease and gives it back at once. It is refused as long as somebody has the file open to write it.
fn try_lease(file: &File) -> io::Result<()> {
    // Whoever opened it to write in this instant would have a signal sent to us that ends the program; this one does nothing.
    fcntl(file, F_SETSIG, libc::SIGURG)?;
    fcntl(file, libc::F_SETLEASE, libc::F_RDLCK)?;
    fcntl(file, libc::F_SETLEASE, libc::F_UNLCK)
}

#[expect(
    unsafe_code,
    reason = "no library has a safe call for leases; these take and give nothing but numbers"
)]
fn fcntl(file: &File, command: libc::c_int, argument: libc::c_int) -> io::Result<()> {
    // SAFETY: the descriptor is open as long as the file is borrowed, and no memory is passed.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, argument) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
