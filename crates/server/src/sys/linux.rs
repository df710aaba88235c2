//! Linux: the kernel spreads connections over the shards' listeners, and threads can be pinned to
//! cores.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// The number of times to look for a port that is free for all shards, if any port will do.
const PORTS_TRIED: usize = 16;

/// A listener for each shard, all at one address.
pub(crate) fn listen(address: SocketAddr, shards: usize) -> io::Result<Vec<Option<TcpListener>>> {
    // With a shared port the system would let another server listen there as well, and deal out
    // connections to both.
    if address.port() != 0 {
        super::check_free(address)?;
        return listen_once(address, shards);
    }
    // The system picks a port for the first shard. Someone else may take it before the others.
    until_free(|| listen_once(address, shards))
}

/// Tries again while the port that the system picked is taken.
fn until_free<T>(mut listen: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..PORTS_TRIED {
        match listen() {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            result => return result,
        }
    }
    listen()
}

fn listen_once(address: SocketAddr, shards: usize) -> io::Result<Vec<Option<TcpListener>>> {
    let first = super::bind(address, true)?;
    let address = first.local_addr()?;
    let mut listeners = vec![Some(first)];
    for _ in 1..shards {
        listeners.push(Some(super::bind(address, true)?));
    }
    Ok(listeners)
}

/// Raises the soft limit of open files to the hard one, and returns it; `None` means no limit.
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

/// The CPU time of this thread so far.
pub(crate) fn thread_cpu() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{PORTS_TRIED, until_free};

    #[test]
    fn another_port_is_tried_when_one_is_taken_meanwhile() {
        let tried = |free_at: usize| {
            let mut count = 0;
            let result = until_free(|| {
                count += 1;
                if count == free_at { Ok(()) } else { Err(io::ErrorKind::AddrInUse.into()) }
            });
            (result.is_ok(), count)
        };
        assert_eq!(tried(1), (true, 1));
        assert_eq!(tried(PORTS_TRIED), (true, PORTS_TRIED));
        assert_eq!(tried(PORTS_TRIED + 1), (false, PORTS_TRIED));
        let mut count = 0;
        let result: io::Result<()> = until_free(|| {
            count += 1;
            Err(io::ErrorKind::PermissionDenied.into())
        });
        assert_eq!((result.is_err(), count), (true, 1), "other errors are not");
    }
}
