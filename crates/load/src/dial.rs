//! Where connections go, and how.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;

use mio::net::TcpStream;
use playfield_client::poll::{Stream, Tls};
use playfield_client::session::{Masks, Transport, Url};
use socket2::{Domain, Socket, Type};

use crate::random::Random;
use crate::settings::{LoadError, Settings};

/// How many connections share a source address. Linux assigns about 28,000 ports to one, and
/// looks for a free one slowly once half of them are taken.
pub(crate) const PER_SOURCE: usize = 12_000;

/// Opens connections to the node.
#[derive(Debug)]
pub(crate) struct Dial {
    pub(crate) address: SocketAddr,
    tls: Option<Tls>,
    web_socket: Option<(String, String)>,
    sources: Vec<IpAddr>,
}

impl Dial {
    pub(crate) fn new(settings: &Settings) -> Result<Self, LoadError> {
        let url: &Url = &settings.url;
        let address = url
            .authority
            .to_socket_addrs()
            .map_err(|error| LoadError::unreachable(&url.authority, &error))?
            // Most nodes listen on IPv4, where a name has both.
            .min_by_key(|address| !address.is_ipv4())
            .ok_or_else(|| {
                let error = io::Error::other("the name has no address");
                LoadError::unreachable(&url.authority, &error)
            })?;
        let tls = url.is_secure.then(|| tls(url, settings.root.as_deref())).transpose()?;
        let sources = match &settings.sources[..] {
            [] => sources_for(address, settings.connections),
            given => given.to_vec(),
        };
        Ok(Self { address, tls, web_socket: url.web_socket.clone(), sources })
    }

    /// Begins to connect. The socket becomes writable when it is connected, or has failed.
    pub(crate) fn open(&self, source: Option<SocketAddr>) -> io::Result<Stream> {
        let mut stream = Stream::new(match source {
            None => TcpStream::connect(self.address)?,
            Some(source) => connect_from(self.address, source)?,
        });
        if let Some(tls) = &self.tls {
            stream.secure(tls)?;
        }
        Ok(stream)
    }

    /// The source address of the connection with this number, if it matters.
    pub(crate) fn source(&self, number: usize) -> Option<SocketAddr> {
        if self.sources.is_empty() {
            return None;
        }
        let source = self.sources[number / PER_SOURCE % self.sources.len()];
        Some((source, 0).into())
    }

    /// The transport of a new connection.
    pub(crate) fn transport(&self, random: &mut Random) -> Transport {
        match self.web_socket.clone() {
            None => Transport::Native,
            // Nothing of a load is secret, so its keys and masks need not be unpredictable.
            Some((host, target)) => Transport::WebSocket {
                host,
                target,
                key: random.bytes(),
                masks: Masks::seeded(random.bytes()),
            },
        }
    }
}

/// On loopback every address of 127.0.0.0/8 is this machine's; elsewhere the system chooses.
fn sources_for(address: SocketAddr, connections: usize) -> Vec<IpAddr> {
    let is_many = connections > PER_SOURCE;
    match address.ip() {
        IpAddr::V4(ip) if ip.is_loopback() && is_many => {
            (0..connections.div_ceil(PER_SOURCE)).map(loopback).collect()
        }
        _ => Vec::new(),
    }
}

/// 127.0.0.1 and those after it, without those that end in 0 or 255.
fn loopback(number: usize) -> IpAddr {
    Ipv4Addr::new(127, 0, (number / 254) as u8, (number % 254 + 1) as u8).into()
}

fn tls(url: &Url, root: Option<&Path>) -> Result<Tls, LoadError> {
    let refuse = |why: String| match root {
        Some(path) => LoadError::Usage(format!("--root-certificate {}: {why}", path.display())),
        None => LoadError::Usage(why),
    };
    let roots = match root {
        Some(path) => vec![std::fs::read(path).map_err(|error| refuse(error.to_string()))?],
        None => Vec::new(),
    };
    Tls::new(url.host(), &roots, url.web_socket.is_some())
        .map_err(|error| refuse(error.to_string()))
}

/// Connects from this address.
fn connect_from(address: SocketAddr, source: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&source.into())?;
    match socket.connect(&address.into()) {
        Err(error) if !is_in_progress(&error) => Err(error),
        _ => Ok(TcpStream::from_std(socket.into())),
    }
}

fn is_in_progress(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
        || error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::{PER_SOURCE, sources_for};

    #[test]
    fn each_loopback_address_is_the_source_of_so_many_connections() {
        let node = "127.0.0.1:1".parse().unwrap();
        assert_eq!(sources_for(node, PER_SOURCE).len(), 0);
        let sources = sources_for(node, 254 * PER_SOURCE + 1);
        assert_eq!(sources.len(), 255);
        assert_eq!(sources[0].to_string(), "127.0.0.1");
        assert_eq!(sources[254].to_string(), "127.0.1.1");
        assert!(sources_for("10.0.0.1:1".parse().unwrap(), 10 * PER_SOURCE).is_empty());
    }
}
