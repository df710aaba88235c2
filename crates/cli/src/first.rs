//! The first process of a container: with it, all others of the container end. Once another process
//! has taken over from it, it stays for them, as an init does.

use std::io;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

/// Returns whether this is the first process of a container.
pub(crate) fn is_this() -> bool {
    std::process::id() == 1
}

/// Asks all other processes of the container to end.
pub(crate) fn end_others() {
    // The call fails without children.
    let _ = kill(Pid::from_raw(-1), Signal::SIGTERM);
}

/// Waits until all other processes have ended: those that took over one after the other, and what
/// they leave.
///
/// # Errors
/// If the last of them failed.
pub(crate) fn stay() -> io::Result<()> {
    let mut last = None;
    loop {
        match waitpid(None, None) {
            Ok(status) => last = Some(status),
            Err(Errno::EINTR) => {}
            Err(_) => break,
        }
    }
    match last {
        None | Some(WaitStatus::Exited(_, 0)) => Ok(()),
        Some(status) => {
            Err(io::Error::other(format!("the process that has taken over has failed: {status:?}")))
        }
    }
}
