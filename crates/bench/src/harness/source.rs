//! Sources of connections: one loopback address has too few ports for those of some suites.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use playfield_client::poll::Stream;
use socket2::{Domain, Protocol, Socket, Type};

/// The number of connections that share an address. Past half of its ports, connecting becomes
/// slow.
const PER_ADDRESS: usize = 12_000;
/// The first of their ports, all below those that the system assigns by itself.
const FIRST_PORT: usize = 20_000;
/// The bytes that a narrow socket takes before they are sent. The system doubles it.
const NARROW_BYTES: usize = 8 << 10;

/// The addresses of clients.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    /// The system chooses, and connections end in an orderly way.
    Any,
    /// Addresses whose second byte is this one, and ports, by the number of the client. Connections
    /// end with a reset: an orderly end would keep the port for a minute.
    Network(u8),
    /// The same, with sockets that take little before it is sent, so that a client notices soon if
    /// the server does not read.
    Narrow(u8),
    /// So many addresses of its own for each client, for one connection after another.
    Each { addresses: usize, resets: bool },
}

impl Source {
    /// Begins to connect, without waiting for it.
    pub(crate) fn connect(
        self,
        server: SocketAddr,
        client: usize,
        connections: usize,
    ) -> io::Result<Stream> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        let (from, resets) = match self {
            Self::Any => (None, false),
            Self::Network(network) | Self::Narrow(network) => {
                if matches!(self, Self::Narrow(_)) {
                    socket.set_send_buffer_size(NARROW_BYTES)?;
                }
                // Runs at the same time have the same ports, each for connections to a server of its
                // own.
                socket.set_reuse_address(true)?;
                let host = client / PER_ADDRESS;
                let address =
                    Ipv4Addr::new(127, network, 1 + (host / 250) as u8, 1 + (host % 250) as u8);
                (Some((address, (FIRST_PORT + client % PER_ADDRESS) as u16)), true)
            }
            Self::Each { addresses, resets } => {
                let host = client * addresses + connections % addresses;
                let address = Ipv4Addr::new(127, 1, (host / 250) as u8, (host % 250) as u8 + 1);
                (Some((address, 0)), resets)
            }
        };
        if let Some(from) = from {
            socket.bind(&SocketAddr::from(from).into())?;
        }
        if resets {
            socket.set_linger(Some(Duration::ZERO))?;
        }
        Stream::connect_by(socket, server)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::Source;

    #[test]
    fn runs_at_the_same_time_share_ports_as_long_as_each_has_its_own_server() {
        let servers = [(); 2].map(|()| TcpListener::bind(("127.0.0.1", 0)).unwrap());
        // Accepted connections stay open, so that no port is given back.
        let open = servers.each_ref().map(|server| {
            let client = Source::Network(250).connect(server.local_addr().unwrap(), 0, 0).unwrap();
            (client, server.accept().unwrap())
        });
        let [from, from_too] = open.each_ref().map(|(_, (_, peer))| *peer);
        assert_eq!(from, from_too);
        let [(client, (mut accepted, _)), _other] = open;
        drop(client);
        assert!(accepted.read(&mut [0]).is_err(), "a reset");
    }
}
