//! What can be wrong with a packet.

use std::fmt;

/// Bytes that are not the packet which was expected, or a value that doesn't fit the packet which
/// was to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketError {
    offset: usize,
    field: &'static str,
    kind: PacketErrorKind,
}

/// What was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PacketErrorKind {
    /// The bytes end before the value does.
    Truncated {
        /// The value: `u16`, `bytes`, …
        expected: &'static str,
        /// How many bytes remain.
        remain: usize,
    },
    /// A length or a count is more than can be there.
    PastEnd {
        /// What the prefix says: bytes, or elements of a list.
        announced: u64,
        /// How many bytes remain.
        remain: usize,
    },
    /// Bytes are left behind the end.
    Trailing {
        /// How many.
        remain: usize,
    },
    /// A bool is neither 0 nor 1.
    Bool {
        /// The byte.
        value: u8,
    },
    /// A varint has more bytes than it needs, or more bits than it may.
    Varint,
    /// A text is not UTF-8, from this byte on.
    NotUtf8,
    /// A padded text is followed by something else than zeros.
    Padding {
        /// The byte that stands there.
        value: u8,
    },
    /// A padded text that is to be written has a zero in it, at which it would end.
    ZeroInText,
    /// A value that is to be written is longer than can be said.
    TooLong {
        /// Its length: bytes, or elements of a list.
        length: usize,
        /// The most that can be said.
        max: usize,
    },
    /// The packet is another one.
    Opcode {
        /// The opcode that was expected.
        expected: u64,
        /// The one that came.
        got: u64,
    },
}

impl PacketError {
    /// An error at this place, for types with a [`PacketField`](super::PacketField) of their own.
    #[cold]
    #[must_use]
    pub const fn new(offset: usize, field: &'static str, kind: PacketErrorKind) -> Self {
        Self { offset, field, kind }
    }

    /// Where: how many bytes stand before it in the packet.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// The field, as the last [`at`](super::PacketReader::at) named it; empty if none was named.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        self.field
    }

    /// What was wrong.
    #[must_use]
    pub const fn kind(&self) -> PacketErrorKind {
        self.kind
    }
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}", self.offset)?;
        if !self.field.is_empty() {
            write!(f, ", field {}", self.field)?;
        }
        f.write_str(": ")?;
        match self.kind {
            PacketErrorKind::Truncated { expected, remain } => {
                write!(f, "{expected} was expected, {remain} bytes remain")
            }
            PacketErrorKind::PastEnd { announced, remain } => {
                write!(f, "a length of {announced} was announced, {remain} bytes remain")
            }
            PacketErrorKind::Trailing { remain } => {
                write!(f, "the end was expected, {remain} bytes remain")
            }
            PacketErrorKind::Bool { value } => write!(f, "a bool is 0 or 1, not {value}"),
            PacketErrorKind::Varint => {
                f.write_str("a varint is not in its shortest form, or is past its bits")
            }
            PacketErrorKind::NotUtf8 => f.write_str("a text is not UTF-8"),
            PacketErrorKind::Padding { value } => {
                write!(f, "a text is padded with zeros, {value:#04x} came")
            }
            PacketErrorKind::ZeroInText => {
                f.write_str("a padded text ends at its first zero; leave it out, or send a length")
            }
            PacketErrorKind::TooLong { length, max } => {
                write!(f, "a length of {length} is past {max}, the most that can be written here")
            }
            PacketErrorKind::Opcode { expected, got } => {
                write!(f, "the packet {expected:#x} was expected, {got:#x} came")
            }
        }
    }
}

impl std::error::Error for PacketError {}
