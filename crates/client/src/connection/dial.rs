//! Opens the transport that a URL names, once for each connection.

use std::io;

use tokio::net::TcpStream;

use super::stream::Stream;
#[cfg(feature = "tls")]
use super::tls::Tls;
use crate::Error;
use crate::core::{Masks, Transport};

/// The default port of `tcp` and `tls` URLs.
const PORT: u16 = 7350;

/// A parsed URL.
#[derive(Debug)]
pub(super) struct Dialer {
    /// Host and port.
    pub(super) authority: String,
    /// The `Host` header and the path of a WebSocket.
    web_socket: Option<(String, String)>,
    /// Kept so that the next connection resumes the TLS session.
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
}

impl Dialer {
    /// Reads a URL. With TLS, trusts these root certificates, or the system's if none are given.
    pub(super) fn new(url: &str, roots: &[Vec<u8>]) -> Result<Self, Error> {
        let refuse = |why: &str| Error::usage(format!("{url:?} {why}"));
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err(refuse("is not a URL such as tcp://host:7350 or ws://host:7350"));
        };
        let (authority, target) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if authority.is_empty() || authority.starts_with(':') || authority.contains('@') {
            return Err(refuse("must name a host, or a host and a port"));
        }
        // The colons of an IPv6 address are within brackets.
        let has_port = authority.rsplit(']').next().is_some_and(|behind| behind.contains(':'));
        let with_port =
            |port: u16| if has_port { authority.to_owned() } else { format!("{authority}:{port}") };
        let (web_socket, port) = match scheme {
            "tcp" | "tls" if matches!(target, "" | "/") => (None, PORT),
            "tcp" | "tls" => {
                return Err(refuse("has a path, which tcp:// and tls:// do not support"));
            }
            "ws" | "wss" => {
                let target =
                    if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
                let port = if scheme == "ws" { 80 } else { 443 };
                (Some((authority.to_owned(), target)), port)
            }
            _ => return Err(refuse("is none of tcp://, tls://, ws:// and wss://")),
        };
        let is_secure = matches!(scheme, "tls" | "wss");
        #[cfg(not(feature = "tls"))]
        if is_secure {
            let _ = roots;
            return Err(refuse("needs TLS, which is not built in: enable the feature `tls`"));
        }
        Ok(Self {
            authority: with_port(port),
            #[cfg(feature = "tls")]
            tls: is_secure.then(|| Tls::new(authority, roots, web_socket.is_some())).transpose()?,
            web_socket,
        })
    }

    pub(super) fn is_web_socket(&self) -> bool {
        self.web_socket.is_some()
    }

    /// The transport of a new connection, with new random numbers.
    pub(super) fn transport(&self) -> Result<Transport, Error> {
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

    /// Connects, with TLS ready. The name is looked up each time: the node's address may have
    /// changed.
    pub(super) async fn dial(&self) -> Result<Stream, Error> {
        let stream = self.dial_plain().await;
        let stream = stream.map_err(|error| Error::unreachable(&self.authority, error))?;
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            let stream = tls.connect(stream).await;
            let stream = stream.map_err(|error| Error::insecure(&self.authority, &error))?;
            return Ok(Stream::Tls(Box::new(stream)));
        }
        Ok(Stream::Plain(stream))
    }

    async fn dial_plain(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(&self.authority).await?;
        // Messages are written in batches already: waiting for more only delays them.
        stream.set_nodelay(true)?;
        Ok(stream)
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
            assert_eq!(dialer.authority, expected, "{url}");
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
