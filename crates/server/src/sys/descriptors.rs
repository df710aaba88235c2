//! Descriptors that go to another process.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Resource, getrlimit};

/// The most descriptors of a message; the system takes 253.
const AT_ONCE: usize = 64;

/// The descriptors that a process may open beside connections.
const BESIDE: usize = 1024;

/// Has the table of this process grow for this many connections, as far as it may. Otherwise it
/// grows as these are opened, many times, and where threads share it the system waits for tens of
/// milliseconds each time.
pub(crate) fn make_space_for(connections: usize) {
    let highest = i32::try_from(connections.saturating_add(BESIDE)).unwrap_or(i32::MAX);
    if let Err(error) = fcntl_dupfd_cloexec(io::stderr(), highest) {
        log::debug!("no space is made for {connections} connections: {error}");
    }
}

/// Sends copies of descriptors to another process.
pub(crate) fn send_descriptors(
    through: &UnixStream,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    for descriptors in descriptors.chunks(AT_ONCE) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
        sendmsg(through, &[IoSlice::new(&[0])], &mut ancillary, SendFlags::NOSIGNAL)?;
    }
    Ok(())
}

/// Receives so many descriptors, which [`send_descriptors`] has sent.
///
/// # Errors
/// Fails if this process may not open as many: the text says how many came.
pub(crate) fn receive_descriptors(through: &UnixStream, count: usize) -> io::Result<Vec<OwnedFd>> {
    let mut received = Vec::new();
    while received.len() < count {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let mut bytes = [IoSliceMut::new(&mut byte)];
        let got = recvmsg(through, &mut bytes, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
        let before = received.len();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                received.extend(descriptors);
            }
        }
        if got.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // The system leaves out those that this process may not open, and sends them no more.
        if got.flags.contains(ReturnFlags::CTRUNC) || received.len() == before {
            return Err(io::Error::other(too_few(received.len(), count)));
        }
    }
    Ok(received)
}

/// The reason that only so many sockets came.
fn too_few(received: usize, count: usize) -> String {
    let may_open = match getrlimit(Resource::Nofile).current {
        Some(limit) => format!("may have {limit} open files"),
        None => "may not open more files".to_owned(),
    };
    format!(
        "{received} of {count} sockets came: this process {may_open}; raise the hard limit by {} \
         or more (ulimit -Hn, LimitNOFILE in systemd)",
        count - received
    )
}
