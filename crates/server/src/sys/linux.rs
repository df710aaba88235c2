//! Linux: the kernel spreads connections over the shards' listeners, and threads can be told where to run.

use std::io;
use std::net::{SocketAddr, TcpListener};

use rustix::thread::{CpuSet, sched_setaffinity};

/// A listener for each shard, all at one address.
pub(crate) fn listen(address: SocketAddr, shards: usize) -> io::Result<Vec<Option<TcpListener>>> {
    let first = super::bind(address, true)?;
    let address = first.local_addr()?;
    let mut listeners = vec![Some(first)];
    for _ in 1..shards {
        listeners.push(Some(super::bind(address, true)?));
    }
    Ok(listeners)
}

/// Lets the calling thread run on this core only.
pub(crate) fn pin_to_core(core: usize) -> io::Result<()> {
    if core >= CpuSet::MAX_CPU {
        return Err(io::Error::other(format!("there is no core {core}")));
    }
    let mut cores = CpuSet::new();
    cores.set(core);
    Ok(sched_setaffinity(None, &cores)?)
}
