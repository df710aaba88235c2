//! The node's address, and the transport that its URL names.

#![cfg_attr(not(feature = "poll"), expect(unreachable_pub, reason = "`poll` shows it"))]

#[cfg(feature = "poll")]
use std::io;
#[cfg(feature = "poll")]
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use crate::Error;
use crate::session::{Masks, Reach, Transport, Url};
#[cfg(feature = "tls")]
use crate::tls::Tls;

/// A parsed URL, for any number of connections to its node.
#[derive(Debug)]
pub struct Dialer {
    pub(crate) url: Url,
    /// Host and port.
    pub(crate) authority: Arc<str>,
    /// The address, unless its name is to be looked up for each connection.
    #[cfg(feature = "poll")]
    pub(crate) address: Option<SocketAddr>,
    /// Kept so that the next connection resumes the TLS session.
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<Tls>,
    /// The root certificates that are trusted; none: the system's.
    roots: Arc<[Vec<u8>]>,
}

impl Dialer {
    /// Reads a URL. With TLS, trusts these root certificates, or the system's if none are given.
    ///
    /// # Errors
    /// If the URL or a certificate is invalid.
    #[cfg(any(feature = "poll", test))]
    pub fn new(url: &str, roots: &[Vec<u8>]) -> Result<Self, Error> {
        Self::to(url.parse()?, roots)
    }

    /// The same, for a URL that was read before.
    ///
    /// # Errors
    /// If a certificate is invalid.
    pub fn to(url: Url, roots: &[Vec<u8>]) -> Result<Self, Error> {
        Self::plain(url, roots.into()).secured(
            #[cfg(feature = "tls")]
            None,
        )
    }

    /// The dialer of another node, by the same root certificates.
    ///
    /// # Errors
    /// If the URL needs TLS, which can't be set up.
    pub fn another(&self, url: Url) -> Result<Self, Error> {
        Self::plain(url, Arc::clone(&self.roots)).secured(
            #[cfg(feature = "tls")]
            self.tls.as_ref(),
        )
    }

    fn plain(url: Url, roots: Arc<[Vec<u8>]>) -> Self {
        Self {
            #[cfg(feature = "poll")]
            address: url.authority.parse().ok(),
            authority: url.authority.as_str().into(),
            url,
            #[cfg(feature = "tls")]
            tls: None,
            roots,
        }
    }

    /// Sets TLS up if the URL needs it, or uses the setup for another node.
    #[cfg(feature = "tls")]
    fn secured(mut self, other: Option<&Tls>) -> Result<Self, Error> {
        if self.url.is_secure {
            let (host, is_web_socket) = (self.url.host(), self.is_web_socket());
            self.tls = Some(match other {
                Some(tls) => tls.to(host, is_web_socket)?,
                None => Tls::new(host, &self.roots, is_web_socket)?,
            });
        }
        Ok(self)
    }

    #[cfg(not(feature = "tls"))]
    fn secured(self) -> Result<Self, Error> {
        if self.url.is_secure {
            return Err(Error::usage(format!(
                "{:?} needs TLS, which is not built in: enable the feature `tls`",
                self.url.authority
            )));
        }
        Ok(self)
    }

    /// The way in which clients are connected by this.
    #[must_use]
    pub fn reach(&self) -> Reach {
        Reach::by(&self.url, cfg!(feature = "tls"))
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
        self.url.web_socket.is_some()
    }

    /// The transport of a new connection, with new random numbers.
    pub(crate) fn transport(&self) -> Result<Transport, Error> {
        let Some((host, target)) = self.url.web_socket.clone() else {
            return Ok(Transport::Native);
        };
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

    /// Dials as a client that follows redirects does.
    #[test]
    #[cfg(feature = "tls")]
    fn another_node_is_reached_by_the_same_certificates() {
        let root = playfield_server::SelfSigned::new(&["node"]).unwrap();
        for url in ["tcp://node", "tls://node", "wss://node"] {
            let dialer = Dialer::new(url, &[root.certificate().to_vec()]).unwrap();
            for (other, alpn) in [("tls://other", None), ("wss://other/x", Some("http/1.1"))] {
                let other = dialer.another(other.parse().unwrap()).unwrap();
                assert!(other.authority.starts_with("other:"), "{other:?}");
                let tls = other.tls.unwrap();
                assert_eq!(tls.host.to_str(), "other");
                let names = &tls.config.alpn_protocols;
                assert_eq!(names.first().map(Vec::as_slice), alpn.map(str::as_bytes));
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
