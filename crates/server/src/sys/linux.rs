//! Linux: a listener for each shard on one port, and threads pinned to cores.

use std::io;
use std::net::{SocketAddr, TcpListener};

use rustix::thread::{CpuSet, sched_setaffinity};

use super::{Spread, listener};

/// One listener for each shard. The kernel spreads connections over them (`SO_REUSEPORT`, socket(7)).
pub(crate) fn listen(address: SocketAddr, shards: usize) -> io::Result<(Vec<TcpListener>, Spread)> {
    let first = listener(address, |socket| socket.set_reuse_port(true))?;
    let bound = first.local_addr()?;
    let rest = (1..shards).map(|_| listener(bound, |socket| socket.set_reuse_port(true)));
    let listeners = std::iter::once(Ok(first)).chain(rest).collect::<io::Result<_>>()?;
    Ok((listeners, Spread::BySystem))
}

/// Runs this thread on one core only.
pub(crate) fn pin_to_core(core: usize) -> io::Result<()> {
    if core >= CpuSet::MAX_CPU {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("there is no core {core}")));
    }
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(None, &set)?)
}
