//! Errors in messages.

use std::borrow::Cow;
use std::fmt;

/// Bytes, or a value read from them, that the protocol does not allow.
///
/// An error in bytes names its place as an offset into the message, or into the bytes that the
/// [`Reader`](crate::reader::Reader) was given. An error in a value of a tree has no offset; it
/// names the member instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    offset: Option<usize>,
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
        Self { offset: Some(offset), kind: Kind::Other(what.into()) }
    }

    /// An error without an offset, such as one in a value that was parsed before.
    pub fn other(what: impl Into<Cow<'static, str>>) -> Self {
        Self { offset: None, kind: Kind::Other(what.into()) }
    }

    /// The same error, in the member `name` of an object that was parsed before.
    #[must_use]
    pub fn in_member(self, name: &str) -> Self {
        Self::other(format!("member {name:?}: {self}"))
    }

    /// The same error at a place that is not known.
    #[must_use]
    pub fn without_offset(self) -> Self {
        Self { offset: None, ..self }
    }

    #[cold]
    pub(crate) fn of(offset: usize, kind: Kind) -> Self {
        Self { offset: Some(offset), kind }
    }

    /// The same error, in bytes that begin at `start` in the message.
    pub(crate) fn at(self, start: usize) -> Self {
        Self { offset: Some(start + self.offset.unwrap_or(0)), ..self }
    }

    /// Returns the place of the error, in bytes from the start of what was decoded. `None` for an
    /// error in a value of a tree.
    #[must_use]
    pub fn offset(&self) -> Option<usize> {
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

    /// The format's number, if a `hello` asked for a format that is not supported. The answer is
    /// [`WrongFormat`](crate::ErrorCode::WrongFormat); to every other decode error of a message it
    /// is [`BadMessage`](crate::ErrorCode::BadMessage).
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
        if let Some(offset) = self.offset {
            write!(f, "at byte {offset}: ")?;
        }
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
            Kind::UnspokenFormat { number } => {
                write!(f, "the format {number} is not supported here")
            }
            Kind::Other(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for DecodeError {}

#[cfg(test)]
mod tests {
    use super::DecodeError;

    #[test]
    fn only_an_error_in_bytes_names_a_byte() {
        let error = DecodeError::new(7, "a text is not UTF-8");
        assert_eq!(error.to_string(), "at byte 7: a text is not UTF-8");
        let error = DecodeError::other("a u32 was expected, \"x\" came").in_member("ticket");
        assert_eq!(error.to_string(), "member \"ticket\": a u32 was expected, \"x\" came");
        assert_eq!(error.in_member("seat").offset(), None);
    }
}
