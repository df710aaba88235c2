//! Parsing a request on the server.

use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{GeneralPurpose, GeneralPurposeConfig},
};
use httparse::Header;

use crate::{Agreed, Deflate};

use super::{
    HandshakeError, HeadLimits,
    error::excerpt,
    extension::{Extension, extensions},
    head::{check_line_ends, elements, has_token, single, token, values},
};

/// The longest request target, in bytes: the length that RFC 9110 (4.1) recommends every server to
/// support, independent of the limit on the whole head.
pub const TARGET_BYTES_MAX: usize = 8_000;

/// The request at the front of the input.
#[derive(Debug)]
pub enum Head<'a> {
    /// The request is incomplete: keep the input and call again when more has arrived.
    Partial,
    /// A complete request head.
    Complete(Request<'a>),
}

/// An HTTP request's head.
#[derive(Debug)]
pub struct Request<'a> {
    /// The method, such as `GET`.
    pub method: &'a str,
    /// The request target as it was sent: path and query.
    pub target: &'a str,
    /// The length of the head at the front of the input, in bytes. After an upgrade, frames follow.
    pub head_bytes: usize,
    /// The validated WebSocket request; `None` for a plain HTTP request.
    pub upgrade: Option<Upgrade<'a>>,
    headers: Vec<Header<'a>>,
}

impl<'a> Request<'a> {
    /// The value of a header. The name is case-insensitive, and the first value is returned if the
    /// header is repeated. `None` if the value is not UTF-8. `Host` is never repeated, nor is
    /// `Origin` in a WebSocket request. To decide by origin, use [`Upgrade::origin`], which returns
    /// any bytes.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.values(name).next().and_then(|value| std::str::from_utf8(value).ok())
    }

    /// All values of a header, in order. The name is case-insensitive.
    pub fn values<'h>(&'h self, name: &'h str) -> impl Iterator<Item = &'a [u8]> + 'h {
        values(&self.headers, name)
    }
}

/// A WebSocket request that conforms to RFC 6455, 4.2.1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upgrade<'a> {
    key: &'a str,
    origin: Option<&'a [u8]>,
    subprotocols: Vec<&'a str>,
    extensions: Vec<Extension<'a>>,
}

impl<'a> Upgrade<'a> {
    /// The origin of the page that opens the connection. Browsers always send it (RFC 6455, 4.1):
    /// `scheme://host:port`, without the port if it is the scheme's default, or `null`. `None` if
    /// the header is missing, which never happens with a browser.
    pub fn origin(&self) -> Option<&'a [u8]> {
        self.origin
    }

    /// The subprotocols that the client offers, in its order of preference.
    pub fn subprotocols(&self) -> &[&'a str] {
        &self.subprotocols
    }

    /// The compression to agree on, as close to `preferred` as the client's offers allow. `None` if
    /// no offer is acceptable (RFC 7692, 5.1).
    pub fn deflate(&self, preferred: &Deflate) -> Option<Agreed> {
        preferred.answer(&self.extensions)
    }

    pub(super) fn key(&self) -> &'a str {
        self.key
    }
}

