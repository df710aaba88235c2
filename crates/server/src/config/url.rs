//! URLs as settings name them.

use std::fmt;

/// The URL of a NATS server, such as `nats://nats-1:4222`, or `tls://…` for TLS.
/// [`Config::set`](crate::Config::set) reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineUrl(String);

/// The URL at which clients reach a node, such as `wss://n3.play.example.com`.
/// [`Config::set`](crate::Config::set) reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientUrl(String);

impl EngineUrl {
    /// Reads one; otherwise says why not.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        read(text, &["nats", "tls"]).map(Self)
    }

    /// The URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ClientUrl {
    /// Reads one; otherwise says why not.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        read(text, &["tcp", "tls", "ws", "wss"]).map(Self)
    }

    /// The URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn read(text: &str, schemes: &[&str]) -> Result<String, String> {
    let refuse = |why: &str| Err(format!("{text:?} {why}"));
    let Some((scheme, rest)) = text.split_once("://") else {
        return refuse("is not a URL");
    };
    if !schemes.contains(&scheme) {
        return refuse(&format!("does not begin with one of {}", schemes.join(":// ")));
    }
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.is_empty() || host.starts_with(':') {
        return refuse("names no host");
    }
    if text.bytes().any(|byte| !byte.is_ascii_graphic()) {
        return refuse("has a space, or a character that no URL can hold");
    }
    Ok(text.to_owned())
}

/// Hides the user and the password.
impl fmt::Display for EngineUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self
            .0
            .split_once("://")
            .and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?.1)))
        {
            Some((scheme, host)) => write!(f, "{scheme}://hidden@{host}"),
            None => f.write_str(&self.0),
        }
    }
}

impl fmt::Display for ClientUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{ClientUrl, EngineUrl};

    #[test]
    fn the_password_of_an_engine_is_not_shown() {
        let url = EngineUrl::read("nats://user:secret@a:4222").unwrap();
        assert_eq!(url.to_string(), "nats://hidden@a:4222");
    }

    #[test]
    fn urls_have_a_known_scheme_and_a_host() {
        for url in ["nats://a:4222", "tls://a", "nats://user:secret@[::1]:4222"] {
            assert_eq!(EngineUrl::read(url).unwrap().as_str(), url);
        }
        for url in ["tcp://a", "wss://n3.play.example.com/node/3", "ws://127.0.0.1:7350"] {
            assert_eq!(ClientUrl::read(url).unwrap().as_str(), url);
        }
        for url in ["", "a:4222", "http://a", "nats://", "nats://:4222", "nats://a b"] {
            assert!(EngineUrl::read(url).is_err(), "{url:?}");
        }
        for url in ["nats://a", "tcp:///path", "wss://"] {
            assert!(ClientUrl::read(url).is_err(), "{url:?}");
        }
    }
}
