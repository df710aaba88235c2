//! The limit on open file descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The hard limit: how many descriptors a process may have open after raising its limit.
pub(crate) fn descriptors_max() -> u64 {
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

/// Raises the soft limit to the hard limit. On failure the process continues with the current
/// limit; opening too many descriptors then reports an error.
pub(crate) fn raise_descriptors() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
