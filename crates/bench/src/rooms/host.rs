//! The server's process.
use std::io;

/// Serves until the input ends.
pub(super) fn host() -> io::Result<()> {
    Err(io::Error::other("not yet"))
}
