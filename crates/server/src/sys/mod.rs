//! Differences between systems: how connections are spread over shards, where threads run, what
//! readiness means.

#[cfg(target_os = "linux")]
mod descriptors;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod one_table;
#[cfg(not(target_os = "linux"))]
mod portable;
#[cfg(all(test, target_os = "linux"))]
#[path = "portable.rs"]
#[expect(dead_code, reason = "only what the tests ask for is called here")]
mod portable;
#[cfg(target_os = "linux")]
mod tables;

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

#[cfg(target_os = "linux")]
pub(crate) use descriptors::{make_space_for, receive_descriptors, send_descriptors};
#[cfg(target_os = "linux")]
pub(crate) use linux::{check_core, listen, pin_to_core, raise_descriptors, thread_cpu};
#[cfg(not(target_os = "linux"))]
pub(crate) use one_table::{Tables, in_process_table, with_process_table};
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::{check_core, listen, pin_to_core, raise_descriptors, thread_cpu};
#[cfg(target_os = "linux")]
pub(crate) use tables::{Tables, in_process_table, with_process_table};

/// Whether a read that filled less than its buffer has emptied the socket, so that the next bytes
/// are announced. Elsewhere they are announced only after a read that found nothing.
pub(crate) const SHORT_READ_EMPTIES: bool = cfg!(unix);

/// Whether accepted sockets send small messages at once because their listener does.
pub(crate) const INHERITS_NODELAY: bool = cfg!(target_os = "linux");

/// The most connections that the system may hold for the listener until they are accepted.
const BACKLOG: i32 = 4096;

/// Listens; with `shared_port`, others may listen at the same address and get their share.
fn bind(address: SocketAddr, shared_port: bool) -> io::Result<TcpListener> {
    let socket = bound(address, shared_port)?;
    if INHERITS_NODELAY {
        socket.set_tcp_nodelay(true)?;
    }
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Listens at an address for one listener alone. `is_shared`: another process of the program may
/// listen there as well, which this one replaces.
pub(crate) fn listen_alone(address: SocketAddr, is_shared: bool) -> io::Result<TcpListener> {
    #[cfg(target_os = "linux")]
    if address.port() != 0 && !is_shared {
        check_free(address)?;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = is_shared;
    bind(address, cfg!(target_os = "linux"))
}

/// Keeps an address for the shards, which [listen there](listen_beside) by themselves, and returns
/// it with the actual port. `is_shared` is as of [`listen_alone`].
pub(crate) fn reserve(address: SocketAddr, is_shared: bool) -> io::Result<(Socket, SocketAddr)> {
    #[cfg(not(target_os = "linux"))]
    let _ = is_shared;
    #[cfg(target_os = "linux")]
    if address.port() != 0 && !is_shared {
        check_free(address)?;
    }
    let socket = bound(address, true)?;
    let address = socket.local_addr()?.as_socket();
    Ok((socket, address.ok_or_else(|| io::Error::other("the address is of no known family"))?))
}

/// A listener of one shard, at an address that is reserved.
pub(crate) fn listen_beside(address: SocketAddr) -> io::Result<TcpListener> {
    bind(address, true)
}

fn bound(address: SocketAddr, shared_port: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    #[cfg(target_os = "linux")]
    socket.set_reuse_port(shared_port)?;
    #[cfg(not(target_os = "linux"))]
    let _ = shared_port;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Fails if someone listens at the address already.
#[cfg(target_os = "linux")]
fn check_free(address: SocketAddr) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpStream};

    #[test]
    fn every_shard_listens_at_the_same_address() {
        let listeners = super::listen(SocketAddr::from(([127, 0, 0, 1], 0)), 3).unwrap();
        let addresses: Vec<_> =
            listeners.iter().flatten().map(|listener| listener.local_addr().unwrap()).collect();
        assert_eq!(listeners.len(), 3);
        assert!(addresses.iter().all(|address| *address == addresses[0] && address.port() != 0));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn without_shared_ports_the_first_shard_listens_for_all() {
        let listeners = super::portable::listen(SocketAddr::from(([127, 0, 0, 1], 0)), 3).unwrap();
        assert_eq!(listeners.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, false]);
    }

    #[test]
    fn accepted_sockets_inherit_from_their_listener_that_small_messages_do_not_wait() {
        let listener = super::bind(SocketAddr::from(([127, 0, 0, 1], 0)), false).unwrap();
        listener.set_nonblocking(false).unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        assert_eq!(accepted.nodelay().unwrap(), super::INHERITS_NODELAY);
    }

    #[test]
    fn where_one_server_listens_another_cannot() {
        let listeners = super::listen(SocketAddr::from(([127, 0, 0, 1], 0)), 2).unwrap();
        let address = listeners[0].as_ref().unwrap().local_addr().unwrap();
        assert_eq!(super::listen(address, 2).unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
        drop(listeners);
        assert!(super::listen(address, 2).is_ok());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn descriptors_are_raised_to_the_hard_limit() {
        use rustix::process::{Resource, getrlimit};
        assert_eq!(super::raise_descriptors().unwrap(), getrlimit(Resource::Nofile).maximum);
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }

    #[test]
    fn a_core_that_is_not_there_is_an_error() {
        assert!(super::pin_to_core(1_000_000).is_err());
    }
}
