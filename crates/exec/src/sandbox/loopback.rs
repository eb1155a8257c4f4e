//! The loopback of a new network, which begins switched off.

use std::io;

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

const CHANGE_LINK: u16 = 16;
const REQUEST_WITH_ANSWER: u16 = 1 | 4;
/// The first interface of every network is its loopback.
const LOOPBACK_INTERFACE: i32 = 1;
const INTERFACE_UP_FLAG: u32 = 1;

pub(super) fn switch_on() -> io::Result<()> {
    // The first protocol of this kind is that of interfaces and routes.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    sendto(&socket, &request(), SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = [0; 256];
    let (length, _) = recv(&socket, &mut answer, RecvFlags::empty())?;
    // After a head of 16 bytes, the answer is a negative number of an error, or zero.
    let code = answer.get(..length).and_then(|answer| answer.get(16..20)?.try_into().ok());
    match code.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(code.saturating_neg())),
        None => Err(Errno::PROTO.into()),
    }
}

/// A head (length, kind, flags, sequence, sender) and what is to change (family, kind, interface, flags, which of the flags).
fn request() -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(32_u32.to_ne_bytes());
    bytes.extend(CHANGE_LINK.to_ne_bytes());
    bytes.extend(REQUEST_WITH_ANSWER.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([0; 4]);
    bytes.extend(LOOPBACK_INTERFACE.to_ne_bytes());
    bytes.extend(INTERFACE_UP_FLAG.to_ne_bytes());
    bytes.extend(INTERFACE_UP_FLAG.to_ne_bytes());
    bytes
}