/// Parses the request head at the front of `input`.
///
/// A request whose `Upgrade` header names `websocket`, and whose `Connection` header names
/// `Upgrade`, is checked as RFC 6455 (4.2.1) requires, and any violation is an error. Any other
/// request is plain HTTP, with [`Request::upgrade`] set to `None`: without the option in
/// `Connection`, and in HTTP/1.0, `Upgrade` has to be ignored (RFC 9110, 7.8). A server that speaks
/// only WebSocket [rejects](super::reject) it with 426.
///
/// # Errors
///
/// What is wrong with the head. [Reject](super::reject) it with the error's
/// [status](HandshakeError::status).
pub fn parse_request<'a>(input: &'a [u8], limits: &HeadLimits) -> Result<Head<'a>, HandshakeError> {
    let mut headers = limits.headers();
    let mut request = httparse::Request::new(&mut headers);
    let parsed = request.parse(limits.cut(input)).map_err(|error| limits.malformed(error))?;
    let httparse::Status::Complete(head_bytes) = parsed else {
        check_target(request.path.unwrap_or_default())?;
        let is_in_target = request.method.is_some() && request.path.is_none();
        return match limits.check_partial(input) {
            Ok(()) => Ok(Head::Partial),
            Err(_) if is_in_target => Err(HandshakeError::TargetTooLong),
            Err(error) => Err(error),
        };
    };
    check_line_ends(&input[..head_bytes])?;
    let (Some(method), Some(target), Some(minor_version)) =
        (request.method, request.path, request.version)
    else {
        return Err(HandshakeError::Malformed { what: "the first line" });
    };
    check_target(target)?;
    let headers_used = request.headers.len();
    headers.truncate(headers_used);

    check_host(&headers, minor_version)?;
    let upgrade = if minor_version >= 1
        && has_token(&headers, "Connection", "Upgrade")
        && has_token(&headers, "Upgrade", "websocket")
    {
        Some(check_upgrade(method, &headers)?)
    } else {
        None
    };
    Ok(Head::Complete(Request { method, target, head_bytes, upgrade, headers }))
}

fn check_target(target: &str) -> Result<(), HandshakeError> {
    if target.len() <= TARGET_BYTES_MAX { Ok(()) } else { Err(HandshakeError::TargetTooLong) }
}

/// RFC 9112, 3.2: exactly one `Host`, which is optional only in HTTP/1.0.
fn check_host(headers: &[Header<'_>], minor_version: u8) -> Result<(), HandshakeError> {
    match single(headers, "Host")? {
        None if minor_version >= 1 => Err(HandshakeError::Missing { header: "Host" }),
        Some(_) | None => Ok(()),
    }
}

fn check_upgrade<'a>(method: &str, headers: &[Header<'a>]) -> Result<Upgrade<'a>, HandshakeError> {
    // Check the version first: a client of another version may differ in everything else, and must
    // learn which version to use.
    match single(headers, "Sec-WebSocket-Version")? {
        Some(b"13") => {}
        version => {
            return Err(HandshakeError::UnsupportedVersion {
                value: excerpt(version.unwrap_or_default()),
            });
        }
    }
    if method != "GET" {
        return Err(HandshakeError::invalid(
            "the method of a WebSocket request",
            method.as_bytes(),
        ));
    }
    if single(headers, "Host")?.is_none_or(<[u8]>::is_empty) {
        return Err(HandshakeError::Missing { header: "Host" });
    }
    let origin = single(headers, "Origin")?;
    check_no_body(headers)?;
    let key = single(headers, "Sec-WebSocket-Key")?
        .ok_or(HandshakeError::Missing { header: "Sec-WebSocket-Key" })
        .and_then(check_key)?;
    let subprotocols = elements(headers, "Sec-WebSocket-Protocol")
        .map(|name| {
            token(name).ok_or_else(|| HandshakeError::invalid("Sec-WebSocket-Protocol", name))
        })
        .collect::<Result<_, _>>()?;
    Ok(Upgrade { key, origin, subprotocols, extensions: extensions(headers)? })
}

fn check_no_body(headers: &[Header<'_>]) -> Result<(), HandshakeError> {
    let length_is_zero = single(headers, "Content-Length")?.is_none_or(|length| length == b"0");
    let has_coding = values(headers, "Transfer-Encoding").next().is_some();
    if length_is_zero && !has_coding { Ok(()) } else { Err(HandshakeError::Body) }
}

/// Checks that a key is sixteen bytes in base64. Trailing bits may be set, as some clients generate
/// the key as text.
fn check_key(key: &[u8]) -> Result<&str, HandshakeError> {
    const BASE64: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
    );
    let mut bytes = [0; 18]; // the most that 24 characters can decode to
    match (BASE64.decode_slice(key, &mut bytes), std::str::from_utf8(key)) {
        (Ok(16), Ok(key)) => Ok(key),
        _ => Err(HandshakeError::invalid("Sec-WebSocket-Key", key)),
    }
}
