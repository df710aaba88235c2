//! The limit on open file descriptors.

/// Descriptors that are no connections: standard streams, the poll, files.
#[cfg(unix)]
const RESERVED: u64 = 64;

/// Raises the limit as far as it goes, and returns how many connections this process may have.
#[cfg(unix)]
pub(crate) fn connections_max() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // On failure the present limit holds.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit.saturating_sub(RESERVED)).unwrap_or(usize::MAX).max(1)
}

/// There is no limit to know.
#[cfg(not(unix))]
pub(crate) fn connections_max() -> usize {
    usize::MAX
}
