//! The node's address, and the transport that its URL names.

use crate::Error;
use crate::session::{Masks, Transport, Url, UrlError};
#[cfg(feature = "tls")]
use crate::tls::Tls;

/// A parsed URL.
#[derive(Debug)]
pub(crate) struct Dialer {
    /// Host and port.
    pub(crate) authority: String,
    /// The `Host` header and the path of a WebSocket.
    web_socket: Option<(String, String)>,
    /// Kept so that the next connection resumes the TLS session.
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<Tls>,
}

impl Dialer {
    /// Reads a URL. With TLS, trusts these root certificates, or the system's if none are given.
    pub(crate) fn new(url: &str, roots: &[Vec<u8>]) -> Result<Self, Error> {
        let parsed: Url = url.parse().map_err(|error: UrlError| Error::usage(error.to_string()))?;
        #[cfg(not(feature = "tls"))]
        if parsed.is_secure {
            let _ = roots;
            return Err(Error::usage(format!(
                "{url:?} needs TLS, which is not built in: enable the feature `tls`"
            )));
        }
        #[cfg(feature = "tls")]
        let tls = parsed
            .is_secure
            .then(|| Tls::new(parsed.host(), roots, parsed.web_socket.is_some()))
            .transpose()?;
        Ok(Self {
            authority: parsed.authority,
            web_socket: parsed.web_socket,
            #[cfg(feature = "tls")]
            tls,
        })
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
