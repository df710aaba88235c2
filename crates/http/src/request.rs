//! A whole request.

use std::borrow::Cow;
use std::net::SocketAddr;

use crate::Head;
use crate::decode::form_decoded;

/// An HTTP request: its head, its body, and where it came from.
#[derive(Clone, Debug)]
pub struct Request {
    head: Head,
    body: Vec<u8>,
    params: Vec<(String, String)>,
    peer: Option<SocketAddr>,
}

impl Request {
    pub(crate) fn new(head: Head, body: Vec<u8>) -> Self {
        Self { head, body, params: Vec::new(), peer: None }
    }

    /// The same, with the parameters of its path and the address of its sender.
    #[must_use]
    pub fn with_origin(self, params: Vec<(String, String)>, peer: SocketAddr) -> Self {
        Self { params, peer: Some(peer), ..self }
    }

    /// The method, such as `POST`.
    pub fn method(&self) -> &str {
        self.head.method()
    }

    /// The path as it was sent, still encoded, without the query.
    pub fn path(&self) -> &str {
        self.head.path()
    }

    /// The part of the path that took the place of `{name}` in the route, decoded; `None` if the
    /// route has no such place.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The pairs of the query in order, decoded. A name without a value has an empty one.
    pub fn query(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
        let pairs = self.head.query().split('&').filter(|pair| !pair.is_empty());
        pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (form_decoded(name), form_decoded(value))
        })
    }

    /// The first value of a name in the query, decoded.
    pub fn query_value(&self, name: &str) -> Option<Cow<'_, str>> {
        self.query().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The value of a header, whose name is case-insensitive; the first if it is repeated. `None`
    /// also if the value is not UTF-8.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    /// The head, with all headers.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The body; empty without one.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The body as text; `None` if it is not UTF-8.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.body).ok()
    }

    /// The body, to be kept.
    pub fn into_body(self) -> Vec<u8> {
        self.body
    }

    /// The address of the client: the one that a trusted proxy named, or else the other end of the
    /// connection. The port is 0 if the proxy named none. `None` for a request that came over no
    /// connection.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }
}
