//! What is wrong with a request.

use std::fmt;

use crate::TARGET_BYTES_MAX;

/// Why a request is refused. Nothing after it can be read: answer with
/// [`status`](Self::status), and close the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestError {
    /// It is not valid HTTP.
    Malformed {
        /// What is wrong with it.
        what: &'static str,
    },
    /// The head is longer than [`Limits::head_bytes_max`](crate::Limits::head_bytes_max).
    HeadTooLarge {
        /// The limit.
        bytes_max: usize,
    },
    /// The request target is longer than [`TARGET_BYTES_MAX`], or than the limit on a head.
    TargetTooLong,
    /// The head has more headers than [`Limits::headers_max`](crate::Limits::headers_max).
    TooManyHeaders {
        /// The limit.
        headers_max: usize,
    },
    /// The body is longer than [`Limits::body_bytes_max`](crate::Limits::body_bytes_max).
    BodyTooLarge {
        /// The limit.
        bytes_max: usize,
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
    /// The body has a transfer coding other than `chunked`.
    UnknownCoding,
    /// The client expects something other than `100-continue`.
    UnknownExpectation,
}

impl RequestError {
    /// The status to answer with.
    pub fn status(&self) -> u16 {
        match self {
            Self::Malformed { .. } | Self::Missing { .. } | Self::Repeated { .. } => 400,
            Self::BodyTooLarge { .. } => 413,
            Self::TargetTooLong => 414,
            Self::UnknownExpectation => 417,
            Self::HeadTooLarge { .. } | Self::TooManyHeaders { .. } => 431,
            Self::UnknownCoding => 501,
        }
    }

    pub(crate) fn malformed(what: &'static str) -> Self {
        Self::Malformed { what }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { what } => write!(f, "the HTTP request is malformed: {what}"),
            Self::HeadTooLarge { bytes_max } => write!(
                f,
                "the HTTP head exceeds the limit of {bytes_max} bytes; send fewer or shorter headers"
            ),
            Self::TargetTooLong => write!(
                f,
                "the request target exceeds the limit of {TARGET_BYTES_MAX} bytes; use a shorter URL"
            ),
            Self::TooManyHeaders { headers_max } => {
                write!(f, "the HTTP head exceeds the limit of {headers_max} headers; send fewer")
            }
            Self::BodyTooLarge { bytes_max } => {
                write!(f, "the body exceeds the limit of {bytes_max} bytes; send a shorter one")
            }
            Self::Missing { header } => write!(f, "the header {header} is missing"),
            Self::Repeated { header } => write!(f, "the header {header} is repeated; send it once"),
            Self::UnknownCoding => {
                f.write_str("the only transfer coding is chunked; send no other")
            }
            Self::UnknownExpectation => {
                f.write_str("the only expectation is 100-continue; send no other")
            }
        }
    }
}

impl std::error::Error for RequestError {}
