//! Linux: the kernel spreads connections over the shards' listeners, and threads can be pinned to
//! cores.

use std::io;
use std::net::{SocketAddr, TcpListener};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A listener for each shard, all at one address.
pub(crate) fn listen(address: SocketAddr, shards: usize) -> io::Result<Vec<Option<TcpListener>>> {
    // With a shared port the system would let another server listen there as well, and deal out
    // connections to both.
    if address.port() != 0 {
        super::check_free(address)?;
    }
    let first = super::bind(address, true)?;
    let address = first.local_addr()?;
    let mut listeners = vec![Some(first)];
    for _ in 1..shards {
        listeners.push(Some(super::bind(address, true)?));
    }
    Ok(listeners)
}

/// Raises the soft limit of open files to the hard one, and returns it; `None` is no limit.
pub(crate) fn raise_descriptors() -> io::Result<Option<u64>> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    Ok(maximum)
}

/// Checks that threads of this process can be pinned to this core.
pub(crate) fn check_core(core: usize) -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    if core < CpuSet::MAX_CPU && allowed.is_set(core) {
        return Ok(());
    }
    let cores: Vec<String> = (0..CpuSet::MAX_CPU)
        .filter(|core| allowed.is_set(*core))
        .map(|core| core.to_string())
        .collect();
    let text = format!(
        "{core} is not a core that this process may run on; those are {}",
        cores.join(", ")
    );
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

/// Pins the calling thread to this core.
pub(crate) fn pin_to_core(core: usize) -> io::Result<()> {
    check_core(core)?;
    let mut cores = CpuSet::new();
    cores.set(core);
    Ok(sched_setaffinity(None, &cores)?)
}
