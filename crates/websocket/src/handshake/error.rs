//! What can be wrong with a handshake.

use std::fmt;

use super::TARGET_BYTES_MAX;

/// Why a handshake failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The head is not HTTP.
    Malformed {
        /// Where it is wrong.
        what: &'static str,
    },
    /// The head is longer than [`HeadLimits::head_bytes_max`](super::HeadLimits::head_bytes_max).
    HeadTooLarge {
        /// The limit.
        bytes_max: usize,
    },
    /// The request target is longer than [`TARGET_BYTES_MAX`](super::TARGET_BYTES_MAX), or than a
    /// head may be.
    TargetTooLong,
    /// The head has more headers than [`HeadLimits::headers_max`](super::HeadLimits::headers_max).
    TooManyHeaders {
        /// The limit.
        headers_max: usize,
    },
    /// A header that must be there is not.
    Missing {
        /// Its name.
        header: &'static str,
    },
    /// A header that must be single is repeated.
    Repeated {
        /// Its name.
        header: &'static str,
    },
    /// A header, or another part of a handshake, has a value that it may not have.
    Invalid {
        /// The header's name, or what else it is.
        what: &'static str,
        /// The value's start, escaped.
        value: String,
    },
    /// The client speaks another version of the protocol than 13, or names none.
    UnsupportedVersion {
        /// The start of what it named, escaped.
        value: String,
    },
    /// The head is of an HTTP version before 1.1.
    HttpTooOld,
    /// A WebSocket request has a body, which it would be unsafe to tell apart from frames.
    Body,
    /// A server answered with another status than 101.
    Refused {
        /// The status it answered with.
        status: u16,
    },
    /// A server's `Sec-WebSocket-Accept` does not answer our key.
    AcceptMismatch,
    /// A server chose an extension, or terms of one, that were not offered.
    ExtensionNotOffered {
        /// The start of what it chose, escaped.
        value: String,
    },
    /// The selected subprotocol is none of those that the client offered.
    SubprotocolNotOffered {
        /// The start of what was selected, escaped.
        value: String,
    },
}

impl HandshakeError {
    /// For a server, the HTTP status to [`reject`](super::reject) the request with: 426 for another
    /// version of the protocol, 414 for a target over its limit, 431 for a head over one, 400
    /// otherwise. For a client, the status which the server answered with if it
    /// [refused](Self::Refused), and nothing to go by otherwise.
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

/// The start of a value, safe to show: a peer's bytes must not garble a log or fill it.
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
                    "the HTTP head is over the limit of {bytes_max} bytes; send fewer or shorter headers"
                )
            }
            Self::TargetTooLong => {
                write!(
                    f,
                    "the request target is over the limit of {TARGET_BYTES_MAX} bytes; ask for a shorter URL"
                )
            }
            Self::TooManyHeaders { headers_max } => {
                write!(f, "the HTTP head is over the limit of {headers_max} headers; send fewer")
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
                "the server's Sec-WebSocket-Accept does not answer the key; is it a WebSocket server?",
            ),
            Self::ExtensionNotOffered { value } => {
                write!(f, "the server chose the extension \"{value}\", which was not offered in this way")
            }
            Self::SubprotocolNotOffered { value } => {
                write!(f, "the subprotocol \"{value}\" was selected, but not offered by the client")
            }
        }
    }
}

impl std::error::Error for HandshakeError {}
