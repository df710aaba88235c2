//! Parts common to the heads of requests and responses.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use httparse::Header;
use sha1::{Digest as _, Sha1};

use super::HandshakeError;

/// Limits on what a peer may send before the handshake is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// The longest head, in bytes, including the empty line that ends it (default 8 KiB).
    pub head_bytes_max: usize,
    /// The maximum number of headers in a head (default 64).
    pub headers_max: usize,
}

impl Default for HeadLimits {
    fn default() -> Self {
        Self { head_bytes_max: 8 << 10, headers_max: 64 }
    }
}

impl HeadLimits {
    /// The part of the input that a head must end in.
    pub(super) fn cut<'a>(&self, input: &'a [u8]) -> &'a [u8] {
        &input[..input.len().min(self.head_bytes_max)]
    }

    /// Storage for the maximum number of headers.
    pub(super) fn headers<'a>(&self) -> Vec<Header<'a>> {
        vec![httparse::EMPTY_HEADER; self.headers_max]
    }

    /// Checks input without a complete head: either more may arrive, or it exceeds the limit.
    pub(super) fn check_partial(&self, input: &[u8]) -> Result<(), HandshakeError> {
        if input.len() < self.head_bytes_max {
            Ok(())
        } else {
            Err(HandshakeError::HeadTooLarge { bytes_max: self.head_bytes_max })
        }
    }

    pub(super) fn malformed(&self, error: httparse::Error) -> HandshakeError {
        let what = match error {
            httparse::Error::TooManyHeaders => {
                return HandshakeError::TooManyHeaders { headers_max: self.headers_max };
            }
            httparse::Error::HeaderName => "a header name",
            httparse::Error::HeaderValue => "a header value",
            httparse::Error::NewLine => "a line ending",
            httparse::Error::Status => "the status",
            httparse::Error::Token => "the first line",
            httparse::Error::Version => "the HTTP version",
        };
        HandshakeError::Malformed { what }
    }
}

/// Rejects line feeds without a carriage return. The parser accepts them as line ends, but a proxy
/// in front of us may not, and would then see one header where we see two.
pub(super) fn check_line_ends(head: &[u8]) -> Result<(), HandshakeError> {
    let mut before = 0;
    for &byte in head {
        if byte == b'\n' && before != b'\r' {
            return Err(HandshakeError::Malformed {
                what: "a line ends in a line feed without a carriage return",
            });
        }
        before = byte;
    }
    Ok(())
}

/// All values of a header, in order.
pub(super) fn values<'h, 'a>(
    headers: &'h [Header<'a>],
    name: &'h str,
) -> impl Iterator<Item = &'a [u8]> + 'h {
    headers
        .iter()
        .filter(move |header| header.name.eq_ignore_ascii_case(name))
        .map(|header| header.value)
}

/// The value of a header that must not be repeated.
pub(super) fn single<'a>(
    headers: &[Header<'a>],
    header: &'static str,
) -> Result<Option<&'a [u8]>, HandshakeError> {
    let mut values = values(headers, header);
    let value = values.next();
    if values.next().is_some() {
        return Err(HandshakeError::Repeated { header });
    }
    Ok(value)
}

/// The elements of a comma-separated header, over all its lines (RFC 9110, 5.6.1).
pub(super) fn elements<'h, 'a>(
    headers: &'h [Header<'a>],
    name: &'h str,
) -> impl Iterator<Item = &'a [u8]> + 'h {
    values(headers, name)
        .flat_map(|value| value.split(|&byte| byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|element| !element.is_empty())
}

/// Whether a comma-separated header contains a token, ignoring case.
pub(super) fn has_token(headers: &[Header<'_>], name: &str, token: &str) -> bool {
    elements(headers, name).any(|element| element.eq_ignore_ascii_case(token.as_bytes()))
}

/// Parses a token (RFC 9110, 5.6.2). Header names and subprotocols are tokens.
pub(super) fn token(bytes: &[u8]) -> Option<&str> {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    if bytes.is_empty() || !bytes.iter().all(is_token) {
        return None;
    }
    std::str::from_utf8(bytes).ok()
}

/// The `Sec-WebSocket-Accept` that answers a `Sec-WebSocket-Key` (RFC 6455, 4.2.2).
pub(super) fn accept_value(key: &str) -> String {
    const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    let digest = Sha1::new().chain_update(key).chain_update(GUID).finalize();
    STANDARD.encode(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accept_value_of_the_rfc() {
        assert_eq!(accept_value("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
