//! The URL of a node.

use std::fmt;
use std::str::FromStr;

/// The default port of `tcp` and `tls` URLs.
const PORT: u16 = 7350;

/// The URL of a node, which names the transport: `tcp://`, `tls://`, `ws://` or `wss://`.
///
/// ```
/// use playfield_client::session::Url;
///
/// let url: Url = "tcp://127.0.0.1".parse()?;
/// assert_eq!(url.authority, "127.0.0.1:7350");
/// # Ok::<(), playfield_client::session::UrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Url {
    /// Host and port.
    pub authority: String,
    /// The `Host` header and the path of a WebSocket. `None` for native framing.
    pub web_socket: Option<(String, String)>,
    /// Says whether the transport is over TLS.
    pub is_secure: bool,
}

impl Url {
    /// The host, without the port and without the brackets of an IPv6 address.
    #[must_use]
    pub fn host(&self) -> &str {
        match self.authority.strip_prefix('[') {
            Some(address) => address.split(']').next().unwrap_or_default(),
            None => self.authority.split(':').next().unwrap_or_default(),
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secure = if self.is_secure { "s" } else { "" };
        match &self.web_socket {
            None => {
                write!(f, "{}://{}", if self.is_secure { "tls" } else { "tcp" }, self.authority)
            }
            Some((host, target)) if target == "/" => write!(f, "ws{secure}://{host}"),
            Some((host, target)) => write!(f, "ws{secure}://{host}{target}"),
        }
    }
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(url: &str) -> Result<Self, UrlError> {
        let refuse = |why| UrlError { url: url.to_owned(), why };
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
        Ok(Self { authority: with_port(port), web_socket, is_secure })
    }
}

/// The error in a node's URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlError {
    url: String,
    why: &'static str,
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.url, self.why)
    }
}

impl std::error::Error for UrlError {}
