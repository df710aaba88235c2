//! What was wrong with a message.

use std::borrow::Cow;
use std::fmt;

/// Bytes that are not what the protocol says they should be.
///
/// It names the place, as a byte offset into the message (or into whatever the
/// [`Reader`](crate::reader::Reader) was given), and what was expected there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    offset: usize,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Missing { expected: &'static str, remain: usize },
    PastEnd { what: &'static str, unit: &'static str, announced: u64, remain: usize },
    Trailing { remain: usize },
    Bool { value: u8 },
    VarintNotShortest,
    VarintOverflow,
    PastU32 { value: u64 },
    NotUtf8,
    Unknown { kind: u8 },
    UnknownType { name: Box<str> },
    UnspokenFormat { number: u8 },
    Other(Cow<'static, str>),
}

impl DecodeError {
    /// An error at `offset`, described by `what` in a phrase such as "the field `hp` is past its
    /// maximum".
    pub fn new(offset: usize, what: impl Into<Cow<'static, str>>) -> Self {
        Self { offset, kind: Kind::Other(what.into()) }
    }

    #[cold]
    pub(crate) fn of(offset: usize, kind: Kind) -> Self {
        Self { offset, kind }
    }

    /// The same, of bytes that stand at `start` in the message.
    pub(crate) fn at(self, start: usize) -> Self {
        Self { offset: start + self.offset, ..self }
    }

    /// Where the error is, in bytes from the start of what was decoded.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Whether the bytes ended too early: there may be nothing wrong with those that came.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        matches!(self.kind, Kind::Missing { .. } | Kind::PastEnd { .. })
    }

    /// Whether the message is of a kind (in JSON and MessagePack, a `type`) that the protocol
    /// doesn't have.
    #[must_use]
    pub fn is_unknown_kind(&self) -> bool {
        matches!(self.kind, Kind::Unknown { .. } | Kind::UnknownType { .. })
    }

    /// The number of the format that a `hello` asked for in vain. It is answered by
    /// [`WrongFormat`](crate::ErrorCode::WrongFormat); every other decode error of a message is a
    /// [`BadMessage`](crate::ErrorCode::BadMessage).
    #[must_use]
    pub fn unspoken_format(&self) -> Option<u8> {
        match self.kind {
            Kind::UnspokenFormat { number } => Some(number),
            _ => None,
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: ", self.offset)?;
        match &self.kind {
            Kind::Missing { expected, remain } => {
                write!(f, "{expected} was expected, {remain} bytes remain")
            }
            Kind::PastEnd { what, unit, announced, remain } => {
                write!(f, "a {what} of {announced} {unit} was announced, {remain} remain")
            }
            Kind::Trailing { remain } => write!(f, "the end was expected, {remain} bytes remain"),
            Kind::Bool { value } => write!(f, "a bool is 0 or 1, not {value}"),
            Kind::VarintNotShortest => f.write_str("a varint is not in its shortest form"),
            Kind::VarintOverflow => f.write_str("a varint is past 64 bits"),
            Kind::PastU32 { value } => write!(f, "the number {value} is past {}", u32::MAX),
            Kind::NotUtf8 => f.write_str("a text is not UTF-8"),
            Kind::Unknown { kind } => write!(f, "no message has the kind {kind:#04x}"),
            Kind::UnknownType { name } => write!(f, "no message has the type {name:?}"),
            Kind::UnspokenFormat { number } => write!(f, "the format {number} is not spoken here"),
            Kind::Other(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for DecodeError {}
