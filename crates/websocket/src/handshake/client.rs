//! The client's side: requests an upgrade and checks the response.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use httparse::Header;

use crate::Deflate;

use super::{
    HandshakeError, HeadLimits,
    error::excerpt,
    extension::extensions,
    head::{accept_value, check_line_ends, has_token, single, token, values},
};

/// A client's side of one handshake: the request to send and the checks on the response.
#[derive(Clone, Debug)]
pub struct ClientHandshake {
    request: Vec<u8>,
    accept: String,
    subprotocols: Vec<String>,
    deflate: Option<Deflate>,
}

/// The response at the front of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response<'a> {
    /// The response is incomplete: keep the input and call again when more has arrived.
    Partial,
    /// The connection is a WebSocket now.
    Complete {
        /// The length of the response at the front of the input, in bytes. Frames follow.
        head_bytes: usize,
        /// The subprotocol that the server selected from those offered.
        subprotocol: Option<&'a str>,
        /// The compression that the server agreed to, if it was offered.
        deflate: Option<Deflate>,
    },
}

/// Headers that the handshake writes itself, or that would change the meaning of the request.
const OWN_HEADERS: [&str; 6] =
    ["Host", "Upgrade", "Connection", "Content-Length", "Transfer-Encoding", "Expect"];

impl ClientHandshake {
    /// Creates the request (RFC 6455, 4.1). `target` is a path, optionally with a query. `host` is
    /// a name or address, with the port unless it is the scheme's default. Generate a random `key`
    /// for each connection. `headers` are added to the request, such as `Origin` or
    /// `Authorization`. `subprotocols` are offered in order of preference.
    ///
    /// # Errors
    ///
    /// [`HandshakeError::Invalid`] for a value that is not allowed in its place: line ends and
    /// other control characters, names that are not tokens, a subprotocol offered twice, or a
    /// header that the handshake writes itself.
    pub fn new(
        host: &str,
        target: &str,
        key: [u8; 16],
        headers: &[(&str, &str)],
        subprotocols: &[&str],
    ) -> Result<Self, HandshakeError> {
        let is_visible = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if host.is_empty() || !is_visible(host) {
            return Err(HandshakeError::invalid("the host", host.as_bytes()));
        }
        // A fragment is never sent to the server (RFC 6455, 3).
        if !target.starts_with('/') || target.contains('#') || !is_visible(target) {
            return Err(HandshakeError::invalid("the target", target.as_bytes()));
        }
        for (name, value) in headers {
            check_header(name, value)?;
        }
        for (index, name) in subprotocols.iter().enumerate() {
            if token(name.as_bytes()).is_none() || subprotocols[..index].contains(name) {
                return Err(HandshakeError::invalid("a subprotocol", name.as_bytes()));
            }
        }

        let key = STANDARD.encode(key);
        let mut request = format!(
            "GET {target} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
        );
        if !subprotocols.is_empty() {
            request += &format!("Sec-WebSocket-Protocol: {}\r\n", subprotocols.join(", "));
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += "\r\n";
        Ok(Self {
            request: request.into_bytes(),
            accept: accept_value(&key),
            subprotocols: subprotocols.iter().map(|&name| name.to_owned()).collect(),
            deflate: None,
        })
    }

    /// Offers to compress messages. The server agrees to parameters as close to `preferred` as it
    /// supports, or declines (RFC 7692, 5.1).
    #[must_use]
    pub fn with_deflate(mut self, preferred: Deflate) -> Self {
        let end = self.request.len() - b"\r\n".len();
        let offer = format!("Sec-WebSocket-Extensions: {}\r\n", preferred.offer());
        self.request.splice(end..end, offer.into_bytes());
        self.deflate = Some(preferred);
        self
    }

    /// The bytes to send.
    pub fn request(&self) -> &[u8] {
        &self.request
    }

    /// Parses the response head at the front of `input` and checks it as RFC 6455 (4.1) requires.
    ///
    /// # Errors
    ///
    /// [`HandshakeError::Refused`] with the server's status if it is not 101, otherwise what is
    /// wrong with the response. Close the connection in either case.
    pub fn parse_response<'a>(
        &self,
        input: &'a [u8],
        limits: &HeadLimits,
    ) -> Result<Response<'a>, HandshakeError> {
        let mut headers = limits.headers();
        let mut response = httparse::Response::new(&mut headers);
        let parsed = response.parse(limits.cut(input)).map_err(|error| limits.malformed(error))?;
        let httparse::Status::Complete(head_bytes) = parsed else {
            limits.check_partial(input)?;
            return Ok(Response::Partial);
        };
        check_line_ends(&input[..head_bytes])?;
        match (response.code, response.version) {
            (Some(101), Some(1)) => {}
            (Some(101), _) => return Err(HandshakeError::HttpTooOld),
            (status, _) => {
                return Err(HandshakeError::Refused { status: status.unwrap_or_default() });
            }
        }
        self.check_headers(response.headers)?;
        let subprotocol = self.subprotocol(response.headers)?;
        let deflate = self.accepted_deflate(response.headers)?;
        Ok(Response::Complete { head_bytes, subprotocol, deflate })
    }

    /// Checks that a 101 response matches the request.
    fn check_headers(&self, headers: &[Header<'_>]) -> Result<(), HandshakeError> {
        let upgrade =
            single(headers, "Upgrade")?.ok_or(HandshakeError::Missing { header: "Upgrade" })?;
        if !upgrade.eq_ignore_ascii_case(b"websocket") {
            return Err(HandshakeError::invalid("Upgrade", upgrade));
        }
        if !has_token(headers, "Connection", "Upgrade") {
            return Err(HandshakeError::Missing { header: "Connection: Upgrade" });
        }
        let accept = single(headers, "Sec-WebSocket-Accept")?
            .ok_or(HandshakeError::Missing { header: "Sec-WebSocket-Accept" })?;
        if accept != self.accept.as_bytes() {
            return Err(HandshakeError::AcceptMismatch);
        }
        Ok(())
    }

    fn accepted_deflate(&self, headers: &[Header<'_>]) -> Result<Option<Deflate>, HandshakeError> {
        let refused = || {
            let value = values(headers, "Sec-WebSocket-Extensions").next().unwrap_or_default();
            HandshakeError::ExtensionNotOffered { value: excerpt(value) }
        };
        match (&extensions(headers)?[..], &self.deflate) {
            ([], _) => Ok(None),
            ([one], Some(preferred)) => preferred.accepted(one).map(Some).ok_or_else(refused),
            ([..], _) => Err(refused()),
        }
    }

    /// The subprotocol that the server selected.
    fn subprotocol<'a>(&self, headers: &[Header<'a>]) -> Result<Option<&'a str>, HandshakeError> {
        let Some(value) = single(headers, "Sec-WebSocket-Protocol")? else { return Ok(None) };
        match std::str::from_utf8(value) {
            Ok(name) if self.subprotocols.iter().any(|offered| offered == name) => Ok(Some(name)),
            _ => Err(HandshakeError::SubprotocolNotOffered { value: excerpt(value) }),
        }
    }
}

fn check_header(name: &str, value: &str) -> Result<(), HandshakeError> {
    let is_own = OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name))
        || name.get(..14).is_some_and(|start| start.eq_ignore_ascii_case("Sec-WebSocket-"));
    if is_own || token(name.as_bytes()).is_none() {
        return Err(HandshakeError::invalid("the name of a header", name.as_bytes()));
    }
    let is_control = |byte: u8| byte.is_ascii_control() && byte != b'\t';
    if value.bytes().any(is_control) {
        return Err(HandshakeError::invalid("the value of a header", value.as_bytes()));
    }
    Ok(())
}
