//! The node's address, and the transport that its URL names.

#![cfg_attr(not(feature = "poll"), expect(unreachable_pub, reason = "`poll` shows it"))]

#[cfg(feature = "poll")]
use std::io;
#[cfg(feature = "poll")]
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use crate::Error;
use crate::session::{Masks, Transport, Url, UrlError};
#[cfg(feature = "tls")]
use crate::tls::Tls;

/// A parsed URL, for any number of connections to its node.
#[derive(Debug)]
pub struct Dialer {
    /// Host and port.
    pub(crate) authority: Arc<str>,
    /// The address, unless its name is to be looked up for each connection.
    #[cfg(feature = "poll")]
    pub(crate) address: Option<SocketAddr>,
    /// The `Host` header and the path of a WebSocket.
    web_socket: Option<(String, String)>,
    /// Kept so that the next connection resumes the TLS session.
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<Tls>,
}

impl Dialer {
    /// Reads a URL. With TLS, trusts these root certificates, or the system's if none are given.
    ///
    /// # Errors
    /// If the URL or a certificate is invalid.
    pub fn new(url: &str, roots: &[Vec<u8>]) -> Result<Self, Error> {
        let url = url.parse().map_err(|error: UrlError| Error::usage(error.to_string()))?;
        Self::to(url, roots)
    }

    /// The same, for a URL that was read before.
    ///
    /// # Errors
    /// If a certificate is invalid.
    pub fn to(url: Url, roots: &[Vec<u8>]) -> Result<Self, Error> {
        #[cfg(not(feature = "tls"))]
        if url.is_secure {
            let _ = roots;
            return Err(Error::usage(format!(
                "{:?} needs TLS, which is not built in: enable the feature `tls`",
                url.authority
            )));
        }
        #[cfg(feature = "tls")]
        let tls = url
            .is_secure
            .then(|| Tls::new(url.host(), roots, url.web_socket.is_some()))
            .transpose()?;
        Ok(Self {
            #[cfg(feature = "poll")]
            address: url.authority.parse().ok(),
            authority: url.authority.into(),
            web_socket: url.web_socket,
            #[cfg(feature = "tls")]
            tls,
        })
    }

    /// Looks the node's name up, for all connections. Most nodes listen on IPv4, so that comes first
    /// where a name has both.
    ///
    /// # Errors
    /// If the name has no address.
    #[cfg(feature = "poll")]
    pub fn resolve(&mut self) -> io::Result<SocketAddr> {
        let found = self.authority.to_socket_addrs()?.min_by_key(|address| !address.is_ipv4());
        let address = found.ok_or_else(|| io::Error::other("the name has no address"))?;
        self.address = Some(address);
        Ok(address)
    }

    pub(crate) fn is_web_socket(&self) -> bool {
        self.web_socket.is_some()
    }

    /// The transport of a new connection, with new random numbers.
    pub(crate) fn transport(&self) -> Result<Transport, Error> {
        let Some((host, target)) = self.web_socket.clone() else { return Ok(Transport::Native) };
        let (mut key, mut seed) = ([0; 16], [0; 16]);
        for random in [&mut key, &mut seed] {
            getrandom::fill(random).map_err(|error| {
                Error::usage(format!(
                    "the system has no random numbers, which WebSocket needs: {error}"
                ))
            })?;
        }
        Ok(Transport::WebSocket { host, target, key, masks: Masks::seeded(seed) })
    }
}

#[cfg(test)]
mod tests {
    use super::{Dialer, Transport};

    #[test]
    fn urls_name_a_transport_and_an_address() {
        let cases = [
            ("tcp://node", "node:7350", None),
            ("tcp://node:1/", "node:1", None),
            ("tcp://[::1]", "[::1]:7350", None),
            ("tcp://[::1]:9", "[::1]:9", None),
            ("ws://node", "node:80", Some(("node", "/"))),
            ("ws://node:7350/play?x=1", "node:7350", Some(("node:7350", "/play?x=1"))),
            ("ws://node?x=1", "node:80", Some(("node", "/?x=1"))),
            #[cfg(feature = "tls")]
            ("tls://node", "node:7350", None),
            #[cfg(feature = "tls")]
            ("tls://[::1]:9/", "[::1]:9", None),
            #[cfg(feature = "tls")]
            ("wss://node/play", "node:443", Some(("node", "/play"))),
            #[cfg(feature = "tls")]
            ("wss://node:7350", "node:7350", Some(("node:7350", "/"))),
        ];
        let root = playfield_server::SelfSigned::new(&["node"]).unwrap();
        let roots = [root.certificate().to_vec()];
        for (url, expected, http) in cases {
            let dialer = Dialer::new(url, &roots).unwrap();
            assert_eq!(&*dialer.authority, expected, "{url}");
            match dialer.transport().unwrap() {
                Transport::Native => assert_eq!(http, None, "{url}"),
                Transport::WebSocket { host, target, .. } => {
                    assert_eq!(http, Some((&*host, &*target)), "{url}");
                }
            }
        }
    }

    #[test]
    fn an_invalid_url_is_named_in_the_error() {
        for url in [
            "",
            "node:7350",
            "tcp://",
            "tcp://:1",
            "ws://a@b",
            "wss://",
            "http://node",
            "https://node",
            "tcp://node/x",
            "tls://node/x",
        ] {
            let error = Dialer::new(url, &[]).map(drop).unwrap_err().to_string();
            assert!(error.contains(&format!("{url:?}")), "{error}");
        }
    }
}
