//! What differs between operating systems.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::{listen, pin_to_core};

#[cfg(not(target_os = "linux"))]
mod portable;
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::{listen, pin_to_core};

/// Every how many-th connection that a listener accepts is handed to the shards in turn, where the system does not
/// spread connections over listeners by itself.
pub(crate) enum Spread {
    /// Each shard has a listener of its own.
    BySystem,
    /// One listener, whose connections are dealt out to the shards.
    #[cfg_attr(target_os = "linux", allow(dead_code, reason = "the portable fallback"))]
    ByDealing,
}

/// How many connections may wait to be accepted.
const BACKLOG: i32 = 4_096;

/// A listening socket that does not block.
fn listener(
    address: std::net::SocketAddr,
    share_port: impl FnOnce(&socket2::Socket) -> std::io::Result<()>,
) -> std::io::Result<std::net::TcpListener> {
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, Some(socket2::Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    share_port(&socket)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
