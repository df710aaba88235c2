//! The limit on open file descriptors, and the memory that is taken.

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

/// The memory of this process, in bytes; 0 where that is not known.
pub(crate) fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}
