//! Handshake errors.

use std::fmt;

use super::TARGET_BYTES_MAX;

/// Why a handshake failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The head is not valid HTTP.
    Malformed {
        /// The part that is wrong.
        what: &'static str,
    },
    /// The head is longer than [`HeadLimits::head_bytes_max`](super::HeadLimits::head_bytes_max).
    HeadTooLarge {
        /// The limit.
        bytes_max: usize,
    },
    /// The request target is longer than [`TARGET_BYTES_MAX`](super::TARGET_BYTES_MAX), or than the
    /// limit on a head.
    TargetTooLong,
    /// The head has more headers than [`HeadLimits::headers_max`](super::HeadLimits::headers_max).
    TooManyHeaders {
        /// The limit.
        headers_max: usize,
    },
    /// A required header is missing.
    Missing {
        /// Its name.
        header: &'static str,
    },
    /// A header that must appear only once is repeated.
    Repeated {
        /// Its name.
        header: &'static str,
    },
    /// A header, or another part of the handshake, has an invalid value.
    Invalid {
        /// The header's name, or the other part.
        what: &'static str,
        /// The value's start, escaped.
        value: String,
    },
    /// The client requests a protocol version other than 13, or none.
    UnsupportedVersion {
        /// The start of the requested version, escaped.
        value: String,
    },
    /// The HTTP version is older than 1.1.
    HttpTooOld,
    /// A WebSocket request has a body, which can't be safely distinguished from frames.
    Body,
    /// A server answered with a status other than 101.
    Refused {
        /// The server's status.
        status: u16,
    },
    /// A server's `Sec-WebSocket-Accept` does not match our key.
    AcceptMismatch,
    /// A server selected an extension, or parameters of one, that were not offered.
    ExtensionNotOffered {
        /// The start of the selected extension, escaped.
        value: String,
    },
    /// The selected subprotocol was not offered by the client.
    SubprotocolNotOffered {
        /// The start of the selected subprotocol, escaped.
        value: String,
    },
}

impl HandshakeError {
    /// For a server, the HTTP status to [`reject`](super::reject) the request with: 426 for an
    /// unsupported protocol version, 414 for a target over its limit, 431 for a head over its
    /// limits, 400 otherwise. For a client, the server's status if it [refused](Self::Refused) the
    /// request; otherwise the value has no meaning.
    pub fn status(&self) -> u16 {
        match self {
            Self::UnsupportedVersion { .. } => 426,
            Self::TargetTooLong => 414,
            Self::HeadTooLarge { .. } | Self::TooManyHeaders { .. } => 431,
            Self::Refused { status } => *status,
            Self::Malformed { .. }
            | Self::Missing { .. }
            | Self::Repeated { .. }
            | Self::Invalid { .. }
            | Self::HttpTooOld
            | Self::Body
            | Self::AcceptMismatch
            | Self::ExtensionNotOffered { .. }
            | Self::SubprotocolNotOffered { .. } => 400,
        }
    }

    pub(super) fn invalid(what: &'static str, value: &[u8]) -> Self {
        Self::Invalid { what, value: excerpt(value) }
    }
}

/// The start of a value, escaped and truncated: a peer's bytes must not garble or flood a log.
pub(super) fn excerpt(value: &[u8]) -> String {
    value[..value.len().min(64)].escape_ascii().to_string()
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { what } => write!(f, "the HTTP head is malformed: {what}"),
            Self::HeadTooLarge { bytes_max } => {
                write!(
                    f,
                    "the HTTP head exceeds the limit of {bytes_max} bytes; send fewer or \
                     shorter headers"
                )
            }
            Self::TargetTooLong => {
                write!(
                    f,
                    "the request target exceeds the limit of {TARGET_BYTES_MAX} bytes; use a \
                     shorter URL"
                )
            }
            Self::TooManyHeaders { headers_max } => {
                write!(f, "the HTTP head exceeds the limit of {headers_max} headers; send fewer")
            }
            Self::Missing { header } => write!(f, "the header {header} is missing"),
            Self::Repeated { header } => write!(f, "the header {header} is repeated; send it once"),
            Self::Invalid { what, value } => write!(f, "{what} has the invalid value \"{value}\""),
            Self::UnsupportedVersion { value } => {
                write!(f, "WebSocket version \"{value}\" is not supported; use version 13")
            }
            Self::HttpTooOld => f.write_str("the HTTP version is too old; use HTTP/1.1"),
            Self::Body => f.write_str("a WebSocket request has a body; send none"),
            Self::Refused { status } => {
                write!(f, "the server refused the WebSocket with HTTP status {status}")
            }
            Self::AcceptMismatch => f.write_str(
                "the server's Sec-WebSocket-Accept does not match the key; is it a \
                 WebSocket server?",
            ),
            Self::ExtensionNotOffered { value } => {
                write!(
                    f,
                    "the server selected the extension \"{value}\", which was not offered with \
                     these parameters"
                )
            }
            Self::SubprotocolNotOffered { value } => {
                write!(f, "the selected subprotocol \"{value}\" was not offered by the client")
            }
        }
    }
}

impl std::error::Error for HandshakeError {}
