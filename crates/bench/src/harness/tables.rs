//! Threads with descriptor tables of their own, where the system allows too few in one.

use std::io;
use std::thread::{self, JoinHandle};

/// The most connections of a thread, on either side.
const PER_TABLE: usize = 16_000;

/// Returns the number of tables that this many connections need.
pub(crate) fn needed(connections: usize) -> usize {
    let most = usize::try_from(super::machine::descriptors_max()).unwrap_or(usize::MAX);
    connections.div_ceil(PER_TABLE.min(most.saturating_sub(500)).max(1)).max(1)
}

/// Starts a thread whose descriptor table is its own.
pub(crate) fn spawn<T: Send + 'static>(
    name: String,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<JoinHandle<io::Result<T>>> {
    thread::Builder::new().name(name).spawn(move || {
        #[cfg(target_os = "linux")]
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_FILES)?;
        work()
    })
}
