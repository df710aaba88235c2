//! Everywhere else: the first shard listens, and deals what it accepts to all in turn.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// One listener, which is the first shard's.
pub(crate) fn listen(address: SocketAddr, shards: usize) -> io::Result<Vec<Option<TcpListener>>> {
    let mut listeners = vec![Some(super::bind(address, false)?)];
    listeners.resize_with(shards, || None);
    Ok(listeners)
}

/// The system's default applies here, and is not known.
pub(crate) fn raise_descriptors() -> io::Result<Option<u64>> {
    Ok(None)
}

/// No core will do here.
pub(crate) fn check_core(core: usize) -> io::Result<()> {
    pin_to_core(core)
}

/// Can't be done here.
pub(crate) fn pin_to_core(core: usize) -> io::Result<()> {
    Err(io::Error::other(format!("threads can't be pinned to core {core} on this system")))
}

/// The time so far by the clock: the CPU time of a thread is not known here.
pub(crate) fn thread_cpu() -> Duration {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGAN.elapsed()
}
