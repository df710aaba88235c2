//! Elsewhere: one listener, and threads where the system puts them.

use std::io;
use std::net::{SocketAddr, TcpListener};

use super::{Spread, listener};

/// One listener, for the first shard.
pub(crate) fn listen(address: SocketAddr, _: usize) -> io::Result<(Vec<TcpListener>, Spread)> {
    Ok((vec![listener(address, |_| Ok(()))?], Spread::ByDealing))
}

/// Not done here.
pub(crate) fn pin_to_core(_: usize) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "threads are pinned to cores on Linux only"))
}
