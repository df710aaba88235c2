//! Where the connections of a suite come from: one loopback address has too few ports for them.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

/// How many connections share an address. Past half of its ports, connecting becomes slow.
pub(crate) const PER_ADDRESS: usize = 12_000;
/// The ports that they have, below those that the system gives out by itself.
const FIRST_PORT: usize = 20_000;

/// Begins to connect, without waiting for it. `network` is the second byte of the addresses that
/// the connections come from, and `number` the connection's own.
pub(crate) fn connect(server: SocketAddr, network: u8, number: usize) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    // Runs at the same time have the same ports, each for connections to a server of its own.
    socket.set_reuse_address(true)?;
    let host = number / PER_ADDRESS;
    let address = Ipv4Addr::new(127, network, 1 + (host / 250) as u8, 1 + (host % 250) as u8);
    let port = (FIRST_PORT + number % PER_ADDRESS) as u16;
    socket.bind(&SocketAddr::from((address, port)).into())?;
    // A reset instead of an orderly end, which would keep the port for a minute.
    socket.set_linger(Some(Duration::ZERO))?;
    match socket.connect(&server.into()) {
        Err(error)
            if error.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) =>
        {
            Err(error)
        }
        _ => Ok(socket),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::connect;

    #[test]
    fn runs_at_the_same_time_share_ports_as_long_as_each_has_its_own_server() {
        let servers = [(); 2].map(|()| TcpListener::bind(("127.0.0.1", 0)).unwrap());
        // What is accepted stays open, so that no port is given back.
        let open = servers.each_ref().map(|server| {
            let client = connect(server.local_addr().unwrap(), 250, 0).unwrap();
            (client, server.accept().unwrap())
        });
        let [from, from_too] = open.each_ref().map(|(_, (_, peer))| *peer);
        assert_eq!(from, from_too);
        let [(client, (mut accepted, _)), _other] = open;
        drop(client);
        assert!(accepted.read(&mut [0]).is_err(), "a reset");
    }
}
