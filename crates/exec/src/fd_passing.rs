//! An open file, handed from Helve to the keeper over their socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// A file can only travel with a byte.
const CARRIER_BYTE: [u8; 1] = [0];
/// Room for one file.
const FILE_MESSAGE_BYTES: usize = rustix::cmsg_space!(ScmRights(1));

pub(crate) fn send_file(socket: impl AsFd, file: impl AsFd) -> io::Result<()> {
    let mut room = [MaybeUninit::uninit(); FILE_MESSAGE_BYTES];
    let files = [file.as_fd()];
    let mut message = SendAncillaryBuffer::new(&mut room);
    if !message.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(socket, &[IoSlice::new(&CARRIER_BYTE)], &mut message, SendFlags::empty())?;
    Ok(())
}

/// Waits for the file.
pub(crate) fn receive_file(socket: impl AsFd) -> io::Result<OwnedFd> {
    let mut room = [MaybeUninit::uninit(); FILE_MESSAGE_BYTES];
    let mut byte = CARRIER_BYTE;
    let mut message = RecvAncillaryBuffer::new(&mut room);
    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut message, RecvFlags::CMSG_CLOEXEC)?;
    let files = message.drain().filter_map(|part| match part {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    files.flatten().next().ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_file_arrives_open() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (reader, mut writer) = io::pipe().unwrap();
        send_file(&ours, &reader).unwrap();
        drop(reader);
        let mut received = io::PipeReader::from(receive_file(&theirs).unwrap());
        writer.write_all(b"hello").unwrap();
        drop(writer);
        let mut text = String::new();
        received.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
    }

    #[test]
    fn bytes_without_a_file_and_a_closed_socket_are_told() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(b"x").unwrap();
        assert!(receive_file(&theirs).is_err());
        drop(ours);
        assert!(receive_file(&theirs).is_err());
    }
}
