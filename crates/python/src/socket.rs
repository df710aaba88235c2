//! Sockets that Python has connected.

use std::io;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use pyo3::exceptions::PyOSError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recv, recvmsg, send,
};

/// Takes a second descriptor of a socket that belongs to Python.
///
/// Turning a number into a descriptor is unsafe. Passing the descriptor from Python to this module
/// over a pair of sockets is not: the kernel makes a new one, and refuses a number that is none.
///
/// It calls `_socket`, which is compiled, and not `socket`: Ctrl-C between two lines of Python
/// would leave the number of one of the pair, which nobody closes.
pub(crate) fn adopt(socket: &Bound<'_, PyAny>) -> PyResult<OwnedFd> {
    let py = socket.py();
    let module = py.import(intern!(py, "_socket"))?;
    let number: i32 = socket.call_method0(intern!(py, "fileno"))?.extract()?;
    let rights = (
        module.getattr(intern!(py, "SOL_SOCKET"))?,
        module.getattr(intern!(py, "SCM_RIGHTS"))?,
        PyBytes::new(py, &number.to_ne_bytes()),
    );
    let (ours, theirs) = UnixStream::pair()?;
    let named = PyDict::new(py);
    named.set_item(intern!(py, "fileno"), theirs.into_raw_fd())?;
    let carrier = module.getattr(intern!(py, "socket"))?.call((), Some(&named))?;
    let sent = carrier.call_method1(intern!(py, "sendmsg"), ((PyBytes::new(py, b"-"),), (rights,)));
    carrier.call_method0(intern!(py, "close"))?;
    sent?;

    let mut byte = [0];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [io::IoSliceMut::new(&mut byte)];
    recvmsg(&ours, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC).map_err(io::Error::from)?;
    ancillary
        .drain()
        .find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        })
        .ok_or_else(|| PyOSError::new_err("the socket's descriptor did not arrive"))
}

/// Reads what is there, without waiting.
pub(crate) fn read_now(socket: &OwnedFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    recv(socket, buffer, RecvFlags::DONTWAIT).map(|(bytes, _)| bytes)
}

/// Waits for bytes, for as long as the socket's own timeout.
pub(crate) fn read_waiting(socket: &OwnedFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    recv(socket, buffer, RecvFlags::empty()).map(|(bytes, _)| bytes)
}

/// Writes what the kernel takes, without waiting.
pub(crate) fn write_now(socket: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
    send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
}

/// Waits until the socket is ready, or the deadline has passed. Returns whether it is ready.
pub(crate) fn wait(
    socket: &OwnedFd,
    what: PollFlags,
    deadline: Option<Instant>,
) -> Result<bool, Errno> {
    let timeout = deadline
        .map(|deadline| deadline.saturating_duration_since(Instant::now()))
        .map(|left| Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 }));
    let mut sockets = [PollFd::new(socket, what)];
    poll(&mut sockets, timeout.as_ref()).map(|ready| ready > 0)
}
